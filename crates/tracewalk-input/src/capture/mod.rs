//! Captures: trace bytes, and what is known about them.
//!
//! A capture is a file of trace bytes, of which the caller knows the rest, or a description that names the file and says
//! the rest: a `capture.toml`, or a snapshot directory as DS-5 and OpenCSD write it. In the file's place may be a
//! recording of a logic analyser, see [`wire`]. What comes out is the same for all: [`Buffer`]s of bytes, each with
//! its container and sources, and the [`ImageRequest`]s for the program's memory.
//!
//! What is not here: looking into the bytes. A container or protocol that nobody named stays unknown.
//!
//! ```no_run
//! use tracewalk_input::capture::Capture;
//! use tracewalk_input::image::ImageLoader;
//!
//! let capture = Capture::open("snapshots/TC2".as_ref())?;
//! let mut images = ImageLoader::new();
//! for source in capture.sources() {
//!     println!("{:?} {} on {:?}", source.id, source.protocol, source.core);
//!     let memory = images.memory(capture.images_for(source))?;
//!     println!("{} regions of code", memory.program.regions().len());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arrangement;
mod buffers;
mod container;
mod description;
mod devices;
mod document;
pub mod dump;
mod error;
mod files;
mod ini;
mod registers;
mod snapshot;
mod source;
pub mod stream;
mod unused;
pub mod wire;
mod write;
mod write_snapshot;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tracewalk::plain::plain;
use tracewalk::span::CaptureOffset;

use crate::bytes::Bytes;
use crate::file::{self, FileProblem};
use crate::image::ImageRequest;
use crate::origin::{Origin, Stated};
use crate::paths::Confinement;

pub use arrangement::{Arrangement, ReadPointerOutside};
pub use container::{Blocks, Container, UnknownContainer};
pub use error::{CaptureError, CaptureErrorKind};
pub use files::files;
pub use registers::Registers;
pub use source::{ParseSourceError, Protocol, SourceDescription};
pub use unused::Unused;
use wire::{Reading, Recording, RecordingProblem, Wire, WireOptions};
pub use write::DescribeError;
pub use write_snapshot::{Snapshot, SnapshotBuffer, SnapshotCore, SnapshotFile, SnapshotSource, TraceBytes};

/// Trace bytes and what is known about them.
#[derive(Clone, Debug)]
pub struct Capture {
    /// What was opened.
    pub path: PathBuf,
    /// The buffers; at least one.
    pub buffers: Vec<Buffer>,
    /// Sources that the description knows and whose trace is in no buffer.
    pub other_sources: Vec<SourceDescription>,
    /// The images that the description names.
    pub images: Vec<ImageRequest>,
    /// How often a second the timestamps count.
    pub timestamp_frequency: Option<Stated<u64>>,
    /// What the description says and nothing can be done with. The rest is usable.
    pub notes: Vec<CaptureError>,
    /// What the description says beside, in words that are not known here.
    pub unused: Vec<Unused>,
}

/// The bytes of one trace buffer.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// The buffer's name in a snapshot, else the file's.
    pub name: String,
    /// The file that the bytes came from.
    pub file: PathBuf,
    /// The bytes of trace.
    pub bytes: Bytes,
    /// How they are packed; `None` where nobody said it.
    pub container: Option<Stated<Container>>,
    /// Behind how many bytes the first frame of a trace port starts, 0 to 15; `None` where nobody said it.
    pub frame_start: Option<Stated<u8>>,
    /// Whose trace they are, as far as anybody said it.
    pub sources: Vec<SourceDescription>,
    /// What stood between the bytes of trace in the file, and is not in `bytes`.
    pub blocks: Blocks,
    /// How the bytes of trace stood in the file, which stand in their order in `bytes`.
    pub arrangement: Arrangement,
    /// How the bytes were read off the wires; `None` where the file has the bytes themselves.
    pub wires: Option<Reading>,
    /// Who says that there is this buffer.
    pub origin: Origin,
}

