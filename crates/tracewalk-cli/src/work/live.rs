//! Decoding a capture while it comes.
//!
//! One source is decoded as its bytes come. Where there are several, the whole capture is kept for the others, within a
//! limit, and they are decoded when it has ended: what is printed of two sources cannot be mixed. The others need not
//! be in the first bytes, so that frames are kept unless somebody said which sources are wanted.

use std::cell::RefCell;
use std::io::{self, Write};

use tracewalk::ids::TraceId;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::drive::{Ending, ItmStream, Rest};
use tracewalk_analysis::itm::ItmCounts;
use tracewalk_analysis::record::ItmRecord;
use tracewalk_input::capture::stream::{End, Event, Place, Stream};
use tracewalk_input::capture::{Capture, SourceDescription};

use super::arrival::{Arrival, tell_end};
use super::{ItmJob, Job, Work, tell};
use crate::args::CaptureArgs;
use crate::failure::Failure;
use crate::frames::Scan;
use crate::messages::{Messages, counted};
use crate::output::Output;
use crate::sources::as_option;

/// The most bytes of a capture that are kept for sources that have to wait.
const MOST_KEPT: usize = 64 << 20;

/// A capture that is still coming.
#[derive(Debug)]
pub(super) struct Live {
    place: Place,
    args: CaptureArgs,
    /// Borrowed while the rest is read, and by nobody else then.
    state: RefCell<State>,
    /// The ITMs that somebody listens to. Borrowed for moments.
    itms: RefCell<Vec<Listening>>,
}

/// An ITM whose records are taken as they come.
#[derive(Debug)]
struct Listening {
    itm: ItmJob,
    stream: ItmStream,
}

#[derive(Debug)]
struct State {
    stream: Stream,
    /// What has come and is not in the capture's buffer.
    ahead: Vec<u8>,
    taken: Taken,
    end: Option<End>,
    /// What is printed so far, to be seen when nothing comes.
    output: Option<Output>,
}

/// What is remembered of the bytes that came.
#[derive(Debug)]
struct Taken {
    /// What the frames hold, counted as they come; `None` for a capture without frames.
    scan: Option<Scan>,
    /// Everything, where other sources wait for it.
    kept: Option<Vec<u8>>,
    /// Whether there was more than is kept.
    kept_is_cut: bool,
    /// How many bytes were looked at before anything was decoded.
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

impl Live {
    /// The rest of a capture, of which so many bytes were looked at and are in the buffer of `work`.
    pub(super) fn new(
        arrival: Arrival,
        looked_at: usize,
        args: &CaptureArgs,
        work: &Work,
        messages: &Messages,
    ) -> Self {
        let Arrival { place, stream, mut head, end } = arrival;
        let ahead = head.split_off(looked_at.min(head.len()));
        let framing = work.contents.iter().find_map(|contents| Some(contents.frames.as_ref()?.framing));
        let may_be_more = framing.is_some() && searches(args);
        let kept = (work.jobs.len() > 1 || may_be_more).then(Vec::new);
        let scan = framing.map(Scan::new);
        let mut taken = Taken { scan, kept, kept_is_cut: false, head: head.len() as u64 };
        taken.take(&head);
        if let [first, others @ ..] = work.jobs.as_slice()
            && !others.is_empty()
        {
            let others = others.iter().map(Job::name).collect::<Vec<_>>().join(", ");
            messages.note(format_args!(
                "{place}: {} is decoded as it comes, {others} when it has ended; choose one with --id",
                first.name()
            ));
        }
        let state = State { stream, ahead, taken, end, output: None };
        Self { place, args: args.clone(), state: RefCell::new(state), itms: RefCell::default() }
    }

