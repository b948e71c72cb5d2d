//! A row for each exception and function.

use tracewalk::ids::Exception;
use tracewalk_analysis::call_stack::FunctionId;
use tracewalk_analysis::interrupts::Lengths;
use tracewalk_analysis::table::{Cell, Column, Kind, Table, Tabular};

use super::{InterruptReport, rows};
use crate::export::profile::program;

const MEASURES: [&str; 3] = ["with_preemption", "without_preemption", "inter_arrival"];

impl Tabular for InterruptReport {
    fn tables(&self) -> Vec<Table> {
        vec![self.table()]
    }
}

impl InterruptReport {
    /// The table of all sources.
    #[must_use]
    pub fn table(&self) -> Table {
        let unit = self.scale.unit.name();
        let mut table = Table::of_sources("interrupts", 1, columns(unit));
        for (section, activities) in &self.sources {
            let program = program(section, &self.programs);
            for row in rows(&section.code, activities) {
                let kind = if row.function.is_some() { "function" } else { "exception" };
                let activity = row.activity;
                let mut cells = Vec::from(section.cells());
                cells.extend([
                    kind.into(),
                    row.exception.map(Exception::number).into(),
                    row.function.and_then(FunctionId::address).into(),
                    row.name.into(),
                    unit.into(),
                    activity.count.into(),
                    activity.tail_chained.into(),
                    activity.preempting.into(),
                    activity.cut.into(),
                ]);
                for lengths in
                    [&activity.with_preemption, &activity.without_preemption, &activity.inter_arrival]
                {
                    cells.extend(measured(lengths));
                }
                cells.push(program.clone());
                table.push(cells);
            }
        }
        table
    }
}

fn columns(unit: &'static str) -> Vec<Column> {
    let counts = ["count", "tail_chained", "preempting", "cut"].map(|name| Column::new(name, Kind::Integer));
    let mut columns = vec![
        Column::new("kind", Kind::Text),
        Column::new("exception", Kind::Integer),
        Column::new("address", Kind::Address),
        Column::new("name", Kind::Text),
        Column::new("unit", Kind::Text),
    ];
    columns.extend(counts);
    for measure in MEASURES {
        let time = |what: &str| Column::new(format!("{measure}_{what}"), Kind::Time).of(unit);
        columns.extend([
            Column::new(format!("{measure}_count"), Kind::Integer),
            time("min"),
            Column::new(format!("{measure}_mean"), Kind::Number).of(unit),
            time("p99"),
            time("max"),
        ]);
    }
    columns.push(Column::new("program", Kind::Text));
    columns
}

fn measured(lengths: &Lengths) -> [Cell; 5] {
    [
        lengths.count().into(),
        lengths.min().into(),
        lengths.mean().into(),
        lengths.percentile(99).into(),
        lengths.max().into(),
    ]
}
