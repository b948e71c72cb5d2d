//! Output formats: records in, one format's bytes out. One file for each format.
//!
//! To add a format: a file with a type that implements [`Sink`](tracewalk_analysis::sink::Sink), and a line here.

mod callgrind;
mod cobertura;
mod coverage_html;
mod coverage_json;
mod coverage_text;
mod diff;
mod firefox;
mod flamegraph;
mod flow_jsonl;
mod folded;
mod interrupts;
mod itm;
mod json;
mod last;
mod lcov;
mod packets_jsonl;
mod pprof;
mod profile;
mod runs;
mod speedscope;
mod text;
mod timeline;

pub use callgrind::write_callgrind;
pub use cobertura::write_cobertura;
pub use coverage_html::write_coverage_html;
pub use coverage_json::write_coverage_json;
pub use coverage_text::{CoverageTextOptions, write_coverage_text};
pub use diff::{DiffReport, FunctionDiff, SourceDiff, write_diff_json, write_diff_text};
pub use firefox::write_firefox;
pub use flamegraph::write_flamegraph;
pub use flow_jsonl::FlowJsonl;
pub use folded::write_folded;
pub use interrupts::{
    InterruptRecording, InterruptReport, write_interrupts_csv, write_interrupts_json, write_interrupts_text,
};
pub use itm::{ExportItm, ItmJsonl, ItmText, StimulusBytes};
pub use last::LastInstructions;
pub use lcov::write_lcov;
pub use packets_jsonl::PacketsJsonl;
pub use pprof::write_pprof;
pub use profile::{ProfileReport, best_unit};
pub use runs::{Runs, RunsPart};
pub use speedscope::write_speedscope;
pub use text::{
    CallChainsOptions, CallTree, CallTreeOptions, Listing, ListingOptions, PacketsText, ProfileTable,
    ProfileTextOptions, write_call_chains, write_profile_text,
};
pub use timeline::{
    ChromeTrace, CommonTraceFormat, Files, PerfettoTrace, TimelineExport, TimelineText, Timelines,
};
