//! The plain form of a lock file: what it says, without how it is written.
//!
//! Comments, blank lines, the order of packages and what a lock file knows beside packages (when a file was
//! uploaded, what the environment is called) do not change what is installed, so they must not change what an action
//! is called. The plain form is a lock file of the same kind again: a bundle lays it out, and the manager
//! takes it. Its digest is part of actions and plans, so the form is pinned by the tests below.
//!
//! A file that cannot be read has no plain form, and counts as it is written.

use std::collections::BTreeMap;

use serde_yaml::Value as Yaml;

use super::{logical, normalised};

/// The plain form of a lock file of a manager (`uv`, `pip`, `conda`); `None` where it cannot be read.
pub fn plain(manager: &str, text: &str) -> Option<String> {
    match manager {
        "uv" => uv(text),
        "pip" => Some(pip(text)),
        "conda" if text.lines().any(|line| line.trim() == EXPLICIT) => Some(explicit(text)),
        "conda" => conda(text),
        _ => None,
    }
}

/// Options in their order, which may matter, then requirements by name.
fn pip(text: &str) -> String {
    let (options, requirements): (Vec<_>, Vec<_>) =
        logical(text).into_iter().partition(|line| line.starts_with('-'));
    let spaced = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut requirements: Vec<String> = requirements.iter().map(|line| requirement(&spaced(line))).collect();
    requirements.sort();
    requirements.dedup();
    lines(options.iter().map(spaced).chain(requirements))
}

/// One requirement: its name as indexes compare it, its hashes sorted, other options of its own as they are.
fn requirement(line: &str) -> String {
    let mut parts = line.split(" --");
    let wanted = parts.next().unwrap_or_default();
    let (mut hashes, options): (Vec<&str>, Vec<&str>) =
        parts.map(str::trim).partition(|part| part.starts_with("hash="));
    hashes.sort_unstable();
    hashes.dedup();
    let (wanted, marker) = wanted.split_once(';').map_or((wanted, None), |(a, b)| (a, Some(b.trim())));
    let part_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let (name, rest) = wanted.split_at(wanted.find(|c| !part_of_name(c)).unwrap_or(wanted.len()));
    let rest = rest.trim();
    let mut plain = normalised(name);
    // In another place it would be a comment or an option, or the next line would go on here.
    let other = line.contains('\\') || marker.is_some_and(|marker| marker.starts_with(['#', '-']));
    // What no requirement looks like is not put in order, or it might say something else afterwards.
    if plain.is_empty() || other || !(rest.starts_with('@') || are_versions(rest)) {
        return line.to_owned();
    }
    match rest {
        // An address may hold anything.
        rest if rest.starts_with('@') => plain.push_str(&format!(" {rest}")),
        rest => plain.push_str(&tight(rest)),
    }
    plain.extend(marker.map(|marker| format!(" ; {marker}")));
    plain.extend(options.iter().chain(&hashes).map(|option| format!(" --{option}")));
    plain
}

/// Extras and version specifiers in any spacing, as they follow a name (PEP 508), or nothing.
fn are_versions(text: &str) -> bool {
    let part_of_word = |c: char| c.is_ascii_alphanumeric() || "-_.*+!".contains(c);
    let word = |text: &str| !text.is_empty() && text.chars().all(part_of_word);
    let (extras, rest) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((extras, rest))) => (extras, rest.trim()),
        Some(None) => return false,
        None => ("", text),
    };
    let rest = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(rest).trim();
    let compared = |one: &str| {
        let version = one.trim().trim_start_matches(['=', '<', '>', '!', '~']);
        version.len() < one.trim().len() && word(version.trim())
    };
    extras.split(',').all(|extra| extra.trim().is_empty() || word(extra.trim()))
        && (rest.is_empty() || rest.split(',').all(compared))
}

/// What stands between a name, versions and extras.
const SIGNS: &str = "=<>!~,[]()";

/// Without spaces beside signs.
fn tight(text: &str) -> String {
    let mut plain = String::new();
    let sign = |c: Option<char>| c.is_none_or(|c| SIGNS.contains(c));
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != ' ' || !(sign(plain.chars().last()) || sign(rest.peek().copied())) {
            plain.push(c);
        }
    }
    plain
}

/// What a `uv.lock` knows beside what is installed: of itself, and of files.
const UV_BESIDE: [&str; 1] = ["revision"];
const UV_FILES: [&str; 2] = ["upload-time", "size"];

