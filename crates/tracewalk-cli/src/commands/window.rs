//! Watching what a window holds: one that holds nothing is most often a mistake.

use std::io;

use tracewalk::span::CaptureOffset;
use tracewalk_analysis::analysis::{Analysis, End, Growth, NoPart};
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::record::{FlowRecord, ItmRecord};
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Doubting, InDoubt, Phase, Position, Section, Window, Windowed};
use tracewalk_session::{Bound, Follow, NoticeKind, Observer as _, Outcome, Session, Source};

use super::{follow, no_measure};
use crate::failure::Failure;
use crate::messages::Messages;

/// A part of a trace, and the axis that the user asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct View {
    pub(super) window: Window,
    /// What is counted on the axis, if that was stated.
    pub(super) stated: Option<Unit>,
}

/// Runs an analysis of a part of a source, and says if that part is not in it. Refuses an axis if what is counted on it is not in the
/// trace: of a capture that is still arriving nobody knows it sooner.
pub(super) fn run<A: Analysis>(
    session: &mut Session,
    source: &Source,
    (how, view): (&Follow, View),
    mut analysis: A,
    messages: &Messages,
) -> Result<Outcome<A::Found>, Failure> {
    if view.stated.is_none() && view.window == Window::default() {
        return follow::run(session, source, how, analysis, messages);
    }
    let shows_itm = analysis.sink().shows_itm();
    let watched = Watched { analysis, shows_itm, windowed: view.window.begin(), holds_something: false };
    let outcome = follow::run(session, source, how, watched, messages)?;
    let Seen { found, windowed, holds_something } = outcome.found;
    let lacks = |unit: &Unit| {
        let counted = match unit {
            Unit::Instructions => return false,
            Unit::Cycles => Position::Cycles(0),
            Unit::Time => Position::Time(0),
        };
        outcome.statistics.instructions > 0 && windowed.reached(counted).is_none()
    };
    if let Some(unit) = view.stated.filter(lacks) {
        return Err(no_measure(unit, "--axis"));
    }
    say(source, view.window, &windowed, holds_something, messages);
    let Outcome { statistics, losses, code, itms, notices, ended_at, complete, .. } = outcome;
    Ok(Outcome { found, statistics, losses, code, itms, notices, ended_at, complete })
}

/// Says if the window is not in the source that was followed.
fn say(source: &Source, window: Window, windowed: &Windowed, holds_something: bool, messages: &Messages) {
    let (source, Window { from, to }) = (source.id, window);
    for (bound, position) in [(Bound::From, from), (Bound::To, to)] {
        let Some(position) = position else { continue };
        if windowed.reached(position).is_none() && is_counted(position) {
            messages.notice(NoticeKind::WindowNotCounted { source, bound, position }.into());
            return;
        }
    }
    let end = from.and_then(|from| windowed.reached(from));
    if let (false, Some(end)) = (holds_something, end) {
        messages.notice(NoticeKind::WindowEmpty { source, from, to, end }.into());
    }
}

/// Hands on a source's records to an analysis, and sees which of them are in the window.
struct Watched<A> {
    analysis: A,
    shows_itm: bool,
    windowed: Windowed,
    holds_something: bool,
}

/// What an analysis found, and what was seen of the window.
struct Seen<T> {
    found: T,
    windowed: Windowed,
    holds_something: bool,
}

/// Whether a position is counted by something that not every trace has.
const fn is_counted(position: Position) -> bool {
    matches!(position, Position::Cycles(_) | Position::Time(_))
}

impl<A: Analysis> Sink<FlowRecord> for Watched<A> {
    fn begin(&mut self) -> io::Result<()> {
        self.analysis.sink().begin()
    }

    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.analysis.sink().section(section)
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        self.holds_something |= self.windowed.element(&record.element, record.at) == Phase::Inside;
        self.analysis.sink().record(record)
    }

    fn shows_itm(&self) -> bool {
        self.shows_itm
    }

    fn itm(&mut self, record: &ItmRecord) -> io::Result<()> {
        self.analysis.sink().itm(record)
    }

    fn go_on(&mut self, doubting: Doubting) {
        self.analysis.sink().go_on(doubting);
    }

    fn left_out(&mut self, instructions: u64) {
        self.analysis.sink().left_out(instructions);
    }

    fn cut(&mut self, at: CaptureOffset) -> io::Result<()> {
        self.analysis.sink().cut(at)
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.analysis.sink().end_section()
    }
}

impl<A: Analysis> Analysis for Watched<A> {
    type Part = NoPart;
    type Found = Seen<A::Found>;

    fn sink(&mut self) -> &mut dyn Sink<FlowRecord> {
        self
    }

    fn part(&self) -> Option<(NoPart, Growth)> {
        None
    }

    fn join(&mut self, part: NoPart) -> io::Result<()> {
        match part {}
    }

    fn weighs_doubt(&self) -> bool {
        self.analysis.weighs_doubt()
    }

    fn finish(self, end: &End) -> Seen<A::Found> {
        let Self { analysis, windowed, holds_something, .. } = self;
        Seen { found: analysis.finish(end), windowed, holds_something }
    }

    fn in_doubt(found: &Seen<A::Found>) -> Option<InDoubt> {
        A::in_doubt(&found.found)
    }
}
