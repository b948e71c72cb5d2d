//! The command line: options in, plain values out. Other modules decide on their meaning.

mod arrival;
mod built_in;
mod cache;
mod called;
mod capture;
mod counts;
mod coverage;
mod crash;
mod diff;
mod effective;
mod gdb;
mod generate;
mod help;
mod numbers;
mod output;
mod places;
mod profile;
mod record;
mod recording;
mod request;
mod tasks;
mod timeline;
mod topic;
mod values;
mod view;
mod when;
mod window;
mod work;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use tracewalk_analysis::itm::{ITM_TABLES, VALUES_TABLE};
use tracewalk_analysis::values::Search;
use tracewalk_analysis::{Code, Place, Window};
use tracewalk_report::export::Selection;
use tracewalk_report::formats::{self, Format, MakeFlow, MakeItm, MakePackets, WriteInfo};
use tracewalk_session::{Follow, INFO_TABLES, Trust};

use crate::failure::Failure;
use crate::task::Task;
use called::Called;
use window::{AroundArgs, WindowArgs};

#[cfg(any(feature = "gdb", feature = "view"))]
pub(crate) use cache::CacheArgs;
pub(crate) use capture::CaptureArgs;
pub(crate) use counts::Counts;
pub(crate) use coverage::{Coverage, FailOn};
pub(crate) use crash::Crash;
pub(crate) use diff::Diff;
pub(crate) use effective::effective;
pub(crate) use gdb::Gdb;
pub(crate) use generate::{Generate, Kind};
pub(crate) use places::PlacesArgs;
pub(crate) use profile::{Calls, CostChoice, DoubtfulChoice, Fold, FollowArgs, Profile, ProfileRows};
pub(crate) use record::{End, Memory, Record, Server};
pub(crate) use tasks::Tasks;
pub(crate) use timeline::{Interrupts, Timeline};
pub(crate) use topic::{Help, page};
pub(crate) use view::View;
pub(crate) use when::{MessageFormat, When};
pub(crate) use work::WorkArgs;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const DECODED: &str = "\
Exit status:
  0  everything was decoded
  2  something could not be read, or the trace had malformed parts or gaps;
     the part that could be decoded is printed";

const FLOW_EXAMPLES: &str = "\
Examples:
  tracewalk flow capture.toml
      everything, with functions, source lines and call depth
  tracewalk flow etb.bin --source 0x10=etmv3,cpu=cortex-a7 --image 0x80000000:kernel.bin
      a buffer whose source is known, and a dump of the memory that ran
  tracewalk flow mtb.bin --registers mtb.txt --image firmware.elf --last 50 --src-lines
      the last 50 instructions, with the lines of the source
  tracewalk flow capture.toml --format runs
      only the addresses, for scripts

Exit status:
  0  everything was decoded
  2  something could not be read, or the trace had malformed parts or gaps;
     the part that could be decoded is printed";

