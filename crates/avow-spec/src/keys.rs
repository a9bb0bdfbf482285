//! The key tables: the language, written down once.
//!
//! Every mapping of a spec has one [`Table`]; every key one row with its shape, default and a line of help.
//! The checker ([`crate::shape`]), the nearest-key hints, `docs/keys.md` ([`crate::document`]) and the JSON
//! Schema ([`crate::schema`]) read these tables, so none of them can say something else. Keys that a later
//! version brings stand here already, so that the language is one thing and a spec written for a newer
//! version gets "not yet", never "unknown".

mod claim;
mod experiment;
mod rule;
mod search;
mod stage;

pub(crate) use experiment::EXPERIMENT;
pub(crate) use stage::STAGE;

/// When a key, form or word works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// In this version.
    Now,
    /// In a later one.
    Later,
}

/// One key of a mapping.
pub(crate) struct Key {
    /// The word.
    pub name: &'static str,
    /// What its value looks like.
    pub shape: Shape,
    /// Whether it must be given.
    pub required: bool,
    /// What leaving it out means, in words; empty where there is nothing to say.
    pub default: &'static str,
    /// One line for a reader.
    pub help: &'static str,
    /// When it works.
    pub since: Since,
}

/// The keys of one kind of mapping.
pub(crate) struct Table {
    /// A short name: "stage", "claim".
    pub name: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// Its own keys.
    pub keys: &'static [Key],
    /// Tables whose keys it has as well.
    pub with: &'static [&'static Table],
}

impl Table {
    /// Own keys, then those of the tables it includes.
    pub(crate) fn all(&self) -> impl Iterator<Item = &'static Key> {
        self.keys.iter().chain(self.with.iter().flat_map(|table| table.keys.iter()))
    }

    /// The key with this name.
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.all().find(|key| key.name == name)
    }
}

/// A mapping told apart by one of its keys.
pub(crate) struct Form {
    /// The key (or, for a tagged mapping, the tag's word).
    pub word: &'static str,
    /// The keys it then has.
    pub table: &'static Table,
    /// When it works.
    pub since: Since,
}

/// One word of a closed list.
pub(crate) struct Word {
    /// The word.
    pub word: &'static str,
    /// When it works.
    pub since: Since,
    /// A few words of help.
    pub help: &'static str,
}