fn uv(text: &str) -> Option<String> {
    let mut lock: toml::Table = toml::from_str(text).ok()?;
    UV_BESIDE.iter().for_each(|key| drop(lock.remove(*key)));
    for package in lock.get_mut("package").and_then(toml::Value::as_array_mut).into_iter().flatten() {
        let Some(package) = package.as_table_mut() else { continue };
        let files = |value: &mut toml::Value| {
            if let Some(file) = value.as_table_mut() {
                UV_FILES.iter().for_each(|key| drop(file.remove(*key)));
            }
        };
        package.get_mut("sdist").into_iter().for_each(files);
        let wheels = package.get_mut("wheels").and_then(toml::Value::as_array_mut);
        if let Some(wheels) = wheels {
            wheels.iter_mut().for_each(files);
            wheels.sort_by_cached_key(toml::Value::to_string);
        }
    }
    if let Some(packages) = lock.get_mut("package").and_then(toml::Value::as_array_mut) {
        packages.sort_by_cached_key(toml::Value::to_string);
    }
    toml::to_string(&lock).ok()
}

/// The first line of conda's explicit files.
pub(super) const EXPLICIT: &str = "@EXPLICIT";

fn explicit(text: &str) -> String {
    let mut archives: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(['#', '@']))
        .collect();
    archives.sort_unstable();
    archives.dedup();
    lines(std::iter::once(EXPLICIT).chain(archives))
}

/// What conda's files know beside what is installed: the environment's name and place, and of a lock what it was made
/// from and when.
const CONDA_BESIDE: [&str; 3] = ["name", "prefix", "metadata"];

fn conda(text: &str) -> Option<String> {
    let Yaml::Mapping(mut environment) = serde_yaml::from_str(text).ok()? else { return None };
    CONDA_BESIDE.iter().for_each(|key| drop(environment.remove(*key)));
    let mut plain = BTreeMap::new();
    for (key, value) in environment {
        let Yaml::String(key) = key else { return None };
        let value =
            if ["dependencies", "package"].contains(&key.as_str()) { unordered(value) } else { value };
        plain.insert(key, sorted(value));
    }
    serde_yaml::to_string(&plain).ok()
}

/// A list whose order means nothing; pip's part of it is one as well.
fn unordered(value: Yaml) -> Yaml {
    let Yaml::Sequence(mut items) = value else { return value };
    for item in &mut items {
        if let Some(pip) =
            item.as_mapping_mut().filter(|item| item.len() == 1).and_then(|item| item.get_mut("pip"))
        {
            *pip = unordered(std::mem::take(pip));
        }
    }
    let mut items: Vec<(String, Yaml)> = items.into_iter().map(|item| (spelled(&item), item)).collect();
    items.sort_by(|(a, _), (b, _)| a.cmp(b));
    Yaml::Sequence(items.into_iter().map(|(_, item)| item).collect())
}

/// The same with the keys of all mappings sorted.
fn sorted(value: Yaml) -> Yaml {
    match value {
        Yaml::Sequence(items) => Yaml::Sequence(items.into_iter().map(sorted).collect()),
        Yaml::Mapping(fields) => {
            let mut fields: Vec<(Yaml, Yaml)> =
                fields.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            fields.sort_by_cached_key(|(key, _)| spelled(key));
            Yaml::Mapping(fields.into_iter().collect())
        }
        other => other,
    }
}

/// As text, to compare by. A value that was read can be written.
fn spelled(value: &Yaml) -> String {
    serde_yaml::to_string(&sorted(value.clone())).unwrap_or_default()
}

