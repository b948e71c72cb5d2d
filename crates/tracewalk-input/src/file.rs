//! The bytes of a whole file, within a limit.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::bytes::Bytes;
use crate::spool::Spool;

/// The longest description (`capture.toml`, the snapshot's `.ini` files, `registers.txt`). Arm's largest
/// device descriptions have some ten thousand bytes.
pub(crate) const LONGEST_TEXT: u64 = 4 << 20;

/// The longest capture. Devices such as `/dev/zero`, named by mistake, never end.
pub(crate) const LONGEST_CAPTURE: u64 = 16 << 30;

/// The longest image: a 32-bit address space has no more bytes.
pub(crate) const LONGEST_IMAGE: u64 = 4 << 30;

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", prefix = "file_")]
#[non_exhaustive]
pub enum FileProblem {
    /// The file does not exist.
    Missing,
    /// The path is a directory.
    Directory,
    /// The user has no permission to read the file.
    Denied,
    /// The file is empty.
    Empty,
    /// The file exceeds the limit.
    TooLong {
        /// The greatest length in bytes.
        limit: u64,
    },
    /// The file is a device that gives more bytes than any device with an end would.
    Endless {
        /// The number of bytes read.
        read: u64,
    },
    /// The file is not text.
    NotText {
        /// The first byte that is not UTF-8.
        offset: usize,
    },
    /// Another error; the operating system's message.
    Other(String),
}

impl FileProblem {
    /// A stable short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
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

/// Reads the file at `path`, at most `limit` bytes, as they are now.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Bytes, FileProblem> {
    let file = open(path)?;
    if is_device(&file)? {
        return read_device(file);
    }
    // Files that are not regular have no length, or no meaningful one.
    let expected = file.metadata().map_or(0, |metadata| metadata.len());
    collect(file, Spool::with_room(expected), limit)
}

/// Opens the capture at `path`, at most `limit` bytes. A large capture is mapped instead of copied: see
/// [`Bytes`].
pub(crate) fn map(path: &Path, limit: u64) -> Result<Bytes, FileProblem> {
    /// Smaller files are copied, so that later changes of the file do not affect them.
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

/// Whether the file is a character device, such as `/dev/zero`.
#[cfg(unix)]
fn is_device(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::FileTypeExt as _;
    Ok(file.metadata()?.file_type().is_char_device())
}

#[cfg(not(unix))]
fn is_device(_: &File) -> io::Result<bool> {
    Ok(false)
}

/// No device with an end gives more. The bytes stay in memory.
const LONGEST_DEVICE: u64 = 4 << 20;

/// Reads a device to its end. The bytes of an endless device are discarded.
fn read_device(device: File) -> Result<Bytes, FileProblem> {
    read_from(device, LONGEST_DEVICE).map_err(|problem| match problem {
        FileProblem::TooLong { limit } => FileProblem::Endless { read: limit },
        other => other,
    })
}

/// Reads an open file that may be a pipe or a device, at most `limit` bytes.
pub(crate) fn read_open(file: File, limit: u64) -> Result<Bytes, FileProblem> {
    if is_device(&file)? { read_device(file) } else { read_from(file, limit) }
}

/// Reads `reader` to its end, at most `limit` bytes.
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

/// The number of bytes to read at once.
const PIECE: u64 = 1 << 20;

/// Reads the text of the file at `path`, at most `limit` bytes.
///
/// # Errors
///
/// If the file cannot be read, is longer than `limit` bytes, or is not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> Result<String, FileProblem> {
    let bytes = read(path, limit)?;
    let text =
        std::str::from_utf8(&bytes).map_err(|error| FileProblem::NotText { offset: error.valid_up_to() })?;
    // Some Windows editors start a file with a byte order mark.
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned())
}

/// A reader of the file at `path`. After the first `limit` bytes, it returns an error.
///
/// # Errors
///
/// If the file cannot be opened.
pub fn reader(path: &Path, limit: u64) -> Result<impl BufRead, FileProblem> {
    let file = open(path)?;
    let (left, problem) = match is_device(&file)? {
        true => (LONGEST_DEVICE, FileProblem::Endless { read: LONGEST_DEVICE }),
        false => (limit, FileProblem::TooLong { limit }),
    };
    Ok(BufReader::with_capacity(1 << 14, Limited { file, left, problem }))
}

/// A file with a limit on its length.
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
