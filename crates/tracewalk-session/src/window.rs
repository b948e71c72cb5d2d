//! An analysis of a part of a trace. Watches what the part holds: an empty part is usually a mistake.

mod unreached;

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, PoisonError};

use tracewalk::flow::{Element, EventKind};
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::analysis::{Analysis, End, FlowSink, Repeated};
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::place::{ExceptionName, Happening};
use tracewalk_analysis::record::{FlowRecord, ItmRecord};
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Doubt, Happened, InDoubt, Phase, Place, Position, Section, Window, Windowed};

use crate::error::{OpenError, RunError};
use crate::model::Source;
use crate::notice::{Bound, NoticeKind};
use crate::observer::Observer;
use crate::outcome::{Follow, Outcome};
use crate::session::Session;
use crate::tasks::Stating;

pub use unreached::WindowError;
use unreached::{is_exception, never, no_exception, unknown};

/// A part of the traces of one or more sources, and the unit that the caller asked for.
///
/// ```
/// use tracewalk_analysis::profile::Profiling;
/// use tracewalk_analysis::{Position, Window};
/// use tracewalk_session::{Follow, Notices, Request, Session, View};
///
/// let (mut session, _) = Session::open(Request::new("../../testdata/examples/a7-etmv3/capture.toml"))?;
/// let (how, notices) = (Follow::default(), Notices::default());
/// let window = Window { from: Some(Position::Instructions(100).into()), to: Some(Position::Instructions(300).into()) };
/// let view = View::new(window.clone(), None);
/// view.check(&mut session, &how, &notices)?;
/// let source = session.sources()[0].clone();
/// let outcome = view.run(&mut session, &source, &how, Profiling::new(window), &notices)?;
/// // A block that contains an end of the window belongs to the part before it.
/// assert_eq!(outcome.found.total().instructions, 201);
/// view.finish()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct View {
    window: Window,
    /// The unit of the axis, if it was stated.
    stated: Option<Unit>,
    seen: Mutex<Sought>,
}

/// The happenings at the window's ends, in all sources.
#[derive(Debug, Default)]
struct Sought {
    ends: [Option<Happened>; 2],
    exceptions: BTreeSet<String>,
}

impl View {
    /// A window, and the unit of the axis, if it is stated.
    #[must_use]
    pub fn new(window: Window, stated: Option<Unit>) -> Self {
        Self { window, stated, seen: Mutex::default() }
    }

    /// The part between two places, if they are stated.
    ///
    /// # Errors
    ///
    /// If nothing can be between them.
    pub fn between(from: Option<Place>, to: Option<Place>, stated: Option<Unit>) -> Result<Self, RunError> {
        let positions = (from.as_ref().and_then(Place::position), to.as_ref().and_then(Place::position));
        match positions {
            (Some(start), Some(end)) if start.is_before(end) == Some(false) => {
                Err(WindowError::EmptyWindow { from: Some(start), to: end }.into())
            }
            (_, Some(end)) if end.is_beginning() => {
                Err(WindowError::EmptyWindow { from: None, to: end }.into())
            }
            _ => Ok(Self::new(Window { from, to }, stated)),
        }
    }

    /// The window.
    #[must_use]
    pub const fn window(&self) -> &Window {
        &self.window
    }

    /// Refuses a window if no source's program has its ends.
    ///
    /// # Errors
    ///
    /// If a place is in no program, or an image cannot be used.
    pub fn check(
        &self,
        session: &mut Session,
        how: &Follow,
        observer: &dyn Observer,
    ) -> Result<(), RunError> {
        for place in self.window.places() {
            let Place::Happening { what, .. } = place else { continue };
            if let Happening::Exception(name) = what {
                refuse_exception(name, what, session)?;
            }
            if !place.needs_names() {
                continue;
            }
            let mut problem = None;
            for source in session.sources().to_vec() {
                let code = session.code(&source, how.names.as_deref(), observer)?;
                match what.find(&code) {
                    Ok(_) => {
                        problem = None;
                        break;
                    }
                    Err(found) => problem = problem.or(Some((found, code))),
                }
            }
            if let Some((problem, code)) = problem {
                return Err(unknown(what, &problem, &code).into());
            }
        }
        Ok(())
    }

