//! What a caller wants opened, and what it states of it.

use std::path::PathBuf;

use tracewalk::ids::{Address, TraceId};
use tracewalk_input::MemoryLimit;
use tracewalk_input::capture::perf::BinaryPlaces;
use tracewalk_input::capture::wire::WireOptions;
use tracewalk_input::capture::{Container, SourceDescription};
use tracewalk_input::image::ImageRequest;

use crate::shared::Shared;

/// A capture to open, what is known of it, and what may be done to know the rest.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// A file of trace bytes, a `capture.toml` or a snapshot directory.
    pub capture: PathBuf,
    /// The directories beside a description's own in which files that it names may lie.
    pub roots: Vec<PathBuf>,
    /// What is known of it. A statement replaces what the capture's own description says.
    pub stated: Statements,
    /// The images of the program, besides those that the description names.
    pub images: Vec<ImageRequest>,
    /// The trace IDs that are wanted; all for none.
    pub ids: Vec<TraceId>,
    /// What becomes of what nobody stated.
    pub policy: Policy,
    /// How much memory may be used.
    pub limit: MemoryLimit,
    /// How many bytes a segment has that one thread decodes; `None` for what is quickest. It is there for tests, for which a capture of
    /// some kilobytes should have many segments. Nothing that comes out depends on it.
    pub segment: Option<usize>,
    /// What it shares with other sessions, if it does.
    pub shared: Option<Shared>,
}

impl Request {
    /// A capture of which everything may be inferred.
    #[must_use]
    pub fn new(capture: impl Into<PathBuf>) -> Self {
        Self { capture: capture.into(), ..Self::default() }
    }

    /// Whether the sources of the capture are to be found in it.
    pub(crate) const fn searches(&self) -> bool {
        self.ids.is_empty() && self.stated.sources.is_empty() && matches!(self.policy, Policy::Infer)
    }
}

/// What becomes of what nobody stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// It is inferred from the bytes and the program.
    #[default]
    Infer,
    /// It is an error.
    Strict,
}

/// What a caller states of a capture.
#[derive(Clone, Debug, Default)]
pub struct Statements {
    /// How the bytes are packed.
    pub container: Option<Container>,
    /// Of a trace port without FSYNC: after how many bytes the first frame starts, 0 to 15.
    pub frame_start: Option<u8>,
    /// Of a buffer that wrapped, read from its first address on: the offset of its oldest byte in the file.
    pub read_pointer: Option<u32>,
    /// Whether each 32-bit word of the file has its highest byte first.
    pub swap_words: bool,
    /// Where the memory was that the file holds.
    pub dump_address: Option<Address>,
    /// How a recording of a logic analyser is read.
    pub wires: WireOptions,
    /// Where the files are that ran on a machine that perf recorded.
    pub binaries: BinaryPlaces,
    /// The sources.
    pub sources: Vec<SourceDescription>,
    /// What is known of an MTB.
    pub mtb: MtbStatements,
    /// The chip's CMSIS-SVD file.
    pub svd: Option<PathBuf>,
    /// Where M profile's table of vectors is.
    pub vector_table: Option<Address>,
}

/// What a caller states of a Micro Trace Buffer.
#[derive(Clone, Debug, Default)]
pub struct MtbStatements {
    /// POSITION: where the oldest packet is.
    pub position: Option<u32>,
    /// MASTER: how large the buffer is.
    pub master: Option<u32>,
    /// BASE: where its RAM is.
    pub base: Option<u32>,
    /// Where the processor was found halted, if the MTB was on until then.
    pub halted_at: Option<Address>,
    /// A file with lines like `MTB_POSITION=0x…`.
    pub registers: Option<PathBuf>,
}
