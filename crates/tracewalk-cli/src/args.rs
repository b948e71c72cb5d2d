//! The command line: options in, plain values out. What they mean is decided elsewhere.

mod arrival;
mod built_in;
mod coverage;
mod diff;
mod profile;
mod recording;
mod request;
mod results;
mod timeline;
mod window;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use tracewalk::ids::TraceId;
use tracewalk_input::MemoryLimit;
use tracewalk_input::capture::{Container, SourceDescription};
use tracewalk_input::image::ImageRequest;
use tracewalk_report::formats::{self, Format, MakeFlow, MakePackets};
use tracewalk_session::Trust;

pub(crate) use arrival::ArrivalArgs;
pub(crate) use built_in::Pattern;
pub(crate) use coverage::{Coverage, Limit, Merge};
pub(crate) use diff::Diff;
pub(crate) use profile::{Calls, CostChoice, DoubtfulChoice, Fold, FollowArgs, Profile, ProfileRows};
pub(crate) use recording::RecordingArgs;
pub(crate) use timeline::{Interrupts, Timeline};
pub(crate) use window::WindowArgs;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXIT_STATUS: &str = "\
Exit status:
  0  everything was decoded
  1  something was to be checked, and it did not hold
  2  something could not be read, or the trace had malformed parts or gaps;
     what could be decoded is printed all the same";

const FLOW_EXAMPLES: &str = "\
Examples:
  tracewalk flow capture.toml
      everything, with functions, source lines and call depth
  tracewalk flow swo.bin --image firmware.elf --functions
      only the functions, as a tree of calls
  tracewalk flow etb.bin --source 0x10=etmv3,cpu=cortex-a7 --image 0x80000000:kernel.bin
      a buffer whose source is known, and a dump of the memory that ran
  tracewalk flow mtb.bin --registers mtb.txt --image firmware.elf --last 50 --source-lines
      the last 50 instructions, with the lines of the source
  tracewalk flow capture.toml --format runs
      only the addresses, for scripts

Exit status:
  0  everything was decoded
  2  something could not be read, or the trace had malformed parts or gaps;
     what could be decoded is printed all the same";

/// What an Arm core executed, from its CoreSight trace.
#[derive(Debug, Parser)]
#[command(
    name = "tracewalk",
    version,
    styles = STYLES,
    max_term_width = 100,
    propagate_version = true,
    after_help = EXIT_STATUS,
    after_long_help = concat!(
        "Examples:\n",
        "  tracewalk info swo.bin --image firmware.elf\n",
        "      what is in a capture, and the options that say the same\n",
        "  tracewalk flow swo.bin --image firmware.elf\n",
        "      every instruction that ran, with functions and source lines\n",
        "  tracewalk flow mtb.bin --registers mtb.txt --image firmware.elf --last 50\n",
        "      the last 50 instructions before a crash\n",
        "\n",
        "Exit status:\n",
        "  0  everything was decoded\n",
        "  1  something was to be checked, and it did not hold\n",
        "  2  something could not be read, or the trace had malformed parts or gaps;\n",
        "     what could be decoded is printed all the same",
    )
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// When to use colours; NO_COLOR in the environment is obeyed.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, global = true, help_heading = "Output")]
    pub(crate) color: When,

    /// Write a JSON file that says what the result was made of: version, options, hashes of the inputs, what was lost and what
    /// could not be observed (docs/formats.md). Without a name it is the result's file with .provenance.json behind it.
    #[arg(long, value_name = "FILE", global = true, num_args = 0..=1, require_equals = true, value_hint = ValueHint::FilePath, help_heading = "Output")]
    #[allow(clippy::option_option, reason = "no file, its usual name, or the one that was said")]
    pub(crate) provenance: Option<Option<PathBuf>>,

    /// Print no notes and no progress on standard error, only warnings and errors.
    #[arg(short, long, global = true, help_heading = "Output")]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say what is in a capture: container, sources, synchronisation, losses, time span.
    #[command(after_help = EXIT_STATUS)]
    Info(Info),
    /// Print the packets of each source.
    #[command(after_help = EXIT_STATUS)]
    Packets(Packets),
    /// Print what was executed.
    #[command(after_help = EXIT_STATUS, after_long_help = FLOW_EXAMPLES)]
    Flow(Flow),
    /// Print what an ITM told: text of the program, and with --format events what the DWT watched.
    #[command(after_help = EXIT_STATUS)]
    Itm(Itm),
    /// Report what of a program ran: lines, branches, functions, without instrumentation.
    #[command(after_help = EXIT_STATUS, after_long_help = coverage::EXAMPLES)]
    Coverage(Box<Coverage>),
    /// Report what functions cost: a table, a flame graph, or a file for another profiler.
    #[command(after_help = EXIT_STATUS, after_long_help = profile::PROFILE_EXAMPLES)]
    Profile(Box<Profile>),
    /// Print the functions that ran, as a tree of calls.
    #[command(after_help = EXIT_STATUS, after_long_help = profile::CALLS_EXAMPLES)]
    Calls(Box<Calls>),
    /// Show when what ran: functions, interrupts and tasks along one axis.
    #[command(after_help = EXIT_STATUS, after_long_help = timeline::TIMELINE_EXAMPLES)]
    Timeline(Box<Timeline>),
    /// Report how often exceptions were taken, and how long they took.
    #[command(after_help = EXIT_STATUS, after_long_help = timeline::INTERRUPTS_EXAMPLES)]
    Interrupts(Box<Interrupts>),
    /// Report what differs between two captures of one program: where their paths part, functions, coverage.
    #[command(after_long_help = diff::DIFF_EXAMPLES)]
    Diff(Box<Diff>),
    /// Put saved coverage, profiles or figures of interrupts of several runs together.
    Merge(Merge),
    /// Write a capture.toml that says all that the options say and that was found out.
    #[command(after_help = EXIT_STATUS)]
    Describe(Describe),
    /// Write a snapshot directory, as DS-5 and OpenCSD read it.
    #[command(after_help = EXIT_STATUS)]
    Snapshot(Snapshot),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write the manual pages into a directory.
    Man {
        /// The directory; it is made if it does not exist.
        #[arg(value_hint = ValueHint::DirPath)]
        directory: PathBuf,
    },
}

