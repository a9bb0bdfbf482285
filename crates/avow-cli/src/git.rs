//! What git knows about a project, asked of the user's own `git`. Everything is optional: no git, or no
//! repository, is an answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// A file as some commit has it.
pub struct Version {
    /// The commit.
    pub commit: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The words that `git` prints, without the last line feed; `None` where it fails or is not there.
pub fn ask(root: &Path, args: &[&str]) -> Option<String> {
    let out = command(root, args).output().ok().filter(|out| out.status.success())?;
    Some(String::from_utf8(out.stdout).ok()?.trim_end_matches('\n').to_owned())
}

/// Git in the project, in English, without touching the index.
pub fn command(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(root).args(args).env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0");
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// Every version of a file in any branch, tag or remote-tracking branch; `path` is relative to the project.
pub fn versions(root: &Path, path: &str) -> Vec<Version> {
    let Some(prefix) = ask(root, &["rev-parse", "--show-prefix"]) else { return Vec::new() };
    let Some(list) = ask(root, &["rev-list", "--all", "--", path]) else { return Vec::new() };
    let commits: Vec<&str> = list.lines().collect();
    let names: String = commits.iter().map(|commit| format!("{commit}:{prefix}{path}\n")).collect();
    let contents = batch(root, names).unwrap_or_default();
    let version = |(commit, bytes): (&&str, Option<Vec<u8>>)| {
        // A commit that removed the file has none.
        bytes.map(|bytes| Version { commit: (*commit).to_owned(), bytes })
    };
    commits.iter().zip(contents).filter_map(version).collect()
}

/// The blobs of these names, in order.
fn batch(root: &Path, names: String) -> std::io::Result<Vec<Option<Vec<u8>>>> {
    let mut command = command(root, &["cat-file", "--batch"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (mut to, from) = (child.stdin.take(), child.stdout.take());
    // Written beside the reading, since either pipe may fill.
    let writer = std::thread::spawn(move || to.take().map(|mut to| to.write_all(names.as_bytes())));
    let mut reader = BufReader::new(from.ok_or_else(|| std::io::Error::other("no output"))?);
    let (mut contents, mut header) = (Vec::new(), String::new());
    while reader.read_line(&mut header)? > 0 {
        let size = header.trim_end().rsplit_once(" blob ").and_then(|(_, size)| size.parse::<u64>().ok());
        contents.push(match size {
            None => None,
            Some(size) => {
                let mut bytes = Vec::new();
                reader.by_ref().take(size).read_to_end(&mut bytes)?;
                reader.by_ref().take(1).read_to_end(&mut Vec::new())?;
                Some(bytes)
            }
        });
        header.clear();
    }
    let _ = writer.join();
    child.wait()?;
    Ok(contents)
}
