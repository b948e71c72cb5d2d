//! A capture in files, and the program flow of its sources.

use std::ffi::{CString, c_char, c_void};
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

use ::tracewalk_session::{Follow, OpenError, Session, Source};
use tracewalk::ids::TraceId;
use tracewalk_analysis::Section;
use tracewalk_analysis::analysis::{FlowSink, InOrder};
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;

use crate::boundary::{c_text, enter, fill, give, guarded, quiet, release, text};
use crate::decoder::tracewalk_on_element;
use crate::element::tracewalk_element;
use crate::error::{Problem, tracewalk_error, tracewalk_status};
use crate::notice::{Listener, Said, tracewalk_notice};
use crate::options::tracewalk_options;

/// An open capture. One thread uses it: the one that opened it.
#[derive(Debug)]
pub struct tracewalk_session(Mutex<Opened>);

#[derive(Debug)]
struct Opened {
    session: Session,
    follow: Follow,
    said: Vec<Said>,
    /// The sources' protocols and processors, for C.
    names: Vec<(CString, CString)>,
}

/// A source of trace in a capture. Its texts live as long as the session.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tracewalk_source {
    /// How many bytes of this structure the library fills in.
    pub size: u32,
    /// Its trace ID; 0 for a source without one.
    pub trace_id: u32,
    /// Its protocol: `etmv3`, `pft`, `etmv4` or `mtb`.
    pub protocol: *const c_char,
    /// The processor, if it is known; else an empty text.
    pub cpu: *const c_char,
}

/// What came of following a source.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tracewalk_outcome {
    /// How many bytes of this structure the library fills in.
    pub size: u32,
    /// 1 if all of the source was decoded.
    pub complete: u32,
    /// How many instructions were executed.
    pub instructions: u64,
    /// How many packets there were.
    pub packets: u64,
    /// How many stretches of bytes are no packet.
    pub malformed: u64,
}

/// Gives elements to a callback.
struct Giving {
    id: Option<TraceId>,
    callback: unsafe extern "C" fn(*mut c_void, *const tracewalk_element) -> std::ffi::c_int,
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
        // SAFETY: it is the program's own function, which it gave with what it takes.
        self.stopped = unsafe { (self.callback)(self.user, &raw const element) } != 0;
        if self.stopped { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }
}

impl FlowSink for Giving {}

/// Opens a capture: a file of trace bytes, a perf.data file, a capture.toml, or a snapshot directory. What `options` do not state is
/// inferred; a null pointer states nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_session_open(
    path: *const c_char,
    options: Option<&tracewalk_options>,
    out: *mut *mut tracewalk_session,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        // SAFETY: the program promises it, as the header says.
        let path = PathBuf::from(unsafe { text("path", path) }?);
        let asked = options.map(tracewalk_options::asked).transpose()?.unwrap_or_default();
        let (mut request, follow) = (asked.request, Follow { names: None, ..asked.follow });
        request.capture.clone_from(&path);
        let listener = Listener::default();
        let session = Session::open_observed(request, &listener)?;
        if session.sources().is_empty() && !session.itms().is_empty() {
            return Err(OpenError::OnlyItm(path).into());
        }
        let name = |source: &Source| {
            let cpu = source.description.cpu.as_ref().map(|cpu| cpu.value.to_string());
            (c_text(source.config.protocol()), c_text(&cpu.unwrap_or_default()))
        };
        let names = session.sources().iter().map(name).collect();
        let opened = Opened { session, follow, said: listener.into_vec(), names };
        // SAFETY: as above.
        unsafe { give(out, tracewalk_session(Mutex::new(opened))) }?;
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// How many sources the capture has whose program flow can be decoded; 0 for a null pointer.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_session_source_count(session: Option<&tracewalk_session>) -> usize {
    quiet(0, || enter(session.map(|session| &session.0)).map_or(0, |opened| opened.names.len()))
}

/// Describes a source; `size` is `sizeof(tracewalk_source)`. `TRACEWALK_STATUS_END`: there are not so many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_session_source(
    session: Option<&tracewalk_session>,
    index: usize,
    out: *mut tracewalk_source,
    size: usize,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        let opened = enter(session.map(|session| &session.0))?;
        let Some((source, (protocol, cpu))) =
            opened.session.sources().get(index).zip(opened.names.get(index))
        else {
            return Ok(tracewalk_status::End);
        };
        let source = tracewalk_source {
            size: u32::try_from(size_of::<tracewalk_source>()).unwrap_or(0),
            trace_id: source.id.map_or(0, |id| id.get().into()),
            protocol: protocol.as_ptr(),
            cpu: cpu.as_ptr(),
        };
        // SAFETY: the program promises it, as the header says.
        unsafe { fill(out, size, size_of::<tracewalk_source>(), &source) }?;
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Follows a source from its beginning, and gives a callback each element. `out` is null, or receives what came of it, if the callback
/// did not end the work; `size` is `sizeof(tracewalk_outcome)`.
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
        let mut opened = enter(session.map(|session| &session.0))?;
        let callback = callback.ok_or_else(|| Problem::argument("callback: found a null pointer"))?;
        let Opened { session, follow, said, .. } = &mut *opened;
        let Some(source) = session.sources().get(index).cloned() else {
            return Err(Problem::argument(format!("index: found {index}, and no such source")));
        };
        if !out.is_null() && size < size_of::<tracewalk_outcome>() {
            return Err(Problem::argument("size: found too few bytes for an outcome"));
        }
        let listener = Listener::default();
        let mut giving = Giving { id: source.id, callback, user, stopped: false };
        let worked = session.run_observed(&source, follow, InOrder(&mut giving), &listener);
        said.extend(listener.into_vec());
        if giving.stopped {
            return Ok(tracewalk_status::Stopped);
        }
        let worked = worked?;
        if !out.is_null() {
            let outcome = tracewalk_outcome {
                size: u32::try_from(size_of::<tracewalk_outcome>()).unwrap_or(0),
                complete: worked.complete.into(),
                instructions: worked.statistics.instructions,
                packets: worked.statistics.packets,
                malformed: worked.statistics.malformed,
            };
            // SAFETY: the program promises it, as the header says.
            unsafe { fill(out, size, size_of::<tracewalk_outcome>(), &outcome) }?;
        }
        Ok(tracewalk_status::End)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Reads a notice: those of opening, then those of work, in the order in which they arose; `size` is `sizeof(tracewalk_notice)`.
/// `TRACEWALK_STATUS_END`: there are not so many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_session_notice(
    session: Option<&tracewalk_session>,
    index: usize,
    out: *mut tracewalk_notice,
    size: usize,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        let opened = enter(session.map(|session| &session.0))?;
        let Some(said) = opened.said.get(index) else { return Ok(tracewalk_status::End) };
        // SAFETY: the program promises it, as the header says.
        unsafe { fill(out, size, size_of::<tracewalk_notice>(), &said.to_c()) }?;
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Frees a session; a null pointer is none.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_session_free(session: Option<Box<tracewalk_session>>) {
    release(session);
}
