//! Where words go: data to standard output, talk to standard error, errors in one layout.
//!
//! `error: …`, `  caused by: …` for every source, a source snippet where there is one, then `hint: …` with
//! the next command to type. Colour only marks what the words already say, and only on a terminal without
//! `NO_COLOR`.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use crate::exit::Exit;

/// How to talk.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Whether standard error takes colour.
    pub colour: bool,
    /// Whether standard error is a terminal that can be redrawn.
    pub terminal: bool,
    /// Whether only data and errors are wanted.
    pub quiet: bool,
}

impl Output {
    /// From the environment of the process.
    pub fn new(quiet: bool) -> Output {
        let terminal = io::stderr().is_terminal();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
            || std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        Output { colour: terminal && !plain, terminal: terminal && !plain_terminal(), quiet }
    }

    /// A line of data.
    pub fn data(&self, line: impl Display) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        match writeln!(out, "{line}") {
            // A reader that has seen enough (`| head`) is no failure.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::quiet(Exit::Done)),
            Err(error) => Err(Failure::new(Exit::Machine, "cannot write to standard output").because(error)),
            Ok(()) => Ok(()),
        }
    }

    /// A value as indented JSON.
    pub fn json(&self, value: &impl serde::Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| Failure::new(Exit::Internal, "a result has no JSON form").because(error))?;
        self.data(text)
    }

    /// A line of talk, unless quiet.
    pub fn say(&self, line: impl Display) {
        if !self.quiet {
            self.always(line);
        }
    }

    /// A line of talk in any case. A closed standard error leaves nobody to tell.
    pub fn always(&self, line: impl Display) {
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// A word in bold, where colour is taken.
    pub fn bold(&self, word: &str) -> String {
        if self.colour { format!("\x1b[1m{word}\x1b[0m") } else { word.to_owned() }
    }

    /// A word in a colour of the eight basic ones.
    pub fn coloured(&self, word: &str, code: u8) -> String {
        if self.colour { format!("\x1b[{code}m{word}\x1b[0m") } else { word.to_owned() }
    }

    /// Prints a failure and gives its exit code.
    pub fn failure(&self, failure: &Failure) -> Exit {
        if let Some(told) = &failure.told {
            self.always(told.trim_end());
        }
        if let Some(message) = &failure.message {
            self.always(format_args!("{} {message}", self.coloured("error:", 31)));
            for cause in &failure.causes {
                self.always(format_args!("  caused by: {cause}"));
            }
        }
        if failure.exit == Exit::Machine && failure.hints.is_empty() && !failure.causes.is_empty() {
            let hint = crate::words::mending(&failure.causes.join("\n"));
            self.always(format_args!("{} {hint}", self.coloured("hint:", 36)));
        }
        for hint in &failure.hints {
            self.always(format_args!("{} {hint}", self.coloured("hint:", 36)));
        }
        failure.exit
    }
}

fn plain_terminal() -> bool {
    std::env::var_os("TERM").is_some_and(|t| t == "dumb")
}

/// Why a command ends without success: an exit code with words.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    message: Option<String>,
    causes: Vec<String>,
    hints: Vec<String>,
    told: Option<String>,
}

impl Failure {
    /// A failure with a message.
    pub fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure { exit, message: Some(message.into()), causes: Vec::new(), hints: Vec::new(), told: None }
    }

    /// An exit code about which everything has been said.
    pub fn quiet(exit: Exit) -> Failure {
        Failure { exit, message: None, causes: Vec::new(), hints: Vec::new(), told: None }
    }

    /// With an error and all its sources.
    pub fn because(mut self, error: impl Error) -> Failure {
        self.causes.push(error.to_string());
        let mut source = error.source();
        while let Some(inner) = source {
            self.causes.push(inner.to_string());
            source = inner.source();
        }
        self
    }

    /// With the next thing to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hints.push(hint.into());
        self
    }

    /// With text printed before the message, such as rendered diagnostics.
    pub fn after(mut self, told: String) -> Failure {
        self.told = Some(told);
        self
    }
}
