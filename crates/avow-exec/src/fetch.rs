//! A file from an address, accepted only with the digest that was expected.
//!
//! The bytes go to a temporary file and through the hash at the same time, so a file of any size needs no memory,
//! and nothing with another digest ever enters the store. What is in the store already is not fetched again.
//!
//! `https://` only; `http://` is accepted for loopback addresses, where there is no network to listen on. The
//! digest would protect the bytes in any case; what it does not protect is who learns what was asked for, and a
//! redirect may not leave `https` either. An address with a user name or password is refused: it would end up in
//! specs, plans and journals. Root certificates are the system's (`SSL_CERT_FILE` and `SSL_CERT_DIR` are
//! honoured); `HTTPS_PROXY` and `NO_PROXY` too, except for loopback addresses, which are always reached directly.
//!
//! A refused or broken connection and the answers 429, 502, 503 and 504 are tried again, from the first byte;
//! any other answer is final. There is a limit on connecting and on silence, none on the whole: large files are
//! the point.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use avow_model::digest::BlobDigest;
use avow_store::{BlobStore, Intake, StoreError};
use reqwest::redirect;
use reqwest::{Certificate, Client, ClientBuilder, Response, StatusCode, Url};
use tokio::io::AsyncWriteExt;

pub(crate) const CONNECT: Duration = Duration::from_secs(15);
pub(crate) const SILENCE: Duration = Duration::from_secs(60);
const REDIRECTS: usize = 10;

