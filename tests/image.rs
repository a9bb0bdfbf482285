//! Stages that run in an image: what it is enters the action, wherever it is had from, and the stage finds in it what the
//! image holds and what it was given, and nothing else of the machine.
//!
//! The images are made here from programs of this machine, and run by `podman`.

use std::fs;

use avow_testkit::{Image, Sandbox};

/// A project whose stage runs in the image `env/`, whose file `/etc/inside` says `first`.
fn project(run: &str) -> (Sandbox, Image) {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let spec = format!(
        "avow: 1\nexperiment: imaged\nstages:\n  make:\n    run: {run}\n    environment: {{image: env/}}\n    \
         inputs: {{data: data.txt}}\n    outputs: {{out: {{path: out.txt, optional: true}}}}\n"
    );
    sandbox.file("avow.toml", "").file("spec.yaml", spec).file("data.txt", "given\n");
    let image = Image::new(sandbox.path("env"), "first");
    (Image::runtime(sandbox), image)
}

const INSIDE: &str = "cat /etc/inside ${inputs.data} > ${outputs.out}";

#[track_caller]
fn made(sandbox: &Sandbox) -> String {
    sandbox.avow(&["get", "make.out", "-o", "copy.txt"]).expect_code(0);
    let text = sandbox.read("copy.txt");
    sandbox.remove("copy.txt");
    text
}

#[test]
fn a_stage_runs_in_the_image_and_its_content_decides_about_reuse() {
    let (sandbox, image) = project(INSIDE);
    assert_eq!(sandbox.executes(&["run"]), ["make"]);
    assert_eq!(made(&sandbox), "firstgiven\n");
    assert_eq!(sandbox.history().latest().attempt("make").host.confinement, "image+podman+offline");
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
    // The same image in another place and form is the same environment.
    fs::create_dir(sandbox.path("kept")).expect("it is ours");
    image.archive(&sandbox.path("kept/image.tar"));
    sandbox.replace("spec.yaml", "image: env/", "image: kept/image.tar");
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
    sandbox.remove("env");
    // Another image is another environment.
    Image::new(sandbox.path("env"), "second");
    sandbox.replace("spec.yaml", "image: kept/image.tar", "image: env/");
    let explained = sandbox.avow(&["explain", "make"]).with_code(0);
    assert!(explained.stdout.contains("image changed: sha256:"), "{}", explained.stdout);
    assert_eq!(sandbox.executes(&["run"]), ["make"]);
    assert_eq!(made(&sandbox), "secondgiven\n");
    let lineage = sandbox.avow(&["lineage", "make.out"]).with_code(0);
    assert!(lineage.stdout.contains("image env (sha256:"), "{}", lineage.stdout);
    // The archive runs as well.
    sandbox.replace("spec.yaml", "image: env/", "image: kept/image.tar");
    sandbox.replace("spec.yaml", "run: cat", "run: cat ${inputs.data}");
    assert_eq!(sandbox.executes(&["run"]), ["make"]);
    assert_eq!(made(&sandbox), "given\nfirstgiven\n");
}

#[test]
fn nothing_of_the_machine_is_inside_and_inputs_cannot_be_written() {
    let (sandbox, _) = project(
        "\"for p in /usr/bin/python3 /work /home/* $HOME/.ssh; do test ! -e $p; done; (echo more >> ${inputs.data}) || echo kept > ${outputs.out}\"",
    );
    sandbox.avow(&["run"]).expect_code(0);
    assert_eq!(made(&sandbox), "kept\n");
    sandbox.avow(&["store", "check"]).expect_code(0);
}

#[test]
fn exit_codes_variables_and_limits_are_as_outside() {
    let (sandbox, _) = project("\"test $LEVEL = 3; cat missing-file\"");
    sandbox.replace("spec.yaml", "    inputs:", "    env: {LEVEL: 3}\n    inputs:");
    let run = sandbox.avow(&["run"]).with_code(1);
    assert!(run.stderr.contains("exit code 1"), "{}", run.stderr);
    let log = sandbox.avow(&["log", "make"]).with_code(0);
    assert!(format!("{}{}", log.stdout, log.stderr).contains("missing-file"), "{}", log.stdout);
    sandbox.replace("spec.yaml", "cat missing-file", "sleep 60");
    sandbox.replace("spec.yaml", "    inputs:", "    timeout: 1s\n    inputs:");
    let run = sandbox.avow(&["run"]).with_code(1);
    assert!(run.stderr.contains("timed out") || run.stderr.contains("timeout"), "{}", run.stderr);
    let left = sandbox.command("podman").args(["ps", "--all", "--quiet"]).output().expect("podman runs");
    assert_eq!(String::from_utf8_lossy(&left.stdout), "", "a container is left");
}

#[test]
fn a_damaged_image_does_not_run() {
    let (sandbox, image) = project(INSIDE);
    let layer = image.layer();
    let mut bytes = fs::read(&layer).expect("it is ours");
    let at = bytes.windows(5).position(|window| window == b"first").expect("the layer is not compressed");
    bytes[at] = b'F';
    fs::write(&layer, bytes).expect("it is ours");
    let run = sandbox.avow(&["run"]).with_code(8);
    assert!(run.stderr.contains("the image `env` cannot be had"), "{}", run.stderr);
    // Its manifest is looked at before anything runs.
    let index = sandbox.read("env/index.json");
    let digest = index.split("sha256:").nth(1).and_then(|rest| rest.get(..64)).expect("it names a manifest");
    sandbox.file(&format!("env/blobs/sha256/{digest}"), "{}");
    let run = sandbox.avow(&["run"]).with_code(3);
    assert!(run.stderr.contains("its manifest is not the one that its index names"), "{}", run.stderr);
}

#[test]
fn without_a_runtime_it_is_said_what_is_missing() {
    let (sandbox, _) = project(INSIDE);
    let sandbox = sandbox.env("PATH", "/nowhere");
    let run = sandbox.avow(&["run"]).with_code(8);
    for part in ["runs in the image `env`", "neither `podman` nor `docker` was found on PATH"] {
        assert!(run.stderr.contains(part), "no `{part}` in: {}", run.stderr);
    }
}

#[test]
fn a_tag_pins_nothing_and_a_digest_does() {
    let (sandbox, _) = project(INSIDE);
    sandbox.replace("spec.yaml", "image: env/", "image: \"example.org/tools:latest\"");
    let refused = sandbox.avow(&["register"]).with_code(3);
    for part in ["is a tag, which may come to mean another image", "--accept-unpinned"] {
        assert!(refused.stderr.contains(part), "no `{part}` in: {}", refused.stderr);
    }
    let digest = format!("example.org/tools@sha256:{}", "a".repeat(64));
    sandbox.replace("spec.yaml", "example.org/tools:latest", &digest);
    sandbox.avow(&["register"]).expect_code(0);
    let full = sandbox.avow(&["check", "--full"]).with_code(0);
    assert!(full.stdout.contains(&digest), "{}", full.stdout);
    for wrong in ["example.org/tools@sha256:12", "--privileged", "missing.tar"] {
        sandbox.replace("spec.yaml", &digest, wrong);
        sandbox.avow(&["check"]).expect_code(3);
        sandbox.replace("spec.yaml", wrong, &digest);
    }
}
