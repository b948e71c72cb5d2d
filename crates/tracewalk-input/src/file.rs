//! The bytes of a whole file, within a limit.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::bytes::Bytes;
use crate::spool::Spool;

/// The longest text that describes something (`capture.toml`, the snapshot's `.ini` files, `registers.txt`).
/// Arm's largest device descriptions have some ten thousand bytes.
pub(crate) const LONGEST_TEXT: u64 = 4 << 20;

/// The longest capture. A wrong name such as `/dev/zero` has no end.
pub(crate) const LONGEST_CAPTURE: u64 = 16 << 30;

/// The longest image: memory of 32 bits has no more bytes.
pub(crate) const LONGEST_IMAGE: u64 = 4 << 30;

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileProblem {
    /// There is no such file.
    Missing,
    /// It is a directory.
    Directory,
    /// The user may not read it.
    Denied,
    /// There is nothing in it.
    Empty,
    /// It is longer than anything that makes sense.
    TooLong {
        /// The greatest length in bytes.
        limit: u64,
    },
    /// It is a device that gives more bytes than anything would that has an end.
    Endless {
        /// How many bytes were read.
        read: u64,
    },
    /// It is not text.
    NotText {
        /// The first byte that is not UTF-8.
        offset: usize,
    },
    /// Something else, in the operating system's words.
    Other(String),
}

impl FileProblem {
    /// A stable short name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "file_missing",
            Self::Directory { .. } => "file_directory",
            Self::Denied { .. } => "file_denied",
            Self::Empty { .. } => "file_empty",
            Self::TooLong { .. } => "file_too_long",
            Self::Endless { .. } => "file_endless",
            Self::NotText { .. } => "file_not_text",
            Self::Other { .. } => "file_other",
        }
    }
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("no such file"),
            Self::Directory => f.write_str("is a directory, expected a file"),
            Self::Denied => f.write_str("cannot be read: permission denied"),
            Self::Empty => f.write_str("is empty"),
            Self::TooLong { limit } => write!(f, "is longer than {limit} bytes"),
            Self::Endless { read } => write!(f, "is an endless device: {read} bytes were read"),
            Self::NotText { offset } => write!(f, "is not text: byte {offset} is not UTF-8"),
            Self::Other(message) => write!(f, "cannot be read: {message}"),
        }
    }
}

impl From<io::Error> for FileProblem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
            io::ErrorKind::IsADirectory => Self::Directory,
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Other(error.to_string()),
        }
    }
}

/// The bytes of the file at `path`, at most `limit` of them, as they are now.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Bytes, FileProblem> {
    let file = open(path)?;
    if is_device(&file)? {
        return read_device(file);
    }
    // A file that is not a regular one has no length, or none that means anything.
    let expected = file.metadata().map_or(0, |metadata| metadata.len());
    collect(file, Spool::with_room(expected), limit)
}

/// The bytes of the capture at `path`, at most `limit` of them. A large one is not copied: see [`Bytes`].
pub(crate) fn map(path: &Path, limit: u64) -> Result<Bytes, FileProblem> {
    /// Smaller files are read, which nothing that happens to them later can disturb.
    const SMALLEST: u64 = 4 << 20;
    let file = open(path)?;
    let metadata = file.metadata()?;
    if is_device(&file)? {
        return read_device(file);
    }
    if !metadata.is_file() || metadata.len() < SMALLEST {
        return collect(file, Spool::with_room(metadata.len()), limit);
    }
    if metadata.len() > limit {
        return Err(FileProblem::TooLong { limit });
    }
    Ok(Bytes::map(&file)?)
}

fn open(path: &Path) -> Result<File, FileProblem> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() { Err(FileProblem::Directory) } else { Ok(file) }
}

/// Whether it is a device of characters, such as `/dev/zero`.
#[cfg(unix)]
fn is_device(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::FileTypeExt as _;
    Ok(file.metadata()?.file_type().is_char_device())
}

#[cfg(not(unix))]
fn is_device(_: &File) -> io::Result<bool> {
    Ok(false)
}

