//! The formats of counts, and those of one binary for the tools that optimise it.

use std::io;
use std::io::Write;

use tracewalk_analysis::counts::CountsReport;
use tracewalk_analysis::table::Tabular as _;

use super::format::{Format, format, one_parquet, one_table};
use crate::Look;
use crate::export::write_autofdo;
use crate::export::write_bolt;
use crate::export::write_counts_text;
use crate::export::write_profgen;
use crate::export::write_tables_json;

/// Writes counts: all of them, or the table of this name.
pub type WriteCounts = fn(&mut dyn Write, &CountsReport<'_>, Look, &'static str) -> io::Result<()>;

/// The formats of counts of one binary, for the tools that optimise it.
pub const OF_ONE_BINARY: &[Format<WriteCounts>] = &[PROFGEN, BOLT, AUTOFDO];

/// The formats of counts.
pub const COUNTS: &[Format<WriteCounts>] = &[
    format(
        "text",
        "What was kept at each step from the trace to the counts, for people",
        |out, report, look, _| write_counts_text(out, report, look),
    ),
    format("csv", "One table, comma-separated", |out, report, _, table| {
        one_table(out, &report.tables(), table, report.complete)
    }),
    format("parquet", "One table, for data frames and SQL", |out, report, _, table| {
        one_parquet(out, &report.tables(), table, report.complete)
    }),
    format("json", "The tables as one JSON document", |out, report, _, _| {
        write_tables_json(out, &report.tables(), report.complete)
    }),
    PROFGEN,
    BOLT,
    AUTOFDO,
    format("none", "Count everything and print nothing", |_, _, _, _| Ok(())),
];

const PROFGEN: Format<WriteCounts> = format(
    "profgen",
    "An unsymbolised profile for llvm-profgen, which makes one for clang",
    |out, report, _, _| write_profgen(out, report),
);
const BOLT: Format<WriteCounts> = format(
    "bolt",
    "Pre-aggregated branches for perf2bolt, which makes a profile for llvm-bolt",
    |out, report, _, _| write_bolt(out, report),
);
const AUTOFDO: Format<WriteCounts> =
    format("autofdo", "Text for AutoFDO's create_llvm_prof and create_gcov", |out, report, _, _| {
        write_autofdo(out, report)
    });
