//! The packets, in the order of the specification (DDI 0403E, D4.2 and D4.3).

use super::super::{Describe, Field};
use crate::ids::Address;

/// One packet of an ITM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packet {
    /// At least 47 zero bits and a one (D4.2.1).
    Sync,
    /// Packets were dropped, or a timestamp counter overflowed (D4.2.3).
    Overflow,
    /// Time since the last local timestamp (D4.2.4).
    LocalTimestamp {
        /// The subject of the time.
        delay: TimestampDelay,
        /// In ticks of the timestamp counter, up to 28 bits.
        ticks: u32,
    },
    /// The low bits of the global timestamp that have changed (GTS1, D4.2.5).
    GlobalTimestampLow {
        /// The bits.
        value: u32,
        /// The number of bits, up to 26. Higher bits are those of the last packet.
        bits: u8,
        /// Whether the clock's rate changed since the last packet.
        clock_changed: bool,
        /// Whether the high bits have changed: a packet with them follows.
        wrapped: bool,
    },
    /// The high bits of the global timestamp, from bit 26 on (GTS2, D4.2.5).
    GlobalTimestampHigh {
        /// The bits, as a number: 22 or 38 of them.
        value: u64,
        /// Whether the timestamp has 64 bits instead of 48.
        long: bool,
    },
    /// The page of 32 stimulus ports that the next packets belong to (D4.2.6).
    StimulusPage(u8),
    /// Another, unknown extension of a source's packets (D4.2.6).
    Extension {
        /// Whether the source is hardware.
        hardware: bool,
        /// The extension's value.
        value: u32,
    },
    /// Software wrote to a stimulus port (D4.2.7).
    Stimulus {
        /// The port within the page, 0 to 31.
        port: u8,
        /// The size of the write.
        size: Size,
        /// The value that was written.
        value: u32,
    },
    /// Counters of the DWT that wrapped (discriminator 0, D4.3.1).
    EventCounters(Counters),
    /// An exception (discriminator 1, D4.3.2).
    Exception {
        /// The exception's number (IPSR).
        number: u16,
        /// The event of the exception.
        action: ExceptionAction,
    },
    /// A sample of the program counter; `None` while the processor sleeps (discriminator 2, D4.3.3).
    PcSample(Option<Address>),
    /// The instruction of an access that a comparator watches (D4.3.4).
    DataPc {
        /// The comparator, 0 to 3.
        comparator: u8,
        /// The instruction.
        address: Address,
    },
    /// The low half of the address of an access that a comparator watches (D4.3.4).
    DataAddress {
        /// The comparator, 0 to 3.
        comparator: u8,
        /// Bits 15 to 0 of the address.
        low_half: u16,
    },
    /// The value of an access that a comparator watches (D4.3.4).
    DataValue {
        /// The comparator, 0 to 3.
        comparator: u8,
        /// Whether the access was a write.
        write: bool,
        /// The size of the access.
        size: Size,
        /// The value.
        value: u32,
    },
}

/// The payload size of a source packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Size {
    /// One byte.
    Byte,
    /// Two.
    Halfword,
    /// Four.
    Word,
}

/// The delays between an event, its packet and the local timestamp after the packet (D4.2.4, TC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimestampDelay {
    /// The timestamp is the time at which the packet before it was generated.
    None,
    /// The timestamp was delayed: it is the time at which the timestamp itself was generated.
    Timestamp,
    /// The packet was delayed after its event: the timestamp is the time at which the packet was generated.
    Packet,
    /// Both were delayed.
    Both,
}

/// An event of an exception (D4.3.2, FN).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExceptionAction {
    /// The exception was entered.
    Entered,
    /// The exception was left.
    Exited,
    /// Execution returned to the exception.
    Returned,
}

/// The counters that wrapped (D4.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Counters(pub(super) u8);

/// The counters' names, from bit 0 on.
const COUNTERS: [&str; 6] = ["cpi", "exc", "sleep", "lsu", "fold", "cyc"];

impl Counters {
    /// The counters whose bits are set, from bit 0 on: CPI, EXC, SLEEP, LSU, FOLD, CYC.
    #[must_use]
    pub const fn new(bits: u8) -> Self {
        Self(bits)
    }

    /// The counters' names.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        COUNTERS.iter().enumerate().filter(move |(bit, _)| self.0 >> bit & 1 == 1).map(|(_, name)| *name)
    }
}

impl Size {
    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u8 {
        match self {
            Self::Byte => 1,
            Self::Halfword => 2,
            Self::Word => 4,
        }
    }
}

impl TimestampDelay {
    /// The delayed item, in a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Timestamp => "timestamp",
            Self::Packet => "packet",
            Self::Both => "both",
        }
    }
}

impl ExceptionAction {
    /// The event, in a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Entered => "entered",
            Self::Exited => "exited",
            Self::Returned => "returned",
        }
    }
}

impl Describe for Packet {
    fn name(&self) -> &'static str {
        match self {
            Self::Sync => "a_sync",
            Self::Overflow => "overflow",
            Self::LocalTimestamp { .. } => "local_timestamp",
            Self::GlobalTimestampLow { .. } => "global_timestamp_low",
            Self::GlobalTimestampHigh { .. } => "global_timestamp_high",
            Self::StimulusPage(_) => "stimulus_page",
            Self::Extension { .. } => "extension",
            Self::Stimulus { .. } => "stimulus",
            Self::EventCounters(_) => "event_counters",
            Self::Exception { .. } => "exception",
            Self::PcSample(_) => "pc_sample",
            Self::DataPc { .. } => "data_pc",
            Self::DataAddress { .. } => "data_address",
            Self::DataValue { .. } => "data_value",
        }
    }

    fn fields(&self, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
        let mut number = |name, value: u64| visit(name, Field::Number(value));
        match *self {
            Self::Sync | Self::Overflow | Self::PcSample(None) => {}
            Self::LocalTimestamp { delay, ticks } => {
                number("ticks", ticks.into());
                visit("delay", Field::Text(delay.name()));
            }
            Self::GlobalTimestampLow { value, bits, clock_changed, wrapped } => {
                number("value", value.into());
                number("bits", bits.into());
                number("clock_changed", clock_changed.into());
                number("wrapped", wrapped.into());
            }
            Self::GlobalTimestampHigh { value, long } => {
                number("value", value);
                number("long", long.into());
            }
            Self::StimulusPage(page) => number("page", page.into()),
            Self::Extension { hardware, value } => {
                number("hardware", hardware.into());
                number("value", value.into());
            }
            Self::Stimulus { port, size, value } => {
                number("port", port.into());
                number("size", size.bytes().into());
                number("value", value.into());
            }
            Self::EventCounters(counters) => counters.names().for_each(|name| number(name, 1)),
            Self::Exception { number: exception, action } => {
                number("number", exception.into());
                visit("action", Field::Text(action.name()));
            }
            Self::PcSample(Some(address)) => visit("addr", Field::Address(address)),
            Self::DataPc { comparator, address } => {
                number("comparator", comparator.into());
                visit("addr", Field::Address(address));
            }
            Self::DataAddress { comparator, low_half } => {
                number("comparator", comparator.into());
                number("low_half", low_half.into());
            }
            Self::DataValue { comparator, write, size, value } => {
                number("comparator", comparator.into());
                number("write", write.into());
                number("size", size.bytes().into());
                number("value", value.into());
            }
        }
    }
}