/// A capture and what the user says of it.
#[derive(Args, Clone, Debug)]
pub(crate) struct CaptureArgs {
    /// A file of trace bytes, a capture.toml, or a snapshot directory; - is standard input.
    ///
    /// tcp:HOST:PORT is a server that sends trace bytes as they are, like the legacy port of orbuculum. It and standard
    /// input are decoded as their bytes come.
    ///
    /// A recording of a logic analyser (a sigrok session, VCD or CSV) stands for the bytes on its wires.
    ///
    /// Memory that holds the trace may also be Intel HEX, S-records, an ELF core file, or text as GDB, OpenOCD, J-Link,
    /// pyOCD or probe-rs print it.
    ///
    /// What the options do not say of a file of trace bytes is found out from the bytes and the image, and told on
    /// standard error as the options that would have said it.
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) capture: PathBuf,

    /// How the bytes are packed: `auto`, `frames` (CoreSight frames from a trace buffer), `tpiu` (frames from a trace
    /// port, with FSYNC and HSYNC, at any alignment), `raw` (one source's bytes) or `mtb` (an MTB's RAM).
    #[arg(long, value_name = "CONTAINER", value_parser = container, help_heading = "Capture")]
    pub(crate) container: Option<ContainerChoice>,

    /// Where the memory was that the file holds, if it holds more than the trace buffer and does not say it itself.
    #[arg(long, value_name = "ADDRESS", value_parser = register, help_heading = "Capture")]
    pub(crate) dump_address: Option<u32>,

    /// Of a trace port (--container tpiu) with no FSYNC in the capture: the first frame starts behind so many bytes, 0 to 15.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..16), help_heading = "Capture")]
    pub(crate) frame_start: Option<u8>,

    /// A buffer that went round, read from its first address on: where in the file its oldest byte is, by the buffer's
    /// read pointer (an ETB's RWP counts words: four times that).
    #[arg(long, value_name = "OFFSET", value_parser = register, help_heading = "Capture")]
    pub(crate) read_pointer: Option<u32>,

    /// Each 32-bit word of the file has its highest byte first.
    #[arg(long, help_heading = "Capture")]
    pub(crate) swap_words: bool,

    /// Find nothing out: what is not said and is needed is an error.
    #[arg(long, help_heading = "Capture")]
    pub(crate) strict: bool,

    /// How much memory may be used, like 512M or 2G; at least 32M.
    ///
    /// Images, symbols and source lines have to fit into a quarter each: what does not is left out or refused with a
    /// warning. So many threads decode as fit into the last quarter. Where memory runs out nevertheless, because results
    /// grow with the trace, decoding ends, what was found up to there is printed, and the exit status is 2; this is
    /// known on Linux only. Files that are mapped do not count, a capture among them.
    #[arg(long, value_name = "SIZE", help_heading = "Capture")]
    pub(crate) memory: Option<MemoryLimit>,

    #[command(flatten)]
    pub(crate) arrival: ArrivalArgs,

    /// A source: [ID=]PROTOCOL[,key=value…].
    ///
    /// PROTOCOL is `etmv3`, `pft`, `mtb` or `itm`. Keys are `cpu=cortex-m3`, which gives the usual register values, and the
    /// registers by Arm's names in lower case: `etmcr=`, `etmidr=`, `etmccer=`, `etmtraceidr=`.
    #[arg(long = "source", value_name = "SOURCE", help_heading = "Capture")]
    pub(crate) sources: Vec<SourceDescription>,

    /// Only this trace ID (hexadecimal with 0x, or decimal); can be given several times.
    #[arg(long = "id", value_name = "ID", value_parser = trace_id, help_heading = "Capture")]
    pub(crate) ids: Vec<TraceId>,

    #[command(flatten)]
    pub(crate) recording: RecordingArgs,

    /// The program: an ELF file, or ADDRESS:FILE for raw memory bytes; can be given several times.
    ///
    /// With @context=ID, @vmid=ID or @context=ID,vmid=ID behind it the image is visible only while the trace says that
    /// this context ID or virtual machine runs, and covers what is visible otherwise: FILE@context=0x42.
    #[arg(long = "image", value_name = "[ADDRESS:]FILE[@context=ID]", value_hint = ValueHint::FilePath, help_heading = "Program")]
    pub(crate) images: Vec<ImageRequest>,

    /// The chip's CMSIS-SVD file, which says what its interrupts are called.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Program")]
    pub(crate) svd: Option<PathBuf>,

    /// Where M profile's table of vectors is (the register VTOR), if not where the program's symbols or the reset place
    /// it: exceptions are numbered by it.
    #[arg(long, value_name = "ADDRESS", value_parser = register, help_heading = "Program")]
    pub(crate) vtor: Option<u32>,

    /// The MTB's POSITION register: where the buffer's oldest packet is.
    #[arg(long, value_name = "VALUE", value_parser = register, help_heading = "MTB")]
    pub(crate) mtb_position: Option<u32>,

    /// The MTB's MASTER register: how large the buffer is.
    #[arg(long, value_name = "VALUE", value_parser = register, help_heading = "MTB")]
    pub(crate) mtb_master: Option<u32>,

    /// The MTB's BASE register: where its RAM is.
    #[arg(long, value_name = "VALUE", value_parser = register, help_heading = "MTB")]
    pub(crate) mtb_base: Option<u32>,

    /// Where the processor was found halted, if the MTB had been on up to there: what ran behind the last packet is
    /// known then as well.
    #[arg(long, visible_alias = "pc", value_name = "ADDRESS", value_parser = register, help_heading = "MTB")]
    pub(crate) mtb_pc: Option<u32>,

    /// A file with lines like MTB_POSITION=0x….
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "MTB")]
    pub(crate) registers: Option<PathBuf>,
}

