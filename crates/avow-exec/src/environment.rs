//! The environment of a stage: a documented base, then what the spec declared, and nothing else of the caller's.
//!
//! | variable | value | why |
//! |---|---|---|
//! | `PATH`, `HOME` | the caller's | programs and the user's installed libraries are found |
//! | `LANG` | `C.UTF-8` | sorting, messages and number formats do not depend on the person |
//! | `TZ` | `UTC` | nor on the place |
//! | `TMPDIR` | the attempt's own `tmp` | nothing leaks from one attempt to the next |
//! | `XDG_CACHE_HOME` | `cache` in it | caches would be an undeclared input |
//! | `OMP_NUM_THREADS`, `MKL_NUM_THREADS`, `OPENBLAS_NUM_THREADS`, `RAYON_NUM_THREADS` | `1` | the number of threads changes sums; declare it to have more |
//! | `PYTHONHASHSEED` | `0` | the order of Python's sets does not change from run to run |
//! | `PYTHONDONTWRITEBYTECODE` | `1` | no `__pycache__` among the outputs |
//! | `AVOW_CHECKPOINT` | the checkpoint folder, where the stage has one | a program finds what an earlier attempt left |
//! | `AVOW_ATTEMPT` | the attempt | finds what a stage left behind, whatever session it moved to |
//!
//! Secrets come beside them, each under its own name, when the process is started and never before.
//!
//! A declared variable replaces one of the base, except those of the attempt: `AVOW_ATTEMPT`, `AVOW_CHECKPOINT`,
//! `TMPDIR` and `XDG_CACHE_HOME`. Where Avow itself runs inside a stage, `AVOW_ATTEMPT` is `OUTER/INNER`.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::ops::Deref;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use avow_model::attempt::AttemptId;
use zeroize::Zeroize;

/// The variable that marks every process of an attempt.
pub const MARKER: &str = "AVOW_ATTEMPT";

/// The variable that names the checkpoint folder, as an absolute path.
pub const CHECKPOINT: &str = "AVOW_CHECKPOINT";

/// The variables that say how many threads libraries use; 1 unless a stage declares more.
pub(crate) const THREADS: [&str; 4] =
    ["MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"];

/// What the base takes from the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// `PATH`.
    pub path: OsString,
    /// `HOME`.
    pub home: OsString,
    /// The attempt this program itself runs in.
    pub within: Option<String>,
}

impl Base {
    /// From the environment of this process, with usual values for what it lacks.
    pub fn inherited() -> Self {
        Self {
            path: std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
            home: std::env::var_os("HOME").unwrap_or_else(|| "/".into()),
            within: std::env::var(MARKER).ok().filter(|outer| !outer.is_empty()),
        }
    }
}

/// A whole environment, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The base, then the declared variables.
    pub(crate) fn new(
        base: &Base,
        declared: &BTreeMap<String, String>,
        attempt: &AttemptId,
        temporary: &Path,
    ) -> Self {
        let marker = match &base.within {
            Some(outer) => format!("{outer}/{attempt}"),
            None => attempt.to_string(),
        };
        let fixed = [
            ("LANG", "C.UTF-8"),
            ("TZ", "UTC"),
            ("OMP_NUM_THREADS", "1"),
            ("MKL_NUM_THREADS", "1"),
            ("OPENBLAS_NUM_THREADS", "1"),
            ("RAYON_NUM_THREADS", "1"),
            ("PYTHONHASHSEED", "0"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
        ];
        let mut all: BTreeMap<OsString, OsString> =
            fixed.map(|(name, value)| (name.into(), value.into())).into();
        all.insert("PATH".into(), base.path.clone());
        all.insert("HOME".into(), base.home.clone());
        all.extend(declared.iter().map(|(name, value)| (name.into(), value.into())));
        all.insert("TMPDIR".into(), temporary.into());
        all.insert("XDG_CACHE_HOME".into(), temporary.join("cache").into());
        all.insert(MARKER.into(), marker.into());
        Self(all)
    }

    /// Where programs are searched.
    pub(crate) fn path(&self) -> OsString {
        self.0.get(std::ffi::OsStr::new("PATH")).cloned().unwrap_or_default()
    }

    /// The names of its variables.
    pub(crate) fn names(&self) -> impl Iterator<Item = OsString> + '_ {
        self.0.keys().cloned()
    }

    /// Sets a variable that belongs to the attempt.
    pub(crate) fn set(&mut self, name: &str, value: &Path) {
        self.0.insert(name.into(), value.into());
    }

    /// `NAME=VALUE` strings, secrets last and wiped after use; `None` where one holds a NUL byte.
    pub(crate) fn strings<'s>(&self, secrets: impl Iterator<Item = (&'s str, &'s str)>) -> Option<Strings> {
        let entry = |(name, value): (&OsString, &OsString)| {
            let mut bytes = name.clone();
            bytes.push("=");
            bytes.push(value);
            CString::new(bytes.into_vec()).ok()
        };
        let mut all = Strings(self.0.iter().map(entry).collect::<Option<Vec<CString>>>()?);
        for (name, value) in secrets {
            all.0.push(CString::new(format!("{name}={value}")).ok()?);
        }
        Some(all)
    }
}

/// `NAME=VALUE` strings that are wiped from memory after use.
pub(crate) struct Strings(Vec<CString>);

impl Deref for Strings {
    type Target = [CString];

    fn deref(&self) -> &[CString] {
        &self.0
    }
}

impl Drop for Strings {
    fn drop(&mut self) {
        for string in self.0.drain(..) {
            string.into_bytes().zeroize();
        }
    }
}

/// Whether a marker names this attempt, directly or as an outer one.
pub(crate) fn marks(marker: &str, attempt: &str) -> bool {
    marker.split('/').any(|part| part == attempt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Base {
        Base { path: "/bin".into(), home: "/home/a".into(), within: None }
    }

    fn text(environment: &Environment) -> Vec<String> {
        let strings = environment.strings(std::iter::empty()).unwrap();
        strings.iter().map(|s| s.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn declared_variables_replace_the_base_but_not_what_belongs_to_the_attempt() {
        let declared = [("OMP_NUM_THREADS", "2"), ("X", "y"), ("TMPDIR", "/elsewhere"), (MARKER, "other")];
        let declared = declared.map(|(a, b)| (a.to_owned(), b.to_owned())).into();
        let all = text(&Environment::new(&base(), &declared, &AttemptId("7".to_owned()), Path::new("/t")));
        for entry in ["OMP_NUM_THREADS=2", "X=y", "TMPDIR=/t", "XDG_CACHE_HOME=/t/cache", "AVOW_ATTEMPT=7"] {
            assert!(all.iter().any(|e| e == entry), "{entry} is missing in {all:?}");
        }
    }

    #[test]
    fn an_attempt_within_an_attempt_is_marked_with_both() {
        let base = Base { within: Some("1".to_owned()), ..base() };
        let all =
            text(&Environment::new(&base, &BTreeMap::new(), &AttemptId("2".to_owned()), Path::new("/t")));
        assert!(all.iter().any(|e| e == "AVOW_ATTEMPT=1/2"));
        assert!(marks("1/2", "1") && marks("1/2", "2") && !marks("12", "1"));
    }
}
