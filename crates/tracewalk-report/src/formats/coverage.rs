//! The formats of coverage.

use std::io;
use std::io::Write;

use tracewalk_analysis::coverage::Difference;
use tracewalk_analysis::coverage::ProgramInput;
use tracewalk_analysis::coverage::Report;
use tracewalk_analysis::coverage::Tracefile;
use tracewalk_analysis::symbols::SourceFile;
use tracewalk_analysis::table::Tabular as _;

use super::format::{Format, format};
use crate::Look;
use crate::export::TableParquet;
use crate::export::write_cobertura;
use crate::export::write_coverage_html;
use crate::export::write_coverage_json;
use crate::export::write_coverage_text;
use crate::export::write_lcov;
use crate::export::write_table_csv;
use crate::export::write_tables;

/// The input of coverage formats.
pub struct CoverageAnswer<'a> {
    /// The report.
    pub report: &'a Report,
    /// The programs.
    pub inputs: &'a [ProgramInput<'a>],
    /// The difference from another report, if one was given.
    pub difference: Option<&'a Difference>,
    /// Finds source files by their names in the debugging information.
    pub source: &'a dyn Fn(&str) -> Option<SourceFile>,
    /// The table that CSV writes: one of [`COVERAGE_TABLES`].
    pub table: &'a str,
    /// The look of text.
    pub look: Look,
    /// The date of the output, in seconds since 1970.
    pub time: u64,
}

/// The tables that coverage has as CSV. `difference` exists only with a base, the tables of runs only if runs were kept apart.
pub const COVERAGE_TABLES: [&str; 7] =
    ["lines", "files", "functions", "branches", "difference", "runs", "lines_by_run"];

/// Writes coverage.
pub type WriteCoverage = fn(&mut dyn Write, &CoverageAnswer<'_>) -> io::Result<()>;

/// The formats of coverage.
pub const COVERAGE: &[Format<WriteCoverage>] = &[
    format("text", "A table with a row for each file", |out, answer| {
        write_coverage_text(answer.report, answer.difference, answer.look, out)
    }),
    format("html", "An HTML page in one file", |out, answer| {
        write_coverage_html(answer.report, answer.inputs, answer.difference, answer.source, out)
    }),
    format("lcov", "An LCOV tracefile, which most tools read", |out, answer| {
        write_lcov(&Tracefile::of(answer.report, answer.source), answer.report.complete, out)
    }),
    format("cobertura", "Cobertura's XML, for GitLab, Jenkins and others", |out, answer| {
        write_cobertura(answer.report, &answer.paths(), answer.time, out)
    }),
    format("json", "All results as one JSON document", |out, answer| {
        write_coverage_json(answer.report, answer.difference, out)
    }),
    format("csv", "The table of --table, comma-separated", |out, answer| {
        let tables = answer.report.tables().into_iter().chain(answer.difference.map(Difference::table));
        tables.filter(|table| table.name == answer.table).try_for_each(|table| write_table_csv(out, &table))
    }),
    format("parquet", "The table of --table, for data frames and SQL", |out, answer| {
        let tables = answer.report.tables().into_iter().chain(answer.difference.map(Difference::table));
        let table = tables.filter(|table| table.name == answer.table).collect::<Vec<_>>();
        write_tables(&mut TableParquet::new(out), &table, answer.report.complete)
    }),
    format("none", "Count everything and print nothing", |_, _| Ok(())),
];

impl CoverageAnswer<'_> {
    /// The paths of the report's files: their places, or else their names in the debugging information.
    fn paths(&self) -> Vec<String> {
        let path = |name: &String| (self.source)(name).map_or_else(|| name.clone(), |found| found.path);
        self.report.files.iter().map(|file| path(&file.name)).collect()
    }
}
