//! Differences as tables.

use tracewalk::ids::TraceId;
use tracewalk_analysis::coverage::FileDifference;
use tracewalk_analysis::table::{Cell, Column, Kind, Table, Tabular};

use super::{DiffReport, FunctionDiff, SourceDiff};

/// The tables of differences, in the order in which they are given.
pub const DIFF_TABLES: [&str; 3] = ["functions", "lines", "sources"];

impl Tabular for DiffReport {
    fn tables(&self) -> Vec<Table> {
        let [functions, lines, sources] = DIFF_TABLES;
        let mut tables = [
            Table::new(functions, 1, function_columns()),
            Table::new(lines, 1, line_columns()),
            Table::new(sources, 1, source_columns()),
        ];
        let [functions, lines, sources] = &mut tables;
        for source in &self.sources {
            let ids = source.ids.map(|id| Cell::from(id.map(TraceId::get).map(u64::from)));
            source.functions.iter().for_each(|function| functions.push(function_row(&ids, function)));
            line_rows(&ids, source, lines);
            sources.push(source_row(&ids, source));
        }
        tables.into()
    }
}

fn columns<const N: usize>(all: [(&'static str, Kind); N]) -> Vec<Column> {
    let ids = [("id_a", Kind::Integer), ("id_b", Kind::Integer)];
    ids.into_iter().chain(all).map(|(name, kind)| Column::new(name, kind)).collect()
}

fn function_columns() -> Vec<Column> {
    columns([
        ("function", Kind::Text),
        ("address", Kind::Address),
        ("calls_a", Kind::Integer),
        ("calls_b", Kind::Integer),
        ("self_instructions_a", Kind::Integer),
        ("self_instructions_b", Kind::Integer),
        ("self_cycles_a", Kind::Integer),
        ("self_cycles_b", Kind::Integer),
        ("self_ticks_a", Kind::Integer),
        ("self_ticks_b", Kind::Integer),
        ("total_instructions_a", Kind::Integer),
        ("total_instructions_b", Kind::Integer),
    ])
}

fn function_row(ids: &[Cell; 2], function: &FunctionDiff) -> Vec<Cell> {
    let FunctionDiff { name, address, calls, own, total } = function;
    let mut row = ids.to_vec();
    row.extend([name.as_str().into(), (*address).into()]);
    row.extend(calls.map(Cell::from));
    row.extend(own.map(|cost| cost.instructions.into()));
    // A cost is shown only if both captures measure it.
    for measured in [own.map(|cost| cost.cycles), own.map(|cost| cost.time)] {
        let is_known = measured != [0; 2];
        row.extend(measured.map(|value| if is_known { value.into() } else { Cell::Unknown }));
    }
    row.extend(total.map(|cost| cost.instructions.into()));
    row
}

fn line_columns() -> Vec<Column> {
    columns([("file", Kind::Text), ("line", Kind::Integer), ("function", Kind::Text), ("change", Kind::Text)])
}

/// A row for each line and each function that only one of the runs covers.
fn line_rows(ids: &[Cell; 2], source: &SourceDiff, table: &mut Table) {
    let Some((difference, gained)) = &source.coverage else { return };
    for (name, file) in &difference.files {
        let FileDifference { lost, gained: more, lost_functions, .. } = file;
        let mut push = |line: Cell, function: Cell, change: &str| {
            let cells = [name.as_str().into(), line, function, change.into()];
            table.push(ids.iter().cloned().chain(cells));
        };
        lost.iter().for_each(|line| push((*line).into(), Cell::Unknown, "lost"));
        more.iter().for_each(|line| push((*line).into(), Cell::Unknown, "gained"));
        lost_functions.iter().for_each(|name| push(Cell::Unknown, name.as_str().into(), "lost"));
        let gained = gained.get(name).into_iter().flatten();
        gained.for_each(|name| push(Cell::Unknown, name.as_str().into(), "gained"));
    }
}

fn source_columns() -> Vec<Column> {
    columns([
        ("same", Kind::Flag),
        ("instructions_a", Kind::Integer),
        ("instructions_b", Kind::Integer),
        ("common", Kind::Integer),
        ("last", Kind::Address),
    ])
}

fn source_row(ids: &[Cell; 2], source: &SourceDiff) -> Vec<Cell> {
    let parting = source.parting.as_ref().map(|[a, _]| a);
    let mut row = ids.to_vec();
    row.push(source.is_same().into());
    row.extend(source.instructions.map(Cell::from));
    row.push(parting.map(|side| side.common).into());
    row.push(parting.and_then(|side| side.last).map(|last| last.address).into());
    row
}
