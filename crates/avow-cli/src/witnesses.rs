//! Getting proofs about a ledger's head from outside: signatures by the user's own `ssh-keygen`, which asks the agent
//! first and then the key's file, time stamps from authorities, and signed tags of git. Avow reads no private key.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use avow_audit::heads::Cited;
use avow_audit::witness::{Checked, ProofFiles, StampFiles, Trust, check};
use avow_model::digest::RegistrationDigest;
use avow_model::ledger::Ledger;
use avow_proof::{Revoked, Signers, namespace, pem, sha256, stamp};
use avow_store::proofs::About;
use avow_store::{LedgerFile, Project, Proofs, nonce};

use crate::args::Witnesses;
use crate::exit::Exit;
use crate::failure;
use crate::git;
use crate::output::{Failure, Output};
use crate::settings::Settings;

/// What is wanted of witnesses: the options, and what `avow.toml` says where they say nothing.
pub struct Wanted {
    key: Option<PathBuf>,
    sign: bool,
    authorities: Vec<String>,
    tag: bool,
}

impl Wanted {
    /// From options and settings.
    pub fn of(args: &Witnesses, settings: &Settings) -> Wanted {
        let ours = &settings.witness;
        let key = args.key.clone().or_else(|| ours.key.as_deref().map(at_home));
        Wanted {
            sign: args.sign || args.key.is_some() || ours.sign,
            key,
            authorities: if args.tsa.is_empty() { ours.tsa.clone() } else { args.tsa.clone() },
            tag: args.git_tag || ours.git_tag,
        }
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        !self.sign && self.authorities.is_empty() && !self.tag
    }
}

/// Has a head signed, stamped and tagged as is wanted; a word about each on the way.
pub fn obtain(
    project: &Project,
    experiment: &str,
    ledger: &Ledger,
    head: RegistrationDigest,
    wanted: &Wanted,
    talk: bool,
    output: &Output,
) -> Result<(), Failure> {
    let told = |line: String| if talk { output.data(line) } else { Ok(()) };
    if wanted.is_empty() {
        return Ok(());
    }
    let Some(statement) = ledger.head_statement(head) else {
        return Err(Failure::new(Exit::Damaged, format!("the ledger has no line {}", head.short())));
    };
    let proofs = Proofs::of(project, experiment).map_err(failure::store)?;
    let path = proofs.state(head, &statement).map_err(failure::store)?;
    let mut signature = Vec::new();
    if wanted.sign {
        let key = match &wanted.key {
            Some(key) => key.clone(),
            None => usual_key(project.root())?,
        };
        signature = sign(&key, &path, namespace::HEAD)?;
        proofs.add(head, &[("sig", &signature)]).map_err(failure::store)?;
        told(format!("  signed with {}", key.display()))?;
    } else if let Some((_, file)) = known_signature(&proofs, head)? {
        // A stamp over the signature as well fixes its date, so that the key may end later.
        signature = file;
    }
    for url in &wanted.authorities {
        let (request, answer) = stamped(url, statement.as_bytes(), &signature)?;
        proofs.add(head, &[("tsq", &request), ("tsr", &answer)]).map_err(failure::store)?;
        told(format!("  stamped by {url}"))?;
    }
    if wanted.tag {
        // Under embargo a tag must not tell the experiment either.
        let file = LedgerFile::of(project, experiment).map_err(failure::store)?;
        let name = tag(project.root(), file.name(), ledger, head)?;
        told(format!("  tagged {name}"))?;
    }
    Ok(())
}

fn known_signature(proofs: &Proofs, head: RegistrationDigest) -> Result<Option<(String, Vec<u8>)>, Failure> {
    let all = proofs.all().map_err(failure::store)?;
    let about = all.into_iter().find(|about| about.entry == head.to_string());
    Ok(about.and_then(|about| about.files.into_iter().find(|(name, _)| name.ends_with(".sig"))))
}

