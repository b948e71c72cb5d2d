//! An ITM's bytes in a capture → its records, on demand.

use std::collections::VecDeque;

use tracewalk::frame::{
    Cause, Discontinuity, Extraction, FrameSink, Owner, Piece, PlaceMap, RecoveringDeframer,
};
use tracewalk::ids::TraceId;
use tracewalk::source::Instrumentation;
use tracewalk::span::{CaptureOffset, Span, StreamOffset};

use super::{Carrier, Ending, Input, Stretch, WINDOW};
use crate::itm::{self, ItmCounts, ItmEvent};
use crate::record::ItmRecord;
use crate::stm;

/// The records of an ITM, in the order of the capture. Only a window of the capture is held at a time.
#[derive(Debug)]
pub struct ItmRecords<'a> {
    capture: &'a [u8],
    left: Left,
    stream: ItmStream,
    finished: bool,
}

/// The unread part of a capture.
#[derive(Debug)]
enum Left {
    Stretches(VecDeque<Stretch>),
    Indexed(Extraction),
}

/// The records of an ITM whose bytes arrive piece by piece.
#[derive(Debug)]
pub struct ItmStream {
    /// `None` if all bytes are the ITM's.
    deframer: Option<Box<RecoveringDeframer>>,
    work: Work,
}

#[derive(Debug)]
struct Work {
    id: Option<TraceId>,
    reader: Reader,
    places: PlaceMap,
    ready: VecDeque<ItmRecord>,
    last: CaptureOffset,
}

/// The reader of a protocol.
#[derive(Debug)]
enum Reader {
    Itm(itm::Reader),
    Stm(stm::Reader),
}

macro_rules! each_reader {
    ($value:expr, $reader:ident => $body:expr) => {
        match $value {
            Reader::Itm($reader) => $body,
            Reader::Stm($reader) => $body,
        }
    };
}

/// The number of bytes that are deframed at a time.
const CHUNK: usize = 1 << 14;

impl<'a> Input<'a> {
    /// The records of the ITM in these bytes. Bytes that arrive later are left out.
    #[must_use]
    pub fn itm(&self) -> ItmRecords<'a> {
        self.instrumentation(Instrumentation::Itm)
    }

    /// The records of the ITM or STM in these bytes. Bytes that arrive later are left out.
    #[must_use]
    pub fn instrumentation(&self, kind: Instrumentation) -> ItmRecords<'a> {
        let stream = ItmStream::new(&self.carrier, kind);
        let (left, stream) = match &self.carrier {
            Carrier::Frames { .. } => {
                (Left::Stretches(VecDeque::from([Stretch::all(self.capture.len())])), stream)
            }
            Carrier::Indexed { index, id } => {
                let left = Left::Indexed(index.extraction(*id, index.sections()));
                (left, ItmStream { deframer: None, ..stream })
            }
            Carrier::Stretches(stretches) => (Left::Stretches(stretches.iter().cloned().collect()), stream),
        };
        ItmRecords { capture: self.capture, left, stream, finished: false }
    }
}

impl ItmStream {
    /// A stream of the ITM or STM whose bytes `carrier` describes.
    #[must_use]
    pub fn new(carrier: &Carrier, kind: Instrumentation) -> Self {
        let (id, deframer) = match carrier {
            &Carrier::Frames { framing, id } => (Some(id), Some(Box::new(RecoveringDeframer::new(framing)))),
            Carrier::Indexed { index, id } => {
                (Some(*id), Some(Box::new(RecoveringDeframer::new(index.framing()))))
            }
            Carrier::Stretches(_) => (None, None),
        };
        let work = Work {
            id,
            reader: match kind {
                Instrumentation::Itm => Reader::Itm(itm::Reader::new()),
                Instrumentation::Stm => Reader::Stm(stm::Reader::new()),
            },
            places: PlaceMap::new(),
            ready: VecDeque::new(),
            last: CaptureOffset(0),
        };
        Self { deframer, work }
    }

    /// Takes the next bytes of the capture, from `at` on.
    pub fn push(&mut self, at: CaptureOffset, bytes: &[u8]) {
        let Self { deframer, work } = self;
        if let Some(deframer) = deframer {
            deframer.push(bytes, work);
        } else {
            work.places.append_contiguous(at, bytes.len() as u64);
            let end = work.places.end().0;
            work.places.trim(StreamOffset(end.saturating_sub(WINDOW + bytes.len() as u64)));
            work.take(bytes);
        }
    }

    /// No more bytes arrive.
    pub fn finish(&mut self, ending: Ending) {
        if let Some(deframer) = &mut self.deframer {
            deframer.finish(&mut self.work);
        }
        if ending == Ending::Open {
            each_reader!(&mut self.work.reader, reader => reader.forget_incomplete());
        }
        self.work.finish();
    }

    /// The next record, if the bytes so far contain one.
    pub fn next_record(&mut self) -> Option<ItmRecord> {
        self.work.ready.pop_front()
    }

