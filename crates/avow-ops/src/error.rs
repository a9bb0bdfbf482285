//! How a built-in stage can go wrong, sorted by who can mend it.
//!
//! The author of the spec mends parameters and ports, the author of a file mends its contents, the scientist
//! mends a run that diverged, and the operator mends the disk. There is deliberately no variant for a bug of
//! ours: those are `expect("invariant")`.

use std::io;
use std::path::PathBuf;

/// Why a built-in stage did not write its outputs.
#[derive(Debug, thiserror::Error)]
pub enum OpError {
    /// No operation has this name.
    #[error("there is no built-in stage `{name}`")]
    UnknownOp {
        /// The name that was asked for.
        name: String,
    },
    /// An entry of `with:` is missing, unknown, or has a value that the operation cannot use.
    #[error("parameter `{name}`: {problem}")]
    Parameter {
        /// The key under `with:`.
        name: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// An input or output is missing, or the operation has none of that name.
    #[error("{side} `{name}`: {problem}")]
    Port {
        /// `input` or `output`.
        side: &'static str,
        /// The name of the port.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// An input file could be read but does not hold what the operation needs.
    #[error("{}", describe_input(file, tensor.as_deref(), shape.as_deref(), problem))]
    Input {
        /// The file.
        file: PathBuf,
        /// The tensor in it, where one is to blame.
        tensor: Option<String>,
        /// The shape that tensor has.
        shape: Option<Vec<usize>>,
        /// What is wrong.
        problem: String,
    },
    /// The computation left the numbers it can be trusted with, e.g. a training run diverged.
    #[error("{problem}")]
    Numerical {
        /// What happened, where, and what to try.
        problem: String,
    },
    /// The tensor library refused a step.
    #[error("the tensor library failed while {doing}")]
    Tensor {
        /// What was being computed.
        doing: &'static str,
        /// Its own account.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file could not be read or written.
    #[error("cannot {action} `{}`", file.display())]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        file: PathBuf,
        /// The system's account.
        source: io::Error,
    },
}

impl OpError {
    /// A complaint about an entry of `with:`.
    pub(crate) fn parameter(name: &str, problem: impl Into<String>) -> OpError {
        OpError::Parameter { name: name.to_owned(), problem: problem.into() }
    }
}

fn describe_input(
    file: &std::path::Path,
    tensor: Option<&str>,
    shape: Option<&[usize]>,
    problem: &str,
) -> String {
    let mut text = format!("file `{}`", file.display());
    if let Some(tensor) = tensor {
        text.push_str(&format!(", tensor `{tensor}`"));
    }
    if let Some(shape) = shape {
        let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
        text.push_str(&format!(" of shape [{}]", shape.join(", ")));
    }
    format!("{text}: {problem}")
}
