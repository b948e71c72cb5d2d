//! The options of `diff`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use tracewalk_report::export::DIFF_TABLES;
use tracewalk_report::formats::{self, Format, WriteDiff};

use super::built_in;
use super::profile::FollowArgs;
use super::work::WorkArgs;

pub(crate) const DIFF_EXAMPLES: &str = "\
Examples:
  tracewalk diff good.bin bad.bin --image fw.elf
      where the two runs part, and what each did next
  tracewalk diff monday/capture.toml today/capture.toml --ignore-interrupts --format json
      the same for scripts, without the handlers of interrupts

Exit status:
  0  nothing differs
  1  something differs
  2  something could not be read, or a trace had malformed parts or gaps;
     the part that could be compared is printed";

#[derive(Args, Debug)]
pub(crate) struct Diff {
    #[command(flatten)]
    pub(crate) follow: FollowArgs,

    /// Another capture of the same program; the options apply to both.
    #[arg(value_name = "OTHER", value_hint = ValueHint::AnyPath)]
    pub(crate) other: PathBuf,

    /// Compare the paths without the handlers of interrupts, which occur at different places in each run. Functions and
    /// coverage still include them.
    #[arg(long, help_heading = "Comparison")]
    pub(crate) ignore_interrupts: bool,

    /// The output format.
    #[arg(long, value_parser = built_in::listed(formats::DIFF), default_value = "text", help_heading = "Output")]
    pub(crate) format: &'static Format<WriteDiff>,

    /// The table that --format csv and parquet write.
    #[arg(long, value_name = "TABLE", value_parser = built_in::table(&DIFF_TABLES), default_value = DIFF_TABLES[0], help_heading = "Output")]
    pub(crate) table: &'static str,

    /// The output file; its extension states the format. Standard output if omitted.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}
