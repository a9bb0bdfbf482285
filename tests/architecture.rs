//! The crates depend on one another as `ARCHITECTURE.md` says, and on nothing else of ours.
//!
//! The table of that page is the only list: this test reads it, asks cargo for the edges and compares. A row
//! without a crate is accepted (a crate exists when it has a feature); a crate without a row, or an edge
//! without a word in its row, is not.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One row of the table.
#[derive(Debug)]
struct Row {
    layer: u32,
    may: BTreeSet<String>,
    pure: bool,
}

/// One crate as cargo knows it.
#[derive(Debug)]
struct Member {
    folder: PathBuf,
    /// What it needs to be built and to run.
    needs: BTreeSet<String>,
    /// What only its tests need.
    tests: BTreeSet<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The rows of the table `| layer | crate | owns | may depend on | I/O |`, by crate.
fn rows() -> BTreeMap<String, Row> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page exists");
    let cells = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|cell| cell.replace('`', "").trim().to_owned()).collect()
    };
    let mut lines = text.lines().map(cells);
    let heading = |row: &Vec<String>| row.len() == 5 && row[0] == "layer" && row[1] == "crate";
    assert!(lines.any(|row| heading(&row)), "the page has the table of crates");
    let table: Vec<Vec<String>> = lines.skip(1).take_while(|row| row.len() == 5).collect();
    let names: BTreeSet<String> = table.iter().map(|row| row[1].clone()).collect();
    let row = |cells: &Vec<String>| {
        let may = match cells[3].as_str() {
            "–" | "-" => BTreeSet::new(),
            "all" => names.iter().filter(|name| **name != cells[1]).cloned().collect(),
            list => list.split(',').map(|name| name.trim().to_owned()).collect(),
        };
        (cells[1].clone(), Row { layer: cells[0].parse().unwrap(), may, pure: cells[4] == "none" })
    };
    table.iter().map(row).collect()
}

/// The workspace's crates by name without `avow-`.
fn members() -> BTreeMap<String, Member> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let ours =
        |package: &serde_json::Value| package["name"].as_str()?.strip_prefix("avow-").map(str::to_owned);
    let packages = metadata["packages"].as_array().unwrap();
    let member = |package: &serde_json::Value| {
        let dependencies = package["dependencies"].as_array().unwrap();
        let of = |test: bool| {
            let kept = dependencies.iter().filter(|d| (d["kind"].as_str() == Some("dev")) == test);
            kept.filter_map(ours).collect()
        };
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned();
        (
            ours(package).expect("crates are called `avow-…`"),
            Member { folder, needs: of(false), tests: of(true) },
        )
    };
    packages.iter().map(member).collect()
}

#[test]
fn every_edge_between_crates_is_in_the_table() {
    let (rows, members) = (rows(), members());
    let mut wrong = Vec::new();
    for (name, member) in members.iter().filter(|(name, _)| *name != "testkit") {
        let Some(row) = rows.get(name) else {
            wrong.push(format!("{name} has no row"));
            continue;
        };
        wrong.extend(member.needs.difference(&row.may).map(|other| format!("{name} -> {other}")));
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn the_table_allows_only_lower_layers() {
    let rows = rows();
    assert!(rows.contains_key("model") && rows.contains_key("cli"), "{rows:?}");
    for (name, row) in &rows {
        for other in &row.may {
            assert!(rows[other].layer < row.layer, "{name} may depend on {other}, which is no lower");
        }
    }
}

#[test]
fn the_testkit_is_for_tests_only() {
    let members = members();
    for (name, member) in &members {
        assert!(!member.needs.contains("testkit"), "{name} needs the testkit to be built");
    }
    // It tests crates of every layer, so it may know only the vocabulary they share.
    assert_eq!(members["testkit"].needs, BTreeSet::from(["model".to_owned()]));
    assert!(members["cli"].tests.contains("testkit"));
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for (name, member) in members() {
        let manifest: toml::Table =
            toml::from_str(&fs::read_to_string(member.folder.join("Cargo.toml")).unwrap()).unwrap();
        let workspace = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        assert_eq!(
            workspace.and_then(toml::Value::as_bool),
            Some(true),
            "{name} has `[lints] workspace = true`"
        );
    }
}

#[test]
fn libraries_are_silent() {
    let manifest: toml::Table =
        toml::from_str(&fs::read_to_string(root().join("Cargo.toml")).unwrap()).unwrap();
    let lints = &manifest["workspace"]["lints"]["clippy"];
    let silent = ["print_stdout", "print_stderr", "exit"];
    for lint in silent {
        assert_eq!(lints[lint].as_str(), Some("deny"), "{lint}");
    }
    // No library lifts them again. The testkit's and the examples' words are for developers.
    let libraries = members().into_iter().filter(|(name, _)| name != "cli");
    let lifted: Vec<PathBuf> = libraries
        .flat_map(|(_, member)| sources(&member.folder.join("src")))
        .filter(|path| {
            let text = fs::read_to_string(path).unwrap();
            silent.iter().any(|lint| text.contains(&format!("clippy::{lint}")))
        })
        .collect();
    assert!(lifted.is_empty(), "{lifted:?}");
}

#[test]
fn crates_without_effects_are_kept_from_them() {
    let (rows, members) = (rows(), members());
    let pure: Vec<&String> = rows.iter().filter(|(_, row)| row.pure).map(|(name, _)| name).collect();
    assert!(pure.len() >= 4, "model, stats, spec and planner do no I/O; the table says {pure:?}");
    for name in pure {
        // The nearest clippy.toml wins and does not merge, so each of these crates needs one of its own.
        let path = members[name].folder.join("clippy.toml");
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let clippy: toml::Table = toml::from_str(&text).unwrap();
        let banned: Vec<&str> = clippy["disallowed-methods"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|entry| entry.as_str().or_else(|| entry["path"].as_str()))
            .collect();
        for group in ["std::time", "std::env", "std::process", "std::fs"] {
            assert!(banned.iter().any(|path| path.starts_with(group)), "{name} bans nothing of {group}");
        }
    }
}

/// The Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|suffix| suffix == "rs") {
            found.push(path);
        }
    }
    found
}
