//! Exit codes: part of the interface, listed once.

/// Why the program ends. The numbers never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done. A refuted claim is a result, not a failure.
    Done = 0,
    /// A stage failed through its own program.
    StageFailed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The spec is invalid.
    SpecInvalid = 3,
    /// Under `--check`: a claim is refuted or reversed.
    Refuted = 4,
    /// Under `--check`: a claim is inconclusive or void, or the plan is not complete.
    Undecided = 5,
    /// Evidence is damaged or cannot be made again.
    Damaged = 6,
    /// Under `--check`: a deviation nobody explained.
    Deviation = 7,
    /// A machine, a network or a cluster failed.
    Machine = 8,
    /// Of `avow prml verify`: the observed value does not keep the threshold. That command's numbers are its format's,
    /// in which 3 says that the digest is another.
    ManifestFail = 10,
    /// Of `avow prml verify`: what is to be checked against is missing, or is other data.
    ManifestUnchecked = 11,
    /// A fault of this program.
    Internal = 70,
    /// Stopped on request.
    Interrupted = 130,
}

impl Exit {
    /// Which of two reasons is told: damaged evidence first, then machines, stages, deviations, refuted and
    /// undecided claims.
    pub fn worse(self, other: Exit) -> Exit {
        const ORDER: [Exit; 13] = [
            Exit::Internal,
            Exit::Interrupted,
            Exit::Damaged,
            Exit::Machine,
            Exit::StageFailed,
            Exit::Usage,
            Exit::SpecInvalid,
            Exit::Deviation,
            Exit::Refuted,
            Exit::Undecided,
            Exit::ManifestUnchecked,
            Exit::ManifestFail,
            Exit::Done,
        ];
        let place = |e: Exit| ORDER.iter().position(|o| *o == e).expect("every exit code is ordered");
        if place(self) <= place(other) { self } else { other }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        std::process::ExitCode::from(exit as u8)
    }
}
