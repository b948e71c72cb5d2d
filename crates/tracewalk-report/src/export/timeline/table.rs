//! Timelines as a table: a row for each span, when it ends, and for each mark.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use super::TimelineExport;
use super::names::{Names, kind};
use tracewalk_analysis::call_stack::FunctionId;
use tracewalk_analysis::table::{Cell, Column, Kind, Table, TakeRows};
use tracewalk_analysis::timeline::{Change, Item, Moment, Scale, Span, SpanId, What};
use tracewalk_analysis::{Code, Section};

/// Writes the table `timeline`.
#[derive(Debug)]
pub struct TimelineTable<R> {
    rows: R,
    /// The cells that name the source.
    source: [Cell; 3],
    names: Names,
    open: HashMap<SpanId, (Span, Moment)>,
    begun: bool,
}

impl<R: TakeRows> TimelineTable<R> {
    /// Hands rows to `rows`.
    pub fn new(rows: R) -> Self {
        let names = Names::new(Arc::new(Code::unknown()));
        Self { rows, source: [const { Cell::Unknown }; 3], names, open: HashMap::new(), begun: false }
    }

    fn begin(&mut self, unit: Option<&'static str>) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        let text = |name: &'static str| Column::new(name, Kind::Text);
        let time = |name: &'static str| Column { unit, ..Column::new(name, Kind::Time) };
        let columns = [
            text("track"),
            text("kind"),
            text("name"),
            Column::new("address", Kind::Address),
            time("start_time"),
            time("end_time"),
            text("start_certainty"),
            text("end_certainty"),
            text("start_note"),
            text("end_note"),
        ];
        self.rows.table(&Table::of_sources("timeline", 1, columns))
    }

    fn span(&mut self, (span, start): (Span, Moment), end: Moment, note: Option<&str>) -> io::Result<()> {
        let address = match span.what {
            What::Function { function, .. } => FunctionId::address(function),
            What::Exception(_) | What::Task(_) | What::Gap(_) => None,
        };
        let [id, protocol, source_number] = self.source.clone();
        self.rows.row(&[
            id,
            protocol,
            source_number,
            self.names.track(span.track).into(),
            kind(&span.what).into(),
            (&*self.names.span(&span.what)).into(),
            address.into(),
            start.ticks.into(),
            end.ticks.into(),
            certainty(start),
            certainty(end),
            span.start.note().into(),
            note.into(),
        ])
    }
}

impl<R: TakeRows> TimelineExport for TimelineTable<R> {
    fn section(&mut self, section: &Section, scale: &Scale) -> io::Result<()> {
        self.source = section.cells();
        self.names = Names::new(Arc::clone(&section.code));
        self.open.clear();
        self.begin(Some(scale.unit.name()))
    }

    fn item(&mut self, item: &Item) -> io::Result<()> {
        match &item.change {
            Change::Begin(span) => {
                self.open.insert(span.id, (*span, item.at));
                Ok(())
            }
            Change::End { id, finish, .. } => match self.open.remove(id) {
                Some(open) => self.span(open, item.at, finish.note()),
                None => Ok(()),
            },
            Change::Mark { track, mark } => {
                let (kind, name) = self.names.mark(mark);
                let [id, protocol, source_number] = self.source.clone();
                self.rows.row(&[
                    id,
                    protocol,
                    source_number,
                    self.names.track(*track).into(),
                    kind.into(),
                    name.into_owned().into(),
                    Cell::Unknown,
                    item.at.ticks.into(),
                    item.at.ticks.into(),
                    certainty(item.at),
                    certainty(item.at),
                    Cell::Unknown,
                    Cell::Unknown,
                ])
            }
        }
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        self.begin(None)?;
        self.rows.finish(complete)
    }
}

fn certainty(at: Moment) -> Cell {
    at.certainty.name().unwrap_or("exact").into()
}
