//! How fast the store is beside `cp` on the same machine, in the same run: `cargo run --release --example speed -- FOLDER`.
#![expect(clippy::print_stdout, reason = "an example that prints what it measured")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use avow_store::index::open_index;
use avow_store::stamp::StampCache;
use avow_store::{BlobStore, FileBlobs, Ingest, Intake, Project, RunLock};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let place = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = place.join(format!("avow-speed-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let measured = measure(&folder);
    fs::remove_dir_all(&folder)?;
    measured
}

fn timed<T>(what: &str, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    // Dirty pages of the step before must not slow this one down.
    Command::new("sync").status()?;
    let begun = Instant::now();
    let result = work()?;
    println!("{:>9.3} s  {what}", begun.elapsed().as_secs_f64());
    Ok(result)
}

fn measure(folder: &Path) -> Outcome<()> {
    let project = Project::at(folder);
    project.create()?;
    let lock = RunLock::try_acquire(&project)?;
    let index = Arc::new(open_index(&project, &lock)?.0);
    let blobs = FileBlobs::new(project, Arc::clone(&index) as Arc<dyn StampCache>);
    let ingest = Ingest::new(&blobs, &*index);

    timed("put 10,000 small blobs", || {
        for i in 0..10_000u32 {
            blobs.put(format!("blob number {i}").as_bytes())?;
        }
        Ok(())
    })?;
    timed("sync them", || Ok(blobs.sync()?))?;
    timed("100 times: put 30 blobs and sync", || {
        for i in 0..100 {
            for part in 0..30 {
                blobs.put(format!("stage {i} part {part}").as_bytes())?;
            }
            blobs.sync()?;
        }
        Ok(())
    })?;

    let many = folder.join("many");
    for i in 0..20_000u32 {
        let path = many.join(format!("{:02}", i % 50)).join(i.to_string());
        if i < 50 {
            fs::create_dir_all(path.parent().ok_or("a path without a folder")?)?;
        }
        fs::write(path, unique(i))?;
    }
    std::thread::sleep(Duration::from_millis(50));
    timed("cp -r of 20,000 files of 10 KiB", || copy(&many, &folder.join("many-copy")))?;
    timed("walk over them with a look at each", || Ok(walk(&many)?))?;
    timed("hash them, nothing known", || Ok(ingest.hash_folder(&many)?))?;
    timed("hash them, all known", || Ok(ingest.hash_folder(&many)?))?;
    timed("store them", || Ok(ingest.store_folder(&many, Intake::Copy)?))?;
    timed("sync", || Ok(blobs.sync()?))?;
    timed("store them again", || Ok(ingest.store_folder(&many, Intake::Copy)?))?;

    let large = folder.join("large");
    fs::write(&large, (0..(1u32 << 28)).flat_map(|i| i.to_le_bytes()).collect::<Vec<u8>>())?;
    std::thread::sleep(Duration::from_millis(50));
    timed("cp of 1 GiB", || copy(&large, &folder.join("large-copy")))?;
    timed("hash it", || Ok(ingest.hash_file(&large)?))?;
    timed("hash it again", || Ok(ingest.hash_file(&large)?))?;
    timed("store it", || Ok(ingest.store_file(&large, Intake::Copy)?))?;
    Ok(())
}

fn walk(folder: &Path) -> std::io::Result<u64> {
    let mut size = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        size += if metadata.is_dir() { walk(&entry.path())? } else { metadata.len() };
    }
    Ok(size)
}

fn unique(i: u32) -> Vec<u8> {
    i.to_le_bytes().into_iter().cycle().take(10 << 10).collect()
}

fn copy(from: &Path, to: &Path) -> Outcome<()> {
    let status = Command::new("cp").arg("-r").args([from, to]).status()?;
    if status.success() { Ok(()) } else { Err("cp failed".into()) }
}
