//! The pure binding of a member and its inputs to an [`Action`].

use std::collections::BTreeMap;

use serde::Serialize;

use crate::action::{Action, Command, Slot};
use crate::canonical::Record;
use crate::digest::{Artifact, BlobDigest};
use crate::expand::{self, Cell, Member};
use crate::op::Kind;
use crate::plan::{Input, Plan, Program, Source, Stage};
use crate::template::{Piece, Template, TemplateError, fill_value};
use crate::tree::{Entry, PathError, Tree};
use crate::value::Value;

/// An action and the records that binding made on the way (gathered folders and their indices, what a search probed), which must
/// be stored as blobs before the action can run.
#[derive(Debug)]
pub struct Bound {
    /// The action.
    pub action: Action,
    /// Blobs to store.
    pub blobs: Vec<Vec<u8>>,
}

/// Why a member cannot be bound. The checker excludes all of these beforehand for plans it lowered itself.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// A reference that means nothing here.
    #[error("`${{{0}}}` has no value here")]
    Unknown(String),
    /// A template that does not parse.
    #[error("a template does not parse")]
    Template(#[from] TemplateError),
    /// An input whose producer has not made it.
    #[error("the input `{0}` has not been made")]
    NotMade(String),
    /// Two inputs at one place; silently keeping one of them would make a false record.
    #[error("two inputs are mounted at `{0}`")]
    Mount(String),
    /// A gathered folder whose names do not form a tree.
    #[error("the input `{input}` cannot be gathered")]
    Gather {
        /// The input.
        input: String,
        /// Why.
        source: PathError,
    },
}

/// Binds a member. `made` gives the artifact that a member wrote under an output's name; `None` where an
/// optional output was left out.
pub fn bind(
    plan: &Plan,
    member: Member,
    made: &dyn Fn(Member, &str) -> Option<Artifact>,
) -> Result<Bound, BindError> {
    let stage = &plan.stages[member.stage as usize];
    let cell = expand::cell(plan, member);
    let mut blobs = Vec::new();
    let mut inputs = BTreeMap::new();
    for (name, input) in &stage.inputs {
        if let Some(artifact) = resolve(&cell, name, input, made, &mut blobs)?
            && inputs.insert(input.mount.clone(), artifact).is_some()
        {
            return Err(BindError::Mount(input.mount.clone()));
        }
    }
    let names = Names { stage, cell: &cell, inputs: &inputs };
    let (command, env) = (names.command()?, names.env()?);
    let action = Action {
        command,
        env,
        inputs,
        code: stage.code,
        environment: stage.environment.as_ref().map(|e| e.lock),
        lock_as_written: stage.environment.as_ref().and_then(|e| e.as_written),
        toolchain: stage.toolchain.clone(),
        loads: stage.loads,
        outputs: slots(stage),
        hardware: stage.hardware.clone(),
        repetition: if stage.repeats { cell.index("repeat") } else { None },
        network: stage.kind == Some(Kind::Capture),
        image: stage.image.as_ref().map(|image| image.identity.clone()),
    };
    Ok(Bound { action, blobs })
}

fn slots(stage: &Stage) -> BTreeMap<String, Slot> {
    let slot = |o: &crate::plan::Output| Slot {
        path: o.path.clone(),
        folder: o.folder,
        optional: o.optional,
        keep: o.keep,
    };
    stage.outputs.iter().map(|(name, output)| (name.clone(), slot(output))).collect()
}

fn resolve(
    cell: &Cell<'_>,
    name: &str,
    input: &Input,
    made: &dyn Fn(Member, &str) -> Option<Artifact>,
    blobs: &mut Vec<Vec<u8>>,
) -> Result<Option<Artifact>, BindError> {
    match &input.from {
        Source::Path { artifact, .. } => Ok(Some(*artifact)),
        Source::Url { digest, .. } => Ok(Some(Artifact::Blob(*digest))),
        Source::Probes { search } => {
            let text = probes(cell, search).ok_or_else(|| BindError::NotMade(name.to_owned()))?;
            let digest = BlobDigest::of(text.as_bytes());
            blobs.push(text.as_bytes().to_vec());
            Ok(Some(Artifact::Blob(digest)))
        }
        Source::Output { stage, output, gather, .. } => {
            let plan = cell.plan();
            let members = expand::producers(cell, &input.from).unwrap_or_default();
            if !gather.is_empty() {
                return gathered(plan, name, &members, (output, gather), made, blobs).map(Some);
            }
            let [member] = members.as_slice() else { return Err(BindError::NotMade(name.to_owned())) };
            let optional = plan.stage(stage).and_then(|s| s.outputs.get(output)).is_some_and(|o| o.optional);
            match made(*member, output) {
                Some(artifact) => Ok(Some(artifact)),
                None if optional => Ok(None),
                None => Err(BindError::NotMade(name.to_owned())),
            }
        }
    }
}

/// What a program is given in the round of a cell.
fn probes<'a>(cell: &Cell<'a>, search: &str) -> Option<&'a str> {
    let search = cell.plan().axis(search)?.search()?;
    let round = cell.index(&search.asks()?.rounds)?;
    search.consulted.get(usize::try_from(round).ok()?).map(String::as_str)
}

#[derive(Serialize)]
struct IndexLine {
    path: String,
    axes: BTreeMap<String, Value>,
}