/// Signs a file for a purpose, with the key that is given, that `avow.toml` names, or the usual one; returns the
/// signature and the key.
pub fn sign_file(
    key: Option<&Path>,
    settings: &Settings,
    root: &Path,
    file: &Path,
    purpose: &str,
) -> Result<(Vec<u8>, PathBuf), Failure> {
    let key = match key.map(Path::to_owned).or_else(|| settings.witness.key.as_deref().map(at_home)) {
        Some(key) => key,
        None => usual_key(root)?,
    };
    Ok((sign(&key, file, purpose)?, key))
}

/// The key that git signs with, else the only one that the agent holds, else the usual file.
pub fn usual_key(root: &Path) -> Result<PathBuf, Failure> {
    if git::ask(root, &["config", "gpg.format"]).as_deref() == Some("ssh")
        && let Some(key) =
            git::ask(root, &["config", "user.signingkey"]).filter(|key| !key.starts_with("key::"))
    {
        return Ok(at_home(Path::new(&key)));
    }
    let usual = ["id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk"];
    let files = usual.iter().map(|name| at_home(Path::new(&format!("~/.ssh/{name}.pub"))));
    let found: Vec<PathBuf> = files.filter(|path| path.exists()).collect();
    found.into_iter().next().ok_or_else(|| {
        Failure::new(Exit::Usage, "there is no key to sign with").hint(
            "name one with `--key FILE` (its public half will do where the agent holds it), or make one with `ssh-keygen -t ed25519`",
        )
    })
}

/// A path that may begin with `~/`.
pub fn at_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(inside), Some(home)) => Path::new(&home).join(inside),
        _ => path.to_owned(),
    }
}

/// Signs a file. A passphrase is asked for by `ssh-keygen` on the terminal, never by us.
fn sign(key: &Path, file: &Path, purpose: &str) -> Result<Vec<u8>, Failure> {
    let failed = |why: String| {
        let what = if purpose == namespace::HEAD { "head" } else { "record" };
        Failure::new(Exit::Usage, format!("the {what} could not be signed with `{}`", key.display()))
            .because(std::io::Error::other(why))
            .hint("`ssh-add` gives the key to the agent; `--key FILE` names another")
    };
    let content = std::fs::File::open(file).map_err(|error| failed(error.to_string()))?;
    // From standard input to standard output: nothing is written beside the file, whatever lies there.
    let run = Command::new("ssh-keygen")
        .args(["-q", "-Y", "sign", "-n", purpose, "-f"])
        .arg(key)
        .stdin(content)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| failed(format!("`ssh-keygen` could not be started: {error}")))?;
    if !run.status.success() || run.stdout.is_empty() {
        return Err(failed(String::from_utf8_lossy(&run.stderr).trim().to_owned()));
    }
    Ok(run.stdout)
}

/// Asks an authority, and looks at the answer before it is kept.
fn stamped(url: &str, statement: &[u8], signature: &[u8]) -> Result<(Vec<u8>, Vec<u8>), Failure> {
    let failed = |error: &dyn std::error::Error| {
        Failure::new(Exit::Machine, format!("the authority `{url}` gave no time stamp")).because(error).hint(
            "what is registered stays so; ask again, or another one, with `avow ledger witness --tsa URL`",
        )
    };
    let imprint = sha256(&[statement, signature]);
    let mut random = [0; 16];
    let hex = nonce().map_err(failure::store)?;
    for (byte, pair) in random.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = pair
            .iter()
            .fold(0, |value, digit| value << 4 | char::from(*digit).to_digit(16).unwrap_or(0) as u8);
    }
    let request = stamp::request(&imprint, &random).map_err(|error| failed(&error))?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| failed(&error))?;
    let answer =
        runtime.block_on(avow_exec::authority::ask(url, request.clone())).map_err(|error| failed(&error))?;
    stamp::answers(&answer, &request, &imprint).map_err(|error| failed(&error))?;
    Ok((request, answer))
}

