//! Measurements: numbers read from declared files, joined with the cell that made them.
//!
//! Only files a stage declared are read, never what it printed. A number keeps its origin (artifact, attempt,
//! line) and its coordinates (the member's axes and the record's own keys). A problem is a value too: a file
//! that does not parse, a boolean where a number was expected, a key that contradicts its cell. A problem about
//! one name concerns only the claims that select that name. Absent: judgement.

mod columns;
pub mod json;
pub(crate) mod lines;
pub mod table;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use avow_model::digest::{Artifact, AttemptDigest, BlobDigest};
use avow_model::expand::{self, Member};
use avow_model::plan::{MeasurementFile, MeasurementFormat, Stage};
use avow_model::value::Value;
use serde::Serialize;

use crate::evidence::{Evidence, Fate, MemberEvidence, Stands};
use crate::finding::Finding;
use crate::source::{AuditError, Source};
use json::Json;

/// One number with its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The member that wrote it.
    pub member: Member,
    /// What it is called.
    pub name: String,
    /// The number, non-finite ones included.
    pub value: f64,
    /// Whether watching ended there: the true value is this or larger.
    pub censored: bool,
    /// The member's axes.
    pub axes: Arc<BTreeMap<String, Value>>,
    /// The record's own keys; those of equal records are one.
    pub keys: Arc<BTreeMap<String, Value>>,
    /// Where it was read.
    pub origin: Origin,
}

/// Where a number was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Origin {
    /// The attempt that stands for the member.
    pub attempt: AttemptDigest,
    /// The output that holds the file.
    pub output: String,
    /// The file's content.
    pub artifact: BlobDigest,
    /// The line, from 1; 1 in a file that is one object.
    pub line: usize,
}

/// Something in a measurement file that is not a number where one was expected.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    /// The member's label.
    pub member: String,
    /// The position of its stage in the plan.
    #[serde(skip)]
    pub at: Member,
    /// The output that holds the file.
    pub output: String,
    /// The line, from 1.
    pub line: usize,
    /// The measurement concerned; `None` where the whole line or file is.
    pub name: Option<String>,
    /// What is wrong.
    pub reason: Reason,
}

/// What is wrong with a file, a line or a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "code")]
pub enum Reason {
    /// A folder where a file was expected.
    Folder,
    /// Bytes that are not UTF-8.
    NotText,
    /// Text that does not parse.
    Syntax {
        /// What the reader said.
        detail: String,
    },
    /// A value that is no number.
    NotANumber {
        /// What it is: `null`, `boolean`, `text`, `list`, `object`.
        kind: &'static str,
    },
    /// A tidy line, or a table, without this field or column.
    Without {
        /// `name`, `value`, or what was declared.
        field: String,
    },
    /// A pointer that leads to nothing.
    NotThere {
        /// The pointer.
        pointer: String,
    },
    /// A record key that is neither text nor a finite number nor true or false.
    BadKey {
        /// The key.
        key: String,
    },
    /// A record key named like an axis of the stage, with another value than the cell's.
    ContradictsCell {
        /// The key.
        key: String,
        /// What the record says.
        record: String,
        /// What the cell is.
        cell: String,
    },
    /// The same name and keys a second time.
    Duplicate {
        /// The line of the first.
        first: usize,
    },
}

impl Reason {
    /// The code of the reason.
    pub fn word(&self) -> &'static str {
        match self {
            Reason::Folder => "folder",
            Reason::NotText => "not-text",
            Reason::Syntax { .. } => "syntax",
            Reason::NotANumber { .. } => "not-a-number",
            Reason::Without { .. } => "without",
            Reason::NotThere { .. } => "not-there",
            Reason::BadKey { .. } => "bad-key",
            Reason::ContradictsCell { .. } => "contradicts-cell",
            Reason::Duplicate { .. } => "duplicate",
        }
    }
}

/// Everything read from some stages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readings {
    /// Numbers, in the order of members, files and lines.
    pub values: Vec<Measurement>,
    /// What could not be read as a number.
    pub problems: Vec<Problem>,
    /// Files that are damaged or gone.
    pub findings: Vec<Finding>,
    /// Members whose files are damaged or gone, with the file's blob.
    pub damaged: Vec<(Member, BlobDigest)>,
}

impl Readings {
    /// The names that were read, sorted.
    pub fn names(&self) -> BTreeSet<&str> {
        self.values.iter().map(|m| m.name.as_str()).collect()
    }

