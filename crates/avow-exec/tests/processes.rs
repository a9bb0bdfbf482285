//! No process outlives its attempt, whatever it does to get away.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use avow_exec::{Executor, Watch, end_survivors};
use avow_model::attempt::{AttemptId, Outcome};
use avow_model::plan::Terms;
use support::{Bench, alive, attempt, eventually, sh, slot, words, writes};

/// Ignores every polite request.
const STUBBORN: &str = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
    open('ready', 'w').close()\ntime.sleep(60)";

#[tokio::test]
async fn a_child_left_behind_is_ended_and_the_stage_succeeds() {
    let bench = Bench::new();
    let done = bench.run(&writes(sh("sleep 61 & echo $! > pid"), "pid", slot("pid"))).await;
    assert_eq!(done.outcome, Outcome::Succeeded);
    assert!(!alive(&bench.output(&done, "pid")));
}

#[tokio::test]
async fn a_daemon_in_its_own_session_is_ended() {
    let bench = Bench::new();
    let daemon = "(setsid sh -c 'echo $$ > pid; exec sleep 62' &) ; while [ ! -s pid ]; do sleep 0.01; done";
    let done = bench.run(&writes(sh(daemon), "pid", slot("pid"))).await;
    assert_eq!(done.outcome, Outcome::Succeeded);
    assert!(!alive(&bench.output(&done, "pid")));
}

#[tokio::test]
async fn a_daemon_that_forks_on_and_ignores_signals_is_ended() {
    let bench = Bench::new();
    let fork = "import os, signal, sys, time\n\
        if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
        \x20       for i in range(3):\n            if os.fork() == 0:\n                os.setsid()\n                break\n\
        \x20       open(f'pid{os.getpid()}', 'w').close()\n        time.sleep(63)\n    os._exit(0)\n\
        os.wait()\n\
        while sum(n.startswith('pid') for n in os.listdir()) < 4: time.sleep(0.01)\n\
        open('pids', 'w').write(' '.join(n[3:] for n in os.listdir() if n.startswith('pid') and n != 'pids'))";
    let done = bench.run(&writes(words(&["python3", "-c", fork]), "pids", slot("pids"))).await;
    assert_eq!(done.outcome, Outcome::Succeeded, "{}", bench.text(done.stderr));
    let pids = bench.output(&done, "pids");
    assert_eq!(pids.split(' ').count(), 4);
    assert!(pids.split(' ').all(|pid| !alive(pid)), "{pids}");
}

#[tokio::test]
async fn a_daemon_without_our_marker_is_ended_too() {
    let bench = Bench::new();
    let daemon = "(env -i /usr/bin/setsid /bin/sh -c 'echo $$ > pid; exec /bin/sleep 64' &) ; \
        while [ ! -s pid ]; do sleep 0.01; done";
    let done = bench.run(&writes(sh(daemon), "pid", slot("pid"))).await;
    assert_eq!(done.outcome, Outcome::Succeeded);
    let pid = bench.output(&done, "pid");
    // Other attempts may run in this process: then it is ended with the last of them, or with the next.
    while alive(&pid) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        bench.run(&words(&["true"])).await;
    }
}

#[tokio::test]
async fn a_polite_program_may_end_itself_when_it_is_stopped() {
    let bench = Arc::new(Bench::new());
    let action = sh("trap 'echo goodbye; exit 0' TERM; echo ready > ready; while true; do sleep 0.02; done");
    let running = start(&bench, action, Terms::default());
    eventually("the program is ready", || ready(&bench));
    bench.cancel.stop();
    let done = running.await.unwrap();
    assert_eq!(done.outcome, Outcome::Cancelled);
    assert_eq!(bench.text(done.stdout), "goodbye\n");
}

#[tokio::test]
async fn a_program_behind_a_shell_may_end_itself_too() {
    let bench = Arc::new(Bench::new());
    let polite = "import signal, sys, time\ndef bye(*_):\n    time.sleep(0.2)\n    print('saved', flush=True)\n    sys.exit(0)\n\
        signal.signal(signal.SIGTERM, bye)\nopen('ready', 'w').close()\ntime.sleep(60)";
    // The shell itself dies of the signal at once.
    let action = sh(&format!("python3 -c \"{polite}\"; echo never"));
    let running = start(&bench, action, Terms::default());
    eventually("the program is ready", || ready(&bench));
    bench.cancel.stop();
    let done = running.await.unwrap();
    assert_eq!(done.outcome, Outcome::Cancelled);
    assert_eq!(bench.text(done.stdout), "saved\n");
}

#[tokio::test]
async fn a_program_that_ignores_the_request_is_killed_after_the_grace() {
    let bench = Arc::new(Bench::new());
    let running = start(&bench, words(&["python3", "-c", STUBBORN]), Terms::default());
    eventually("the program is ready", || ready(&bench));
    bench.cancel.stop();
    assert_eq!(running.await.unwrap().outcome, Outcome::Cancelled);

    let bench = Bench::new();
    let terms = Terms { timeout: Some(400), ..Terms::default() };
    assert_eq!(bench.under(&words(&["python3", "-c", STUBBORN]), &terms).await.outcome, Outcome::TimedOut);
}

