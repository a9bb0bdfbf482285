//! The value of a secret reaches the stage that names it, and no file that Avow writes.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use avow_testkit::Sandbox;

const VALUE: &str = "hunter2-Q9/zz==key";

const SPEC: &str = "\
avow: 1
experiment: captured
stages:
  fetch:
    kind: capture
    run: sh fetch.sh ${outputs.page}
    secrets: [API_TOKEN]
    outputs: {page: page.txt}
  measure:
    run: sh measure.sh ${inputs.page} ${outputs.result}
    inputs: {page: fetch.page}
    measurements: {result: result.json}
";

/// Says its token in several ways, and writes its length.
const FETCH: &str = "\
echo \"token: $API_TOKEN\"
printf 'user:%s' \"$API_TOKEN\" | base64 >&2
printf '%s' \"$API_TOKEN\" | od -An -tx1 | tr -d ' \\n'
printf '%s' \"${API_TOKEN%????}\"; sleep 0.2; printf '%s\\n' \"${API_TOKEN#??????????????}\"
printf '%d' \"${#API_TOKEN}\" > \"$1\"
";

const MEASURE: &str = "[ -z \"${API_TOKEN:-}\" ]\nprintf '{\"length\": %d}' \"$(cat \"$1\")\" > \"$2\"\n";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC);
    sandbox.file("fetch.sh", FETCH).file("measure.sh", MEASURE);
    sandbox
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Forms of the value that must be nowhere.
fn forms() -> [Vec<u8>; 4] {
    let hex: String = VALUE.bytes().map(|b| format!("{b:02x}")).collect();
    // `user:` is five bytes, so the value begins at the last byte of a group.
    [VALUE.into(), hex.into(), b"h1bnRlcjItUTkv".to_vec(), b"hunter2-Q9/z".to_vec()]
}

#[track_caller]
fn nowhere_in_store(sandbox: &Sandbox) {
    for path in files(&sandbox.path(".avow")) {
        let bytes = fs::read(&path).unwrap();
        for form in forms() {
            let found = bytes.windows(form.len()).any(|window| window == form);
            assert!(!found, "{} holds {}", path.display(), String::from_utf8_lossy(&form));
        }
    }
}

#[test]
fn a_secret_reaches_its_stage_and_nothing_else() {
    let sandbox = project().env("API_TOKEN", VALUE);
    let run = sandbox.avow(&["run", "-v"]).with_code(0);
    assert!(!run.stderr.contains(VALUE) && !run.stdout.contains(VALUE));
    nowhere_in_store(&sandbox);
    let log = sandbox.avow(&["log", "fetch"]).with_code(0).stdout;
    assert!(log.contains("token: [secret API_TOKEN]"), "{log}");
    assert_eq!(log.matches("[secret API_TOKEN]").count(), 4, "{log}");
    let row: serde_json::Value =
        serde_json::from_str(sandbox.avow(&["table", "--json"]).with_code(0).stdout.trim()).unwrap();
    assert_eq!(row["value"], VALUE.len() as f64);
    let (_, attempt) = sandbox.history().attempts().next().unwrap().clone();
    assert_eq!(attempt.terms.secrets, ["API_TOKEN"], "the record names it");
}

