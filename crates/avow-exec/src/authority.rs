//! Asking a time stamping authority (RFC 3161 over HTTP) for a stamp. What is sent is a digest; what comes back is
//! judged by `avow-proof`, so plain `http://` is accepted: whoever changes the answer only spoils it.

use reqwest::{ClientBuilder, Url, redirect};

use crate::fetch::{CONNECT, FetchError, SILENCE, is_loopback};

/// The longest answer that is read, in bytes; real ones have a few thousand.
const LONGEST: usize = 1 << 20;

/// Sends a request, as DER, and gives the answer's bytes.
///
/// # Errors
/// [`FetchError`]: an address that is none, no connection, an answer that is no time stamp.
pub async fn ask(url: &str, request: Vec<u8>) -> Result<Vec<u8>, FetchError> {
    let refused = |reason| FetchError::Refused { url: url.to_owned(), reason };
    let address = Url::parse(url).map_err(|_| refused("it is no address"))?;
    if !matches!(address.scheme(), "http" | "https") {
        return Err(refused("an authority is asked over `https://` or `http://`"));
    }
    if !address.username().is_empty() || address.password().is_some() {
        return Err(FetchError::Refused {
            url: "the address".to_owned(),
            reason: "it holds a user name or a password, which would be recorded",
        });
    }
    drop(rustls::crypto::ring::default_provider().install_default());
    let builder = ClientBuilder::new()
        .user_agent(concat!("avow/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .read_timeout(SILENCE)
        .redirect(redirect::Policy::none());
    let builder = if is_loopback(&address) { builder.no_proxy() } else { builder };
    let client = builder.build().map_err(FetchError::Client)?;
    let broken = |source: reqwest::Error| FetchError::Connection {
        url: url.to_owned(),
        tries: 1,
        source: source.without_url(),
    };
    let sent =
        client.post(address).header("content-type", "application/timestamp-query").body(request).send();
    let mut response = sent.await.map_err(broken)?;
    if !response.status().is_success() {
        return Err(FetchError::Status { url: url.to_owned(), status: response.status() });
    }
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.to_ascii_lowercase().starts_with("application/timestamp-reply") {
        return Err(refused("it answered with something else than a time stamp"));
    }
    let mut answer = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(broken)? {
        answer.extend_from_slice(&piece);
        if answer.len() > LONGEST {
            return Err(refused("its answer is too long for a time stamp"));
        }
    }
    Ok(answer)
}
