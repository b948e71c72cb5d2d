//! The places of a capture's frames, located once, so that each source's bytes can be taken out of any part of it.
//!
//! Where frames are depends on everything that came before: on what was learned of their data, and on what was lost. But
//! where they lie one after the other, taking them apart needs no more than to know whose byte is the first one.
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
use super::sink::{Cause, Discontinuity, FrameSink, Piece};
use crate::ids::TraceId;
use crate::span::CaptureOffset;

/// Where a capture's frames are. A copy costs nothing.
///
/// With the feature `serde` it can be serialised, for the same version of this crate.
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Index {
    contents: Arc<Contents>,
    /// How many of the sections are looked at.
    sections: usize,
}

#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Contents {
    framing: Framing,
    /// How many bytes the deframer was given at a time.
    chunk: u64,
    /// Ascending; the first one begins with the capture.
    sections: Vec<Section>,
    /// What is after the last one.
    end: Border,
}

/// A stretch of the capture, up to the next section.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Section {
    start: Border,
    kind: Kind,
}

#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Kind {
    /// Frames, one after the other.
    Frames {
        /// Whose the first byte is.
        owner: Owner,
    },
    /// Anything else.
    Mixed {
        /// As it was before the section; `None` for one that was given nothing.
        deframer: Option<Box<RecoveringDeframer>>,
        /// Where in the capture the bytes start that it was given.
        base: u64,
    },
    /// No frames: those after it do not continue those before.
    Gap,
}

/// Between two sections.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Border {
    /// Up to where everything was handed out.
    at: u64,
    /// How many bytes the deframer had been given then.
    pushed: u64,
    /// How many bytes each source has before it, by ID.
    before: Vec<(TraceId, u64)>,
}

impl Border {
    fn before(&self, id: TraceId) -> u64 {
        self.before.iter().find(|(found, _)| *found == id).map_or(0, |(_, bytes)| *bytes)
    }
}

/// How many bytes a deframer is given at a time. A section begins at a multiple of this number.
const CHUNK: u64 = 1 << 16;

/// At this number of sections, they become twice as long, so that a large capture takes no more memory.
const MOST_SECTIONS: usize = 1 << 14;

/// The number of places with something else than frames that are remembered. A deframer takes some
/// kilobytes.
const MOST_MIXED: usize = 1 << 8;

impl Index {
    /// How the frames lie in the capture.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.contents.framing
    }

    /// How many bytes a source has.
    #[must_use]
    pub fn bytes_of(&self, id: TraceId) -> u64 {
        self.contents.end.before(id)
    }

    /// The sources that have bytes, and how many.
    pub fn sources(&self) -> impl Iterator<Item = (TraceId, u64)> {
        self.contents.end.before.iter().copied()
    }

    /// The numbers of all sections.
    #[must_use]
    pub fn sections(&self) -> Range<usize> {
        0..self.sections
    }

    /// How many bytes a source has in a section, if there are only frames in it: then it can be taken apart in one piece.
    #[must_use]
    pub fn bytes_in(&self, section: usize, id: TraceId) -> Option<u64> {
        let is_frames = |found: &&Section| matches!(found.kind, Kind::Frames { .. } | Kind::Gap);
        let found = self.contents.sections.get(section).filter(is_frames)?;
        Some(self.behind(section).before(id) - found.start.before(id))
    }

    /// Takes one source's bytes out of some sections of the capture.
    #[must_use]
    pub fn extraction(&self, id: TraceId, sections: Range<usize>) -> Extraction {
        Extraction { index: self.clone(), id, sections, inside: None }
    }

    /// Takes one source's bytes out of the rest of a section that an [`Extraction`] of this index had begun.
    #[must_use]
    pub fn rest(&self, id: TraceId, inside: InSection) -> Extraction {
        Extraction { index: self.clone(), id, sections: 0..0, inside: Some(inside) }
    }

    /// Whether there are gaps between the frames: see [`Indexer::skip_to`].
    #[must_use]
    pub fn has_gaps(&self) -> bool {
        self.contents.sections.iter().any(|section| matches!(section.kind, Kind::Gap))
    }

    /// The first sections that hold a number of bytes of frames.
    #[must_use]
    pub fn head(&self, bytes: u64) -> Self {
        let mut rest = bytes;
        let reaches = self.sections().find(|&section| {
            let Some(Section { start, kind }) = self.contents.sections.get(section) else { return true };
            if !matches!(kind, Kind::Gap) {
                rest = rest.saturating_sub(self.behind(section).at.saturating_sub(start.at));
            }
            rest == 0
        });
        let sections = reaches.map_or(self.sections, |section| section + 1);
        Self { contents: Arc::clone(&self.contents), sections }
    }

    /// Where a section ends.
    fn behind(&self, section: usize) -> &Border {
        self.contents.sections.get(section + 1).map_or(&self.contents.end, |next| &next.start)
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
    inside: Option<InSection>,
}

