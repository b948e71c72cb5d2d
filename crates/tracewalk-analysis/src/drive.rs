//! Decodes a source's bytes and hands on packets, program flow or checkpoints.
//!
//! An [`Input`] (a capture, and how the source's bytes lie in it) goes in. [`Follower`] gives program flow in the trace's order, or in
//! segments on several threads; [`FlowIndex`] gives cursors that can be placed anywhere; [`Input::itm`] gives an ITM's records. The
//! result does not depend on the number of threads or on where segments are cut.
//!
//! ```
//! use tracewalk::flow::Element;
//! use tracewalk::ids::Address;
//! use tracewalk::program::Program;
//! use tracewalk::protocol::etmv3;
//! use tracewalk::source::SourceConfig;
//! use tracewalk_analysis::drive::{Carrier, Follower, Input, NoProgress, Stretch};
//!
//! let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//! let mut program = Program::new();
//! program.add(Address::new(0x100), &[0x00, 0xbf, 0x00, 0xbf])?; // two NOPs
//! // A-sync, I-sync at 0x100 in Thumb, and two packets of one executed instruction each.
//! let capture = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x84, 0x84];
//!
//! let carrier = Carrier::Stretches(vec![Stretch::all(capture.len())]);
//! let input = Input { capture: &capture, carrier, rest: None, progress: &NoProgress };
//! let mut blocks = Vec::new();
//! Follower::new(&config, &program).flow(&input, |record| {
//!     if let Element::Block(block) = record.element {
//!         blocks.push((block.start, block.end));
//!     }
//!     Ok(())
//! })?;
//! assert_eq!(blocks, [(Address::new(0x100), Address::new(0x104))]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cursor;
mod follower;
mod index;
mod itm;
mod kept;
mod packets;
mod parallel;
mod part;
mod segment;
mod spread;

use std::io;
use std::ops::Range;

use tracewalk::frame::{
    Cause, Discontinuity, FrameSink, Framing, Index, Owner, Piece, PlaceMap, RecoveringDeframer,
};
use tracewalk::ids::TraceId;
use tracewalk::span::{CaptureOffset, Span, StreamOffset};

pub use cursor::{Cursor, Here, HereInstruction};
pub use follower::{Follower, Learned};
pub use index::{FlowIndex, Sizes, Totals, steps};
pub use kept::KeptIndex;
pub use part::Gathered;
pub use segment::Places;
pub use spread::Spread;

use crate::Statistics;

pub use itm::{ItmRecords, ItmStream};

/// One source's bytes in a capture.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// The capture's bytes.
    pub capture: &'a [u8],
    /// How the source's bytes lie in them.
    pub carrier: Carrier,
    /// The part of the capture that is still to come. The last stretch continues into it.
    pub rest: Option<&'a dyn Rest>,
    /// Called at intervals with the number of capture bytes that are done.
    pub progress: &'a dyn Progress,
}

/// The part of a capture that is still to come.
pub trait Rest: std::fmt::Debug {
    /// Calls `take` with each piece as it arrives, until `take` returns `false` or the capture ends. An error comes from the
    /// consumer of the results, and ends the work.
    fn each(&self, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<Ending>;
}

/// Why no more bytes arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The capture ends here: an incomplete packet is malformed.
    Complete,
    /// The consumer stopped: an incomplete packet is ignored.
    Open,
}

/// How a source's bytes lie in a capture.
#[derive(Clone, Debug)]
pub enum Carrier {
    /// In frames, with other sources' bytes between them.
    Frames {
        /// The synchronisation patterns between the frames.
        framing: Framing,
        /// The trace ID of the source's bytes.
        id: TraceId,
    },
    /// In frames at known places.
    Indexed {
        /// The places of the frames in this capture.
        index: Index,
        /// The trace ID of the source's bytes.
        id: TraceId,
    },
    /// As stretches of the capture, in the order in which the source made them.
    Stretches(Vec<Stretch>),
}

impl Carrier {
    /// Whether the source's bytes lie in the capture in the order in which the source made them.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        match self {
            Self::Frames { .. } => true,
            Self::Indexed { index, .. } => !index.has_gaps(),
            Self::Stretches(stretches) => stretches.is_sorted_by_key(|stretch| stretch.bytes.start),
        }
    }
}

/// A part of a capture that holds nothing but one source's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The range of the capture; the part outside of it is left out.
    pub bytes: Range<usize>,
    /// Whether the source made the first byte directly after the last one of the stretch before.
    pub continues: bool,
}

impl Stretch {
    /// A capture of `bytes` bytes that holds only one source.
    #[must_use]
    pub const fn all(bytes: usize) -> Self {
        Self { bytes: 0..bytes, continues: false }
    }