impl Capture {
    /// Opens what `path` names: a directory with a `snapshot.ini` or `capture.toml`, one of these files, a recording of
    /// a logic analyser, or a file of trace bytes. `-` is standard input.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        Self::open_with(path, &WireOptions::default())
    }

    /// As [`Capture::open`], where it is said how a recording is to be read.
    pub fn open_with(path: &Path, wires: &WireOptions) -> Result<Self, CaptureError> {
        if path.as_os_str() == "-" {
            return Self::read_from(path, io::stdin().lock(), wires);
        }
        if path.is_dir() {
            return Self::open_directory(path, wires);
        }
        if has_extension(path, "toml") {
            return description::read(path, wires);
        }
        if has_extension(path, "ini") {
            return snapshot::read(path).and_then(|capture| refuse_options(capture, wires));
        }
        if !path.is_file() && path.exists() {
            // A pipe cannot be looked at and then read from its start.
            let file = File::open(path).map_err(|error| file_error(path, error.into()))?;
            return Self::read_from(path, file, wires);
        }
        if let Some(recording) = Recording::open(path)? {
            return Self::from_recording(path, &recording, wires);
        }
        let bytes = file::map(path, file::LONGEST_CAPTURE).map_err(|problem| file_error(path, problem))?;
        Self::from_bytes(path, bytes).and_then(|capture| refuse_options(capture, wires))
    }

    /// Whether `path` names a description of a capture, and not the trace itself.
    #[must_use]
    pub fn is_description(path: &Path) -> bool {
        path.is_dir() || has_extension(path, "toml") || has_extension(path, "ini")
    }

    fn open_directory(path: &Path, wires: &WireOptions) -> Result<Self, CaptureError> {
        let inside = Confinement::new(path);
        let named = |name: &str| {
            inside.resolve(name).map_err(|problem| {
                let kind = CaptureErrorKind::Path { name: name.to_owned(), problem, by: None };
                CaptureError { file: path.to_owned(), line: None, kind }
            })
        };
        let (snapshot, description) = (named("snapshot.ini")?, named("capture.toml")?);
        if snapshot.exists() {
            snapshot::read(&snapshot).and_then(|capture| refuse_options(capture, wires))
        } else if description.exists() {
            description::read(&description, wires)
        } else {
            Err(CaptureError { file: path.to_owned(), line: None, kind: CaptureErrorKind::NoDescription })
        }
    }

    /// A capture of what `reader` gives until its end: trace bytes, or a recording. `name` is used in messages.
    pub fn read_from(name: &Path, reader: impl Read, wires: &WireOptions) -> Result<Self, CaptureError> {
        let bytes =
            file::read_from(reader, file::LONGEST_CAPTURE).map_err(|problem| file_error(name, problem))?;
        if let Some(recording) = Recording::from_bytes(name, bytes.clone())? {
            return Self::from_recording(name, &recording, wires);
        }
        Self::from_bytes(name, bytes).and_then(|capture| refuse_options(capture, wires))
    }

    fn from_recording(name: &Path, recording: &Recording, wires: &WireOptions) -> Result<Self, CaptureError> {
        let (bytes, reading) = wire::read(recording, wires)?;
        let mut capture = Self::from_bytes(name, bytes)?;
        for buffer in &mut capture.buffers {
            buffer.container = usual_container(&reading);
            buffer.wires = Some(reading.clone());
        }
        Ok(capture)
    }

    /// A capture of these trace bytes. `name` is used in messages.
    pub fn from_bytes(name: &Path, bytes: impl Into<Bytes>) -> Result<Self, CaptureError> {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return Err(file_error(name, FileProblem::Empty));
        }
        let buffer = Buffer {
            name: plain(name.file_name().unwrap_or(name.as_os_str()).to_string_lossy()).into_owned(),
            file: name.to_owned(),
            bytes,
            container: None,
            frame_start: None,
            sources: Vec::new(),
            blocks: Blocks::None,
            arrangement: Arrangement::default(),
            wires: None,
            origin: Origin::file(name),
        };
        Ok(Self {
            path: name.to_owned(),
            buffers: vec![buffer],
            other_sources: Vec::new(),
            images: Vec::new(),
            timestamp_frequency: None,
            notes: Vec::new(),
            unused: Vec::new(),
        })
    }

    /// The sources of all buffers, in order.
    pub fn sources(&self) -> impl Iterator<Item = &SourceDescription> {
        self.buffers.iter().flat_map(|buffer| &buffer.sources)
    }

    /// The images of the core that `source` traces: those for this core, and those for every core. A source without
    /// a core gets only the latter.
    pub fn images_for<'a>(&'a self, source: &SourceDescription) -> impl Iterator<Item = &'a ImageRequest> {
        let core = source.core.clone();
        self.images.iter().filter(move |image| image.is_for(core.as_deref()))
    }
}

impl Buffer {
    /// Where in the file a byte of trace stands. They are the same unless the file has [`Blocks`].
    #[must_use]
    pub fn file_offset(&self, offset: CaptureOffset) -> u64 {
        self.blocks.file_offset(self.arrangement.file_offset(offset, self.bytes.len() as u64))
    }

    /// Which byte of trace stands at a place in the file, or behind it where none does: what
    /// [`Buffer::file_offset`] leads to.
    #[must_use]
    pub fn trace_offset(&self, file: CaptureOffset) -> CaptureOffset {
        self.arrangement.trace_offset(self.blocks.trace_offset(file), self.bytes.len() as u64)
    }
}

/// Whether a file's name ends so, in any case.
fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

/// How the bytes of a trace port are packed: a port always sends frames. SWO may send a source's bytes as they are.
fn usual_container(reading: &Reading) -> Option<Stated<Container>> {
    (reading.wire == Wire::Port).then(|| Stated::new(Container::TracePort, Origin::Detected))
}

/// A capture that is no recording, which options for one do not fit.
fn refuse_options(capture: Capture, wires: &WireOptions) -> Result<Capture, CaptureError> {
    if wires.is_empty() {
        return Ok(capture);
    }
    let kind = CaptureErrorKind::Recording(RecordingProblem::NotARecording);
    Err(CaptureError { file: capture.path, line: None, kind })
}

/// A file that cannot be read.
fn file_error(path: &Path, problem: FileProblem) -> CaptureError {
    CaptureError { file: path.to_owned(), line: None, kind: CaptureErrorKind::File(problem) }
}

#[cfg(test)]
mod tests;