/// Makes a signed tag that names the head.
fn tag(root: &Path, experiment: &str, ledger: &Ledger, head: RegistrationDigest) -> Result<String, Failure> {
    let covered = ledger.covered(head);
    let (root_of, size) = covered.map(|covered| (covered.root.to_string(), covered.size)).unwrap_or_default();
    let known = git::ask(root, &["tag", "--list", &format!("avow/{experiment}/*")]).unwrap_or_default();
    let name = format!("avow/{experiment}/{}", known.lines().count() + 1);
    let message = format!("avow-head {head} {root_of} {size}");
    let mut command = git::command(root, &["tag", "-s", "-m", &message, &name]);
    let run = command.stderr(Stdio::piped()).output();
    let why = match run {
        Ok(run) if run.status.success() => return Ok(name),
        Ok(run) => String::from_utf8_lossy(&run.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Failure::new(Exit::Usage, "git made no signed tag").because(std::io::Error::other(why)).hint(
        "git needs a commit and a key: `git config gpg.format ssh` and `git config user.signingkey FILE`",
    ))
}

/// What the reader trusts: the options, and what `avow.toml` says where they say nothing.
pub fn trust(
    project: &Project,
    settings: &Settings,
    args: Option<&crate::args::Trust>,
) -> Result<Trust, Failure> {
    let ours = &settings.trust;
    let read = |path: &Path| {
        let path = project.root().join(at_home(path));
        std::fs::read(&path).map_err(|error| {
            Failure::new(Exit::Usage, format!("cannot read `{}`", path.display())).because(error)
        })
    };
    let refused = |path: &Path, error: avow_proof::Refusal| {
        Failure::new(Exit::Usage, format!("`{}` is not understood", path.display())).because(error)
    };
    let signers = args.and_then(|args| args.signers.as_ref()).or(ours.signers.as_ref());
    let revoked = args.and_then(|args| args.revoked.as_ref()).or(ours.revoked.as_ref());
    let given = args.map(|args| &args.authority).filter(|list| !list.is_empty());
    let mut trust = Trust { now: now(), ..Trust::default() };
    trust.principal = args.and_then(|args| args.principal.clone());
    if let Some(path) = signers {
        let text = String::from_utf8_lossy(&read(path)?).into_owned();
        trust.signers = Some(Signers::read(&text).map_err(|error| refused(path, error))?);
    }
    if let Some(path) = revoked {
        trust.revoked = Revoked::read(&read(path)?).map_err(|error| refused(path, error))?;
    }
    for path in given.unwrap_or(&ours.authorities) {
        trust.authorities.extend(pem::certificates(&read(path)?).map_err(|error| refused(path, error))?);
    }
    Ok(trust)
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// The proofs beside a ledger, checked.
pub fn checked(
    project: &Project,
    experiment: &str,
    ledger: &Ledger,
    trust: &Trust,
    cited: &mut Cited,
) -> Result<Vec<Checked>, Failure> {
    let all = Proofs::of(project, experiment).and_then(|proofs| proofs.all()).map_err(failure::store)?;
    let files: Vec<ProofFiles> = all.into_iter().map(sorted).collect();
    Ok(check(ledger, &files, trust, cited))
}

fn sorted(about: About) -> ProofFiles {
    let mut proof = ProofFiles { entry: about.entry, statement: about.statement, ..ProofFiles::default() };
    let requests: Vec<(String, Vec<u8>)> =
        about.files.iter().filter(|(name, _)| name.ends_with(".tsq")).cloned().collect();
    for (name, bytes) in about.files {
        if name.ends_with(".sig") {
            proof.signatures.push((name, bytes));
        } else if let Some(stem) = name.strip_suffix(".tsr") {
            let asked = format!("{stem}.tsq");
            let request = requests.iter().find(|(known, _)| *known == asked).map(|(_, bytes)| bytes.clone());
            proof.stamps.push(StampFiles { name, request, answer: bytes });
        } else if !name.ends_with(".tsq") {
            proof.attached.push(name);
        }
    }
    proof
}
