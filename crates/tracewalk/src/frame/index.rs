//! Where a capture's frames are, found out once, so that each source's bytes can be taken out of any part of it.
//!
//! Where frames are depends on everything that came before: on what was learned of their data, and on what was lost. But
//! where they lie one behind the other, taking them apart needs no more than to know whose byte is the first one.
//!
//! ```text
//! all bytes, once ─▶ Indexer ─▶ Index: a list of sections, and how many bytes each source has in front of each
//! a section ─▶ Extraction ─▶ one source's bytes
//!     frames only:     its first owner
//!     anything else:   the deframer as it was in front of it, which goes on from there
//! ```

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use super::account::Account;
use super::deframer::{Framing, Tail};
use super::only::Only;
use super::owner::Owner;
use super::recovery::RecoveringDeframer;
use super::sink::FrameSink;
use crate::ids::TraceId;

/// Where a capture's frames are. A copy costs nothing.
///
/// ```
/// use tracewalk::frame::{Discontinuity, Formatter, FormatterOptions, FrameSink, Framing, Indexer, Owner, Piece};
/// use tracewalk::ids::TraceId;
///
/// #[derive(Default)]
/// struct Bytes(Vec<u8>);
///
/// impl FrameSink for Bytes {
///     fn data(&mut self, _: Owner, piece: Piece<'_>) {
///         self.0.extend_from_slice(piece.bytes);
///     }
///     fn discontinuity(&mut self, _: Discontinuity) {}
/// }
///
/// let [one, other] = [0x10, 0x11].map(|id| TraceId::new(id).expect("a trace source's ID"));
/// let mut capture = Vec::new();
/// let mut formatter = Formatter::new(FormatterOptions::default());
/// formatter.write(one, b"some", &mut capture);
/// formatter.write(other, b"other", &mut capture);
/// formatter.write(one, b"thing", &mut capture);
/// formatter.flush(&mut capture);
///
/// let mut indexer = Indexer::new(Framing::Buffer);
/// indexer.push(&capture, &mut Bytes::default());
/// let (index, ..) = indexer.finish(&mut Bytes::default());
/// assert_eq!((index.bytes_of(one), index.bytes_of(other)), (9, 5));
///
/// let mut found = Bytes::default();
/// let mut extraction = index.extraction(one, index.sections());
/// while extraction.advance(&capture, &mut found).is_some() {}
/// assert_eq!(found.0, b"something");
/// ```
#[derive(Clone, Debug)]
pub struct Index(Arc<Contents>);

#[derive(Debug)]
struct Contents {
    framing: Framing,
    /// How many bytes the deframer was given at a time.
    chunk: u64,
    /// Ascending; the first one begins with the capture.
    sections: Vec<Section>,
    /// What is behind the last one.
    end: Border,
}

/// A stretch of the capture, up to the next section.
#[derive(Debug)]
struct Section {
    start: Border,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Frames, one behind the other.
    Frames {
        /// Whose the first byte is.
        owner: Owner,
    },
    /// Anything else.
    Mixed {
        /// As it was in front of the section.
        deframer: Box<RecoveringDeframer>,
    },
}

/// Between two sections.
#[derive(Clone, Debug)]
struct Border {
    /// Up to where everything was handed out.
    at: u64,
    /// How many bytes the deframer had been given then.
    pushed: u64,
    /// How many bytes each source has in front of it, by ID.
    before: Vec<(TraceId, u64)>,
}

impl Border {
    fn before(&self, id: TraceId) -> u64 {
        self.before.iter().find(|(found, _)| *found == id).map_or(0, |(_, bytes)| *bytes)
    }
}

/// How many bytes a deframer is given at a time. A section begins where it was given so many, or a multiple.
const CHUNK: u64 = 1 << 16;

/// When there are so many sections, they become twice as long, so that a large capture takes no more memory.
const MOST_SECTIONS: usize = 1 << 14;