/// Show what an Arm core executed, from its CoreSight trace.
#[derive(Debug, Parser)]
#[command(
    name = "tracewalk",
    version,
    styles = STYLES,
    max_term_width = 100,
    arg_required_else_help = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_long_help = concat!(
        "Examples:\n",
        "  tracewalk info swo.bin --image firmware.elf\n",
        "      what is in a capture, and the equivalent options\n",
        "  tracewalk flow swo.bin --image firmware.elf\n",
        "      every instruction that ran, with functions and source lines\n",
        "  tracewalk flow mtb.bin --registers mtb.txt --image firmware.elf --last 50\n",
        "      the last 50 instructions before a crash\n",
        "\n",
        "Exit status:\n",
        "  0  everything was decoded\n",
        "  1  a check failed\n",
        "  2  something could not be read, or the trace had malformed parts or gaps;\n",
        "     the part that could be decoded is printed\n",
        "\n",
        "Formats, tables and guides: tracewalk help README, or\n",
        tracewalk_sentences::page!("README.md"),
    )
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) generate: Generate,

    /// When to use colours; the environment variable NO_COLOR is respected.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, global = true, help_heading = "Output")]
    pub(crate) color: When,

    /// Write a JSON file that states how the result was made: version, options, hashes of the inputs, losses, and what could not
    /// be observed. Without a name, .provenance.json is appended to the name of the result's file.
    #[arg(long, value_name = "FILE", global = true, num_args = 0..=1, require_equals = true, value_hint = ValueHint::FilePath, help_heading = "Output")]
    #[allow(clippy::option_option, reason = "no file, its usual name, or the one that was said")]
    pub(crate) provenance: Option<Option<PathBuf>>,

    /// Use no pager on a terminal. The pager is the program in TRACEWALK_PAGER, else in PAGER, else less; an empty
    /// value or cat disables it.
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) no_pager: bool,

    /// The format of errors, warnings and notes on standard error: with --messages json each is an object with a stable
    /// `kind`.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, global = true, help_heading = "Output")]
    pub(crate) messages: MessageFormat,

    /// Print only warnings and errors on standard error, no notes and no progress.
    #[arg(short, long, global = true, help_heading = "Output")]
    pub(crate) quiet: bool,
}

