//! Why a target cannot be read or recorded.

use std::fmt;
use std::time::Duration;

use crate::plan::Register;

/// Why a target cannot be read or recorded. Each names the unit or the access that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// Nothing answers at the server's address.
    NoServer {
        /// The operating system's reason.
        why: String,
    },
    /// The server closed the connection.
    Closed,
    /// The server did not answer a request in time.
    Silent {
        /// The request.
        request: String,
        /// How long the answer was waited for.
        after: Duration,
    },
    /// What arrives is not GDB's protocol.
    NotGdb,
    /// The server refused a request.
    Refused {
        /// The request.
        request: String,
        /// The server's answer.
        answer: String,
    },
    /// The server has no target.
    NoTarget,
    /// Memory or a register cannot be accessed.
    Access {
        /// The address.
        address: u32,
        /// Whether it was written.
        written: bool,
        /// The server's answer.
        answer: String,
    },
    /// The chip has no ROM table at the usual places.
    NoRomTable,
    /// The chip has no unit that traces instructions.
    NoSource {
        /// The addresses of units that do not answer.
        silent: Vec<u32>,
    },
    /// Nothing keeps the trace of a source.
    NoBuffer {
        /// Whether the chip has a port to pins.
        has_port: bool,
        /// The addresses of units that do not answer.
        silent: Vec<u32>,
    },
    /// The source sent nothing.
    Nothing {
        /// The addresses of units that do not answer.
        silent: Vec<u32>,
    },
    /// Only writing to it shows the size of the MTB's memory.
    SizeUnknown,
    /// The trace goes to the program's own memory, of which no part was given.
    BufferNeeded,
    /// The given memory does not serve as a buffer.
    Buffer(BufferFault),
    /// The buffer keeps the newest trace, and cannot end the recording when it is full.
    KeepsNewest {
        /// What takes the trace.
        sink: String,
    },
    /// The chip has no ITM or no DWT.
    NoItm,
    /// A unit refuses to be set up.
    Unit {
        /// The register that shows it.
        at: Register,
        /// What is wrong.
        fault: Fault,
    },
    /// The target was reset while it was recorded.
    Reset,
}

/// Why memory does not serve as a trace buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferFault {
    /// Its size is not a power of two, or less than 16 bytes.
    Size(u32),
    /// Its address is not a multiple of its size.
    Address(u32),
    /// The unit cannot write there.
    Place(u32),
    /// It has more bytes than this.
    Large(u32),
}

/// What is wrong with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The software lock stays locked.
    Locked,
    /// The OS lock stays locked.
    OsLocked,
    /// Non-invasive debug is off.
    NotAllowed,
    /// All its registers read as zero: it has no power or no clock.
    Off,
    /// It does not reach the state that a step waits for.
    Stuck,
    /// Another debugger, or the program itself, uses it.
    Claimed,
    /// It has no trace of exceptions.
    NoTrace,
    /// It does not halt the processor when its buffer is full.
    HaltsNot,
    /// A register does not keep what was written.
    Kept {
        /// What was written.
        wrote: u32,
        /// What was read.
        found: u32,
    },
}

impl std::error::Error for Problem {}

