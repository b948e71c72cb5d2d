//! A capture in files, and the program flow of its sources.

use std::ffi::{CString, c_char};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::thread::{self, ThreadId};

use ::tracewalk_session::{Follow, OpenError, Session, Source};
use tracewalk_input::cpu::Profile;

use crate::boundary::{c_text, enter, fill, give, quiet, release, size_field, text};
use crate::call::guarded;
use crate::error::tracewalk_error;
use crate::notice::{Listener, Said, tracewalk_notice};
use crate::options::{Asked, tracewalk_options};
use crate::status::{Problem, tracewalk_status};

/// An open capture. Only the thread that opened it can use and free it.
#[derive(Debug)]
pub struct tracewalk_session {
    /// The thread that opened the session, to which its content is bound.
    thread: ThreadId,
    opened: Mutex<Opened>,
}

/// The content of a session handle.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) session: Session,
    pub(crate) follow: Follow,
    pub(crate) said: Vec<Said>,
    /// The sources' protocols and processors, for C.
    names: Vec<(CString, CString)>,
}

impl tracewalk_session {
    /// The content of a handle, for one call at a time by the thread that opened it.
    pub(crate) fn enter(handle: Option<&Self>) -> Result<MutexGuard<'_, Opened>, Problem> {
        if handle.is_some_and(|handle| handle.thread != thread::current().id()) {
            return Err(Problem::state("another thread opened the session: use it there"));
        }
        enter(handle.map(|handle| &handle.opened))
    }
}

impl Opened {
    /// The source with this number.
    pub(crate) fn source(&self, index: usize) -> Result<Source, Problem> {
        let sources = self.session.sources();
        sources.get(index).cloned().ok_or_else(|| {
            Problem::argument(format!("index: found {index}, expected less than {} (sources)", sources.len()))
        })
    }
}

/// A profile of the architecture.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tracewalk_profile {
    /// Unknown.
    Unknown = 0,
    /// Application: Cortex-A.
    A = 1,
    /// Real-time: Cortex-R.
    R = 2,
    /// Microcontroller: Cortex-M.
    M = 3,
    /// Older than the profiles: ARM7 to ARM11.
    Classic = 4,
}

/// A source of trace in a capture. The texts live as long as the session.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tracewalk_source {
    /// The number of bytes of this structure that the library fills in.
    pub size: u32,
    /// The trace ID; 0 for a source without one.
    pub trace_id: u32,
    /// The protocol: `etmv3`, `pft`, `etmv4` or `mtb`.
    pub protocol: *const c_char,
    /// The processor, if it is known; else an empty text.
    pub cpu: *const c_char,
    /// The processor's profile.
    pub profile: tracewalk_profile,
    /// 0.
    pub reserved: u32,
}

/// Opens a capture: a file of trace bytes, a perf.data file, a capture.toml, or a snapshot directory. Settings that
/// `options` do not state are inferred; a null pointer states nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_session_open(
    path: *const c_char,
    options: Option<&tracewalk_options>,
    out: *mut *mut tracewalk_session,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        // SAFETY: the program keeps to the preconditions in the header.
        let path = PathBuf::from(unsafe { text("path", path) }?);
        let asked = options.map(tracewalk_options::asked).transpose()?.unwrap_or_default();
        let Asked { mut request, follow } = asked;
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
        unsafe {
            give(out, tracewalk_session { thread: thread::current().id(), opened: Mutex::new(opened) })
        }?;
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// The number of sources whose program flow can be decoded; 0 for a null pointer.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_session_source_count(session: Option<&tracewalk_session>) -> usize {
    quiet(0, || tracewalk_session::enter(session).map_or(0, |opened| opened.names.len()))
}

/// Describes a source; `size` is `sizeof(tracewalk_source)`. `TRACEWALK_STATUS_END` if `index` is not below the number of sources.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_session_source(
    session: Option<&tracewalk_session>,
    index: usize,
    out: *mut tracewalk_source,
    size: usize,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        let opened = tracewalk_session::enter(session)?;
        let Some((source, (protocol, cpu))) =
            opened.session.sources().get(index).zip(opened.names.get(index))
        else {
            return Ok(tracewalk_status::End);
        };
        let source = tracewalk_source {
            size: size_field::<tracewalk_source>(),
            trace_id: source.id.map_or(0, |id| id.get().into()),
            protocol: protocol.as_ptr(),
            cpu: cpu.as_ptr(),
            profile: match source.profile() {
                None => tracewalk_profile::Unknown,
                Some(Profile::A) => tracewalk_profile::A,
                Some(Profile::R) => tracewalk_profile::R,
                Some(Profile::M) => tracewalk_profile::M,
                Some(Profile::Classic) => tracewalk_profile::Classic,
            },
            reserved: 0,
        };
        // SAFETY: the program keeps to the preconditions in the header.
        unsafe { fill(out, size, size_of::<tracewalk_source>(), &source) }?;
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Reads a notice: those of opening come first, then those of work, in the order in which they arose. `size` is
/// `sizeof(tracewalk_notice)`. `TRACEWALK_STATUS_END` if `index` is not below the number of notices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_session_notice(
    session: Option<&tracewalk_session>,
    index: usize,
    out: *mut tracewalk_notice,
    size: usize,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        let opened = tracewalk_session::enter(session)?;
        let Some(said) = opened.said.get(index) else { return Ok(tracewalk_status::End) };
        // SAFETY: the program keeps to the preconditions in the header.
        unsafe { fill(out, size, size_of::<tracewalk_notice>(), &said.to_c()) }?;
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Frees a session; a null pointer is ignored. Only the thread that opened the session can free it; in others nothing
/// happens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_session_free(session: *mut tracewalk_session) {
    // SAFETY: the program promises that `session` is null or a session, as the header states.
    let opened_here =
        unsafe { session.as_ref() }.is_some_and(|session| session.thread == thread::current().id());
    if opened_here {
        // SAFETY: `session` is a box from `tracewalk_session_open`, and the program promises that nobody else uses or
        // frees it.
        release(Some(unsafe { Box::from_raw(session) }));
    }
}
