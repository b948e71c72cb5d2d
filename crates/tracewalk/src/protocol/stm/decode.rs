//! Bytes → packets.
//!
//! Nothing can be decoded before the first ASYNC. After half bytes that are no packet, the decoder searches for the next ASYNC, also
//! inside these half bytes. An ASYNC inside a packet shows that the rest of the packet was lost.

use super::super::timestamp::{TimestampCoding, TimestampFormat, TimestampWidth};
use super::super::{Decode, Describe as _, Malformation, Step};
use super::nibbles::{ASYNC_ONES, Nibbles, Stop};
use super::packet::{Packet, Sender, Size};

/// The packet decoder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoder {
    step: InStep,
    /// The coding of timestamps, once a version packet has named it.
    coding: Option<TimestampCoding>,
    /// The last time. It outlasts a loss.
    time: u64,
    sender: Sender,
}

/// Where the next packet begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InStep {
    /// With the next byte, or with its second half.
    Yes { second_half: bool },
    /// Unknown. `ones`: whether the byte before the next ends in ones that may begin an ASYNC.
    No { ones: bool },
}

impl Default for InStep {
    fn default() -> Self {
        Self::No { ones: false }
    }
}

/// The half bytes of an ASYNC.
const ASYNC_LENGTH: usize = ASYNC_ONES + 1;

impl Decoder {
    /// A decoder for the first byte of an STM.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes the start of `input`. `last`: no more input comes.
    fn next(&mut self, input: &[u8], last: bool) -> Step<Packet> {
        let start = match self.step {
            InStep::No { ones } => return self.search(input, ones, last),
            InStep::Yes { second_half } => usize::from(second_half),
        };
        let mut nibbles = Nibbles::new(input, start);
        let packet = match self.read(&mut nibbles) {
            Ok(packet) => packet,
            Err(Stop::Wrong(reason)) => return self.malformed(input, start, reason),
            Err(Stop::Unfinished(_)) if !last => return Step::NeedInput,
            Err(Stop::Unfinished(packet)) => {
                if Nibbles::new(input, start + 1).search(0).is_ok() {
                    return self.malformed(input, start, Malformation::Interrupted { packet });
                }
                let reason = Malformation::Incomplete { packet };
                return Step::Malformed { reason, bytes: input.len() };
            }
        };
        match nibbles.overlap(start) {
            Ok(Some(_)) => {
                let reason = Malformation::Interrupted { packet: packet.name() };
                return self.malformed(input, start, reason);
            }
            Err(()) if !last => return Step::NeedInput,
            Ok(None) | Err(()) => {}
        }
        if let Packet::Version(coding) = packet {
            self.coding = Some(coding);
        }
        self.time = packet.time().unwrap_or(self.time);
        self.sender = self.sender.after(&packet);
        self.packet(packet, nibbles.at)
    }

    /// A packet that ends before the half byte `end`.
    const fn packet(&mut self, packet: Packet, end: usize) -> Step<Packet> {
        self.step = InStep::Yes { second_half: end % 2 == 1 };
        Step::Packet { packet, bytes: end / 2 }
    }

    /// No packet begins at the half byte `start`.
    fn malformed(&mut self, input: &[u8], start: usize, reason: Malformation) -> Step<Packet> {
        let (Ok(next) | Err(next)) = Nibbles::new(input, start + 1).search(0);
        self.step = InStep::No { ones: next % 2 == 1 };
        Step::Malformed { reason, bytes: next.div_ceil(2) }
    }

    fn search(&mut self, input: &[u8], ones: bool, last: bool) -> Step<Packet> {
        let before = usize::from(ones);
        let found = Nibbles::new(input, 0).search(before);
        let (Ok(next) | Err(next)) = found;
        // Counted from the first half of the byte with the ones.
        let passed = (next + 1 - before) / 2;
        match found {
            Ok(next) if passed == 0 => self.packet(Packet::Async, next + ASYNC_LENGTH - before),
            Err(_) if last => Step::Searched { bytes: input.len() },
            _ if passed == 0 => Step::NeedInput,
            _ => {
                self.step = InStep::No { ones: (next + before) % 2 == 1 };
                Step::Searched { bytes: passed }
            }
        }
    }

    fn read(&self, nibbles: &mut Nibbles<'_>) -> Result<Packet, Stop> {
        let start = nibbles.at;
        match nibbles.nibble()? {
            0x0 => Ok(Packet::Null { time: None }),
            0x1 => self.master(nibbles, false),
            0x2 => Ok(Packet::MasterError(byte(nibbles, "merr")?)),
            0x3 => self.channel(nibbles, false),
            header @ 0x4..=0xd => self.data(nibbles, header, false),
            0xe => Ok(Packet::Flag { time: self.time(nibbles, "flag")? }),
            _ => match nibbles.nibble()? {
                0x0 => self.read_long(nibbles),
                0x1 => self.master(nibbles, true),
                0x2 => Ok(Packet::GlobalError(byte(nibbles, "gerr")?)),
                0x3 => self.channel(nibbles, true),
                header @ 0x4..=0xd => self.data(nibbles, header, true),
                0xe => Ok(Packet::Flag { time: None }),
                _ => match nibbles.ones(start, ASYNC_LENGTH) {
                    (ASYNC_ONES, Some(0)) => {
                        nibbles.at = start + ASYNC_LENGTH;
                        Ok(Packet::Async)
                    }
                    (ASYNC_LENGTH, _) | (_, Some(_)) => {
                        Err(Stop::Wrong(Malformation::ReservedHeader { found: 0xff }))
                    }
                    (_, None) => Err(Stop::Unfinished("async")),
                },
            },
        }
    }

