//! How far a stage is confined, what this machine can give of it, and the words that attempts record.
//!
//! | level | what holds |
//! |---|---|
//! | `none` | a folder of its own and a clean environment, by layout alone; inputs are copied |
//! | `declared` | besides, writing elsewhere is denied where the kernel has Landlock 3; inputs are links then |
//! | `deny` | besides, reading what was not declared is denied, and the network with Landlock 4 |
//! | `observe` | as `declared`, without the network, and what is read is recorded with the attempt |
//!
//! An attempt records its level, then what else the kernel denied: `declared+landlock`, `deny+offline`,
//! `observe+landlock+offline`. [`protection`] is the Landlock side, [`sockets`] the network beside TCP, [`grants`] which paths stay readable,
//! [`installed`] where the programs of a stage have their files.

pub(crate) mod grants;
pub(crate) mod installed;
pub(crate) mod protection;
pub(crate) mod sockets;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub(crate) use protection::{NEEDED, NETWORK_NEEDED, Protection, available};

/// A level of confinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confinement {
    /// A folder of its own, and nothing that the kernel enforces.
    None,
    /// Write protection where the kernel has it.
    Declared,
    /// Undeclared reads are denied.
    Deny,
    /// Reads are recorded.
    Observe,
}

impl Confinement {
    /// All of them, loosest first.
    pub const ALL: [Confinement; 4] =
        [Confinement::None, Confinement::Declared, Confinement::Deny, Confinement::Observe];

    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Confinement::None => "none",
            Confinement::Declared => "declared",
            Confinement::Deny => "deny",
            Confinement::Observe => "observe",
        }
    }
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that names no level.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no level of confinement; they are `none`, `declared`, `deny`, `observe`")]
pub struct NoSuchLevel(String);

impl FromStr for Confinement {
    type Err = NoSuchLevel;

    fn from_str(word: &str) -> Result<Self, NoSuchLevel> {
        Self::ALL.into_iter().find(|level| level.word() == word).ok_or_else(|| NoSuchLevel(word.to_owned()))
    }
}

/// Where the boundaries lie, and what is open to every stage beside what it declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The project's root: closed, also where it lies in a system folder.
    pub project: Option<PathBuf>,
    /// Files and folders that every stage may read all the same.
    pub allow: Vec<PathBuf>,
    /// Whether every stage may use the network.
    pub network: bool,
}

/// What holds for the attempts of one executor.
#[derive(Debug)]
pub(crate) struct Held {
    /// The level.
    pub(crate) level: Confinement,
    /// Landlock, where it is used.
    pub(crate) protection: Option<Protection>,
    /// Why the level is less than the best, where nobody asked for less.
    pub(crate) fallback: Option<String>,
}

impl Held {
    /// The level asked for, or the best that this machine gives.
    pub(crate) fn new(asked: Option<Confinement>, work: &Path) -> Result<Self, io::Error> {
        let landlock = match asked {
            Some(Confinement::None) => Err(io::Error::other("not asked for")),
            _ => available(work),
        };
        let held = |level, protection| Self { level, protection, fallback: None };
        match (asked, landlock) {
            (None | Some(Confinement::Deny), Ok(protection)) => Ok(held(Confinement::Deny, Some(protection))),
            (Some(Confinement::Deny), Err(error)) => Err(error),
            (None, Err(error)) => {
                Ok(Self { fallback: Some(error.to_string()), ..held(Confinement::Declared, None) })
            }
            (Some(Confinement::Observe), landlock) => {
                crate::observe::available()?;
                Ok(held(Confinement::Observe, landlock.ok()))
            }
            (Some(level), landlock) => Ok(held(level, landlock.ok())),
        }
    }

    /// Whether reading what was not declared is denied.
    pub(crate) fn denies_reads(&self) -> bool {
        self.level == Confinement::Deny
    }

    /// Whether an attempt that may not use the network is kept from it.
    pub(crate) fn denies_network(&self) -> bool {
        self.level >= Confinement::Deny && self.protection.as_ref().is_some_and(Protection::has_network)
    }

    /// How an attempt was confined, as it is recorded.
    pub(crate) fn words(&self, offline: bool) -> String {
        let mut words = self.level.word().to_owned();
        if self.protection.is_some() && !self.denies_reads() {
            words.push_str("+landlock");
        }
        if offline {
            words.push_str("+offline");
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_has_a_word_that_names_it() {
        for level in Confinement::ALL {
            assert_eq!(level.to_string().parse::<Confinement>().unwrap(), level);
        }
        assert!("sandbox".parse::<Confinement>().unwrap_err().to_string().contains("`observe`"));
    }
}
