//! Both decoders' output in a common form.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use tracewalk::flow::Gap;
use tracewalk::ids::{Address, Isa, Location};
use tracewalk::protocol::etmv4;
use tracewalk::source::SourceConfig;

/// A packet, or bytes that are not a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The offset of its first byte.
    pub at: u64,
    /// Its name in the line formats of `tracewalk packets`.
    pub kind: &'static str,
    /// The fields that the decoder reported.
    pub fields: BTreeMap<&'static str, Value>,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number or an address.
    Number(u64),
    /// A word.
    Text(String),
}

/// A step of the program, and the bytes of trace that it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The first byte.
    pub from: u64,
    /// The last byte.
    pub until: u64,
    /// The step.
    pub what: What,
}

/// The event of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// An instruction, and whether its condition passed or its branch was taken.
    Instruction {
        /// The instruction's location.
        at: Location,
        /// Whether its condition passed.
        passed: bool,
    },
    /// Several instructions that are still to be separated.
    Range(Range),
    /// An exception.
    Exception {
        /// The exception number.
        number: u16,
        /// Where execution continues after the exception, if the decoder reported it.
        preferred_return: Option<Address>,
    },
    /// The return from an exception.
    ExceptionReturn,
    /// Tracing began.
    TraceOn,
    /// Execution went to an unknown address.
    Unknown,
    /// Synchronisation was lost.
    Lost,
}

/// The field of malformed bytes that contains the reason.
pub const WHY: &str = "why";

/// One decoder's reading of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The packets, and the bytes that are not packets.
    pub packets: Vec<Packet>,
    /// The program's steps: instructions and exceptions.
    pub steps: Vec<Step>,
    /// Places where flow was lost or trace and image disagree.
    pub gaps: Vec<Gap>,
}

/// Consecutive instructions as OpenCSD prints them, which shows only for the last one whether it passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first instruction.
    pub start: Address,
    /// The address after the last one.
    pub end: Address,
    /// The size of the last one.
    pub last_bytes: u32,
    /// The instruction set.
    pub isa: Isa,
    /// Whether the last one passed.
    pub passed: bool,
}

/// The registers that a trace unit has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// ETMCR.
    pub etmcr: u32,
    /// ETMIDR.
    pub etmidr: u32,
    /// ETMCCER.
    pub etmccer: u32,
    /// The registers of ETMv4 and ETE.
    pub etmv4: etmv4::Registers,
}

impl Registers {
    /// The registers by the names that a snapshot uses, with this trace ID.
    #[must_use]
    pub fn named(&self, config: &SourceConfig, id: u8) -> Vec<(&'static str, u32)> {
        let id = u32::from(id);
        if !matches!(config, SourceConfig::Etmv4(_)) {
            let Self { etmcr, etmidr, etmccer, .. } = *self;
            return vec![("ETMCR", etmcr), ("ETMIDR", etmidr), ("ETMCCER", etmccer), ("ETMTRACEIDR", id)];
        }
        let all = [
            ("TRCCONFIGR", self.etmv4.trcconfigr),
            ("TRCTRACEIDR", Some(id)),
            ("TRCDEVARCH", self.etmv4.trcdevarch),
            ("TRCIDR0", self.etmv4.trcidr0),
            ("TRCIDR1", self.etmv4.trcidr1),
            ("TRCIDR2", self.etmv4.trcidr2),
            ("TRCIDR8", self.etmv4.trcidr8),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// The kind of bytes that are not a packet.
pub const MALFORMED: &str = "malformed";
/// The kind of bytes that were skipped in the search for synchronisation.
pub const UNSYNCHRONISED: &str = "unsynchronised";

impl Packet {
    /// The number in a field.
    #[must_use]
    pub fn number(&self, field: &str) -> Option<u64> {
        match self.fields.get(field) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// Whether this is a packet, as opposed to unreadable bytes.
    #[must_use]
    pub fn is_packet(&self) -> bool {
        self.kind != MALFORMED && self.kind != UNSYNCHRONISED
    }
}

impl Display for Packet {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at, self.kind)?;
        for (name, value) in &self.fields {
            match value {
                Value::Number(number) => write!(f, " {name}={number:#x}")?,
                Value::Text(text) => write!(f, " {name}={text}")?,
            }
        }
        Ok(())
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.from)?;
        match self.what {
            What::Instruction { at, passed } => write!(f, "{at} {}", if passed { "E" } else { "N" }),
            What::Exception { number, preferred_return: Some(address) } => {
                write!(f, "exception {number} returns to {address}")
            }
            What::Exception { number, .. } => write!(f, "exception {number}"),
            What::Range(range) => write!(f, "{range:?}"),
            What::ExceptionReturn => f.write_str("exception return"),
            What::TraceOn => f.write_str("trace on"),
            What::Unknown => f.write_str("unknown"),
            What::Lost => f.write_str("lost"),
        }
    }
}
