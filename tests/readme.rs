//! The README and the guides do what they show.
//!
//! A `console` block of the README is run in order, in a fresh folder that holds a copy of `experiments/`: a line
//! `$ COMMAND` is given to `sh` with the program under test as `avow`, lines `> …` right after it continue the
//! command, and what follows is what it prints, standard output and error together. The folder that a command
//! ends in is the folder of the next; variables end with their command. A line `…` stands for any number of
//! lines, `…` within a line for any text. What varies from run to run (digests, times, durations, names of runs,
//! process ids, widths of columns) is not compared.
//!
//! A block that begins with `# not run by the test` is skipped. In `docs/` it is the other way round: only blocks
//! that begin with `# tested` are run. A block of any language whose first line is `# file: NAME` is written to
//! that file.
//!
//! Deliberately absent: rewriting the documents. What they show is what a person decided to show.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use avow_testkit::normal::{normalised, squeezed};
use tempfile::TempDir;

const SKIPPED: &str = "# not run by the test";
const TESTED: &str = "# tested";
const FILE: &str = "# file: ";
const GAP: &str = "…";

/// Something a document does.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// A file that it shows.
    File { path: String, text: String },
    /// A command and what it prints.
    Command { line: usize, command: String, expected: Vec<String> },
}

/// Which `console` blocks count.
#[derive(Clone, Copy)]
enum Blocks {
    AllBut(&'static str),
    Only(&'static str),
}

impl Blocks {
    fn count(self, first: &str) -> bool {
        match self {
            Blocks::AllBut(mark) => first != mark,
            Blocks::Only(mark) => first == mark,
        }
    }
}

/// The steps of a document, in order.
fn steps(text: &str, blocks: Blocks) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let block: Vec<(usize, &str)> = lines.by_ref().take_while(|(_, line)| *line != "```").collect();
        let first = block.first().map_or("", |(_, line)| line);
        if let Some(path) = first.strip_prefix(FILE) {
            let text = block.iter().map(|(_, line)| format!("{line}\n")).collect();
            steps.push(Step::File { path: path.to_owned(), text });
        } else if language == "console" && blocks.count(first) {
            commands(&block, &mut steps);
        }
    }
    steps
}

fn commands(block: &[(usize, &str)], steps: &mut Vec<Step>) {
    let mut open = false;
    for (number, line) in block {
        if let Some(command) = line.strip_prefix("$ ") {
            let command = command.to_owned();
            steps.push(Step::Command { line: number + 1, command, expected: Vec::new() });
            open = true;
            continue;
        }
        let Some(Step::Command { command, expected, .. }) = steps.last_mut().filter(|_| *line != TESTED)
        else {
            continue;
        };
        match line.strip_prefix('>').filter(|_| open) {
            Some(more) => {
                command.push('\n');
                command.push_str(more.strip_prefix(' ').unwrap_or(more));
            }
            None => {
                open = false;
                expected.push((*line).to_owned());
            }
        }
    }
}

/// A folder in which the commands of one document run.
struct Place {
    _folder: TempDir,
    root: PathBuf,
    at: PathBuf,
}

