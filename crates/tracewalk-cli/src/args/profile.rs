//! The options of `profile` and `calls`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use tracewalk_analysis::Doubtful;
use tracewalk_report::formats::{self, Format, MakeCalls, WriteProfile};
use tracewalk_session::{Follow, Trust};

use super::built_in;
use super::capture::CaptureArgs;
use super::places::PlacesArgs;
use super::window::WindowArgs;
use super::work::WorkArgs;
use crate::messages::Messages;

pub(crate) const PROFILE_EXAMPLES: &str = "\
Examples:
  tracewalk profile capture.toml
      the functions that cost most
  tracewalk profile capture.toml -o profile.svg
      a picture of them, to open in a browser
  tracewalk profile swo.bin --image fw.elf --table lines --rows 20
      the 20 lines that cost most
  tracewalk profile run1.bin run2.bin --image fw.elf
      two captures of the same program together
  tracewalk profile run1.bin --image fw.elf --save run1.twprof
  tracewalk profile run1.twprof run2.twprof --image fw.elf -o profile.svg
      runs on several boards, added up later
  tracewalk profile capture.toml --unit time --frequency 1GHz --format pprof -o profile.pb.gz
      in seconds, by the timestamps of a counter at 1 GHz, for pprof

Exit status:
  0  everything was decoded
  2  something could not be read, or the trace had malformed parts or gaps;
     the part that could be decoded is counted";

pub(crate) const CALLS_EXAMPLES: &str = "\
Examples:
  tracewalk calls capture.toml --depth 3
      the functions that ran, three calls deep
  tracewalk calls capture.toml --from 12000 --to 13000
      what ran after the first 12000 instructions, with the functions that were running then
  tracewalk calls capture.toml --fold chains
      each chain of calls on one line, with how often it was called and what it cost
  tracewalk calls capture.toml --format csv
      a row for each call: which called it, where it was entered, how many instructions it ran

Exit status:
  0  everything was decoded
  2  something could not be read, or the trace had malformed parts or gaps;
     the part that could be decoded is printed";

/// The capture to follow, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct FollowArgs {
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,

    /// Follow the image even if the trace contradicts it repeatedly.
    #[arg(long, help_heading = "Program")]
    pub(crate) trust_image: bool,

    /// An additional directory of source files; can be given several times.
    #[arg(long = "src-dir", value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Program")]
    pub(crate) source_dirs: Vec<PathBuf>,

    /// What to do with doubtful execution: everything between two proven positions if the trace between them is
    /// contradictory, malformed or incomplete.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = DoubtfulChoice::Drop, help_heading = "Program")]
    pub(crate) doubtful: DoubtfulChoice,
}

impl FollowArgs {
    /// How far the image is trusted.
    pub(crate) fn trust(&self) -> Trust {
        Trust { image: self.trust_image, doubtful: self.doubtful.into() }
    }

    /// How the sources of a capture are followed, on at most this number of threads.
    pub(crate) fn how(&self, threads: u16, messages: &Messages) -> Follow {
        let (trust, names) = (self.trust(), Some(self.source_dirs.clone()));
        Follow { trust, threads, names, places: messages.records() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoubtfulChoice {
    /// Leave it out, and report the amount.
    Drop,
    /// Treat it like other execution.
    Keep,
}

impl From<DoubtfulChoice> for Doubtful {
    fn from(choice: DoubtfulChoice) -> Self {
        match choice {
            DoubtfulChoice::Drop => Self::Drop,
            DoubtfulChoice::Keep => Self::Keep,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Profile {
    #[command(flatten)]
    pub(crate) places: PlacesArgs,

    #[command(flatten)]
    pub(crate) window: WindowArgs,

    /// The unit of cost.
    #[arg(long = "unit", value_enum, default_value_t, help_heading = "Measure")]
    pub(crate) cost: CostChoice,

    /// The frequency of the clock that cycles or timestamps count, for example 72MHz or 32768. Times are then in
    /// seconds.
    #[arg(long, value_name = "HZ", value_parser = frequency, help_heading = "Measure")]
    pub(crate) frequency: Option<f64>,

    /// Count inlined functions as part of the functions that they were inlined into.
    #[arg(long, help_heading = "Measure")]
    pub(crate) no_inlined: bool,

    /// The rows of the text table.
    #[arg(long = "table", value_enum, default_value_t, help_heading = "Output")]
    pub(crate) by: ProfileRows,

    /// The maximum number of rows in the text table.
    #[arg(long, short = 'n', alias = "top", value_name = "N", help_heading = "Output")]
    pub(crate) rows: Option<usize>,

    /// The output format; by default `text`, or nothing with --save.
    #[arg(long, value_parser = built_in::listed(formats::PROFILE), help_heading = "Output")]
    pub(crate) format: Option<&'static Format<WriteProfile>>,

    /// The output file; its extension states the format. Standard output if omitted.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Save the profile, to merge and show it later.
    #[arg(long, value_name = "FILE.twprof", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) save: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(Args, Debug)]
pub(crate) struct Calls {
    #[command(flatten)]
    pub(crate) follow: FollowArgs,

    #[command(flatten)]
    pub(crate) window: WindowArgs,

    /// Print calls down to this depth; deeper calls count towards their callers.
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub(crate) depth: Option<usize>,

    /// The calls to combine on one line.
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub(crate) fold: Fold,

    /// The output format. In tables each call has its own row, or each chain of calls with --fold chains.
    #[arg(long, value_parser = built_in::listed(formats::CALLS), default_value = "text", help_heading = "Output")]
    pub(crate) format: &'static Format<MakeCalls>,

    /// The output file; its extension states the format. Standard output if omitted.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fold {
    /// Each call has its own line.
    None,
    /// Consecutive equal calls of functions that call nothing.
    #[default]
    Repeats,
    /// All calls with the same chain of callers, with their number and cost.
    Chains,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CostChoice {
    /// Cycles if the trace has them, else time, else instructions.
    #[default]
    Best,
    /// Instructions that were executed or passed.
    Instructions,
    /// Cycles of a cycle-accurate trace.
    Cycles,
    /// Time by timestamps, interpolated between them.
    Time,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileRows {
    /// Functions.
    #[default]
    Functions,
    /// Lines of the source.
    Lines,
    /// Callers and callees.
    Calls,
    /// Files of the code, and tasks that ran it.
    Binaries,
}

/// A number of events in a second, with or without a unit.
pub(super) fn frequency(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let number = text.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let factor = match text.get(number.len()..).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "hz" => 1.0,
        "k" | "khz" => 1e3,
        "m" | "mhz" => 1e6,
        "g" | "ghz" => 1e9,
        _ => return Err("expected a frequency in Hz, kHz, MHz or GHz, for example 72MHz".to_owned()),
    };
    let value = number.trim().replace('_', "").parse::<f64>().map(|value| value * factor);
    match value {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err("expected a frequency above 0, for example 72MHz".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_have_the_usual_units() {
        let cases =
            [("72MHz", 72e6), ("32768", 32768.0), ("1.5 GHz", 1.5e9), ("100k", 1e5), ("24_000_000Hz", 24e6)];
        for (text, expected) in cases {
            assert_eq!(frequency(text), Ok(expected), "{text}");
        }
        for wrong in ["", "0", "-1", "MHz", "inf", "NaN", "72 mph"] {
            assert!(frequency(wrong).is_err(), "{wrong}");
        }
    }
}
