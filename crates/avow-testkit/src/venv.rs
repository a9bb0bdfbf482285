//! Virtual environments of Python, made without the network.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::Sandbox;

/// A virtual environment beside a project, with a search path that finds it first.
#[derive(Debug)]
pub struct Venv {
    /// Where its packages lie.
    pub site: PathBuf,
    /// A search path that finds its programs first.
    pub path: String,
}

impl Venv {
    /// Makes one beside a project.
    pub fn new(sandbox: &Sandbox, name: &str) -> Venv {
        let folder = sandbox.root().with_file_name(name);
        let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&folder).status();
        assert!(made.is_ok_and(|status| status.success()), "python3 makes a virtual environment");
        let lib = fs::read_dir(folder.join("lib")).expect("it has a library").next().expect("of one version");
        let site = lib.expect("it is readable").path().join("site-packages");
        let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap_or_default());
        Venv { site, path }
    }

    /// Installs a package as an installer does: files, metadata and the record of the files.
    pub fn install(&self, name: &str, version: &str, source: &str, requires: &str) {
        for entry in fs::read_dir(&self.site).expect("it is a folder").flatten() {
            if entry.file_name().to_string_lossy().starts_with(&format!("{name}-")) {
                fs::remove_dir_all(entry.path()).expect("it is ours");
            }
        }
        let about = self.site.join(format!("{name}-{version}.dist-info"));
        fs::create_dir_all(&about).expect("it is ours");
        fs::write(self.site.join(format!("{name}.py")), source).expect("it is ours");
        let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}\n");
        fs::write(about.join("METADATA"), metadata).expect("it is ours");
        let digest = avow_model::digest::BlobDigest::of(source.as_bytes());
        let record = format!("{name}.py,sha256={digest},{}\n", source.len());
        fs::write(about.join("RECORD"), record).expect("it is ours");
    }
}