/// A folder with one entry per member, named by position (never by an axis value), and an `index.json` that
/// says which is which.
fn gathered(
    plan: &Plan,
    input: &str,
    members: &[Member],
    (output, gather): (&str, &[String]),
    made: &dyn Fn(Member, &str) -> Option<Artifact>,
    blobs: &mut Vec<Vec<u8>>,
) -> Result<Artifact, BindError> {
    let failed = |source| BindError::Gather { input: input.to_owned(), source };
    let mut tree = Tree::default();
    let mut index = Vec::with_capacity(members.len());
    for (position, member) in members.iter().enumerate() {
        let declared = plan.stages[member.stage as usize].outputs.get(output);
        let suffix = declared.and_then(|o| suffix(&o.path)).unwrap_or_default();
        let path = format!("{position:04}{suffix}");
        let entry = match made(*member, output) {
            Some(Artifact::Blob(digest)) => Entry::File { digest, executable: false },
            Some(Artifact::Tree(digest)) => Entry::Tree { digest },
            None if declared.is_some_and(|o| o.optional) => continue,
            None => return Err(BindError::NotMade(input.to_owned())),
        };
        tree.insert(&path, entry).map_err(failed)?;
        let point = expand::cell(plan, *member);
        let axes = point.values().filter(|(axis, _)| gather.iter().any(|g| g == axis));
        index.push(IndexLine { path, axes: axes.map(|(a, v)| (a.to_owned(), v)).collect() });
    }
    let text = serde_json::to_vec_pretty(&index).expect("an index holds only JSON values");
    let entry = Entry::File { digest: BlobDigest::of(&text), executable: false };
    tree.insert("index.json", entry).map_err(failed)?;
    blobs.push(text);
    let digest = tree.digest();
    blobs.push(tree.to_bytes());
    Ok(Artifact::Tree(digest))
}

/// `.safetensors` of `a/model.safetensors`; nothing for a folder or a dotless name.
pub fn suffix(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    name.find('.').filter(|at| *at > 0).map(|at| &name[at..])
}

struct Names<'a> {
    stage: &'a Stage,
    cell: &'a Cell<'a>,
    inputs: &'a BTreeMap<String, Artifact>,
}

impl Names<'_> {
    fn lookup(&self, path: &[String]) -> Result<Value, BindError> {
        let found = match path {
            [root, name] if root == "inputs" => {
                self.stage.inputs.get(name).map(|input| Value::Text(input.mount.clone()))
            }
            [root, name] if root == "outputs" => {
                self.stage.outputs.get(name).map(|output| Value::Text(output.path.clone()))
            }
            _ => self.cell.lookup(path),
        };
        found.ok_or_else(|| BindError::Unknown(path.join(".")))
    }

    fn text(&self, template: &Template) -> Result<String, BindError> {
        template.fill(|path| self.lookup(path).map(|value| value.to_string()))
    }

    fn command(&self) -> Result<Command, BindError> {
        Ok(match &self.stage.program {
            Program::Shell(template) => Command::Shell(shell_text(template, |path| self.lookup(path))?),
            Program::Arguments(arguments) => {
                Command::Arguments(arguments.iter().map(|a| self.text(a)).collect::<Result<_, _>>()?)
            }
            Program::Op { name, identity, with } => {
                let mut filled = BTreeMap::new();
                for (key, value) in with {
                    filled.insert(key.clone(), fill_value(value, &mut |path| self.lookup(path))?);
                }
                // An optional input that was not made is not named, so that an op need not look for it.
                let inputs =
                    self.stage.inputs.iter().filter(|(_, input)| self.inputs.contains_key(&input.mount));
                Command::Op {
                    name: name.clone(),
                    identity: identity.clone(),
                    with: filled,
                    inputs: inputs.map(|(name, input)| (name.clone(), input.mount.clone())).collect(),
                }
            }
        })
    }

    fn env(&self) -> Result<BTreeMap<String, String>, BindError> {
        self.stage.env.iter().map(|(name, template)| Ok((name.clone(), self.text(template)?))).collect()
    }
}

/// A word that a POSIX shell reads back as exactly this text.
pub fn shell_quote(text: &str) -> String {
    // `=` is left out: at the head of a command an unquoted `a=b` is an assignment.
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) && !RESERVED.contains(&text) {
        text.to_owned()
    } else {
        quoted(text)
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Words that steer a shell unless they are quoted.
const RESERVED: [&str; 14] = [
    "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "then", "until",
    "while",
];

/// The text for `sh`, with every value quoted so that the shell reads one word, or one part of a word.
fn shell_text(
    template: &Template,
    lookup: impl Fn(&[String]) -> Result<Value, BindError>,
) -> Result<String, BindError> {
    let mut text = String::new();
    for (position, piece) in template.pieces.iter().enumerate() {
        match piece {
            Piece::Text(literal) => text.push_str(literal),
            Piece::Reference(path) => {
                let value = lookup(path)?.to_string();
                let next = template.pieces.get(position + 1);
                let redirects = matches!(next, Some(Piece::Text(t)) if t.starts_with(['<', '>']));
                // Before `>` a bare number would name a file descriptor: `echo 2>log` prints nothing.
                text.push_str(&if redirects { quoted(&value) } else { shell_quote(&value) });
            }
        }
    }
    Ok(text)
}
