//! A report of coverage as tables.

use super::model::Report;
use crate::table::{Cell, Column, Kind, Table, Tabular};

impl Tabular for Report {
    fn tables(&self) -> Vec<Table> {
        let mut tables =
            vec![self.file_table(), self.function_table(), self.line_table(), self.branch_table()];
        if !self.runs.is_empty() {
            tables.extend([self.run_table(), self.lines_by_run_table()]);
        }
        tables
    }
}

impl Report {
    fn file_table(&self) -> Table {
        let counts = ["lines", "branches", "functions", "instructions"];
        let tallies = counts.into_iter().flat_map(|name| {
            [name.to_owned(), format!("{name}_covered"), format!("{name}_unrecorded")].map(integer)
        });
        let mut table = Table::new("files", 1, [text("file")].into_iter().chain(tallies));
        for file in &self.files {
            let totals = &file.totals;
            let tallies = [totals.lines, totals.branches, totals.functions, totals.instructions];
            let cells = tallies.into_iter().flat_map(|tally| [tally.found, tally.covered, tally.unrecorded]);
            table.push([file.name.as_str().into()].into_iter().chain(cells.map(Cell::Integer)));
        }
        table
    }

    fn function_table(&self) -> Table {
        let columns = [
            text("function"),
            Column::new("address", Kind::Address),
            text("file"),
            integer("line"),
            integer("entered"),
            integer("instructions"),
            integer("instructions_covered"),
        ];
        let mut table = Table::new("functions", 1, columns);
        for function in &self.functions {
            let file = function.file.and_then(|file| self.files.get(file));
            table.push([
                function.name.as_deref().into(),
                function.start.into(),
                file.map(|file| file.name.as_str()).into(),
                function.line.into(),
                function.entered.into(),
                function.totals.instructions.found.into(),
                function.totals.instructions.covered.into(),
            ]);
        }
        table
    }

    fn line_table(&self) -> Table {
        let mut table =
            Table::new("lines", 1, [text("file"), integer("line"), integer("count"), text("state")]);
        for file in &self.files {
            for line in &file.lines {
                let cells = [line.number.into(), line.count.into(), line.state.name().into()];
                table.push([file.name.as_str().into()].into_iter().chain(cells));
            }
        }
        table
    }

    fn run_table(&self) -> Table {
        let mut table = Table::new("runs", 1, [text("run"), integer("lines"), integer("lines_alone")]);
        for run in &self.runs {
            table.push([run.name.as_str().into(), run.lines.into(), run.alone.into()]);
        }
        table
    }

    /// A row for each line and each run in which it ran.
    fn lines_by_run_table(&self) -> Table {
        let mut table = Table::new("lines_by_run", 1, [text("file"), integer("line"), text("run")]);
        for (file, line) in self.files.iter().flat_map(|file| file.lines.iter().map(move |line| (file, line)))
        {
            for run in line.runs.iter().filter_map(|run| self.runs.get(run)) {
                table.push([file.name.as_str().into(), line.number.into(), run.name.as_str().into()]);
            }
        }
        table
    }

    fn branch_table(&self) -> Table {
        let columns = [
            text("file"),
            integer("line"),
            Column::new("address", Kind::Address),
            integer("times_taken"),
            integer("times_not_taken"),
        ];
        let mut table = Table::new("branches", 1, columns);
        for file in &self.files {
            for line in &file.lines {
                for (counted, branch) in self.branches(line) {
                    table.push([
                        file.name.as_str().into(),
                        line.number.into(),
                        counted.instruction.at.address.into(),
                        branch.taken.seen().into(),
                        branch.not_taken.seen().into(),
                    ]);
                }
            }
        }
        table
    }
}

fn text(name: &'static str) -> Column {
    Column::new(name, Kind::Text)
}

fn integer(name: impl Into<std::borrow::Cow<'static, str>>) -> Column {
    Column::new(name, Kind::Integer)
}
