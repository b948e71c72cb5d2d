//! Bytes → packets (DDI 0403E, D4.2, figure D4-1 and table D4-1).
//!
//! An ITM may never send a synchronisation packet, so that decoding begins at once; zeros before the first packet are
//! memory that was not written, or a line that was low. After bytes that are no
//! packet, decoding continues at the next synchronisation packet if there has been one before, else at the
//! next byte.

use super::super::a_sync::{ASync, ZeroRun};
use super::super::{Decode, Malformation, Step};
use super::packet::{Counters, ExceptionAction, Packet, Size, TimestampDelay};
use crate::ids::Address;

/// The packet decoder.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    searching: bool,
    /// Whether the ITM has sent anything.
    has_begun: bool,
    /// Whether the ITM has sent a synchronisation packet.
    synchronises: bool,
}

/// The synchronisation packet.
const A_SYNC: ASync = ASync::FIVE_ZEROS;

/// The lowest four bits of a header give its kind. If the lowest two are not zero, the packet is a source's.
const SIZE: u8 = 0b0000_0011;
const HARDWARE: u8 = 0b0000_0100;
const OVERFLOW: u8 = 0b0111_0000;
const GLOBAL_LOW: u8 = 0b1001_0100;
const GLOBAL_HIGH: u8 = 0b1011_0100;

/// The result of reading the start of the input.
enum Read {
    Packet(Packet, usize),
    Wrong(Malformation, usize),
    Unfinished,
}

impl Decoder {
    /// A decoder for the first byte of an ITM.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Decode for Decoder {
    type Packet = Packet;

    const A_SYNC: Option<ASync> = Some(A_SYNC);

    fn decode(&mut self, input: &[u8]) -> Step<Packet> {
        if self.searching {
            return match A_SYNC.search(input) {
                Step::Packet { bytes, .. } => {
                    (self.searching, self.has_begun) = (false, true);
                    Step::Packet { packet: Packet::Sync, bytes }
                }
                Step::Searched { bytes } => Step::Searched { bytes },
                Step::Malformed { reason, bytes } => Step::Malformed { reason, bytes },
                Step::NeedInput => Step::NeedInput,
            };
        }
        if !self.has_begun && input.first() == Some(&0) {
            match A_SYNC.zero_run(input) {
                // The last of many zeros may begin a synchronisation packet.
                ZeroRun::Other { zeros, found: 0 } => {
                    return Step::Searched { bytes: zeros as usize + 1 - A_SYNC.shortest().len() };
                }
                ZeroRun::Other { zeros, .. } => return Step::Searched { bytes: zeros as usize },
                ZeroRun::ASync { .. } | ZeroRun::Unfinished => {}
            }
        }
        match read(input) {
            Read::Packet(packet, bytes) => {
                self.has_begun = true;
                self.synchronises |= packet == Packet::Sync;
                Step::Packet { packet, bytes }
            }
            Read::Wrong(reason, bytes) => {
                self.has_begun = true;
                self.searching = self.synchronises;
                Step::Malformed { reason, bytes }
            }
            Read::Unfinished => Step::NeedInput,
        }
    }

    fn truncated(&self, input: &[u8]) -> Malformation {
        let packet = match input.first() {
            Some(0) => "a_sync",
            Some(header) if header & SIZE != 0 && header & HARDWARE == 0 => "stimulus",
            Some(header) if header & SIZE != 0 => "hardware_source",
            Some(&(GLOBAL_LOW | GLOBAL_HIGH)) => "global_timestamp",
            Some(header) if header & 0b1111 == 0 => "local_timestamp",
            _ => "extension",
        };
        Malformation::Truncated { packet }
    }

    fn desynchronise(&mut self) {
        self.searching = self.synchronises;
    }
}

