//! `avow doctor`: what this machine offers, and what is wrong with it.

use avow_store::Project;
use serde_json::json;

use crate::args;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::settings::Settings;
use crate::words;

/// One line of the examination.
struct Line {
    name: &'static str,
    good: bool,
    text: String,
    advice: Option<&'static str>,
}

/// Examines the machine and, where there is one, the project.
pub fn doctor(args: &args::Doctor, output: &Output) -> Result<Exit, Failure> {
    let probe = avow_exec::probe();
    let host = avow_exec::describe_host();
    let mut lines = vec![
        line("system", true, format!("{}, {}", host.system, host.cpu)),
        line("slots", true, format!("{} CPUs, {} of memory", probe.cpus, words::bytes(probe.memory))),
        line("confinement", true, confinement(&probe)),
        Line {
            name: "observing reads",
            good: probe.unobserved.is_none(),
            text: match &probe.unobserved {
                None => "with `--confine observe`".to_owned(),
                Some(why) => format!("not here: {why}"),
            },
            advice: Some(
                "a kernel of 5.5 or newer that allows seccomp filters can record what a stage reads",
            ),
        },
        Line {
            name: "write protection",
            good: probe.write_protection,
            text: match (probe.landlock, &probe.without) {
                (Some(abi), None) => format!("Landlock {abi}: stages can write nowhere but their own folder"),
                (_, Some(why)) => format!("none ({why}): inputs are copied for every attempt"),
                (None, None) => "none: inputs are copied for every attempt".to_owned(),
            },
            advice: Some("a kernel of 6.2 or newer with Landlock protects inputs without copying"),
        },
        Line {
            name: "left-over processes",
            good: probe.subreaper,
            text: if probe.subreaper { "are found and ended" } else { "cannot be adopted" }.to_owned(),
            advice: Some("stages that start daemons may leave them behind on this system"),
        },
        open_files(),
        python(),
    ];
    lines.extend(project_lines()?);
    if args.json {
        let rows: Vec<_> = lines
            .iter()
            .map(|l| json!({"name": l.name, "good": l.good, "text": l.text, "advice": l.advice.filter(|_| !l.good)}))
            .collect();
        output.json(&rows)?;
    } else {
        for line in &lines {
            let mark = if line.good { output.coloured("good", 32) } else { output.coloured("look", 33) };
            output.data(format!("{mark}  {:<20} {}", line.name, line.text))?;
            if let (false, Some(advice)) = (line.good, line.advice) {
                output.data(format!("      {advice}"))?;
            }
        }
    }
    Ok(Exit::Done)
}

/// What a stage is kept from by default.
fn confinement(probe: &avow_exec::Probe) -> String {
    let network =
        if probe.network { "and have no TCP unless they capture" } else { "the network is not denied" };
    match probe.confinement() {
        avow_exec::Confinement::Deny => {
            format!("`deny` by default: stages read what they declare and what is installed, {network}")
        }
        level => format!("`{level}` by default: stages can read what they do not declare"),
    }
}

fn line(name: &'static str, good: bool, text: String) -> Line {
    Line { name, good, text, advice: None }
}

fn python() -> Line {
    let found = std::process::Command::new("python3").arg("--version").output();
    match found {
        Ok(out) if out.status.success() => {
            line("python3", true, String::from_utf8_lossy(&out.stdout).trim().to_owned())
        }
        _ => Line {
            name: "python3",
            good: false,
            text: "not found".to_owned(),
            advice: Some("built-in stages need none; experiments with Python scripts do"),
        },
    }
}

fn project_lines() -> Result<Vec<Line>, Failure> {
    let Ok(project) = Project::discover(std::path::Path::new(".")) else { return Ok(Vec::new()) };
    let root = project.root().display().to_string();
    let mut lines = vec![line("project", true, root.clone())];
    let synced = ["Dropbox", "OneDrive", "Google Drive", "iCloud", "Nextcloud", "ownCloud"];
    if let Some(service) = synced.iter().find(|name| root.contains(*name)) {
        lines.push(Line {
            name: "cloud folder",
            good: false,
            text: format!("the project lies in a folder of {service}"),
            advice: Some("such programs rewrite and lock files behind the store; move the project elsewhere"),
        });
    }
    let store = project.store();
    let text = match project.check_format() {
        Ok(true) => format!("{}", store.display()),
        Ok(false) => "none yet".to_owned(),
        Err(error) => {
            lines.push(Line {
                name: "store",
                good: false,
                text: error.to_string(),
                advice: Some("use the version of avow that wrote it"),
            });
            return Ok(lines);
        }
    };
    lines.push(line("store", true, text));
    lines.extend(disk_lines(&project)?);
    Ok(lines)
}

/// What the file system under the store is and can do.
fn disk_lines(project: &Project) -> Result<Vec<Line>, Failure> {
    let probe = avow_store::probe::probe(project).map_err(failure::store)?;
    let least = Settings::of(project)?.store.free.unwrap_or_default();
    let mut lines = vec![
        Line {
            name: "file system",
            good: !probe.network,
            text: if probe.network {
                format!("{}, on another machine", probe.file_system)
            } else {
                probe.file_system
            },
            advice: Some("the store wants a local disk: see docs/systems.md"),
        },
        Line {
            name: "free space",
            good: probe.free >= least,
            text: words::bytes(probe.free),
            advice: Some("`avow store collect --dry-run` shows what could go"),
        },
    ];
    if let Err(reason) = probe.writable {
        lines.push(Line {
            name: "writing",
            good: false,
            text: format!("the store cannot be written: {reason}"),
            advice: Some("results can be read; to run, make the project's folder writable for you"),
        });
    }
    lines.extend(probe.locks.map(|locks| Line {
        name: "locks",
        good: locks,
        text: if locks { "keep a second run away" } else { "do not keep a second run away" }.to_owned(),
        advice: Some("move the project to a local file system: `avow run` refuses to work here"),
    }));
    lines.extend(probe.fine_times.map(|fine| Line {
        name: "time stamps",
        good: fine,
        text: if fine { "tell writes a few milliseconds apart" } else { "are coarse" }.to_owned(),
        advice: Some("files changed in the last seconds are read again instead of being remembered"),
    }));
    lines.extend(probe.clones.map(|clones| {
        let text = if clones { "copies share their blocks" } else { "copies take their own space" };
        line("copies", true, text.to_owned())
    }));
    Ok(lines)
}

/// The limit of open files, which a run with many stages at once needs.
fn open_files() -> Line {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    Line {
        name: "open files",
        good: limit.is_none_or(|limit| limit >= 256),
        text: limit.map_or("no limit".to_owned(), |limit| format!("{limit} at once")),
        advice: Some("raise the limit: `ulimit -n 4096`"),
    }
}
