//! A session on a thread of its own, and Python's wait for its work.
//!
//! ```text
//! Python's thread: job ─────▶ session's thread: works, and checks whether to end
//!                  ◀──────── answer, notices
//! ```
//!
//! While Python waits, other Python threads run. The waiting thread handles signals, and reports progress.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use tracewalk_analysis::drive::Progress;
use tracewalk_session::{Late, Notice, Observer, Request, Session};

use crate::notice::Said;
use crate::problem::Problem;

/// How often Python is asked for signals.
const LOOK: Duration = Duration::from_millis(50);

/// A session that does one job after another.
#[derive(Debug)]
pub(crate) struct Worker {
    jobs: Sender<Job>,
    watch: Arc<Watch>,
}

type Job = Box<dyn FnOnce(&mut Session, &Listener) + Send>;

/// The result of a job, and the notices.
pub(crate) type Done<T> = (Result<T, Problem>, Vec<Said>);

/// The progress of the work, and whether to end it.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) done: AtomicU64,
    pub(crate) all: AtomicU64,
}

/// Collects notices.
#[derive(Debug)]
pub(crate) struct Listener {
    watch: Arc<Watch>,
    said: RefCell<Vec<Said>>,
    late: Late,
    /// Whether a part of the capture could not be read when it was opened.
    lacking: Cell<bool>,
    /// Whether decoding ended before the capture did.
    cut: Cell<bool>,
}

impl Listener {
    pub(crate) fn new(watch: Arc<Watch>) -> Self {
        Self {
            watch,
            said: RefCell::default(),
            late: Late::default(),
            lacking: Cell::default(),
            cut: Cell::default(),
        }
    }

    /// Whether no notice of the opening, and none since the last call of `take`, says that a part of the capture
    /// is missing or unreadable.
    pub(crate) fn whole(&self) -> bool {
        !self.lacking.get() && !self.said.borrow().iter().any(Said::is_incomplete)
    }

    /// Whether no notice since the last call of `take` says that decoding ended early.
    pub(crate) fn is_complete(&self) -> bool {
        !self.cut.get()
    }

    /// The notices since the last call.
    pub(crate) fn take(&self) -> Vec<Said> {
        let late = self.late.take();
        let mut said = self.said.take();
        said.extend(late.iter().map(Said::of));
        said
    }
}

impl Observer for Listener {
    fn notice(&self, notice: Notice) {
        self.cut.set(self.cut.get() || notice.kind.is_cut());
        self.said.borrow_mut().push(Said::of(&notice));
    }

    fn work(&self, bytes: u64) -> Box<dyn Progress + '_> {
        self.watch.done.store(0, Ordering::Relaxed);
        self.watch.all.store(bytes, Ordering::Relaxed);
        Box::new(Watched(&self.watch))
    }

    fn late(&self) -> Late {
        self.late.clone()
    }
}

#[derive(Debug)]
struct Watched<'a>(&'a Watch);

impl Progress for Watched<'_> {
    fn done(&self, bytes: u64) -> bool {
        self.0.done.store(bytes, Ordering::Relaxed);
        !self.0.stop.load(Ordering::Relaxed)
    }
}

impl Worker {
    /// Opens a capture on a new thread, and does the work `first` there.
    pub(crate) fn open<T: Send + 'static>(
        py: Python<'_>,
        request: Request,
        progress: Option<&Py<PyAny>>,
        first: impl FnOnce(&Session) -> Result<T, Problem> + Send + 'static,
    ) -> PyResult<(Self, Done<T>)> {
        let watch = Arc::<Watch>::default();
        let (jobs, waiting) = channel::<Job>();
        let (opened, answer) = channel();
        let watched = Arc::clone(&watch);
        thread::Builder::new().name("tracewalk".to_owned()).spawn(move || {
            let listener = Listener::new(watched);
            let session = guarded(|| {
                let session = Session::open_observed(request, &listener)?;
                let first = first(&session)?;
                Ok((session, first))
            });
            let (session, first) = match session {
                Ok((session, first)) => (Some(session), Ok(first)),
                Err(problem) => (None, Err(problem)),
            };
            listener.lacking.set(!listener.whole());
            // The caller may have gone.
            let _ = opened.send((first, listener.take()));
            drop(opened);
            if let Some(mut session) = session {
                waiting.into_iter().for_each(|job| job(&mut session, &listener));
            }
        })?;
        let done = wait(py, answer, &watch, progress)?;
        Ok((Self { jobs, watch }, done))
    }

    /// Runs work on the session's thread, and waits for its result.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        progress: Option<&Py<PyAny>>,
        work: impl FnOnce(&mut Session, &Listener) -> Result<T, Problem> + Send + 'static,
    ) -> PyResult<Done<T>> {
        self.watch.stop.store(false, Ordering::Relaxed);
        let (sender, answer) = channel();
        let job = move |session: &mut Session, listener: &Listener| {
            let found = guarded(|| work(session, listener));
            let _ = sender.send((found, listener.take()));
        };
        self.jobs.send(Box::new(job)).map_err(|_| ended())?;
        wait(py, answer, &self.watch, progress)
    }
}

/// Does the work. A panic becomes a problem: a defect of this library that the capture revealed.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Problem::defect("a thread panicked")))
}

/// Waits for an answer. Ctrl-C ends the work; this function still waits for its end.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    mut answer: Receiver<T>,
    watch: &Watch,
    progress: Option<&Py<PyAny>>,
) -> PyResult<T> {
    let mut reported = None;
    let mut failed: Option<PyErr> = None;
    loop {
        let received;
        (received, answer) = py.detach(move || (answer.recv_timeout(LOOK), answer));
        match (received, failed.take()) {
            (Ok(_) | Err(RecvTimeoutError::Disconnected), Some(error)) => return Err(error),
            (Ok(found), None) => return Ok(found),
            (Err(RecvTimeoutError::Disconnected), None) => return Err(ended()),
            (Err(RecvTimeoutError::Timeout), Some(error)) => failed = Some(error),
            (Err(RecvTimeoutError::Timeout), None) => {
                let now = (watch.done.load(Ordering::Relaxed), watch.all.load(Ordering::Relaxed));
                let asked = py.check_signals().and_then(|()| match progress {
                    Some(progress) if reported != Some(now) => progress.call1(py, now).map(drop),
                    _ => Ok(()),
                });
                reported = Some(now);
                failed = asked.err();
                if failed.is_some() {
                    watch.stop.store(true, Ordering::Relaxed);
                }
            }
        }
    }
}

fn ended() -> PyErr {
    Problem::defect("its thread ended").into()
}