fn read(input: &[u8]) -> Read {
    let Some(&header) = input.first() else { return Read::Unfinished };
    let rest = input.get(1..).unwrap_or_default();
    let reserved = Read::Wrong(Malformation::ReservedHeader { found: header }, 1);
    match header {
        0b0000_0000 => match A_SYNC.zero_run(input) {
            ZeroRun::ASync { bytes } => Read::Packet(Packet::Sync, bytes),
            ZeroRun::Other { zeros, found } => {
                Read::Wrong(A_SYNC.not_a_sync(zeros, found), (zeros as usize).max(1))
            }
            ZeroRun::Unfinished => Read::Unfinished,
        },
        OVERFLOW => Read::Packet(Packet::Overflow, 1),
        // Local timestamp, format 2: 0b0TTT0000.
        _ if header & 0b1000_1111 == 0 => {
            let ticks = u32::from(header >> 4 & 0b111);
            Read::Packet(Packet::LocalTimestamp { delay: TimestampDelay::None, ticks }, 1)
        }
        // Format 1: 0b11CC0000 and one to four bytes.
        _ if header & 0b1100_1111 == 0b1100_0000 => local_timestamp(header, rest),
        GLOBAL_LOW => global_low(rest),
        GLOBAL_HIGH => global_high(rest),
        // Extension: 0bCEEE1S00.
        _ if header & 0b0000_1011 == 0b0000_1000 => extension(header, rest),
        _ if header & SIZE == 0 => reserved,
        _ => source(header, rest),
    }
}

/// The value of a payload of seven bits a byte, lowest first; all bytes but the last have bit 7 set.
enum Continued {
    Value { value: u64, bytes: usize },
    TooLong,
    Unfinished,
}

fn continued(rest: &[u8], most: usize) -> Continued {
    let mut value = 0;
    for index in 0..most {
        let Some(&byte) = rest.get(index) else { return Continued::Unfinished };
        value |= u64::from(byte & 0b0111_1111) << (7 * index);
        if byte & 0b1000_0000 == 0 {
            return Continued::Value { value, bytes: index + 1 };
        }
    }
    Continued::TooLong
}

fn too_long(packet: &'static str, rest: &[u8], most: usize) -> Read {
    let found = rest.get(most - 1).copied().unwrap_or_default().into();
    let expected = "bit 7 clear in the last byte";
    Read::Wrong(Malformation::ReservedValue { packet, field: "payload", found, expected }, 1 + most)
}

fn local_timestamp(header: u8, rest: &[u8]) -> Read {
    const MOST: usize = 4;
    let delay = match header >> 4 & 0b11 {
        0b00 => TimestampDelay::None,
        0b01 => TimestampDelay::Timestamp,
        0b10 => TimestampDelay::Packet,
        _ => TimestampDelay::Both,
    };
    match continued(rest, MOST) {
        Continued::Value { value, bytes } => {
            let ticks = u32::try_from(value).unwrap_or(u32::MAX);
            Read::Packet(Packet::LocalTimestamp { delay, ticks }, 1 + bytes)
        }
        Continued::TooLong => too_long("local_timestamp", rest, MOST),
        Continued::Unfinished => Read::Unfinished,
    }
}

fn global_low(rest: &[u8]) -> Read {
    const MOST: usize = 4;
    match continued(rest, MOST) {
        Continued::Value { value, bytes } => {
            // The fourth byte has five bits of the timestamp, with ClkCh and Wrap above them.
            let (bits, flags) = if bytes == MOST { (26, value >> 26) } else { (7 * bytes, 0) };
            let value = u32::try_from(value & ((1 << bits) - 1)).unwrap_or(u32::MAX);
            let packet = Packet::GlobalTimestampLow {
                value,
                bits: u8::try_from(bits).unwrap_or(u8::MAX),
                clock_changed: flags & 0b01 != 0,
                wrapped: flags & 0b10 != 0,
            };
            Read::Packet(packet, 1 + bytes)
        }
        Continued::TooLong => too_long("global_timestamp_low", rest, MOST),
        Continued::Unfinished => Read::Unfinished,
    }
}

fn global_high(rest: &[u8]) -> Read {
    const SHORT: usize = 4;
    const LONG: usize = 6;
    match continued(rest, LONG) {
        Continued::Value { value, bytes: bytes @ (SHORT | LONG) } => {
            let long = bytes == LONG;
            let value = value & ((1 << if long { 38 } else { 22 }) - 1);
            Read::Packet(Packet::GlobalTimestampHigh { value, long }, 1 + bytes)
        }
        Continued::Value { bytes, .. } => {
            let found = bytes as u64;
            let (packet, field) = ("global_timestamp_high", "length");
            let expected = "4 or 6 bytes";
            Read::Wrong(Malformation::ReservedValue { packet, field, found, expected }, 1 + bytes)
        }
        Continued::TooLong => too_long("global_timestamp_high", rest, LONG),
        Continued::Unfinished => Read::Unfinished,
    }
}

