//! Captures that arrive over time: from standard input, from a growing file, from a server.
//!
//! A [`Stream`] passes on pieces as they arrive, and reports why it ended. It does not interpret or store the
//! bytes.
//!
//! - [`Place`] is the origin of the bytes, as the command line names it.
//! - [`ByteSource`] reads from a place; callers may implement their own. [`fed`] makes a source of bytes that
//!   the caller has.
//! - [`Stop`] ends a stream: bytes received by then are still passed on.
//!
//! ```
//! use std::time::Duration;
//! use tracewalk_input::capture::stream::{End, Event, Stop, Stream, Threaded};
//!
//! let source = Threaded::new(std::io::Cursor::new(b"trace".to_vec()));
//! let mut stream = Stream::new(source, None, Stop::default());
//! let mut received = Vec::new();
//! let end = loop {
//!     match stream.next() {
//!         Event::Bytes(piece) => received.extend_from_slice(piece),
//!         Event::Quiet => {}
//!         Event::End(end) => break end,
//!     }
//! };
//! assert_eq!((received.as_slice(), end), (&b"trace"[..], End::Closed));
//! ```

mod fed;
mod growing;
mod problem;
mod source;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tracewalk::plain::Plain;

use super::error::{CaptureError, CaptureErrorKind};
use crate::excerpt::excerpt;

pub use fed::{Fed, Feeder, NobodyReads, fed};
pub use growing::Growing;
pub use problem::StreamProblem;
pub use source::{Arrived, ByteSource, Server, Threaded};

/// The source of a capture that arrives over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Standard input.
    StandardInput,
    /// A file that another program is still writing, or is about to write.
    Growing(PathBuf),
    /// The program using the library, which [feeds](Feeder::feed) the bytes. If it is opened by its name
    /// alone, nothing feeds it and the stream ends at once.
    Fed,
    /// A server that sends raw trace bytes.
    Server {
        /// The server's name or address.
        host: String,
        /// The TCP port.
        port: u16,
    },
}

/// The prefix of a server's name.
const TCP: &str = "tcp:";

impl Place {
    /// The place that a capture's name on the command line stands for: `-`, `tcp:HOST:PORT`; `None` for a
    /// complete file.
    ///
    /// # Errors
    ///
    /// If the name begins with `tcp:`, and a host and a port do not follow.
    pub fn of(capture: &Path) -> Result<Option<Self>, CaptureError> {
        let name = capture.to_string_lossy();
        if name == "-" {
            return Ok(Some(Self::StandardInput));
        }
        let Some(address) = name.strip_prefix(TCP) else { return Ok(None) };
        let server = address.rsplit_once(':').and_then(|(host, port)| {
            // An IPv6 address contains colons, and is therefore in brackets.
            let host = host.strip_prefix('[').map_or(Some(host), |inner| inner.strip_suffix(']'))?;
            let port = port.parse().ok().filter(|port| *port != 0)?;
            (!host.is_empty()).then(|| Self::Server { host: host.to_owned(), port })
        });
        let problem = || StreamProblem::Address { found: excerpt(&format!("{TCP}{address}")) };
        server.map(Some).ok_or_else(|| error(capture, problem()))
    }

    /// Whether the name stands for a place other than a complete file.
    #[must_use]
    pub fn is_named(capture: &Path) -> bool {
        !matches!(Self::of(capture), Ok(None))
    }

    /// Opens the stream. It ends if no byte arrives for the time `idle`; `stop` ends it at any time.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened, or the server cannot be reached.
    pub fn open(&self, idle: Option<Duration>, stop: Stop) -> Result<Stream, CaptureError> {
        let name = PathBuf::from(self.to_string());
        Ok(match self {
            Self::StandardInput => Stream::new(Threaded::new(io::stdin()), idle, stop),
            Self::Fed => Stream::new(fed().1, idle, stop),
            Self::Growing(path) => {
                let file = Growing::open(path).map_err(|problem| CaptureError::of_file(path, problem))?;
                Stream::new(file, idle, stop)
            }
            Self::Server { host, port } => {
                let server = Server::connect(host, *port);
                Stream::new(server.map_err(|problem| error(&name, problem))?, idle, stop)
            }
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StandardInput => f.write_str("-"),
            Self::Fed => f.write_str("what was fed"),
            Self::Growing(path) => Plain(path.display()).fmt(f),
            Self::Server { host, port } if host.contains(':') => write!(f, "{TCP}[{}]:{port}", Plain(host)),
            Self::Server { host, port } => write!(f, "{TCP}{}:{port}", Plain(host)),
        }
    }
}

fn error(name: &Path, problem: StreamProblem) -> CaptureError {
    CaptureError { file: name.to_owned(), line: None, kind: CaptureErrorKind::Stream(problem) }
}

/// Ends streams, from any thread.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Requests the end of the streams.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the end was requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The next event of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Bytes arrived; at least one.
    Bytes(&'a [u8]),
    /// No bytes are available at the moment. Reported once after each time that bytes arrived.
    Quiet,
    /// The stream ended.
    End(End),
}

/// Why a stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The sender closed the stream: it is complete.
    Closed,
    /// [`Stop`] requested the end.
    Stopped,
    /// No byte arrived for too long.
    Idle,
    /// The stream can no longer be read.
    Failed(StreamProblem),
}

