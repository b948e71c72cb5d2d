//! Captures that come over time: from standard input, from a file that grows, from a server.
//!
//! A [`Stream`] hands out pieces as they arrive, and states why it ended. It does not interpret the bytes, and keeps
//! nothing of them.
//!
//! - [`Place`] is the origin of the bytes, as the command line names it.
//! - [`ByteSource`] is what reads there; anybody may write another one. [`fed`] makes one of bytes that the caller has.
//! - [`Stop`] ends a stream: bytes received by then are still handed out.
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
use crate::file::FileProblem;

pub use fed::{Fed, Feeder, NobodyReads, fed};
pub use growing::Growing;
pub use problem::StreamProblem;
pub use source::{Arrived, ByteSource, Server, Threaded};

/// Where a capture comes from over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Standard input.
    StandardInput,
    /// A file that another program is still writing, or is about to write.
    Growing(PathBuf),
    /// The program that uses the library, which [feeds](Feeder::feed) what it has. Opened by its name alone it has nobody who
    /// does, and ends at once.
    Fed,
    /// A server that sends the bytes of trace as they are.
    Server {
        /// Its name or address.
        host: String,
        /// The TCP port.
        port: u16,
    },
}

/// What a server's name starts with.
const TCP: &str = "tcp:";

impl Place {
    /// The place that a capture's name on the command line means: `-`, `tcp:HOST:PORT`; `None` for a complete file.
    pub fn of(capture: &Path) -> Result<Option<Self>, CaptureError> {
        let name = capture.to_string_lossy();
        if name == "-" {
            return Ok(Some(Self::StandardInput));
        }
        let Some(address) = name.strip_prefix(TCP) else { return Ok(None) };
        let server = address.rsplit_once(':').and_then(|(host, port)| {
            // An address of IPv6 has colons of its own, and stands in brackets.
            let host = host.strip_prefix('[').map_or(Some(host), |inner| inner.strip_suffix(']'))?;
            let port = port.parse().ok().filter(|port| *port != 0)?;
            (!host.is_empty()).then(|| Self::Server { host: host.to_owned(), port })
        });
        let problem = || StreamProblem::Address { found: excerpt(&format!("{TCP}{address}")) };
        server.map(Some).ok_or_else(|| error(capture, problem()))
    }

    /// Whether this is a place that is known by its name alone.
    #[must_use]
    pub fn is_named(capture: &Path) -> bool {
        !matches!(Self::of(capture), Ok(None))
    }

    /// Begins to listen. Without a byte for as long as `idle` the stream ends; `stop` ends it at any time.
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
    /// The streams shall end.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether they shall.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a stream does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Bytes came; at least one.
    Bytes(&'a [u8]),
    /// Nothing is there at the moment. Comes once after each time that bytes came.
    Quiet,
    /// Nothing will come any more.
    End(End),
}

/// Why a stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The sender closed it: it is complete.
    Closed,
    /// On request.
    Stopped,
    /// Nothing came for too long.
    Idle,
    /// It cannot be read any more.
    Failed(StreamProblem),
}

impl End {
    /// Whether only a part of the bytes arrived.
    #[must_use]
    pub const fn is_early(&self) -> bool {
        matches!(self, Self::Stopped | Self::Failed(_))
    }
}

/// Bytes that come over time.
#[derive(Debug)]
pub struct Stream {
    source: Box<dyn ByteSource>,
    idle: Option<Duration>,
    stop: Stop,
    state: State,
    piece: Vec<u8>,
    received: u64,
}

#[derive(Clone, Debug)]
enum State {
    /// Bytes come, or may come.
    Flowing {
        /// When the last ones came.
        since: Instant,
        /// Whether it was reported that none are there.
        told_quiet: bool,
    },
    /// [`Stop`] requested the end; bytes on their way are still received until this moment.
    Draining { until: Instant },
    /// It ended.
    Ended(End),
}

/// How long to wait before looking after `stop` and `idle` again.
const POLL: Duration = Duration::from_millis(100);

/// How long nothing may come before a stream that shall end does, and how long it takes at most. A program that is
/// stopped together with this one may write its last bytes in between.
const DRAINED: Duration = Duration::from_millis(100);
const LONGEST_DRAIN: Duration = Duration::from_secs(1);

impl Stream {
    /// A stream of what `source` reads.
    #[must_use]
    pub fn new(source: impl ByteSource + 'static, idle: Option<Duration>, stop: Stop) -> Self {
        let state = State::Flowing { since: Instant::now(), told_quiet: false };
        Self { source: Box::new(source), idle, stop, state, piece: Vec::new(), received: 0 }
    }

    /// How many bytes came.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Waits for what the stream does next.
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
                State::Flowing { told_quiet: false, .. } => Duration::ZERO,
                State::Flowing { since, .. } => {
                    let rest = |idle: Duration| idle.saturating_sub(since.elapsed()).min(POLL);
                    self.idle.map_or(POLL, rest)
                }
            };
            match self.source.read(&mut self.piece, patience) {
                Ok(Arrived::Bytes) if !self.piece.is_empty() => {
                    self.received += self.piece.len() as u64;
                    if let State::Flowing { since, told_quiet } = &mut self.state {
                        (*since, *told_quiet) = (Instant::now(), false);
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

    /// No byte came as long as there was patience. Returns whether this is to be reported.
    fn nothing_came(&mut self) -> bool {
        match &mut self.state {
            State::Flowing { told_quiet, .. } if !*told_quiet => {
                *told_quiet = true;
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

    /// All of it, at most `limit` bytes, and why it ended. `name` is used in messages.
    pub fn read_to_end(&mut self, name: &Path, limit: u64) -> Result<(Vec<u8>, End), CaptureError> {
        let mut bytes = Vec::new();
        loop {
            match self.next() {
                Event::Bytes(piece) => bytes.extend_from_slice(piece),
                Event::Quiet => {}
                Event::End(end) => return Ok((bytes, end)),
            }
            if bytes.len() as u64 > limit {
                return Err(CaptureError::of_file(name, FileProblem::TooLong { limit }));
            }
        }
    }
}

#[cfg(test)]
mod tests;
