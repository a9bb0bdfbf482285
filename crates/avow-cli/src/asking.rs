//! A world that notes what a spec asked of it, so that the answers can be compared later.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use avow_model::digest::{Artifact, BlobDigest, TreeDigest};
use avow_spec::{Answered, Asked as Loading, Found, World};
use serde::{Deserialize, Serialize};

use crate::world::ProjectWorld;

/// Every question about the world outside a spec, with its answer.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Asked {
    looks: BTreeMap<String, Seen>,
    /// Texts by their digests.
    texts: BTreeMap<String, Option<BlobDigest>>,
    programs: BTreeMap<String, Option<BlobDigest>>,
    artifacts: BTreeMap<String, Result<Artifact, String>>,
    /// What stays where it is.
    references: BTreeMap<String, Result<Artifact, String>>,
    code: BTreeMap<Vec<String>, Result<TreeDigest, String>>,
    /// Folders by the digests of their names.
    names: BTreeMap<String, BlobDigest>,
    loads: BTreeMap<Loading, Answered>,
    libraries: BTreeMap<String, Vec<String>>,
    installed: BTreeMap<String, Option<BTreeMap<String, String>>>,
    images: BTreeMap<String, Result<String, String>>,
    /// Texts that the spec had kept, for a world that keeps them.
    kept: BTreeSet<String>,
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Seen {
    Nothing,
    File,
    Program,
    Folder,
}

impl From<Option<Found>> for Seen {
    fn from(found: Option<Found>) -> Seen {
        match found {
            None => Seen::Nothing,
            Some(Found { folder: true, .. }) => Seen::Folder,
            Some(Found { executable: true, .. }) => Seen::Program,
            Some(_) => Seen::File,
        }
    }
}

impl Seen {
    fn found(self) -> Option<Found> {
        let found = |folder, executable| Some(Found { folder, executable });
        match self {
            Seen::Nothing => None,
            Seen::File => found(false, false),
            Seen::Program => found(false, true),
            Seen::Folder => found(true, false),
        }
    }
}

fn digest_of_names(names: &[String]) -> BlobDigest {
    BlobDigest::of(names.join("\0").as_bytes())
}

impl Asked {
    /// How many questions there are.
    pub fn len(&self) -> usize {
        self.looks.len()
            + self.texts.len()
            + self.programs.len()
            + self.artifacts.len()
            + self.references.len()
            + self.code.len()
            + self.names.len()
            + self.loads.len()
            + self.libraries.len()
            + self.installed.len()
            + self.images.len()
    }

    /// What the world answers now where that is another content of an input, and nothing else is: artifacts by path.
    /// `None` where any other answer is another. Content that is asked for is stored where the world stores, as it
    /// is when a spec asks.
    pub fn changed(&self, world: &ProjectWorld<'_>) -> Option<Vec<(String, Artifact)>> {
        let holds = self.looks.iter().all(|(path, seen)| Seen::from(world.look(path)) == *seen)
            && self.names.iter().all(|(folder, names)| digest_of_names(&world.names(folder)) == *names)
            && self.texts.iter().all(|(path, digest)| world.text_digest(path) == *digest)
            && self.programs.iter().all(|(word, digest)| world.program(word) == *digest)
            && self.references.iter().all(|(path, artifact)| world.reference(path) == *artifact)
            && self.code.iter().all(|(paths, tree)| world.code(paths) == *tree)
            && self.libraries.iter().all(|(program, files)| world.libraries(program) == *files)
            && self.installed.iter().all(|(word, packages)| world.installed(word) == *packages)
            && self.loads.iter().all(|(asked, loads)| world.loads(asked) == *loads)
            && self.images.iter().all(|(path, image)| world.image(path) == *image)
            && self.kept.iter().all(|text| world.keep(text) == BlobDigest::of(text.as_bytes()));
        if !holds {
            return None;
        }
        let mut changed = Vec::new();
        for (path, before) in &self.artifacts {
            let now = world.artifact(path);
            match (before, now) {
                (before, now) if *before == now => {}
                // A lock file is read as text as well, and what it says decides more than its digest.
                _ if self.texts.contains_key(path) => return None,
                (Ok(Artifact::Blob(_)), Ok(now @ Artifact::Blob(_)))
                | (Ok(Artifact::Tree(_)), Ok(now @ Artifact::Tree(_))) => changed.push((path.clone(), now)),
                _ => return None,
            }
        }
        Some(changed)
    }

