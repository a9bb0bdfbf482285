//! Every change on the disk goes through one file, so that the suite of faults meets all of them.

use std::fs;
use std::path::{Path, PathBuf};

/// Calls that change something on a disk.
const CHANGES: [&str; 17] = [
    "fs::write(",
    "fs::rename(",
    "fs::remove_",
    "fs::create_dir",
    "fs::copy(",
    "fs::hard_link(",
    "fs::symlink(",
    "symlinkat(",
    "File::create",
    ".create(true)",
    ".create_new(true)",
    ".write_all",
    ".sync_all(",
    ".sync_data(",
    "syncfs(",
    ".set_len(",
    ".set_permissions(",
];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { sources(&path, into) } else { into.push(path) }
    }
}

#[test]
fn changes_on_the_disk_are_made_in_one_file() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    // What `protocol.rs` writes to is a socket.
    let seam = ["disk.rs", "faults.rs", "memory.rs", "protocol.rs"];
    files.retain(|path| !seam.iter().any(|name| path.ends_with(name)));
    assert!(files.len() > 15);
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        // What the tests beside the code do to their own folders is no act of the store.
        let shipped = text.lines().enumerate().take_while(|(_, line)| !line.starts_with("#[cfg(test)]"));
        let code = shipped.filter(|(_, line)| !line.trim_start().starts_with("//"));
        for (number, line) in code {
            let found = CHANGES
                .iter()
                .find(|call| line.match_indices(**call).any(|(at, _)| !line[..at].ends_with("disk::")));
            assert!(
                found.is_none(),
                "{}:{}: use `crate::disk` for `{}`",
                path.display(),
                number + 1,
                line.trim()
            );
        }
    }
}
