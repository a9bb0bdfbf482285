//! Where a lock file leaves open what is installed.

use super::plain::EXPLICIT;
use super::{conda, logical};

/// Why a lock file pins less than everything; what it says is a line of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Open {
    /// Several versions will do.
    Versions(String),
    /// It names another file or folder, whose content is not part of it.
    Elsewhere(String),
}

/// The first line that leaves something open; `None` where everything is pinned, or the file cannot be read.
pub fn open(manager: &str, text: &str) -> Option<Open> {
    match manager {
        "pip" => logical(text).iter().find_map(|line| requirement(line)),
        "conda" if text.lines().any(|line| line.trim() == EXPLICIT) => None,
        "conda" => {
            // `pip` stands there for itself, so that its own part can be installed. A lock of conda's pins everything.
            let wanted = conda::wanted(text);
            let own = wanted.dependencies.iter().filter(|line| *line != "pip").find_map(|line| spaced(line));
            own.or_else(|| wanted.pip.iter().find_map(|line| requirement(line)))
        }
        _ => None,
    }
}

fn requirement(line: &str) -> Option<Open> {
    let other = ["-r", "--requirement", "-c", "--constraint", "-e", "--editable"];
    let is = |option: &&str| line.strip_prefix(*option).is_some_and(|rest| rest.starts_with([' ', '=']));
    if other.iter().any(is) || line.starts_with("./") || line.starts_with("../") {
        return Some(Open::Elsewhere(line.to_owned()));
    }
    let wanted = line.split([';', '\t']).next().unwrap_or(line);
    let pinned =
        wanted.contains("@ ") || wanted.split_once("==").is_some_and(|(_, version)| !version.contains('*'));
    (line.starts_with(|c: char| c.is_ascii_alphanumeric()) && !pinned)
        .then(|| Open::Versions(line.to_owned()))
}

/// `name=1.2` is open to `1.2.1` for conda; it is taken for a pin, as people mean it.
fn spaced(line: &str) -> Option<Open> {
    let open = line.contains(['<', '>', '*', '!', '~', '|']) || !line.contains('=') && !line.contains("://");
    open.then(|| Open::Versions(line.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn versions(manager: &str, text: &str, line: &str) {
        assert_eq!(open(manager, text), Some(Open::Versions(line.to_owned())));
    }

    #[test]
    fn what_requirements_leave_open_is_found() {
        versions("pip", "a==1\nb>=2  # later\n", "b>=2");
        versions("pip", "a==1.*\n", "a==1.*");
        versions("pip", "a\n", "a");
        for text in ["-r other.txt", "--constraint=c.txt", "-e .", "./wheels/a.whl"] {
            assert_eq!(open("pip", text), Some(Open::Elsewhere(text.to_owned())));
        }
        let pinned = "# a\n--index-url https://x\na==1 \\\n  --hash=sha256:aa\nb[c]==2; python_version >= '3'\nd @ https://e/d.whl\n";
        assert_eq!(open("pip", pinned), None);
    }

    #[test]
    fn what_conda_files_leave_open_is_found() {
        versions("conda", "dependencies: [python=3.11, numpy]\n", "numpy");
        versions("conda", "dependencies:\n- python>=3.11\n", "python>=3.11");
        versions("conda", "dependencies:\n- python=3.11\n- pip\n- pip: [a==1, b>2]\n", "b>2");
        let pinned = "channels: [conda-forge, defaults]\ndependencies: [python=3.11, c::numpy=1.2=h1, pip, {pip: [a==1]}]\n";
        assert_eq!(open("conda", pinned), None);
        assert_eq!(open("conda", "package:\n- name: numpy\n  version: 1.2\n"), None);
        assert_eq!(open("conda", "@EXPLICIT\nhttps://c/a-1-0.conda\n"), None);
    }
}