    /// Lets those who listen to ITMs have the next bytes, the first of which stands here; returns where the next one will.
    fn hand_to_itms(&self, at: CaptureOffset, bytes: &[u8]) -> CaptureOffset {
        self.itms.borrow_mut().iter_mut().for_each(|listening| listening.stream.push(at, bytes));
        CaptureOffset(at.0 + bytes.len() as u64)
    }
}

impl Rest for Live {
    fn each(&self, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<Ending> {
        let mut state = self.state.borrow_mut();
        let State { stream, ahead, taken, end, output } = &mut *state;
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
                Event::Quiet => output.as_mut().map_or(Ok(()), Write::flush)?,
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

impl Work {
    /// What is still coming of the capture.
    pub(super) fn rest(&self) -> Option<&dyn Rest> {
        self.live.as_ref().map(|live| live as &dyn Rest)
    }

    /// Listens to these ITMs of a capture that is still coming, from its first byte on.
    pub(crate) fn listen(&self, itms: &[ItmJob]) {
        let (Some(live), Some(buffer)) = (&self.live, self.capture.buffers.first()) else { return };
        let listening = |itm: &ItmJob| {
            let mut stream = ItmStream::new(&itm.carrier);
            stream.push(CaptureOffset(0), &buffer.bytes);
            Listening { itm: itm.clone(), stream }
        };
        *live.itms.borrow_mut() = itms.iter().map(listening).collect();
    }

    /// What an ITM that is [listened](Self::listen) to told next, as far as it has come.
    pub(crate) fn heard(&self, itm: &ItmJob) -> Option<ItmRecord> {
        let mut itms = self.live.as_ref()?.itms.borrow_mut();
        itms.iter_mut().find(|listening| listening.itm.id == itm.id)?.stream.next_record()
    }

    /// What was found so far of an ITM that is listened to.
    pub(crate) fn heard_counts(&self, itm: &ItmJob) -> Option<ItmCounts> {
        let itms = self.live.as_ref()?.itms.borrow();
        Some(itms.iter().find(|listening| listening.itm.id == itm.id)?.stream.counts().clone())
    }

    /// Waits for what is still coming, for the sake of ITMs alone; calls `look` whenever some of it has come.
    pub(crate) fn wait_for_itms(&self, mut look: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        let mut looked = look();
        if let Some(live) = &self.live {
            live.each(&mut |_| {
                looked = looked.as_ref().map_or(Ok(()), |()| look());
                looked.is_ok()
            })?;
            looked?;
            looked = look();
        }
        looked
    }

    /// Whether the capture is still coming.
    pub(crate) const fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Lets what is printed be seen as soon as nothing comes, where the capture is still coming. Answers whether it is.
    pub(crate) fn show_at_once(&self, output: &Output) -> bool {
        if let Some(live) = &self.live {
            live.state.borrow_mut().output = Some(output.clone());
        }
        self.live.is_some()
    }

    /// A job is done. Where it was decoded while the capture came, all of that has come now: says how it ended and what
    /// else was in it, and has it ready for the other jobs.
    pub(crate) fn end_job(&mut self, messages: &Messages) -> Result<(), Failure> {
        let Some(Live { place, args, state, .. }) = self.live.take() else { return Ok(()) };
        let State { stream, taken: Taken { scan, kept, kept_is_cut, .. }, end, .. } = state.into_inner();
        let frames = scan.map(Scan::finish);
        let cut = frames.as_ref().map_or(0, |frames| frames.account.tail);
        if let Some(end) = &end {
            tell_end(&place, end, stream.received(), cut, messages);
        }
        let is_new = |id: &TraceId| !self.jobs.iter().any(|job| job.id == Some(*id));
        let has_new = frames.as_ref().is_some_and(|frames| frames.sources.keys().any(is_new));
        if let (Some(contents), Some(buffer)) = (self.contents.first_mut(), self.capture.buffers.first_mut())
        {
            contents.frames = frames;
            if let Some(kept) = kept {
                buffer.bytes = kept.into();
            }
        }
        let has_more = has_new && searches(&args) && self.find_more(&args, messages)?;
        if kept_is_cut && self.jobs.len() > 1 {
            messages.incomplete(format_args!(
                "{place}: only the first {} are kept for the other sources; choose one with --id",
                counted(MOST_KEPT as u64, "byte")
            ));
        }
        let (Some(contents), Some(buffer)) = (self.contents.first(), self.capture.buffers.first()) else {
            return Ok(());
        };
        if args.ids.is_empty() && !has_more {
            let decoded = self.jobs.iter().map(|job| (job.id, &job.description));
            let decoded = decoded.map(|(id, description)| SourceDescription { id, ..description.clone() });
            let itms =
                self.itms.iter().map(|itm| SourceDescription { id: itm.id, ..itm.description.clone() });
            let sources = decoded.chain(itms).chain(buffer.sources.iter().cloned()).collect::<Vec<_>>();
            tell::other_sources(contents, buffer, &sources.iter().collect::<Vec<_>>(), &self.known, messages);
        }
        if !has_more {
            tell::damage(contents, buffer, messages);
        }
        Ok(())
    }

    /// Finds the sources that were not in the first bytes, now that all of the capture has come; the first job is done.
    /// Answers whether there are any: then everything about the capture has been said.
    fn find_more(&mut self, args: &CaptureArgs, messages: &Messages) -> Result<bool, Failure> {
        let whole = |messages| {
            let [buffer] = self.capture.buffers.as_slice() else { return Ok(None) };
            let capture = Capture::from_bytes(&buffer.file, buffer.bytes.clone())?;
            Self::of(capture, args, false, messages).map(Some)
        };
        let is_new = |job: &Job| !self.jobs.iter().any(|known| known.id == job.id);
        // What cannot be read as a whole was read well enough at first.
        let muted = Messages::muted();
        let Ok(Some(tried)) = whole(&muted) else { return Ok(false) };
        if !tried.jobs.iter().any(is_new) {
            return Ok(false);
        }
        let (Some(mut work), Some(done)) = (whole(messages)?, self.jobs.first().cloned()) else {
            return Ok(false);
        };
        match work.jobs.iter().position(|job| job.id == done.id) {
            Some(place) => {
                let again = work.jobs.remove(place);
                if again.config != done.config {
                    messages.incomplete(format_args!(
                        "{}: was decoded as {}, by its first bytes; all of them read better as {}, which can be said \
                         beforehand",
                        done.name(),
                        as_option(&done.description),
                        as_option(&again.description)
                    ));
                }
            }
            None => messages.note(format_args!("{}: was decoded by its first bytes", done.name())),
        }
        work.jobs.insert(0, done);
        *self = work;
        Ok(true)
    }
}

/// Whether the sources of a capture are to be found in it.
const fn searches(args: &CaptureArgs) -> bool {
    args.ids.is_empty() && args.sources.is_empty() && !args.strict
}