impl End {
    /// Whether only a part of the bytes arrived.
    #[must_use]
    pub const fn is_early(&self) -> bool {
        matches!(self, Self::Stopped | Self::Failed(_))
    }
}

/// A stream of bytes that arrive over time.
#[derive(Debug)]
pub struct Stream {
    source: Box<dyn ByteSource>,
    idle: Option<Duration>,
    stop: Stop,
    state: State,
    piece: Vec<u8>,
    /// How many bytes of `piece` were passed on.
    given: usize,
    received: u64,
}

#[derive(Clone, Debug)]
enum State {
    /// Bytes arrive, or may arrive.
    Flowing {
        /// The time at which the last bytes arrived.
        since: Instant,
        /// Whether the quiet was reported.
        reported_quiet: bool,
    },
    /// [`Stop`] requested the end; bytes on their way are still received until this moment.
    Draining { until: Instant },
    /// The stream ended.
    Ended(End),
}

/// The interval for checking `stop` and `idle`.
const POLL: Duration = Duration::from_millis(100);

/// After a requested end, the stream ends once no bytes have arrived for [`DRAINED`], and after
/// [`LONGEST_DRAIN`] in any case. A program that is stopped together with this one may still write its last
/// bytes.
const DRAINED: Duration = Duration::from_millis(100);
const LONGEST_DRAIN: Duration = Duration::from_secs(1);

impl Stream {
    /// A stream of the bytes that `source` reads.
    #[must_use]
    pub fn new(source: impl ByteSource + 'static, idle: Option<Duration>, stop: Stop) -> Self {
        let state = State::Flowing { since: Instant::now(), reported_quiet: false };
        Self { source: Box::new(source), idle, stop, state, piece: Vec::new(), given: 0, received: 0 }
    }

    /// The number of bytes received.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Waits for the next event.
    #[allow(
        clippy::should_implement_trait,
        reason = "the event borrows the stream, an iterator's item does not"
    )]
    pub fn next(&mut self) -> Event<'_> {
        loop {
            let patience = match &self.state {
                State::Ended(end) => return Event::End(end.clone()),
                State::Flowing { .. } if self.stop.is_requested() => {
                    self.state = State::Draining { until: Instant::now() + LONGEST_DRAIN };
                    continue;
                }
                State::Draining { until } if Instant::now() >= *until => {
                    self.state = State::Ended(End::Stopped);
                    continue;
                }
                State::Draining { .. } => DRAINED,
                State::Flowing { reported_quiet: false, .. } => Duration::ZERO,
                State::Flowing { since, .. } => {
                    let rest = |idle: Duration| idle.saturating_sub(since.elapsed()).min(POLL);
                    self.idle.map_or(POLL, rest)
                }
            };
            match self.source.read(&mut self.piece, patience) {
                Ok(Arrived::Bytes) if !self.piece.is_empty() => {
                    self.given = self.piece.len();
                    self.received += self.given as u64;
                    if let State::Flowing { since, reported_quiet } = &mut self.state {
                        (*since, *reported_quiet) = (Instant::now(), false);
                    }
                    return Event::Bytes(&self.piece);
                }
                Ok(Arrived::Bytes | Arrived::Nothing) => {
                    if self.nothing_came() {
                        return Event::Quiet;
                    }
                }
                Ok(Arrived::End) => self.state = State::Ended(End::Closed),
                Err(problem) => self.state = State::Ended(End::Failed(problem)),
            }
        }
    }

    /// Handles a wait in which no byte arrived. Returns whether to report the quiet.
    fn nothing_came(&mut self) -> bool {
        match &mut self.state {
            State::Flowing { reported_quiet, .. } if !*reported_quiet => {
                *reported_quiet = true;
                true
            }
            State::Flowing { since, .. } => {
                if self.idle.is_some_and(|idle| since.elapsed() >= idle) {
                    self.state = State::Ended(End::Idle);
                }
                false
            }
            State::Draining { .. } => {
                self.state = State::Ended(End::Stopped);
                false
            }
            State::Ended(_) => false,
        }
    }

    /// Why the stream ended; `None` if it has not.
    #[must_use]
    pub const fn end(&self) -> Option<&End> {
        if let State::Ended(end) = &self.state { Some(end) } else { None }
    }
}

/// Reads the bytes as they arrive. A failure of the stream is an [end](Stream::end).
impl io::Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given >= self.piece.len() {
            match self.next() {
                Event::Bytes(_) => self.given = 0,
                Event::Quiet => {}
                Event::End(_) => return Ok(0),
            }
        }
        let read = io::Read::read(&mut self.piece.get(self.given..).unwrap_or_default(), buffer)?;
        self.given += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
