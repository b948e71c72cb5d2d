//! The formats of profiles.

use std::io;
use std::io::Write;

use tracewalk_analysis::table::Tabular as _;

use super::format::{Format, format};
use crate::export::ProfileReport;
use crate::export::ProfileTextOptions;
use crate::export::TableParquet;
use crate::export::write_callgrind;
use crate::export::write_firefox;
use crate::export::write_flamegraph;
use crate::export::write_folded;
use crate::export::write_pprof;
use crate::export::write_profile_text;
use crate::export::write_speedscope;
use crate::export::write_table_csv;
use crate::export::write_tables;
use crate::export::write_tables_json;

/// Writes profiles.
pub type WriteProfile = fn(&mut dyn Write, &ProfileReport, &ProfileTextOptions) -> io::Result<()>;

/// The formats of profiles.
pub const PROFILE: &[Format<WriteProfile>] = &[
    format("text", "A table for people", write_profile_text),
    format(
        "flamegraph",
        "A flame graph of all chains of calls, as an SVG that a browser can zoom and search",
        |out, report, _| write_flamegraph(out, report),
    ),
    format("folded", "One line for each chain of calls, for flame graph tools", |out, report, _| {
        write_folded(out, report)
    }),
    format(
        "callgrind",
        "The format of callgrind, for KCachegrind and callgrind_annotate",
        |out, report, _| write_callgrind(out, report),
    ),
    format("pprof", "For pprof and the tools that read its files, gzipped", |out, report, _| {
        write_pprof(out, report)
    }),
    format("firefox", "For https://profiler.firefox.com", |out, report, _| write_firefox(out, report)),
    format("speedscope", "For https://www.speedscope.app", |out, report, _| write_speedscope(out, report)),
    format("csv", "All rows of the table, comma-separated", |out, report, options| {
        write_table_csv(out, &report.table(options.table))
    }),
    format("parquet", "All rows of the table, for data frames and SQL", |out, report, options| {
        write_tables(&mut TableParquet::new(out), &[report.table(options.table)], report.complete)
    }),
    format(
        "json",
        "The tables of functions, lines, calls and binaries as one JSON document",
        |out, report, _| write_tables_json(out, &report.tables(), report.complete),
    ),
    format("none", "Count everything and print nothing", |_, _, _| Ok(())),
];