    /// Whether no byte of this capture is in it.
    fn is_empty_in(&self, capture: &[u8]) -> bool {
        self.bytes.start >= self.bytes.end.min(capture.len())
    }
}

/// Receives the progress of the work.
pub trait Progress: std::fmt::Debug {
    /// Reports the number of the capture's bytes that are done. Returns whether the work continues; if not, the results so far
    /// are handed on, and an incomplete packet is ignored.
    fn done(&self, bytes: u64) -> bool;
}

/// Ignores progress.
#[derive(Clone, Copy, Debug)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn done(&self, _bytes: u64) -> bool {
        true
    }
}

impl<'a> Input<'a> {
    /// The first `bytes` bytes of the capture that have arrived, or all of them.
    #[must_use]
    pub fn head(self, bytes: usize) -> Self {
        match self.carrier {
            // The first parts of a reordered capture, wherever they are in it.
            Carrier::Indexed { index, id } if index.has_gaps() => {
                let carrier = Carrier::Indexed { index: index.head(bytes as u64), id };
                Self { carrier, rest: None, progress: &NoProgress, ..self }
            }
            Carrier::Stretches(stretches) => {
                let carrier = Carrier::Stretches(first_of(stretches, self.capture, bytes));
                Self { carrier, rest: None, progress: &NoProgress, ..self }
            }
            Carrier::Indexed { ref index, id } => {
                let Some(capture) = self.capture.get(..bytes) else {
                    return Self { rest: None, progress: &NoProgress, ..self };
                };
                // The index covers the whole capture.
                let carrier = Carrier::Frames { framing: index.framing(), id };
                Self { capture, carrier, rest: None, progress: &NoProgress }
            }
            Carrier::Frames { .. } => {
                let capture = self.capture.get(..bytes).unwrap_or(self.capture);
                Self { capture, rest: None, progress: &NoProgress, ..self }
            }
        }
    }

    /// The places of the source's bytes. Bytes that arrive later are left out.
    #[must_use]
    pub fn places(&self) -> Places<'_> {
        Places::new(self.capture, &self.carrier)
    }

    /// Calls `sink` with the source's bytes, piece by piece.
    fn feed(&self, sink: &mut impl Take) -> io::Result<Ending> {
        match &self.carrier {
            &Carrier::Frames { framing, id } => {
                let mut deframer = RecoveringDeframer::new(framing);
                let mut only = OnlySource { id, sink, bytes: Vec::new() };
                let mut push = |chunk: &[u8]| {
                    deframer.push(chunk, &mut only);
                    only.hand_on();
                    !only.sink.has_failed()
                };
                let goes_on = self.chunks(0..self.capture.len(), |_, chunk| push(chunk));
                let ending = self.each_of_rest(goes_on, |_, chunk| push(chunk))?;
                deframer.finish(&mut only);
                only.hand_on();
                Ok(ending)
            }
            Carrier::Indexed { index, id } => {
                let mut extraction = index.extraction(*id, index.sections());
                let mut only = OnlySource { id: *id, sink, bytes: Vec::new() };
                let mut goes_on = true;
                while goes_on && let Some(done) = extraction.advance(self.capture, &mut only) {
                    only.hand_on();
                    goes_on = !only.sink.has_failed() && self.progress.done(done);
                }
                Ok(if goes_on { Ending::Complete } else { Ending::Open })
            }
            Carrier::Stretches(stretches) => {
                let mut is_cut = false;
                let goes_on = stretches.iter().all(|stretch| {
                    is_cut |= !stretch.continues;
                    if stretch.is_empty_in(self.capture) {
                        return true;
                    }
                    if std::mem::take(&mut is_cut) && sink.places().end().0 > 0 {
                        sink.interrupt(Interruption::Cut);
                    }
                    self.chunks(stretch.bytes.clone(), |at, chunk| sink.take_contiguous(at, chunk))
                });
                self.each_of_rest(goes_on, |at, chunk| sink.take_contiguous(at, chunk))
            }
        }
    }

    /// Calls `work` with the bytes that arrive later, as long as it continues.
    fn each_of_rest(
        &self,
        goes_on: bool,
        mut work: impl FnMut(CaptureOffset, &[u8]) -> bool,
    ) -> io::Result<Ending> {
        if !goes_on {
            return Ok(Ending::Open);
        }
        let Some(rest) = self.rest else { return Ok(Ending::Complete) };
        let mut at = CaptureOffset(self.capture.len() as u64);
        rest.each(&mut |chunk| {
            let goes_on = work(at, chunk);
            at.0 += chunk.len() as u64;
            goes_on && self.progress.done(at.0)
        })
    }

    /// Calls `work` with a part of the capture, chunk by chunk, as long as it returns `true` and progress allows. Returns whether
    /// the work continues.
    fn chunks(&self, part: Range<usize>, mut work: impl FnMut(CaptureOffset, &[u8]) -> bool) -> bool {
        let mut at = CaptureOffset(part.start as u64);
        let end = part.end.min(self.capture.len());
        self.capture.get(part.start..end).unwrap_or_default().chunks(CHUNK).all(|chunk| {
            let goes_on = work(at, chunk);
            at.0 += chunk.len() as u64;
            goes_on && self.progress.done(at.0)
        })
    }
}

