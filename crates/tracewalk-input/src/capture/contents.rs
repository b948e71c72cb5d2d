//! The contents of a capture.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracewalk::plain::plain;
use tracewalk::span::CaptureOffset;

use super::arrangement::{Arrangement, ReadPointerOutside};
use super::container::{Blocks, Container};
use super::error::CaptureError;
use super::perf::Recorded;
use super::source::SourceDescription;
use super::unused::Unused;
use super::wire::Reading;
use crate::bytes::Bytes;
use crate::file::FileProblem;
use crate::image::ImageRequest;
use crate::origin::{Origin, Stated};

/// Trace bytes, and their description.
#[derive(Clone, Debug)]
pub struct Capture {
    /// The path that was opened.
    pub path: PathBuf,
    /// The buffers; at least one.
    pub buffers: Vec<Buffer>,
    /// Sources in the description whose trace is in no buffer.
    pub other_sources: Vec<SourceDescription>,
    /// The images that the description names.
    pub images: Vec<ImageRequest>,
    /// The frequency of timestamps, in hertz.
    pub timestamp_frequency: Option<Stated<u64>>,
    /// The file with the registers and the memory of the halted processor, if they are not in the trace's file.
    pub dump: Option<Stated<PathBuf>>,
    /// Unusable entries of the description. The rest is usable.
    pub notes: Vec<CaptureError>,
    /// Entries of the description with unknown names.
    pub unused: Vec<Unused>,
    /// The content of a perf recording besides its trace.
    pub recorded: Option<Arc<Recorded>>,
}

/// The bytes of one trace buffer.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// The buffer's name in a snapshot, else the file's.
    pub name: String,
    /// The file that the bytes came from.
    pub file: PathBuf,
    /// The bytes of trace; if there are [`Buffer::parts`], all bytes of the file.
    pub bytes: Bytes,
    /// The ranges of `bytes` that are trace, in the order in which it was made; `None` if all bytes are
    /// trace. Decoders restart at each part, because trace between the parts is missing. All ranges are
    /// inside `bytes`.
    pub parts: Option<Arc<[Range<usize>]>>,
    /// The container; `None` if not stated.
    pub container: Option<Stated<Container>>,
    /// The number of bytes before the first frame of a trace port, 0 to 15; `None` if not stated.
    pub frame_start: Option<Stated<u8>>,
    /// The stated sources.
    pub sources: Vec<SourceDescription>,
    /// The file's other bytes between those of trace; `bytes` does not contain them.
    pub blocks: Blocks,
    /// The arrangement in the file; `bytes` is already in order.
    pub arrangement: Arrangement,
    /// How the bytes were read from the recorded wires; `None` if the file has the bytes themselves.
    pub wires: Option<Reading>,
    /// The origin of this buffer's description.
    pub origin: Origin,
}

impl Capture {
    /// A capture of these trace bytes. `name` is used in messages.
    ///
    /// # Errors
    ///
    /// If there are no bytes.
    pub fn from_bytes(name: &Path, bytes: impl Into<Bytes>) -> Result<Self, CaptureError> {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return Err(CaptureError::of_file(name, FileProblem::Empty));
        }
        let buffer = Buffer {
            name: plain(name.file_name().unwrap_or(name.as_os_str()).to_string_lossy()).into_owned(),
            file: name.to_owned(),
            bytes,
            parts: None,
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
            dump: None,
            notes: Vec::new(),
            unused: Vec::new(),
            recorded: None,
        })
    }

    /// The sources of all buffers, in order.
    pub fn sources(&self) -> impl Iterator<Item = &SourceDescription> {
        self.buffers.iter().flat_map(|buffer| &buffer.sources)
    }

    /// The images of the core that `source` traces: images for this core, and images for every core. A source
    /// without a core gets only the latter.
    pub fn images_for<'a>(&'a self, source: &SourceDescription) -> impl Iterator<Item = &'a ImageRequest> {
        let core = source.core.clone();
        self.images.iter().filter(move |image| image.is_for(core.as_deref()))
    }
}

impl Buffer {
    /// The number of bytes that are trace.
    #[must_use]
    pub fn trace_bytes(&self) -> u64 {
        match &self.parts {
            None => self.bytes.len() as u64,
            Some(parts) => parts.iter().map(|part| part.len() as u64).sum(),
        }
    }

    /// The offset in the file of a byte of trace. Both offsets are the same unless the file has [`Blocks`] or
    /// an [`Arrangement`].
    #[must_use]
    pub fn file_offset(&self, offset: CaptureOffset) -> u64 {
        self.blocks.file_offset(self.arrangement.file_offset(offset, self.bytes.len() as u64))
    }

    /// The byte of trace at a place in the file, or the next one after it: the inverse of
    /// [`Buffer::file_offset`].
    #[must_use]
    pub fn trace_offset(&self, file: CaptureOffset) -> CaptureOffset {
        self.arrangement.trace_offset(self.blocks.trace_offset(file), self.bytes.len() as u64)
    }

    /// Puts the bytes, which must be in the file's order, in the order in which they were traced.
    ///
    /// # Errors
    ///
    /// If the read pointer is not in the file. The buffer is unchanged.
    pub fn arrange(&mut self, arrangement: Arrangement) -> Result<(), ReadPointerOutside> {
        let bytes = self.bytes.len() as u64;
        if let Some(found) = arrangement.read_pointer.as_ref().map(|pointer| pointer.value)
            && found >= bytes
        {
            return Err(ReadPointerOutside { found, bytes });
        }
        if !arrangement.is_usual() {
            self.bytes = arrangement.arranged(&self.bytes).into();
        }
        self.arrangement = arrangement;
        Ok(())
    }
}
