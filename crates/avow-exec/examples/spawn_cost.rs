//! What one trivial stage costs: `/bin/true` through the whole local executor, and through a bare spawn.
//!
//! `cargo run --release -p avow-exec --example spawn_cost -- [STAGES] [WORKERS]`. Both numbers are from one run,
//! because absolute times drift.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use avow_exec::{Cancel, Config, Confinement, Executor, LocalExecutor, Watch};
use avow_model::action::{Action, Command, Slot};
use avow_model::attempt::AttemptId;
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::plan::{Keep, Terms};
use avow_store::{BlobStore, FileBlobs, MemoryStamps, Project};

type Failure = Box<dyn std::error::Error>;

fn action(command: Command, input: BlobDigest, output: bool) -> Action {
    let slot = Slot { path: "out".to_owned(), folder: false, optional: false, keep: Keep::Content };
    Action {
        command,
        env: BTreeMap::new(),
        inputs: [("in".to_owned(), Artifact::Blob(input))].into(),
        code: None,
        environment: None,
        lock_as_written: None,
        toolchain: BTreeMap::new(),
        loads: None,
        outputs: if output { [("out".to_owned(), slot)].into() } else { BTreeMap::new() },
        hardware: None,
        image: None,
        repetition: None,
        network: false,
    }
}

async fn stages(
    executor: &LocalExecutor,
    action: &Action,
    count: usize,
    workers: usize,
) -> Result<f64, Failure> {
    let next = Arc::new(AtomicUsize::new(0));
    let start = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..workers {
        let (executor, action, next) = (executor.clone(), action.clone(), Arc::clone(&next));
        tasks.push(tokio::spawn(async move {
            let cancel = Cancel::new().map_err(|e| e.to_string())?;
            loop {
                let number = next.fetch_add(1, Ordering::SeqCst);
                if number >= count {
                    return Ok::<(), String>(());
                }
                let attempt = AttemptId(format!("{number:032x}"));
                let watch = Watch::new(cancel.clone()).on_spawn(|_, _| ());
                let done = executor.run(&attempt, &action, &Terms::default(), watch).await;
                let done = done.map_err(|e| e.to_string())?;
                if !done.outcome.succeeded() {
                    return Err(done.outcome.to_string());
                }
            }
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(start.elapsed().as_secs_f64() * 1e3 / count as f64)
}

fn bare(folder: &Path, program: &[&str], count: usize, workers: usize) -> Result<f64, Failure> {
    let start = Instant::now();
    std::thread::scope(|scope| {
        let spawn = |_| {
            scope.spawn(move || -> std::io::Result<()> {
                for _ in 0..count / workers {
                    let mut command = std::process::Command::new(program[0]);
                    command.args(&program[1..]).current_dir(folder).status()?;
                }
                Ok(())
            })
        };
        let threads: Vec<_> = (0..workers).map(spawn).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })?;
    Ok(start.elapsed().as_secs_f64() * 1e3 / count as f64)
}

/// User and system time of this process and its ended children, in ticks of 10 ms.
fn processor_time() -> Result<u64, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(") ").ok_or("no name in the status line")?;
    let times = fields.split(' ').skip(11).take(4).map(str::parse::<u64>);
    Ok(times.sum::<Result<u64, _>>()?)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().map_or(Ok(2000), |n| n.parse())?;
    let workers: usize = arguments.next().map_or(Ok(2), |n| n.parse())?;
    let folder = tempfile::Builder::new().prefix("spawn-cost").tempdir_in(".")?;
    let project = Project::at(folder.path());
    project.create()?;
    let blobs: Arc<dyn BlobStore> =
        Arc::new(FileBlobs::new(project.clone(), Arc::new(MemoryStamps::default())));
    let input = blobs.put(b"an input\n")?;
    std::fs::write(folder.path().join("in"), "an input\n")?;
    blobs.sync()?;
    let words = |words: &[&str]| Command::Arguments(words.iter().map(|w| (*w).to_owned()).collect());
    let copy = Command::Shell("cat in > out; echo $AVOW_ATTEMPT >> out".to_owned());
    for confinement in [Confinement::Deny, Confinement::Declared, Confinement::None] {
        let config =
            Config { confinement: Some(confinement), ..Config::new(project.work(), "/nonexistent/avow") };
        let executor = LocalExecutor::new(config, Arc::clone(&blobs))?;
        let nothing = action(words(&["/bin/true"]), input, false);
        let something = action(copy.clone(), input, true);
        for (name, action, anchor) in [
            ("true", &nothing, &["/bin/true"][..]),
            ("sh + cat", &something, &["/bin/sh", "-eu", "-c", "cat in > out$$; echo $$ >> out$$"][..]),
        ] {
            let before = processor_time()?;
            let floor = bare(folder.path(), anchor, count, workers)?;
            let between = processor_time()?;
            let ours = stages(&executor, action, count, workers).await?;
            let after = processor_time()?;
            let per_stage = |from: u64, to: u64| (to - from) as f64 * 10.0 / count as f64;
            println!(
                "{confinement:?}, {name}: {ours:.3} ms, bare {floor:.3} ms, ratio {:.2}; processor {:.3} ms, bare {:.3} ms",
                ours / floor,
                per_stage(between, after),
                per_stage(before, between)
            );
        }
    }
    Ok(())
}
