//! Bundles for blind review: `avow bundle --anonymous`, and what opens one afterwards.

use std::collections::BTreeSet;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use avow_exchange::bundle::{
    Anonymous, Bundle, Contents, Limits, Opening, Texts, Withheld, anonymise, manifest_of, unpack, write,
};
use avow_model::canonical::Record;
use avow_model::journal::Event;
use avow_model::plan::Plan;
use avow_store::blob::read_record;
use serde_json::json;

use crate::args;
use crate::context::{Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::git;
use crate::output::{Failure, Output};
use crate::words;

/// Logins that name nobody, and words that stand in every program.
const NOBODY: [&str; 8] = ["root", "user", "users", "home", "nobody", "localhost", "admin", "ubuntu"];

/// What an anonymous bundle is made from.
pub(super) struct Blind<'a> {
    pub(super) path: &'a Path,
    pub(super) plan: &'a Plan,
    pub(super) spec: &'a Spec,
    pub(super) reading: &'a Reading,
    pub(super) contents: Contents,
}

impl Blind<'_> {
    /// Writes the anonymous bundle, the one with names, and the opening.
    pub(super) fn write(self, args: &args::Bundle, output: &Output) -> Result<(), Failure> {
        let Blind { path, plan, spec, reading, mut contents } = self;
        let (named_path, opening_path) = (sibling(path, "named.zip"), sibling(path, "opening.json"));
        let digest = plan.digest();
        let texts = Texts::new(texts(spec, &contents).into_iter().chain(args.without.iter().cloned()));
        let nonce = avow_store::nonce().map_err(failure::store)?;
        let named = manifest_of(&reading.blobs, &contents, &plan.experiment, digest, None);
        let name = named.and_then(|manifest| manifest.name()).map_err(failure::bundle)?;
        let opening = Opening::new(name, nonce.clone(), &texts);
        let kept = contents.clone();
        let withheld =
            anonymise(&mut contents, &reading.blobs, plan, &nonce, &texts).map_err(failure::bundle)?;
        let commitment = opening.commitment().map_err(failure::bundle)?;
        let anonymous = Anonymous { commitment, withheld };
        private(&opening_path, &opening.to_bytes().map_err(failure::bundle)?)?;
        write(&named_path, &reading.blobs, &kept, &plan.experiment, digest, None).map_err(failure::bundle)?;
        let counted = counted(&anonymous.withheld);
        let written = write(path, &reading.blobs, &contents, &plan.experiment, digest, Some(anonymous))
            .map_err(failure::bundle)?;
        if args.json {
            return output.json(&json!({
                "bundle": path, "name": written.name, "bytes": written.bytes, "named": named_path,
                "opening": opening_path, "withheld": written.manifest.anonymous.map(|a| a.withheld),
                "entries": written.manifest.entries.len(), "absent": written.manifest.absent.len(),
            }));
        }
        output.data(format!(
            "wrote `{}` ({}), without names",
            path.display(),
            words::bytes(written.bytes)
        ))?;
        output.data(format!("  name     {}", written.name))?;
        output.data(format!("  withheld {counted}"))?;
        output.data(format!(
            "keep `{}` and `{}`: together they prove later whose it was, and without both nothing does",
            named_path.display(),
            opening_path.display()
        ))?;
        output
            .say("what people wrote about themselves in other words is still in it: look before you send it");
        Ok(())
    }
}

fn counted(withheld: &[Withheld]) -> String {
    let kinds: BTreeSet<&str> = withheld.iter().map(|piece| piece.kind.as_str()).collect();
    let parts: Vec<String> = kinds
        .into_iter()
        .map(|kind| format!("{} of kind {kind}", withheld.iter().filter(|piece| piece.kind == kind).count()))
        .collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

/// A file beside another: `review.zip` gives `review.opening.json`.
fn sibling(path: &Path, ending: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!("{stem}.{ending}"))
}

