//! What `/proc` says about processes: parsing only, nothing is signalled or waited for here.
//!
//! Every function answers `None` or an empty list for a process that is gone, because that is the normal case:
//! processes end while they are looked at.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The part of `/proc/PID/stat` that identifies a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// `R`, `S`, `D`, `T`, `Z` …
    pub(crate) state: u8,
    /// Its process group.
    pub(crate) group: i32,
    /// Its session.
    pub(crate) session: i32,
    /// When it started, in clock ticks since boot.
    pub(crate) start: u64,
}

impl Stat {
    /// Whether it has ended and only waits to be waited for.
    pub(crate) fn ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// The identity of the process `pid`.
pub(crate) fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&whole(&format!("/proc/{pid}/stat"))?)
}

/// A file of `/proc` in one read: its length is not known beforehand, and guessing it upwards makes six of it.
fn whole(path: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(4096);
    // Through an adapter, because a file asks for its length first.
    File::open(path).ok()?.take(u64::MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn text(path: &str) -> Option<String> {
    String::from_utf8(whole(path)?).ok()
}

fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    // The name is in parentheses and may itself hold spaces and parentheses: only the last one closes it.
    let end = bytes.iter().rposition(|b| *b == b')')?;
    let text = std::str::from_utf8(bytes.get(end + 2..)?).ok()?;
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let number = |i: usize| fields.get(i).and_then(|f| f.parse::<i32>().ok());
    Some(Stat {
        state: *fields.first()?.as_bytes().first()?,
        group: number(2)?,
        session: number(3)?,
        start: fields.get(19)?.parse().ok()?,
    })
}

/// When a process started, in clock ticks since boot: with its id, this names it for good. `None` where there is no
/// such process.
pub fn process_start(pid: u32) -> Option<u64> {
    stat(i32::try_from(pid).ok()?).map(|stat| stat.start)
}

/// The children that the kernel lists under one thread; `None` where it keeps no such list.
pub(crate) fn children_of_thread(pid: i32, thread: i32) -> Option<Vec<i32>> {
    let text = text(&format!("/proc/{pid}/task/{thread}/children"))?;
    Some(text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect())
}

/// The children of all threads of the process `pid`.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    numbers(Path::new(&format!("/proc/{pid}/task")))
        .filter_map(|thread| children_of_thread(pid, thread))
        .flatten()
        .collect()
}

/// All processes below `pid`, itself not included.
pub(crate) fn descendants(pid: i32) -> Vec<i32> {
    let mut found = children(pid);
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        // A process id can be reused while we walk, which could close a circle.
        for child in children(parent) {
            if child != pid && !found.contains(&child) {
                found.push(child);
            }
        }
        next += 1;
    }
    found
}

/// Every process there is.
pub(crate) fn all() -> Vec<i32> {
    numbers(Path::new("/proc")).collect()
}

/// The processes whose parent is `pid`, found by looking at all: for kernels without a list of children.
pub(crate) fn children_by_scan(pid: i32) -> Vec<i32> {
    let parent = |child: i32| {
        let bytes = whole(&format!("/proc/{child}/stat"))?;
        let end = bytes.iter().rposition(|b| *b == b')')?;
        let text = String::from_utf8_lossy(bytes.get(end + 2..)?).into_owned();
        text.split_ascii_whitespace().nth(1)?.parse::<i32>().ok()
    };
    all().into_iter().filter(|child| parent(*child) == Some(pid)).collect()
}

/// The value of an environment variable as the process was started with it.
pub(crate) fn variable(pid: i32, name: &str) -> Option<String> {
    let bytes = whole(&format!("/proc/{pid}/environ"))?;
    bytes.split(|b| *b == 0).find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(String::from_utf8_lossy(value).into_owned())
    })
}

/// Resident memory in bytes, pages shared with other processes included.
pub(crate) fn resident(pid: i32) -> u64 {
    let pages = text(&format!("/proc/{pid}/statm"))
        .and_then(|text| text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Resident memory in bytes with shared pages divided among those who share them; `None` where the kernel does
/// not say.
pub(crate) fn proportional(pid: i32) -> Option<u64> {
    kibibytes(&text(&format!("/proc/{pid}/smaps_rollup"))?, "Pss:")
}

/// The largest resident set the process has had so far, in bytes.
pub(crate) fn largest_resident(pid: i32) -> u64 {
    text(&format!("/proc/{pid}/status")).and_then(|text| kibibytes(&text, "VmHWM:")).unwrap_or(0)
}

/// Whether a resident set is larger than this process' own has ever been.
pub(crate) fn exceeds_own(resident: u64) -> bool {
    /// What the own one was when somebody looked. It only grows, so most answers need no look.
    static OWN: AtomicU64 = AtomicU64::new(0);
    if resident <= OWN.load(Ordering::Relaxed) {
        return false;
    }
    let own = largest_resident(rustix::process::getpid().as_raw_nonzero().get());
    OWN.fetch_max(own, Ordering::Relaxed);
    resident > own
}

fn kibibytes(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|k| k * 1024)
}

fn numbers(folder: &Path) -> impl Iterator<Item = i32> + use<> {
    let entries = fs::read_dir(folder).ok();
    entries.into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let line = b"17 (a) b (c) S 1 5 6 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 1";
        assert_eq!(parse_stat(line), Some(Stat { state: b'S', group: 5, session: 6, start: 987_654 }));
    }

    #[test]
    fn the_own_process_is_found_by_each_way() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(!stat(own).unwrap().ended());
        assert!(all().contains(&own));
        assert!(resident(own) > 0 && largest_resident(own) >= resident(own) / 2);
        let path = std::env::var("PATH").unwrap();
        assert_eq!(variable(own, "PATH"), Some(path));
        assert_eq!(stat(i32::MAX), None);
    }
}
