//! The options of `record`, and of other commands that speak to a target.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::TypedValueParser as _;
use clap::{Args, ValueHint};
use tracewalk_target::script::Dialect;

pub(crate) const RECORD_EXAMPLES: &str = "\
Examples:
  tracewalk record --gdb :3333 --image firmware.elf --until main_loop -o run1
      with the server of OpenOCD, pyOCD, J-Link, probe-rs or Black Magic
  tracewalk record --gdb :3333 --image firmware.elf --until 2 --buffer trace_buffer -o run1
      two seconds, on a chip that traces into the program's memory
  tracewalk record --gdb :3333 --image firmware.elf --dry-run
      the accesses that would set the trace units up, without any of them
  tracewalk coverage run1
      a recording is a capture for each command

Exit status:
  0  the recording was written
  2  the chip or the server refused; the target is left as far as possible as it was found";

/// The GDB server of a debug probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl std::str::FromStr for Server {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let (host, port) = parts.ok_or("expected HOST:PORT, or :PORT of this machine")?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Ok(Self { host: if host.is_empty() { "127.0.0.1" } else { host }.to_owned(), port })
    }
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// When a recording ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Function(String),
    Address(u32),
    After(Duration),
}

impl std::str::FromStr for End {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(address) = number(text).filter(|_| text.starts_with("0x")) {
            return Ok(Self::Address(address));
        }
        match text.parse::<f64>() {
            Ok(seconds) => Duration::try_from_secs_f64(seconds)
                .map(Self::After)
                .map_err(|_| "expected a function, an address with 0x, or a number of seconds".to_owned()),
            Err(_) => Ok(Self::Function(text.to_owned())),
        }
    }
}

/// The memory for the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    Variable(String),
    Range(u32, u32),
}

impl std::str::FromStr for Memory {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None => Ok(Self::Variable(text.to_owned())),
            Some((address, size)) => {
                let range = number(address).zip(number(size));
                let (address, size) =
                    range.ok_or("expected ADDRESS:SIZE, such as 0x20001000:4096, or a variable")?;
                Ok(Self::Range(address, size))
            }
        }
    }
}

/// An address or size.
fn number(text: &str) -> Option<u32> {
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok())
}

fn address(text: &str) -> Result<u32, String> {
    number(text).ok_or_else(|| "expected an address, such as 0xe00fe000".to_owned())
}

#[derive(Args, Debug)]
pub(crate) struct Record {
    /// The GDB server of the debug probe: OpenOCD, pyOCD, J-Link, probe-rs, Black Magic or ST-LINK. :3333 is port 3333 of this machine.
    #[arg(long, value_name = "HOST:PORT", required = true, help_heading = "Target")]
    pub(crate) gdb: Server,

    /// The address of the chip's first ROM table, if it is not at a usual place.
    #[arg(long, value_name = "ADDRESS", value_parser = address, help_heading = "Target")]
    pub(crate) rom: Option<u32>,

    /// The memory that the trace may overwrite, if the chip traces into the program's memory: a variable, or an address and size. The
    /// size is a power of two, and the address a multiple of it.
    #[arg(long, value_name = "VARIABLE|ADDRESS:SIZE", help_heading = "Target")]
    pub(crate) buffer: Option<Memory>,

    /// A chip whose ROM tables are not enough: imxrt1050, lpc43xx, nrf52840, nrf5340, nrf9160, rp2350, stm32f4,
    /// stm32h7, or a file that describes one. With imxrt1050, nrf52840, nrf5340 and stm32f4 the trace leaves through pins, for a logic
    /// analyser.
    #[arg(long, value_name = "NAME|FILE", help_heading = "Target")]
    pub(crate) chip: Option<String>,

    /// Reset and halt the target first, with the server's `monitor reset halt`.
    #[arg(long, conflicts_with = "dry_run", help_heading = "Target")]
    pub(crate) reset: bool,

    /// End where execution reaches this function or address, or after this number of seconds; with Ctrl-C in any case.
    #[arg(long, value_name = "FUNCTION|ADDRESS|SECONDS", help_heading = "Target")]
    pub(crate) until: Option<End>,

    /// End when the buffer is full, in place of keeping the newest trace: an MTB halts the processor for it, and memory that a DMA channel
    /// fills can do so, too.
    #[arg(long, help_heading = "Target")]
    pub(crate) head: bool,

    /// Record several times, each up to --until, into folders of this one: 1, 2 … An MTB halts the processor when its buffer is full, and
    /// goes on after it was read, so that all is one recording of up to N buffers without a gap.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..), conflicts_with_all = ["head", "dry_run", "script"], help_heading = "Target")]
    pub(crate) repeat: Option<u32>,

    /// Record exceptions with their times beside an ETM, by the ITM and the DWT.
    #[arg(long, help_heading = "Target")]
    pub(crate) itm: bool,

    /// The program's ELF file. A copy goes into the recording.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Program")]
    pub(crate) image: Option<PathBuf>,

    /// Print every access to the trace units instead. Only reads are made, to find them.
    #[arg(long, help_heading = "Output")]
    pub(crate) dry_run: bool,

    /// Print a script for gdb, openocd or pyocd instead, which makes the same accesses and writes trace.bin and capture.toml; only reads
    /// are made.
    #[arg(long, value_name = "PROGRAM", value_parser = clap::builder::PossibleValuesParser::new(["gdb", "openocd", "pyocd"]).try_map(|name| name.parse::<Dialect>()), conflicts_with_all = ["dry_run", "reset"], help_heading = "Output")]
    pub(crate) script: Option<Dialect>,

    /// The folder of the recording, which must be empty if it exists.
    #[arg(short, long, value_name = "FOLDER", required_unless_present_any = ["dry_run", "script"], value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
}