/// A file that only its owner may read.
fn private(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    use std::io::Write;
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(bytes)).map_err(|error| {
        Failure::new(Exit::Machine, format!("cannot write `{}`", path.display()))
            .because(error)
            .hint("an opening is never written over: name another bundle with `-o`")
    })
}

/// Everything that this machine and the records call the author by.
fn texts(spec: &Spec, contents: &Contents) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    let root = spec.project.root();
    texts.insert(root.display().to_string());
    for variable in ["HOME", "USER", "LOGNAME", "EMAIL", "HOSTNAME"] {
        texts.extend(std::env::var(variable).ok());
    }
    if let Some(home) = std::env::var_os("HOME").map(PathBuf::from) {
        texts.extend(home.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    for key in ["user.name", "user.email", "github.user", "user.signingkey"] {
        texts.extend(git::ask(root, &["config", key]));
    }
    let authors = git::ask(root, &["log", "-n", "1000", "--format=%an%n%ae%n%cn%n%ce"]).unwrap_or_default();
    texts.extend(authors.lines().map(str::to_owned));
    let remotes = git::ask(root, &["remote", "-v"]).unwrap_or_default();
    texts.extend(remotes.split_whitespace().filter(|word| word.contains(['/', ':'])).map(str::to_owned));
    for bytes in contents.journals.values() {
        for line in avow_model::journal::read(bytes).lines {
            if let Event::Finished { attempt, .. } = line.event {
                texts.insert(attempt.host.name);
            }
        }
    }
    texts.retain(|text| !NOBODY.contains(&text.trim()) && text.trim() != "/");
    texts
}

/// Proves that an anonymous bundle was made from a named one, and gives that one's name.
pub(in crate::commands) fn opened(
    bundle: &Bundle,
    opening: &Path,
    named: &Path,
    limits: Limits,
) -> Result<String, Failure> {
    let not = |why: &str| {
        Failure::new(Exit::Damaged, format!("`{}` does not open this bundle: {why}", opening.display()))
            .hint("the opening and the bundle with names are those that were written beside it")
    };
    let Some(anonymous) = &bundle.manifest().anonymous else {
        return Err(Failure::new(Exit::Usage, "this bundle is not anonymous, so there is nothing to open"));
    };
    let bytes = std::fs::read(opening).map_err(|error| {
        Failure::new(Exit::Machine, format!("cannot read `{}`", opening.display())).because(error)
    })?;
    let opening = Opening::from_bytes(&bytes).map_err(failure::bundle)?;
    if opening.commitment().map_err(failure::bundle)? != anonymous.commitment {
        return Err(not("its SHA-256 is not the commitment in the manifest"));
    }
    let named = Bundle::open(named, limits).map_err(failure::opened)?;
    let name = named.manifest().name().map_err(failure::bundle)?;
    if name != opening.bundle {
        return Err(not("the bundle with names is not the one that it names"));
    }
    let folder = tempfile::Builder::new().prefix("avow-verify-").tempdir().map_err(|error| {
        Failure::new(Exit::Machine, "no folder could be made to unpack in").because(error)
    })?;
    let unpacked = unpack(&named, folder.path()).map_err(failure::bundle)?;
    let mut contents = Contents::of_bundle(&named).map_err(failure::bundle)?;
    let plan: Plan = read_record(&unpacked.blobs, named.manifest().plan).map_err(failure::store)?;
    let texts = Texts::new(opening.texts.iter().cloned());
    let withheld =
        anonymise(&mut contents, &unpacked.blobs, &plan, &opening.nonce, &texts).map_err(failure::bundle)?;
    let again = Anonymous { commitment: anonymous.commitment.clone(), withheld };
    let (experiment, digest) = (&named.manifest().experiment, named.manifest().plan);
    let again = manifest_of(&unpacked.blobs, &contents, experiment, digest, Some(again));
    if again.map_err(failure::bundle)? != *bundle.manifest() {
        return Err(not("another bundle comes of the one with names"));
    }
    Ok(name)
}