impl Cli {
    /// The command with its arguments.
    pub(crate) fn task(&self) -> &dyn Task {
        self.command.as_ref().map_or(&self.generate, Command::task)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Report what is in a capture: container, sources, synchronisation, losses, time span.
    #[command(after_help = DECODED)]
    Info(Called<Info>),
    /// Print the packets of each source.
    #[command(after_help = DECODED)]
    Packets(Called<Packets>),
    /// Print what was executed.
    #[command(after_help = DECODED, after_long_help = FLOW_EXAMPLES)]
    Flow(Called<Flow>),
    /// Report how a program crashed and why: the fault, the call stack, the last path, and what proves the cause.
    #[command(after_long_help = crash::CRASH_EXAMPLES)]
    Crash(Called<Crash>),
    /// Record what a chip executes, through the GDB server of its debug probe.
    #[command(after_long_help = record::RECORD_EXAMPLES)]
    Record(Called<Record>),
    /// Print what an ITM or STM reported: the program's text, and with --format events the DWT's events; an STM's messages and values.
    #[command(after_help = DECODED, visible_alias = "stm")]
    Itm(Called<Itm>),
    /// Report which lines, branches and functions of a program ran, without instrumentation.
    #[command(after_long_help = coverage::EXAMPLES)]
    Coverage(Called<Coverage>),
    /// Report what functions cost: a table, a flame graph, or a file for another profiler.
    #[command(after_help = DECODED, after_long_help = profile::PROFILE_EXAMPLES)]
    Profile(Called<Profile>),
    /// Print the functions that ran, as a tree of calls.
    #[command(after_help = DECODED, after_long_help = profile::CALLS_EXAMPLES)]
    Calls(Called<Calls>),
    /// Show which functions, interrupts and tasks ran when, along one axis.
    #[command(after_help = DECODED, after_long_help = timeline::TIMELINE_EXAMPLES)]
    Timeline(Called<Timeline>),
    /// Report how often exceptions were taken, and how long they took.
    #[command(after_help = DECODED, after_long_help = timeline::INTERRUPTS_EXAMPLES)]
    Interrupts(Called<Interrupts>),
    /// Report which tasks of an operating system ran, for how long, and what made them run.
    #[command(after_help = DECODED, after_long_help = tasks::EXAMPLES)]
    Tasks(Called<Tasks>),
    /// Report what differs between two captures of one program: where execution diverges, functions, coverage.
    #[command(after_long_help = diff::DIFF_EXAMPLES)]
    Diff(Called<Diff>),
    /// Count how often each stretch and branch of a program ran.
    #[command(after_help = DECODED, after_long_help = counts::COUNTS_EXAMPLES)]
    Counts(Called<Counts>),
    /// Serve a recording to GDB, which steps through it forwards and backwards.
    #[command(after_long_help = gdb::GDB_EXAMPLES)]
    Gdb(Called<Gdb>),
    /// Show a recording in the browser: a timeline, source and instructions, calls; step forwards and backwards.
    #[command(after_help = DECODED, after_long_help = view::VIEW_EXAMPLES)]
    View(Called<View>),
    /// Write a description of a capture, with what the options state and what was inferred: capture.toml, or a DS-5 snapshot.
    #[command(after_help = DECODED)]
    Describe(Called<Describe>),
    /// Print the help of a command, or a page of the documentation: formats, guides, what a protocol supports.
    Help(Called<Help>),
}

impl Command {
    /// The command with its arguments.
    pub(crate) fn task(&self) -> &dyn Task {
        match self {
            Self::Info(args) => &**args,
            Self::Packets(args) => &**args,
            Self::Flow(args) => &**args,
            Self::Crash(args) => &**args,
            Self::Record(args) => &**args,
            Self::Itm(args) => &**args,
            Self::Coverage(args) => &**args,
            Self::Profile(args) => &**args,
            Self::Calls(args) => &**args,
            Self::Timeline(args) => &**args,
            Self::Interrupts(args) => &**args,
            Self::Tasks(args) => &**args,
            Self::Diff(args) => &**args,
            Self::Counts(args) => &**args,
            Self::Gdb(args) => &**args,
            Self::View(args) => &**args,
            Self::Describe(args) => &**args,
            Self::Help(args) => &**args,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Info {
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,

    /// The output format.
    #[arg(long, value_parser = built_in::listed(formats::INFO), default_value = "text", help_heading = "Output")]
    pub(crate) format: &'static Format<WriteInfo>,

    /// The output file; its extension states the format. Standard output if omitted.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// The table that --format csv and parquet write.
    #[arg(long, value_name = "TABLE", value_parser = built_in::table(&INFO_TABLES), default_value = INFO_TABLES[0], help_heading = "Output")]
    pub(crate) table: &'static str,
}

/// The tables of `itm`.
const TABLES: [&str; 4] = [ITM_TABLES[0], ITM_TABLES[1], ITM_TABLES[2], VALUES_TABLE];

#[derive(Args, Debug)]
pub(crate) struct Itm {
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,

    /// The output format.
    #[arg(long, value_parser = built_in::listed(formats::ITM), default_value = "text", help_heading = "Output")]
    pub(crate) format: &'static Format<MakeItm>,

    /// With --format text: print the bytes of this stimulus port of an ITM, 0 to 255; of port 0 if omitted. Can be given several
    /// times.
    #[arg(long = "port", value_name = "PORT", help_heading = "Output")]
    pub(crate) ports: Vec<u8>,

    /// The output file; its extension states the format. Standard output if omitted.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// The table that --format csv and parquet write. `itm_values` has the values of watched data and of stimulus ports over time.
    #[arg(long, value_name = "TABLE", value_parser = built_in::table(&TABLES), default_value = TABLES[0], help_heading = "Output")]
    pub(crate) table: &'static str,
}

#[derive(Args, Debug)]
pub(crate) struct Describe {
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,

    /// Registers and memory of the halted processor, as a debugger printed or saved them, if they are not in the capture: `crash`
    /// then reads this file without an option.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Capture")]
    pub(crate) dump: Option<PathBuf>,

    /// The format of the description.
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub(crate) format: DescribeFormat,

    /// The file to write, in the directory of the files that it names or above; for `ds5` a directory, which must be empty if it
    /// exists. Without this option a capture.toml is printed, with paths relative to the capture's directory.
    #[arg(short, long, value_name = "PLACE", required_if_eq("format", "ds5"), value_hint = ValueHint::AnyPath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
}

/// The format of a description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DescribeFormat {
    /// A capture.toml
    #[default]
    Toml,
    /// A snapshot directory, as DS-5 and OpenCSD read it
    Ds5,
}

#[derive(Args, Debug)]
pub(crate) struct Packets {
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,

    /// The output format.
    #[arg(long, value_parser = built_in::listed(formats::PACKETS), default_value = "text", help_heading = "Output")]
    pub(crate) format: &'static Format<MakePackets>,

    /// The output file; its extension states the format. Standard output if omitted.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(Args, Debug)]
pub(crate) struct Flow {
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,

    /// Follow the image even if the trace contradicts it repeatedly.
    #[arg(long, help_heading = "Program")]
    pub(crate) trust_image: bool,

    /// What to do with doubtful execution: everything between two proven positions if the trace between them is
    /// contradictory, malformed or incomplete.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = DoubtfulChoice::Keep, help_heading = "Program")]
    pub(crate) doubtful: DoubtfulChoice,

    /// The output format.
    #[arg(long, value_parser = built_in::listed(formats::FLOW), default_value = "text", help_heading = "Output")]
    pub(crate) format: &'static Format<MakeFlow>,

    /// Print the lines of the source files between the instructions.
    #[arg(long = "src-lines", help_heading = "Output")]
    pub(crate) source_lines: bool,

    /// Print what was in registers and memory, as far as the path proves it.
    #[arg(long, conflicts_with = "source_lines", help_heading = "Output")]
    pub(crate) values: bool,

    /// Print only instructions that wrote this register, with this value if one is given, for example r3=0; can be given several times.
    #[arg(long = "where", value_name = "REGISTER[=VALUE]", value_parser = values::register, requires = "values", help_heading = "Output")]
    pub(crate) written: Vec<Search>,

    /// Print only stores to the byte at this address, or to this variable; can be given several times.
    #[arg(long, value_name = "ADDRESS|SYMBOL", requires = "values", help_heading = "Output")]
    pub(crate) writes: Vec<String>,

    /// Registers and memory of the halted processor, as a debugger printed or saved them: more values can be proven with them if the
    /// trace ends where it halted.
    #[arg(long, value_name = "FILE", requires = "values", value_hint = ValueHint::FilePath, help_heading = "Capture")]
    pub(crate) dump: Option<PathBuf>,

    /// An additional directory of source files; can be given several times.
    #[arg(long = "src-dir", value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub(crate) source_dirs: Vec<PathBuf>,

    /// Print the last N instructions of each source (of the window, if --from or --to is given) and the events among them; an
    /// address in no image counts as one instruction.
    #[arg(long, value_name = "N", help_heading = "Window")]
    pub(crate) last: Option<u64>,

    #[command(flatten)]
    window: WindowArgs,

    #[command(flatten)]
    around: AroundArgs,

    /// The output file; its extension states the format. Standard output if omitted.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

impl Flow {
    /// How far the image is trusted.
    pub(crate) fn trust(&self) -> Trust {
        Trust { image: self.trust_image, doubtful: self.doubtful.into() }
    }

    /// The part of each source to print; `None` for all of it.
    pub(crate) fn selection(&self) -> Result<Option<Selection>, Failure> {
        if let Some((place, count)) = &self.around.around {
            return Ok(Some(Selection::around(place.clone(), *count, *count)));
        }
        let window = self.window.window()?;
        Ok((window != Window::default()).then(|| Selection::of(window)))
    }

    /// What is searched in the values of this program.
    pub(crate) fn searches(&self, code: &Code, is_a64: bool) -> Result<Vec<Search>, Failure> {
        self.written.iter().try_for_each(|search| values::check(search, is_a64))?;
        let bytes = self.writes.iter().map(|text| values::bytes(text, code));
        self.written.iter().cloned().map(Ok).chain(bytes).collect()
    }

    /// How sources are followed.
    pub(crate) fn how(&self) -> Follow {
        let looked_up = self
            .window
            .places()
            .chain(self.around.around.iter().map(|(place, _)| place))
            .any(Place::needs_names);
        let names = (self.format.make.names || looked_up).then(|| self.source_dirs.clone());
        Follow { trust: self.trust(), threads: self.work.threads, names, ..Follow::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        let mut whole = Cli::arranged();
        whole.build();
        whole.debug_assert();
    }
}
