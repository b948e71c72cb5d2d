//! The content of the frames in a buffer, by source.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tracewalk::frame::{
    Account, Cause, Deframer, Discontinuity, Formatter, FormatterOptions, FrameSink, Framing, Index, Indexer,
    Owner, Piece, RecoveringDeframer, Tail,
};
use tracewalk::ids::TraceId;
use tracewalk::span::CaptureOffset;

use crate::contents::Sample;

/// The content of the frames in a buffer, by source.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Frames {
    /// How frames are separated.
    pub framing: Framing,
    /// The places of the frames; `None` if the framing may be a wrong guess.
    pub(crate) index: Option<Index>,
    /// The number of bytes of each kind.
    pub account: Account,
    /// The number of bytes of each source.
    pub sources: BTreeMap<TraceId, u64>,
    /// The first bytes of each source.
    pub(crate) samples: BTreeMap<TraceId, Sample>,
    /// The number of places at which the bytes before and after do not belong together.
    pub discontinuities: u64,
    /// The first discontinuities.
    pub first_discontinuities: Vec<Discontinuity>,
    /// Bytes that no formatter writes, in frames that are otherwise in order.
    pub odd: Odd,
    /// The place of each source's first byte.
    pub(crate) starts: BTreeMap<TraceId, CaptureOffset>,
    /// The start of the incomplete frame at the end.
    pub(crate) tail: CaptureOffset,
    /// The number of bytes before the first frame.
    in_front: u64,
}

/// Bytes that no formatter writes: of reserved IDs, and of padding and triggers that are not zero.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Odd {
    /// The number of bytes.
    pub bytes: u64,
    /// The number of places.
    pub places: u64,
    /// The first places, and the number of bytes at each.
    pub first: Vec<(CaptureOffset, u64)>,
    /// The end of the last place.
    end: CaptureOffset,
}

impl Odd {
    fn add(&mut self, piece: Piece<'_>) {
        let bytes = piece.bytes.len() as u64;
        self.bytes += bytes;
        // Pieces of the same place are at most an auxiliary byte apart.
        let goes_on = self.places > 0 && piece.at.0 <= self.end.0 + 1;
        self.places += u64::from(!goes_on);
        self.end = CaptureOffset(piece.place(piece.bytes.len() - 1).0 + 1);
        if self.places > SHOWN as u64 {
            return;
        }
        match self.first.last_mut().filter(|_| goes_on) {
            Some((_, before)) => *before += bytes,
            None => self.first.push((piece.at, bytes)),
        }
    }
}

/// The number of discontinuities that are kept, to be shown.
const SHOWN: usize = 20;

impl Frames {
    /// Deframes a whole buffer.
    pub(crate) fn scan(bytes: &[u8], framing: Framing) -> Self {
        let mut scan = Scan::new(framing);
        scan.push(bytes);
        scan.finish()
    }

    /// Deframes the parts of a file, each from its own beginning.
    pub(crate) fn scan_parts(file: &[u8], parts: &[Range<usize>], framing: Framing) -> Self {
        let mut scan = Scan::new(framing);
        for part in parts {
            scan.indexer.skip_to(CaptureOffset(part.start as u64), &mut Between(&mut scan.counts));
            scan.push(file.get(part.clone()).unwrap_or_default());
        }
        scan.finish()
    }

    /// As [`Frames::scan`], for a framing that may be a wrong guess: the start of the frames is not corrected.
    pub(crate) fn scan_as_they_come(bytes: &[u8], framing: Framing) -> Self {
        let mut deframer = Deframer::new(framing);
        let mut counts = Counts::default();
        deframer.push(bytes, &mut counts);
        let tail = deframer.finish(&mut counts);
        counts.frames((framing, None), deframer.account(), tail)
    }

    /// The number of lost bytes, except those before the first frame.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.account.lost.saturating_sub(self.in_front)
    }
}

/// Counts the contents of frames that arrive piece by piece.
#[derive(Debug)]
pub(crate) struct Scan {
    framing: Framing,
    indexer: Indexer,
    counts: Counts,
}

impl Scan {
    pub(crate) fn new(framing: Framing) -> Self {
        Self { framing, indexer: Indexer::new(framing), counts: Counts::default() }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.indexer.push(bytes, &mut self.counts);
    }

    pub(crate) fn finish(mut self) -> Frames {
        let (index, account, tail) = self.indexer.finish(&mut self.counts);
        self.counts.frames((self.framing, Some(index)), account, tail)
    }
}

