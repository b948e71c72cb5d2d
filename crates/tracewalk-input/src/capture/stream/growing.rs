//! A file that another program is still writing.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::problem::StreamProblem;
use super::source::{Arrived, ByteSource, PIECE, broken, read_once};
use crate::file::FileProblem;

/// A file that grows. It has no end of its own, because its writer may continue at any time. If the file need
/// not exist yet, reading waits for it. After all earlier bytes were read, reading fails if the file was
/// shortened, rewritten, deleted or replaced.
#[derive(Debug)]
pub struct Growing {
    path: PathBuf,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The file does not exist yet.
    Missing,
    Followed(Followed),
    /// A pipe or a device, which has no length.
    Special(File),
}

/// A file that exists.
#[derive(Debug)]
struct Followed {
    file: File,
    read: u64,
    /// The last bytes read: as long as the file only grows, they stay unchanged.
    tail: Vec<u8>,
    /// The time since which the file's name belongs to another file, or to none.
    gone: Option<Instant>,
}

/// The interval for polling a file.
const LOOK: Duration = Duration::from_millis(50);

/// The time that a writer has to finish a file that has lost its name.
const GRACE: Duration = Duration::from_millis(200);

/// The number of bytes that are compared to detect a rewritten file.
const TAIL: usize = 64;

impl Growing {
    /// Reads the file at `path` from its start. The file need not exist yet, but its directory must.
    ///
    /// # Errors
    ///
    /// If the directory does not exist, or the file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, FileProblem> {
        let state = match File::open(path) {
            Ok(file) => State::of(file)?,
            Err(error) if error.kind() == ErrorKind::NotFound && has_directory(path) => State::Missing,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { path: path.to_owned(), state })
    }

    /// Whether reading would wait for a file that does not exist yet.
    #[must_use]
    pub fn is_waited_for(path: &Path) -> bool {
        !path.exists() && has_directory(path)
    }
}

fn has_directory(path: &Path) -> bool {
    path.parent().is_some_and(|parent| parent.as_os_str().is_empty() || parent.is_dir())
}

impl State {
    fn of(file: File) -> Result<Self, FileProblem> {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(FileProblem::Directory);
        }
        Ok(if metadata.is_file() {
            Self::Followed(Followed { file, read: 0, tail: Vec::new(), gone: None })
        } else {
            Self::Special(file)
        })
    }
}

impl ByteSource for Growing {
    fn read(&mut self, piece: &mut Vec<u8>, patience: Duration) -> Result<Arrived, StreamProblem> {
        let arrived = match &mut self.state {
            State::Missing => {
                match File::open(&self.path) {
                    Ok(file) => {
                        let state = State::of(file);
                        self.state = state.map_err(|problem| StreamProblem::Broken(problem.to_string()))?;
                    }
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(broken(&error)),
                }
                false
            }
            State::Followed(followed) => followed.read(&self.path, piece)?,
            State::Special(file) => match read_once(file, piece) {
                Ok(bytes) => bytes > 0,
                Err(error) if error.kind() == ErrorKind::Interrupted => false,
                Err(error) => return Err(broken(&error)),
            },
        };
        if arrived {
            return Ok(Arrived::Bytes);
        }
        thread::sleep(patience.min(LOOK));
        Ok(Arrived::Nothing)
    }
}

impl Followed {
    /// Reads the bytes that were added; returns whether there were any.
    fn read(&mut self, path: &Path, piece: &mut Vec<u8>) -> Result<bool, StreamProblem> {
        match self.read_after_tail(piece) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(false),
            Err(error) => return Err(broken(&error)),
        }
        let length = || self.file.metadata().map(|metadata| metadata.len()).map_err(|error| broken(&error));
        let Some(added) = piece.strip_prefix(self.tail.as_slice()) else {
            let found = length()?;
            return Err(if found < self.read {
                StreamProblem::Shortened { read: self.read, found }
            } else {
                StreamProblem::Overwritten { read: self.read }
            });
        };
        let (added, kept) = (added.len(), piece.len().saturating_sub(TAIL));
        if added > 0 {
            let tail = piece.get(kept..).unwrap_or_default().to_vec();
            piece.drain(..self.tail.len());
            (self.tail, self.gone) = (tail, None);
            self.read += added as u64;
            return Ok(true);
        }
        self.check_name(path)?;
        Ok(false)
    }

    /// Reads the last bytes again, and the bytes after them.
    fn read_after_tail(&mut self, piece: &mut Vec<u8>) -> io::Result<()> {
        piece.clear();
        self.file.seek(SeekFrom::Start(self.read.saturating_sub(self.tail.len() as u64)))?;
        self.file.by_ref().take(PIECE as u64).read_to_end(piece)?;
        Ok(())
    }

    /// Checks whether the file's name still belongs to it.
    fn check_name(&mut self, path: &Path) -> Result<(), StreamProblem> {
        let problem = match (fs::metadata(path), self.file.metadata()) {
            (Ok(named), Ok(own)) if !is_same(&named, &own) => StreamProblem::Replaced,
            (Err(error), _) if error.kind() == ErrorKind::NotFound => StreamProblem::Deleted,
            _ => {
                self.gone = None;
                return Ok(());
            }
        };
        if self.gone.get_or_insert_with(Instant::now).elapsed() < GRACE { Ok(()) } else { Err(problem) }
    }
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// On other systems, an open file cannot be replaced.
#[cfg(not(unix))]
const fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}
