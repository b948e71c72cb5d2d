//! What is in a capture.

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
    /// What a recording of perf says beside its trace.
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
    /// Which of the bytes are trace, in the order in which it was made, if not all are. Each part begins anew: trace between them is not
    /// there. They are inside the bytes.
    pub parts: Option<Arc<[Range<usize>]>>,
    /// How they are packed; `None` if nobody said it.
    pub container: Option<Stated<Container>>,
    /// After how many bytes the first frame of a trace port starts, 0 to 15; `None` if nobody said it.
    pub frame_start: Option<Stated<u8>>,
    /// Whose trace they are, as far as anybody said it.
    pub sources: Vec<SourceDescription>,
    /// What stood between the bytes of trace in the file, and is not in `bytes`.
    pub blocks: Blocks,
    /// How the bytes of trace stood in the file, which stand in their order in `bytes`.
    pub arrangement: Arrangement,
    /// How the bytes were read off the wires; `None` if the file has the bytes themselves.
    pub wires: Option<Reading>,
    /// Who says that there is this buffer.
    pub origin: Origin,
}

impl Capture {
    /// A capture of these trace bytes. `name` is used in messages.
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
            notes: Vec::new(),
            unused: Vec::new(),
            recorded: None,
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
    /// The number of bytes that are trace.
    #[must_use]
    pub fn trace_bytes(&self) -> u64 {
        match &self.parts {
            None => self.bytes.len() as u64,
            Some(parts) => parts.iter().map(|part| part.len() as u64).sum(),
        }
    }

    /// Where in the file a byte of trace stands. They are the same unless the file has [`Blocks`].
    #[must_use]
    pub fn file_offset(&self, offset: CaptureOffset) -> u64 {
        self.blocks.file_offset(self.arrangement.file_offset(offset, self.bytes.len() as u64))
    }

    /// Which byte of trace stands at a place in the file, or after it where none does: what
    /// [`Buffer::file_offset`] leads to.
    #[must_use]
    pub fn trace_offset(&self, file: CaptureOffset) -> CaptureOffset {
        self.arrangement.trace_offset(self.blocks.trace_offset(file), self.bytes.len() as u64)
    }

    /// Puts the bytes in the order in which they were traced. They have to be as in the file.
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