#[derive(Debug)]
struct Counts {
    /// Indexed by trace ID, because most pieces are short and counting has to be fast.
    sources: Vec<Source>,
    discontinuities: u64,
    first_discontinuities: Vec<Discontinuity>,
    odd: Odd,
    in_front: u64,
}

/// The counts of a source.
#[derive(Clone, Debug, Default)]
struct Source {
    bytes: u64,
    /// The place of the first byte.
    start: CaptureOffset,
    sample: Sample,
}

impl Default for Counts {
    fn default() -> Self {
        let sources = vec![Source::default(); 0x80];
        Self {
            sources,
            discontinuities: 0,
            first_discontinuities: Vec::new(),
            odd: Odd::default(),
            in_front: 0,
        }
    }
}

impl Counts {
    fn frames(self, (framing, index): (Framing, Option<Index>), account: Account, tail: Tail) -> Frames {
        let Self { sources, discontinuities, first_discontinuities, odd, in_front } = self;
        let numbered = (0..).map_while(|number: u8| Some((number, sources.get(usize::from(number))?)));
        let found = || {
            let named = numbered.clone().filter_map(|(number, source)| Some((TraceId::new(number)?, source)));
            named.filter(|(_, source)| source.bytes > 0)
        };
        Frames {
            framing,
            index,
            account,
            sources: found().map(|(id, source)| (id, source.bytes)).collect(),
            samples: found().map(|(id, source)| (id, source.sample.clone())).collect(),
            discontinuities,
            first_discontinuities,
            odd,
            starts: found().map(|(id, source)| (id, source.start)).collect(),
            tail: tail.at,
            in_front,
        }
    }
}

/// The frames at the end of a part. The next part does not continue them, which is not a loss.
struct Between<'a>(&'a mut Counts);

impl FrameSink for Between<'_> {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        self.0.data(owner, piece);
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        if discontinuity.cause == Cause::Barrier {
            self.0.sources.iter_mut().for_each(|source| source.sample.lose());
        } else {
            self.0.discontinuity(discontinuity);
        }
    }
}

impl FrameSink for Counts {
    #[inline]
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        match owner {
            Owner::Source(id) => {
                if let Some(source) = self.sources.get_mut(usize::from(id.get())) {
                    if source.bytes == 0 {
                        source.start = piece.at;
                    }
                    source.bytes += piece.bytes.len() as u64;
                    source.sample.take(piece.bytes);
                }
            }
            Owner::Reserved(_) => self.odd.add(piece),
            Owner::Padding | Owner::Trigger if piece.bytes.iter().any(|byte| *byte != 0) => {
                self.odd.add(piece);
            }
            Owner::Padding | Owner::Trigger | Owner::Unknown => {}
        }
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        self.sources.iter_mut().for_each(|source| source.sample.lose());
        match discontinuity.cause {
            Cause::Start => self.in_front += discontinuity.bytes,
            Cause::Barrier
            | Cause::MisplacedSync
            | Cause::ImpossibleId
            | Cause::Shifted { .. }
            | Cause::NoFrames => {
                self.discontinuities += 1;
                if self.first_discontinuities.len() < SHOWN {
                    self.first_discontinuities.push(discontinuity);
                }
            }
        }
    }
}

/// Writes the trace of all sources to `out` in aligned frames without synchronisation.
///
/// # Errors
///
/// If `out` fails.
pub fn repack(bytes: &[u8], framing: Framing, out: &mut dyn Write) -> io::Result<()> {
    /// The number of bytes in memory at once.
    const PIECE: usize = 1 << 16;
    let mut repack = Repack { formatter: Formatter::new(FormatterOptions::default()), frames: Vec::new() };
    let mut deframer = RecoveringDeframer::new(framing);
    for piece in bytes.chunks(PIECE) {
        deframer.push(piece, &mut repack);
        out.write_all(&repack.frames)?;
        repack.frames.clear();
    }
    deframer.finish(&mut repack);
    let Repack { mut formatter, mut frames } = repack;
    formatter.flush(&mut frames);
    out.write_all(&frames)
}

struct Repack {
    formatter: Formatter,
    frames: Vec<u8>,
}

impl FrameSink for Repack {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        match owner {
            Owner::Source(id) => self.formatter.write(id, piece.bytes, &mut self.frames),
            Owner::Trigger => self.formatter.trigger(&mut self.frames),
            Owner::Unknown | Owner::Padding | Owner::Reserved(_) => {}
        }
    }

    fn discontinuity(&mut self, _: Discontinuity) {}
}
