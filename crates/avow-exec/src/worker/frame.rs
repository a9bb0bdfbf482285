//! Frames: how the answer to a submission is cut into pieces.
//!
//! Each is a byte that says its kind, four bytes of length (big-endian), and so many bytes. Logs travel as they
//! are, without an encoding around them.

use super::protocol::{DecodeError, Event, decode, encode};

/// The most bytes of one frame.
pub const FRAME_LIMIT: usize = 8 << 20;
/// How many bytes of a log are sent in one frame.
pub const LOG_PIECE: usize = 256 << 10;

const HEAD: usize = 5;

/// One piece of the stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// Nothing but a sign of life.
    Alive,
    /// Something happened.
    Event(Event),
    /// The next bytes of standard output (0) or standard error (1).
    Log(u8, Vec<u8>),
    /// The whole bytes of a small output.
    Blob(Vec<u8>),
}

impl Frame {
    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, payload) = match self {
            Frame::Alive => (0, &[][..]),
            Frame::Event(event) => return framed(1, &encode(event)),
            Frame::Log(stream, bytes) => (2 + (*stream).min(1), &bytes[..]),
            Frame::Blob(bytes) => (4, &bytes[..]),
        };
        framed(kind, payload)
    }

    fn of(kind: u8, payload: Vec<u8>) -> Result<Frame, DecodeError> {
        Ok(match kind {
            0 if payload.is_empty() => Frame::Alive,
            1 => Frame::Event(decode(&payload)?),
            2 | 3 => Frame::Log(kind - 2, payload),
            4 => Frame::Blob(payload),
            _ => return Err(DecodeError(format!("a frame of kind {kind}"))),
        })
    }
}

fn framed(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(HEAD + payload.len());
    bytes.push(kind);
    bytes.extend(length.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Puts frames together from the pieces in which they arrive.
#[derive(Debug, Default)]
pub struct Frames {
    buffer: Vec<u8>,
    read: usize,
}

impl Frames {
    /// Takes a piece in.
    pub fn push(&mut self, piece: &[u8]) {
        if self.read == self.buffer.len() {
            self.buffer.clear();
        } else {
            self.buffer.drain(..self.read);
        }
        self.read = 0;
        self.buffer.extend_from_slice(piece);
    }

    /// The next whole frame; `None` until there is one.
    ///
    /// # Errors
    /// For a frame that is too long, of no known kind, or not readable. Nothing after it can be read.
    pub fn pull(&mut self) -> Result<Option<Frame>, DecodeError> {
        let rest = &self.buffer[self.read..];
        let Some((head, rest)) = rest.split_first_chunk::<HEAD>() else { return Ok(None) };
        let [kind, length @ ..] = *head;
        let length = u32::from_be_bytes(length) as usize;
        if length > FRAME_LIMIT {
            return Err(DecodeError(format!("a frame of {length} bytes")));
        }
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        let frame = Frame::of(kind, payload.to_vec())?;
        self.read += HEAD + length;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_being_cut_anywhere() {
        let sent = [
            Frame::Alive,
            Frame::Log(1, b"some text\n".to_vec()),
            Frame::Event(Event::Reset(0)),
            Frame::Blob(vec![7; 300]),
            Frame::Log(0, Vec::new()),
        ];
        let bytes: Vec<u8> = sent.iter().flat_map(Frame::to_bytes).collect();
        for size in [1, 2, 3, 7, 64, bytes.len()] {
            let mut frames = Frames::default();
            let mut got = Vec::new();
            for piece in bytes.chunks(size) {
                frames.push(piece);
                while let Some(frame) = frames.pull().unwrap() {
                    got.push(frame);
                }
            }
            assert_eq!(got, sent, "pieces of {size}");
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for bytes in
            [&[9, 0, 0, 0, 0][..], &[2, 255, 255, 255, 255], &[1, 0, 0, 0, 1, 0xff], &[0, 0, 0, 0, 1, 0]]
        {
            let mut frames = Frames::default();
            frames.push(bytes);
            assert!(frames.pull().is_err(), "{bytes:?}");
        }
    }
}
