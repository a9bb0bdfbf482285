//! Signing by an SSH agent: the user's own, or one that lives for this one command and holds one key.
//!
//! Avow reads no private key. Where the user's agent does not hold the key, `ssh-add` gives it to an agent of our own,
//! and asks for a passphrase on the terminal if it needs one.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use avow_proof::agent;
use avow_proof::dsse::Key;
use tempfile::TempDir;

use crate::exit::Exit;
use crate::output::Failure;

/// How long an agent of our own may take to begin, and any agent to answer; a person may be asked meanwhile.
const BEGIN: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(120);

/// Somebody who holds a key.
pub struct Signer {
    key: Key,
    stream: UnixStream,
    /// The agent, where it is our own.
    _own: Option<Own>,
}

/// An agent that ends with the value.
struct Own {
    process: Child,
    _folder: TempDir,
}

impl Drop for Own {
    fn drop(&mut self) {
        // It is our child; where it has ended already there is nothing left to do.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Signer {
    /// Finds somebody who holds the key of a file, private or public.
    pub fn open(file: &Path) -> Result<Signer, Failure> {
        let key = public(file)?;
        if let Some(socket) = std::env::var_os("SSH_AUTH_SOCK").filter(|socket| !socket.is_empty())
            && let Ok(stream) = UnixStream::connect(&socket)
        {
            let mut signer = Signer { key: key.clone(), stream: patient(stream, file)?, _own: None };
            let wire = signer.key.wire().map_err(|error| refused(file, error))?;
            let answer = signer.ask(&agent::identities())?;
            if agent::holds(&answer, &wire).map_err(|error| refused(file, error))? {
                return Ok(signer);
            }
        }
        let (own, stream) = start(file)?;
        Ok(Signer { key, stream: patient(stream, file)?, _own: Some(own) })
    }

    /// The key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// A signature over bytes, looked at before it is given.
    pub fn sign(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let failed = |error| refused(Path::new("the key"), error);
        let wire = self.key.wire().map_err(failed)?;
        let signature = agent::signature(&self.ask(&agent::sign(&wire, bytes))?).map_err(failed)?;
        self.key.verify(bytes, &signature).map_err(failed)?;
        Ok(signature)
    }

    fn ask(&mut self, message: &[u8]) -> Result<Vec<u8>, Failure> {
        let failed = |error| Failure::new(Exit::Machine, "the SSH agent does not answer").because(error);
        self.stream.write_all(message).map_err(failed)?;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).map_err(failed)?;
        let length = u32::from_be_bytes(length);
        if length > agent::LONGEST {
            return Err(failed(std::io::Error::other("its answer is too long")));
        }
        let mut answer = vec![0; length as usize];
        self.stream.read_exact(&mut answer).map_err(failed)?;
        Ok(answer)
    }
}

fn refused(file: &Path, error: avow_proof::Refusal) -> Failure {
    Failure::new(Exit::Usage, format!("nothing can be signed with `{}`", file.display()))
        .because(error)
        .hint("envelopes need an Ed25519 key: `ssh-keygen -t ed25519`; `--unsigned` writes plain statements")
}

fn patient(stream: UnixStream, file: &Path) -> Result<UnixStream, Failure> {
    let timed = stream.set_read_timeout(Some(ANSWER)).and_then(|()| stream.set_write_timeout(Some(ANSWER)));
    timed.map_err(|error| no_agent(file, error)).map(|()| stream)
}

fn no_agent(file: &Path, error: std::io::Error) -> Failure {
    Failure::new(Exit::Usage, format!("no agent holds the key `{}`", file.display()))
        .because(error)
        .hint("`ssh-add` gives it to yours; `--key FILE` names another; `--unsigned` writes plain statements")
}

/// The public half: the file itself, or what lies beside the private one, or what `ssh-keygen` reads from that.
fn public(file: &Path) -> Result<Key, Failure> {
    let beside = if is_public(file) { file.to_owned() } else { suffixed(file) };
    let line = match std::fs::read_to_string(&beside) {
        Ok(line) => line,
        Err(_) => {
            let run = Command::new("ssh-keygen").arg("-y").arg("-f").arg(file).stdin(Stdio::null()).output();
            let run = run.map_err(|error| no_agent(file, error))?;
            if !run.status.success() {
                let why = String::from_utf8_lossy(&run.stderr).trim().to_owned();
                return Err(no_agent(file, std::io::Error::other(why)));
            }
            String::from_utf8_lossy(&run.stdout).into_owned()
        }
    };
    Key::read(&line).map_err(|error| refused(file, error))
}

fn is_public(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "pub")
}

fn suffixed(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".pub");
    PathBuf::from(name)
}

/// Starts an agent and has `ssh-add` give it the key.
fn start(file: &Path) -> Result<(Own, UnixStream), Failure> {
    let failed = |error| no_agent(file, error);
    let folder = tempfile::Builder::new().prefix("avow-agent-").tempdir().map_err(failed)?;
    let socket = folder.path().join("agent");
    let process = Command::new("ssh-agent")
        .arg("-D")
        .arg("-a")
        .arg(&socket)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let own = Own { process, _folder: folder };
    let stream = connected(&socket).map_err(failed)?;
    let private = if is_public(file) { file.with_extension("") } else { file.to_owned() };
    let mut adding = Command::new("ssh-add");
    adding.arg("-q").arg(&private).env("SSH_AUTH_SOCK", &socket);
    adding.stdout(Stdio::null()).stderr(Stdio::piped());
    let added = adding.spawn().and_then(Child::wait_with_output).map_err(failed)?;
    if !added.status.success() {
        let why = String::from_utf8_lossy(&added.stderr).trim().to_owned();
        return Err(failed(std::io::Error::other(why)));
    }
    Ok((own, stream))
}

fn connected(socket: &Path) -> std::io::Result<UnixStream> {
    let end = Instant::now() + BEGIN;
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() > end => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}
