//! The packets, in the order of their headers.

use super::super::timestamp::TimestampCoding;
use super::super::{Describe, Field};

/// One packet of an STM. Masters, channels and times are whole, also if the packet holds only a part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packet {
    /// Filler.
    Null {
        /// The time, if the packet has one; an STM's never have.
        time: Option<u64>,
    },
    /// The next packets are of this master, and of its channel 0.
    Master {
        /// 0 to 127 is software, 128 the hardware events.
        master: u16,
        /// Whether the packet holds all 16 bits, and not the low 8. No STM sends such a packet.
        wide: bool,
    },
    /// Writes of the current master were lost.
    MasterError(u8),
    /// The next packets are of this channel.
    Channel {
        /// The stimulus port.
        channel: u16,
        /// Whether the packet holds all 16 bits, and not the low 8.
        wide: bool,
    },
    /// Data that was written.
    Data {
        /// The size of the packet. An STM that compresses data leaves leading zeros out.
        size: Size,
        /// The value.
        value: u64,
        /// Whether the write marks it.
        marker: bool,
        /// The time, if the write asks for it.
        time: Option<u64>,
    },
    /// Software wrote a flag, which ends a message.
    Flag {
        /// The time, if the write asks for it.
        time: Option<u64>,
    },
    /// Writes of several masters were lost.
    GlobalError(u8),
    /// 21 half bytes of ones and a zero.
    Async,
    /// The coding of the timestamps (versions 3 and 4). The next packets are of master 0, channel 0.
    Version(TimestampCoding),
    /// Software wrote a trigger.
    Trigger {
        /// The value.
        value: u8,
        /// The time, if the write asks for it.
        time: Option<u64>,
    },
    /// The frequency of the timestamp counter.
    Frequency {
        /// In hertz; 0 if it is not set.
        hertz: u32,
        /// The time, if the packet has one; an STM's never have.
        time: Option<u64>,
    },
}

/// The size of a packet with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Size {
    /// Half a byte.
    D4,
    /// One byte.
    D8,
    /// Two bytes.
    D16,
    /// Four bytes.
    D32,
    /// Eight bytes, of an STM-500.
    D64,
}

/// The writer of data: a master, and the stimulus port that it wrote to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sender {
    /// The master.
    pub master: u16,
    /// The channel.
    pub channel: u16,
}

impl Sender {
    /// The sender of the packets after `packet`.
    #[must_use]
    pub const fn after(self, packet: &Packet) -> Self {
        match *packet {
            Packet::Master { master, .. } => Self { master, channel: 0 },
            Packet::MasterError(_) => Self { channel: 0, ..self },
            Packet::Channel { channel, .. } => Self { channel, ..self },
            Packet::GlobalError(_) | Packet::Version(_) => Self { master: 0, channel: 0 },
            _ => self,
        }
    }
}

impl Size {
    /// The number of half bytes.
    #[must_use]
    pub const fn nibbles(self) -> usize {
        match self {
            Self::D4 => 1,
            Self::D8 => 2,
            Self::D16 => 4,
            Self::D32 => 8,
            Self::D64 => 16,
        }
    }

    /// The number of bytes; 1 for half a byte.
    #[must_use]
    pub const fn bytes(self) -> u8 {
        match self {
            Self::D4 | Self::D8 => 1,
            Self::D16 => 2,
            Self::D32 => 4,
            Self::D64 => 8,
        }
    }
}

impl Packet {
    /// The packet's time, if it has one.
    #[must_use]
    pub const fn time(&self) -> Option<u64> {
        match *self {
            Self::Null { time }
            | Self::Data { time, .. }
            | Self::Flag { time }
            | Self::Trigger { time, .. }
            | Self::Frequency { time, .. } => time,
            _ => None,
        }
    }
}

impl Describe for Packet {
    fn name(&self) -> &'static str {
        match self {
            Self::Null { .. } => "null",
            Self::Master { wide: false, .. } => "m8",
            Self::Master { wide: true, .. } => "m16",
            Self::MasterError(_) => "merr",
            Self::Channel { wide: false, .. } => "c8",
            Self::Channel { wide: true, .. } => "c16",
            Self::Data { size: Size::D4, .. } => "d4",
            Self::Data { size: Size::D8, .. } => "d8",
            Self::Data { size: Size::D16, .. } => "d16",
            Self::Data { size: Size::D32, .. } => "d32",
            Self::Data { size: Size::D64, .. } => "d64",
            Self::Flag { .. } => "flag",
            Self::GlobalError(_) => "gerr",
            Self::Async => "async",
            Self::Version(_) => "version",
            Self::Trigger { .. } => "trig",
            Self::Frequency { .. } => "freq",
        }
    }

    fn fields(&self, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
        match *self {
            Self::Async | Self::Null { .. } | Self::Flag { .. } => {}
            Self::Master { master, .. } => visit("master", Field::Number(master.into())),
            Self::Channel { channel, .. } => visit("channel", Field::Number(channel.into())),
            Self::MasterError(value) | Self::GlobalError(value) | Self::Trigger { value, .. } => {
                visit("value", Field::Bits(value.into()));
            }
            Self::Data { value, marker, .. } => {
                visit("value", Field::Bits(value));
                visit("marker", Field::Flag(marker));
            }
            Self::Version(coding) => visit("version", Field::Number(version_of(coding).into())),
            Self::Frequency { hertz, .. } => visit("frequency", Field::Number(hertz.into())),
        }
        if let Some(time) = self.time() {
            visit("timestamp", Field::Number(time));
        }
    }
}

/// The version that announces timestamps of this coding.
pub(super) const fn version_of(coding: TimestampCoding) -> u8 {
    match coding {
        TimestampCoding::Binary => 3,
        TimestampCoding::Gray => 4,
    }
}
