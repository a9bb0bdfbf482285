//! The lock that makes a process the runner, and finding the project.

use std::fs;
use std::ops::ControlFlow;

use avow_store::lock::LockError;
use avow_store::{Project, RunLock, StoreError};

use crate::fixture::Fixture;

#[test]
fn one_process_runs_and_the_others_learn_which() {
    let fixture = Fixture::new();
    assert_eq!(RunLock::runner(&fixture.project).unwrap(), None);
    let lock = RunLock::try_acquire(&fixture.project).unwrap();
    let us = std::process::id();
    assert_eq!(RunLock::runner(&fixture.project).unwrap(), Some(us));
    let error = RunLock::try_acquire(&fixture.project).unwrap_err();
    assert!(matches!(error, LockError::Held { holder: Some(pid), .. } if pid == us), "{error}");
    drop(lock);
    assert_eq!(RunLock::runner(&fixture.project).unwrap(), None);
    RunLock::try_acquire(&fixture.project).unwrap();
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