/// How the work is done and measured.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WorkArgs {
    /// Print one line of JSON on standard error at the end: how much there was and how long it took.
    #[arg(long, help_heading = "Output")]
    pub(crate) stats: bool,

    /// How many threads decode program flow, without this as many as there are processors. The output does not depend on it.
    #[arg(long, value_name = "N", default_value_t = processors(), hide_default_value = true, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Output")]
    pub(crate) threads: u16,
}

/// How many processors this process may use.
fn processors() -> u16 {
    std::thread::available_parallelism().ok().and_then(|count| u16::try_from(count.get()).ok()).unwrap_or(1)
}

#[derive(Args, Debug)]
pub(crate) struct Info {
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
}

#[derive(Args, Debug)]
pub(crate) struct Itm {
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,

    /// The output format.
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub(crate) format: ItmFormat,

    /// With --format text: what was written to this stimulus port, 0 to 255; 0 without the option. Can be given several times.
    #[arg(long = "port", value_name = "PORT", help_heading = "Output")]
    pub(crate) ports: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ItmFormat {
    /// The bytes that software wrote to a stimulus port.
    #[default]
    Text,
    /// A line for each thing that was told, with its offset in the capture.
    Events,
    /// A JSON object for each.
    Jsonl,
}

#[derive(Args, Debug)]
pub(crate) struct Describe {
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,