fn lines(lines: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    lines.into_iter().map(|line| format!("{}\n", line.as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn same(manager: &str, texts: &[&str], form: &str) {
        for text in texts {
            assert_eq!(plain(manager, text).as_deref(), Some(form), "{text}");
        }
        assert_eq!(plain(manager, form).as_deref(), Some(form), "a plain form has itself as its plain form");
    }

    #[test]
    fn requirements_that_say_the_same_have_one_form() {
        same(
            "pip",
            &[
                "numpy==1.26.4 --hash=sha256:aa --hash=sha256:bb\ntorch==2.1.0\n",
                "# made by a tool\n\nTorch == 2.1.0  # via x\r\nnumpy==1.26.4 \\\n    --hash=sha256:bb \\\n    --hash=sha256:aa\n",
            ],
            "numpy==1.26.4 --hash=sha256:aa --hash=sha256:bb\ntorch==2.1.0\n",
        );
        same(
            "pip",
            &[
                "b[Extra] == 2 ; sys_platform=='win32'\n--index-url https://x/y\na @ https://e.org/a.zip#egg=A\n",
            ],
            "--index-url https://x/y\na @ https://e.org/a.zip#egg=A\nb[Extra]==2 ; sys_platform=='win32'\n",
        );
        same(
            "pip",
            &["a>=1 , <2  --config-settings=x  --hash=sha256:a\n"],
            "a>=1,<2 --config-settings=x --hash=sha256:a\n",
        );
        assert_ne!(plain("pip", "a b==1\n"), plain("pip", "ab==1\n"));
        assert_ne!(plain("pip", "a==1.0\n"), plain("pip", "a==1.0.1\n"));
        assert_ne!(plain("pip", "a==1 --hash=sha256:aa\n"), plain("pip", "a==1 --hash=sha256:ab\n"));
        assert_ne!(
            plain("pip", "--index-url a\n--index-url b\n"),
            plain("pip", "--index-url b\n--index-url a\n")
        );
    }

    #[test]
    fn what_is_no_requirement_stays_as_it_is() {
        for line in [
            "on: Torch == 3.11",
            "a b==1",
            "== 3",
            "Ä == 1",
            "./here[Extra] == 2",
            "a * 2 --hash=sha256:b --hash=sha256:a",
            "a == 2.1.x = { r",
            "a[b",
            "a[b c]==1",
            "_ == 1",
            ".",
            "a;#b",
            "a;--b",
            "a==1 --hash=sha256:b\\c --hash=sha256:a",
        ] {
            same("pip", &[&format!("{line}\n"), &format!(" {line}  # by hand\n")], &format!("{line}\n"));
        }
    }

    #[test]
    fn uv_locks_that_say_the_same_have_one_form() {
        let one = "version = 1\nrevision = 3\nrequires-python = \">=3.11\"\n\n[[package]]\nname = \"b\"\nversion = \"2\"\n\
                   source = { registry = \"https://packages.example.org/simple\" }\nwheels = [\n    { url = \"https://f/2\", hash = \"sha256:2\", size = 7, upload-time = \"2024-01-01T00:00:00Z\" },\n    { url = \"https://f/1\", hash = \"sha256:1\" },\n]\n\n\
                   [[package]]\nname = \"a\"\nversion = \"1\"\ndependencies = [\n    { name = \"b\" },\n]\n";
        let other = "# a comment\nversion = 1\nrequires-python = '>=3.11'\n[[package]]\nversion = \"1\"\nname = \"a\"\ndependencies = [{ name = \"b\" }]\n\
                     [[package]]\nname = \"b\"\nversion = \"2\"\nsource = { registry = \"https://packages.example.org/simple\" }\nwheels = [{ url = \"https://f/1\", hash = \"sha256:1\" }, { url = \"https://f/2\", hash = \"sha256:2\" }]\n";
        let form = "requires-python = \">=3.11\"\nversion = 1\n\n[[package]]\nname = \"a\"\nversion = \"1\"\n\n[[package.dependencies]]\nname = \"b\"\n\n\
                    [[package]]\nname = \"b\"\nversion = \"2\"\n\n[package.source]\nregistry = \"https://packages.example.org/simple\"\n\n\
                    [[package.wheels]]\nhash = \"sha256:1\"\nurl = \"https://f/1\"\n\n[[package.wheels]]\nhash = \"sha256:2\"\nurl = \"https://f/2\"\n";
        same("uv", &[one, other], form);
        assert_ne!(plain("uv", one), plain("uv", &one.replace("sha256:1", "sha256:3")));
        assert_eq!(plain("uv", "no toml ["), None);
    }

    #[test]
    fn conda_files_that_say_the_same_have_one_form() {
        same(
            "conda",
            &[
                "name: mine\nchannels: [conda-forge]\ndependencies:\n  - python=3.11\n  - numpy=1.26.4\n  - pip:\n    - b==1\n    - a==2\nprefix: /home/me\n",
                "# mine\nname: yours\ndependencies:\n  - pip:\n    - a==2\n    - b==1\n  - numpy=1.26.4 # fast\n  - python=3.11\nchannels:\n  - conda-forge\n",
            ],
            "channels:\n- conda-forge\ndependencies:\n- numpy=1.26.4\n- pip:\n  - a==2\n  - b==1\n- python=3.11\n",
        );
        same(
            "conda",
            &["# platform: linux-64\n@EXPLICIT\nhttps://c/b-1-0.conda#1\nhttps://c/a-1-0.conda#2\n"],
            "@EXPLICIT\nhttps://c/a-1-0.conda#2\nhttps://c/b-1-0.conda#1\n",
        );
        same(
            "conda",
            &[
                "version: 1\nmetadata: {time: now}\npackage:\n- {name: b, version: '1'}\n- {version: 1.0, name: a}\n",
            ],
            "package:\n- name: a\n  version: 1.0\n- name: b\n  version: '1'\nversion: 1\n",
        );
        for broken in ["- a\n- b\n", "a: [", "1: 2", "!tag x"] {
            assert_eq!(plain("conda", broken), None, "{broken}");
        }
    }
}