/// A place inside a section in which there are not only frames, and what it takes to go on from there: see [`Index::rest`].
///
/// With the feature `serde` it can be serialised, for the same version of this crate.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct InSection {
    deframer: Box<RecoveringDeframer>,
    base: u64,
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

    /// The section that was begun, with the place in it.
    #[must_use]
    pub fn into_inside(self) -> Option<InSection> {
        self.inside
    }

    /// Takes the next piece of the `capture` apart that the index is of. Returns how many of its bytes are done; `None` where
    /// there was nothing left. The sink is given bytes of other sources where that is less work than leaving them out.
    pub fn advance(&mut self, capture: &[u8], sink: &mut impl FrameSink) -> Option<u64> {
        if let Some(inside) = self.inside.take() {
            return Some(self.go_on(inside, capture, sink));
        }
        loop {
            let section = self.sections.next()?;
            let found = self.index.contents.sections.get(section)?;
            match &found.kind {
                Kind::Frames { .. } if self.index.bytes_in(section, self.id) == Some(0) => {}
                Kind::Frames { owner } => {
                    let end = self.index.behind(section).at;
                    let frames = slice(capture, found.start.at, end).as_chunks().0;
                    Only::new(self.id, *owner).frames(found.start.at, frames, sink);
                    return Some(end);
                }
                Kind::Mixed { deframer, base } => {
                    let fresh = || Box::new(RecoveringDeframer::new(self.index.framing()));
                    let deframer = deframer.clone().unwrap_or_else(fresh);
                    let (base, pushed) = (*base, found.start.pushed);
                    let inside = InSection { deframer, base, section, pushed };
                    return Some(self.go_on(inside, capture, sink));
                }
                Kind::Gap => {
                    let at = self.index.behind(section).at;
                    sink.discontinuity(gap(at));
                    return Some(at);
                }
            }
        }
    }

    fn go_on(&mut self, mut inside: InSection, capture: &[u8], sink: &mut impl FrameSink) -> u64 {
        // The same pieces as at the first time make it hand out as much at each border.
        let end = self.index.behind(inside.section).pushed;
        let done = (inside.pushed + self.index.contents.chunk).min(end);
        let mut placed = Placed { base: inside.base, sink };
        inside.deframer.push(slice(capture, inside.pushed, done), &mut placed);
        inside.pushed = done;
        let next = self.index.contents.sections.get(inside.section + 1);
        if done < end {
            self.inside = Some(inside);
        } else if next.is_none_or(|next| matches!(next.kind, Kind::Gap)) {
            inside.deframer.finish(&mut placed);
        }
        done
    }
}

fn slice(capture: &[u8], start: u64, end: u64) -> &[u8] {
    let [start, end] = [start, end].map(|at| usize::try_from(at).unwrap_or(usize::MAX).min(capture.len()));
    capture.get(start..end).unwrap_or_default()
}

/// What a gap is to the frames after it.
const fn gap(at: u64) -> Discontinuity {
    Discontinuity { at: CaptureOffset(at), bytes: 0, cause: Cause::Barrier }
}

/// Takes what a deframer hands out that was given the bytes of the capture from `base` on.
struct Placed<'a, S> {
    base: u64,
    sink: &'a mut S,
}

impl<S: FrameSink> FrameSink for Placed<'_, S> {
    #[inline]
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        self.sink.data(owner, piece.moved(self.base));
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        let at = CaptureOffset(self.base.saturating_add(discontinuity.at.0));
        self.sink.discontinuity(Discontinuity { at, ..discontinuity });
    }
}

