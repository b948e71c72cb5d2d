//! The options of `gdb`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use tracewalk_session::At;

use super::cache::CacheArgs;
use super::capture::CaptureArgs;

pub(crate) const GDB_EXAMPLES: &str = "\
Examples:
  tracewalk gdb crash.log --image firmware.elf
      wait for a debugger on 127.0.0.1:1234
  gdb-multiarch firmware.elf -ex 'target remote :1234'
      connect to it; then: reverse-stepi, reverse-next, reverse-continue
  gdb-multiarch firmware.elf -ex 'target remote | tracewalk gdb swo.bin --image firmware.elf --listen -'
      let GDB start it
  tracewalk gdb capture.toml --at first
      begin at the first instruction, not at the last one

Exit status:
  0  the debugger disconnected
  2  something could not be read, or no client can connect";

#[derive(Args, Debug)]
pub(crate) struct Gdb {
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,

    /// Follow the image even if the trace contradicts it repeatedly.
    #[arg(long, help_heading = "Program")]
    pub(crate) trust_image: bool,

    /// Registers and memory of the halted processor, as a debugger printed or saved them, if they are not in the capture. They are
    /// shown at the last place of the recording.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Capture")]
    pub(crate) dump: Option<PathBuf>,

    /// The initial step: first, last, or the number of a step, from 0.
    #[arg(long, value_name = "PLACE", default_value = "last", help_heading = "Debugger")]
    pub(crate) at: At,

    /// The address that debuggers connect to; port 0 selects a free port. Any client that can connect can read the
    /// program. `-` is standard input and output, for GDB's `target remote | COMMAND`.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        allow_hyphen_values = true,
        default_value = "127.0.0.1:1234",
        help_heading = "Debugger"
    )]
    pub(crate) listen: String,

    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}
