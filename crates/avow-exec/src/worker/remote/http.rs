//! Requests to one worker, each with the token, a limit of time and a limit of size.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Body, Client, ClientBuilder, Method, Response, StatusCode, Url, redirect};

use super::{Place, RemoteError};
use crate::fetch;
use crate::worker::body::Sent;
use crate::worker::protocol::{DIGESTS_LIMIT, MESSAGE_LIMIT, PACK_LIMIT, REFUSAL_LIMIT, ROOT, Refusal};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an unused connection is kept: shorter than a worker keeps it, so that none breaks when it is used again.
const IDLE: Duration = Duration::from_secs(30);
/// How long a short request may take in all.
const SHORT: Duration = Duration::from_secs(20);
/// How long nothing may arrive of a blob.
const SILENCE: Duration = Duration::from_secs(60);
/// The most bytes of an answer that is held in memory.
const ANSWER: usize = const {
    let most = if MESSAGE_LIMIT > PACK_LIMIT { MESSAGE_LIMIT } else { PACK_LIMIT };
    if most > DIGESTS_LIMIT { most } else { DIGESTS_LIMIT }
};

/// What went wrong with a request.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// It was not sent: there is no connection.
    #[error("{0}")]
    Connect(String),
    /// It may have been sent, and there is no answer.
    #[error("{0}")]
    Broken(String),
    /// The worker says no.
    #[error("{}", words(.0))]
    Refused(Refusal),
    /// Something that is no worker answered.
    #[error("it answered {0}, which no worker does")]
    Strange(StatusCode),
}

/// A client for one worker.
#[derive(Debug)]
pub(super) struct Http {
    client: Client,
    url: String,
    private: bool,
}

impl Http {
    pub(super) fn new(place: &Place) -> Result<Http, RemoteError> {
        let url = place.url.trim_end_matches('/').to_owned();
        let refused = |reason: String| RemoteError::Refused { url: url.clone(), reason };
        let parsed = Url::parse(&url).map_err(|error| refused(format!("the address is none: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") || !parsed.username().is_empty() {
            return Err(refused("the address must be `http://HOST:PORT` or `https://HOST`".to_owned()));
        }
        // Somebody else in this process may have chosen a provider already, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", place.token.text()))
            .map_err(|error| refused(error.to_string()))?;
        bearer.set_sensitive(true);
        let client = ClientBuilder::new()
            .user_agent(concat!("avow/", env!("CARGO_PKG_VERSION")))
            .default_headers(HeaderMap::from_iter([(AUTHORIZATION, bearer)]))
            .connect_timeout(CONNECT)
            .pool_idle_timeout(IDLE)
            .redirect(redirect::Policy::none())
            .tcp_nodelay(true)
            .no_proxy()
            .build()
            .map_err(|error| refused(error.to_string()))?;
        let private = parsed.scheme() == "https" || fetch::is_loopback(&parsed);
        Ok(Http { client, url, private })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Whether nobody on the way can read what is sent.
    pub(super) fn is_private(&self) -> bool {
        self.private
    }

    pub(super) async fn get(&self, path: &str) -> Result<Vec<u8>, CallError> {
        self.short(Method::GET, path, Vec::new()).await
    }

    pub(super) async fn post(&self, path: &str, body: Vec<u8>) -> Result<Vec<u8>, CallError> {
        self.short(Method::POST, path, body).await
    }

    pub(super) async fn delete(&self, path: &str) -> Result<Vec<u8>, CallError> {
        self.short(Method::DELETE, path, Vec::new()).await
    }

    async fn short(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Vec<u8>, CallError> {
        let sent = self.client.request(method, self.at(path)).body(body).timeout(SHORT).send();
        let response = checked(sent.await.map_err(failed)?).await?;
        collect(response, ANSWER).await
    }

    /// Sends a blob.
    pub(super) async fn put(&self, path: &str, body: Sent) -> Result<(), CallError> {
        let sent = self.client.put(self.at(path)).body(Body::wrap(body)).send();
        checked(sent.await.map_err(failed)?).await.map(drop)
    }

    /// Asks for a stream, whose pieces the caller reads.
    pub(super) async fn open(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Response, CallError> {
        let sent = self.client.request(method, self.at(path)).body(body).send();
        checked(sent.await.map_err(failed)?).await
    }

    fn at(&self, path: &str) -> String {
        format!("{}{ROOT}{path}", self.url)
    }

    /// A failed request as a reason not to use this worker.
    pub(super) fn failed(&self, error: CallError) -> RemoteError {
        let (url, reason) = (self.url.clone(), error.to_string());
        match error {
            CallError::Connect(_) | CallError::Broken(_) | CallError::Refused(Refusal::Stopping) => {
                RemoteError::Unreachable { url, reason }
            }
            CallError::Refused(_) | CallError::Strange(_) => RemoteError::Refused { url, reason },
        }
    }
}

/// The next piece of a stream; an error after too long a silence.
pub(super) async fn piece(response: &mut Response) -> Result<Option<hyper::body::Bytes>, CallError> {
    match tokio::time::timeout(SILENCE, response.chunk()).await {
        Ok(piece) => piece.map_err(failed),
        Err(_) => Err(CallError::Broken("nothing more arrives".to_owned())),
    }
}

async fn collect(mut response: Response, limit: usize) -> Result<Vec<u8>, CallError> {
    let mut all = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(failed)? {
        if all.len() + piece.len() > limit {
            return Err(CallError::Broken("the answer is too long".to_owned()));
        }
        all.extend_from_slice(&piece);
    }
    Ok(all)
}

async fn checked(response: Response) -> Result<Response, CallError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let text = collect(response, REFUSAL_LIMIT).await?;
    match serde_json::from_slice(&text) {
        Ok(refusal) => Err(CallError::Refused(refusal)),
        Err(_) => Err(CallError::Strange(status)),
    }
}

fn failed(error: reqwest::Error) -> CallError {
    let connect = error.is_connect();
    // The address is in our own text.
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    if connect { CallError::Connect(text) } else { CallError::Broken(text) }
}

fn words(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Token => "it does not accept the token".to_owned(),
        Refusal::Malformed { reason } => format!("it does not understand: {reason}"),
        Refusal::TooLarge { limit } => {
            format!("it takes nothing larger than {limit} bytes; `--cache` sets that")
        }
        Refusal::Unknown => "it knows nothing under that name".to_owned(),
        Refusal::Conflict => "it has another action under that name".to_owned(),
        Refusal::OtherInstance { .. } => "it was started again".to_owned(),
        Refusal::Lacking { blobs } => format!("it lacks {} blobs", blobs.len()),
        Refusal::Mismatch { differences } => {
            differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        }
        Refusal::Machine { reason } => format!("its machine failed: {reason}"),
        Refusal::Stopping => "it is about to end".to_owned(),
    }
}