    /// The same questions with these answers.
    pub fn with(mut self, changed: Vec<(String, Artifact)>) -> Asked {
        self.artifacts.extend(changed.into_iter().map(|(path, artifact)| (path, Ok(artifact))));
        self
    }
}

/// A project's world that remembers what it was asked, and asks nothing twice.
pub struct Asking<'w, 'a> {
    world: &'w ProjectWorld<'a>,
    asked: RefCell<Asked>,
}

impl<'w, 'a> Asking<'w, 'a> {
    /// Nothing has been asked yet.
    pub fn new(world: &'w ProjectWorld<'a>) -> Asking<'w, 'a> {
        Asking { world, asked: RefCell::default() }
    }

    /// Everything that was asked.
    pub fn finish(self) -> Asked {
        self.asked.into_inner()
    }
}

/// The known answer, or the world's, which is then known.
fn answer<K: Ord + ToOwned<Owned = O> + ?Sized, O: Ord + std::borrow::Borrow<K>, V: Clone>(
    known: &mut BTreeMap<O, V>,
    question: &K,
    ask: impl FnOnce() -> V,
) -> V {
    if let Some(answer) = known.get(question) {
        return answer.clone();
    }
    let answer = ask();
    known.insert(question.to_owned(), answer.clone());
    answer
}

impl World for Asking<'_, '_> {
    fn look(&self, path: &str) -> Option<Found> {
        answer(&mut self.asked.borrow_mut().looks, path, || Seen::from(self.world.look(path))).found()
    }

    fn text(&self, path: &str) -> Option<String> {
        answer(&mut self.asked.borrow_mut().texts, path, || self.world.text_digest(path));
        self.world.text(path)
    }

    fn program(&self, word: &str) -> Option<BlobDigest> {
        answer(&mut self.asked.borrow_mut().programs, word, || self.world.program(word))
    }

    fn artifact(&self, path: &str) -> Result<Artifact, String> {
        answer(&mut self.asked.borrow_mut().artifacts, path, || self.world.artifact(path))
    }

    fn image(&self, path: &str) -> Result<String, String> {
        answer(&mut self.asked.borrow_mut().images, path, || self.world.image(path))
    }

    fn keep(&self, text: &str) -> BlobDigest {
        self.asked.borrow_mut().kept.insert(text.to_owned());
        self.world.keep(text)
    }

    fn reference(&self, path: &str) -> Result<Artifact, String> {
        answer(&mut self.asked.borrow_mut().references, path, || self.world.reference(path))
    }

    fn code(&self, paths: &[String]) -> Result<TreeDigest, String> {
        answer(&mut self.asked.borrow_mut().code, paths, || self.world.code(paths))
    }

    fn loads(&self, asked: &Loading) -> Answered {
        answer(&mut self.asked.borrow_mut().loads, asked, || self.world.loads(asked))
    }

    fn libraries(&self, program: &str) -> Vec<String> {
        answer(&mut self.asked.borrow_mut().libraries, program, || self.world.libraries(program))
    }

    fn installed(&self, interpreter: &str) -> Option<BTreeMap<String, String>> {
        answer(&mut self.asked.borrow_mut().installed, interpreter, || self.world.installed(interpreter))
    }

    fn beside(&self) -> String {
        // Part of what a compiled spec is found by.
        self.world.beside()
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let names = self.world.names(folder);
        answer(&mut self.asked.borrow_mut().names, folder, || digest_of_names(&names));
        names
    }
}
