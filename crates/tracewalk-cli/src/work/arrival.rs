//! Captures that come over time: what has to be there before decoding can begin.
//!
//! What is not said is found out from the first bytes. How many that takes does not depend on how they come: readings
//! are tried on the first 1024 bytes, then on twice as many, up to as many as are looked at in a file.

use std::path::PathBuf;
use std::time::Duration;

use tracewalk::ids::TraceId;
use tracewalk_input::capture::stream::{End, Event, Growing, Place, Stop, Stream};
use tracewalk_input::capture::{
    Capture, CaptureError, CaptureErrorKind, Container, Holds, Protocol, SourceDescription,
};

use super::Work;
use super::live::Live;
use crate::args::{CaptureArgs, ContainerChoice};
use crate::failure::Failure;
use crate::guess::Certainty;
use crate::messages::{Messages, counted};
use crate::signals;
use crate::sources::config;

/// How many bytes the first reading is tried on, and the last one.
const FIRST_LOOK: usize = 1 << 10;
const LAST_LOOK: usize = 1 << 16;

/// The most bytes of a capture that has to come as a whole.
const MOST: u64 = 16 << 30;

/// A capture that comes, as far as it has come.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) place: Place,
    pub(super) stream: Stream,
    pub(super) head: Vec<u8>,
    pub(super) end: Option<End>,
}

/// Where the capture comes from over time; `None` where all of it is there.
pub(super) fn place(args: &CaptureArgs) -> Result<Option<Place>, Failure> {
    let capture = &args.capture;
    match Place::of(capture)? {
        None if args.arrival.follow && Capture::format(capture).holds == Holds::Description => {
            Err(Failure::input(
                format!("{}: is a description, which does not grow", capture.display()),
                "leave out --follow, or give the file of trace bytes",
            ))
        }
        None if args.arrival.follow => Ok(Some(Place::Growing(capture.clone()))),
        None if args.arrival.idle.is_some() => Err(Failure::input(
            format!("{}: is all there, and --idle is for what comes over time", capture.display()),
            "leave out --idle, or add --follow",
        )),
        place => Ok(place),
    }
}

/// What a capture is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Trace, when at least so many bytes have come, or all.
    Trace {
        at_least: usize,
    },
    Itms,
}

impl Arrival {
    pub(super) fn open(place: Place, args: &CaptureArgs, messages: &Messages) -> Result<Self, Failure> {
        if let Place::Growing(path) = &place
            && Growing::is_waited_for(path)
        {
            messages.note(format_args!("{place}: does not exist yet, and is waited for"));
        }
        let idle = args.arrival.idle.map(Duration::from_secs_f64);
        let stop = Stop::default();
        let stream = place.open(idle, stop.clone())?;
        // Before this a signal ends the program at once: nothing has been received.
        signals::end_stream(stop);
        Ok(Self { place, stream, head: Vec::new(), end: None })
    }

    fn name(&self) -> PathBuf {
        PathBuf::from(self.place.to_string())
    }

    /// Waits until so many bytes are there, or until nothing comes any more.
    fn receive(&mut self, bytes: usize) {
        while self.head.len() < bytes && self.end.is_none() {
            match self.stream.next() {
                Event::Bytes(piece) => self.head.extend_from_slice(piece),
                Event::Quiet => {}
                Event::End(end) => self.end = Some(end),
            }
        }
    }

    /// The capture, when all of it has come.
    pub(super) fn whole(mut self, args: &CaptureArgs, messages: &Messages) -> Result<Capture, Failure> {
        let name = self.name();
        if self.end.is_none() {
            let room = MOST.saturating_sub(self.head.len() as u64);
            let (bytes, end) = self.stream.read_to_end(&name, room)?;
            self.head.extend(bytes);
            self.end = Some(end);
        }
        self.refuse_nothing()?;
        if let Some(end) = &self.end {
            tell_end(&self.place, end, self.stream.received(), 0, messages);
        }
        Ok(Capture::read_from(&name, self.head.as_slice(), &args.recording.options())?)
    }

    /// The work on what has come so far, with the rest still to come; or on the whole capture, where all of it has to be
    /// there before anything can be decoded.
    pub(super) fn begin(
        mut self,
        wanted: Wanted,
        args: &CaptureArgs,
        messages: &Messages,
    ) -> Result<Work, Failure> {
        let is_described = is_described(args);
        if !is_described && !matches!(self.place, Place::StandardInput) {
            messages.note(format_args!(
                "{}: what it sends is found out from its first bytes; --container and --source [ID=]PROTOCOL,cpu=… \
                 save the wait",
                self.place
            ));
        }
        let at_least = match wanted {
            Wanted::Trace { at_least } => at_least,
            Wanted::Itms => 0,
        };
        let mut bytes = if is_described { 1 } else { FIRST_LOOK }.max(at_least);
        loop {
            self.receive(bytes);
            self.refuse_nothing()?;
            let attempt = self.attempt(bytes, args, &Messages::muted());
            let is_mtb =
                |work: &Work| work.contents.iter().any(|found| found.container.value == Container::Mtb);
            if !may_come_in_pieces(&self.head, args) || attempt.as_ref().is_ok_and(is_mtb) {
                return Work::of(self.whole(args, messages)?, args, false, messages);
            }
            let is_last = self.end.is_some() || bytes >= LAST_LOOK;
            let has_wanted =
                wanted != Wanted::Itms || attempt.as_ref().is_ok_and(|work| !work.itms.is_empty());
            if is_last && !has_wanted {
                return Work::of(self.whole(args, messages)?, args, false, messages);
            }
            if is_last || has_wanted && attempt.is_ok_and(|work| is_described || work.is_certain(args)) {
                let mut work = self.attempt(bytes, args, messages)?;
                work.live = Some(Live::new(self, bytes, args, &work, messages));
                return Ok(work);
            }
            bytes *= 2;
        }
    }

