//! `CITATION.cff` (Citation File Format 1.2): who is to be cited, and under which licence things may be used.
//!
//! Read is what exchange formats have a place for; everything else travels along in the file itself.

use serde::Deserialize;

use crate::error::ExchangeError;

/// The usual name of the file, in the root of a project.
pub const FILE: &str = "CITATION.cff";

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Citation {
    /// The title of the work.
    pub title: Option<String>,
    /// Its authors, in their order.
    #[serde(default)]
    pub authors: Vec<Author>,
    /// SPDX identifiers of its licences; any one of them may be chosen.
    #[serde(default)]
    pub license: OneOrMore,
    /// The address of a licence that has no identifier.
    pub license_url: Option<String>,
    /// Its DOI.
    pub doi: Option<String>,
    /// Its version.
    #[serde(default, deserialize_with = "printable")]
    pub version: Option<String>,
    /// When it was released: `YYYY-MM-DD`.
    pub date_released: Option<String>,
    /// What it is about.
    #[serde(rename = "abstract")]
    pub about: Option<String>,
    /// Words to find it by.
    #[serde(default)]
    pub keywords: Vec<String>,
    /// Its page.
    pub url: Option<String>,
}

/// A person or a body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Author {
    /// A person's given names.
    pub given_names: Option<String>,
    /// What stands before the family names: `van`.
    pub name_particle: Option<String>,
    /// A person's family names.
    pub family_names: Option<String>,
    /// A body's name.
    pub name: Option<String>,
    /// An ORCID, as an address.
    pub orcid: Option<String>,
    /// Where a person works.
    pub affiliation: Option<String>,
}

/// One text or a list of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl Default for OneOrMore {
    fn default() -> OneOrMore {
        OneOrMore::Several(Vec::new())
    }
}

impl OneOrMore {
    /// All of them.
    pub fn all(&self) -> &[String] {
        match self {
            OneOrMore::One(one) => std::slice::from_ref(one),
            OneOrMore::Several(several) => several,
        }
    }
}

impl Citation {
    /// Reads the file.
    pub fn read(bytes: &[u8]) -> Result<Citation, ExchangeError> {
        serde_yaml::from_slice(bytes).map_err(|error| ExchangeError::Citation(error.to_string()))
    }

    /// The licences of the work, as identifiers or addresses.
    pub fn licences(&self) -> Vec<&str> {
        let identifiers = self.license.all().iter().map(String::as_str);
        identifiers.chain(self.license_url.as_deref()).collect()
    }
}

impl Author {
    /// Whether it is a body, not a person.
    pub fn is_body(&self) -> bool {
        self.name.is_some()
    }

    /// The whole name.
    pub fn whole_name(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let parts = [&self.given_names, &self.name_particle, &self.family_names];
        parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// A version may be written as a number.
fn printable<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let value = Option::<serde_yaml::Value>::deserialize(deserializer)?;
    match value {
        None | Some(serde_yaml::Value::Null) => Ok(None),
        Some(serde_yaml::Value::String(text)) => Ok(Some(text)),
        Some(serde_yaml::Value::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => Err(serde::de::Error::custom("`version` is neither text nor a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_bodies_and_licences_are_read() {
        let text = "\
cff-version: 1.2.0
message: Cite it.
title: Ridge on digits
version: 1.10
license: [MIT, Apache-2.0]
authors:
  - {given-names: Ada, name-particle: van, family-names: Lovelace, orcid: 'https://orcid.org/0000-0002-1825-0097'}
  - {name: The Engine Society}
preferred-citation: {type: article, title: other}
";
        let citation = Citation::read(text.as_bytes()).expect("it is valid");
        assert_eq!(citation.authors[0].whole_name(), "Ada van Lovelace");
        assert_eq!(
            (citation.authors[1].whole_name(), citation.authors[1].is_body()),
            ("The Engine Society".to_owned(), true)
        );
        assert_eq!(citation.licences(), ["MIT", "Apache-2.0"]);
        let one = Citation::read(b"license: MIT\n").expect("it is valid");
        assert_eq!(one.licences(), ["MIT"]);
        assert!(matches!(Citation::read(b"authors: 3"), Err(ExchangeError::Citation(_))));
    }
}
