//! The secret that a worker and its clients share.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The fewest characters of a token.
const SHORTEST: usize = 16;
/// The most bytes of a file that is taken for a token.
const LONGEST: u64 = 4096;

/// A token. It does not show itself.
#[derive(Clone)]
pub struct Token {
    text: String,
    digest: blake3::Hash,
}

/// Why a file gives no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It cannot be read, or not be made.
    #[error("the token file `{}` cannot be used", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It holds something else.
    #[error("`{}` holds no token: one line of at least {SHORTEST} visible ASCII characters is expected", path.display())]
    Text {
        /// The file.
        path: PathBuf,
    },
}

impl Token {
    /// A token with this text; `None` where it is too short or could not be sent in a header.
    pub fn new(text: &str) -> Option<Token> {
        let good = text.len() >= SHORTEST && text.bytes().all(|byte| byte.is_ascii_graphic());
        good.then(|| Token { text: text.to_owned(), digest: blake3::hash(text.as_bytes()) })
    }

    /// Reads one from a file.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn read(path: &Path) -> Result<Token, TokenError> {
        let failed = |source| TokenError::File { path: path.to_owned(), source };
        let wrong = || TokenError::Text { path: path.to_owned() };
        if fs::metadata(path).map_err(failed)?.len() > LONGEST {
            return Err(wrong());
        }
        let bytes = fs::read(path).map_err(failed)?;
        String::from_utf8(bytes).ok().and_then(|text| Token::new(text.trim())).ok_or_else(wrong)
    }

    /// Draws one and writes it to a new file that only its owner can read.
    ///
    /// # Errors
    /// Where the file exists or cannot be written.
    pub fn create(path: &Path) -> Result<Token, TokenError> {
        let failed = |source| TokenError::File { path: path.to_owned(), source };
        let text = avow_store::nonce().map_err(|error| failed(io::Error::other(error)))?;
        let file = File::options().write(true).create_new(true).mode(0o600).open(path);
        file.and_then(|mut file| file.write_all(format!("{text}\n").as_bytes())).map_err(failed)?;
        Token::new(&text).ok_or_else(|| TokenError::Text { path: path.to_owned() })
    }

    /// Whether others than its owner may read the file.
    pub fn is_open(path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|about| about.mode() & 0o077 != 0)
    }

    /// Whether this text is the token. How long it takes says nothing about the token: digests are compared, in
    /// constant time.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.digest == blake3::hash(text)
    }

    /// The text, for the header of a request.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_for_its_owner_alone_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let made = Token::create(&path).unwrap();
        assert!(!Token::is_open(&path));
        let read = Token::read(&path).unwrap();
        assert!(read.matches(made.text().as_bytes()) && !read.matches(b"something else entirely"));
        assert!(Token::create(&path).is_err(), "never replaced");
        assert!(!format!("{read:?}").contains(made.text()));
    }

    #[test]
    fn short_long_and_unprintable_texts_are_no_tokens() {
        assert!(Token::new("short").is_none() && Token::new("with a space in between it").is_none());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, vec![b'x'; 5000]).unwrap();
        assert!(matches!(Token::read(&path), Err(TokenError::Text { .. })));
    }
}