    /// Adds what was read elsewhere.
    pub fn append(&mut self, other: Readings) {
        self.values.extend(other.values);
        self.problems.extend(other.problems);
        self.findings.extend(other.findings);
        self.damaged.extend(other.damaged);
    }
}

/// Reads all measurement files of one stage.
pub fn read_stage(evidence: &Evidence<'_>, source: Source<'_>, stage: usize) -> Result<Readings, AuditError> {
    let (mut readings, mut shared) = (Readings::default(), Shared::default());
    for member in &evidence.stages[stage] {
        if let Fate::Stands(stands) = &member.fate {
            let mut reader = MemberReader::new(evidence, member, stands, (&mut shared, &mut readings));
            reader.read(source)?;
        }
    }
    Ok(readings)
}

/// Reads the measurement files of one attempt at a member as if it stood.
pub(crate) fn read_attempt(
    evidence: &Evidence<'_>,
    member: &MemberEvidence,
    attempt: &Stands,
    source: Source<'_>,
) -> Result<Readings, AuditError> {
    let (mut readings, mut shared) = (Readings::default(), Shared::default());
    MemberReader::new(evidence, member, attempt, (&mut shared, &mut readings)).read(source)?;
    Ok(readings)
}

/// Reads all measurement files of a plan.
pub fn read_all(evidence: &Evidence<'_>, source: Source<'_>) -> Result<Readings, AuditError> {
    let mut all = Readings::default();
    for stage in 0..evidence.plan.stages.len() {
        all.append(read_stage(evidence, source, stage)?);
    }
    Ok(all)
}

/// Keys of records and names, each once for all members of a stage: a million measurements have few different ones.
#[derive(Default)]
struct Shared {
    keys: HashMap<Vec<(String, String)>, Keys>,
    names: HashMap<String, usize>,
}

/// The keys of a record, and the number of how they are written.
#[derive(Clone)]
struct Keys {
    written: usize,
    all: Arc<BTreeMap<String, Value>>,
}

impl Shared {
    fn keys(&mut self, keys: BTreeMap<String, Value>) -> Keys {
        let id: Vec<(String, String)> =
            keys.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        let written = self.keys.len();
        let known = self.keys.entry(id).or_insert_with(|| Keys { written, all: Arc::new(keys.clone()) });
        // Values that are written alike and are of two kinds stay what they are.
        if *known.all == keys { known.clone() } else { Keys { written: known.written, all: Arc::new(keys) } }
    }

    fn name(&mut self, name: &str) -> usize {
        if let Some(known) = self.names.get(name) {
            return *known;
        }
        let number = self.names.len();
        self.names.insert(name.to_owned(), number);
        number
    }
}

/// A record: the number of its name, and that of its keys as they are written.
type RecordId = (usize, usize);

struct MemberReader<'a> {
    stage: &'a Stage,
    member: Member,
    label: String,
    axes: Arc<BTreeMap<String, Value>>,
    stands: &'a Stands,
    /// Where each record was first read, by name and keys.
    seen: HashMap<RecordId, usize>,
    shared: &'a mut Shared,
    out: &'a mut Readings,
}

/// The file that is being read.
struct File<'a> {
    declared: &'a MeasurementFile,
    artifact: BlobDigest,
}

