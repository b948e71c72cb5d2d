//! A source's bytes, cut into segments that can be decoded in parallel.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tracewalk::flow::TakeElements;
use tracewalk::frame::{
    Discontinuity, Extraction, FrameSink, InSection, Index, Owner, Piece, PlaceMap, RecoveringDeframer,
};
use tracewalk::ids::TraceId;
use tracewalk::program::Program;
use tracewalk::source::FlowStream;
use tracewalk::span::{CaptureOffset, StreamOffset};

use super::{Carrier, Interruption, Stretch, WINDOW};

/// Some of a source's bytes.
#[derive(Debug)]
pub(super) struct Segment<'a> {
    /// The stream offset of the first byte.
    pub(super) start: StreamOffset,
    pub(super) bytes: Cow<'a, [u8]>,
    /// The bytes' places in the capture, by offset in the segment.
    pub(super) places: PlaceMap,
    /// The bytes that do not continue the previous ones, by index; the number of bytes stands for the end.
    interruptions: Vec<(usize, Interruption)>,
    /// How many bytes of the capture are done with this segment.
    pub(super) done: u64,
}

/// A segment that may have to be deframed by its decoder.
#[derive(Debug)]
pub(super) enum Cut<'a> {
    Ready(Segment<'a>),
    InFrames {
        /// The stream offset of its first byte.
        start: StreamOffset,
        capture: &'a [u8],
        extraction: Extraction,
    },
}

impl<'a> Cut<'a> {
    pub(super) fn segment(self) -> Segment<'a> {
        match self {
            Self::Ready(segment) => segment,
            Self::InFrames { start, capture, mut extraction } => {
                let mut sink = Collect::new(extraction.id(), start.0 > 0);
                let mut done = 0;
                while let Some(end) = extraction.advance(capture, &mut sink) {
                    done = end;
                }
                sink.segment(start, done)
            }
        }
    }
}

/// The places in the capture of the bytes of the current segment and of earlier ones.
#[derive(Debug, Default)]
pub(super) struct Whereabouts {
    /// By start; the last one is the current segment.
    segments: VecDeque<(StreamOffset, PlaceMap)>,
}

impl Segment<'_> {
    /// Feeds the bytes of this range to `stream`, with their interruptions. An interruption at the range's end belongs to the
    /// next range, unless there is none.
    pub(super) fn feed(
        &self,
        range: Range<usize>,
        stream: &mut FlowStream,
        program: &Program,
        sink: &mut dyn TakeElements,
    ) {
        let mut from = range.start;
        let is_in = |at: usize| range.contains(&at) || (at == range.end && range.end == self.bytes.len());
        for &(at, why) in self.interruptions.iter().filter(|(at, _)| is_in(*at)) {
            stream.push(self.bytes.get(from..at).unwrap_or_default(), program, sink);
            match why {
                Interruption::Cut => stream.cut(program, sink),
                Interruption::Loss => stream.lose_sync(program, sink),
            }
            from = at;
        }
        stream.push(self.bytes.get(from..range.end).unwrap_or_default(), program, sink);
    }

    /// Takes the places of its bytes.
    pub(super) fn take_places(&mut self) -> (StreamOffset, PlaceMap) {
        (self.start, std::mem::take(&mut self.places))
    }
}

impl Whereabouts {
    /// Goes on to the next segment.
    pub(super) fn go_on(&mut self, next: (StreamOffset, PlaceMap)) {
        let oldest = next.0.0.saturating_sub(WINDOW);
        while self.segments.get(1).is_some_and(|(start, _)| start.0 <= oldest) {
            self.segments.pop_front();
        }
        self.segments.push_back(next);
    }

    /// The places of the current segment.
    pub(super) fn now(&mut self) -> &mut PlaceMap {
        if self.segments.is_empty() {
            self.segments.push_back(Default::default());
        }
        let last = self.segments.len() - 1;
        &mut self.segments[last].1
    }

    /// Adds the next segment, and keeps all earlier ones.
    pub(super) fn add(&mut self, next: (StreamOffset, PlaceMap)) {
        self.segments.push_back(next);
    }

    /// Returns the places of the current segment.
    pub(super) fn into_now(mut self) -> PlaceMap {
        self.segments.pop_back().unwrap_or_default().1
    }

    /// The place of a byte in the capture; `None` if it has not arrived yet or is too old.
    pub(super) fn locate(&mut self, at: StreamOffset) -> Option<CaptureOffset> {
        let (start, places) = self.segments.iter_mut().rev().find(|(start, _)| *start <= at)?;
        places.locate(StreamOffset(at.0 - start.0))
    }
}

