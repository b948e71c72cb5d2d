//! Work on a source of a session: each element of its program flow, or each packet, is given to a callback.

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::Arc;

use ::tracewalk_session::RunError;
use tracewalk::ids::TraceId;
use tracewalk::span::{CaptureOffset, StreamOffset};
use tracewalk_analysis::analysis::FlowSink;
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Section, Statistics};

use crate::boundary::{fill, give, size_field};
use crate::call::guarded;
use crate::element::{tracewalk_element, tracewalk_on_element};
use crate::error::tracewalk_error;
use crate::notice::Listener;
use crate::packet::{PacketCallback, tracewalk_on_packet};
use crate::program::tracewalk_program;
use crate::session::{Opened, tracewalk_session};
use crate::status::{Problem, tracewalk_status};

/// The outcome of following a source.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tracewalk_outcome {
    /// The number of bytes of this structure that the library fills in.
    pub size: u32,
    /// 1 if all of the source was decoded.
    pub complete: u32,
    /// The number of executed instructions.
    pub instructions: u64,
    /// The number of packets.
    pub packets: u64,
    /// The number of stretches of bytes that are not packets.
    pub malformed: u64,
}

/// Gives elements to a callback.
struct Giving {
    id: Option<TraceId>,
    callback: unsafe extern "C" fn(*mut c_void, *const tracewalk_element) -> c_int,
    user: *mut c_void,
    stopped: bool,
}

impl Sink<FlowRecord> for Giving {
    fn section(&mut self, _: &Section) -> io::Result<()> {
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        if self.stopped {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let element = tracewalk_element::of(&record.element, self.id, Some(record.at));
        // SAFETY: `callback` and `user` come from the program, which passed them together.
        self.stopped = unsafe { (self.callback)(self.user, &raw const element) } != 0;
        if self.stopped { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }
}

impl FlowSink for Giving {}

/// Refuses a place for an outcome that is too small. The program may want no outcome.
fn fits(out: *mut tracewalk_outcome, size: usize) -> Result<(), Problem> {
    if !out.is_null() && size < size_of::<tracewalk_outcome>() {
        let least = size_of::<tracewalk_outcome>();
        return Err(Problem::argument(format!(
            "size: found {size} bytes for an outcome, expected at least {least}"
        )));
    }
    Ok(())
}

/// Writes the outcome of work, if the program wants it.
///
/// # Safety
///
/// `out` is null, or `size` bytes can be written there.
unsafe fn report(
    out: *mut tracewalk_outcome,
    size: usize,
    complete: bool,
    statistics: &Statistics,
) -> Result<(), Problem> {
    if out.is_null() {
        return Ok(());
    }
    let outcome = tracewalk_outcome {
        size: size_field::<tracewalk_outcome>(),
        complete: complete.into(),
        instructions: statistics.instructions,
        packets: statistics.packets,
        malformed: statistics.malformed,
    };
    // SAFETY: the caller promises that `size` bytes can be written to `out`.
    unsafe { fill(out, size, size_of::<tracewalk_outcome>(), &outcome) }
}

/// Follows a source from its beginning, and gives each element to a callback. `out` is null, or receives the outcome if
/// the callback did not end the work; `size` is `sizeof(tracewalk_outcome)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_session_each(
    session: Option<&tracewalk_session>,
    index: usize,
    callback: tracewalk_on_element,
    user: *mut c_void,
    out: *mut tracewalk_outcome,
    size: usize,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        let mut opened = tracewalk_session::enter(session)?;
        let callback = callback.ok_or_else(|| Problem::argument("callback: found a null pointer"))?;
        let source = opened.source(index)?;
        fits(out, size)?;
        let Opened { session, follow, said, .. } = &mut *opened;
        let listener = Listener::default();
        let mut giving = Giving { id: source.id, callback, user, stopped: false };
        let worked = session.run_observed(&source, follow, &mut giving, &listener);
        said.extend(listener.into_vec());
        if giving.stopped {
            return Ok(tracewalk_status::Stopped);
        }
        let worked = worked?;
        // SAFETY: the program keeps to the preconditions in the header.
        unsafe { report(out, size, worked.complete, &worked.statistics) }?;
        Ok(tracewalk_status::End)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Reads a source's packets from its beginning, and gives each to a callback. `out` and `size` are as for
/// `tracewalk_session_each`; instructions are not counted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_session_packets(
    session: Option<&tracewalk_session>,
    index: usize,
    callback: tracewalk_on_packet,
    user: *mut c_void,
    out: *mut tracewalk_outcome,
    size: usize,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        let mut opened = tracewalk_session::enter(session)?;
        let callback = callback.ok_or_else(|| Problem::argument("callback: found a null pointer"))?;
        let source = opened.source(index)?;
        fits(out, size)?;
        let Opened { session, said, .. } = &mut *opened;
        let listener = Listener::default();
        let watch = session.watch(&source, &listener);
        let buffer = session.buffer(&source);
        let mut giving = PacketCallback::new(callback, user);
        let mut start = StreamOffset(0);
        let worked = session.input(&source, &watch).packets(&source.config, |record| {
            let at = CaptureOffset(buffer.file_offset(record.at));
            giving.give((record.content, record.bytes), source.id, start, Some(at));
            // Packets cover the source's bytes without a hole.
            start.0 += record.bytes.len() as u64;
            if giving.stopped { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
        });
        let complete = watch.ended_at().is_none();
        drop(watch);
        if let Ok(statistics) = &worked {
            session.say_if_nothing_decoded(&source, statistics, &listener);
        }
        said.extend(listener.into_vec());
        if giving.stopped {
            return Ok(tracewalk_status::Stopped);
        }
        let statistics = worked.map_err(RunError::from)?;
        // SAFETY: the program keeps to the preconditions in the header.
        unsafe { report(out, size, complete, &statistics) }?;
        Ok(tracewalk_status::End)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Creates a program with the code that a source's processor ran: from images, from the capture itself, and from dumps
/// of memory. The caller frees it, and can use it in any thread, and after the session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_session_program(
    session: Option<&tracewalk_session>,
    index: usize,
    out: *mut *mut tracewalk_program,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        let mut opened = tracewalk_session::enter(session)?;
        let source = opened.source(index)?;
        let Opened { session, said, .. } = &mut *opened;
        let listener = Listener::default();
        let code = session.code(&source, None, &listener);
        said.extend(listener.into_vec());
        // SAFETY: the program keeps to the preconditions in the header.
        unsafe { give(out, tracewalk_program::of(Arc::clone(&code?.program))) }?;
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}
