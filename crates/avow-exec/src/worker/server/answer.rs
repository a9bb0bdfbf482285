//! Answers, and refusals as answers.

use avow_store::StoreError;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

use crate::worker::body::Sent;
use crate::worker::protocol::{DecodeError, Refusal};

pub(super) type Answer = Response<Sent>;

pub(super) fn bytes(bytes: impl Into<Bytes>, kind: &'static str) -> Answer {
    let mut answer = Response::new(Sent::whole(bytes));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

pub(super) fn nothing() -> Answer {
    let mut answer = Response::new(Sent::Whole(None));
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}

pub(super) fn pieces(sent: Sent) -> Answer {
    let mut answer = Response::new(sent);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    answer
}

pub(super) fn json(value: &impl serde::Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(text) => bytes(text, "application/json"),
        Err(error) => refusal(&Refusal::Machine { reason: error.to_string() }),
    }
}

pub(super) fn refusal(refusal: &Refusal) -> Answer {
    let status = match refusal {
        Refusal::Token => StatusCode::UNAUTHORIZED,
        Refusal::Malformed { .. } => StatusCode::BAD_REQUEST,
        Refusal::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Refusal::Unknown => StatusCode::NOT_FOUND,
        Refusal::Conflict | Refusal::Lacking { .. } => StatusCode::CONFLICT,
        Refusal::OtherInstance { .. } => StatusCode::GONE,
        Refusal::Mismatch { .. } => StatusCode::PRECONDITION_FAILED,
        Refusal::Machine { .. } => StatusCode::INSUFFICIENT_STORAGE,
        Refusal::Stopping => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut answer = match serde_json::to_vec(refusal) {
        Ok(text) => bytes(text, "application/json"),
        Err(_) => nothing(),
    };
    *answer.status_mut() = status;
    answer
}

impl From<DecodeError> for Refusal {
    fn from(error: DecodeError) -> Refusal {
        Refusal::Malformed { reason: error.to_string() }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        Refusal::Machine { reason: in_full(&error) }
    }
}

/// An error with its sources in one line.
pub(crate) fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

/// Work that may wait for a disk, on a thread that may.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Refusal::Machine { reason: error.to_string() }))
}
