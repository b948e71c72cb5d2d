//! The places of a capture's frames, located once, so that each source's bytes can be taken out of any part of it.
//!
//! Where frames are depends on everything that came before: on what was learned of their data, and on what was lost. But
//! where they lie one after the other, taking them apart needs no more than to know whose byte is the first one.
//!
//! ```text
//! all bytes, once ─▶ Indexer ─▶ Index: a list of sections, and how many bytes each source has before each
//! a section ─▶ Extraction ─▶ one source's bytes
//!     frames only:     its first owner
//!     anything else:   the deframer as it was before it, which continues from there
//! ```

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use super::deframer::Framing;
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
pub(super) struct Contents {
    pub(super) framing: Framing,
    /// How many bytes the deframer was given at a time.
    pub(super) chunk: u64,
    /// Ascending; the first one begins with the capture.
    pub(super) sections: Vec<Section>,
    /// The bytes after the last one.
    pub(super) end: Border,
}

/// A stretch of the capture, up to the next section.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Section {
    pub(super) start: Border,
    pub(super) kind: Kind,
}

#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Kind {
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
pub(super) struct Border {
    /// Up to where everything was handed out.
    pub(super) at: u64,
    /// How many bytes the deframer had been given then.
    pub(super) pushed: u64,
    /// How many bytes each source has before it, by ID.
    pub(super) before: Vec<(TraceId, u64)>,
}

impl Border {
    fn before(&self, id: TraceId) -> u64 {
        self.before.iter().find(|(found, _)| *found == id).map_or(0, |(_, bytes)| *bytes)
    }
}

impl Index {
    /// All sections.
    pub(super) fn new(contents: Contents) -> Self {
        let sections = contents.sections.len();
        Self { contents: Arc::new(contents), sections }
    }

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

    /// Whether there are gaps between the frames: see [`Indexer::skip_to`](super::Indexer::skip_to).
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
pub(super) const fn gap(at: u64) -> Discontinuity {
    Discontinuity { at: CaptureOffset(at), bytes: 0, cause: Cause::Barrier }
}

/// Takes what a deframer hands out that was given the bytes of the capture from `base` on.
pub(super) struct Placed<'a, S> {
    pub(super) base: u64,
    pub(super) sink: &'a mut S,
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
