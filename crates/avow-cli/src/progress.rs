//! How a run is shown while it runs: one redrawn line on a terminal, plain lines elsewhere.
//!
//! The time left is the sum over stages of what is still to be done times the mean time of that stage so far
//! (in this run, else in earlier ones), divided by the slots. A stage that was never timed makes it "at least".

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use avow_engine::Notice;
use avow_model::attempt::Attempt;
use avow_model::plan::Terms;
use avow_planner::Tally;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Output;
use crate::search;
use crate::words;

/// Elsewhere than on a terminal, at most one line of progress in this time.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// On a terminal the line is drawn at most once in this time.
const DRAWN_INTERVAL: Duration = Duration::from_millis(100);

/// So many histories are asked for at one drawing; the others follow at the next.
const ASKED: u32 = 100;

/// How long attempts of a stage took before, in seconds.
type Earlier<'a> = Box<dyn Fn(&str) -> Option<f64> + Send + 'a>;

/// Follows one run.
pub struct Progress<'a> {
    output: Output,
    /// Mean seconds of a stage in earlier runs.
    earlier: Earlier<'a>,
    bar: Option<ProgressBar>,
    stages: BTreeMap<String, Timing>,
    running: BTreeSet<String>,
    awaited: BTreeSet<String>,
    slots: u32,
    tally: Tally,
    told: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Timing {
    left: u64,
    cpus: u32,
    seconds: f64,
    count: u32,
    /// Asked for when it is first needed: it costs a look at the stage's history.
    earlier: Option<Option<f64>>,
}

impl<'a> Progress<'a> {
    /// A follower for a run with these slots. `earlier` gives mean seconds of a stage in earlier runs.
    pub fn new(
        output: Output,
        slots: u32,
        terms: &BTreeMap<String, Terms>,
        earlier: impl Fn(&str) -> Option<f64> + Send + 'a,
    ) -> Progress<'a> {
        let bar = (output.terminal && !output.quiet).then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10));
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}")
                .expect("the template is valid")
                .progress_chars("=> ");
            bar.set_style(style);
            bar
        });
        let timing = |(stage, terms): (&String, &Terms)| {
            (stage.clone(), Timing { cpus: terms.cpus.max(1), ..Timing::default() })
        };
        Progress {
            output,
            earlier: Box::new(earlier),
            bar,
            stages: terms.iter().map(timing).collect(),
            running: BTreeSet::new(),
            awaited: BTreeSet::new(),
            slots: slots.max(1),
            tally: Tally::default(),
            told: Instant::now(),
        }
    }

    /// Takes a notice in.
    pub fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::Opened { members, .. } => {
                for (stage, count) in members {
                    self.stages.entry(stage).or_default().left = count;
                }
            }
            Notice::Reused { members } => members.iter().for_each(|member| self.done(member, None)),
            Notice::Started { member, .. } => {
                self.running.insert(member);
            }
            Notice::Waiting { member, run } => {
                // One line a run: what it makes may be many things one after another.
                if self.awaited.insert(run.clone()) {
                    self.line(&format!("{member} waits for run {run}, which makes exactly the same"));
                }
            }
            Notice::Finished { member, attempt, again } => self.finished(&member, &attempt, again),
            Notice::Verifying { drawn, of } => {
                self.line(&format!(
                    "executing {drawn} of {} again to verify",
                    words::count(of, "reused action")
                ));
            }
            Notice::Verified { member, .. } => {
                self.running.remove(&member);
            }
            Notice::Decided(decision) => self.line(&search::step(&decision)),
            Notice::Tally(tally) => {
                self.tally = tally;
                self.draw();
            }
            Notice::Stopping => {
                self.line("stopping: what runs is being ended; press Ctrl-C again to kill it");
            }
        }
    }

    /// Removes the redrawn line.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn finished(&mut self, member: &str, attempt: &Attempt, again: bool) {
        self.running.remove(member);
        if !again {
            self.done(member, Some(attempt.usage.wall as f64 / 1e6));
        }
        if !attempt.outcome.succeeded() {
            let more = if again { "; it is tried again" } else { "" };
            self.line(&format!("{member}: {}{more}", attempt.outcome));
        }
    }

    fn done(&mut self, member: &str, seconds: Option<f64>) {
        let timing = self.stages.entry(words::stage_of(member).to_owned()).or_default();
        timing.left = timing.left.saturating_sub(1);
        if let Some(seconds) = seconds {
            timing.seconds += seconds;
            timing.count += 1;
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.output.say(text)),
            None => self.output.say(text),
        }
    }

    fn draw(&mut self) {
        let interval = if self.bar.is_some() { DRAWN_INTERVAL } else { PLAIN_INTERVAL };
        // The summary looks at every stage, so it is made no oftener than it is shown.
        if self.output.quiet || self.told.elapsed() < interval {
            return;
        }
        self.told = Instant::now();
        let tally = self.tally;
        let done = tally.reused + tally.succeeded + tally.failed + tally.blocked;
        let text = self.summary();
        match &self.bar {
            Some(bar) => {
                bar.set_length(tally.members);
                bar.set_position(done);
                bar.set_message(text);
            }
            None => self.output.say(format!("{done}/{} {text}", tally.members)),
        }
    }

    fn summary(&mut self) -> String {
        let tally = self.tally;
        let mut parts = Vec::new();
        for (count, word) in [
            (tally.reused, "reused"),
            (tally.failed, "failed"),
            (tally.blocked, "not reachable"),
            (tally.running, "running"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {word}"));
            }
        }
        if let Some(first) = self.running.first() {
            let more = if self.running.len() > 1 { ", …" } else { "" };
            parts.push(format!("{first}{more}"));
        }
        if let Some(left) = self.time_left() {
            parts.push(left);
        }
        parts.join(" · ")
    }

    fn time_left(&mut self) -> Option<String> {
        let (mut total, mut sure, mut asked) = (0.0, true, 0);
        for (stage, timing) in self.stages.iter_mut().filter(|(_, timing)| timing.left > 0) {
            let mean = if timing.count > 0 {
                Some(timing.seconds / f64::from(timing.count))
            } else if asked < ASKED || timing.earlier.is_some() {
                asked += u32::from(timing.earlier.is_none());
                *timing.earlier.get_or_insert_with(|| (self.earlier)(stage))
            } else {
                None
            };
            match mean {
                Some(mean) => total += mean * timing.left as f64 * f64::from(timing.cpus.max(1)),
                None => sure = false,
            }
        }
        let seconds = total / f64::from(self.slots);
        let about = if sure { "about" } else { "at least" };
        (seconds >= 1.0).then(|| format!("{about} {} left", words::seconds(seconds)))
    }
}
