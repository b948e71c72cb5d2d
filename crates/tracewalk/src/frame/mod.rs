//! The CoreSight formatter: frames of 16 bytes ↔ the bytes of each trace ID.
//!
//! A formatter (in a TPIU, an ETB or a TMC) lets several trace sources share one port or buffer. A frame has eight
//! *mixed* bytes at its even places, each either data or a new trace ID, seven data bytes at its odd places, and an
//! *auxiliary* byte with one bit for each mixed byte (CoreSight SoC-400 TRM, DDI 0480G, "Trace formatter"; IHI 0029,
//! "Formatter protocol"):
//!
//! | mixed byte 2n | bit n of the auxiliary byte |
//! |---|---|
//! | bit 0 clear: data, its own bit 0 is in the auxiliary byte | that bit 0 |
//! | bit 0 set: bits 7..1 are the new trace ID | 0: the byte after it is the new source's; 1: still the old one's |
//!
//! A trace port adds synchronisation: FSYNC (`ff ff ff 7f`) between frames and HSYNC (`ff 7f`) between any two pairs
//! of bytes. A buffer has neither, but Linux's drivers put a whole frame of four FSYNCs where a trace was cut.
//!
//! - [`Deframer`] takes a capture in pieces of any size and hands out each owner's bytes with their place in the capture.
//!   Every capture byte is accounted for once: see [`Account`].
//! - [`RecoveringDeframer`] does the same if bytes may be missing: it finds the frames again, and reports the losses.
//! - [`Indexer`] finds the frames once, so that each source's bytes can be taken out of any part of the capture.
//! - [`AlignmentRanking`] works out where frames start in bytes without synchronisation, and why: see
//!   [`AlignmentEvidence`].
//! - [`Formatter`] makes frames of each source's bytes.
//! - [`PlaceMap`] maps a source's bytes to their offsets in the capture.
//!
//! Not here: the meaning of the bytes, and the protocol of a trace ID. A change of trace ID is not a boundary
//! of packets. Packets continue across frames and across other sources' bytes, and a sink must not reset
//! anything there.
//!
//! ```
//! use tracewalk::frame::{Deframer, Formatter, FormatterOptions, FrameSink, Framing, Discontinuity, Owner, Piece};
//! use tracewalk::ids::TraceId;
//!
//! /// Collects the bytes of one source.
//! struct Source(TraceId, Vec<u8>);
//!
//! impl FrameSink for Source {
//!     fn data(&mut self, owner: Owner, piece: Piece<'_>) {
//!         if owner == Owner::Source(self.0) {
//!             self.1.extend(piece.bytes);
//!         }
//!     }
//!     fn discontinuity(&mut self, _: Discontinuity) {}
//! }
//!
//! let (one, other) = (TraceId::new(0x10).unwrap(), TraceId::new(0x20).unwrap());
//! let mut formatter = Formatter::new(FormatterOptions::default());
//! let mut capture = Vec::new();
//! formatter.write(one, &[1, 2, 3], &mut capture);
//! formatter.write(other, &[4, 5], &mut capture);
//! formatter.write(one, &[6], &mut capture);
//! formatter.flush(&mut capture);
//! assert_eq!(capture.len(), 16);
//!
//! let mut source = Source(one, Vec::new());
//! let mut deframer = Deframer::new(Framing::Buffer);
//! deframer.push(&capture, &mut source);
//! assert_eq!(source.1, [1, 2, 3, 6]);
//! ```

mod account;
mod alignment;
mod deframer;
mod encode;
mod framer;
mod index;
mod indexer;
mod layout;
mod only;
mod owner;
mod partial;
mod place_map;
mod recovery;
mod sink;
mod unpacker;

pub use account::Account;
pub use alignment::FrameAlignment;
pub use deframer::{Deframer, Framing, Tail};
pub use encode::{Formatter, FormatterOptions};
pub use index::{Extraction, InSection, Index};
pub use indexer::Indexer;
pub use layout::{FRAME_BYTES, FRAME_DATA_BYTES, FSYNC, HSYNC};
pub use owner::{IdSet, Owner, ReservedId};
pub use place_map::PlaceMap;
pub use recovery::{AlignmentCandidate, AlignmentEvidence, AlignmentRanking, RecoveringDeframer};
pub use sink::{Cause, Discontinuity, FrameSink, Piece};

#[cfg(test)]
mod tests;