/// The first `bytes` bytes that stretches have of a capture.
fn first_of(stretches: Vec<Stretch>, capture: &[u8], bytes: usize) -> Vec<Stretch> {
    let mut room = bytes;
    let mut first = Vec::new();
    for stretch in stretches {
        if room == 0 {
            break;
        }
        let Range { start, end } = stretch.bytes;
        let end = end.min(capture.len()).min(start.saturating_add(room));
        room -= end.saturating_sub(start);
        first.push(Stretch { bytes: start..end, ..stretch });
    }
    first
}

/// The number of bytes between two reports of progress: few, because memory is checked there.
const CHUNK: usize = 1 << 15;

/// The furthest that an element may lie before the newest byte. The decoder holds back at most a gap of 4 KiB.
const WINDOW: u64 = 1 << 16;

/// Why a source's bytes do not continue the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    /// The trace was cut there on purpose.
    Cut,
    /// Bytes were lost, and others may be wrong.
    Loss,
}

impl Interruption {
    /// The interruption that a discontinuity of the frames causes in a source that had bytes before it.
    fn of(discontinuity: &Discontinuity) -> Option<Self> {
        match discontinuity.cause {
            // Before the source's first byte, no trace is lost.
            Cause::Start => None,
            Cause::Barrier => Some(Self::Cut),
            Cause::MisplacedSync | Cause::ImpossibleId | Cause::Shifted { .. } | Cause::NoFrames => {
                Some(Self::Loss)
            }
        }
    }
}

/// Takes one source's bytes.
trait Take {
    fn places(&mut self) -> &mut PlaceMap;

    /// Takes the next bytes; `places` knows them already.
    fn take(&mut self, bytes: &[u8]);

    /// The next bytes do not continue the previous ones.
    fn interrupt(&mut self, why: Interruption);

    fn has_failed(&self) -> bool;

    /// Takes the next bytes, which are contiguous from `at`; returns whether it wants more.
    fn take_contiguous(&mut self, at: CaptureOffset, bytes: &[u8]) -> bool {
        self.places().append_contiguous(at, bytes.len() as u64);
        self.take(bytes);
        !self.has_failed()
    }
}

/// Hands on one source's bytes of a formatted capture.
struct OnlySource<'a, S> {
    id: TraceId,
    sink: &'a mut S,
    /// Bytes not handed on yet, collected because pieces are short and numerous.
    bytes: Vec<u8>,
}

impl<S: Take> OnlySource<'_, S> {
    fn hand_on(&mut self) {
        let places = self.sink.places();
        places.trim(StreamOffset(places.end().0.saturating_sub(WINDOW + self.bytes.len() as u64)));
        self.sink.take(&self.bytes);
        self.bytes.clear();
    }
}

impl<S: Take> FrameSink for OnlySource<'_, S> {
    #[inline]
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if owner.trace_id() == Some(self.id) {
            self.sink.places().append(piece);
            piece.append_to(&mut self.bytes);
        }
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        if let (Some(why), true) = (Interruption::of(&discontinuity), self.sink.places().end().0 > 0) {
            self.hand_on();
            self.sink.interrupt(why);
        }
    }
}

/// The consumer of records, until its first error.
struct Look<F> {
    look: F,
    failed: Option<io::Error>,
    /// The place of the last item with bytes of its own, for items without bytes at the end.
    last: CaptureOffset,
}

impl<F> Look<F> {
    const fn new(look: F) -> Self {
        Self { look, failed: None, last: CaptureOffset(0) }
    }

    fn locate(&mut self, span: Span, places: &mut PlaceMap) -> CaptureOffset {
        // The place of the next byte after a loss may not be known yet.
        let place = if span.end > span.start { places.locate(span.start) } else { None };
        self.last = place.unwrap_or(self.last);
        self.last
    }

    fn end(self, statistics: Statistics) -> io::Result<Statistics> {
        self.failed.map_or(Ok(statistics), Err)
    }
}

#[cfg(test)]
mod tests;