    /// Refuses what ended before a byte came, with what to look at there.
    fn refuse_nothing(&self) -> Result<(), Failure> {
        let Some(end) = self.end.as_ref().filter(|_| self.head.is_empty()) else { return Ok(()) };
        let place = &self.place;
        let problem = match (place, end) {
            (Place::Server { .. }, End::Closed) => format!("{place}: closed the connection without a byte"),
            (_, End::Closed) => format!("{place}: standard input ended without a byte"),
            (_, End::Stopped) => format!("{place}: stopped before a byte came"),
            (_, End::Idle) => format!("{place}: nothing came for as long as --idle says"),
            (_, End::Failed(problem)) => format!("{place}: {problem}, before a byte came"),
        };
        let hint = match place {
            Place::Server { .. } => {
                "check that the server has a probe to read from, that the target runs and traces, and that this is the \
                 port where it sends trace as it is"
            }
            Place::StandardInput => "check the command that writes to it",
            Place::Growing(path) if path.exists() => "check that the program that writes the file runs",
            Place::Growing(_) => "check the file's name, and that the program that writes it runs",
        };
        Err(Failure::input(problem, hint))
    }

    /// The work on the first bytes of those that have come.
    fn attempt(&self, bytes: usize, args: &CaptureArgs, messages: &Messages) -> Result<Work, Failure> {
        let head = self.head.get(..bytes).unwrap_or(&self.head);
        Work::of(Capture::from_bytes(&self.name(), head.to_vec())?, args, true, messages)
    }
}

/// Whether the options say everything that would have to be found out.
fn is_described(args: &CaptureArgs) -> bool {
    let has_id = |source: &SourceDescription| {
        source.id.is_some() || config(source).is_ok_and(|config| config.trace_id().is_some())
    };
    let is_decoded = |source: &SourceDescription| source.protocol == Protocol::Itm || config(source).is_ok();
    let in_frames = match args.container {
        Some(ContainerChoice::Is(Container::Frames)) => true,
        Some(ContainerChoice::Is(Container::TracePort)) if args.frame_start.is_some() => true,
        Some(ContainerChoice::Is(Container::Raw)) => false,
        _ => return false,
    };
    !args.sources.is_empty()
        && args.sources.iter().all(|source| is_decoded(source) && (!in_frames || has_id(source)))
}

/// Whether a capture that starts like this can be decoded in pieces: not if it is text, an archive or memory.
fn may_come_in_pieces(head: &[u8], args: &CaptureArgs) -> bool {
    let is_memory = args.mtb_position.is_some()
        || args.mtb_master.is_some()
        || args.mtb_base.is_some()
        || args.registers.is_some()
        || args.dump_address.is_some()
        || args.read_pointer.is_some()
        || args.swap_words
        || matches!(args.container, Some(ContainerChoice::Is(Container::Mtb)));
    !is_memory && Capture::format_of(head).streams && args.recording.options().is_empty()
}

impl Work {
    /// Whether what was found out is not in doubt, and everything that was asked for is there.
    fn is_certain(&self, args: &CaptureArgs) -> bool {
        let of_contents = self.contents.iter().flat_map(|contents| &contents.findings);
        let mut findings = of_contents.chain(self.jobs.iter().flat_map(|job| &job.findings));
        let is_there = |id: &TraceId| {
            let mut ids = self.jobs.iter().map(|job| job.id).chain(self.itms.iter().map(|itm| itm.id));
            ids.any(|known| known == Some(*id))
        };
        !(self.jobs.is_empty() && self.itms.is_empty())
            && findings
                .all(|finding| matches!(finding.certainty, Certainty::Certain | Certainty::Indifferent))
            && args.ids.iter().all(is_there)
    }
}

/// Says why a capture ended. `cut` is how many of its bytes are the beginning of a frame.
pub(super) fn tell_end(place: &Place, end: &End, received: u64, cut: u64, messages: &Messages) {
    let received = counted(received, "byte");
    if matches!(end, End::Stopped | End::Failed(_)) {
        messages.cut();
    }
    match end {
        End::Closed if !matches!(place, Place::Server { .. }) => {}
        End::Closed if cut > 0 => messages.incomplete(format_args!(
            "{place}: closed the connection within a frame, after {received}; the last {cut} of them are not decoded"
        )),
        End::Closed => messages.note(format_args!("{place}: closed the connection after {received}")),
        End::Stopped => messages.note(format_args!("{place}: stopped after {received}")),
        End::Idle => messages.note(format_args!("{place}: nothing more came after {received}")),
        End::Failed(problem) => {
            let kind = CaptureErrorKind::Stream(problem.clone());
            let error = CaptureError { file: place.to_string().into(), line: None, kind };
            let hint = error.hint().unwrap_or_default();
            messages.incomplete(format_args!("{error}, after {received}; what had come is decoded; {hint}"));
        }
    }
}
