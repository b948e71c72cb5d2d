//! Packets → bytes.

use alloc::vec::Vec;

use super::super::a_sync::ASync;
use super::packet::{ExceptionAction, Packet, Size, TimestampDelay};

/// Appends the bytes of a packet, in the shortest form that an ITM sends. Bits that do not fit the packet are
/// dropped.
pub fn encode(packet: &Packet, output: &mut Vec<u8>) {
    match *packet {
        Packet::Sync => output.extend(ASync::FIVE_ZEROS.shortest()),
        Packet::Overflow => output.push(0b0111_0000),
        Packet::LocalTimestamp { delay: TimestampDelay::None, ticks: ticks @ 1..=6 } => {
            output.extend(u8::try_from(ticks << 4));
        }
        Packet::LocalTimestamp { delay, ticks } => {
            let delay = match delay {
                TimestampDelay::None => 0b00,
                TimestampDelay::Timestamp => 0b01,
                TimestampDelay::Packet => 0b10,
                TimestampDelay::Both => 0b11,
            };
            output.push(0b1100_0000 | delay << 4);
            let bytes = (1..4).find(|bytes| ticks >> (7 * bytes) == 0).unwrap_or(4);
            continued(ticks.into(), bytes, output);
        }
        Packet::GlobalTimestampLow { value, bits, clock_changed, wrapped } => {
            output.push(0b1001_0100);
            let flags = u64::from(clock_changed) << 26 | u64::from(wrapped) << 27;
            match bits {
                0..=21 => continued(value.into(), usize::from(bits.max(7) / 7), output),
                _ => continued(u64::from(value & 0x03ff_ffff) | flags, 4, output),
            }
        }
        Packet::GlobalTimestampHigh { value, long } => {
            output.push(0b1011_0100);
            continued(value, if long { 6 } else { 4 }, output);
        }
        Packet::StimulusPage(page) => output.push(0b0000_1000 | page << 4 & 0b0111_0000),
        Packet::Extension { hardware, value } => {
            let header = 0b0000_1000 | u8::from(hardware) << 2 | (low_byte(value) & 0b111) << 4;
            if hardware && value < 8 {
                output.push(header);
            } else {
                output.push(header | 0b1000_0000);
                let rest = value >> 3;
                let bytes = (1..5).find(|bytes| rest >> (7 * bytes) == 0).unwrap_or(5);
                continued(rest.into(), bytes, output);
            }
        }
        Packet::Stimulus { port, size, value } => source(port, false, size, value, output),
        Packet::EventCounters(counters) => source(0, true, Size::Byte, counters.0.into(), output),
        Packet::Exception { number, action } => {
            let action = match action {
                ExceptionAction::Entered => 0b01,
                ExceptionAction::Exited => 0b10,
                ExceptionAction::Returned => 0b11,
            };
            source(1, true, Size::Halfword, u32::from(number & 0x1ff) | action << 12, output);
        }
        Packet::PcSample(None) => source(2, true, Size::Byte, 0, output),
        Packet::PcSample(Some(address)) => source(2, true, Size::Word, address.low_word(), output),
        Packet::DataPc { comparator, address } => {
            source(8 | comparator << 1, true, Size::Word, address.low_word(), output);
        }
        Packet::DataAddress { comparator, low_half } => {
            source(9 | comparator << 1, true, Size::Halfword, low_half.into(), output);
        }
        Packet::DataValue { comparator, write, size, value } => {
            source(16 | comparator << 1 | u8::from(write), true, size, value, output);
        }
    }
}

/// `bytes` bytes of seven bits each, the lowest first; all but the last have bit 7 set.
fn continued(value: u64, bytes: usize, output: &mut Vec<u8>) {
    for index in 0..bytes {
        let seven = low_byte(u32::try_from(value >> (7 * index) & 0b0111_1111).unwrap_or_default());
        output.push(if index + 1 < bytes { seven | 0b1000_0000 } else { seven });
    }
}

fn source(id: u8, hardware: bool, size: Size, value: u32, output: &mut Vec<u8>) {
    let code = match size {
        Size::Byte => 0b01,
        Size::Halfword => 0b10,
        Size::Word => 0b11,
    };
    output.push(id << 3 | u8::from(hardware) << 2 | code);
    output.extend(value.to_le_bytes().iter().take(size.bytes().into()));
}

const fn low_byte(value: u32) -> u8 {
    let [low, ..] = value.to_le_bytes();
    low
}