/// What a value may look like.
pub(crate) enum Shape {
    /// Text.
    Text,
    /// Text, or a number or truth that is taken as text.
    Printable,
    /// A name: `[A-Za-z_][A-Za-z0-9_-]*`.
    Name,
    /// A dimension: an axis, an attribute (`model.lab`) or a record key.
    Dimension,
    /// `stage.name`, or a bare name.
    Selector,
    /// True or false.
    Bool,
    /// An integer between two bounds.
    Int(i64, i64),
    /// A finite number.
    Number,
    /// A finite number above zero.
    Positive,
    /// A finite number, or a formula over parameters.
    Quantity,
    /// A share between 0 and 1: `0.05` or `5%`.
    Share,
    /// Bytes: `2GiB`.
    Size,
    /// Time: `1h30m`.
    Duration,
    /// A digest of 64 hexadecimal digits.
    Digest,
    /// A path inside the project.
    Path,
    /// A formula.
    Formula,
    /// A number, a truth or text.
    Scalar,
    /// Any value, nested as deep as it likes.
    Value,
    /// One of these words.
    Word(&'static [Word]),
    /// Exactly this integer.
    Exactly(i64),
    /// A list.
    List(&'static Shape),
    /// A list with a number of items between two bounds.
    Items(&'static Shape, usize, usize),
    /// A mapping with this table's keys.
    Map(&'static Table),
    /// A mapping with the keys of a table that (indirectly) contains itself.
    Again(fn() -> &'static Table),
    /// A mapping from names of the author's choice; what they name comes first.
    Named(Names, &'static Shape),
    /// A mapping told apart by which key it has.
    Forms(&'static [Form], &'static Shape),
    /// A mapping told apart by the word under `kind`.
    Tagged(&'static [Form]),
    /// One of several shapes, told apart by what is written.
    Either(&'static [Shape]),
}

/// What the keys of a mapping name, and so how they may be spelt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// Axes and parameters: `[a-z_][a-z0-9_]*`.
    Variable,
    /// Stages, claims, inputs, outputs, families: `[A-Za-z_][A-Za-z0-9_-]*`.
    Thing,
    /// Environment variables: `[A-Za-z_][A-Za-z0-9_]*`.
    Environment,
    /// Parameters of an operation; the operation's signature says which.
    Parameter,
    /// Axes, attributes or record keys.
    Dimension,
    /// Values of a mapping axis.
    AxisValue,
}

impl Names {
    /// Whether a name is spelt as it must be.
    pub(crate) fn allows(self, name: &str) -> bool {
        let mut chars = name.chars();
        let Some(first) = chars.next() else { return false };
        let lower = |c: char| c.is_ascii_lowercase() || c == '_';
        let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
        match self {
            Names::Variable => lower(first) && chars.all(|c| lower(c) || c.is_ascii_digit()),
            Names::Thing | Names::Parameter => {
                letter(first) && chars.all(|c| letter(c) || c.is_ascii_digit() || c == '-')
            }
            Names::Environment => letter(first) && chars.all(|c| letter(c) || c.is_ascii_digit()),
            Names::Dimension => {
                letter(first) && chars.all(|c| letter(c) || c.is_ascii_digit() || matches!(c, '-' | '.'))
            }
            Names::AxisValue => name.len() <= 200 && !name.chars().any(char::is_control),
        }
    }

    /// The pattern as a regular expression, for the schema and for messages.
    pub(crate) fn pattern(self) -> &'static str {
        match self {
            Names::Variable => "^[a-z_][a-z0-9_]*$",
            Names::Thing | Names::Parameter => "^[A-Za-z_][A-Za-z0-9_-]*$",
            Names::Environment => "^[A-Za-z_][A-Za-z0-9_]*$",
            Names::Dimension => "^[A-Za-z_][A-Za-z0-9_.-]*$",
            Names::AxisValue => "^.{1,200}$",
        }
    }

    /// The same in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Names::Variable => "lower-case letters, digits and `_`, beginning with a letter",
            Names::Thing | Names::Parameter => "letters, digits, `_` and `-`, beginning with a letter",
            Names::Environment => "letters, digits and `_`, beginning with a letter",
            Names::Dimension => "an axis, an attribute such as `model.lab`, or a record key",
            Names::AxisValue => "1 to 200 characters",
        }
    }
}

/// A key that works now.
const fn key(name: &'static str, shape: Shape, default: &'static str, help: &'static str) -> Key {
    Key { name, shape, required: false, default, help, since: Since::Now }
}

/// A key that works now and must be given.
const fn must(name: &'static str, shape: Shape, help: &'static str) -> Key {
    Key { name, shape, required: true, default: "", help, since: Since::Now }
}

/// A key that a later version brings.
const fn later(name: &'static str, help: &'static str) -> Key {
    Key { name, shape: Shape::Value, required: false, default: "", help, since: Since::Later }
}

/// A form that works now.
const fn form(word: &'static str, table: &'static Table) -> Form {
    Form { word, table, since: Since::Now }
}

/// A word that works now.
const fn word(word: &'static str, help: &'static str) -> Word {
    Word { word, since: Since::Now, help }
}

/// A word that a later version brings.
const fn word_later(word: &'static str, help: &'static str) -> Word {
    Word { word, since: Since::Later, help }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_table_names_a_key_twice() {
        for table in crate::document::tables() {
            let mut names: Vec<&str> = table.all().map(|key| key.name).collect();
            names.sort_unstable();
            let before = names.len();
            names.dedup();
            assert_eq!(before, names.len(), "{}", table.name);
        }
    }
}