#[test]
fn a_missing_secret_ends_a_run_before_anything_is_executed() {
    let sandbox = project();
    let refused = sandbox.avow(&["run"]).with_code(2);
    assert!(refused.stderr.contains("the stage `fetch` needs the secret `API_TOKEN`"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--secrets-file"), "{}", refused.stderr);
    assert_eq!(sandbox.history().attempts().count(), 0);
}

#[test]
fn nobody_needs_a_secret_where_everything_is_reused() {
    let sandbox = project().env("API_TOKEN", VALUE);
    sandbox.avow(&["run"]).expect_code(0);
    let mut without = sandbox.command(env!("CARGO_BIN_EXE_avow"));
    let done = without.arg("run").env_remove("API_TOKEN").output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(sandbox.history().latest().started(), [""; 0]);
}

#[test]
fn an_output_with_a_secret_is_refused_by_name_and_not_kept() {
    let sandbox = project().env("API_TOKEN", VALUE);
    sandbox.file("fetch.sh", "printf '{\"auth\": \"%s\"}' \"$API_TOKEN\" > \"$1\"\n");
    let run = sandbox.avow(&["run", "--keep-failed"]).with_code(1);
    assert!(run.stderr.contains("`page` holds the value of the secret `API_TOKEN`"), "{}", run.stderr);
    assert!(!run.stderr.contains(VALUE));
    nowhere_in_store(&sandbox);
}

#[test]
fn a_folder_is_searched_with_its_names_and_links() {
    for write in [
        "echo x > \"$1/a-$API_TOKEN\"",
        "ln -s \"$API_TOKEN\" \"$1/l\"",
        "mkdir \"$1/d\"; echo $API_TOKEN > \"$1/d/f\"",
    ] {
        let sandbox = project().env("API_TOKEN", "0123456789abcdef");
        sandbox.file("spec.yaml", "avow: 1\nexperiment: folder\nstages:\n  fetch:\n    kind: capture\n    run: sh fetch.sh ${outputs.pages}\n    secrets: [API_TOKEN]\n    outputs: {pages: pages/}\n");
        sandbox.file("fetch.sh", format!("mkdir \"$1\"; {write}\n"));
        let run = sandbox.avow(&["run"]).with_code(1);
        assert!(run.stderr.contains("holds the value of the secret `API_TOKEN`"), "{}", run.stderr);
    }
}

#[test]
fn a_checkpoint_with_a_secret_is_not_kept() {
    let sandbox = project().env("API_TOKEN", VALUE);
    sandbox.replace("spec.yaml", "    secrets:", "    checkpoint: state/\n    secrets:");
    sandbox.file("fetch.sh", "echo \"$API_TOKEN\" > state/session; exit 1\n");
    sandbox.avow(&["run"]).expect_code(1);
    nowhere_in_store(&sandbox);
    assert!(sandbox.list(".avow/checkpoints").is_empty());
}

fn secrets_file(sandbox: &Sandbox, mode: u32) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), format!("OTHER_TOKEN = \"unused value\"\nAPI_TOKEN = \"{VALUE}\"\n")).unwrap();
    fs::set_permissions(file.path(), PermissionsExt::from_mode(mode)).unwrap();
    sandbox.file("avow.toml", format!("[secrets]\nfile = \"{}\"\n", file.path().display()));
    file
}

#[test]
fn a_file_outside_the_project_gives_values_to_those_who_may_read_it_alone() {
    let sandbox = project();
    let _file = secrets_file(&sandbox, 0o600);
    sandbox.avow(&["run"]).expect_code(0);
    nowhere_in_store(&sandbox);
    let open = project();
    let file = secrets_file(&open, 0o640);
    let refused = open.avow(&["run"]).with_code(2).stderr;
    assert!(refused.contains("others may read") && refused.contains("chmod 600"), "{refused}");
    open.file("avow.toml", "").file("mine.toml", format!("API_TOKEN = \"{VALUE}\"\n"));
    let inside = open.avow(&["run", "--secrets-file", "mine.toml"]).with_code(2).stderr;
    assert!(inside.contains("lies in the project"), "{inside}");
    fs::write(file.path(), format!("API_TOKEN = {VALUE}\n")).unwrap();
    fs::set_permissions(file.path(), PermissionsExt::from_mode(0o600)).unwrap();
    let path = file.path().to_str().unwrap();
    let broken = open.avow(&["run", "--secrets-file", path]).with_code(2).stderr;
    assert!(broken.contains("line 1") && !broken.contains("hunter2"), "{broken}");
}

#[test]
fn a_value_that_stands_in_the_spec_is_an_error_and_not_shown() {
    let sandbox = project().env("API_TOKEN", VALUE);
    sandbox.replace("spec.yaml", "sh fetch.sh", &format!("env T='{VALUE}' sh fetch.sh"));
    for args in [&["check"][..], &["check", "--json"], &["run"], &["register"]] {
        let refused = sandbox.avow(args).with_code(3);
        let told = format!("{}{}", refused.stdout, refused.stderr);
        assert!(told.contains("this is the value of the secret `API_TOKEN`"), "{told}");
        assert!(!told.contains(VALUE), "{told}");
    }
}

#[test]
fn a_value_too_short_to_be_told_from_text_is_refused() {
    let sandbox = project().env("API_TOKEN", "abc123");
    let refused = sandbox.avow(&["run"]).with_code(2).stderr;
    assert!(
        refused.contains("`API_TOKEN` is shorter than 8 bytes") && !refused.contains("abc123"),
        "{refused}"
    );
}