    /// Where to write it: beside the files that it names, or above them. Without, it is printed as it would have to stand
    /// beside the capture.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Snapshot {
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,

    /// The directory to write; it is made, and must be empty if it exists.
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub(crate) output: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct Packets {
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,

    /// The output format.
    #[arg(long, value_parser = built_in::listed(formats::PACKETS), default_value = "text", help_heading = "Output")]
    pub(crate) format: &'static Format<MakePackets>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(Args, Debug)]
pub(crate) struct Flow {
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,

    /// Follow the image even where the trace contradicts it all the time.
    #[arg(long, help_heading = "Program")]
    pub(crate) trust_image: bool,

    /// What to do with what damage puts in doubt: what was told since the trace last proved the position by itself, where a
    /// contradiction, malformed trace or a loss comes behind it, up to where it proves the position again.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = DoubtfulChoice::Keep, help_heading = "Program")]
    pub(crate) doubtful: DoubtfulChoice,

    /// The output format.
    #[arg(long, value_parser = built_in::listed(formats::FLOW), default_value = "text", help_heading = "Output")]
    pub(crate) format: &'static Format<MakeFlow>,

    /// Print only the functions that ran, as a tree of calls.
    #[arg(long, help_heading = "Output")]
    pub(crate) functions: bool,

    /// Print the lines of the source files between the instructions.
    #[arg(long, conflicts_with = "functions", help_heading = "Output")]
    pub(crate) source_lines: bool,

    /// Where else to look for source files; can be given several times.
    #[arg(long = "source-dir", value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub(crate) source_dirs: Vec<PathBuf>,

    /// Print only the last N instructions of each source, and what happened between them.
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub(crate) last: Option<u64>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

impl Flow {
    /// What is believed.
    pub(crate) fn trust(&self) -> Trust {
        Trust { image: self.trust_image, doubtful: self.doubtful.into() }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// `--container`: a container, or that it has to be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContainerChoice {
    Auto,
    Is(Container),
}

fn container(word: &str) -> Result<ContainerChoice, String> {
    if word == "auto" {
        return Ok(ContainerChoice::Auto);
    }
    word.parse()
        .map(ContainerChoice::Is)
        .map_err(|error: tracewalk_input::capture::UnknownContainer| error.to_string())
}

fn trace_id(text: &str) -> Result<TraceId, String> {
    let id = number(text).and_then(|number| TraceId::new(number.try_into().ok()?));
    id.ok_or_else(|| "expected a trace ID from 0x01 to 0x6f".to_owned())
}

fn register(text: &str) -> Result<u32, String> {
    let number = number(text).and_then(|number| number.try_into().ok());
    number.ok_or_else(|| "expected a number of 32 bits, like 0x20000000".to_owned())
}

/// A number of at most 64 bits, in hexadecimal with 0x or in decimal; underscores may group the digits.
fn number(text: &str) -> Option<u64> {
    let digits = text.replace('_', "");
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) if !hex.starts_with('+') => u64::from_str_radix(hex, 16),
        Some(_) => return None,
        None if digits.starts_with('+') => return None,
        None => digits.parse(),
    };
    number.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn ids_are_hexadecimal_or_decimal() {
        assert_eq!(trace_id("0x10"), Ok(TraceId::new(16).unwrap()));
        assert_eq!(trace_id("16"), Ok(TraceId::new(16).unwrap()));
        for wrong in ["", "0", "0x70", "-1", "+1", "0x+1", "ten", "1000"] {
            assert!(trace_id(wrong).is_err(), "{wrong}");
        }
    }
}
