//! The options of `gather`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use tracewalk_report::formats::{self, Format, WriteCaptures};

use super::built_in::{self, Pattern};
use super::profile::FollowArgs;
use super::work::WorkArgs;

pub(crate) const GATHER_EXAMPLES: &str = "\
Examples:
  tracewalk gather nightly/ --save all.twcounts
  tracewalk counts all.twcounts --format parquet -o all.parquet
      counts of all captures below a directory, as one table
  tracewalk gather runs/ --match '*.bin' --image fw.elf --answer coverage --save all.twcov --resume runs.state
      coverage of bare trace files; run again, it continues where it stopped, and adds new captures
  tracewalk gather @list.txt --save all.twcounts --format csv -o captures.csv
      the captures that a file lists, and the outcome of each

Exit status:
  0  everything was decoded
  2  a capture was left out, or decoded only in part; the others count";

/// The answer to gather from many captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GatherAnswer {
    /// How often each stretch and branch ran, as with `counts --save`
    #[default]
    Counts,
    /// Which code of the program ran, as with `coverage --save`
    Coverage,
    /// The cost of functions, as with `profile --save`
    Profile,
}

#[derive(Args, Debug)]
pub(crate) struct Gather {
    #[command(flatten)]
    pub(crate) follow: FollowArgs,

    /// Further places.
    #[arg(index = 2, value_name = "PLACE", value_hint = ValueHint::AnyPath)]
    pub(crate) more: Vec<PathBuf>,

    /// In directories, take files and directories with these names or paths as captures, whatever they contain; can be given
    /// several times.
    #[arg(long = "match", value_name = "GLOB", value_parser = built_in::path, help_heading = "Selection")]
    pub(crate) patterns: Vec<Pattern>,

    /// The answer to gather.
    #[arg(long, value_name = "ANSWER", value_enum, default_value_t, help_heading = "Selection")]
    pub(crate) answer: GatherAnswer,

    /// Save the answer, for the command of the same name to report.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) save: PathBuf,

    /// Save progress in this file every few seconds, and start from what it holds: a stopped run continues, and a finished one
    /// adds new captures. Captures that were left out are tried again.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) resume: Option<PathBuf>,

    /// The format of the table of captures and their outcomes.
    #[arg(long, value_parser = built_in::listed(formats::GATHER), default_value = "text", help_heading = "Output")]
    pub(crate) format: &'static Format<WriteCaptures>,

    /// The file for the table of captures and their outcomes; standard output if omitted.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}