    /// Refuses a window of an ITM without instruction trace, and any other axis than that of its timestamps.
    ///
    /// # Errors
    ///
    /// If a part of the trace, or another unit, is asked for.
    pub fn check_itm(&self, session: &Session) -> Result<(), RunError> {
        if self.window != Window::default() {
            return Err(OpenError::OnlyItm(session.request().capture.clone()).into());
        }
        let other = self.stated.filter(|unit| *unit != Unit::Time);
        other.map_or(Ok(()), |unit| Err(WindowError::NotMeasured(unit).into()))
    }

    /// Refuses a window whose ends never happened in any followed source.
    ///
    /// # Errors
    ///
    /// The end that never happened.
    pub fn finish(&self) -> Result<(), RunError> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = seen.ends.iter().flatten().find(|happened| !happened.is_reached);
        missing.map_or(Ok(()), |missing| Err(never(missing, &seen.exceptions).into()))
    }

    /// Runs an analysis of the part of a source, and reports if the source lacks the part. Refuses an axis if the trace lacks its
    /// unit, which is not known sooner for a capture that is still arriving.
    ///
    /// # Errors
    ///
    /// As [`Session::run_observed`], and if the trace lacks the unit.
    pub fn run<A: Analysis>(
        &self,
        session: &mut Session,
        source: &Source,
        how: &Follow,
        analysis: A,
        observer: &dyn Observer,
    ) -> Result<Outcome<A::Found>, RunError> {
        let analysis = Stating { analysis, turns: session.turns(source, how)? };
        if self.stated.is_none() && self.window == Window::default() {
            return session.run_observed(source, how, analysis, observer);
        }
        let windowed = self.window.begin(&tracewalk_analysis::Code::unknown().into());
        let window = self.window.clone();
        let exceptions = BTreeSet::new();
        let watched =
            Watched { analysis, window, windowed, holds_something: false, exceptions, section: None };
        let outcome = session.run_observed(source, how, watched, observer)?;
        let instructions = outcome.statistics.instructions;
        let mut windowed = None;
        let outcome = outcome.map(|seen, _| {
            windowed = Some((seen.windowed, seen.holds_something, seen.exceptions));
            seen.found
        });
        let Some((windowed, holds_something, exceptions)) = windowed else { return Ok(outcome) };
        let lacks = |unit: &Unit| {
            let counted = match unit {
                Unit::Instructions | Unit::Samples => return false,
                Unit::Cycles => Position::Cycles(0),
                Unit::Time => Position::Time(0),
            };
            instructions > 0 && windowed.reached(counted).is_none()
        };
        if let Some(unit) = self.stated.filter(lacks) {
            return Err(WindowError::NotMeasured(unit).into());
        }
        say(source, &self.window, &windowed, holds_something, observer);
        self.add(&windowed, exceptions);
        Ok(outcome)
    }

    /// Adds the happenings in a source.
    fn add(&self, windowed: &Windowed, exceptions: BTreeSet<String>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for (known, found) in seen.ends.iter_mut().zip(windowed.happened()) {
            let Some(found) = found else { continue };
            let known = known.get_or_insert_with(|| found.clone());
            known.times = known.times.max(found.times);
            known.is_reached |= found.is_reached;
        }
        seen.exceptions.extend(exceptions);
    }
}

/// Refuses an exception that no source's trace can report.
fn refuse_exception(name: &ExceptionName, what: &Happening, session: &Session) -> Result<(), RunError> {
    // Further sources may arrive, with other exceptions.
    if session.is_live() || session.sources().is_empty() {
        return Ok(());
    }
    let all = session.sources().iter().flat_map(Source::exceptions).collect::<Vec<_>>();
    if all.iter().any(|exception| name.is(Some(*exception), session.interrupts())) {
        return Ok(());
    }
    let protocols = session.sources().iter().map(|source| source.config.protocol()).collect::<BTreeSet<_>>();
    Err(no_exception(what, &protocols, &all).into())
}

