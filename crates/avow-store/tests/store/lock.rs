//! The locks between processes, and finding the project.

use std::fs;
use std::ops::ControlFlow;

use avow_model::digest::ActionDigest;
use avow_store::lock::LockError;
use avow_store::{ActionLocks, Project, RunLock, StoreError};

use crate::fixture::Fixture;

#[test]
fn many_share_and_one_is_alone() {
    let fixture = Fixture::new();
    let (one, other) =
        (RunLock::try_share(&fixture.project).unwrap(), RunLock::try_share(&fixture.project).unwrap());
    assert!(matches!(RunLock::try_acquire(&fixture.project), Err(LockError::Held { .. })));
    drop((one, other));
    let alone = RunLock::try_acquire(&fixture.project).unwrap();
    let us = std::process::id();
    for refused in [RunLock::try_acquire(&fixture.project), RunLock::try_share(&fixture.project)] {
        assert!(matches!(refused, Err(LockError::Held { holder: Some(pid), .. }) if pid == us));
    }
    drop(alone);
    RunLock::try_share(&fixture.project).unwrap();
    let probes = fs::read_dir(fixture.project.store()).unwrap().filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().contains("probe"))
    });
    assert_eq!(probes.count(), 0, "trying the locks leaves nothing");
}

#[test]
fn an_action_is_held_by_one_run_until_it_lets_go_or_dies() {
    let fixture = Fixture::new();
    let (one, other) =
        (ActionLocks::open(&fixture.project).unwrap(), ActionLocks::open(&fixture.project).unwrap());
    let [a, b] = [1, 2].map(|byte| ActionDigest::from_bytes([byte; 32]));
    assert!(one.try_take(a).unwrap() && one.try_take(a).unwrap(), "what is ours stays ours");
    assert!(!other.try_take(a).unwrap());
    assert!(other.try_take(b).unwrap(), "another action is free");
    assert_eq!(
        [a, b].map(|action| one.is_taken(action).unwrap()),
        [false, true],
        "our own is not in our way"
    );
    assert_eq!([a, b].map(|action| other.is_taken(action).unwrap()), [true, false]);
    one.release(a).unwrap();
    assert!(other.try_take(a).unwrap());
    drop(other);
    assert!(one.try_take(a).unwrap() && one.try_take(b).unwrap());
}

#[test]
fn a_waiter_gets_the_lock_when_it_is_free_or_gives_up() {
    let fixture = Fixture::new();
    let mut held = Some(RunLock::try_acquire(&fixture.project).unwrap());
    let gave_up = RunLock::acquire(&fixture.project, |_| ControlFlow::Break(()));
    assert!(matches!(gave_up, Err(LockError::GaveUp { .. })));
    let mut asked = 0;
    RunLock::acquire(&fixture.project, |holder| {
        assert_eq!(holder, Some(std::process::id()));
        asked += 1;
        drop(held.take());
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(asked, 1);
}

#[test]
fn the_root_is_the_nearest_avow_toml_else_git_else_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    let deep = top.join("git/inner/deep");
    fs::create_dir_all(&deep).unwrap();
    let root = || Project::discover(&deep).unwrap().root().to_owned();
    assert_eq!(root(), deep);
    fs::create_dir(top.join("git/.git")).unwrap();
    assert_eq!(root(), top.join("git"));
    fs::write(top.join("avow.toml"), "").unwrap();
    assert_eq!(root(), top);
    fs::write(top.join("git/inner/avow.toml"), "").unwrap();
    assert_eq!(root(), top.join("git/inner"));
    assert!(!root().join(".avow").exists(), "looking creates nothing");
}

#[test]
fn a_store_says_its_format_and_hides_from_git() {
    let fixture = Fixture::new();
    let store = fixture.project.store();
    assert_eq!(fs::read_to_string(store.join(".gitignore")).unwrap(), "*\n");
    assert_eq!(fs::read_to_string(store.join("format")).unwrap(), "1\n");
    fixture.project.create().unwrap();
    assert!(fixture.project.check_format().unwrap());
    fs::write(store.join("format"), "2\n").unwrap();
    assert!(matches!(fixture.project.create(), Err(StoreError::Format { found, .. }) if found == "2"));
}