impl Place {
    fn new() -> Place {
        let folder = TempDir::with_prefix("avow-doc-").unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (root, bin) = (base.join("here"), base.join("bin"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_avow"), bin.join("avow")).unwrap();
        copy(&repository().join("experiments"), &root.join("experiments"));
        Place { _folder: folder, at: root.clone(), root }
    }

    /// Runs one command; everything it printed.
    fn run(&mut self, command: &str) -> String {
        let base = self.root.parent().unwrap();
        let (printed, ended_in) = (base.join("printed"), base.join("ended-in"));
        let out = File::create(&printed).unwrap();
        let path = format!("{}:{}", base.join("bin").display(), std::env::var("PATH").unwrap_or_default());
        let script = format!("trap 'pwd >\"$ENDED_IN\"' 0\n{command}\n");
        Command::new("sh")
            .args(["-c", &script])
            .current_dir(&self.at)
            .env_clear()
            .envs([
                ("NO_COLOR", "1"),
                ("TERM", "dumb"),
                ("COLUMNS", "100"),
                ("LANG", "C.UTF-8"),
                ("TZ", "UTC"),
            ])
            .env("PATH", path)
            .env("HOME", &self.root)
            .env("ENDED_IN", &ended_in)
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .status()
            .unwrap();
        if let Ok(folder) = fs::read_to_string(&ended_in) {
            self.at = PathBuf::from(folder.trim_end());
        }
        String::from_utf8_lossy(&fs::read(&printed).unwrap()).replace(&*self.root.to_string_lossy(), "~")
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Copies a folder without hidden entries: no store, no version control.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|e| (e.path(), e.file_name())).unwrap();
        match (name.as_encoded_bytes().starts_with(b"."), path.is_dir()) {
            (true, _) => {}
            (false, true) => copy(&path, &to.join(name)),
            (false, false) => drop(fs::copy(&path, to.join(name)).unwrap()),
        }
    }
}

/// The lines of a text without what varies.
fn comparable(text: &str) -> Vec<String> {
    // How full this machine's disk is is not the document's business.
    let full = |line: &&str| {
        line.starts_with("warning: only [SIZE] are free on the disk")
            || line.starts_with("hint: `avow store collect --dry-run` shows what could go")
    };
    let text = squeezed(&processes(&normalised(text)));
    text.lines().filter(|line| !full(line)).map(str::to_owned).collect()
}

/// `process 4711` without the number.
fn processes(text: &str) -> String {
    let mut parts = text.split("process ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = if rest.len() < part.len() { "[PID]" } else { "" };
        write!(out, "process {number}{rest}").unwrap();
    }
    out
}

/// Whether lines fit a pattern in which a line `…` stands for any number of lines.
fn fits(expected: &[String], found: &[String]) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((first, rest)) if first.trim() == GAP => {
            (0..=found.len()).any(|skip| fits(rest, &found[skip..]))
        }
        Some((first, rest)) => {
            found.split_first().is_some_and(|(line, more)| line_fits(first, line) && fits(rest, more))
        }
    }
}

/// Whether a line fits one in which `…` stands for any text.
fn line_fits(expected: &str, found: &str) -> bool {
    let Some((before, after)) = expected.split_once(GAP) else { return expected == found };
    let Some(rest) = found.strip_prefix(before) else { return false };
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| line_fits(after, &rest[at..]))
}

/// Two texts beside each other, lines that differ marked.
fn beside(expected: &[String], found: &[String]) -> String {
    let width = expected.iter().map(|line| line.chars().count()).chain([8]).max().unwrap_or(8);
    let mut out = format!("    {:<width$} | found\n", "expected");
    for number in 0..expected.len().max(found.len()) {
        let side = |lines: &[String]| lines.get(number).cloned().unwrap_or_default();
        let (left, right) = (side(expected), side(found));
        let mark = if line_fits(&left, &right) { ' ' } else { '!' };
        writeln!(out, "  {mark} {left:<width$} | {right}").unwrap();
    }
    out
}

