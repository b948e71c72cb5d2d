//! Captures that arrive over time: the bytes that are needed before decoding can begin.
//!
//! Missing settings are inferred from the first 1024 bytes, then from twice as many, up to the number used for a file.
//! The number of bytes needed does not depend on how they arrive.

use std::io::Read as _;
use std::path::PathBuf;

use tracewalk::ids::TraceId;
use tracewalk_input::capture::stream::{self, End, Event, Feeder, Place, Stop, Stream};
use tracewalk_input::capture::{Capture, Container, Protocol, SourceDescription};

use crate::error::OpenError;
use crate::infer::Certainty;
use crate::live::{Live, say_end};
use crate::model::Contents;
use crate::notice::NoticeKind;
use crate::observer::{Notices, Observer, Say};
use crate::request::Request;
use crate::session::Session;
use crate::sources::config;

/// How many bytes the first and the last attempt use.
const FIRST_LOOK: usize = 1 << 10;
const LAST_LOOK: usize = 1 << 16;

/// A capture that arrives over time, with the bytes received so far.
#[derive(Debug)]
pub struct Arrival {
    place: Place,
    stream: Stream,
    head: Vec<u8>,
    end: Option<End>,
}

/// The part of an arriving capture that must be there before it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Begin {
    /// The whole capture.
    Whole,
    /// At least this number of bytes, and enough to infer missing settings.
    Trace {
        /// The number of bytes.
        at_least: usize,
    },
    /// Enough to find an ITM. If the first bytes have none, the capture is opened when all of it has arrived.
    Itms,
}

impl Session {
    /// Opens a capture that arrives over time. Until all of it has arrived, the session is
    /// [live](Self::is_live): decode its sources in order, each once, and call [`Session::end_source`] after
    /// each.
    ///
    /// # Errors
    ///
    /// As for [`Session::open`], or if nothing arrives.
    pub fn open_arriving(
        request: Request,
        arrival: Arrival,
        begin: Begin,
        observer: &dyn Observer,
    ) -> Result<Self, OpenError> {
        match begin {
            Begin::Whole => arrival.open_whole(request, observer),
            Begin::Trace { at_least } => arrival.open(request, at_least, false, observer),
            Begin::Itms => arrival.open(request, 0, true, observer),
        }
    }

    /// Whether the inferred settings are certain, and all requested sources are present.
    fn is_certain(&self) -> bool {
        let of_contents = self.contents.iter().flat_map(|contents| &contents.findings);
        let mut findings = of_contents.chain(self.sources.iter().flat_map(|source| &source.findings));
        let is_there = |id: &TraceId| {
            let sources = self.sources.iter().map(|source| source.id);
            sources.chain(self.itms.iter().map(|itm| itm.id)).any(|known| known == Some(*id))
        };
        !(self.sources.is_empty() && self.itms.is_empty())
            && findings
                .all(|finding| matches!(finding.certainty, Certainty::Certain | Certainty::Indifferent))
            && self.request.ids.iter().all(is_there)
    }
}

impl Arrival {
    /// A capture that arrives on an open `stream`; `place` names it in messages.
    #[must_use]
    pub const fn new(place: Place, stream: Stream) -> Self {
        Self { place, stream, head: Vec::new(), end: None }
    }

    /// A capture that another thread feeds while this thread opens and decodes it. The capture ends when the feeder is
    /// dropped.
    #[must_use]
    pub fn fed() -> (Feeder, Self) {
        let (feeder, source) = stream::fed();
        (feeder, Self::new(Place::Fed, Stream::new(source, None, Stop::default())))
    }

    fn name(&self) -> PathBuf {
        PathBuf::from(self.place.to_string())
    }

    /// Waits for this number of bytes, or for the end of the capture.
    fn receive(&mut self, bytes: usize) {
        while self.head.len() < bytes && self.end.is_none() {
            match self.stream.next() {
                Event::Bytes(piece) => self.head.extend_from_slice(piece),
                Event::Quiet => {}
                Event::End(end) => self.end = Some(end),
            }
        }
    }

    /// The session on the capture, opened when all of it has arrived.
    fn open_whole(mut self, request: Request, observer: &dyn Observer) -> Result<Session, OpenError> {
        self.receive(1);
        self.refuse_nothing()?;
        let bytes = self.head.as_slice().chain(&mut self.stream);
        let opened = Capture::read_from(self.place.to_string().as_ref(), bytes, &request.stated.wires);
        let end = self.end.or_else(|| self.stream.end().cloned());
        let stopped_at = end.as_ref().filter(|end| end.is_early()).map(|_| self.stream.received());
        let opened = opened.map_err(OpenError::from);
        let opened = opened.and_then(|capture| Session::of(capture, request, false, None, observer));
        if let Some(end) = &end {
            let cut = opened.as_ref().map_or(0, |session| session.contents.iter().map(Contents::cut).sum());
            say_end(&self.place, end, self.stream.received(), cut, observer);
        }
        Ok(Session { stopped_at, ..opened? })
    }

