//! The options of `counts`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use tracewalk_analysis::counts::CountsReport;
use tracewalk_report::formats::{self, Format, WriteCounts};

use super::built_in;
use super::places::PlacesArgs;
use super::work::WorkArgs;

pub(crate) const COUNTS_EXAMPLES: &str = "\
Examples:
  tracewalk counts capture.toml
      what was kept at each step from the trace to the counts, and what was not
  tracewalk counts capture.toml --format csv --table branches
      each branch, where it led to, and how often
  tracewalk counts run1.bin --image fw.elf --save run1.twcounts
  tracewalk counts run1.twcounts run2.twcounts --format json
      runs on several boards, added up later
  tracewalk counts nightly/ --captures captures.csv -o all.parquet
      all captures below a directory, and the outcome of each
  tracewalk counts capture.toml --format profgen -o fw.prof
  llvm-profgen --unsymbolized-profile=fw.prof --use-offset=0 --binary=fw.elf -o fw.afdo
  clang -O2 -fprofile-sample-use=fw.afdo …
      a program that the compiler optimises for how it ran
  tracewalk counts capture.toml --binary server --format bolt -o server.preagg
  perf2bolt -pa -p server.preagg -o server.fdata server
      the same after the linker, for 64-bit programs

Exit status:
  0  everything was decoded
  2  something could not be read, or the trace had malformed parts or gaps;
     the part that could be decoded is counted";

#[derive(Args, Debug)]
pub(crate) struct Counts {
    #[command(flatten)]
    pub(crate) places: PlacesArgs,

    /// Use only the binary with this file name or build ID.
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    pub(crate) binary: Option<String>,

    /// The output file; its extension states the format. Standard output if omitted.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// The output format; by default `text`, or nothing with --save.
    #[arg(long, value_parser = built_in::listed(formats::COUNTS), help_heading = "Output")]
    pub(crate) format: Option<&'static Format<WriteCounts>>,

    /// The table that --format csv and parquet write.
    #[arg(long, value_name = "TABLE", value_parser = built_in::table(&CountsReport::TABLES), default_value = CountsReport::TABLES[0], help_heading = "Output")]
    pub(crate) table: &'static str,

    /// Save the counts, to merge and write them later.
    #[arg(long, value_name = "FILE.twcounts", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) save: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}