/// The places of a source's bytes, in ascending order.
pub struct Places<'a> {
    cutter: Cutter<'a>,
    segment: (StreamOffset, PlaceMap),
    /// The last byte that was found, from the segment's start.
    at: u64,
}

impl<'a> Places<'a> {
    pub(super) fn new(capture: &'a [u8], carrier: &'a Carrier) -> Self {
        Self { cutter: Cutter::new(capture, carrier, CHUNK), segment: Default::default(), at: 0 }
    }

    /// The first byte whose place is wanted; `None` if there is none. Once a place is wanted, all later ones must be, and each call must
    /// want no more than the call before.
    pub fn first_from(&mut self, is_wanted: impl Fn(CaptureOffset) -> bool) -> Option<StreamOffset> {
        loop {
            let (start, places) = &mut self.segment;
            let end = places.end().0;
            let mut is_before = |at: u64| !places.locate(StreamOffset(at)).is_some_and(&is_wanted);
            if end > 0 && !is_before(end - 1) {
                let (mut from, mut to) = (self.at, end - 1);
                while from < to {
                    let middle = from + (to - from) / 2;
                    (from, to) = if is_before(middle) { (middle + 1, to) } else { (from, middle) };
                }
                self.at = from;
                return Some(StreamOffset(start.0 + from));
            }
            self.segment = self.cutter.next()?.segment().take_places();
            self.at = 0;
        }
    }
}

/// Cuts a capture.
pub(super) struct Cutter<'a> {
    capture: &'a [u8],
    carrier: &'a Carrier,
    kind: Kind<'a>,
    /// The stream offset of the next segment.
    start: StreamOffset,
    /// The length of a segment in bytes; it may be slightly longer.
    size: usize,
}

enum Kind<'a> {
    Frames { deframer: Box<RecoveringDeframer>, id: TraceId, position: usize, finished: bool },
    Indexed(Indexed<'a>),
    Stretches { rest: &'a [Stretch], position: usize },
}

/// The place of a [`Cutter`], to go on from there later.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct CutPlace {
    /// The stream offset of the next segment.
    start: StreamOffset,
    /// The next section or stretch, and the bytes of the stretch that are done.
    next: usize,
    position: usize,
    /// The place in the previous section, if that is not done.
    inside: Option<InSection>,
}

impl<'a> Cutter<'a> {
    /// As [`Cutter::new`], from this place on.
    pub(super) fn at(capture: &'a [u8], carrier: &'a Carrier, size: usize, place: CutPlace) -> Self {
        let CutPlace { start, next, position, inside } = place;
        let mut cutter = Self { start, ..Self::new(capture, carrier, size) };
        match (&mut cutter.kind, carrier) {
            (Kind::Indexed(indexed), _) => (indexed.next, indexed.inside) = (next, inside),
            (kind @ Kind::Stretches { .. }, Carrier::Stretches(stretches)) => {
                *kind = Kind::Stretches { rest: stretches.get(next..).unwrap_or_default(), position };
            }
            _ => {}
        }
        cutter
    }

    /// The current place. In frames at unknown places, this is the beginning.
    pub(super) fn place(&self) -> CutPlace {
        let start = self.start;
        match (&self.kind, self.carrier) {
            (Kind::Indexed(Indexed { next, inside, .. }), _) => {
                CutPlace { start, next: *next, position: 0, inside: inside.clone() }
            }
            (Kind::Stretches { rest, position }, Carrier::Stretches(all)) => {
                CutPlace { start, next: all.len() - rest.len(), position: *position, inside: None }
            }
            _ => CutPlace { start: StreamOffset(0), next: 0, position: 0, inside: None },
        }
    }

    /// Segments of about `size` bytes.
    pub(super) fn new(capture: &'a [u8], carrier: &'a Carrier, size: usize) -> Self {
        let kind = match carrier {
            &Carrier::Frames { framing, id } => {
                let deframer = Box::new(RecoveringDeframer::new(framing));
                Kind::Frames { deframer, id, position: 0, finished: false }
            }
            &Carrier::Indexed { ref index, id } => {
                Kind::Indexed(Indexed { index, id, next: 0, inside: None })
            }
            Carrier::Stretches(stretches) => Kind::Stretches { rest: stretches, position: 0 },
        };
        Self { capture, carrier, kind, start: StreamOffset(0), size: size.max(1) }
    }
}

impl<'a> Iterator for Cutter<'a> {
    type Item = Cut<'a>;

