//! Bodies of requests and answers: bytes in memory, or pieces that another task hands over.

use std::convert::Infallible;
use std::fs::File;
use std::io::Read;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::mpsc;

/// How much of a file is read at once.
const PIECE: usize = 256 << 10;

/// A body that we send.
#[derive(Debug)]
pub(crate) enum Sent {
    /// All of it.
    Whole(Option<Bytes>),
    /// The pieces that arrive here, until the other end is dropped; their length, where it is known.
    Pieces(mpsc::Receiver<Bytes>, Option<u64>),
}

impl Sent {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Sent {
        let bytes = bytes.into();
        Sent::Whole((!bytes.is_empty()).then_some(bytes))
    }

    /// A file of this size. One that cannot be read to its end gives a body that is too short, which whoever
    /// receives it notices.
    pub(crate) fn file(file: File, size: u64) -> Sent {
        let (sender, receiver) = mpsc::channel(4);
        tokio::task::spawn_blocking(move || pump(file, &sender));
        Sent::Pieces(receiver, Some(size))
    }
}

fn pump(mut file: File, sender: &mpsc::Sender<Bytes>) {
    loop {
        let mut piece = vec![0; PIECE];
        match file.read(&mut piece) {
            Ok(0) => return,
            Ok(length) => {
                piece.truncate(length);
                // A receiver that has gone needs no more.
                if sender.blocking_send(piece.into()).is_err() {
                    return;
                }
            }
            Err(error) => return tracing::warn!(%error, "a file cannot be read to its end"),
        }
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Sent::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Sent::Pieces(receiver, _) => {
                receiver.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Sent::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Sent::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Sent::Pieces(_, length) => length.map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}