#[tokio::test]
async fn a_second_request_does_not_wait_for_the_grace() {
    let bench = Arc::new(Bench::with(|config| config.grace = Duration::from_secs(600)));
    let running = start(&bench, words(&["python3", "-c", STUBBORN]), Terms::default());
    eventually("the program is ready", || ready(&bench));
    bench.cancel.stop();
    bench.cancel.kill();
    assert_eq!(running.await.unwrap().outcome, Outcome::Cancelled);
}

#[tokio::test]
async fn what_was_cancelled_before_it_began_is_never_started() {
    let bench = Bench::new();
    bench.cancel.stop();
    let watch = Watch::new(bench.cancel.clone()).on_spawn(|_, _| panic!("it was started"));
    let done = bench.executor.run(&attempt(), &sh("true"), &Terms::default(), watch).await.unwrap();
    assert_eq!(done.outcome, Outcome::Cancelled);
}

#[tokio::test]
async fn dropping_the_future_ends_the_process() {
    let bench = Arc::new(Bench::new());
    let (sender, receiver) = std::sync::mpsc::channel();
    let task = tokio::spawn({
        let bench = Arc::clone(&bench);
        async move {
            let watch = Watch::new(bench.cancel.clone()).on_spawn(move |pid, _| sender.send(pid).unwrap());
            bench.executor.run(&attempt(), &sh("sleep 65"), &Terms::default(), watch).await
        }
    });
    let mut pid = None;
    while pid.is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
        pid = receiver.try_recv().ok();
    }
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    let pid = pid.unwrap().to_string();
    eventually("the process is gone", || !alive(&pid));
    eventually("its folder is gone", || bench.leftovers().is_empty());
}

#[tokio::test]
async fn the_callback_names_the_process_by_id_and_start_time() {
    let bench = Bench::new();
    let (sender, receiver) = std::sync::mpsc::channel();
    let watch =
        Watch::new(bench.cancel.clone()).on_spawn(move |pid, start| sender.send((pid, start)).unwrap());
    let action = writes(sh("echo $$ > pid; cut -d' ' -f5,6,22 /proc/$$/stat > stat"), "pid", slot("pid"));
    let action = writes(action, "stat", slot("stat"));
    let done = bench.executor.run(&attempt(), &action, &Terms::default(), watch).await.unwrap();
    let (pid, start) = receiver.recv().unwrap();
    assert_eq!(bench.output(&done, "pid"), format!("{pid}\n"));
    assert_eq!(bench.output(&done, "stat"), format!("{pid} {pid} {start}\n"), "leader of group and session");
}

#[test]
fn survivors_of_a_killed_predecessor_are_ended_by_record_and_by_marker() {
    let (first, second, other) = (attempt(), attempt(), attempt());
    let sleeper = |attempt: &AttemptId| {
        let mut command = std::process::Command::new("setsid");
        command.args(["sleep", "66"]).env_clear().env("PATH", "/usr/bin:/bin");
        command.env("AVOW_ATTEMPT", &attempt.0).spawn().unwrap()
    };
    let mut marked = sleeper(&second);
    let mut spared = sleeper(&other);
    let mut recorded = std::process::Command::new("sleep").arg("67").env_clear().spawn().unwrap();
    let start = |pid: u32| -> u64 {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().parse().unwrap()
    };
    let pid = i32::try_from(recorded.id()).unwrap();
    let reused = i32::try_from(spared.id()).unwrap();
    eventually("they run", || marker(marked.id()) && marker(spared.id()));
    let ended = end_survivors(&[
        (first, Some((pid, start(recorded.id())))),
        (second, Some((reused, start(spared.id()) + 1))),
    ]);
    assert_eq!(ended, 2);
    assert!(!marked.wait().unwrap().success() && !recorded.wait().unwrap().success());
    assert!(spared.try_wait().unwrap().is_none(), "a reused process id was taken for a survivor");
    spared.kill().unwrap();
    spared.wait().unwrap();
    assert_eq!(end_survivors(&[]), 0);
}

fn marker(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep"))
}

fn ready(bench: &Bench) -> bool {
    bench.leftovers().iter().any(|folder| folder.join("run/ready").exists())
}

fn start(
    bench: &Arc<Bench>,
    action: avow_model::action::Action,
    terms: Terms,
) -> std::pin::Pin<Box<dyn Future<Output = std::thread::Result<avow_exec::Execution>>>> {
    let (executor, watch) = (bench.executor.clone(), Watch::new(bench.cancel.clone()));
    // A thread of its own: the tests look at the file system meanwhile, without awaiting.
    let thread =
        std::thread::spawn(move || executor.run_blocking(&attempt(), &action, &terms, watch).unwrap());
    Box::pin(async move { thread.join() })
}
