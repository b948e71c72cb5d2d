//! Packs sources' bytes into a capture: without frames, in a buffer's frames, in a trace port's frames, and
//! with the changes that such bytes undergo on their way into a file.

use std::num::NonZeroU32;

use tracewalk::frame::{FRAME_BYTES, FSYNC, FormatterOptions};
use tracewalk_generate::container::{SourceBytes, frames};
use tracewalk_input::capture::Container;
use tracewalk_session::Statements;

/// A capture's bytes, and the statements that describe their packing.
pub(crate) struct Packed {
    pub(crate) bytes: Vec<u8>,
    pub(crate) stated: Statements,
    /// Whether the capture has all bytes of the sources, in order.
    pub(crate) is_whole: bool,
}

/// A way to pack sources' bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// One source's bytes and nothing else.
    Raw,
    /// The frames of a buffer.
    Frames,
    /// A buffer in which IDs are repeated, after the barrier of Linux' drivers.
    AfterBarrier,
    /// Two such buffers, the second after a barrier.
    BarrierBetween,
    /// A buffer that wrapped, with its oldest byte this many sixteenths from the start.
    Turned(usize),
    /// A trace port: FSYNC and HSYNC, and the offset of the first frame in bytes.
    Port(usize),
    /// A trace port without FSYNC.
    PortWithoutFullSync(usize),
}

impl Packing {
    pub(crate) fn pack(self, sources: &[SourceBytes]) -> Packed {
        let (bytes, container) = match self {
            Self::Raw => (sources[0].bytes.clone(), Container::Raw),
            Self::Frames => (in_frames(sources), Container::Frames),
            Self::AfterBarrier => ([barrier(), in_frames(sources)].concat(), Container::Frames),
            Self::BarrierBetween => {
                let frames = in_frames(sources);
                ([frames.clone(), barrier(), frames].concat(), Container::Frames)
            }
            Self::Turned(sixteenths) => return turned(&in_frames(sources), sixteenths),
            Self::Port(start) => (at_port(sources, start, Some(64)), Container::TracePort),
            Self::PortWithoutFullSync(start) => (at_port(sources, start, None), Container::TracePort),
        };
        let frame_start = match self {
            Self::PortWithoutFullSync(start) => u8::try_from(start).ok(),
            _ => None,
        };
        let stated = Statements { container: Some(container), frame_start, ..Statements::default() };
        Packed { bytes, stated, is_whole: self != Self::BarrierBetween }
    }

    pub(crate) const fn has_ids(self) -> bool {
        !matches!(self, Self::Raw)
    }
}

/// Reverses the bytes of each 32-bit word.
pub(crate) fn swap_words(packed: Packed) -> Packed {
    let Packed { mut bytes, stated, is_whole } = packed;
    // The padding of the last word did not come from the source.
    let is_whole = is_whole && bytes.len().is_multiple_of(4);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
    Packed { bytes, stated: Statements { swap_words: true, ..stated }, is_whole }
}

fn in_frames(sources: &[SourceBytes]) -> Vec<u8> {
    // As a TPIU does (ETB TRM, DDI 0314H).
    frames(sources, FormatterOptions { repeat_id_after: NonZeroU32::new(8), ..FormatterOptions::default() })
}

/// Frames with an FSYNC after every eighth.
pub(crate) fn in_port_frames(sources: &[SourceBytes]) -> Vec<u8> {
    frames(sources, FormatterOptions { full_sync_every: NonZeroU32::new(8), ..FormatterOptions::default() })
}

/// The barrier that Linux' drivers for the ETB and the TMC insert where trace was cut.
fn barrier() -> Vec<u8> {
    FSYNC.repeat(FRAME_BYTES / FSYNC.len())
}

/// The newest bytes, a power of two of them, rotated so that the oldest is somewhere in the middle.
fn turned(frames: &[u8], sixteenths: usize) -> Packed {
    let size = (frames.len() / 2 + 1).next_power_of_two();
    let mut bytes = frames[frames.len() - size..].to_vec();
    let pointer = size / 16 * sixteenths;
    bytes.rotate_right(pointer);
    let read_pointer = u32::try_from(pointer).ok();
    let stated = Statements { container: Some(Container::Frames), read_pointer, ..Statements::default() };
    Packed { bytes, stated, is_whole: false }
}

/// Begins with `start` bytes of an empty frame: a recording of a port may begin anywhere.
fn at_port(sources: &[SourceBytes], start: usize, full_sync_every: Option<u32>) -> Vec<u8> {
    let options = FormatterOptions {
        repeat_id_after: NonZeroU32::new(8),
        full_sync_every: full_sync_every.and_then(NonZeroU32::new),
        half_sync_every: NonZeroU32::new(61),
    };
    [vec![0; start], frames(sources, options)].concat()
}
