//! The options of `timeline` and `interrupts`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use tracewalk_analysis::clock::Unit;
use tracewalk_report::formats::{self, Format, MakeTimeline, WriteInterrupts};

use super::built_in;
use super::places::PlacesArgs;
use super::profile::{FollowArgs, frequency};
use super::window::WindowArgs;
use super::work::WorkArgs;

pub(crate) const TIMELINE_EXAMPLES: &str = "\
Examples:
  tracewalk timeline capture.toml --format perfetto -o timeline.pftrace
      functions, interrupts and tasks, for ui.perfetto.dev
  tracewalk timeline capture.toml --unit cycles --frequency 72MHz --from 100000 --to 101000
      a thousand instructions with their times, as text
  tracewalk timeline capture.toml --format ctf -o folder
      for babeltrace2 and Trace Compass

Exit status:
  0  everything was decoded
  2  something could not be read, or the trace had malformed parts or gaps;
     the part that could be decoded is shown";

pub(crate) const INTERRUPTS_EXAMPLES: &str = "\
Examples:
  tracewalk interrupts swo.bin --image fw.elf --svd chip.svd
      how often each exception was taken and how long it took, by the chip's names
  tracewalk interrupts capture.toml --unit cycles --functions --format csv -o cycles.csv
      in cycles, of functions as well, for a spreadsheet
  tracewalk interrupts run1.bin run2.bin --image fw.elf
      two captures of the same program together
  tracewalk interrupts run1.bin --image fw.elf --unit cycles --save run1.twirq
  tracewalk interrupts run1.twirq run2.twirq --image fw.elf
      runs on several boards, added up later

Exit status:
  0  everything was decoded
  2  something could not be read, or the trace had malformed parts or gaps;
     exceptions cut by these are counted, but have no duration";

/// What is measured along the axis.
#[derive(Args, Debug)]
pub(crate) struct AxisArgs {
    /// The unit of the axis.
    #[arg(long = "unit", value_enum, default_value_t, help_heading = "Axis")]
    pub(crate) unit: AxisChoice,

    /// The frequency of the clock that cycles or timestamps count, for example 72MHz or 32768. Times are then in
    /// seconds, except in csv, parquet and json.
    #[arg(long, value_name = "HZ", value_parser = frequency, help_heading = "Axis")]
    pub(crate) frequency: Option<f64>,
}

#[derive(Args, Debug)]
pub(crate) struct Timeline {
    #[command(flatten)]
    pub(crate) follow: FollowArgs,

    #[command(flatten)]
    pub(crate) window: WindowArgs,

    #[command(flatten)]
    pub(crate) axis: AxisArgs,

    /// The output format.
    #[arg(long, value_parser = built_in::listed(formats::TIMELINE), default_value = "text", help_heading = "Output")]
    pub(crate) format: &'static Format<MakeTimeline>,

    /// The output file, whose extension states the format, or a folder for `ctf`. Standard output if omitted.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(Args, Debug)]
pub(crate) struct Interrupts {
    #[command(flatten)]
    pub(crate) places: PlacesArgs,

    #[command(flatten)]
    pub(crate) window: WindowArgs,

    #[command(flatten)]
    pub(crate) axis: AxisArgs,

    /// Report functions as well.
    #[arg(long, help_heading = "Output")]
    pub(crate) functions: bool,

    /// The output format; by default `text`, or nothing with --save.
    #[arg(long, value_parser = built_in::listed(formats::INTERRUPTS), help_heading = "Output")]
    pub(crate) format: Option<&'static Format<WriteInterrupts>>,

    /// The output file; its extension states the format. Standard output if omitted.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Save the figures, to merge and show them later.
    #[arg(long, value_name = "FILE.twirq", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) save: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AxisChoice {
    /// The best that the trace has: cycles, time, or instructions; for several sources time before cycles.
    #[default]
    Best,
    /// Instructions.
    Instructions,
    /// Cycles of a cycle-accurate trace.
    Cycles,
    /// Ticks of the timestamps' counter.
    Time,
}

impl AxisChoice {
    pub(crate) const fn unit(self) -> Option<Unit> {
        match self {
            Self::Best => None,
            Self::Instructions => Some(Unit::Instructions),
            Self::Cycles => Some(Unit::Cycles),
            Self::Time => Some(Unit::Time),
        }
    }
}