/// Why a file could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// Not an address we fetch from.
    #[error("`{url}` is refused: {reason}")]
    Refused {
        /// The address, without a password.
        url: String,
        /// Why.
        reason: &'static str,
    },
    /// The client could not be made, mostly for want of root certificates.
    #[error("secure connections are not possible on this machine")]
    Client(#[source] reqwest::Error),
    /// No connection, or one that broke.
    #[error("`{url}` could not be fetched, after {tries} tries")]
    Connection {
        /// The address.
        url: String,
        /// How often it was tried.
        tries: u32,
        /// What happened the last time.
        source: reqwest::Error,
    },
    /// The server said no.
    #[error("`{url}` answered {status}")]
    Status {
        /// The address.
        url: String,
        /// Its answer.
        status: StatusCode,
    },
    /// Other bytes than expected; nothing was stored.
    #[error("`{url}` has the digest `{found}` ({size} bytes), and `{expected}` was expected")]
    Digest {
        /// The address.
        url: String,
        /// What was expected.
        expected: BlobDigest,
        /// What came.
        found: BlobDigest,
        /// How many bytes came.
        size: u64,
    },
    /// The temporary file could not be written.
    #[error("cannot write `{}`", path.display())]
    File {
        /// The folder it is in.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The store failed.
    #[error("a fetched file could not be stored")]
    Store(#[source] StoreError),
    /// The thread that stores ended without a result.
    #[error("the thread that stores a fetched file ended without a result")]
    Thread(#[source] tokio::task::JoinError),
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// It was in the store already; nothing was asked for.
    Present,
    /// It was fetched, with this many bytes.
    Stored(u64),
}

/// Bytes so far, and in all where the server said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Received.
    pub received: u64,
    /// Announced.
    pub total: Option<u64>,
}

/// Fetches files into a store.
#[derive(Clone, Debug)]
pub struct Fetcher {
    outside: Client,
    loopback: Client,
    temporary: PathBuf,
    tries: u32,
    pause: Duration,
}

impl Fetcher {
    /// Temporary files go to `temporary`, best on the file system of the blobs, which exists.
    ///
    /// # Errors
    /// [`FetchError::Client`].
    pub fn new(temporary: impl Into<PathBuf>) -> Result<Self, FetchError> {
        Self::trusting(temporary, Vec::new())
    }

    /// Also trusts these root certificates.
    ///
    /// # Errors
    /// [`FetchError::Client`].
    pub fn trusting(temporary: impl Into<PathBuf>, roots: Vec<Certificate>) -> Result<Self, FetchError> {
        // Somebody else in this process may have chosen a provider already, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
        let builder = || {
            ClientBuilder::new()
                .user_agent(concat!("avow/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT)
                .read_timeout(SILENCE)
                .redirect(redirect::Policy::custom(follow))
                .tls_certs_merge(roots.clone())
        };
        Ok(Self {
            outside: builder().build().map_err(FetchError::Client)?,
            loopback: builder().no_proxy().build().map_err(FetchError::Client)?,
            temporary: temporary.into(),
            tries: 4,
            pause: Duration::from_millis(500),
        })
    }

    /// Tries this often, with this pause before the second time, doubled before each further one.
    #[must_use]
    pub fn patience(mut self, tries: u32, pause: Duration) -> Self {
        (self.tries, self.pause) = (tries.max(1), pause);
        self
    }

    /// Makes sure that the blob `expected` is in the store, fetching it from `url` where it is not. `progress` is
    /// told after each piece. The blob is not synced.
    ///
    /// # Errors
    /// See [`FetchError`]; after any of them the store holds nothing new.
    pub async fn fetch(
        &self,
        url: &str,
        expected: BlobDigest,
        blobs: Arc<dyn BlobStore>,
        mut progress: impl FnMut(Progress) + Send,
    ) -> Result<Fetched, FetchError> {
        let url = checked(url)?;
        match blobs.contains(expected) {
            Ok(true) => return Ok(Fetched::Present),
            Ok(false) => {}
            // A damaged blob is replaced by what we fetch.
            Err(error) if error.is_unusable_blob() => {}
            Err(error) => return Err(FetchError::Store(error)),
        }
        let mut tried = 1;
        let (file, found, size) = loop {
            match self.once(&url, &mut progress).await {
                Ok(received) => break received,
                Err(Trouble::Final(error)) => return Err(error),
                Err(Trouble::Again(error)) if tried >= self.tries => return Err(error.after(&url, tried)),
                Err(Trouble::Again(_)) => tokio::time::sleep(self.pause * 2_u32.pow(tried - 1)).await,
            }
            tried += 1;
        };
        if found != expected {
            return Err(FetchError::Digest { url: url.into(), expected, found, size });
        }
        let stored = tokio::task::spawn_blocking(move || blobs.put_file(&file, Intake::Move));
        let (stored, _) = stored.await.map_err(FetchError::Thread)?.map_err(FetchError::Store)?;
        if stored != expected {
            return Err(FetchError::Digest { url: url.into(), expected, found: stored, size });
        }
        Ok(Fetched::Stored(size))
    }

    async fn once(
        &self,
        url: &Url,
        progress: &mut (impl FnMut(Progress) + Send),
    ) -> Result<(tempfile::TempPath, BlobDigest, u64), Trouble> {
        let client = if is_loopback(url) { &self.loopback } else { &self.outside };
        let response = client.get(url.clone()).send().await;
        let response = response.map_err(|error| Trouble::of(error, url))?;
        let status = response.status();
        if !status.is_success() {
            let again = [429, 502, 503, 504].contains(&status.as_u16());
            return Err(if again {
                Trouble::Again(Passing::Status(status))
            } else {
                Trouble::Final(FetchError::Status { url: url.to_string(), status })
            });
        }
        self.receive(response, progress).await
    }

    async fn receive(
        &self,
        mut response: Response,
        progress: &mut (impl FnMut(Progress) + Send),
    ) -> Result<(tempfile::TempPath, BlobDigest, u64), Trouble> {
        let (file, path) = tempfile::Builder::new()
            .prefix("fetch-")
            .tempfile_in(&self.temporary)
            .map_err(|source| not_written(&self.temporary, source))?
            .into_parts();
        let mut file = tokio::fs::File::from_std(file);
        let total = response.content_length();
        let mut hasher = blake3::Hasher::new();
        let mut received = 0;
        while let Some(piece) = response.chunk().await.map_err(|e| Trouble::Again(Passing::Error(e)))? {
            hasher.update(&piece);
            file.write_all(&piece).await.map_err(|source| not_written(&self.temporary, source))?;
            received += piece.len() as u64;
            progress(Progress { received, total });
        }
        file.flush().await.map_err(|source| not_written(&self.temporary, source))?;
        Ok((path, BlobDigest::from_bytes(*hasher.finalize().as_bytes()), received))
    }
}

fn not_written(folder: &Path, source: io::Error) -> Trouble {
    Trouble::Final(FetchError::File { path: folder.to_owned(), source })
}

/// What went wrong once.
enum Trouble {
    Final(FetchError),
    Again(Passing),
}

/// What may be better the next time.
enum Passing {
    Error(reqwest::Error),
    Status(StatusCode),
}

impl Trouble {
    fn of(error: reqwest::Error, url: &Url) -> Self {
        if error.is_redirect() {
            let reason = "it redirects too often, or to an address that is not `https`";
            return Trouble::Final(FetchError::Refused { url: url.to_string(), reason });
        }
        Trouble::Again(Passing::Error(error))
    }
}

impl Passing {
    fn after(self, url: &Url, tries: u32) -> FetchError {
        let url = url.to_string();
        match self {
            // The address is in our own text.
            Passing::Error(source) => FetchError::Connection { url, tries, source: source.without_url() },
            Passing::Status(status) => FetchError::Status { url, status },
        }
    }
}

fn checked(text: &str) -> Result<Url, FetchError> {
    let refused = |url: &str, reason| FetchError::Refused { url: url.to_owned(), reason };
    let mut url = Url::parse(text).map_err(|_| refused(text, "it is no address"))?;
    if !url.username().is_empty() || url.password().is_some() {
        // Neither call fails for an address with a host; the text must not show the secret in any case.
        let hidden = url.set_password(None).and_then(|()| url.set_username(""));
        let shown = if hidden.is_ok() { url.as_str() } else { "the address" };
        return Err(refused(shown, "it holds a user name or a password, which would be recorded"));
    }
    if !allowed(&url) {
        return Err(refused(text, "only `https://` is fetched, and `http://` from this machine itself"));
    }
    Ok(url)
}

fn allowed(url: &Url) -> bool {
    url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url))
}

pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    if attempt.previous().len() > REDIRECTS {
        return attempt.error("too many redirects");
    }
    // Nor from outside into this machine, whose services may trust it.
    let inward = is_loopback(attempt.url()) && !attempt.previous().iter().all(is_loopback);
    if !allowed(attempt.url()) || inward {
        attempt.error("a redirect to a refused address")
    } else {
        attempt.follow()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_and_the_own_machine_are_allowed() {
        for good in
            ["https://example.org/a", "http://127.0.0.1:8080/a", "http://[::1]/a", "http://localhost/a"]
        {
            assert!(checked(good).is_ok(), "{good}");
        }
        for bad in [
            "http://example.org/a",
            "ftp://example.org/a",
            "file:///etc/passwd",
            "http://127.example.org/",
            "a",
        ] {
            assert!(matches!(checked(bad), Err(FetchError::Refused { .. })), "{bad}");
        }
    }

    #[test]
    fn a_password_is_refused_and_not_repeated() {
        let error = checked("https://me:secret@example.org/a").unwrap_err().to_string();
        assert!(!error.contains("secret") && error.contains("example.org"), "{error}");
    }
}
