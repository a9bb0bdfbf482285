//! Where the values of secrets come from, and that none of them stands in a spec.
//!
//! The caller's environment comes first, then the secrets file: one TOML file outside the project,
//! `NAME = "value"` a line, that nobody but its owner may read.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use avow_exec::{SHORTEST_SECRET, Secrets};
use avow_model::plan::Terms;
use avow_spec::{Diagnostic, Experiment};
use avow_store::Project;
use rustix::process::getuid;
use zeroize::Zeroizing;

use crate::exit::Exit;
use crate::output::Failure;
use crate::settings::Settings;

type Values = BTreeMap<String, Zeroizing<String>>;

/// The secrets that a spec lists, whatever else is wrong with it.
fn listed(experiment: &Experiment) -> Vec<String> {
    let stages = experiment.root().get("stages").map(|node| node.entries()).unwrap_or_default();
    let lists = stages.iter().filter_map(|stage| stage.value.get("secrets")?.items());
    let mut names: Vec<String> = lists.flatten().filter_map(|item| item.text().map(str::to_owned)).collect();
    names.sort();
    names.dedup();
    names
}

/// Complains of values that stand in the spec, and masks them in `text`, which people will see.
pub fn literal(project: &Project, experiment: Option<&Experiment>, text: &mut String) -> Vec<Diagnostic> {
    let names = experiment.map(listed).unwrap_or_default();
    if names.is_empty() {
        return Vec::new();
    }
    // Where the file cannot be read a run says why; here it only means that its values are not known.
    let values = values(project, None, &names).unwrap_or_else(|_| from_environment(&names));
    let mut found: Vec<(Range<usize>, String)> = Vec::new();
    for (name, value) in values.iter().map(|(n, v)| (n, v.trim())).filter(|(_, v)| v.len() >= SHORTEST_SECRET)
    {
        found.extend(text.match_indices(value).map(|(at, _)| (at..at + value.len(), name.clone())));
    }
    for (place, _) in &found {
        text.replace_range(place.clone(), &"*".repeat(place.len()));
    }
    let complaint = |(place, name): (Range<usize>, String)| {
        Diagnostic::error("secret", place, format!("this is the value of the secret `{name}`"))
            .hint("take it out, and revoke it if the file was ever shared")
    };
    found.into_iter().map(complaint).collect()
}

/// The values of all secrets that the stages of a plan name. `missing` are those without one.
pub struct Vault {
    /// What was found.
    pub secrets: Secrets,
    /// Names without a value, each with a stage that names it.
    pub missing: Vec<(String, String)>,
}

impl Vault {
    /// Looks the values up.
    pub fn open(
        project: &Project,
        terms: &BTreeMap<String, Terms>,
        file: Option<&Path>,
    ) -> Result<Vault, Failure> {
        let named =
            terms.iter().flat_map(|(stage, terms)| terms.secrets.iter().map(move |name| (name, stage)));
        let stages: BTreeMap<&String, &String> = named.collect();
        if stages.is_empty() {
            return Ok(Vault { secrets: Secrets::default(), missing: Vec::new() });
        }
        let names: Vec<String> = stages.keys().map(|name| (*name).clone()).collect();
        let values = values(project, file, &names)?;
        let missing = stages.iter().filter(|(name, _)| !values.contains_key(**name));
        let missing = missing.map(|(name, stage)| ((*name).clone(), (*stage).clone())).collect();
        let secrets = Secrets::new(values)
            .map_err(|error| Failure::new(Exit::Usage, "a secret cannot be protected").because(error))?;
        Ok(Vault { secrets, missing })
    }
}

/// The failure of a run that would need a secret which has no value.
pub fn lacking(name: &str, stage: &str) -> Failure {
    Failure::new(Exit::Usage, format!("the stage `{stage}` needs the secret `{name}`, and it has no value"))
        .hint(format!(
            "give it in the environment (`export {name}=…`), or as `{name} = \"…\"` in a file named by \
             `--secrets-file` or under `[secrets]` in avow.toml; nothing was executed"
        ))
}

fn from_environment(names: &[String]) -> Values {
    let value = |name: &String| std::env::var(name).ok().filter(|value| !value.is_empty());
    names.iter().filter_map(|name| Some((name.clone(), Zeroizing::new(value(name)?)))).collect()
}

fn values(project: &Project, file: Option<&Path>, names: &[String]) -> Result<Values, Failure> {
    let mut values = match file.map(Path::to_owned).or(Settings::of(project)?.secrets.file) {
        Some(file) => from_file(project, &at_home(file))?,
        None => Values::new(),
    };
    values.retain(|name, value| names.contains(name) && !value.is_empty());
    values.extend(from_environment(names));
    Ok(values)
}

fn at_home(file: PathBuf) -> PathBuf {
    match (file.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => file,
    }
}

fn from_file(project: &Project, file: &Path) -> Result<Values, Failure> {
    let shown = file.display();
    let unreadable = |error| {
        Failure::new(Exit::Usage, format!("the secrets file `{shown}` cannot be read")).because(error)
    };
    let real = fs::canonicalize(file).map_err(unreadable)?;
    if real.starts_with(project.root()) {
        return Err(Failure::new(Exit::Usage, format!("the secrets file `{shown}` lies in the project"))
            .hint("a project is shared; keep the file elsewhere, e.g. in `~/.config/avow/`"));
    }
    let about = fs::metadata(&real).map_err(unreadable)?;
    if about.mode() & 0o077 != 0 || about.uid() != getuid().as_raw() {
        return Err(Failure::new(Exit::Usage, format!("others may read the secrets file `{shown}`"))
            .hint(format!("make it yours alone: `chmod 600 {shown}`")));
    }
    let text = Zeroizing::new(fs::read_to_string(&real).map_err(unreadable)?);
    // What the parser says quotes the line, and with it the secret.
    let table: BTreeMap<String, String> = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
        Failure::new(Exit::Usage, format!("the secrets file `{shown}` does not parse (line {line})"))
            .hint("it holds lines such as `API_TOKEN = \"…\"`")
    })?;
    Ok(table.into_iter().map(|(name, value)| (name, Zeroizing::new(value))).collect())
}
