//! The options of `tasks`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use tracewalk_report::export::TASK_TABLES;
use tracewalk_report::formats::{self, Format, WriteTasks};

use super::built_in;
use super::profile::FollowArgs;
use super::work::WorkArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  tracewalk tasks capture.toml
      each task with its share of the processor, its longest run and its slowest response
  tracewalk tasks capture.toml --format csv --table switches
      each switch with its place and its cause
  tracewalk flow capture.toml --around 5335
      the instructions around a place that `tasks` states

Exit status:
  0  everything was decoded
  2  something could not be read, or the trace had malformed parts or gaps;
     the part that could be decoded is counted";

#[derive(Args, Debug)]
pub(crate) struct Tasks {
    #[command(flatten)]
    pub(crate) follow: FollowArgs,

    /// Registers and memory of the halted processor, as a debugger printed or saved them, if they are not in the capture. They have
    /// the names of tasks.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Capture")]
    pub(crate) dump: Option<PathBuf>,

    /// The output format.
    #[arg(long, value_parser = built_in::listed(formats::TASKS), default_value = "text", help_heading = "Output")]
    pub(crate) format: &'static Format<WriteTasks>,

    /// The table that --format csv and parquet write.
    #[arg(long, value_name = "TABLE", value_parser = built_in::table(&TASK_TABLES), default_value = TASK_TABLES[0], help_heading = "Output")]
    pub(crate) table: &'static str,

    /// The output file; its extension states the format. Standard output if omitted.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}
