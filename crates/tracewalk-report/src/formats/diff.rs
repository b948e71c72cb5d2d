//! The formats of differences.

use std::io;
use std::io::Write;

use tracewalk_analysis::table::Tabular as _;

use super::format::{Format, format, one_parquet, one_table};
use crate::Look;
use crate::export::DiffReport;
use crate::export::write_diff_json;
use crate::export::write_diff_text;

/// Writes how two captures differ: the whole report, or the table of this name.
pub type WriteDiff = fn(&mut dyn Write, &DiffReport, Look, &'static str) -> io::Result<()>;

/// The formats of differences.
pub const DIFF: &[Format<WriteDiff>] = &[
    format("text", "For people", |out, report, look, _| write_diff_text(out, report, look)),
    format("csv", "One table, comma-separated", |out, report, _, table| {
        one_table(out, &report.tables(), table, report.complete)
    }),
    format("parquet", "One table, for data frames and SQL", |out, report, _, table| {
        one_parquet(out, &report.tables(), table, report.complete)
    }),
    format("json", "One JSON document", |out, report, _, _| write_diff_json(out, report)),
    format("none", "Compare everything and print nothing", |_, _, _, _| Ok(())),
];
