//! What a stage sees and what it can touch: exactly what was declared.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use avow_model::attempt::Outcome;
use avow_model::digest::Artifact;
use avow_model::tree::Entry;
use avow_store::BlobStore;
use support::{Bench, reads, sh, slot, words, writes};

#[tokio::test]
async fn the_environment_holds_the_base_and_what_was_declared() {
    let bench = Bench::new();
    let mut action = words(&["env", "-0"]);
    action.env = [("OMP_NUM_THREADS", "2"), ("SPACED", "a b\nc")].map(|(n, v)| (n.into(), v.into())).into();
    let done = bench.run(&action).await;
    let text = bench.text(done.stdout);
    let mut lines: Vec<&str> = text.split_terminator('\0').collect();
    lines.sort_unstable();
    let value = |name: &str| {
        let line = lines.iter().find_map(|line| line.strip_prefix(&format!("{name}="))).unwrap();
        line.to_owned()
    };
    let folder =
        format!("{}/{}/tmp", bench.project.work().canonicalize().unwrap().display(), value("AVOW_ATTEMPT"));
    let expected = [
        format!("AVOW_ATTEMPT={}", value("AVOW_ATTEMPT")),
        format!("HOME={}", std::env::var("HOME").unwrap()),
        "LANG=C.UTF-8".to_owned(),
        "MKL_NUM_THREADS=1".to_owned(),
        "OMP_NUM_THREADS=2".to_owned(),
        "OPENBLAS_NUM_THREADS=1".to_owned(),
        format!("PATH={}", std::env::var("PATH").unwrap()),
        "PYTHONDONTWRITEBYTECODE=1".to_owned(),
        "PYTHONHASHSEED=0".to_owned(),
        "RAYON_NUM_THREADS=1".to_owned(),
        "SPACED=a b\nc".to_owned(),
        format!("TMPDIR={folder}"),
        "TZ=UTC".to_owned(),
        format!("XDG_CACHE_HOME={folder}/cache"),
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn the_working_folder_holds_code_inputs_and_the_parents_of_outputs() {
    for bench in Bench::each() {
        let code = bench.tree(&[
            ("train.py", bench.file(b"pass\n", false)),
            ("lib/run.sh", bench.file(b"#!/bin/sh\n", true)),
            ("data/in.csv", bench.file(b"stale\n", false)),
        ]);
        let data = bench.tree(&[
            ("a/b", bench.file(b"deep\n", false)),
            ("tool", bench.file(b"#!/bin/sh\necho tool\n", true)),
            ("void", Entry::Empty),
            ("link", Entry::Link { target: "a/b".to_owned() }),
        ]);
        let mut action =
            sh("find . -mindepth 1 | sort; cat data/in.csv inputs/d/link; inputs/d/tool; test -x lib/run.sh");
        action.code = Some(code);
        let action = reads(action, "data/in.csv", bench.put(b"fresh\n"));
        let action = reads(action, "inputs/d", Artifact::Tree(data));
        let action = writes(action, "o", avow_model::action::Slot { optional: true, ..slot("out/deep/o") });
        let done = bench.run(&action).await;
        assert_eq!(done.outcome, Outcome::Succeeded, "{}", bench.text(done.stderr));
        let expected = "./data\n./data/in.csv\n./inputs\n./inputs/d\n./inputs/d/a\n./inputs/d/a/b\n\
            ./inputs/d/link\n./inputs/d/tool\n./inputs/d/void\n./lib\n./lib/run.sh\n./out\n./out/deep\n\
            ./train.py\nfresh\ndeep\ntool\n";
        assert_eq!(bench.text(done.stdout), expected);
    }
}

#[tokio::test]
async fn standard_input_is_empty_and_only_three_descriptors_are_inherited() {
    let bench = Bench::new();
    // `ls` itself opens one.
    let done = bench.run(&sh("wc -c; ls /proc/self/fd | wc -l")).await;
    assert_eq!(bench.text(done.stdout), "0\n4\n");
}

#[tokio::test]
async fn ignored_signals_of_the_caller_are_not_inherited() {
    let bench = Bench::new();
    let done = bench.run(&words(&["grep", "SigIgn", "/proc/self/status"])).await;
    let text = bench.text(done.stdout);
    // The C library keeps two signals above 31 for itself.
    let ignored = u64::from_str_radix(text.trim().strip_prefix("SigIgn:\t").unwrap(), 16).unwrap();
    assert_eq!(ignored & 0x7fff_ffff, 0, "{text}");
}

/// Everything a program may try on an input; each line must not end the script.
const ATTACKS: &str = "
    (echo overwritten > in) || true
    (echo appended >> in) || true
    truncate -s 0 in || true
    chmod 777 in || true
    touch -d 2001-01-01 in || true
    dd if=/dev/zero of=in bs=1 count=1 conv=notrunc || true
    cp /dev/null in || true
    ln -L in hard || true
    (echo through > hard) || true
    python3 -c 'import os; p = os.path.realpath(\"in\"); os.rename(p, p + \"x\")' || true
    python3 -c 'import os; p = os.path.realpath(\"in\"); os.unlink(p)' || true
    mv in elsewhere || true
    (echo second > elsewhere) || true
    rm -f elsewhere
    (echo own > in) && cat in
";

#[tokio::test]
async fn no_attack_on_an_input_changes_a_blob() {
    for bench in Bench::each() {
        let artifact = bench.put(b"evidence\n");
        let path = bench.blobs.open_path(artifact.blob()).unwrap().unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        let done = bench.run(&reads(sh(ATTACKS), "in", artifact)).await;
        assert_eq!(done.outcome, Outcome::Succeeded, "{}", bench.text(done.stderr));
        assert!(bench.text(done.stdout).ends_with("own\n"), "the place itself belongs to the stage");
        assert_eq!(bench.blobs.read(artifact.blob()).unwrap(), b"evidence\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode(), mode);
    }
}

#[tokio::test]
async fn a_folder_input_can_be_added_to_but_not_written_through() {
    for bench in Bench::each() {
        let tree = bench.tree(&[("f", bench.file(b"evidence\n", false))]);
        let text = "echo new > d/g; (echo overwritten > d/f) || true; mv d/f d/h; ls d";
        let done = bench.run(&reads(sh(text), "d", Artifact::Tree(tree))).await;
        assert_eq!(bench.text(done.stdout), "g\nh\n");
        let digest = avow_model::digest::BlobDigest::of(b"evidence\n");
        assert_eq!(bench.blobs.read(digest).unwrap(), b"evidence\n");
    }
}

#[tokio::test]
async fn nothing_outside_the_attempt_is_writable() {
    let bench = Bench::new();
    if !bench.protected() {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("file");
    fs::write(&file, "precious").unwrap();
    let text = format!(
        "cd {0}; (echo x > file) || echo no; (echo x > new) || echo no; mkdir d || echo no; mv file f || echo no; \
         rm file || echo no; ln -s a b || echo no; truncate -s 0 file || echo no; (echo x > /tmp/avow-x) || echo no",
        outside.path().display()
    );
    let done = bench.run(&sh(&text)).await;
    assert_eq!(bench.text(done.stdout), "no\n".repeat(8), "{}", bench.text(done.stderr));
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn what_programs_usually_need_is_writable() {
    let bench = Bench::new();
    let text = "echo x > /dev/null; echo x > $TMPDIR/x; mkdir -p $XDG_CACHE_HOME/c; mktemp; \
        python3 -c 'import multiprocessing as m; m.Semaphore(1); m.Queue().put(1)'; echo said > /dev/stderr; \
        mkdir a b; echo x > a/x; mv a/x b/x; ln b/x b/y";
    let done = bench.run(&sh(text)).await;
    assert_eq!(done.outcome, Outcome::Succeeded, "{}", bench.text(done.stderr));
    assert_eq!(bench.text(done.stderr), "said\n");
}

#[tokio::test]
async fn attempts_do_not_see_each_others_temporary_files() {
    let bench = Bench::new();
    let mut folders = BTreeSet::new();
    for _ in 0..2 {
        let done = bench.run(&sh("ls $TMPDIR | wc -l; touch $TMPDIR/mine; echo $TMPDIR")).await;
        let text = bench.text(done.stdout);
        let (count, folder) = text.split_once('\n').unwrap();
        assert_eq!(count, "0");
        folders.insert(folder.to_owned());
    }
    assert_eq!(folders.len(), 2);
}
