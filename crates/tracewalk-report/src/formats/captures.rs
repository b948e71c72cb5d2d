//! The formats of the outcomes of many captures.

use std::io;
use std::io::Write;

use tracewalk_analysis::captures::Captures;
use tracewalk_analysis::table::Tabular as _;

use super::format::{Format, format, one_parquet, one_table};
use crate::Look;
use crate::export::{write_captures_text, write_tables_json};

/// Writes the outcomes of many captures.
pub type WriteCaptures = fn(&mut dyn Write, &Captures, Look) -> io::Result<()>;

/// The formats of the outcomes of many captures.
pub const CAPTURES: &[Format<WriteCaptures>] = &[
    format("text", "The captures that count and those with a problem, for people", write_captures_text),
    format("csv", "A row for each capture, comma-separated", |out, captures, _| {
        one_table(out, &captures.tables(), Captures::TABLES[0], captures.complete)
    }),
    format("parquet", "A row for each capture, for data frames and SQL", |out, captures, _| {
        one_parquet(out, &captures.tables(), Captures::TABLES[0], captures.complete)
    }),
    format("json", "The table as a JSON document", |out, captures, _| {
        write_tables_json(out, &captures.tables(), captures.complete)
    }),
    format("none", "Nothing", |_, _, _| Ok(())),
];
