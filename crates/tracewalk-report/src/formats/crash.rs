//! The formats of crashes.

use std::io;
use std::io::Write;

use tracewalk_analysis::table::Tabular as _;

use super::format::{Format, format, one_parquet, one_table};
use crate::Look;
use crate::export::CrashReport;
use crate::export::write_crash_json;
use crate::export::write_crash_markdown;
use crate::export::write_crash_text;

/// Writes how a program crashed: the whole report, or the table of this name.
pub type WriteCrash = fn(&mut dyn Write, &CrashReport, Look, &'static str) -> io::Result<()>;

/// The formats of crashes.
pub const CRASH: &[Format<WriteCrash>] = &[
    format("text", "One screen for people", |out, report, look, _| write_crash_text(out, report, look)),
    format("csv", "One table, comma-separated", |out, report, _, table| {
        one_table(out, &report.tables(), table, report.complete)
    }),
    format("parquet", "One table, for data frames and SQL", |out, report, _, table| {
        one_parquet(out, &report.tables(), table, report.complete)
    }),
    format("json", "All results as one JSON document", |out, report, look, _| {
        write_crash_json(out, report, look)
    }),
    format("markdown", "For a bug report", |out, report, look, _| write_crash_markdown(out, report, look)),
    format("none", "Examine everything and print nothing", |_, _, _, _| Ok(())),
];