impl Problem {
    /// The name, which is the same in all versions.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NoServer { .. } => "no_server",
            Self::Closed => "server_closed",
            Self::Silent { .. } => "server_silent",
            Self::NotGdb => "not_gdb",
            Self::Refused { .. } => "refused",
            Self::NoTarget => "no_target",
            Self::Access { .. } => "access_failed",
            Self::NoRomTable => "no_rom_table",
            Self::NoSource { .. } => "no_trace_unit",
            Self::NoBuffer { .. } => "no_trace_buffer",
            Self::Nothing { .. } => "nothing_recorded",
            Self::SizeUnknown => "size_unknown",
            Self::BufferNeeded => "buffer_needed",
            Self::Buffer(_) => "buffer_unusable",
            Self::KeepsNewest { .. } => "keeps_newest",
            Self::NoItm => "no_itm",
            Self::Unit { fault, .. } => match fault {
                Fault::Locked => "unit_locked",
                Fault::OsLocked => "unit_os_locked",
                Fault::NotAllowed => "trace_not_allowed",
                Fault::Off => "unit_off",
                Fault::Stuck => "unit_stuck",
                Fault::Claimed => "unit_claimed",
                Fault::NoTrace => "unit_without_trace",
                Fault::HaltsNot => "unit_halts_not",
                Fault::Kept { .. } => "unit_refuses",
            },
            Self::Reset => "target_reset",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoServer { why } => write!(f, "found no GDB server: {why}"),
            Self::Closed => f.write_str("the GDB server closed the connection"),
            Self::Silent { request, after } => {
                write!(f, "the GDB server did not answer `{request}` within {} s", after.as_secs())
            }
            Self::NotGdb => f.write_str("what the server sends is not GDB's protocol"),
            Self::Refused { request, answer } => {
                write!(f, "the GDB server refused `{request}`: {answer}")
            }
            Self::NoTarget => f.write_str("the GDB server has no target"),
            Self::Access { address, written, answer } => {
                let access = if *written { "written" } else { "read" };
                write!(f, "0x{address:08x} cannot be {access}: {answer}")
            }
            Self::NoRomTable => f.write_str("found no ROM table of CoreSight at the usual places"),
            Self::NoSource { silent } => {
                f.write_str("found no unit that traces instructions: no ETM and no MTB")?;
                write_silent(f, silent)
            }
            Self::NoBuffer { has_port, silent } => {
                f.write_str("found no ETB or TMC that keeps the trace of the chip's ETM")?;
                if *has_port && silent.is_empty() {
                    f.write_str(": the trace goes to the pins of the TPIU")?;
                }
                write_silent(f, silent)
            }
            Self::Nothing { silent } => {
                f.write_str("the trace unit sent nothing while the target ran")?;
                write_silent(f, silent)
            }
            Self::SizeUnknown => {
                f.write_str("the size of the MTB's memory shows only when a register is written")
            }
            Self::BufferNeeded => {
                f.write_str("the chip traces into the program's own memory, of which no part was given")
            }
            Self::Buffer(fault) => match fault {
                BufferFault::Size(size) => {
                    write!(f, "a trace buffer has 2^n bytes, at least 16, found {size}")
                }
                BufferFault::Address(address) => {
                    write!(f, "a trace buffer begins at a multiple of its size, found 0x{address:08x}")
                }
                BufferFault::Large(most) => write!(f, "the trace buffer can have at most {most} bytes"),
                BufferFault::Place(address) => {
                    write!(f, "the MTB cannot write to 0x{address:08x}")
                }
            },
            Self::KeepsNewest { sink } => {
                write!(f, "{sink} keeps the newest trace, and cannot stop when it is full")
            }
            Self::NoItm => f.write_str("found no ITM with a DWT, which trace exceptions"),
            Self::Unit { at, fault } => {
                let (unit, base) = (at.unit, at.base);
                match fault {
                    Fault::Locked => write!(f, "the {unit} at 0x{base:08x} stays locked"),
                    Fault::OsLocked => write!(f, "the OS lock of the {unit} at 0x{base:08x} stays locked"),
                    Fault::NotAllowed => {
                        write!(
                            f,
                            "non-invasive debug is off for the {unit} at 0x{base:08x}: it traces nothing"
                        )
                    }
                    Fault::Off => write!(f, "the {unit} at 0x{base:08x} has no power or no clock"),
                    Fault::Stuck => {
                        write!(f, "the {unit} at 0x{base:08x} does not become ready: {at} does not change")
                    }
                    Fault::Claimed => {
                        write!(
                            f,
                            "the {unit} at 0x{base:08x} is claimed by another debugger or by the program"
                        )
                    }
                    Fault::NoTrace => write!(f, "the {unit} at 0x{base:08x} does not trace exceptions"),
                    Fault::HaltsNot => write!(
                        f,
                        "the {unit} at 0x{base:08x} does not halt the processor when its buffer is full"
                    ),
                    Fault::Kept { wrote, found } => {
                        write!(
                            f,
                            "the {unit} at 0x{base:08x} does not keep {at}: wrote 0x{wrote:x}, read 0x{found:x}"
                        )
                    }
                }
            }
            Self::Reset => f.write_str("the target was reset while it was recorded"),
        }
    }
}

/// Names the units that do not answer.
fn write_silent(f: &mut fmt::Formatter<'_>, silent: &[u32]) -> fmt::Result {
    const NAMED: usize = 4;
    for (index, base) in silent.iter().take(NAMED).enumerate() {
        write!(f, "{}0x{base:08x}", if index == 0 { "; nothing answers at " } else { ", " })?;
    }
    if silent.len() > NAMED { write!(f, " and {} more", silent.len() - NAMED) } else { Ok(()) }
}