    /// The counts so far.
    #[must_use]
    pub const fn counts(&self) -> &ItmCounts {
        each_reader!(&self.work.reader, reader => reader.counts())
    }
}

impl ItmRecords<'_> {
    /// The counts so far.
    #[must_use]
    pub const fn counts(&self) -> &ItmCounts {
        self.stream.counts()
    }

    /// Deframes the next piece of the capture.
    fn read_on(&mut self) {
        let Self { capture, left, stream, finished } = self;
        let was_left = match left {
            Left::Stretches(stretches) => read_stretch(capture, stretches, stream),
            Left::Indexed(extraction) => extraction.advance(capture, &mut stream.work).is_some(),
        };
        if !was_left {
            stream.finish(Ending::Complete);
            *finished = true;
        }
    }
}

/// Takes the next bytes of the first stretch, if there is one.
fn read_stretch(capture: &[u8], stretches: &mut VecDeque<Stretch>, stream: &mut ItmStream) -> bool {
    let Some(stretch) = stretches.front_mut() else { return false };
    let end = (stretch.bytes.start + CHUNK).min(stretch.bytes.end).min(capture.len());
    let chunk = capture.get(stretch.bytes.start..end).unwrap_or_default();
    if !stretch.continues {
        stream.work.lose_sync();
    }
    stream.push(CaptureOffset(stretch.bytes.start as u64), chunk);
    *stretch = Stretch { bytes: end..stretch.bytes.end, continues: true };
    if chunk.is_empty() || stretch.bytes.is_empty() {
        stretches.pop_front();
    }
    true
}

impl Iterator for ItmRecords<'_> {
    type Item = ItmRecord;

    fn next(&mut self) -> Option<ItmRecord> {
        loop {
            let next = self.stream.next_record();
            if next.is_some() || self.finished {
                return next;
            }
            self.read_on();
        }
    }
}

impl Work {
    fn with(&mut self, work: impl FnOnce(&mut Reader, &mut dyn FnMut(Span, ItmEvent))) {
        let Self { id, reader, places, ready, last } = self;
        let protocol = each_reader!(&*reader, reader => reader.counts().protocol);
        work(reader, &mut |span, event| {
            if let Some(place) = places.locate(span.start) {
                *last = place;
            }
            ready.push_back(ItmRecord { id: *id, protocol, at: *last, event });
        });
    }

    fn take(&mut self, bytes: &[u8]) {
        self.with(|reader, mut emit| each_reader!(reader, reader => reader.push(bytes, &mut emit)));
    }

    fn lose_sync(&mut self) {
        if self.places.end().0 > 0 {
            self.with(|reader, mut emit| each_reader!(reader, reader => reader.lose_sync(&mut emit)));
        }
    }

    fn finish(&mut self) {
        self.with(|reader, mut emit| each_reader!(reader, reader => reader.finish(&mut emit)));
    }
}

impl FrameSink for Work {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if owner.trace_id() == self.id {
            self.places.append(piece);
            let end = self.places.end().0;
            self.places.trim(StreamOffset(end.saturating_sub(WINDOW + piece.bytes.len() as u64)));
            self.take(piece.bytes);
        }
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        if discontinuity.cause != Cause::Start {
            self.lose_sync();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::NoProgress;
    use tracewalk::frame::{Formatter, FormatterOptions, Framing};

    #[test]
    fn records_stand_where_their_first_byte_stands_in_the_capture() {
        let [itm, other] = [1, 2].map(|id| TraceId::new(id).unwrap());
        let mut capture = Vec::new();
        let mut formatter = Formatter::new(FormatterOptions::default());
        for letter in b"some text\nand more\n" {
            formatter.write(itm, &[1, *letter], &mut capture);
            formatter.write(other, &[0xff; 7], &mut capture);
        }
        formatter.flush(&mut capture);
        let carrier = Carrier::Frames { framing: Framing::Buffer, id: itm };
        let input = Input { capture: &capture, carrier, rest: None, progress: &NoProgress };
        let records = input.itm().collect::<Vec<_>>();
        let text = records.iter().map(|record| record.event.to_string()).collect::<Vec<_>>();
        assert_eq!(text, ["port 0: some text", "port 0: and more"]);
        assert!(records[0].at < CaptureOffset(4) && records[1].at > CaptureOffset(80), "{records:?}");
        // The same bytes alone.
        let bytes = b"some text\nand more\n".iter().flat_map(|letter| [1, *letter]).collect::<Vec<_>>();
        let carrier = Carrier::Stretches(vec![Stretch::all(bytes.len())]);
        let input = Input { capture: &bytes, carrier, rest: None, progress: &NoProgress };
        let mut alone = input.itm();
        let places = alone.by_ref().map(|record| record.at.0).collect::<Vec<_>>();
        assert_eq!(places, [0, 20]);
        assert_eq!((alone.counts().packets["stimulus"], alone.counts().bytes), (19, 38));
    }
}
