//! Opens captures, as a whole or as they arrive.

use std::path::Path;
use std::time::Duration;

use tracewalk_input::capture::stream::{Growing, Place, Stop};
use tracewalk_input::capture::{Capture, Holds};
use tracewalk_session::{Arrival, Begin, Keep, NoticeKind, Observer as _, OpenError, Request, Session};

use crate::args::CaptureArgs;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::{output, signals};

/// Opens a capture once it is complete.
pub(crate) fn whole(args: &CaptureArgs, messages: &Messages) -> Result<Session, Failure> {
    open(args, request(args), Begin::Whole, None, messages)
}

/// As [`whole_trace`], or the log of a halted processor without trace.
pub(crate) fn whole_or_untraced(args: &CaptureArgs, messages: &Messages) -> Result<Session, Failure> {
    let request = Request { may_lack_trace: true, ..request(args) };
    trace(args, open(args, request, Begin::Whole, None, messages)?)
}

/// As [`whole`], for program flow.
pub(crate) fn whole_trace(args: &CaptureArgs, messages: &Messages) -> Result<Session, Failure> {
    trace(args, whole(args, messages)?)
}

/// As [`whole_trace`], with a cache for indexes.
#[cfg(any(feature = "gdb", feature = "view"))]
pub(crate) fn whole_trace_kept(
    args: &CaptureArgs,
    keep: Option<&dyn Keep>,
    messages: &Messages,
) -> Result<Session, Failure> {
    trace(args, open(args, request(args), Begin::Whole, keep, messages)?)
}

/// Opens a capture for program flow; a capture that arrives over time as soon as its sources are known.
pub(crate) fn live(args: &CaptureArgs, messages: &Messages) -> Result<Session, Failure> {
    trace(args, live_or_itm(args, messages)?)
}

/// As [`live`], if an ITM alone suffices.
pub(crate) fn live_or_itm(args: &CaptureArgs, messages: &Messages) -> Result<Session, Failure> {
    after(0, args, messages)
}

/// As [`live_or_itm`], when at least this number of bytes has arrived, or all.
pub(crate) fn after(bytes: usize, args: &CaptureArgs, messages: &Messages) -> Result<Session, Failure> {
    open(args, request(args), Begin::Trace { at_least: bytes }, None, messages)
}

/// Refuses a capture with only ITMs: an answer without rows would look as if nothing had happened.
pub(crate) fn trace(args: &CaptureArgs, session: Session) -> Result<Session, Failure> {
    if session.sources().is_empty() && !session.itms().is_empty() {
        return Err(OpenError::OnlyItm(args.capture.clone()).into());
    }
    Ok(session)
}

/// As [`live`], for its ITMs.
pub(crate) fn for_itms(args: &CaptureArgs, messages: &Messages) -> Result<Session, Failure> {
    open(args, request(args), Begin::Itms, None, messages)
}

/// Whether a capture arrives over time, and can be read only once.
pub(crate) fn comes_over_time(args: &CaptureArgs) -> Result<bool, Failure> {
    Ok(place(args)?.is_some())
}

/// The request to open the capture, with this machine's caches.
pub(crate) fn request(args: &CaptureArgs) -> Request {
    let mut request = args.request();
    // perf's own cache.
    let cache = std::env::var_os("HOME").map(|home| Path::new(&home).join(".debug"));
    request.stated.binaries.debug_dirs.extend(cache);
    request
}

fn open(
    args: &CaptureArgs,
    request: Request,
    begin: Begin,
    keep: Option<&dyn Keep>,
    messages: &Messages,
) -> Result<Session, Failure> {
    let mut session = match place(args)? {
        None => Session::open_kept(request, keep, messages)?,
        Some(place) => {
            // Provenance needs a hash of all bytes, and proofs follow the trace more than once.
            let is_whole = messages.records() || request.stated.proves_tasks;
            let begin = if is_whole { Begin::Whole } else { begin };
            let arrival = arrive(place, args, messages)?;
            Session::open_arriving(request, arrival, begin, messages)?
        }
    };
    let buffers = session.capture().buffers.iter().map(|buffer| buffer.file.clone());
    output::spare_from_standard_output(buffers)?;
    messages.replaced.spare(|directories| session.source_files(directories))?;
    messages.record(|record| {
        record.capture(&session);
    });
    Ok(session)
}

/// The source of an arriving capture; `None` for a complete one.
fn place(args: &CaptureArgs) -> Result<Option<Place>, OpenError> {
    let capture = &args.capture;
    match Place::of(capture)? {
        None if args.arrival.follow && Capture::format(capture).holds == Holds::Description => {
            Err(OpenError::DescriptionGrows(capture.clone()))
        }
        None if args.arrival.follow => Ok(Some(Place::Growing(capture.clone()))),
        None if args.arrival.idle.is_some() => Err(OpenError::NothingToWaitFor(capture.clone())),
        place => Ok(place),
    }
}

/// Connects to the source of the capture. A signal ends the stream from here on.
fn arrive(place: Place, args: &CaptureArgs, messages: &Messages) -> Result<Arrival, OpenError> {
    if let Place::Growing(path) = &place
        && Growing::is_waited_for(path)
    {
        messages.notice(NoticeKind::Awaited(place.clone()).into());
    }
    let idle = args.arrival.idle.map(Duration::from_secs_f64);
    let stop = Stop::default();
    let stream = place.open(idle, stop.clone())?;
    // Before this a signal ends the program at once: nothing has been received.
    signals::end_stream(stop);
    Ok(Arrival::new(place, stream))
}
