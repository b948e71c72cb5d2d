//! Output formats: records or an answer go in, one format's bytes come out. One file for each format.
//!
//! To add a format: a file with a function or a [`Sink`](tracewalk_analysis::sink::Sink), and an entry in [`formats`](crate::formats).
//!
//! The crate's page shows one at work: [`Runs`].
//!
//! ```
//! use tracewalk_analysis::Statistics;
//! use tracewalk_analysis::table::Tabular as _;
//! use tracewalk_report::export::write_table_csv;
//!
//! let statistics = Statistics { bytes: 20, packets: 9, ..Statistics::default() };
//! let mut out = Vec::new();
//! write_table_csv(&mut out, &statistics.tables()[0])?;
//! assert!(out.starts_with(b"bytes,packets,"));
//! # Ok::<(), std::io::Error>(())
//! ```

mod callgrind;
mod calls_table;
mod captures;
mod cobertura;
mod counts;
mod coverage_base;
#[cfg(feature = "full")]
mod coverage_html;
mod coverage_json;
mod coverage_text;
mod crash;
mod diff;
mod excerpt;
#[cfg(feature = "full")]
mod firefox;
mod flamegraph;
mod flow_jsonl;
mod flow_table;
mod folded;
mod function_names;
mod interrupts;
mod itm;
mod json;
mod last;
mod lcov;
#[cfg(not(feature = "full"))]
mod light;
#[cfg(not(feature = "parquet"))]
mod no_parquet;
mod packets_jsonl;
mod packets_table;
#[cfg(feature = "parquet")]
mod parquet;
mod pgo;
#[cfg(feature = "full")]
mod pprof;
mod profile;
mod runs;
mod source_diff;
mod speedscope;
mod stm;
mod tables;
mod tail;
mod tasks;
mod text;
mod timeline;
mod values_jsonl;
mod values_part;

pub use callgrind::write_callgrind;
pub use calls_table::{CallTable, write_chain_rows};
pub use captures::write_captures_text;
pub use cobertura::write_cobertura;
pub use counts::write_counts_text;
pub use coverage_base::{read_base, read_coverage_json};
#[cfg(feature = "full")]
pub use coverage_html::write_coverage_html;
pub use coverage_json::write_coverage_json;
pub use coverage_text::write_coverage_text;
pub use crash::{CRASH_TABLES, CrashReport, write_crash_json, write_crash_markdown, write_crash_text};
pub use diff::{DIFF_TABLES, DiffReport, FunctionDiff, SourceDiff, write_diff_json, write_diff_text};
pub use excerpt::{Excerpt, Selection};
#[cfg(feature = "full")]
pub use firefox::write_firefox;
pub use flamegraph::write_flamegraph;
pub use flow_jsonl::FlowJsonl;
pub use flow_table::FlowTable;
pub use folded::write_folded;
pub use interrupts::{InterruptReport, write_interrupts_json, write_interrupts_text};
pub use itm::{ExportItm, ItmJsonl, ItmTables, ItmText, ItmValues, StimulusBytes, WatchedBy};
pub use last::LastInstructions;
pub use lcov::{TracefileError, TracefileErrorKind, read_lcov, write_lcov};
#[cfg(not(feature = "full"))]
pub use light::{PerfettoTrace, write_coverage_html, write_firefox, write_pprof};
#[cfg(not(feature = "parquet"))]
pub use no_parquet::TableParquet;
pub use packets_jsonl::PacketsJsonl;
pub use packets_table::PacketTable;
#[cfg(feature = "parquet")]
pub use parquet::TableParquet;
pub use pgo::{write_autofdo, write_bolt, write_profgen};
#[cfg(feature = "full")]
pub use pprof::write_pprof;
pub use profile::{ProfileReport, ProfileTable, best_unit};
pub use runs::{Runs, RunsPart};
pub use source_diff::{SourceDiffError, SourceDiffErrorKind, read_source_diff};
pub use speedscope::write_speedscope;
pub use tables::{TableCsv, TablesJson, write_table_csv, write_tables, write_tables_json, write_tables_text};
pub use tasks::{TASK_TABLES, TaskReport, write_tasks_json, write_tasks_text};
pub use text::{
    CallChainsOptions, CallTree, CallTreeOptions, Listing, ListingOptions, PacketsText, ProfileTextOptions,
    ValuesText, write_call_chains, write_profile_text,
};
#[cfg(feature = "full")]
pub use timeline::PerfettoTrace;
pub use timeline::{
    ChromeTrace, CommonTraceFormat, Files, TimelineExport, TimelineTable, TimelineText, Timelines,
};

pub use values_jsonl::{ValuesJsonl, register_name};
pub use values_part::{LastValues, ValuesExcerpt};

/// The formats that this build lacks because a feature is off, by the names that the command has for them.
pub const LACKING: &[&str] = match (cfg!(feature = "full"), cfg!(feature = "parquet")) {
    (true, _) => &[],
    (false, true) => &["firefox", "html", "perfetto", "pprof"],
    (false, false) => &["firefox", "html", "parquet", "perfetto", "pprof"],
};
