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
mod contents;
mod description;
mod devices;
mod document;
pub mod dump;
mod error;
mod files;
mod ini;
mod place;
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
use std::path::Path;

use crate::file;
use crate::paths::Confinement;

pub use arrangement::{Arrangement, ReadPointerOutside};
pub use container::{Blocks, Container, UnknownContainer};
pub use contents::{Buffer, Capture};
pub use error::{CaptureError, CaptureErrorKind};
pub use files::files;
pub use registers::Registers;
pub use source::{ParseSourceError, Protocol, SourceDescription};
pub use unused::Unused;
use wire::{Recording, RecordingProblem, WireOptions};
pub use write::DescribeError;
pub use write_snapshot::{Snapshot, SnapshotBuffer, SnapshotCore, SnapshotFile, SnapshotSource, TraceBytes};

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
            let file = File::open(path).map_err(|error| CaptureError::of_file(path, error.into()))?;
            return Self::read_from(path, file, wires);
        }
        if let Some(recording) = Recording::open(path)? {
            return Self::from_recording(path, &recording, wires);
        }
        let bytes =
            file::map(path, file::LONGEST_CAPTURE).map_err(|problem| CaptureError::of_file(path, problem))?;
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
        let bytes = file::read_from(reader, file::LONGEST_CAPTURE)
            .map_err(|problem| CaptureError::of_file(name, problem))?;
        if let Some(recording) = Recording::from_bytes(name, bytes.clone())? {
            return Self::from_recording(name, &recording, wires);
        }
        Self::from_bytes(name, bytes).and_then(|capture| refuse_options(capture, wires))
    }

    fn from_recording(name: &Path, recording: &Recording, wires: &WireOptions) -> Result<Self, CaptureError> {
        let (bytes, reading) = wire::read(recording, wires)?;
        let mut capture = Self::from_bytes(name, bytes)?;
        for buffer in &mut capture.buffers {
            buffer.container = container::of_wires(&reading);
            buffer.wires = Some(reading.clone());
        }
        Ok(capture)
    }
}

/// Whether a file's name ends so, in any case.
fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

/// A capture that is no recording, which options for one do not fit.
fn refuse_options(capture: Capture, wires: &WireOptions) -> Result<Capture, CaptureError> {
    if wires.is_empty() {
        return Ok(capture);
    }
    let kind = CaptureErrorKind::Recording(RecordingProblem::NotARecording);
    Err(CaptureError { file: capture.path, line: None, kind })
}

#[cfg(test)]
mod tests;
