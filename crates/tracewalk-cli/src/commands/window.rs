//! Watching what a window holds: one that holds nothing is most often a mistake.
use std::sync::Arc;

use std::io;

use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::record::{FlowRecord, ItmRecord};
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, Doubting, Phase, Position, Section, Statistics, Window, Windowed};

use tracewalk_session::{Bound, NoticeKind, Observer as _};

use super::follow::Following;
use super::no_measure;
use crate::failure::Failure;

/// Follows a source as [`follow::source`] does, and says where a window that `exporter` shows is not in it.
pub(super) fn in_window(
    window: Window,
    following: Following<'_>,
    code: &Arc<Code>,
    exporter: &mut dyn Sink<FlowRecord>,
) -> Result<Statistics, Failure> {
    on_axis(None, window, following, code, exporter)
}

/// As [`in_window`], on an axis that the user asked for: refuses it where what is counted on it is not in the trace. Of a
/// capture that is still coming nobody knows it sooner.
pub(super) fn on_axis(
    stated: Option<Unit>,
    window: Window,
    following: Following<'_>,
    code: &Arc<Code>,
    exporter: &mut dyn Sink<FlowRecord>,
) -> Result<Statistics, Failure> {
    let mut watched = Watched { exporter, window, windowed: window.begin(), holds_something: false };
    let statistics = following.in_order(code, &mut watched)?;
    let lacks = |unit: &Unit| {
        let counted = match unit {
            Unit::Instructions => return false,
            Unit::Cycles => Position::Cycles(0),
            Unit::Time => Position::Time(0),
        };
        statistics.instructions > 0 && watched.windowed.reached(counted).is_none()
    };
    match stated.filter(lacks) {
        Some(unit) => Err(no_measure(unit, "--axis")),
        None => {
            watched.say(following);
            Ok(statistics)
        }
    }
}

/// Hands on a source's records, and sees which of them are in the window.
struct Watched<'a> {
    exporter: &'a mut dyn Sink<FlowRecord>,
    window: Window,
    windowed: Windowed,
    holds_something: bool,
}

impl Watched<'_> {
    /// Says if the window is not in the source that was followed.
    fn say(self, Following { source, messages, .. }: Following<'_>) {
        let (source, Window { from, to }) = (source.id, self.window);
        for (bound, position) in [(Bound::From, from), (Bound::To, to)] {
            let Some(position) = position else { continue };
            if self.windowed.reached(position).is_none() && is_counted(position) {
                messages.notice(NoticeKind::WindowNotCounted { source, bound, position }.into());
                return;
            }
        }
        let end = from.and_then(|from| self.windowed.reached(from));
        if let (false, Some(end)) = (self.holds_something, end) {
            messages.notice(NoticeKind::WindowEmpty { source, from, to, end }.into());
        }
    }
}

/// Whether a position is counted by something that not every trace has.
const fn is_counted(position: Position) -> bool {
    matches!(position, Position::Cycles(_) | Position::Time(_))
}

impl Sink<FlowRecord> for Watched<'_> {
    fn begin(&mut self) -> io::Result<()> {
        self.exporter.begin()
    }

    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.exporter.section(section)
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        self.holds_something |= self.windowed.element(&record.element, record.at) == Phase::Inside;
        self.exporter.record(record)
    }

    fn shows_itm(&self) -> bool {
        self.exporter.shows_itm()
    }

    fn itm(&mut self, record: &ItmRecord) -> io::Result<()> {
        self.exporter.itm(record)
    }

    fn go_on(&mut self, doubting: Doubting) {
        self.exporter.go_on(doubting);
    }

    fn left_out(&mut self, instructions: u64) {
        self.exporter.left_out(instructions);
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.exporter.end_section()
    }
}
