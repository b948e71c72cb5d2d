//! The places of a capture's frames, located once, so that each source's bytes can be taken out of any part
//! of the capture.
//!
//! The places of frames depend on all earlier bytes: on evidence from their data, and on losses. But
//! contiguous frames can be unpacked if only the owner of the first byte is known.
//!
//! ```text
//! all bytes, once ─▶ Indexer ─▶ Index: a list of sections, and how many bytes each source has before each
//! a section ─▶ Extraction ─▶ one source's bytes
//!     frames only:     its first owner
//!     anything else:   the deframer's state before the section, which continues from there
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

/// The places of a capture's frames. Cheap to clone.
///
/// With the feature `serde`, an index can be serialised, for the same version of this crate.
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
    /// The number of sections in use.
    sections: usize,
}

#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Contents {
    pub(super) framing: Framing,
    /// The number of bytes that the deframer takes at a time.
    pub(super) chunk: u64,
    /// Ascending; the first one begins with the capture.
    pub(super) sections: Vec<Section>,
    /// The border after the last section.
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
        /// The owner of the first byte.
        owner: Owner,
    },
    /// Anything else.
    Mixed {
        /// The deframer's state before the section; `None` for a new deframer.
        deframer: Option<Box<RecoveringDeframer>>,
        /// The place in the capture at which the deframer's bytes start.
        base: u64,
    },
    /// A gap: the frames after it do not continue those before.
    Gap,
}

/// The border between two sections.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Border {
    /// The place up to which all bytes were handed out.
    pub(super) at: u64,
    /// The place up to which the deframer had been given bytes.
    pub(super) pushed: u64,
    /// The number of bytes of each source before the border.
    pub(super) before: Vec<(TraceId, u64)>,
}

impl Border {
    fn before(&self, id: TraceId) -> u64 {
        self.before.iter().find(|(found, _)| *found == id).map_or(0, |(_, bytes)| *bytes)
    }
}

impl Index {
    /// An index of all sections.
    pub(super) fn new(contents: Contents) -> Self {
        let sections = contents.sections.len();
        Self { contents: Arc::new(contents), sections }
    }

    /// The framing of the capture.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.contents.framing
    }

    /// The number of bytes of a source.
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

    /// The number of bytes of a source in a section that is not mixed, and so can be unpacked in one piece. `None` for any
    /// other section, and for a number without a section.
    #[must_use]
    pub fn bytes_in(&self, section: usize, id: TraceId) -> Option<u64> {
        let is_frames = |found: &&Section| matches!(found.kind, Kind::Frames { .. } | Kind::Gap);
        let found = self.contents.sections.get(..self.sections)?.get(section).filter(is_frames)?;
        Some(self.border_after(section).before(id) - found.start.before(id))
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

    /// An index of the first sections that hold `bytes` bytes of frames.
    #[must_use]
    pub fn head(&self, bytes: u64) -> Self {
        let mut rest = bytes;
        let reaches = self.sections().find(|&section| {
            let Some(Section { start, kind }) = self.contents.sections.get(section) else { return true };
            if !matches!(kind, Kind::Gap) {
                rest = rest.saturating_sub(self.border_after(section).at.saturating_sub(start.at));
            }
            rest == 0
        });
        let sections = reaches.map_or(self.sections, |section| section + 1);
        Self { contents: Arc::clone(&self.contents), sections }
    }

    /// The border after a section.
    fn border_after(&self, section: usize) -> &Border {
        self.contents.sections.get(section + 1).map_or(&self.contents.end, |next| &next.start)
    }
}

/// Extracts one source's bytes from a capture.
#[derive(Clone, Debug)]
pub struct Extraction {
    index: Index,
    id: TraceId,
    /// The sections that are not begun.
    sections: Range<usize>,
    /// The section that is begun, if it is mixed.
    inside: Option<InSection>,
}

/// A place inside a section in which there are not only frames, and the state to continue from there: see
/// [`Index::rest`].
///
/// With the feature `serde`, this state can be serialised, for the same version of this crate.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct InSection {
    deframer: Box<RecoveringDeframer>,
    base: u64,
    section: usize,
    /// The place up to which the deframer was given bytes.
    pushed: u64,
}

impl Extraction {
    /// The source.
    #[must_use]
    pub const fn id(&self) -> TraceId {
        self.id
    }

    /// The section that was begun, with the place in it.
    #[must_use]
    pub fn into_inside(self) -> Option<InSection> {
        self.inside
    }

    /// Unpacks the next piece of `capture`, which must be the capture of the index. Returns the offset up to
    /// which the capture is done; `None` if nothing was left. The sink also receives bytes of other sources
    /// if that is less work than leaving them out.
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
                    let end = self.index.border_after(section).at;
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
                    let at = self.index.border_after(section).at;
                    sink.discontinuity(gap(at));
                    return Some(at);
                }
            }
        }
    }

    fn go_on(&mut self, mut inside: InSection, capture: &[u8], sink: &mut impl FrameSink) -> u64 {
        // With the same pieces as the first time, the deframer hands out the same bytes up to each border.
        let end = self.index.border_after(inside.section).pushed;
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

/// The discontinuity that a gap is for the frames after it.
pub(super) const fn gap(at: u64) -> Discontinuity {
    Discontinuity { at: CaptureOffset(at), bytes: 0, cause: Cause::Barrier }
}

/// Moves the output of a deframer whose bytes start at `base` to its place in the capture.
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
