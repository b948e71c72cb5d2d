//! Makes an [`Index`] of a capture.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::account::Account;
use super::deframer::{Framing, Tail};
use super::index::{Border, Contents, Index, Kind, Placed, Section, gap};
use super::recovery::RecoveringDeframer;
use super::sink::FrameSink;
use crate::ids::TraceId;
use crate::span::CaptureOffset;

/// The number of bytes that a deframer takes at a time. A section begins at a multiple of this number.
const CHUNK: u64 = 1 << 16;

/// At this number of sections, sections become twice as long, to bound the memory for a large capture.
const MOST_SECTIONS: usize = 1 << 14;

/// The maximum number of mixed sections. Each has a deframer, which takes some kilobytes.
const MOST_MIXED: usize = 1 << 8;

/// Builds the index of a capture that arrives in pieces of any size, and hands out the content of its frames like a deframer.
#[derive(Debug)]
pub struct Indexer {
    framing: Framing,
    deframer: RecoveringDeframer,
    /// The place in the capture at which the deframer's bytes start.
    base: u64,
    /// The number of bytes of each source before the last gap, and the account of all bytes before it.
    before: Vec<(TraceId, u64)>,
    account: Account,
    pushed: u64,
    sections: Vec<Section>,
    /// The incomplete section: its start, and the deframer there.
    open: (Border, Box<RecoveringDeframer>),
    /// The number of bytes that the deframer takes at a time, and the length of a section.
    chunk: u64,
    length: u64,
    /// The number of mixed sections.
    mixed: usize,
    /// At this number of sections, pairs of sections are joined.
    most: usize,
}

impl Indexer {
    /// An indexer for a capture from its first byte.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Self::with_sections(framing, CHUNK)
    }

    /// As [`Indexer::new`], with sections of `length` bytes until there are too many.
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
            let (piece, after) = rest.split_at(room.min(rest.len()));
            self.deframer.push(piece, &mut Placed { base: self.base, sink });
            self.pushed += piece.len() as u64;
            if (self.pushed - self.base).is_multiple_of(self.length) {
                self.close();
            }
            rest = after;
        }
    }

    /// Ends the frames. The bytes that are pushed next start at `at`, anywhere in the capture. Their frames
    /// do not continue those before.
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

    /// Ends the capture: hands out the bytes that were held back.
    pub fn finish(mut self, sink: &mut impl FrameSink) -> (Index, Account, Tail) {
        let tail = self.end(sink);
        self.account += self.deframer.account();
        let Self { framing, chunk, sections, open: (end, _), account, .. } = self;
        (Index::new(Contents { framing, chunk, sections, end }), account, tail)
    }

    /// Ends the frames: hands out the bytes that were held back.
    fn end(&mut self, sink: &mut impl FrameSink) -> Tail {
        let tail = self.deframer.finish(&mut Placed { base: self.base, sink });
        if self.pushed > self.base || self.sections.is_empty() {
            self.close();
        }
        let at = self.base + tail.at.0;
        self.open.0.at = at;
        Tail { at: CaptureOffset(at), ..tail }
    }

    /// Ends a section and begins the next one.
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
        let is_after_mixed = matches!(sections.last(), Some(Section { kind: Kind::Mixed { .. }, .. }));
        if is_after_mixed && (!is_frames || self.mixed >= MOST_MIXED) {
            return;
        }
        // There may be more gaps than deframers to keep. The deframer after a gap is new, so it need not be
        // kept.
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

    /// Joins pairs of sections of frames.
    fn join_sections(&mut self) {
        self.length *= 2;
        let mut takes_next = false;
        self.sections.retain(|section| {
            let is_frames = matches!(section.kind, Kind::Frames { .. });
            let joins = takes_next && is_frames;
            takes_next = is_frames && !joins;
            !joins
        });
        // Gaps are not joined, whatever their number.
        self.most = MOST_SECTIONS.max(2 * self.sections.len());
    }
}
