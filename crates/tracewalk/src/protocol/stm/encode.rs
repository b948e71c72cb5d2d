//! Packets → bytes.

use alloc::vec::Vec;

use super::super::timestamp::{TimestampCoding, TimestampFormat, TimestampWidth};
use super::nibbles::{ASYNC_ONES, ONES};
use super::packet::{Packet, Size, version_of};

/// Writes packets. Times take the fewest half bytes.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    /// The half byte that waits for another.
    half: Option<u8>,
    coding: TimestampCoding,
    time: u64,
}

/// The lengths of times in half bytes, by the half byte that states each.
const LENGTHS: [usize; 15] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16];

impl Encoder {
    /// An encoder for an STM's first packet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the bytes that `packet` completes.
    pub fn encode(&mut self, packet: &Packet, output: &mut Vec<u8>) {
        let is_timed = packet.time().is_some();
        match *packet {
            Packet::Null { time: None } => self.number(&[0x0], 0, 0, output),
            Packet::Null { time: Some(_) } => self.number(&[0xf, 0x0, 0x1], 0, 0, output),
            Packet::Master { master, wide: false } => self.number(&[0x1], master.into(), 2, output),
            Packet::Master { master, wide: true } => self.number(&[0xf, 0x1], master.into(), 4, output),
            Packet::MasterError(value) => self.number(&[0x2], value.into(), 2, output),
            Packet::Channel { channel, wide: false } => self.number(&[0x3], channel.into(), 2, output),
            Packet::Channel { channel, wide: true } => self.number(&[0xf, 0x3], channel.into(), 4, output),
            Packet::Data { size, value, marker, .. } => {
                let header = match size {
                    Size::D4 => 0xc + u8::from(marker),
                    Size::D8 => 0x4 + 4 * u8::from(marker),
                    Size::D16 => 0x5 + 4 * u8::from(marker),
                    Size::D32 => 0x6 + 4 * u8::from(marker),
                    Size::D64 => 0x7 + 4 * u8::from(marker),
                };
                let headers = [0xf, header];
                let header = headers.get(usize::from(marker == is_timed)..).unwrap_or_default();
                self.number(header, value, size.nibbles(), output);
            }
            Packet::Flag { time: Some(_) } => self.number(&[0xe], 0, 0, output),
            Packet::Flag { time: None } => self.number(&[0xf, 0xe], 0, 0, output),
            Packet::GlobalError(value) => self.number(&[0xf, 0x2], value.into(), 2, output),
            Packet::Async => {
                self.number(&[ONES; ASYNC_ONES], 0, 1, output);
            }
            Packet::Version(coding) => {
                self.number(&[0xf, 0x0, 0x0], version_of(coding).into(), 1, output);
                self.coding = coding;
            }
            Packet::Trigger { value, .. } => {
                self.number(&[0xf, 0x0, 0x6 + u8::from(is_timed)], value.into(), 2, output);
            }
            Packet::Frequency { hertz, .. } => {
                self.number(&[0xf, 0x0, 0x8 + u8::from(is_timed)], hertz.into(), 8, output);
            }
        }
        if let Some(time) = packet.time() {
            self.time(time, output);
        }
    }

    /// Fills the last byte with a null packet, if half of it is free.
    pub fn finish(&mut self, output: &mut Vec<u8>) {
        if self.half.is_some() {
            self.put(0, output);
        }
    }

    fn put(&mut self, nibble: u8, output: &mut Vec<u8>) {
        match self.half.take() {
            None => self.half = Some(nibble),
            Some(low) => output.push(low | nibble << 4),
        }
    }

    /// A header, and the low `count` half bytes of a value, the highest first.
    fn number(&mut self, header: &[u8], value: u64, count: usize, output: &mut Vec<u8>) {
        header.iter().for_each(|nibble| self.put(*nibble, output));
        for index in (0..count).rev() {
            let [low, ..] = (value >> (4 * index)).to_le_bytes();
            self.put(low & 0b1111, output);
        }
    }

    fn time(&mut self, time: u64, output: &mut Vec<u8>) {
        let format = TimestampFormat { width: TimestampWidth::Bits64, coding: self.coding };
        let (last, new) = (format.raw(self.time), format.raw(time));
        let is_enough = |length: &usize| last.with_low_bits(4 * length, new.bits()) == new;
        let stated = LENGTHS.iter().position(is_enough).unwrap_or(LENGTHS.len() - 1);
        let length = LENGTHS.get(stated).copied().unwrap_or_default();
        self.put(u8::try_from(stated).unwrap_or_default(), output);
        self.number(&[], new.bits(), length, output);
        self.time = time;
    }
}