/// Makes the index of a capture that comes in pieces of any size, and hands out what is in its frames as a deframer does.
#[derive(Debug)]
pub struct Indexer {
    framing: Framing,
    deframer: RecoveringDeframer,
    /// Where in the capture the bytes start that the deframer was given.
    base: u64,
    /// What came of the frames before the last gap: how many bytes of each source, and of what.
    before: Vec<(TraceId, u64)>,
    account: Account,
    pushed: u64,
    sections: Vec<Section>,
    /// The section that is not complete: where it begins, and the deframer there.
    open: (Border, Box<RecoveringDeframer>),
    /// How many bytes the deframer is given at a time, and for a section.
    chunk: u64,
    length: u64,
    /// How many of `sections` are mixed.
    mixed: usize,
    /// The number of sections that are joined.
    most: usize,
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
            base: 0,
            before: Vec::new(),
            account: Account::default(),
            pushed: 0,
            sections: Vec::new(),
            chunk: length,
            length,
            mixed: 0,
            most: MOST_SECTIONS,
        }
    }

    /// Takes the next bytes of the capture.
    pub fn push(&mut self, input: &[u8], sink: &mut impl FrameSink) {
        let mut rest = input;
        while !rest.is_empty() {
            let given = self.pushed - self.base;
            let room = usize::try_from(self.chunk - given % self.chunk).unwrap_or(usize::MAX);
            let (piece, behind) = rest.split_at(room.min(rest.len()));
            self.deframer.push(piece, &mut Placed { base: self.base, sink });
            self.pushed += piece.len() as u64;
            if (self.pushed - self.base).is_multiple_of(self.length) {
                self.close();
            }
            rest = behind;
        }
    }

    /// The frames end here. Others start at `at`, which is anywhere in the capture, and do not continue those before: the bytes that
    /// are pushed next stand there.
    ///
    /// ```
    /// use tracewalk::frame::{Discontinuity, Formatter, FormatterOptions, FrameSink, Framing, Indexer, Owner, Piece};
    /// use tracewalk::ids::TraceId;
    /// use tracewalk::span::CaptureOffset;
    ///
    /// struct Places(Vec<u64>);
    ///
    /// impl FrameSink for Places {
    ///     fn data(&mut self, _: Owner, piece: Piece<'_>) {
    ///         self.0.push(piece.at.0);
    ///     }
    ///     fn discontinuity(&mut self, _: Discontinuity) {}
    /// }
    ///
    /// let id = TraceId::new(0x10).expect("a trace source's ID");
    /// let mut frames = Vec::new();
    /// let mut formatter = Formatter::new(FormatterOptions::default());
    /// formatter.write(id, b"some", &mut frames);
    /// formatter.flush(&mut frames);
    ///
    /// let mut places = Places(Vec::new());
    /// let mut indexer = Indexer::new(Framing::Buffer);
    /// for at in [1000, 500] {
    ///     indexer.skip_to(CaptureOffset(at), &mut places);
    ///     indexer.push(&frames, &mut places);
    /// }
    /// let (index, ..) = indexer.finish(&mut places);
    /// // The bytes, and what fills the frame.
    /// assert_eq!(places.0, [1001, 1006, 501, 506]);
    /// assert_eq!(index.bytes_of(id), 8);
    /// ```
    pub fn skip_to(&mut self, at: CaptureOffset, sink: &mut impl FrameSink) {
        self.end(sink);
        self.account += self.deframer.account();
        self.before.clone_from(&self.open.0.before);
        self.deframer = RecoveringDeframer::new(self.framing);
        (self.base, self.pushed) = (at.0, at.0);
        let start = Border { at: at.0, pushed: at.0, before: self.before.clone() };
        let (end, _) = core::mem::replace(&mut self.open, (start, Box::new(self.deframer.clone())));
        self.sections.push(Section { start: end, kind: Kind::Gap });
        sink.discontinuity(gap(at.0));
    }

    /// The capture ends here: hands out what was held back.
    pub fn finish(mut self, sink: &mut impl FrameSink) -> (Index, Account, Tail) {
        let tail = self.end(sink);
        self.account += self.deframer.account();
        let Self { framing, chunk, sections, open: (end, _), account, .. } = self;
        let count = sections.len();
        let contents = Arc::new(Contents { framing, chunk, sections, end });
        (Index { contents, sections: count }, account, tail)
    }

    /// The frames end here: hands out what was held back.
    fn end(&mut self, sink: &mut impl FrameSink) -> Tail {
        let tail = self.deframer.finish(&mut Placed { base: self.base, sink });
        if self.pushed > self.base || self.sections.is_empty() {
            self.close();
        }
        let at = self.base + tail.at.0;
        self.open.0.at = at;
        Tail { at: CaptureOffset(at), ..tail }
    }

    /// A section ends here, and the next one begins.
    fn close(&mut self) {
        let Self { deframer, sections, .. } = self;
        let handed_out = deframer.unpacker();
        let mut bytes = self.before.clone();
        for (id, more) in handed_out.sources() {
            match bytes.iter_mut().find(|(known, _)| *known == id) {
                Some((_, bytes)) => *bytes += more,
                None => bytes.push((id, more)),
            }
        }
        let end = Border { at: self.base + handed_out.accounted(), pushed: self.pushed, before: bytes };
        let (start, before) = core::mem::replace(&mut self.open, (end, Box::new(deframer.clone())));
        let is_frames = before.unpacker().breaks() == handed_out.breaks();
        let is_behind_mixed = matches!(sections.last(), Some(Section { kind: Kind::Mixed { .. }, .. }));
        if is_behind_mixed && (!is_frames || self.mixed >= MOST_MIXED) {
            return;
        }
        // There may be more gaps than deframers should be kept: after one the deframer is a new one.
        let is_gap = |section: &Section| matches!(section.kind, Kind::Gap);
        if !is_frames
            && self.mixed >= MOST_MIXED
            && let Some(gap) = sections.iter().rposition(is_gap)
        {
            sections.truncate(gap + 1);
            let start = Border { at: self.base, pushed: self.base, before: self.before.clone() };
            sections.push(Section { start, kind: Kind::Mixed { deframer: None, base: self.base } });
            return;
        }
        self.mixed += usize::from(!is_frames);
        let kind = match is_frames {
            true => Kind::Frames { owner: before.unpacker().owner.owner() },
            false => Kind::Mixed { deframer: Some(before), base: self.base },
        };
        sections.push(Section { start, kind });
        if sections.len() >= self.most {
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
        // Gaps stay: there may be as many as the capture has.
        self.most = MOST_SECTIONS.max(2 * self.sections.len());
    }
}
