//! Watching what a window holds: one that holds nothing is most often a mistake.

use std::io;
use std::rc::Rc;

use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::record::{FlowRecord, ItmRecord};
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, Doubting, Phase, Position, Section, Statistics, Window, Windowed};

use super::follow::{self, Following};
use super::no_measure;
use crate::failure::Failure;

/// Follows a source as [`follow::source`] does, and says where a window that `exporter` shows is not in it.
pub(super) fn in_window(
    window: Window,
    following: Following<'_>,
    code: &Rc<Code>,
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
    code: &Rc<Code>,
    exporter: &mut dyn Sink<FlowRecord>,
) -> Result<Statistics, Failure> {
    let mut watched = Watched { exporter, window, windowed: window.begin(), holds_something: false };
    let statistics = follow::source(following, code, &mut watched)?;
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
            watched.tell(following);
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
    /// Says, of the source that was followed, where the window is not in it.
    fn tell(self, Following { job, messages, .. }: Following<'_>) {
        let Window { from, to } = self.window;
        for (option, position) in [("--from", from), ("--to", to)] {
            let Some(position) = position else { continue };
            if let (None, Some(missing)) = (self.windowed.reached(position), what_counts(position)) {
                messages.incomplete(format_args!(
                    "{}: {option} is {position}, and the trace has no {missing}; say it in instructions (2000) or in \
                     bytes of the capture (@0x7d0)",
                    job.name()
                ));
                return;
            }
        }
        let end = from.and_then(|from| self.windowed.reached(from));
        if let (false, Some(end)) = (self.holds_something, end) {
            messages.warning(format_args!(
                "{}: nothing of it is {}: it ends at {end}; check --from and --to",
                job.name(),
                self.window
            ));
        }
    }
}

/// What a position needs in the trace, if not every trace has it.
const fn what_counts(position: Position) -> Option<&'static str> {
    match position {
        Position::Cycles(_) => Some("cycle counts"),
        Position::Time(_) => Some("timestamps"),
        Position::Instructions(_) | Position::Capture(_) => None,
    }
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
