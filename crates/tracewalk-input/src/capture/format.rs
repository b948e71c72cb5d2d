//! The kinds of files that hold captures.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::contents::Capture;
use super::error::{CaptureError, CaptureErrorKind};
use super::wire::{RecordingProblem, WireOptions};
use crate::bytes::Bytes;
use crate::excerpt::excerpt;
use crate::paths::Confinement;

/// A kind of file that holds a capture, or that is given by mistake instead of one.
pub struct Format {
    /// The name of such a file in messages.
    pub name: &'static str,
    /// The file's content.
    pub holds: Holds,
    /// Whether the format can be decoded while it arrives.
    pub streams: bool,
    /// Whether a file has this format.
    pub(super) sniff: fn(&Given) -> bool,
    /// Opens a file with this format.
    pub(super) open: fn(&Given, &WireOptions) -> Result<Capture, CaptureError>,
    /// The files that such a file names.
    pub(super) names: fn(&Given) -> Vec<PathBuf>,
}

/// The content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// A description that names its trace.
    Description,
    /// Recorded signals on wires.
    Recording,
    /// A program, or memory in a core file.
    Elf,
    /// Records of Linux' perf, which include trace.
    PerfData,
    /// Text: memory as a tool prints it, or a file given by mistake.
    Text,
    /// Trace, or unknown bytes.
    Trace,
}

/// A file that was given, and its beginning.
pub(super) struct Given {
    pub(super) path: PathBuf,
    /// The whole content, if the file cannot be read twice.
    pub(super) bytes: Option<Bytes>,
    pub(super) head: Vec<u8>,
    /// Further directories in which the files of a description may be.
    pub(super) roots: Vec<PathBuf>,
}

impl Given {
    /// The length of the beginning by which a file is recognised.
    const HEAD: usize = 4096;

    /// The file or directory at `path`. Opening reports a file that cannot be read.
    pub(super) fn at(path: &Path, roots: &[PathBuf]) -> Self {
        let mut head = Vec::new();
        if path.is_file()
            && let Ok(file) = File::open(path)
        {
            // The beginning of an unreadable file stays empty.
            let _ = file.take(Self::HEAD as u64).read_to_end(&mut head);
        }
        Self { path: path.to_owned(), bytes: None, head, roots: roots.to_vec() }
    }

    /// A stream that was read to its end. `name` is used in messages.
    pub(super) fn read(name: &Path, bytes: Bytes) -> Self {
        let head = bytes.get(..Self::HEAD).unwrap_or(&bytes).to_vec();
        Self { path: name.to_owned(), bytes: Some(bytes), head, roots: Vec::new() }
    }

    /// A nameless stream that starts with `head`.
    pub(super) fn starting(head: &[u8]) -> Self {
        let head = head.get(..Self::HEAD).unwrap_or(head).to_vec();
        Self { path: PathBuf::new(), bytes: None, head, roots: Vec::new() }
    }
}

/// The error of a directory without a description.
pub(super) fn no_description(given: &Given) -> CaptureError {
    const MOST: usize = 8;
    let entries = std::fs::read_dir(&given.path).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.path().is_file());
    let mut files = files.map(|entry| excerpt(&entry.file_name().to_string_lossy())).collect::<Vec<_>>();
    files.sort();
    if files.len() > MOST {
        files.splice(MOST - 1.., ["…".to_owned()]);
    }
    CaptureError { file: given.path.clone(), line: None, kind: CaptureErrorKind::NoDescription { files } }
}

/// The description that was given: the file itself, or the file with this name in a given directory. An error
/// if that file leads out of the directory; `None` if there is no such file.
pub(super) fn description_in(given: &Given, name: &str) -> Option<Result<PathBuf, CaptureError>> {
    let path = given.path.as_path();
    if !path.is_dir() {
        return Some(Ok(path.to_owned()));
    }
    match Confinement::new(path, &given.roots).resolve(name) {
        Ok(description) => description.exists().then_some(Ok(description)),
        Err(problem) => {
            let kind = CaptureErrorKind::Path { name: name.to_owned(), problem, by: None };
            Some(Err(CaptureError { file: path.to_owned(), line: None, kind }))
        }
    }
}

/// The files that a description names, and the description itself if its directory was given.
pub(super) fn names_of(
    given: &Given,
    name: &str,
    named_by: fn(&Path, &[PathBuf]) -> Vec<PathBuf>,
) -> Vec<PathBuf> {
    let Some(Ok(description)) = description_in(given, name) else { return Vec::new() };
    let named = named_by(&description, &given.roots);
    let itself = given.path.is_dir().then_some(description);
    itself.into_iter().chain(named).collect()
}

/// Refuses options for recordings, because the capture is not a recording.
pub(super) fn refuse_options(capture: Capture, wires: &WireOptions) -> Result<Capture, CaptureError> {
    if wires.is_empty() {
        return Ok(capture);
    }
    let kind = CaptureErrorKind::Recording(RecordingProblem::NotARecording);
    Err(CaptureError { file: capture.path, line: None, kind })
}
