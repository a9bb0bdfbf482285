//! Whether locks keep out other hosts as well.
//!
//! Some network file systems grant locks that only this host knows of. Trying a lock cannot show that; how the
//! file system is mounted can.

use std::path::{Path, PathBuf};

/// File systems whose locks the kernel keeps for itself, whatever the server thinks.
const LOCAL: [&str; 4] = ["fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse"];

/// Whether the file system of an absolute path is shared between hosts and its locks are not. What cannot be read
/// is taken for a local file system.
pub(crate) fn locks_are_local(path: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    of(&mounts, path).is_some_and(|(kind, options)| local(kind, options))
}

fn local(kind: &str, options: &str) -> bool {
    let has = |wanted: &str| options.split(',').any(|option| option == wanted);
    match kind {
        "nfs" | "nfs4" => {
            let kept = options.split(',').find_map(|option| option.strip_prefix("local_lock="));
            has("nolock") || kept.is_some_and(|kept| kept != "none")
        }
        "lustre" => has("localflock"),
        "cifs" | "smb3" => has("nobrl"),
        _ => LOCAL.contains(&kind),
    }
}

/// Kind and options of the file system that a path is on: of the last mount whose place is the longest part of it.
fn of<'m>(mounts: &'m str, path: &Path) -> Option<(&'m str, &'m str)> {
    let mut best: Option<(usize, (&str, &str))> = None;
    for line in mounts.lines() {
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let Some(place) = before.split(' ').nth(4).map(unescaped) else { continue };
        let mut fields = after.split(' ');
        let (Some(kind), Some(options)) = (fields.next(), fields.nth(1)) else { continue };
        let depth = place.components().count();
        if path.starts_with(&place) && best.is_none_or(|(known, _)| depth >= known) {
            best = Some((depth, (kind, options)));
        }
    }
    best.map(|(_, found)| found)
}

/// Blanks, tabs, line feeds and backslashes are octal there.
fn unescaped(place: &str) -> PathBuf {
    let spelled = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    PathBuf::from(spelled.iter().fold(place.to_owned(), |text, (code, sign)| text.replace(code, sign)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /home rw - nfs4 server:/home rw,vers=4.2,local_lock=none,addr=10.0.0.1
31 22 0:41 / /scratch\\040space rw - nfs server:/s rw,vers=3,nolock,local_lock=all
32 22 0:42 / /lustre rw - lustre mgs:/l rw,flock
33 22 0:43 / /lustre/local rw - lustre mgs:/m rw,localflock
34 22 0:44 / /remote rw - fuse.sshfs me@host: rw
";

    #[test]
    fn locks_that_only_this_host_knows_are_recognised_by_the_mount() {
        let local_at =
            |path: &str| of(MOUNTS, Path::new(path)).is_some_and(|(kind, options)| local(kind, options));
        for sound in ["/srv/project", "/home/me/project", "/homes/x", "/lustre/project", "/scratch/x"] {
            assert!(!local_at(sound), "{sound}");
        }
        for unsound in ["/scratch space/project", "/lustre/local/project", "/remote"] {
            assert!(local_at(unsound), "{unsound}");
        }
    }
}