/// Reports if the source lacks the window.
fn say(
    source: &Source,
    window: &Window,
    windowed: &Windowed,
    holds_something: bool,
    observer: &dyn Observer,
) {
    let (source, Window { from, to }) = (source.id, window);
    let position = |place: &Option<Place>| place.as_ref().and_then(Place::position);
    for (bound, place) in [(Bound::From, from), (Bound::To, to)] {
        let Some(position) = position(place) else { continue };
        if windowed.reached(position).is_none() && is_counted(position) {
            observer.notice(NoticeKind::WindowNotCounted { source, bound, position }.into());
            return;
        }
    }
    let end = position(from).and_then(|from| windowed.reached(from));
    if let (false, Some(end)) = (holds_something, end) {
        observer.notice(NoticeKind::WindowEmpty { source, window: window.clone(), end }.into());
    }
}

/// Hands on a source's records to an analysis, and watches which of them are in the window.
struct Watched<A> {
    analysis: A,
    window: Window,
    windowed: Windowed,
    holds_something: bool,
    /// The exceptions that were taken, if the window waits for one.
    exceptions: BTreeSet<String>,
    section: Option<Section>,
}

/// An analysis' answer, and the happenings of the window.
struct Seen<T> {
    found: T,
    windowed: Windowed,
    holds_something: bool,
    exceptions: BTreeSet<String>,
}

/// Whether a position has a unit that not every trace has.
const fn is_counted(position: Position) -> bool {
    matches!(position, Position::Cycles(_) | Position::Time(_))
}

impl<A: Analysis> Watched<A> {
    fn whole(&mut self, record: FlowRecord) -> io::Result<()> {
        self.holds_something |= self.windowed.element(&record.element, record.at) == Phase::Inside;
        self.see(&record.element);
        self.analysis.record(record)
    }

    /// Notes exceptions.
    fn see(&mut self, element: &Element) {
        if let (Some(section), Element::Event(event)) = (&self.section, element)
            && let EventKind::Exception { exception: Some(exception), .. } = event.kind
        {
            let name = section.code.interrupts.name_or_number(exception);
            if !self.exceptions.contains(&*name) {
                self.exceptions.insert(name.into_owned());
            }
        }
    }
}

impl<A: Analysis> Sink<FlowRecord> for Watched<A> {
    fn begin(&mut self) -> io::Result<()> {
        self.analysis.begin()
    }

    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.windowed = self.window.begin(&section.code);
        self.section = self.window.places().any(is_exception).then(|| section.clone());
        self.analysis.section(section)
    }

    fn record(&mut self, mut record: FlowRecord) -> io::Result<()> {
        // Divides blocks, so that a happening begins a block of its own.
        while let Element::Block(block) = &record.element
            && let Some((head, tail)) = self.windowed.divide(block, false)
        {
            self.whole(FlowRecord { element: Element::Block(head), ..record })?;
            record.element = Element::Block(tail);
        }
        self.whole(record)
    }

    fn shows_itm(&self) -> bool {
        self.analysis.shows_itm()
    }

    fn itm(&mut self, record: &ItmRecord) -> io::Result<()> {
        self.analysis.itm(record)
    }

    fn go_on(&mut self, doubt: Doubt) {
        self.analysis.go_on(doubt);
    }

    fn left_out(&mut self, instructions: u64) {
        self.analysis.left_out(instructions);
    }

    fn cut(&mut self, at: CaptureOffset) -> io::Result<()> {
        self.analysis.cut(at)
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.analysis.end_section()
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        self.analysis.finish(complete)
    }
}

impl<A: Analysis> FlowSink for Watched<A> {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        let Some(phase) = self.windowed.ahead(repeated) else {
            return repeated.records().try_for_each(|record| self.record(record));
        };
        self.windowed.pass(repeated);
        self.holds_something |= phase == Phase::Inside;
        if self.section.is_some() {
            repeated.elements().for_each(|element| self.see(&element));
        }
        self.analysis.passage(repeated)
    }

    fn needs_places(&self) -> bool {
        self.analysis.needs_places() || self.window.needs_places()
    }

    fn weighs_doubt(&self) -> bool {
        self.analysis.weighs_doubt()
    }
}

impl<A: Analysis> Analysis for Watched<A> {
    type Found = Seen<A::Found>;

    fn answer(self, end: &End) -> Seen<A::Found> {
        let Self { analysis, windowed, holds_something, exceptions, .. } = self;
        Seen { found: analysis.answer(end), windowed, holds_something, exceptions }
    }

    fn in_doubt(found: &Seen<A::Found>) -> Option<InDoubt> {
        A::in_doubt(&found.found)
    }
}
