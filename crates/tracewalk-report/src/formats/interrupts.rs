//! The formats of interrupts.

use std::io;
use std::io::Write;

use super::format::{Format, format};
use crate::Look;
use crate::export::InterruptReport;
use crate::export::TableParquet;
use crate::export::write_interrupts_json;
use crate::export::write_interrupts_text;
use crate::export::write_table_csv;
use crate::export::write_tables;

/// Writes how long exceptions took.
pub type WriteInterrupts = fn(&mut dyn Write, &InterruptReport, Look) -> io::Result<()>;

/// The formats of interrupts.
pub const INTERRUPTS: &[Format<WriteInterrupts>] = &[
    format("text", "A table for people", write_interrupts_text),
    format("csv", "A line for each exception, comma-separated", |out, report, _| {
        write_table_csv(out, &report.table())
    }),
    format("parquet", "A row for each exception, for data frames and SQL", |out, report, _| {
        write_tables(&mut TableParquet::new(out), &[report.table()], report.complete)
    }),
    format("json", "All results as one JSON document", |out, report, _| write_interrupts_json(out, report)),
    format("none", "Measure everything and print nothing", |_, _, _| Ok(())),
];