    fn next(&mut self) -> Option<Cut<'a>> {
        let Self { capture, kind, start, size, .. } = self;
        let (cut, bytes) = match kind {
            Kind::Frames { finished: true, .. } => return None,
            Kind::Frames { deframer, id, position, finished } => {
                let mut sink = Collect::new(*id, start.0 > 0);
                while sink.bytes.len() < *size && !*finished {
                    let rest = capture.get(*position..).unwrap_or_default();
                    let piece = rest.get(..CHUNK).unwrap_or(rest);
                    deframer.push(piece, &mut sink);
                    *position += piece.len();
                    if piece.len() == rest.len() {
                        deframer.finish(&mut sink);
                        *finished = true;
                    }
                }
                ready(sink.segment(*start, *position as u64))
            }
            Kind::Indexed(indexed) => indexed.cut(capture, *start, *size)?,
            Kind::Stretches { rest, position } => {
                let mut is_cut = false;
                let stretch = loop {
                    let stretch = rest.first()?;
                    is_cut |= !stretch.continues;
                    if *position < stretch.bytes.end.min(capture.len()).saturating_sub(stretch.bytes.start) {
                        break stretch;
                    }
                    // A stretch after an empty one does not continue the one before. All bytes before the next stretch are done.
                    is_cut &= stretch.is_empty_in(capture);
                    *rest = rest.get(1..)?;
                    *position = 0;
                };
                let from = stretch.bytes.start + *position;
                let to = from.saturating_add(*size).min(stretch.bytes.end).min(capture.len());
                let is_new = *position == 0 && is_cut && start.0 > 0;
                let mut places = PlaceMap::new();
                places.append_contiguous(CaptureOffset(from as u64), (to - from) as u64);
                *position += to - from;
                ready(Segment {
                    start: *start,
                    bytes: Cow::Borrowed(capture.get(from..to).unwrap_or_default()),
                    places,
                    interruptions: if is_new { vec![(0, Interruption::Cut)] } else { Vec::new() },
                    done: to as u64,
                })
            }
        };
        self.start.0 += bytes;
        Some(cut)
    }
}

fn ready(segment: Segment<'_>) -> (Cut<'_>, u64) {
    let bytes = segment.bytes.len() as u64;
    (Cut::Ready(segment), bytes)
}

/// A source in frames at known places.
struct Indexed<'a> {
    index: &'a Index,
    id: TraceId,
    /// The next section that is not cut off.
    next: usize,
    /// The place in the previous section, if that is not done.
    inside: Option<InSection>,
}

impl Indexed<'_> {
    /// The next segment, and its length in bytes. If the sections are frames only, the length is known before they are deframed.
    fn cut<'c>(&mut self, capture: &'c [u8], start: StreamOffset, size: usize) -> Option<(Cut<'c>, u64)> {
        let Self { index, id, next, inside } = self;
        let first = *next;
        let mut bytes = 0;
        while inside.is_none()
            && bytes < size as u64
            && let Some(more) = index.bytes_in(*next, *id)
        {
            bytes += more;
            *next += 1;
        }
        if *next > first {
            let extraction = index.extraction(*id, first..*next);
            return Some((Cut::InFrames { start, capture, extraction }, bytes));
        }
        let mut extraction = match inside.take() {
            Some(inside) => index.rest(*id, inside),
            None if index.sections().contains(next) => {
                *next += 1;
                index.extraction(*id, *next - 1..*next)
            }
            None => return None,
        };
        let mut sink = Collect::new(*id, start.0 > 0);
        let mut done = 0;
        while let Some(end) = extraction.advance(capture, &mut sink) {
            done = end;
            if sink.bytes.len() >= size {
                *inside = extraction.into_inside();
                break;
            }
        }
        Some(ready(sink.segment(start, done)))
    }
}

/// The bytes of frames that are deframed between two checks of the segment's length.
const CHUNK: usize = 1 << 16;

/// Collects one source's bytes of a formatted capture.
struct Collect {
    id: TraceId,
    has_bytes_before: bool,
    bytes: Vec<u8>,
    places: PlaceMap,
    interruptions: Vec<(usize, Interruption)>,
}

impl Collect {
    fn new(id: TraceId, has_bytes_before: bool) -> Self {
        Self { id, has_bytes_before, bytes: Vec::new(), places: PlaceMap::new(), interruptions: Vec::new() }
    }

    /// The collected bytes as a segment. `done`: the capture's bytes that are done with it.
    fn segment<'a>(self, start: StreamOffset, done: u64) -> Segment<'a> {
        let Self { bytes, places, interruptions, .. } = self;
        Segment { start, bytes: Cow::Owned(bytes), places, interruptions, done }
    }
}

impl FrameSink for Collect {
    #[inline]
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if owner.trace_id() == Some(self.id) {
            self.places.append(piece);
            piece.append_to(&mut self.bytes);
        }
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        let has_bytes = self.has_bytes_before || !self.bytes.is_empty();
        if let (Some(why), true) = (Interruption::of(&discontinuity), has_bytes) {
            self.interruptions.push((self.bytes.len(), why));
        }
    }
}
