//! `avow log --follow`: what a member prints, while it prints it.
//!
//! The log of an attempt is a file in its working folder. It is opened while the attempt runs and read through that
//! descriptor to its end, wherever the file goes when the attempt is over. An attempt that ended before its log
//! could be opened left it in the store.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::Duration;

use avow_audit::Audit;
use avow_model::attempt::{Attempt, AttemptId};
use avow_model::journal::{Event, Line, MemberState, RunState};
use avow_store::journal::JournalFile;
use avow_store::presence;
use avow_store::{BlobStore, FileBlobs, MemoryStamps, Project, journal};

use crate::args;
use crate::commands::log::{covers, name_of};
use crate::commands::verdict::guard;
use crate::context::{Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

/// Between two looks at a log.
const POLL: Duration = Duration::from_millis(50);

/// An attempt under way.
struct Followed {
    journal: JournalFile,
    member: String,
    attempt: AttemptId,
}

/// Follows the one running member that the name covers; `None` where no run of the experiment lives, so that there
/// is nothing to wait for.
pub fn follow(args: &args::Log, spec: &Spec, output: &Output) -> Result<Option<Exit>, Failure> {
    let experiment = name_of(spec)?;
    let mut told = false;
    let followed = loop {
        let Some(mut running) = running(&spec.project, &experiment, &args.member)? else { return Ok(None) };
        match running.len() {
            0 => {}
            1 => break running.remove(0),
            _ => return Err(several(&running)),
        }
        if !told {
            told = true;
            output.say(format!("{} does not run now; waiting until it does, Ctrl-C gives up", args.member));
        }
        std::thread::sleep(POLL);
    };
    permitted(args, spec, &experiment, output)?;
    output.say(output.bold(&format!("{}: attempt {}", followed.member, followed.attempt)));
    print(&spec.project, &followed, output)?;
    Ok(Some(Exit::Done))
}

/// What runs and is covered, in the runs of the experiment that live; `None` where none does.
fn running(project: &Project, experiment: &str, name: &str) -> Result<Option<Vec<Followed>>, Failure> {
    let living = presence::living(project).map_err(failure::store)?;
    let mut found = None;
    for run in living.into_iter().filter(|run| run.experiment == experiment) {
        let Some(file) = journal::journal(project, &run.run).map_err(failure::store)? else { continue };
        let state = RunState::of(&file.read().map_err(failure::store)?.lines);
        let found = found.get_or_insert_with(Vec::new);
        for (member, member_state) in state.members {
            if let MemberState::Running { attempt, .. } = member_state
                && covers(name, &member)
            {
                found.push(Followed { journal: file.clone(), member, attempt });
            }
        }
    }
    Ok(found)
}

fn several(running: &[Followed]) -> Failure {
    let names: Vec<&str> = running.iter().map(|one| one.member.as_str()).collect();
    Failure::new(Exit::Usage, format!("{} of it run now", words::count(names.len() as u64, "member"))).hint(
        format!(
            "name one to follow, e.g. `avow log --follow '{}'`; there are {}",
            names[0],
            names.join(", ")
        ),
    )
}

/// What a stage prints may be a result, and results of a registered plan stay hidden until it is complete.
fn permitted(args: &args::Log, spec: &Spec, experiment: &str, output: &Output) -> Result<(), Failure> {
    let reading = Reading::open(&spec.project, experiment)?;
    if reading.ledger.entries().iter().all(|entry| entry.kind != "register") {
        return Ok(());
    }
    let planned = spec.plan_as_run(output)?;
    let audit = Audit::gather(&planned.plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
    guard(spec, &reading, &audit, args.peek, ("log", &args.member))
}

/// One of the two streams.
struct Stream {
    path: PathBuf,
    file: Option<File>,
    shown: u64,
}

impl Stream {
    /// Copies what is new; whether there was anything.
    fn copy(&mut self, to: &mut impl Write) -> io::Result<bool> {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &mut self.file else { return Ok(false) };
        if file.metadata()?.len() < self.shown {
            // The program emptied its own log.
            self.shown = 0;
        }
        file.seek(SeekFrom::Start(self.shown))?;
        let copied = io::copy(file, to)?;
        self.shown += copied;
        to.flush()?;
        Ok(copied > 0)
    }
}

fn print(project: &Project, followed: &Followed, output: &Output) -> Result<(), Failure> {
    let mut streams =
        avow_exec::logs(&project.work(), &followed.attempt).map(|path| Stream { path, file: None, shown: 0 });
    let mut tail = Tail { followed, read: 0 };
    loop {
        // The run first, then its journal, then the log: whatever was before the end is then read after it.
        let live = followed.journal.is_live().map_err(failure::store)?;
        let end = tail.end()?;
        let copied = copy(&mut streams).map_err(unwritable)?;
        match end {
            Some(attempt) => {
                // Short logs of short attempts are in the store before anybody could open them.
                rest(project, &streams, &attempt)?;
                let wall = words::seconds(attempt.usage.wall as f64 / 1e6);
                output.say(format!("{}: {} in {wall}", followed.member, attempt.outcome));
                return Ok(());
            }
            None if !live => {
                output.say(format!(
                    "run {} died; what {} printed since is lost",
                    followed.journal.run, followed.member
                ));
                return Ok(());
            }
            None if !copied => std::thread::sleep(POLL),
            None => {}
        }
    }
}

fn copy(streams: &mut [Stream; 2]) -> io::Result<bool> {
    let [out, err] = streams;
    Ok(out.copy(&mut io::stdout().lock())? | err.copy(&mut io::stderr().lock())?)
}

/// The lines that a journal gets from now on, read once each.
struct Tail<'f> {
    followed: &'f Followed,
    read: u64,
}

impl Tail<'_> {
    /// The record of the attempt, once it has ended.
    fn end(&mut self) -> Result<Option<Attempt>, Failure> {
        let path = &self.followed.journal.path;
        let unreadable =
            |error| Failure::new(Exit::Machine, format!("cannot read `{}`", path.display())).because(error);
        let mut file = File::open(path).map_err(unreadable)?;
        file.seek(SeekFrom::Start(self.read)).map_err(unreadable)?;
        let mut file = BufReader::new(file);
        let mut raw = Vec::new();
        while file.read_until(b'\n', &mut raw).map_err(unreadable)? > 0 && raw.ends_with(b"\n") {
            self.read += raw.len() as u64;
            // A line that is damaged says nothing; naming it is the business of `avow store check`.
            if let Ok(Line { event: Event::Finished { attempt, .. }, .. }) = serde_json::from_slice(&raw)
                && attempt.id == self.followed.attempt
            {
                return Ok(Some(*attempt));
            }
            raw.clear();
        }
        Ok(None)
    }
}

/// What the store has of the streams that could not be opened.
fn rest(project: &Project, streams: &[Stream; 2], attempt: &Attempt) -> Result<(), Failure> {
    let blobs = FileBlobs::new(project.clone(), std::sync::Arc::new(MemoryStamps::default()));
    for (stream, digest) in streams.iter().zip([attempt.stdout, attempt.stderr]) {
        if let (None, Some(digest)) = (&stream.file, digest) {
            let bytes = blobs.read(digest).map_err(failure::store)?;
            let mut out = io::stdout().lock();
            out.write_all(&bytes).and_then(|()| out.flush()).map_err(unwritable)?;
        }
    }
    Ok(())
}

fn unwritable(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::quiet(Exit::Done),
        _ => Failure::new(Exit::Machine, "the log cannot be passed on").because(error),
    }
}
