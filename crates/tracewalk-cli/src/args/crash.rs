//! The options of `crash`.

use std::path::PathBuf;

use clap::builder::ArgPredicate;
use clap::{Args, ValueHint};
use tracewalk_report::export::CRASH_TABLES;
use tracewalk_report::formats::{self, Format, WriteCrash};

use super::built_in;
use super::profile::FollowArgs;
use super::record::Server;
use super::work::WorkArgs;

pub(crate) const CRASH_EXAMPLES: &str = "\
Examples:
  tracewalk crash crash.log --image firmware.elf
      GDB's output of the registers and the stack, and of an MTB if there is one
  tracewalk crash etb.bin --image firmware.elf --dump crash.log
      a trace, and GDB's output in a second file
  tracewalk crash --gdb :3333 --image firmware.elf
      a halted processor, through the GDB server of its debug probe
  tracewalk crash crash.log --image firmware.elf --format markdown -o crash.md
      for a bug report

Exit status:
  0  a fault ended the program
  1  no fault was found
  2  something could not be read, or the trace had malformed parts or gaps;
     the part that could be found is printed";

#[derive(Args, Debug)]
#[command(mut_arg("capture", |capture| {
    capture.required(false).required_unless_present("gdb").default_value_if("gdb", ArgPredicate::IsPresent, "-")
}))]
pub(crate) struct Crash {
    #[command(flatten)]
    pub(crate) follow: FollowArgs,

    /// Read the processor through the GDB server of its debug probe, instead of a capture: registers, fault status, stacks, variables,
    /// and the trace of an MTB or ETB if one was on. Nothing runs, and nothing is reset.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "dump", help_heading = "Target")]
    pub(crate) gdb: Option<Server>,

    /// Keep what --gdb read, for `crash FILE`. An ETB's trace goes beside it, with the extension bin.
    #[arg(long, value_name = "FILE", requires = "gdb", value_hint = ValueHint::FilePath, help_heading = "Target")]
    pub(crate) save: Option<PathBuf>,

    /// Registers and memory of the halted processor, as a debugger printed or saved them, if they are not in the capture: fault
    /// status (0xe000ed00), core registers, the stack.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Capture")]
    pub(crate) dump: Option<PathBuf>,

    /// The output format.
    #[arg(long, value_parser = built_in::listed(formats::CRASH), default_value = "text", help_heading = "Output")]
    pub(crate) format: &'static Format<WriteCrash>,

    /// The table that --format csv and parquet write.
    #[arg(long, value_name = "TABLE", value_parser = built_in::table(&CRASH_TABLES), default_value = CRASH_TABLES[0], help_heading = "Output")]
    pub(crate) table: &'static str,

    /// The output file; its extension states the format. Standard output if omitted.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}
