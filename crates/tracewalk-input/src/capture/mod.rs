//! Files → captures: trace bytes, and their description.
//!
//! A capture is a file of trace bytes, described by the caller, or a description that names the file and
//! states the rest: a `capture.toml`, or a snapshot directory as DS-5 and OpenCSD write it. A logic
//! analyser's recording may take the file's place, see [`wire`]. The result is the same for all: [`Buffer`]s
//! of bytes, each with its container and sources, and the [`ImageRequest`](crate::image::ImageRequest)s for
//! the program's memory.
//!
//! This module does not examine trace bytes. A container or protocol that is not stated stays unknown.
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
mod cmsis;
mod container;
mod contents;
mod description;
mod devices;
mod document;
mod dstream;
pub mod dump;
mod error;
mod format;
mod formats;
mod ini;
mod many;
pub mod perf;
mod place;
mod prompts;
mod registers;
mod snapshot;
mod source;
pub mod stream;
mod unused;
pub mod wire;
mod write;
mod write_snapshot;
mod yaml;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::bytes::Bytes;
use crate::file::{self, FileProblem};

pub use arrangement::{Arrangement, ReadPointerOutside};
pub use container::{Blocks, Container, UnknownContainer};
pub use contents::{Buffer, Capture};
pub use error::{CaptureError, CaptureErrorKind, OUTSIDE_TABLES};
use format::Given;
pub use format::{Format, Holds};
pub use formats::files;
pub use many::{FoundPath, is_described, walk};
pub use registers::{Registers, mtb_values};
pub use source::{ParseSourceError, Protocol, SourceDescription};
pub use unused::Unused;
use wire::WireOptions;
pub use write::{DescribeError, Written};
pub use write_snapshot::{Snapshot, SnapshotBuffer, SnapshotCore, SnapshotFile, SnapshotSource, TraceBytes};

impl Capture {
    /// Opens what `path` names: a directory with a `snapshot.ini`, `capture.toml` or `*.ctrace-run.yml`, one of these files, a recording
    /// of a logic analyser, or a file of trace bytes. `-` is standard input.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or a description or recording is malformed.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        Self::open_with(path, &WireOptions::default(), &[])
    }

    /// As [`Capture::open`], with options for reading a recording. The files that a description names may be
    /// in its own directory or in `roots`.
    ///
    /// # Errors
    ///
    /// Also if one of `roots` is not a directory.
    pub fn open_with(path: &Path, wires: &WireOptions, roots: &[PathBuf]) -> Result<Self, CaptureError> {
        if let Some(root) = roots.iter().find(|root| !root.is_dir()) {
            let kind = CaptureErrorKind::NotADirectory;
            return Err(CaptureError { file: root.clone(), line: None, kind });
        }
        if path.as_os_str() == "-" {
            return Self::read_from(path, io::stdin().lock(), wires);
        }
        if !path.is_file() && !path.is_dir() && path.exists() {
            // A pipe cannot be examined first and then read from its start.
            let file = File::open(path).map_err(|error| CaptureError::of_file(path, error.into()))?;
            let bytes = file::read_open(file, file::LONGEST_CAPTURE);
            return Self::of_bytes(path, bytes, wires);
        }
        let given = Given::at(path, roots);
        (formats::format_of(&given).open)(&given, wires)
    }

    /// The format of the file at `path`, by its name and first bytes.
    #[must_use]
    pub fn format(path: &Path) -> &'static Format {
        formats::format_of(&Given::at(path, &[]))
    }

    /// The format of a nameless stream that starts with `head`.
    #[must_use]
    pub fn format_of(head: &[u8]) -> &'static Format {
        formats::format_of(&Given::starting(head))
    }

    /// A capture of everything that `reader` returns: trace bytes, or a recording. `name` is used in
    /// messages.
    ///
    /// # Errors
    ///
    /// If `reader` fails or has too many bytes, or a recording is malformed.
    pub fn read_from(name: &Path, reader: impl Read, wires: &WireOptions) -> Result<Self, CaptureError> {
        Self::of_bytes(name, file::read_from(reader, file::LONGEST_CAPTURE), wires)
    }

    fn of_bytes(
        name: &Path,
        bytes: Result<Bytes, FileProblem>,
        wires: &WireOptions,
    ) -> Result<Self, CaptureError> {
        let bytes = bytes.map_err(|problem| CaptureError::of_file(name, problem))?;
        let given = Given::read(name, bytes);
        (formats::format_of(&given).open)(&given, wires)
    }
}

#[cfg(test)]
mod tests;
