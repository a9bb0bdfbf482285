//! The locked packages that a dependency brings, from the text of a `Cargo.lock`.
//!
//! Only the shape that cargo writes is read: `[[package]]` blocks with `name`, `version`, `source`,
//! `checksum` and a list of `dependencies`, each `name`, `name version` or `name version (source)`.

use std::collections::BTreeSet;

/// One locked package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Package {
    name: String,
    version: String,
    checksum: String,
    dependencies: Vec<String>,
}

/// A parsed lock file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    packages: Vec<Package>,
}

impl Lock {
    /// Reads the text of a lock file.
    pub fn parse(text: &str) -> Lock {
        let mut packages: Vec<Package> = Vec::new();
        for line in text.lines().map(str::trim) {
            if line == "[[package]]" {
                packages.push(Package::default());
            }
            let Some(package) = packages.last_mut() else { continue };
            if let Some((key, value)) = line.split_once(" = ") {
                let value = value.trim_matches('"').to_owned();
                match key {
                    "name" => package.name = value,
                    "version" => package.version = value,
                    "checksum" => package.checksum = value,
                    _ => {}
                }
            } else if line.starts_with('"') {
                package.dependencies.push(line.trim_matches(|c| c == '"' || c == ',').to_owned());
            }
        }
        Lock { packages }
    }

    /// The direct dependency of a workspace crate that code calls `name`, e.g. `candle_core`; the package's
    /// own name.
    pub fn dependency(&self, krate: &str, name: &str) -> Option<&str> {
        let dependent = self.packages.iter().find(|p| in_code(&p.name) == krate)?;
        let reference = dependent.dependencies.iter().find(|d| in_code(first_word(d)) == name)?;
        Some(first_word(reference))
    }

    /// `name version checksum` of a workspace crate's dependency and of everything it depends on. Workspace
    /// crates among them have no checksum and are left out: their sources are followed instead.
    pub fn closure(&self, krate: &str, name: &str) -> BTreeSet<String> {
        let Some(dependent) = self.packages.iter().find(|p| in_code(&p.name) == krate) else {
            return BTreeSet::new();
        };
        let mut open: Vec<&str> = dependent
            .dependencies
            .iter()
            .filter(|d| in_code(first_word(d)) == name)
            .map(String::as_str)
            .collect();
        let mut found = BTreeSet::new();
        while let Some(package) = open.pop().and_then(|reference| self.find(reference)) {
            let Package { name, version, checksum, dependencies } = package;
            if !checksum.is_empty() && found.insert(format!("{name} {version} {checksum}")) {
                open.extend(dependencies.iter().map(String::as_str));
            }
        }
        found
    }

    fn find(&self, reference: &str) -> Option<&Package> {
        let mut words = reference.split(' ');
        let (name, version) = (words.next()?, words.next());
        self.packages.iter().find(|p| p.name == name && version.is_none_or(|v| v == p.version))
    }
}

fn first_word(reference: &str) -> &str {
    reference.split(' ').next().unwrap_or(reference)
}

fn in_code(name: &str) -> String {
    name.replace('-', "_")
}
