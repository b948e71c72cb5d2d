//! Sources of bytes that arrive over time.

use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::problem::StreamProblem;

/// A source of bytes that arrive over time.
pub trait ByteSource: fmt::Debug {
    /// Waits for bytes for the time `patience`, or slightly longer, and replaces the content of `piece` by the bytes that
    /// arrived.
    fn read(&mut self, piece: &mut Vec<u8>, patience: Duration) -> Result<Arrived, StreamProblem>;
}

/// The result of waiting for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// Bytes arrived.
    Bytes,
    /// Nothing arrived yet.
    Nothing,
    /// Nothing will arrive any more.
    End,
}

/// The most bytes to read at once.
pub(super) const PIECE: usize = 1 << 16;

/// Reads into `piece` once.
pub(super) fn read_once(reader: &mut impl Read, piece: &mut Vec<u8>) -> io::Result<usize> {
    piece.resize(PIECE, 0);
    let bytes = reader.read(piece);
    piece.truncate(bytes.as_ref().copied().unwrap_or(0));
    bytes
}

pub(super) fn broken(error: &io::Error) -> StreamProblem {
    StreamProblem::Broken(error.to_string())
}

/// A reader without a timeout, like standard input: a thread waits for it. The thread ends with the reader;
/// if a read never returns, the thread lasts until the program ends.
pub struct Threaded {
    pieces: Receiver<io::Result<Vec<u8>>>,
    /// The reader, if the system refused the thread: nothing else goes on while bytes are awaited.
    reader: Option<Box<dyn Read + Send>>,
}

impl fmt::Debug for Threaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threaded").field("has_thread", &self.reader.is_none()).finish_non_exhaustive()
    }
}

/// The most pieces that may wait, so that memory stays bounded.
pub(super) const WAITING_PIECES: usize = 16;

impl Threaded {
    /// Reads from `reader` in a new thread.
    #[must_use]
    pub fn new(reader: impl Read + Send + 'static) -> Self {
        let (sender, pieces) = mpsc::sync_channel(WAITING_PIECES);
        let shared = Arc::new(Mutex::new(Some(Box::new(reader) as Box<dyn Read + Send>)));
        let take = |reader: &Mutex<Option<_>>| reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        let of_thread = Arc::clone(&shared);
        let started = thread::Builder::new().spawn(move || {
            let Some(mut reader) = take(&of_thread) else { return };
            loop {
                let mut piece = Vec::new();
                let read = read_once(&mut reader, &mut piece);
                let goes_on = match &read {
                    Ok(bytes) => *bytes > 0,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(_) => false,
                };
                // Dropping the sender reports the end.
                let sent = if matches!(read, Ok(0)) { Ok(()) } else { sender.send(read.map(|_| piece)) };
                if !goes_on || sent.is_err() {
                    break;
                }
            }
        });
        Self { pieces, reader: started.err().and_then(|_| take(&shared)) }
    }
}

impl ByteSource for Threaded {
    fn read(&mut self, piece: &mut Vec<u8>, patience: Duration) -> Result<Arrived, StreamProblem> {
        if let Some(reader) = &mut self.reader {
            return match read_once(reader, piece) {
                Ok(0) => Ok(Arrived::End),
                Ok(_) => Ok(Arrived::Bytes),
                Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Arrived::Nothing),
                Err(error) => Err(broken(&error)),
            };
        }
        match self.pieces.recv_timeout(patience) {
            Ok(Ok(bytes)) => {
                *piece = bytes;
                Ok(Arrived::Bytes)
            }
            Ok(Err(error)) => Err(broken(&error)),
            Err(RecvTimeoutError::Timeout) => Ok(Arrived::Nothing),
            Err(RecvTimeoutError::Disconnected) => Ok(Arrived::End),
        }
    }
}

/// A server that sends raw trace, like orbuculum's legacy port.
#[derive(Debug)]
pub struct Server {
    connection: TcpStream,
    /// The connection's current read timeout.
    patience: Option<Duration>,
}

/// The timeout for connecting to each of a server's addresses.
const CONNECTING: Duration = Duration::from_secs(5);

/// The shortest possible timeout.
const SHORTEST: Duration = Duration::from_millis(1);

impl Server {
    /// Connects to a server.
    ///
    /// # Errors
    ///
    /// If the name has no address, or no address accepts the connection within 5 seconds.
    pub fn connect(host: &str, port: u16) -> Result<Self, StreamProblem> {
        let failed = |error: io::Error| StreamProblem::Connect(error.to_string());
        let mut last = None;
        for address in (host, port).to_socket_addrs().map_err(failed)? {
            match TcpStream::connect_timeout(&address, CONNECTING) {
                Ok(connection) => return Ok(Self { connection, patience: None }),
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| StreamProblem::Connect("the name has no address".to_owned()), failed))
    }
}

impl ByteSource for Server {
    fn read(&mut self, piece: &mut Vec<u8>, patience: Duration) -> Result<Arrived, StreamProblem> {
        let patience = patience.max(SHORTEST);
        if self.patience != Some(patience) {
            self.connection.set_read_timeout(Some(patience)).map_err(|error| broken(&error))?;
            self.patience = Some(patience);
        }
        match read_once(&mut self.connection, piece) {
            Ok(0) => Ok(Arrived::End),
            Ok(_) => Ok(Arrived::Bytes),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(Arrived::Nothing),
                _ => Err(broken(&error)),
            },
        }
    }
}