impl<'a> MemberReader<'a> {
    fn new(
        evidence: &'a Evidence<'_>,
        of: &MemberEvidence,
        stands: &'a Stands,
        (shared, out): (&'a mut Shared, &'a mut Readings),
    ) -> MemberReader<'a> {
        let cell = expand::cell(evidence.plan, of.member);
        let axes = cell.values().map(|(axis, value)| (axis.to_owned(), value)).collect();
        MemberReader {
            stage: &evidence.plan.stages[of.member.stage as usize],
            member: of.member,
            label: evidence.label(of.member),
            axes: Arc::new(axes),
            stands,
            seen: HashMap::new(),
            shared,
            out,
        }
    }

    fn read(&mut self, source: Source<'_>) -> Result<(), AuditError> {
        for declared in &self.stage.measurements {
            match self.stands.outputs.get(&declared.output) {
                Some(Artifact::Blob(blob)) => {
                    let file = File { declared, artifact: *blob };
                    match source.read(*blob, &format!("{}.{}", self.label, declared.output))? {
                        Ok(bytes) => self.file(&file, &bytes),
                        Err(finding) => {
                            self.out.findings.push(finding);
                            self.out.damaged.push((self.member, *blob));
                        }
                    }
                }
                Some(Artifact::Tree(_)) => self.problem(declared, 1, None, Reason::Folder),
                // An optional file that was left out: its numbers are missing, which the join counts.
                None => {}
            }
        }
        Ok(())
    }

    fn file(&mut self, file: &File<'_>, bytes: &[u8]) {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return self.problem(file.declared, 1, None, Reason::NotText);
        };
        match file.declared.format {
            MeasurementFormat::FlatJson => self.flat(file, text),
            MeasurementFormat::TidyJsonLines => {
                for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                    self.tidy(file, index + 1, line);
                }
            }
            MeasurementFormat::NestedJson => self.nested(file, text),
            MeasurementFormat::WideTable | MeasurementFormat::TidyTable => self.table(file, text),
        }
    }

    /// One JSON value; each declared name is where its pointer leads.
    fn nested(&mut self, file: &File<'_>, text: &str) {
        let value = match json::value(text) {
            Ok(value) => value,
            Err(detail) => return self.problem(file.declared, 1, None, Reason::Syntax { detail }),
        };
        for (name, pointer) in &file.declared.pointers {
            match value.at(pointer) {
                Some(found) => {
                    let none = self.shared.keys(BTreeMap::new());
                    self.number(file, 1, name, found, none);
                }
                None => {
                    let pointer = pointer.clone();
                    self.problem(file.declared, 1, Some(name), Reason::NotThere { pointer });
                }
            }
        }
    }

    /// A table: a column per measurement, or the columns `name` and `value`.
    fn table(&mut self, file: &File<'_>, text: &str) {
        let output = self.stage.outputs.get(&file.declared.output);
        let tabs = output.is_some_and(|output| output.path.to_ascii_lowercase().ends_with(".tsv"));
        let rows = match columns::rows(text, tabs, file.declared) {
            Ok(rows) => rows,
            Err(reason) => return self.problem(file.declared, 1, None, reason),
        };
        for row in rows {
            let (line, cells) = match row {
                Ok(row) => row,
                Err((line, reason)) => {
                    self.problem(file.declared, line, None, reason);
                    continue;
                }
            };
            let censored = match cells.censored {
                None => None,
                Some(Json::Bool(censored)) => Some(censored),
                Some(Json::Int(0)) => Some(false),
                Some(Json::Int(1)) => Some(true),
                Some(_) => {
                    let reason = Reason::BadKey { key: CENSORED.to_owned() };
                    self.problem(file.declared, line, None, reason);
                    continue;
                }
            };
            match self.keys(cells.keys.into_iter()) {
                Ok(keys) => {
                    for (name, value) in &cells.values {
                        self.censorable(file, line, name, (value, censored), keys.clone());
                    }
                }
                Err(reason) => self.problem(file.declared, line, None, reason),
            }
        }
    }

    /// One object, names to numbers; fields declared as keys belong to every number of the object.
    fn flat(&mut self, file: &File<'_>, text: &str) {
        let pairs = match json::object(text) {
            Ok(pairs) => pairs,
            Err(detail) => return self.problem(file.declared, 1, None, Reason::Syntax { detail }),
        };
        let (keys, values): (Vec<_>, Vec<_>) =
            pairs.into_iter().partition(|(name, _)| file.declared.keys.contains(name));
        let keys = match self.keys(keys.into_iter()) {
            Ok(keys) => keys,
            Err(reason) => return self.problem(file.declared, 1, None, reason),
        };
        for (name, value) in values.iter().filter(|(name, _)| wanted(file.declared, name)) {
            self.number(file, 1, name, value, keys.clone());
        }
    }

    /// `{"name": …, "value": …}` and further fields, which are keys where none are declared.
    fn tidy(&mut self, file: &File<'_>, line: usize, text: &str) {
        let pairs = match json::object(text) {
            Ok(pairs) => pairs,
            Err(detail) => return self.problem(file.declared, line, None, Reason::Syntax { detail }),
        };
        let field = |wanted: &str| pairs.iter().find(|(key, _)| key == wanted).map(|(_, value)| value);
        let Some(Json::Text(name)) = field("name") else {
            return self.problem(file.declared, line, None, Reason::Without { field: "name".to_owned() });
        };
        if !wanted(file.declared, name) {
            return;
        }
        let Some(value) = field("value") else {
            return self.problem(
                file.declared,
                line,
                Some(name),
                Reason::Without { field: "value".to_owned() },
            );
        };
        let is_key = |key: &String| match file.declared.keys.as_slice() {
            [] => key != "name" && key != "value" && key != CENSORED,
            declared => declared.contains(key),
        };
        let censored = match field(CENSORED).filter(|_| !file.declared.keys.iter().any(|key| key == CENSORED))
        {
            None => None,
            Some(Json::Bool(censored)) => Some(*censored),
            Some(_) => {
                let reason = Reason::BadKey { key: CENSORED.to_owned() };
                return self.problem(file.declared, line, Some(name), reason);
            }
        };
        match self.keys(pairs.iter().filter(|(key, _)| is_key(key)).cloned()) {
            Ok(keys) => self.censorable(file, line, name, (value, censored), keys),
            Err(reason) => self.problem(file.declared, line, Some(name), reason),
        }
    }

    /// Record keys; one named like an axis of the cell must agree with it, and then says nothing new.
    fn keys(&mut self, pairs: impl Iterator<Item = (String, Json)>) -> Result<Keys, Reason> {
        let mut keys = BTreeMap::new();
        for (key, value) in pairs {
            let Some(value) = value.key() else { return Err(Reason::BadKey { key }) };
            match self.axes.get(&key) {
                Some(cell) if same(cell, &value) => {}
                Some(cell) => {
                    let (record, cell) = (value.to_string(), cell.to_string());
                    return Err(Reason::ContradictsCell { key, record, cell });
                }
                None => {
                    if keys.insert(key.clone(), value).is_some() {
                        return Err(Reason::BadKey { key });
                    }
                }
            }
        }
        Ok(self.shared.keys(keys))
    }

    fn number(&mut self, file: &File<'_>, line: usize, name: &str, value: &Json, keys: Keys) {
        self.censorable(file, line, name, (value, None), keys);
    }

    /// A number, of which it may stand beside it, or in it (`{"value": 5000, "censored": true}`), that watching ended there.
    fn censorable(
        &mut self,
        file: &File<'_>,
        line: usize,
        name: &str,
        (value, said): (&Json, Option<bool>),
        keys: Keys,
    ) {
        let (value, censored) = match (value, said) {
            (Json::Object(pairs), None) => match cut_off(pairs) {
                Some((value, censored)) => (value, censored),
                None => (value, false),
            },
            (value, said) => (value, said.unwrap_or(false)),
        };
        let Some(number) = value.number() else {
            return self.problem(file.declared, line, Some(name), Reason::NotANumber { kind: value.kind() });
        };
        let id = (self.shared.name(name), keys.written);
        if let Some(first) = self.seen.get(&id).copied() {
            return self.problem(file.declared, line, Some(name), Reason::Duplicate { first });
        }
        self.seen.insert(id, line);
        let origin = Origin {
            attempt: self.stands.attempt,
            output: file.declared.output.clone(),
            artifact: file.artifact,
            line,
        };
        self.out.values.push(Measurement {
            member: self.member,
            name: name.to_owned(),
            value: number,
            censored,
            axes: Arc::clone(&self.axes),
            keys: keys.all,
            origin,
        });
    }

    fn problem(&mut self, declared: &MeasurementFile, line: usize, name: Option<&str>, reason: Reason) {
        self.out.problems.push(Problem {
            member: self.label.clone(),
            at: self.member,
            output: declared.output.clone(),
            line,
            name: name.map(str::to_owned),
            reason,
        });
    }
}

/// The field that says that watching ended at a value.
pub(crate) const CENSORED: &str = "censored";

/// A value with the word that it was cut off, where an object is exactly that.
fn cut_off(pairs: &[(String, Json)]) -> Option<(&Json, bool)> {
    match pairs {
        [(a, value), (b, Json::Bool(censored))] if a == "value" && b == CENSORED => Some((value, *censored)),
        [(b, Json::Bool(censored)), (a, value)] if a == "value" && b == CENSORED => Some((value, *censored)),
        _ => None,
    }
}

fn wanted(declared: &MeasurementFile, name: &str) -> bool {
    declared.values.is_empty() || declared.values.iter().any(|value| value == name)
}

/// Whether two values are the same: equal, or equal as numbers.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    a == b || (a.as_f64().is_some() && a.as_f64() == b.as_f64())
}
