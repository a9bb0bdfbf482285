//! What every executor must do, whatever it is made of.
//!
//! A [`Subject`] is an executor in a fresh place. [`conformance!`] makes a test of each case for a subject;
//! [`real_conformance!`] those that need real processes. An executor that passes is one that the engine can use:
//! it gives the same outcomes, the same blobs and the same logs as any other.
#![allow(dead_code, unused_imports, unused_macros, reason = "each test file uses its part")]

mod cases;
mod local;
mod real;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;

use avow_exec::fake::Act;
use avow_exec::{Cancel, Execution, Executor, Watch};
use avow_model::action::Action;
use avow_model::digest::{Artifact, BlobDigest, TreeDigest};
use avow_model::plan::Terms;
use avow_model::tree::{Entry, Tree};
use avow_store::BlobStore;
use avow_store::blob::put_record;

use crate::support::attempt;

pub use cases::*;
pub use local::Local;
pub use real::*;
pub use worker::{Client, Served, TOKEN, Worker, setup, token};

/// An executor in a place of its own; everything goes with it.
pub trait Subject: Sized {
    /// What is tested.
    type Executor: Executor + Clone + 'static;

    /// A fresh one.
    fn new() -> impl Future<Output = Self>;

    /// The executor.
    fn executor(&self) -> Self::Executor;

    /// The store that its results are to be in.
    fn blobs(&self) -> Arc<dyn BlobStore>;

    /// Where logs are found while they grow: `ATTEMPT/stdout` and `ATTEMPT/stderr`.
    fn work(&self) -> PathBuf;

    /// Tells a subject without processes what an action does. The others find out by themselves.
    fn teach(&self, _action: &Action, _act: Act) {}

    /// What is left of attempts; nothing should be.
    fn leftovers(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn put(&self, bytes: &[u8]) -> Artifact {
        Artifact::Blob(self.blobs().put(bytes).unwrap())
    }

    fn tree(&self, entries: &[(&str, Entry)]) -> TreeDigest {
        let mut tree = Tree::default();
        for (path, entry) in entries {
            tree.insert(path, entry.clone()).unwrap();
        }
        put_record(self.blobs().as_ref(), &tree).unwrap()
    }

    fn file(&self, bytes: &[u8], executable: bool) -> Entry {
        Entry::File { digest: self.blobs().put(bytes).unwrap(), executable }
    }

    fn text(&self, digest: Option<BlobDigest>) -> String {
        digest.map_or(String::new(), |digest| String::from_utf8(self.blobs().read(digest).unwrap()).unwrap())
    }

    fn output(&self, execution: &Execution, name: &str) -> String {
        match execution.outputs.get(name) {
            Some(produced) => self.text(Some(produced.artifact.blob())),
            None => panic!("no output `{name}`: {execution:?}"),
        }
    }

    async fn run(&self, action: &Action) -> Execution {
        self.under(action, &Terms::default()).await
    }

    async fn under(&self, action: &Action, terms: &Terms) -> Execution {
        let watch = Watch::new(Cancel::new().unwrap());
        let done = self.executor().run(&attempt(), action, terms, watch).await.unwrap();
        assert_eq!(self.leftovers(), Vec::<PathBuf>::new(), "something of an attempt stayed behind");
        done
    }
}

/// A test of each named case for a subject.
macro_rules! conformance_of {
    ($subject:ty: $($case:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let subject = <$subject as $crate::suite::Subject>::new().await;
            $crate::suite::$case(&subject).await;
        }
    )*};
}
pub(crate) use conformance_of;

/// The cases that every executor passes, also one without processes.
macro_rules! conformance {
    ($subject:ty) => {
        $crate::suite::conformance_of! { $subject:
            success_publishes_what_was_declared
            an_exit_code_is_a_failure_that_publishes_nothing
            a_signal_from_elsewhere_is_named
            a_timeout_is_not_a_failure_of_its_own_making
            too_much_memory_is_ended_and_proved
            every_missing_output_is_named
            an_optional_output_may_be_absent_and_others_are_ignored
            only_the_digest_of_an_output_is_kept_where_that_was_asked_for
            a_cancelled_attempt_ends
            what_was_cancelled_before_it_began_is_never_started
            many_attempts_at_once_do_not_mix
        }
    };
}
pub(crate) use conformance;

/// The cases for executors that start processes.
macro_rules! real_conformance {
    ($subject:ty) => {
        $crate::suite::conformance_of! { $subject:
            both_logs_are_kept_apart_and_silence_leaves_none
            a_huge_log_is_kept_whole
            a_log_is_seen_while_it_grows
            a_log_that_the_program_cuts_short_is_what_it_left
            the_shell_stops_at_the_first_error
            the_environment_holds_what_was_declared_and_nothing_of_the_callers
            inputs_keep_folders_modes_links_and_empty_folders
            a_folder_keeps_files_modes_links_and_empty_folders
            thousands_of_small_files_go_in_and_out
            a_large_file_goes_in_and_out
            an_output_inside_another_is_kept_too
            what_cannot_be_stored_is_refused
            the_disk_limit_is_kept
            a_program_that_cannot_be_started_is_named
            a_missing_blob_is_our_fault
            an_action_that_reaches_out_of_its_folder_is_refused
            a_polite_program_may_end_itself_when_it_is_stopped
            a_program_that_ignores_the_request_is_killed_after_the_grace
            a_second_request_kills_at_once
            dropping_the_future_ends_the_process
            a_child_left_behind_is_ended
            usage_and_host_are_told
        }
    };
}
pub(crate) use real_conformance;
