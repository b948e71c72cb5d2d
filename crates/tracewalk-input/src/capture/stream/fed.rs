//! Bytes that the program using the library feeds as it receives them.

use std::fmt;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use super::problem::StreamProblem;
use super::source::{Arrived, ByteSource, PIECE, WAITING_PIECES};

/// A feeder, and the source of the bytes fed to it. The source ends when the feeder is dropped.
#[must_use]
pub fn fed() -> (Feeder, Fed) {
    let (sender, pieces) = mpsc::sync_channel(WAITING_PIECES);
    (Feeder(sender), Fed(pieces))
}

/// Passes bytes to a [`Fed`] source, from any thread.
#[derive(Clone, Debug)]
pub struct Feeder(SyncSender<Vec<u8>>);

/// The source was dropped: fed bytes are no longer read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NobodyReads;

impl Feeder {
    /// Passes these bytes on. Blocks while 16 pieces of at most 64 KiB are unread, so that memory stays
    /// bounded; the source must be read in another thread.
    ///
    /// # Errors
    ///
    /// If the source was dropped.
    pub fn feed(&self, bytes: &[u8]) -> Result<(), NobodyReads> {
        bytes.chunks(PIECE).try_for_each(|piece| self.0.send(piece.to_vec()).map_err(|_| NobodyReads))
    }
}

impl fmt::Display for NobodyReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes that are fed have no reader")
    }
}

impl std::error::Error for NobodyReads {}

/// The source of the bytes fed to a [`Feeder`].
#[derive(Debug)]
pub struct Fed(Receiver<Vec<u8>>);

impl ByteSource for Fed {
    fn read(&mut self, piece: &mut Vec<u8>, patience: Duration) -> Result<Arrived, StreamProblem> {
        match self.0.recv_timeout(patience) {
            Ok(bytes) => {
                *piece = bytes;
                Ok(Arrived::Bytes)
            }
            Err(RecvTimeoutError::Timeout) => Ok(Arrived::Nothing),
            Err(RecvTimeoutError::Disconnected) => Ok(Arrived::End),
        }
    }
}
