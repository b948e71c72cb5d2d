//! A capture to open, with the caller's statements.

use std::path::PathBuf;

use tracewalk::ids::{Address, TraceId};
use tracewalk_input::MemoryLimit;
use tracewalk_input::capture::perf::BinaryPlaces;
use tracewalk_input::capture::wire::WireOptions;
use tracewalk_input::capture::{Container, SourceDescription};
use tracewalk_input::image::ImageRequest;

use crate::shared::Shared;

/// A capture to open, statements about it, and whether to infer the rest.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// A file of trace bytes, a `capture.toml` or a snapshot directory.
    pub capture: PathBuf,
    /// Further directories for files that a description names, besides the description's own.
    pub roots: Vec<PathBuf>,
    /// The caller's statements. A statement replaces that of the capture's own description.
    pub stated: Statements,
    /// The images of the program, besides those that the description names.
    pub images: Vec<ImageRequest>,
    /// The trace IDs to decode; all if empty.
    pub ids: Vec<TraceId>,
    /// Whether missing settings are inferred.
    pub policy: Policy,
    /// The memory limit.
    pub limit: MemoryLimit,
    /// The number of bytes of a segment that one thread decodes; `None` for the fastest. Tests use it to cut a capture of
    /// some kilobytes into many segments. The results do not depend on it.
    pub segment: Option<usize>,
    /// A cache shared with other sessions.
    pub shared: Option<Shared>,
}

impl Request {
    /// A capture without statements: all settings may be inferred.
    #[must_use]
    pub fn new(capture: impl Into<PathBuf>) -> Self {
        Self { capture: capture.into(), ..Self::default() }
    }

    /// Whether the capture is searched for sources.
    pub(crate) const fn searches(&self) -> bool {
        self.ids.is_empty() && self.stated.sources.is_empty() && matches!(self.policy, Policy::Infer)
    }
}

/// Whether missing settings are inferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Missing settings are inferred from the bytes and the program.
    #[default]
    Infer,
    /// A missing setting is an error.
    Strict,
}

/// A caller's statements about a capture; everything omitted may be inferred.
#[derive(Clone, Debug, Default)]
pub struct Statements {
    /// How the bytes are packed.
    pub container: Option<Container>,
    /// For a trace port without FSYNC: the number of bytes before the first frame, 0 to 15.
    pub frame_start: Option<u8>,
    /// For a buffer that wrapped, read from its first address on: the offset of its oldest byte in the file.
    pub read_pointer: Option<u32>,
    /// Whether each 32-bit word of the file has its highest byte first.
    pub swap_words: bool,
    /// The address of the file's first byte, for a memory dump.
    pub dump_address: Option<Address>,
    /// How a recording of a logic analyser is read.
    pub wires: WireOptions,
    /// Where to search for the files that ran on a machine recorded by perf.
    pub binaries: BinaryPlaces,
    /// The sources.
    pub sources: Vec<SourceDescription>,
    /// Statements about an MTB.
    pub mtb: MtbStatements,
    /// The chip's CMSIS-SVD file.
    pub svd: Option<PathBuf>,
    /// The address of M profile's vector table (VTOR).
    pub vector_table: Option<Address>,
}

/// A caller's statements about a Micro Trace Buffer.
#[derive(Clone, Debug, Default)]
pub struct MtbStatements {
    /// MTB_POSITION: the place of the oldest packet.
    pub position: Option<u32>,
    /// MTB_MASTER: the size of the buffer.
    pub master: Option<u32>,
    /// MTB_BASE: the address of its RAM.
    pub base: Option<u32>,
    /// The address at which the processor halted, if the MTB was on until then.
    pub halted_at: Option<Address>,
    /// A file with lines like `MTB_POSITION=0x…`.
    pub registers: Option<PathBuf>,
}