/// No device with an end gives more: as much as stays in memory.
const LONGEST_DEVICE: u64 = 4 << 20;

/// What a device gives until its end. Most have none; nothing of these is kept.
fn read_device(device: File) -> Result<Bytes, FileProblem> {
    read_from(device, LONGEST_DEVICE).map_err(|problem| match problem {
        FileProblem::TooLong { limit } => FileProblem::Endless { read: limit },
        other => other,
    })
}

/// The bytes of an open file that may be a pipe or a device, at most `limit` of them.
pub(crate) fn read_open(file: File, limit: u64) -> Result<Bytes, FileProblem> {
    if is_device(&file)? { read_device(file) } else { read_from(file, limit) }
}

/// What `reader` gives until its end, at most `limit` bytes.
pub(crate) fn read_from(reader: impl Read, limit: u64) -> Result<Bytes, FileProblem> {
    collect(reader, Spool::default(), limit)
}

fn collect(mut reader: impl Read, mut spool: Spool, limit: u64) -> Result<Bytes, FileProblem> {
    loop {
        if spool.fill(&mut reader, PIECE)? == 0 {
            return Ok(spool.finish()?);
        }
        if spool.len() > limit {
            return Err(FileProblem::TooLong { limit });
        }
    }
}

/// How much is read at once.
const PIECE: u64 = 1 << 20;

/// The text of the file at `path`, of at most `limit` bytes.
pub fn read_text(path: &Path, limit: u64) -> Result<String, FileProblem> {
    let bytes = read(path, limit)?;
    let text =
        std::str::from_utf8(&bytes).map_err(|error| FileProblem::NotText { offset: error.valid_up_to() })?;
    // Some Windows editors start a file with a byte order mark.
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned())
}

/// The bytes of the file at `path`, one after the other. After the first `limit` of them comes an error.
pub fn reader(path: &Path, limit: u64) -> Result<impl BufRead, FileProblem> {
    let file = open(path)?;
    let (left, problem) = match is_device(&file)? {
        true => (LONGEST_DEVICE, FileProblem::Endless { read: LONGEST_DEVICE }),
        false => (limit, FileProblem::TooLong { limit }),
    };
    Ok(BufReader::with_capacity(1 << 14, Limited { file, left, problem }))
}

/// A file that must not be longer.
struct Limited {
    file: File,
    left: u64,
    problem: FileProblem,
}

impl Read for Limited {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        let length = u64::try_from(read).unwrap_or(u64::MAX);
        self.left =
            self.left.checked_sub(length).ok_or_else(|| io::Error::other(self.problem.to_string()))?;
        Ok(read)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::capture::CaptureErrorKind;

    #[test]
    fn a_device_without_an_end_is_refused_after_a_few_megabytes() {
        for device in ["/dev/zero", "/dev/urandom"] {
            let path = Path::new(device);
            let is_endless = |found: Result<Bytes, FileProblem>| matches!(found, Err(FileProblem::Endless { read }) if read <= 8 << 20);
            assert!(is_endless(map(path, LONGEST_CAPTURE)), "{device}");
            assert!(is_endless(read(path, LONGEST_IMAGE)), "{device}");
            let refused = crate::capture::Capture::open(path).map_err(|error| error.kind);
            let is_endless = matches!(refused, Err(CaptureErrorKind::File(FileProblem::Endless { .. })));
            assert!(is_endless, "{device}");
        }
        assert_eq!(map(Path::new("/dev/null"), LONGEST_CAPTURE).map(|bytes| bytes.len()), Ok(0));
        let mut some = Vec::new();
        assert!(reader(Path::new("/dev/zero"), u64::MAX).unwrap().read_to_end(&mut some).is_err());
        assert!(some.len() <= 4 << 20);
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [7; 100_000]).unwrap();
        let read = |limit| {
            let mut bytes = Vec::new();
            reader(file.path(), limit).unwrap().read_to_end(&mut bytes).map_err(drop)
        };
        assert_eq!((read(100_000), read(99_999)), (Ok(100_000), Err(())));
    }
}
