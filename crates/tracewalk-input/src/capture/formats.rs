//! The registry of capture formats. Formats are distinguished nowhere else.

use std::path::{Path, PathBuf};

use super::container::{self, Blocks, Container};
use super::contents::Capture;
use super::error::CaptureError;
use super::format::{Format, Given, Holds, no_description, refuse_options};
use super::wire::{self, Recording, WireOptions};
use super::{cmsis, description, dstream, perf, snapshot};
use crate::bytes::Bytes;
use crate::file;
use crate::origin::{Origin, Stated};
use crate::text::{Letters, letters};

/// The formats. The first one that recognises a file opens it; the last one accepts every file.
pub(super) const FORMATS: &[Format] = &[
    snapshot::FORMAT,
    description::FORMAT,
    cmsis::FORMAT,
    perf::FORMAT,
    DIRECTORY,
    RECORDING,
    ELF,
    DSTREAM,
    TEXT,
    TRACE,
];

/// The format of a file.
pub(super) fn format_of(given: &Given) -> &'static Format {
    FORMATS.iter().find(|format| (format.sniff)(given)).unwrap_or(&TRACE)
}

/// A directory without a description.
const DIRECTORY: Format = Format {
    name: "a directory",
    holds: Holds::Description,
    streams: false,
    sniff: |given| given.path.is_dir(),
    open: |given, _| Err(no_description(given)),
    names: nothing,
};

/// A recording of a logic analyser: see [`wire`] for its formats.
const RECORDING: Format = Format {
    name: "a recording",
    holds: Holds::Recording,
    streams: false,
    sniff: |given| Recording::is_one(&given.path, &given.head),
    open: open_recording,
    names: nothing,
};

/// A file with a program or memory. It is opened like trace: a later stage looks for a dump in it.
const ELF: Format = Format {
    name: "an ELF file",
    holds: Holds::Elf,
    streams: false,
    sniff: |given| given.head.starts_with(b"\x7fELF"),
    ..TRACE
};

/// A DSTREAM unit's blocks, without a description.
const DSTREAM: Format = Format {
    name: "a DSTREAM unit's blocks",
    holds: Holds::Trace,
    streams: false,
    sniff: |given| dstream::is_one(&given.head),
    open: open_dstream,
    names: nothing,
};

const TEXT: Format = Format {
    name: "text",
    holds: Holds::Text,
    streams: false,
    sniff: |given| !given.head.is_empty() && letters(&given.head) == Some(Letters::Utf8),
    ..TRACE
};

const TRACE: Format = Format {
    name: "trace bytes",
    holds: Holds::Trace,
    streams: true,
    sniff: |_| true,
    open: open_trace,
    names: nothing,
};

fn nothing(_: &Given) -> Vec<PathBuf> {
    Vec::new()
}

fn open_recording(given: &Given, wires: &WireOptions) -> Result<Capture, CaptureError> {
    let recording = match &given.bytes {
        Some(bytes) => Recording::from_bytes_with(&given.path, bytes.clone(), wires)?,
        None => Recording::open_with(&given.path, wires)?,
    };
    // The file may change between two reads.
    let Some(recording) = recording else { return open_bytes(given, wires) };
    let (bytes, reading) = wire::read(&recording, wires)?;
    let mut capture = Capture::from_bytes(&given.path, bytes)?;
    for buffer in &mut capture.buffers {
        buffer.container = container::of_wires(&reading);
        buffer.wires = Some(reading.clone());
    }
    Ok(capture)
}

fn open_trace(given: &Given, wires: &WireOptions) -> Result<Capture, CaptureError> {
    // Samples without metadata look like any other bytes.
    if wires.samples.is_some() { open_recording(given, wires) } else { open_bytes(given, wires) }
}

fn open_bytes(given: &Given, wires: &WireOptions) -> Result<Capture, CaptureError> {
    refuse_options(Capture::from_bytes(&given.path, bytes(given)?)?, wires)
}

fn open_dstream(given: &Given, wires: &WireOptions) -> Result<Capture, CaptureError> {
    let payload = Blocks::Dstream.payload(bytes(given)?);
    let payload = payload.map_err(|problem| CaptureError::of_file(&given.path, problem))?;
    let mut capture = Capture::from_bytes(&given.path, payload)?;
    for buffer in &mut capture.buffers {
        buffer.blocks = Blocks::Dstream;
        // A DSTREAM unit captures trace ports.
        buffer.container = Some(Stated::new(Container::TracePort, Origin::Detected));
    }
    refuse_options(capture, wires)
}

fn bytes(given: &Given) -> Result<Bytes, CaptureError> {
    match &given.bytes {
        Some(bytes) => Ok(bytes.clone()),
        None => file::map(&given.path, file::LONGEST_CAPTURE)
            .map_err(|problem| CaptureError::of_file(&given.path, problem)),
    }
}

/// The files that opening the capture at `path` reads: the file itself, and, for a description, the files
/// that it names. These may be in `roots`. Names that cannot be found in a malformed description are left
/// out.
#[must_use]
pub fn files(path: &Path, roots: &[PathBuf]) -> Vec<PathBuf> {
    let given = Given::at(path, roots);
    let mut files = vec![path.to_owned()];
    files.extend((format_of(&given).names)(&given));
    files
}
