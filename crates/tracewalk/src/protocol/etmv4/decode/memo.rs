//! Which packets the memo may look up together, and what decoding them depends on.

use crate::protocol::memoised::{MemoDecode, MemoState};
use crate::protocol::synchronisation::Synchronisation;
use crate::span::StreamOffset;

use super::super::address::AddressRegisters;
use super::super::packet::Packet;
use super::Decoder;

impl MemoState for Decoder {
    /// The addresses that were sent last.
    type State = AddressRegisters;

    fn state(&self, _at: StreamOffset) -> Option<AddressRegisters> {
        (self.synchronisation == Synchronisation::InStep).then_some(self.compression.addresses)
    }

    fn resume(&mut self, state: &AddressRegisters, _at: StreamOffset) {
        self.synchronisation = Synchronisation::InStep;
        self.compression.addresses = *state;
    }
}

impl MemoDecode for Decoder {
    /// Atoms, and the address after them.
    #[inline]
    fn window(&self, word: u64) -> u64 {
        const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
        // Headers of atoms have the two high bits set, and no other headers do.
        let others = !(word & word << 1) & HIGH_BITS;
        let first = others & others.wrapping_neg();
        let before = (first >> 7).wrapping_sub(1);
        if first == 0 {
            return u64::MAX;
        }
        let at = first.trailing_zeros() & !0b111;
        let length = address_length(word >> at);
        if length == 0 || at + 8 * length > u64::BITS { before } else { u64::MAX >> (64 - at - 8 * length) }
    }

    #[inline]
    fn is_repeatable(packet: &Packet) -> bool {
        match packet {
            Packet::Atom(_) => true,
            Packet::Address(address) => address.context.is_none(),
            _ => false,
        }
    }
}

/// How many bytes an address packet at the start of `word` has; 0 if it is another packet, or longer than a window.
#[inline]
const fn address_length(word: u64) -> u32 {
    let [found, first, ..] = word.to_le_bytes();
    match found {
        0x90..=0x92 => 1,
        0x95 | 0x96 => 2 + (first >> 7) as u32,
        0x9a | 0x9b => 5,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::etmv4::{Config, Profile, Registers};

    #[test]
    fn a_window_ends_with_an_address_or_before_what_is_not_repeatable() {
        let registers = Registers {
            trcconfigr: Some(1),
            trcidr0: Some(0x2800_0ea1),
            trcidr1: Some(0x4100_f403),
            trcidr2: Some(0x488),
            ..Registers::default()
        };
        let config = Config::from_registers(registers, Some(Profile::Ar)).expect("sound registers");
        let decoder = Decoder::new(&config);
        let bytes = |word: [u8; 8]| {
            let mask = decoder.window(u64::from_le_bytes(word));
            assert_eq!(mask.trailing_ones() % 8, 0);
            assert_eq!(mask.count_ones(), mask.trailing_ones());
            mask.trailing_ones() / 8
        };
        assert_eq!(bytes([0xf7; 8]), 8);
        assert_eq!(bytes([0xf7, 0xc0, 0x90, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7]), 3);
        // Short addresses of one byte and of two; long ones.
        assert_eq!(bytes([0xf7, 0x95, 0x7f, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7]), 3);
        assert_eq!(bytes([0xf7, 0x96, 0x80, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7]), 4);
        assert_eq!(bytes([0x9a, 0, 0, 0, 0, 0xf7, 0xf7, 0xf7]), 5);
        assert_eq!(bytes([0xf7, 0xf7, 0xf7, 0x9b, 0xff, 0xff, 0xff, 0xff]), 8);
        // What does not fit waits for the next window.
        assert_eq!(bytes([0xf7, 0xf7, 0xf7, 0xf7, 0x9b, 0xff, 0xff, 0xff]), 4);
        assert_eq!(bytes([0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0x96, 0x80]), 6);
        assert_eq!(bytes([0x9d, 0, 0, 0, 0, 0, 0, 0]), 0);
        // A timestamp, a context, an event, a Q packet.
        for header in [0x02, 0x81, 0x71, 0xa0, 0x00, 0x04, 0xb6] {
            assert_eq!(bytes([header, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7]), 0, "{header:x}");
            assert_eq!(bytes([0xdb, header, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7]), 1, "{header:x}");
        }
    }
}
