//! Images of one's own: a file system of a few programs of this machine as an OCI layout, made without a network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::Sandbox;

/// An OCI layout in a folder.
#[derive(Debug)]
pub struct Image {
    folder: PathBuf,
}

impl Image {
    /// Makes one that holds `sh`, `cat` and `sleep` of this machine with their libraries, and the file `/etc/inside`
    /// with a text. What the text says decides the image's digest.
    pub fn new(folder: impl Into<PathBuf>, inside: &str) -> Image {
        let image = Image { folder: folder.into() };
        let root = image.folder.with_extension("root");
        for path in ["etc", "tmp", "proc", "dev", "sys"] {
            fs::create_dir_all(root.join(path)).expect("it is ours");
        }
        fs::write(root.join("etc/inside"), inside).expect("it is ours");
        for program in ["/bin/sh", "/bin/cat", "/bin/sleep"] {
            for file in files_of(program) {
                let at = root.join(file.trim_start_matches('/'));
                fs::create_dir_all(at.parent().expect("it lies in a folder")).expect("it is ours");
                fs::copy(&file, &at).expect("a program of this machine can be copied");
            }
        }
        image.pack(&root);
        fs::remove_dir_all(&root).expect("it is ours");
        image
    }

    fn pack(&self, root: &Path) {
        fs::create_dir_all(self.folder.join("blobs/sha256")).expect("it is ours");
        let layer = self.folder.join("layer.tar");
        tar(root, &layer);
        let bytes = fs::read(&layer).expect("tar wrote it");
        fs::remove_file(&layer).expect("it is ours");
        let (layer, size) = (self.blob(&bytes), bytes.len());
        let config = format!(
            r#"{{"architecture":"amd64","os":"linux","config":{{"Env":["PATH=/bin"]}},"rootfs":{{"type":"layers","diff_ids":["{layer}"]}}}}"#
        );
        let config_digest = self.blob(config.as_bytes());
        let media = "application/vnd.oci.image";
        let manifest = format!(
            r#"{{"schemaVersion":2,"mediaType":"{media}.manifest.v1+json","config":{{"mediaType":"{media}.config.v1+json","digest":"{config_digest}","size":{}}},"layers":[{{"mediaType":"{media}.layer.v1.tar","digest":"{layer}","size":{size}}}]}}"#,
            config.len()
        );
        let digest = self.blob(manifest.as_bytes());
        let index = format!(
            r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"{media}.manifest.v1+json","digest":"{digest}","size":{}}}]}}"#,
            manifest.len()
        );
        fs::write(self.folder.join("index.json"), index).expect("it is ours");
        fs::write(self.folder.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).expect("it is ours");
    }

    fn blob(&self, bytes: &[u8]) -> String {
        let hex = data_encoding::HEXLOWER.encode(&Sha256::digest(bytes));
        fs::write(self.folder.join("blobs/sha256").join(&hex), bytes).expect("it is ours");
        format!("sha256:{hex}")
    }

    /// The largest blob: the layer with its files.
    pub fn layer(&self) -> PathBuf {
        let blobs = fs::read_dir(self.folder.join("blobs/sha256")).expect("it is a folder").flatten();
        blobs
            .map(|entry| entry.path())
            .max_by_key(|path| path.metadata().map_or(0, |m| m.len()))
            .expect("it has one")
    }

    /// The same image as an archive.
    pub fn archive(&self, file: &Path) {
        tar(&self.folder, file);
    }

    /// Gives a project's commands a `podman` that keeps what it stores beside the project, and that works also where this
    /// machine lets nobody raise limits, as in containers.
    pub fn runtime(sandbox: Sandbox) -> Sandbox {
        let folder = sandbox.root().with_file_name("containers");
        fs::create_dir_all(&folder).expect("it is ours");
        let (run, graph) = (folder.join("run"), folder.join("graph"));
        let storage = format!("[storage]\ndriver = \"vfs\"\nrunroot = {run:?}\ngraphroot = {graph:?}\n");
        let engine =
            "[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n";
        let limits = "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n";
        let write = |name: &str, text: String| {
            let file = folder.join(name);
            fs::write(&file, text).expect("it is ours");
            file.to_str().expect("our names are UTF-8").to_owned()
        };
        let storage = write("storage.conf", storage);
        let settings = write("containers.conf", format!("{engine}{limits}"));
        sandbox.env("CONTAINERS_STORAGE_CONF", &storage).env("CONTAINERS_CONF", &settings)
    }
}

/// A program with its libraries and its loader.
fn files_of(program: &str) -> Vec<String> {
    let listed = Command::new("ldd").arg(program).output().expect("ldd lists the libraries of a program");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let libraries = listed.split_whitespace().filter(|word| word.starts_with('/')).map(str::to_owned);
    libraries.chain([program.to_owned()]).collect()
}

fn tar(folder: &Path, file: &Path) {
    let options = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
    let exclude = format!("--exclude={}", file.display());
    let made = Command::new("tar")
        .args(options)
        .arg(exclude)
        .arg("-cf")
        .arg(file)
        .arg("-C")
        .arg(folder)
        .arg(".")
        .status();
    assert!(made.is_ok_and(|status| status.success()), "tar packs a folder");
}