/// Carries a document out; what does not fit, in words.
fn carry_out(name: &str, text: &str, blocks: Blocks) -> (usize, String) {
    let mut failures = String::new();
    let mut run = 0;
    let steps = steps(text, blocks);
    if !steps.iter().any(|step| matches!(step, Step::Command { .. })) {
        return (0, failures);
    }
    let mut place = Place::new();
    for step in steps {
        match step {
            Step::File { path, text } => {
                let path = place.at.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Step::Command { line, command, expected } => {
                run += 1;
                let printed = place.run(&command);
                let (expected, found) = (comparable(&expected.join("\n")), comparable(&printed));
                if !fits(&expected, &found) {
                    write!(failures, "{name}, line {line}: $ {command}\n{}\n", beside(&expected, &found))
                        .unwrap();
                }
            }
        }
    }
    (run, failures)
}

#[test]
fn the_readme_does_what_it_shows() {
    let path = repository().join("README.md");
    let text = fs::read_to_string(&path).expect("the project has a README");
    let (run, failures) = carry_out("README.md", &text, Blocks::AllBut(SKIPPED));
    assert!(run > 0, "the README shows no command that can be tested");
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn the_guides_do_what_they_show() {
    let mut guides: Vec<PathBuf> =
        fs::read_dir(repository().join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    guides.sort();
    let (mut run, mut failures) = (0, String::new());
    for guide in guides.iter().filter(|path| path.extension().is_some_and(|e| e == "md")) {
        let name = guide.file_name().unwrap().to_string_lossy().into_owned();
        let (commands, found) = carry_out(&name, &fs::read_to_string(guide).unwrap(), Blocks::Only(TESTED));
        run += commands;
        failures.push_str(&found);
    }
    assert!(run > 0, "no guide shows a command that is tested");
    assert!(failures.is_empty(), "{failures}");
}

const SMALL: &str = "\
Text.

```sh
$ not a console block
```

```yaml
# file: sub/a.yaml
a: 1
```

```console
# not run by the test
$ exit 3
```

```console
$ mkdir p && cd p
$ cat <<END
> one
> two   words
> END
one
two words
$ pwd; cat ../sub/a.yaml
~/p
…
a: 1
```
";

#[test]
fn a_document_is_read_into_files_and_commands() {
    let steps = steps(SMALL, Blocks::AllBut(SKIPPED));
    let commands: Vec<&str> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Command { command, .. } => Some(command.as_str()),
            Step::File { .. } => None,
        })
        .collect();
    assert_eq!(commands, ["mkdir p && cd p", "cat <<END\none\ntwo   words\nEND", "pwd; cat ../sub/a.yaml"]);
    let file = Step::File { path: "sub/a.yaml".to_owned(), text: "# file: sub/a.yaml\na: 1\n".to_owned() };
    assert_eq!(steps[0], file);
    assert!(matches!(&steps[3], Step::Command { line: 25, .. }), "{:?}", steps[3]);
}

#[test]
fn what_a_document_shows_is_compared_with_what_happens() {
    assert_eq!(carry_out("small", SMALL, Blocks::AllBut(SKIPPED)), (3, String::new()));
    let wrong = SMALL.replace("one\ntwo words", "one\nthree words");
    let (_, failures) = carry_out("small", &wrong, Blocks::AllBut(SKIPPED));
    assert!(failures.contains("small, line 19: $ cat <<END"), "{failures}");
    assert!(failures.contains("! three words | two words"), "{failures}");
    assert!(!failures.contains("pwd"), "{failures}");
}

#[test]
fn only_marked_blocks_of_a_guide_are_run() {
    let guide = "```console\n$ false shown\n```\n\n```console\n# tested\n$ echo a\na\n```\n";
    assert_eq!(carry_out("guide", guide, Blocks::Only(TESTED)), (1, String::new()));
}

#[test]
fn a_gap_stands_for_any_number_of_lines_and_what_varies_for_itself() {
    let fit = |expected: &str, found: &str| fits(&comparable(expected), &comparable(found));
    assert!(fit("a\n…\nd", "a\nb\nc\nd"));
    assert!(fit("…\nd", "d"));
    assert!(!fit("a\n…\nd", "a\nb"));
    assert!(fit("good … here …", "good  is found here and there"));
    assert!(!fit("good … here", "good  is found"));
    assert!(fit("run 20261130-094124-3f2a: done in 1.2 s", "run 20270101-000000-ffff: done in 34 ms"));
    assert!(fit("running (process 12)", "running (process 98765)"));
    assert!(!fit("q 0.0078", "q 0.0079"));
    assert!(fit("processes are ended", "processes are ended"));
}
