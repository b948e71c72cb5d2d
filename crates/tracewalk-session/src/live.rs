//! The rest of a capture that is still arriving.
//!
//! One source is decoded as its bytes arrive. If there are several, the capture is kept within a limit, and the others
//! are decoded when it has ended, because the outputs of two sources cannot be mixed. The others need not be in the
//! first bytes, so that frames are kept unless the caller chose its sources.

use std::cell::RefCell;
use std::fmt;
use std::io;

use tracewalk::ids::TraceId;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::drive::{Ending, ItmStream, Rest};
use tracewalk_analysis::itm::ItmCounts;
use tracewalk_analysis::record::ItmRecord;
use tracewalk_input::capture::stream::{End, Event, Place, Stream};

use crate::frames::Scan;
use crate::model::{Contents, Itm, Source};
use crate::notice::NoticeKind;
use crate::observer::{Observer, Say};

/// The most bytes of a capture that are kept for sources that have to wait.
pub(crate) const MOST_KEPT: usize = 64 << 20;

/// A capture that is still arriving.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) place: Place,
    /// Borrowed exclusively while the rest is read.
    pub(crate) state: RefCell<State>,
    /// The ITMs that are listened to. Borrowed briefly.
    itms: RefCell<Vec<Listening>>,
}

/// An ITM whose records are read as they arrive.
#[derive(Debug)]
struct Listening {
    id: Option<TraceId>,
    stream: ItmStream,
}

pub(crate) struct State {
    pub(crate) stream: Stream,
    /// The bytes that have arrived and are not in the capture's buffer.
    ahead: Vec<u8>,
    pub(crate) taken: Taken,
    pub(crate) end: Option<End>,
    /// Called when nothing arrives.
    on_quiet: Option<OnQuiet>,
}

/// Shows the results so far.
pub(crate) type OnQuiet = Box<dyn FnMut() -> io::Result<()>>;

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stream, taken, end, .. } = self;
        let mut state = f.debug_struct("State");
        state.field("stream", stream).field("taken", taken).field("end", end).finish_non_exhaustive()
    }
}

/// The state that depends on all bytes so far.
#[derive(Debug)]
pub(crate) struct Taken {
    /// The contents of the frames, counted as they arrive; `None` for a capture without frames.
    pub(crate) scan: Option<Scan>,
    /// All bytes, if other sources wait for them.
    pub(crate) kept: Option<Vec<u8>>,
    /// Whether more bytes arrived than are kept.
    pub(crate) kept_is_cut: bool,
    /// How many bytes were examined before decoding began.
    head: u64,
}

impl Taken {
    fn take(&mut self, bytes: &[u8]) {
        if let Some(scan) = &mut self.scan {
            scan.push(bytes);
        }
        if let Some(kept) = &mut self.kept {
            let room = MOST_KEPT.saturating_sub(kept.len());
            kept.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
            self.kept_is_cut |= bytes.len() > room;
        }
    }
}

/// Reports how a stream ended. The normal end of a file or a pipe needs no notice.
pub(crate) fn say_end(place: &Place, end: &End, received: u64, cut: u64, observer: &dyn Observer) {
    if *end != End::Closed || matches!(place, Place::Server { .. }) {
        let (place, end) = (place.clone(), end.clone());
        observer.say(NoticeKind::StreamEnded { place, end, received, cut });
    }
}

impl Live {
    /// The rest of a capture. The sources and contents are those found in `head`, the bytes in the capture's buffer. If
    /// `searches` is set, the rest may have further sources.
    pub(crate) fn new(
        (place, stream, end): (Place, Stream, Option<End>),
        (head, ahead): (&[u8], Vec<u8>),
        (sources, contents): (&[Source], &[Contents]),
        searches: bool,
        observer: &dyn Observer,
    ) -> Self {
        let framing = contents.iter().find_map(|contents| Some(contents.frames.as_ref()?.framing));
        let kept = (sources.len() > 1 || framing.is_some() && searches).then(Vec::new);
        let scan = framing.map(Scan::new);
        let mut taken = Taken { scan, kept, kept_is_cut: false, head: head.len() as u64 };
        taken.take(head);
        if let [first, others @ ..] = sources
            && !others.is_empty()
        {
            observer.say(NoticeKind::DecodedInTurn {
                place: place.clone(),
                first: first.id,
                others: others.iter().map(|source| source.id).collect(),
            });
        }
        let state = State { stream, ahead, taken, end, on_quiet: None };
        Self { place, state: RefCell::new(state), itms: RefCell::default() }
    }

    /// The number of bytes received, if somebody stopped the stream or it failed.
    pub(crate) fn stopped_at(&self) -> Option<u64> {
        let state = self.state.borrow();
        state.end.as_ref().filter(|end| end.is_early()).map(|_| state.stream.received())
    }

    /// Calls `flush` when nothing arrives.
    pub(crate) fn on_quiet(&self, flush: OnQuiet) {
        self.state.borrow_mut().on_quiet = Some(flush);
    }

    /// Listens to these ITMs from the first byte on; `beginning` has the first bytes.
    pub(crate) fn listen(&self, itms: &[Itm], beginning: &[u8]) {
        let listening = |itm: &Itm| {
            let mut stream = ItmStream::new(&itm.carrier);
            stream.push(CaptureOffset(0), beginning);
            Listening { id: itm.id, stream }
        };
        *self.itms.borrow_mut() = itms.iter().map(listening).collect();
    }

    /// The next record of an ITM, as far as it has arrived.
    pub(crate) fn heard(&self, id: Option<TraceId>) -> Option<ItmRecord> {
        let mut itms = self.itms.borrow_mut();
        itms.iter_mut().find(|listening| listening.id == id)?.stream.next_record()
    }

    /// The counts of an ITM so far.
    pub(crate) fn heard_counts(&self, id: Option<TraceId>) -> Option<ItmCounts> {
        let itms = self.itms.borrow();
        Some(itms.iter().find(|listening| listening.id == id)?.stream.counts().clone())
    }

    /// Passes on the next bytes, from place `at` on, to the ITMs' streams; returns the place after them.
    fn hand_to_itms(&self, at: CaptureOffset, bytes: &[u8]) -> CaptureOffset {
        self.itms.borrow_mut().iter_mut().for_each(|listening| listening.stream.push(at, bytes));
        CaptureOffset(at.0 + bytes.len() as u64)
    }
}

impl Rest for Live {
    fn each(&self, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<Ending> {
        let mut state = self.state.borrow_mut();
        let State { stream, ahead, taken, end, on_quiet } = &mut *state;
        let ahead = std::mem::take(ahead);
        taken.take(&ahead);
        let mut at = self.hand_to_itms(CaptureOffset(taken.head), &ahead);
        let mut goes_on = ahead.is_empty() || take(&ahead);
        while goes_on && end.is_none() {
            match stream.next() {
                Event::Bytes(piece) => {
                    taken.take(piece);
                    at = self.hand_to_itms(at, piece);
                    goes_on = take(piece);
                }
                Event::Quiet => on_quiet.as_mut().map_or(Ok(()), |flush| flush())?,
                Event::End(reason) => *end = Some(reason),
            }
        }
        let ending = match end {
            Some(End::Stopped | End::Idle) => Ending::Open,
            Some(End::Closed | End::Failed(_)) | None => Ending::Complete,
        };
        if end.is_some() {
            self.itms.borrow_mut().iter_mut().for_each(|listening| listening.stream.finish(ending));
        }
        Ok(ending)
    }
}