/// Of so many places with something else than frames it is remembered how to go on behind them. A deframer takes some
/// kilobytes.
const MOST_MIXED: usize = 1 << 8;

impl Index {
    /// How the frames lie in the capture.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.0.framing
    }

    /// How many bytes a source has.
    #[must_use]
    pub fn bytes_of(&self, id: TraceId) -> u64 {
        self.0.end.before(id)
    }

    /// The sources that have bytes, and how many.
    pub fn sources(&self) -> impl Iterator<Item = (TraceId, u64)> {
        self.0.end.before.iter().copied()
    }

    /// The numbers of all sections.
    #[must_use]
    pub fn sections(&self) -> Range<usize> {
        0..self.0.sections.len()
    }

    /// How many bytes a source has in a section, if there are only frames in it: then it can be taken apart in one piece.
    #[must_use]
    pub fn bytes_in(&self, section: usize, id: TraceId) -> Option<u64> {
        let found = self.0.sections.get(section).filter(|found| matches!(found.kind, Kind::Frames { .. }))?;
        Some(self.behind(section).before(id) - found.start.before(id))
    }

    /// Takes one source's bytes out of some sections of the capture.
    #[must_use]
    pub fn extraction(&self, id: TraceId, sections: Range<usize>) -> Extraction {
        Extraction { index: self.clone(), id, sections, inside: None }
    }

    /// Where a section ends.
    fn behind(&self, section: usize) -> &Border {
        self.0.sections.get(section + 1).map_or(&self.0.end, |next| &next.start)
    }
}

/// One source's bytes on their way out of a capture.
#[derive(Clone, Debug)]
pub struct Extraction {
    index: Index,
    id: TraceId,
    /// The sections that are not begun.
    sections: Range<usize>,
    /// The section that is, where it is mixed.
    inside: Option<Mixed>,
}

/// A section that a deframer takes apart.
#[derive(Clone, Debug)]
struct Mixed {
    deframer: Box<RecoveringDeframer>,
    section: usize,
    /// How many bytes it was given.
    pushed: u64,
}

impl Extraction {
    /// Whose bytes they are.
    #[must_use]
    pub const fn id(&self) -> TraceId {
        self.id
    }

    /// Takes the next piece of the `capture` apart that the index is of. Answers how many of its bytes are done; `None` where
    /// there was nothing left. The sink is given bytes of other sources where that is less work than leaving them out.
    pub fn advance(&mut self, capture: &[u8], sink: &mut impl FrameSink) -> Option<u64> {
        if let Some(inside) = self.inside.take() {
            return Some(self.go_on(inside, capture, sink));
        }
        loop {
            let section = self.sections.next()?;
            let found = self.index.0.sections.get(section)?;
            match &found.kind {
                Kind::Frames { .. } if self.index.bytes_in(section, self.id) == Some(0) => {}
                Kind::Frames { owner } => {
                    let end = self.index.behind(section).at;
                    let frames = slice(capture, found.start.at, end).as_chunks().0;
                    Only::new(self.id, *owner).frames(found.start.at, frames, sink);
                    return Some(end);
                }
                Kind::Mixed { deframer } => {
                    let inside = Mixed { deframer: deframer.clone(), section, pushed: found.start.pushed };
                    return Some(self.go_on(inside, capture, sink));
                }
            }
        }
    }

    fn go_on(&mut self, mut inside: Mixed, capture: &[u8], sink: &mut impl FrameSink) -> u64 {
        // The same pieces as at the first time make it hand out as much at each border.
        let end = self.index.behind(inside.section).pushed;
        let done = (inside.pushed + self.index.0.chunk).min(end);
        inside.deframer.push(slice(capture, inside.pushed, done), sink);
        inside.pushed = done;
        if done < end {
            self.inside = Some(inside);
        } else if inside.section + 1 == self.index.0.sections.len() {
            inside.deframer.finish(sink);
        }
        done
    }
}