fn extension(header: u8, rest: &[u8]) -> Read {
    const MOST: usize = 5;
    let first = u32::from(header >> 4 & 0b111);
    let hardware = header & HARDWARE != 0;
    let (value, bytes) = if header & 0b1000_0000 == 0 {
        (first, 1)
    } else {
        match continued(rest, MOST) {
            Continued::Value { value, bytes } => {
                // 3 bits of the header and 29 of the payload.
                (first | u32::try_from(value & 0x1fff_ffff).unwrap_or_default() << 3, 1 + bytes)
            }
            Continued::TooLong => return too_long("extension", rest, MOST),
            Continued::Unfinished => return Read::Unfinished,
        }
    };
    match (hardware, bytes) {
        (false, 1) => Read::Packet(Packet::StimulusPage(header >> 4 & 0b111), 1),
        _ => Read::Packet(Packet::Extension { hardware, value }, bytes),
    }
}

/// A packet of a stimulus port or of the DWT: 0bAAAAAHSS and one, two or four bytes.
fn source(header: u8, rest: &[u8]) -> Read {
    let size = match header & SIZE {
        0b01 => Size::Byte,
        0b10 => Size::Halfword,
        _ => Size::Word,
    };
    let id = header >> 3;
    let bytes = 1 + usize::from(size.bytes());
    let reserved = Read::Wrong(Malformation::ReservedHeader { found: header }, 1);
    let is_known = header & HARDWARE == 0
        || matches!(
            (id, size),
            (0, Size::Byte)
                | (1, Size::Halfword)
                | (2, Size::Byte | Size::Word)
                | (8 | 10 | 12 | 14, Size::Word)
                | (9 | 11 | 13 | 15, Size::Halfword)
                | (16..=23, _)
        );
    if !is_known {
        return reserved;
    }
    let Some(payload) = rest.get(..bytes - 1) else { return Read::Unfinished };
    let mut word = [0; 4];
    word.iter_mut().zip(payload).for_each(|(to, from)| *to = *from);
    let value = u32::from_le_bytes(word);
    let [low, high, ..] = word;
    if header & HARDWARE == 0 {
        return Read::Packet(Packet::Stimulus { port: id, size, value }, bytes);
    }
    let comparator = id >> 1 & 0b11;
    let packet = match (id, size) {
        (0, _) => Packet::EventCounters(Counters::new(low & 0b11_1111)),
        (1, _) => {
            let action = match high >> 4 & 0b11 {
                0b01 => ExceptionAction::Entered,
                0b10 => ExceptionAction::Exited,
                0b11 => ExceptionAction::Returned,
                _ => {
                    return reserved_value(
                        "exception",
                        "FN",
                        high.into(),
                        "1, 2 or 3 in bits 5 and 4",
                        bytes,
                    );
                }
            };
            Packet::Exception { number: u16::from_le_bytes([low, high & 1]), action }
        }
        (2, Size::Word) => Packet::PcSample(Some(Address::from(value))),
        (2, _) if low == 0 => Packet::PcSample(None),
        (2, _) => {
            return reserved_value("pc_sample", "payload", value.into(), "0 (the processor sleeps)", bytes);
        }
        (8..=15, Size::Word) => Packet::DataPc { comparator, address: Address::from(value) },
        (8..=15, _) => Packet::DataAddress { comparator, low_half: u16::from_le_bytes([low, high]) },
        _ => Packet::DataValue { comparator, write: id & 1 == 1, size, value },
    };
    Read::Packet(packet, bytes)
}

const fn reserved_value(
    packet: &'static str,
    field: &'static str,
    found: u64,
    expected: &'static str,
    bytes: usize,
) -> Read {
    Read::Wrong(Malformation::ReservedValue { packet, field, found, expected }, bytes)
}
