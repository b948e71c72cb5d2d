//! A part of a source's bytes, taken out of its capture to be read in many ways.

use serde::{Deserialize, Serialize};
use tracewalk::frame::{Discontinuity, FrameSink, Owner, Piece, RecoveringDeframer};
use tracewalk::ids::TraceId;
use tracewalk::source::{PacketItem, PacketStream, SourceConfig};
use tracewalk::span::{CaptureOffset, Span};
use tracewalk_analysis::drive::{Carrier, Input, NoProgress, Stretch};

/// How many bytes of a source are enough to judge readings by: some dozens of synchronisations.
const ENOUGH: usize = 1 << 16;

/// The A-sync packet of ETMv3, PFT and ITM.
const A_SYNC: [u8; 6] = [0, 0, 0, 0, 0, 0x80];

/// Some of a source's bytes, up to a limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    bytes: Vec<u8>,
    /// The positions before which bytes were lost.
    breaks: Vec<usize>,
}

impl Sample {
    /// The first bytes of stretches that belong to one source.
    pub(crate) fn of_stretches(capture: &[u8], stretches: &[Stretch]) -> Self {
        let mut sample = Self::default();
        for stretch in stretches {
            let end = stretch.bytes.end.min(capture.len());
            if !stretch.continues {
                sample.lose();
            }
            sample.take(capture.get(stretch.bytes.start..end).unwrap_or_default());
        }
        sample
    }

    /// The source's bytes from a place in the capture on.
    pub(crate) fn from_place(capture: &[u8], carrier: &Carrier, place: CaptureOffset) -> Self {
        match carrier {
            Carrier::Frames { framing, id } => {
                let mut later = Later { id: *id, place, sample: Self::default() };
                let mut deframer = RecoveringDeframer::new(*framing);
                deframer.push(capture, &mut later);
                deframer.finish(&mut later);
                later.sample
            }
            Carrier::Indexed { index, id } => {
                let mut later = Later { id: *id, place, sample: Self::default() };
                let mut extraction = index.extraction(*id, index.sections());
                while !later.sample.is_full() && extraction.advance(capture, &mut later).is_some() {}
                later.sample
            }
            Carrier::Stretches(stretches) => {
                let place = usize::try_from(place.0).unwrap_or(usize::MAX);
                let passed = stretches.iter().position(|stretch| stretch.bytes.contains(&place));
                let mut rest = stretches.get(passed.unwrap_or(0)..).unwrap_or_default().to_vec();
                if let Some(first) = rest.first_mut() {
                    first.bytes.start = first.bytes.start.max(place);
                }
                Self::of_stretches(capture, &rest)
            }
        }
    }

    /// At most `bytes` bytes from the first A-sync on; `None` if there is none.
    pub(super) fn synchronised(&self, bytes: usize) -> Option<Self> {
        let found = self.bytes.windows(A_SYNC.len()).position(|window| window == A_SYNC)?;
        // An ETMv4 A-sync has more zeros before these.
        let before = self.bytes.get(..found).unwrap_or_default();
        let start = before.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        let end = self.bytes.len().min(start + bytes);
        let breaks = self.breaks.iter().filter(|at| (start + 1..end).contains(*at));
        Some(Self {
            bytes: self.bytes.get(start..end)?.to_vec(),
            breaks: breaks.map(|at| at - start).collect(),
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of places where bytes were lost.
    pub(super) const fn cuts(&self) -> u64 {
        self.breaks.len() as u64
    }

    pub(super) fn input(&self) -> Input<'_> {
        let starts = [0].into_iter().chain(self.breaks.iter().copied());
        let ends = self.breaks.iter().copied().chain([self.bytes.len()]);
        let stretches =
            starts.zip(ends).map(|(start, end)| Stretch { bytes: start..end, continues: false }).collect();
        Input {
            capture: &self.bytes,
            carrier: Carrier::Stretches(stretches),
            rest: None,
            progress: &NoProgress,
        }
    }

    /// Decodes the packets and calls `look` with each item and its bytes.
    pub(super) fn packets(&self, config: &SourceConfig, look: &mut dyn FnMut(PacketItem<'_>, &[u8])) {
        let mut stream = PacketStream::new(config);
        let look = &mut |item: PacketItem<'_>, _: Span, bytes: &[u8]| look(item, bytes);
        let mut start = 0;
        for &end in self.breaks.iter().chain([&self.bytes.len()]) {
            if start > 0 {
                stream.lose_sync(look);
            }
            stream.push(self.bytes.get(start..end).unwrap_or_default(), look);
            start = end;
        }
        stream.finish(look);
    }

    /// Whether no more bytes are wanted.
    const fn is_full(&self) -> bool {
        self.bytes.len() >= ENOUGH
    }

    /// Adds the source's next bytes, as far as they are wanted.
    #[inline]
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        if !self.is_full() {
            let room = ENOUGH.saturating_sub(self.bytes.len());
            self.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
    }

    /// Bytes were lost before the next ones.
    pub(crate) fn lose(&mut self) {
        let here = self.bytes.len();
        if here > 0 && here < ENOUGH && self.breaks.last() != Some(&here) {
            self.breaks.push(here);
        }
    }
}

/// Takes one source's bytes from a place on.
struct Later {
    id: TraceId,
    place: CaptureOffset,
    sample: Sample,
}

impl FrameSink for Later {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if owner.trace_id() == Some(self.id) && piece.at >= self.place {
            self.sample.take(piece.bytes);
        }
    }

    fn discontinuity(&mut self, _: Discontinuity) {
        self.sample.lose();
    }
}
