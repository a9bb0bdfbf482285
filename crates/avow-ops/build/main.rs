//! Computes the identity of every operation (see `identity.rs`) and hands it to the crate as an environment
//! variable.
//!
//! An operation is a file of `src/op/`; the identity of `src/op/mlp_train.rs` becomes `AVOW_OP_MLP_TRAIN`.

mod closure;
mod identity;
mod lock;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use closure::Sources;
use identity::{Machine, Workspace};
use lock::Lock;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let crates = here.parent().ok_or("the crate has no parent folder")?;
    let root = here.ancestors().find(|p| p.join("Cargo.lock").is_file()).ok_or("there is no Cargo.lock")?;
    let workspace = Workspace {
        sources: Sources::new(crates),
        lock: Lock::parse(&fs::read_to_string(root.join("Cargo.lock"))?),
        requirements: fs::read_to_string(root.join("Cargo.toml"))?,
    };
    let machine = Machine {
        compiler: compiler()?,
        target: env::var("TARGET")?,
        features: env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default(),
        optimisation: env::var("OPT_LEVEL")?,
    };
    watch(&[&here.join("src"), &here.join("build"), &root.join("Cargo.lock"), &root.join("Cargo.toml")]);
    for operation in operations(&here.join("src/op"))? {
        let reached = workspace.sources.reached_from("avow_ops", &["op", &operation])?;
        watch(&reached.files.iter().map(|f| f.path.as_path()).collect::<Vec<_>>());
        let identity = identity::of(&workspace, &reached, &machine)?;
        println_directive(&format!("rustc-env=AVOW_OP_{}={identity}", operation.to_uppercase()));
    }
    Ok(())
}

/// The file stems of the operations, sorted.
fn operations(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut stems = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "rs") {
            let stem = path.file_stem().and_then(|s| s.to_str()).ok_or("a file name that is not UTF-8")?;
            stems.push(stem.to_owned());
        }
    }
    stems.sort();
    Ok(stems)
}

/// What `rustc -vV` says: version, commit, host and the version of LLVM.
fn compiler() -> Result<String, Failure> {
    let output = Command::new(env::var("RUSTC")?).arg("-vV").output()?;
    Ok(String::from_utf8(output.stdout)?)
}

fn watch(paths: &[&Path]) {
    for path in paths {
        println_directive(&format!("rerun-if-changed={}", path.display()));
    }
}

#[expect(clippy::print_stdout, reason = "a build script speaks to cargo on its standard output")]
fn println_directive(text: &str) {
    println!("cargo:{text}");
}