fn slice(capture: &[u8], start: u64, end: u64) -> &[u8] {
    let [start, end] = [start, end].map(|at| usize::try_from(at).unwrap_or(usize::MAX).min(capture.len()));
    capture.get(start..end).unwrap_or_default()
}

/// Makes the index of a capture that comes in pieces of any size, and hands out what is in its frames as a deframer does.
#[derive(Debug)]
pub struct Indexer {
    framing: Framing,
    deframer: RecoveringDeframer,
    pushed: u64,
    sections: Vec<Section>,
    /// The section that is not complete: where it begins, and the deframer there.
    open: (Border, Box<RecoveringDeframer>),
    /// How many bytes the deframer is given at a time, and for a section.
    chunk: u64,
    length: u64,
    /// How many of `sections` are mixed.
    mixed: usize,
}

impl Indexer {
    /// For a capture from its first byte.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Self::with_sections(framing, CHUNK)
    }

    /// As [`Indexer::new`], with sections of `length` bytes as long as they do not become too many.
    #[must_use]
    pub fn with_sections(framing: Framing, length: u64) -> Self {
        let length = length.max(1);
        let deframer = RecoveringDeframer::new(framing);
        let start = Border { at: 0, pushed: 0, before: Vec::new() };
        Self {
            framing,
            open: (start, Box::new(deframer.clone())),
            deframer,
            pushed: 0,
            sections: Vec::new(),
            chunk: length,
            length,
            mixed: 0,
        }
    }

    /// Takes the next bytes of the capture.
    pub fn push(&mut self, input: &[u8], sink: &mut impl FrameSink) {
        let mut rest = input;
        while !rest.is_empty() {
            let room = usize::try_from(self.chunk - self.pushed % self.chunk).unwrap_or(usize::MAX);
            let (piece, behind) = rest.split_at(room.min(rest.len()));
            self.deframer.push(piece, sink);
            self.pushed += piece.len() as u64;
            if self.pushed.is_multiple_of(self.length) {
                self.close();
            }
            rest = behind;
        }
    }

    /// The capture ends here: hands out what was held back.
    pub fn finish(mut self, sink: &mut impl FrameSink) -> (Index, Account, Tail) {
        let tail = self.deframer.finish(sink);
        self.close();
        let Self { framing, chunk, deframer, sections, open: (end, _), .. } = self;
        let end = Border { at: tail.at.0, ..end };
        (Index(Arc::new(Contents { framing, chunk, sections, end })), deframer.account(), tail)
    }

    /// A section ends here, and the next one begins.
    fn close(&mut self) {
        let Self { deframer, sections, .. } = self;
        let handed_out = deframer.unpacker();
        let end = Border {
            at: handed_out.accounted(),
            pushed: self.pushed,
            before: handed_out.sources().collect(),
        };
        let (start, before) = core::mem::replace(&mut self.open, (end, Box::new(deframer.clone())));
        let is_frames = before.unpacker().breaks() == handed_out.breaks();
        let is_behind_mixed = matches!(sections.last(), Some(Section { kind: Kind::Mixed { .. }, .. }));
        if is_behind_mixed && (!is_frames || self.mixed >= MOST_MIXED) {
            return;
        }
        self.mixed += usize::from(!is_frames);
        let kind = match is_frames {
            true => Kind::Frames { owner: before.unpacker().owner.owner() },
            false => Kind::Mixed { deframer: before },
        };
        sections.push(Section { start, kind });
        if sections.len() >= MOST_SECTIONS {
            self.join_sections();
        }
    }

    /// Joins each two sections of frames.
    fn join_sections(&mut self) {
        self.length *= 2;
        let mut takes_next = false;
        self.sections.retain(|section| {
            let is_frames = matches!(section.kind, Kind::Frames { .. });
            let joins = takes_next && is_frames;
            takes_next = is_frames && !joins;
            !joins
        });
    }
}
