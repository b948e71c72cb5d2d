//! The formats of tasks.

use std::io;
use std::io::Write;

use tracewalk_analysis::table::Tabular as _;

use super::format::{Format, format, one_parquet, one_table};
use crate::Look;
use crate::export::{TaskReport, write_tasks_json, write_tasks_text};

/// Writes which tasks ran: the whole report, or the table of this name.
pub type WriteTasks = fn(&mut dyn Write, &TaskReport, Look, &'static str) -> io::Result<()>;

/// The formats of tasks.
pub const TASKS: &[Format<WriteTasks>] = &[
    format("text", "A table for people", |out, report, look, _| write_tasks_text(out, report, look)),
    format("csv", "One table, comma-separated", |out, report, _, table| {
        one_table(out, &report.tables(), table, report.complete)
    }),
    format("parquet", "One table, for data frames and SQL", |out, report, _, table| {
        one_parquet(out, &report.tables(), table, report.complete)
    }),
    format("json", "All results as one JSON document", |out, report, _, _| write_tasks_json(out, report)),
    format("none", "Follow everything and print nothing", |_, _, _, _| Ok(())),
];