    /// The session on the bytes that have arrived, with the rest still to come; or on the whole capture, if nothing can
    /// be decoded before all of it has arrived.
    fn open(
        mut self,
        request: Request,
        at_least: usize,
        for_itms: bool,
        observer: &dyn Observer,
    ) -> Result<Session, OpenError> {
        let is_described = is_described(&request);
        if !is_described && !matches!(self.place, Place::StandardInput) {
            observer.say(NoticeKind::InferringFromHead(self.place.clone()));
        }
        let mut bytes = if is_described { 1 } else { FIRST_LOOK }.max(at_least);
        loop {
            self.receive(bytes);
            self.refuse_nothing()?;
            let notices = Notices::default();
            let attempt = self.attempt(bytes, &request, &notices);
            let is_mtb = |session: &Session| {
                session.contents.iter().any(|found| found.container.value == Container::Mtb)
            };
            if !may_come_in_pieces(&self.head, &request) || attempt.as_ref().is_ok_and(is_mtb) {
                return self.open_whole(request, observer);
            }
            let is_last = self.end.is_some() || bytes >= LAST_LOOK;
            let has_wanted = !for_itms || attempt.as_ref().is_ok_and(|session| !session.itms.is_empty());
            if is_last && !has_wanted {
                return self.open_whole(request, observer);
            }
            let is_enough = |session: &Session| is_described || session.is_certain();
            if is_last || has_wanted && attempt.as_ref().is_ok_and(is_enough) {
                notices.pass_on(observer);
                return Ok(self.go_on(attempt?, bytes, observer));
            }
            bytes *= 2;
        }
    }

    /// The session with the rest of the capture still to arrive.
    fn go_on(self, mut session: Session, looked_at: usize, observer: &dyn Observer) -> Session {
        let Self { place, stream, mut head, end } = self;
        let ahead = head.split_off(looked_at.min(head.len()));
        session.live = Some(Live::new(
            (place, stream, end),
            (&head, ahead),
            (&session.sources, &session.contents),
            session.request.searches(),
            observer,
        ));
        session
    }

    /// Refuses a capture that ended before its first byte.
    fn refuse_nothing(&self) -> Result<(), OpenError> {
        match self.end.as_ref().filter(|_| self.head.is_empty()) {
            Some(end) => Err(OpenError::NoByte { place: self.place.clone(), end: end.clone() }),
            None => Ok(()),
        }
    }

    /// The session on the first `bytes` that have arrived.
    fn attempt(
        &self,
        bytes: usize,
        request: &Request,
        observer: &dyn Observer,
    ) -> Result<Session, OpenError> {
        let head = self.head.get(..bytes).unwrap_or(&self.head);
        let capture = Capture::from_bytes(&self.name(), head.to_vec())?;
        Session::of(capture, request.clone(), true, None, observer)
    }
}

/// Whether the request states everything that would have to be inferred.
fn is_described(request: &Request) -> bool {
    let stated = &request.stated;
    let has_id = |source: &SourceDescription| {
        source.id.is_some() || config(source).is_ok_and(|config| config.trace_id().is_some())
    };
    let is_decoded = |source: &SourceDescription| {
        matches!(source.protocol, Protocol::Itm | Protocol::Stm) || config(source).is_ok()
    };
    let in_frames = match stated.container {
        Some(Container::Frames) => true,
        Some(Container::TracePort) if stated.frame_start.is_some() => true,
        Some(Container::Raw) => false,
        _ => return false,
    };
    !stated.sources.is_empty()
        && stated.sources.iter().all(|source| is_decoded(source) && (!in_frames || has_id(source)))
}

/// Whether a capture that starts like this can be decoded in pieces. Text, archives and memory cannot.
fn may_come_in_pieces(head: &[u8], request: &Request) -> bool {
    let stated = &request.stated;
    let is_memory = stated.mtb.position.is_some()
        || stated.mtb.master.is_some()
        || stated.mtb.base.is_some()
        || stated.mtb.registers.is_some()
        || stated.dump_address.is_some()
        || stated.read_pointer.is_some()
        || stated.swap_words
        || stated.container == Some(Container::Mtb);
    !is_memory && Capture::format_of(head).streams && stated.wires.is_empty()
}
