//! The rest of a capture that is still arriving.
//!
//! One source is decoded as its bytes arrive. If there are several, the capture is kept within a limit, and the others
//! are decoded when it has ended, because the outputs of two sources cannot be mixed. The others need not be in the
//! first bytes, so that frames are kept unless the caller chose its sources.

use std::cell::RefCell;
use std::{fmt, io};

use tracewalk::ids::TraceId;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::drive::{Ending, ItmStream, Rest};
use tracewalk_analysis::itm::ItmCounts;
use tracewalk_analysis::record::ItmRecord;
use tracewalk_input::capture::stream::{End, Event, Place, Stream};
use tracewalk_input::capture::{Capture, SourceDescription};

use crate::error::OpenError;
use crate::frames::Scan;
use crate::model::{Contents, Itm, Source};
use crate::notice::NoticeKind;
use crate::observer::{Notices, Observer, Say};
use crate::report;
use crate::session::Session;

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
            let mut stream = ItmStream::new(&itm.carrier, itm.protocol());
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

impl Session {
    /// Calls `each` with every source, in their order. The end of a capture that arrives over time may add sources.
    ///
    /// # Errors
    ///
    /// The first error of `each`, or the reason why the rest of the capture cannot be opened.
    pub fn each_source<E: From<OpenError>>(
        &mut self,
        observer: &dyn Observer,
        mut each: impl FnMut(&mut Self, &Source) -> Result<(), E>,
    ) -> Result<(), E> {
        self.needs_trace()?;
        for index in 0.. {
            let Some(source) = self.sources.get(index).cloned() else { break };
            each(self, &source)?;
            self.end_source(observer)?;
        }
        Ok(())
    }

    /// Ends the work on a source. If the source was decoded while the capture arrived, all of the capture has arrived
    /// now: reports how it ended and what else it holds, and makes it available to the other sources.
    ///
    /// # Errors
    ///
    /// If an image cannot be used for the rest of the capture.
    pub fn end_source(&mut self, observer: &dyn Observer) -> Result<(), OpenError> {
        let Some(live) = self.live.take() else { return Ok(()) };
        self.stopped_at = live.stopped_at();
        let Live { place, state, .. } = live;
        let State { stream, taken: Taken { scan, kept, kept_is_cut, .. }, end, .. } = state.into_inner();
        let frames = scan.map(Scan::finish);
        let is_new = |id: &TraceId| !self.sources.iter().any(|source| source.id == Some(*id));
        let has_new = frames.as_ref().is_some_and(|frames| frames.sources.keys().any(is_new));
        if let (Some(contents), Some(buffer)) = (self.contents.first_mut(), self.capture.buffers.first_mut())
        {
            contents.frames = frames;
            if let Some(kept) = kept {
                buffer.bytes = kept.into();
            }
        }
        if let Some(end) = end {
            let cut = self.contents.iter().map(Contents::cut).sum();
            say_end(&place, &end, stream.received(), cut, observer);
        }
        let has_more = has_new && self.request.searches() && self.find_more(observer)?;
        if kept_is_cut && self.sources.len() > 1 {
            observer.say(NoticeKind::KeptPartly { place, kept: MOST_KEPT as u64 });
        }
        if !has_more {
            self.say_what_else(observer);
            if let ([contents], [buffer]) = (&*self.contents, &*self.capture.buffers) {
                report::cut_frame(contents, buffer, observer);
            }
        }
        Ok(())
    }

    /// Reports contents of the capture that were not decoded.
    fn say_what_else(&self, observer: &dyn Observer) {
        let (Some(contents), Some(buffer)) = (self.contents.first(), self.capture.buffers.first()) else {
            return;
        };
        if self.request.ids.is_empty() {
            let decoded = self.sources.iter().map(|source| (source.id, &source.description));
            let itms = self.itms.iter().map(|itm| (itm.id, &itm.description));
            let with_id =
                |(id, description): (_, &SourceDescription)| SourceDescription { id, ..description.clone() };
            let mut sources = decoded.chain(itms).map(with_id).collect::<Vec<_>>();
            for source in &buffer.sources {
                if sources.iter().all(|known| known.id != source.id) {
                    sources.push(source.clone());
                }
            }
            let sources = sources.iter().collect::<Vec<_>>();
            report::other_sources(contents, (buffer, false), &sources, &self.known, observer);
        }
        report::damage(contents, buffer, observer);
    }

    /// Finds the sources that were not in the first bytes, now that all of the capture has arrived. The first source is
    /// done. Returns whether there are further sources; everything about the capture has then been reported.
    fn find_more(&mut self, observer: &dyn Observer) -> Result<bool, OpenError> {
        let [buffer] = self.capture.buffers.as_slice() else { return Ok(false) };
        let notices = Notices::default();
        let capture = Capture::from_bytes(&buffer.file, buffer.bytes.clone());
        let whole = capture
            .map_err(OpenError::from)
            .and_then(|capture| Self::of(capture, self.request.clone(), false, None, &notices));
        // If the whole cannot be read, the reading of the first bytes stands.
        let (Ok(mut whole), Some(done)) = (whole, self.sources.first().cloned()) else { return Ok(false) };
        let is_new = |source: &Source| !self.sources.iter().any(|known| known.id == source.id);
        if !whole.sources.iter().any(is_new) {
            return Ok(false);
        }
        notices.pass_on(observer);
        match whole.sources.iter().position(|source| source.id == done.id) {
            Some(place) => {
                let again = whole.sources.remove(place);
                if again.config != done.config {
                    observer.say(NoticeKind::ReadsOtherwise {
                        source: done.id,
                        decoded: Box::new(done.description.clone()),
                        better: Box::new(again.description),
                    });
                }
            }
            None => observer.say(NoticeKind::DecodedByHead { source: done.id }),
        }
        whole.sources.insert(0, done);
        whole.stopped_at = self.stopped_at;
        *self = whole;
        Ok(true)
    }
}
