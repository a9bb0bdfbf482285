//! What conda's YAML files say: an `environment.yml`, or the lock that `conda-lock` writes.

use serde_yaml::Value as Yaml;

/// The packages of such a file.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// What conda is to install, in its own words: `name=1.2=build`.
    pub(super) dependencies: Vec<String>,
    /// What pip is to install.
    pub(super) pip: Vec<String>,
    /// Names and versions that a lock pins.
    pub(super) locked: Vec<(String, String)>,
}

/// Nothing of a file that cannot be read.
pub(super) fn wanted(text: &str) -> Wanted {
    let mut all = Wanted::default();
    let Ok(Yaml::Mapping(file)) = serde_yaml::from_str(text) else { return all };
    let list = |key: &str| file.get(key).and_then(Yaml::as_sequence).into_iter().flatten();
    let words = |item: &Yaml| item.as_str().map(|text| text.trim().to_owned());
    for item in list("dependencies") {
        all.dependencies.extend(words(item));
        all.pip.extend(item.get("pip").and_then(Yaml::as_sequence).into_iter().flatten().filter_map(words));
    }
    for item in list("package") {
        let field = |key: &str| match item.get(key)? {
            Yaml::String(text) => Some(text.clone()),
            Yaml::Number(number) => Some(number.to_string()),
            _ => None,
        };
        all.locked.extend(field("name").zip(field("version")));
    }
    all
}