    /// A packet whose header is F0 and another half byte.
    fn read_long(&self, nibbles: &mut Nibbles<'_>) -> Result<Packet, Stop> {
        match nibbles.nibble()? {
            0x0 => {
                nibbles.packet = "version";
                match nibbles.nibble()? {
                    3 => Ok(Packet::Version(TimestampCoding::Binary)),
                    4 => Ok(Packet::Version(TimestampCoding::Gray)),
                    found => Err(reserved("version", "version", found, "3 or 4")),
                }
            }
            0x1 => Ok(Packet::Null { time: self.time(nibbles, "null")? }),
            0x6 => Ok(Packet::Trigger { value: byte(nibbles, "trig")?, time: None }),
            0x7 => Ok(Packet::Trigger { value: byte(nibbles, "trig")?, time: self.time(nibbles, "trig")? }),
            0x8 => Ok(Packet::Frequency { hertz: hertz(nibbles)?, time: None }),
            0x9 => Ok(Packet::Frequency { hertz: hertz(nibbles)?, time: self.time(nibbles, "freq")? }),
            // Packets that only other units make (USER, TIME, XSYNC and those of version 2.2), and reserved headers.
            found => Err(reserved("f0", "third half byte of the header", found, "0, 1 or 6 to 9")),
        }
    }

    fn master(&self, nibbles: &mut Nibbles<'_>, wide: bool) -> Result<Packet, Stop> {
        let master = address(nibbles, if wide { "m16" } else { "m8" }, self.sender.master, wide)?;
        Ok(Packet::Master { master, wide })
    }

    fn channel(&self, nibbles: &mut Nibbles<'_>, wide: bool) -> Result<Packet, Stop> {
        let channel = address(nibbles, if wide { "c16" } else { "c8" }, self.sender.channel, wide)?;
        Ok(Packet::Channel { channel, wide })
    }

    /// Data, by the last half byte of its header. `long`: F is before it.
    fn data(&self, nibbles: &mut Nibbles<'_>, header: u8, long: bool) -> Result<Packet, Stop> {
        let (size, marker) = match header {
            0x4 => (Size::D8, false),
            0x5 => (Size::D16, false),
            0x6 => (Size::D32, false),
            0x7 => (Size::D64, false),
            0x8 => (Size::D8, true),
            0x9 => (Size::D16, true),
            0xa => (Size::D32, true),
            0xb => (Size::D64, true),
            0xc => (Size::D4, false),
            _ => (Size::D4, true),
        };
        let packet = Packet::Data { size, value: 0, marker, time: None }.name();
        nibbles.packet = packet;
        let value = nibbles.number(size.nibbles())?;
        // The short headers are those of data with neither marker nor time, and with both.
        let time = if marker == long { None } else { self.time(nibbles, packet)? };
        Ok(Packet::Data { size, value, marker, time })
    }

    /// The time at the end of a packet: a length, and the low half bytes of the new time, as they are coded.
    fn time(&self, nibbles: &mut Nibbles<'_>, packet: &'static str) -> Result<Option<u64>, Stop> {
        nibbles.packet = packet;
        let length = match nibbles.nibble()? {
            length @ 0..=12 => usize::from(length),
            13 => 14,
            14 => 16,
            found => return Err(reserved(packet, "length of the timestamp", found, "at most 14")),
        };
        let coding = self.coding.ok_or_else(|| {
            reserved(packet, "coding of the timestamp", 0, "a version packet before the first timestamp")
        })?;
        let format = TimestampFormat { width: TimestampWidth::Bits64, coding };
        let low = nibbles.number(length)?;
        let raw = format.raw(self.time).with_low_bits(4 * length, low);
        Ok(Some(format.value(raw)))
    }
}

impl Decode for Decoder {
    type Packet = Packet;

    fn decode(&mut self, input: &[u8]) -> Step<Packet> {
        self.next(input, false)
    }

    fn decode_last(&mut self, input: &[u8]) -> Step<Packet> {
        self.next(input, true)
    }

    fn truncated(&self, _: &[u8]) -> Malformation {
        Malformation::Incomplete { packet: "header" }
    }

    fn desynchronise(&mut self) {
        self.step = InStep::default();
    }
}

fn byte(nibbles: &mut Nibbles<'_>, packet: &'static str) -> Result<u8, Stop> {
    nibbles.packet = packet;
    Ok(u8::try_from(nibbles.number(2)?).unwrap_or(u8::MAX))
}

fn hertz(nibbles: &mut Nibbles<'_>) -> Result<u32, Stop> {
    nibbles.packet = "freq";
    Ok(u32::try_from(nibbles.number(8)?).unwrap_or(u32::MAX))
}

/// A master or channel: all of it, or its low byte.
fn address(nibbles: &mut Nibbles<'_>, packet: &'static str, last: u16, wide: bool) -> Result<u16, Stop> {
    nibbles.packet = packet;
    let value = u16::try_from(nibbles.number(if wide { 4 } else { 2 })?).unwrap_or(u16::MAX);
    Ok(if wide { value } else { last & 0xff00 | value })
}

const fn reserved(packet: &'static str, field: &'static str, found: u8, expected: &'static str) -> Stop {
    Stop::Wrong(Malformation::ReservedValue { packet, field, found: found as u64, expected })
}
