//! Many captures → the answer of each, on several threads.
//!
//! ```text
//! thread:  next capture ── Session ──▶ its answer, or the reason for none ─┐
//! thread:  next capture ── Session ──▶ …                                  ├─▶ take, one after the other
//! ```
//!
//! Sessions share programs and learned effects ([`Shared`]), so that short captures cost little more than their bytes.

use std::cell::RefCell;
use std::iter;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use tracewalk_analysis::drive::Progress;

use crate::additive::{Additive, Answered};
use crate::error::{OpenError, RunError};
use crate::notice::Notice;
use crate::observer::{Late, Observer};
use crate::outcome::Follow;
use crate::request::Request;
use crate::session::Session;
use crate::shared::Shared;

/// Asks many captures for the same answer.
#[derive(Clone, Debug)]
pub struct Gathering {
    /// The settings of all captures; its `capture` is ignored.
    pub request: Request,
    /// How sources are followed. The threads are shared by the captures.
    pub how: Follow,
    /// The cache that the sessions share.
    pub shared: Shared,
    /// Set this flag to end the work: current captures end early, and no other begins.
    pub stop: Arc<AtomicBool>,
}

/// The result for one capture.
#[derive(Debug)]
pub struct OfCapture<T> {
    /// The capture's index, from 0.
    pub index: usize,
    /// The capture.
    pub capture: PathBuf,
    /// The answer, or the reason why the capture gave none.
    pub found: Result<T, GatherError>,
    /// The notices.
    pub notices: Vec<Notice>,
}

/// Why a capture gave no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum GatherError {
    /// The capture cannot be opened.
    Open(OpenError),
    /// Work on the capture ended.
    Run(RunError),
    /// The capture revealed a defect of this library.
    Panicked,
}

impl GatherError {
    /// A stable short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Open(error) => error.name(),
            Self::Run(error) => error.name(),
            Self::Panicked => "defect",
        }
    }
}

impl Gathering {
    /// Asks each capture the question, and gives each answer to `take`: see [`Gathering::each`].
    ///
    /// # Errors
    ///
    /// As [`Gathering::each`].
    pub fn run<Q: Additive, E: From<std::io::Error>>(
        &self,
        question: &Q,
        captures: &[PathBuf],
        take: impl FnMut(OfCapture<Answered<Q::Answer>>) -> Result<(), E>,
    ) -> Result<(), E> {
        let ask = |session: &mut Session, how: &Follow, name: &str, observer: &dyn Observer| {
            session.answer(question, how, name, observer)
        };
        self.each(captures, ask, take)
    }

    /// Opens several captures at a time, and gives what `ask` finds in each to `take` when it is ready, not always in the order of
    /// `captures`. `ask` gets an open session, how sources are followed, and the capture's name. The first error of `take` ends the
    /// work.
    ///
    /// # Errors
    ///
    /// The error of `take`.
    pub fn each<T: Send, E>(
        &self,
        captures: &[PathBuf],
        ask: impl Fn(&mut Session, &Follow, &str, &dyn Observer) -> Result<T, RunError> + Sync,
        mut take: impl FnMut(OfCapture<T>) -> Result<(), E>,
    ) -> Result<(), E> {
        let all = usize::from(self.how.threads).max(1);
        let at_once = all.min(captures.len());
        let Some(each) = NonZeroUsize::new(at_once).map(|at_once| all / at_once) else { return Ok(()) };
        let how = Follow { threads: u16::try_from(each).unwrap_or(1), ..self.how.clone() };
        let (next, stop) = (AtomicUsize::new(0), &*self.stop);
        let find_next = || {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let index = next.fetch_add(1, Ordering::Relaxed);
            let capture = captures.get(index)?;
            Some(self.capture(index, capture.clone(), &how, &ask))
        };
        thread::scope(|scope| {
            let find_next = &find_next;
            // The queue is bounded: the consumer may be slower than all producers.
            let (sender, receiver) = sync_channel(at_once);
            let begins = |_: &usize| {
                let sender = sender.clone();
                let work = move || while find_next().is_some_and(|found| sender.send(found).is_ok()) {};
                thread::Builder::new().name("tracewalk".to_owned()).spawn_scoped(scope, work).is_ok()
            };
            // The system may refuse threads: this one can do all the work.
            let _ = (0..at_once).take_while(begins).count();
            drop(sender);
            let taken = receiver.iter().chain(iter::from_fn(find_next)).try_for_each(&mut take);
            if taken.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            // Unblocks producers that are waiting to send: the consumer has gone.
            drop(receiver);
            taken
        })
    }

    fn capture<T>(
        &self,
        index: usize,
        capture: PathBuf,
        how: &Follow,
        ask: &impl Fn(&mut Session, &Follow, &str, &dyn Observer) -> Result<T, RunError>,
    ) -> OfCapture<T> {
        let request =
            Request { capture: capture.clone(), shared: Some(self.shared.clone()), ..self.request.clone() };
        let listener = Listener { notices: RefCell::default(), late: Late::default(), stop: &self.stop };
        let found = catch_unwind(AssertUnwindSafe(|| find(request, how, ask, &listener)));
        let Listener { notices, late, .. } = listener;
        let mut notices = notices.into_inner();
        notices.extend(late.take());
        OfCapture { index, capture, found: found.unwrap_or(Err(GatherError::Panicked)), notices }
    }
}

/// Opens a capture, and asks.
fn find<T>(
    request: Request,
    how: &Follow,
    ask: &impl Fn(&mut Session, &Follow, &str, &dyn Observer) -> Result<T, RunError>,
    observer: &dyn Observer,
) -> Result<T, GatherError> {
    let name = request.capture.display().to_string();
    let mut session = Session::open_observed(request, observer)?;
    Ok(ask(&mut session, how, &name, observer)?)
}

/// Keeps the notices of one capture.
struct Listener<'a> {
    notices: RefCell<Vec<Notice>>,
    late: Late,
    stop: &'a AtomicBool,
}

impl Observer for Listener<'_> {
    fn notice(&self, notice: Notice) {
        self.notices.borrow_mut().push(notice);
    }

    fn work(&self, _: u64) -> Box<dyn Progress + '_> {
        Box::new(Stopped(self.stop))
    }

    fn late(&self) -> Late {
        self.late.clone()
    }
}

/// Ends work whose consumer has gone.
#[derive(Debug)]
struct Stopped<'a>(&'a AtomicBool);

impl Progress for Stopped<'_> {
    fn done(&self, _: u64) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}
