//! The packets that the memo may look up together, and the state that decoding them depends on.

use crate::protocol::memoised::{MemoDecode, MemoState};
use crate::protocol::synchronisation::Synchronisation;
use crate::span::StreamOffset;

use super::super::address::AddressRegisters;
use super::super::packet::{Context, Packet};
use super::Decoder;

impl MemoState for Decoder {
    /// The last addresses sent.
    type State = AddressRegisters;

    fn state(&self, _at: StreamOffset) -> Option<AddressRegisters> {
        (self.synchronisation == Synchronisation::InStep).then_some(self.compression.addresses)
    }

    fn resume(&mut self, state: &AddressRegisters, _at: StreamOffset) {
        self.synchronisation = Synchronisation::InStep;
        self.compression.addresses = *state;
    }
}

/// The header of a long address of 64 bits, in A64 or A32, without a context: the address packet that cores
/// in AArch64 send most.
const LONG_64: u64 = 0x9d;

impl MemoDecode for Decoder {
    /// A long address of 64 bits has nine bytes. The last byte, bits 63 to 56 of the address, is nearly
    /// always 0 or 0xff, which fits into bit 7 of the first byte after the header.
    #[inline(always)]
    fn word(&self, input: &[u8]) -> Option<u64> {
        let word = u64::from_le_bytes(*input.first_chunk()?);
        if word & 0xff == LONG_64 { input.get(8).map(|&last| long_address(word, last)) } else { Some(word) }
    }

    #[inline(always)]
    fn is_nine_bytes(word: u64) -> bool {
        word & 0xff == LONG_64
    }

    /// Atoms, and exceptions and contexts after them, up to the next address.
    #[inline]
    fn window(&self, word: u64) -> u64 {
        if Self::is_nine_bytes(word) {
            return u64::MAX;
        }
        const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
        // Headers of atoms have the two high bits set, and no other headers do.
        let others = !(word & word << 1) & HIGH_BITS;
        if others == 0 {
            return u64::MAX;
        }
        let first = others.trailing_zeros() & !0b111;
        let end = first + 8 * after_atoms(word >> first, (u64::BITS - first) / 8);
        if end == 0 { 0 } else { u64::MAX >> (u64::BITS - end) }
    }

    #[inline]
    fn is_repeatable(packet: &Packet) -> bool {
        // Context ID and VMID determine the visible code, so packets with either are not repeatable.
        let is_the_same = |context: Context| context.context_id.is_none() && context.vmid.is_none();
        match packet {
            Packet::Atom(_) | Packet::Exception(_) | Packet::ExceptionReturn | Packet::Context(None) => true,
            Packet::Address(address) => address.context.is_none_or(is_the_same),
            Packet::Context(Some(context)) => is_the_same(*context),
            _ => false,
        }
    }
}

/// The word of a long address of 64 bits. If the last byte does not fit, the word is 0, the header of an
/// extension, which begins no window.
#[inline]
fn long_address(word: u64, last: u8) -> u64 {
    /// Bit 7 of the first two address bytes, which is not part of the address (IHI 0064, long 64-bit address
    /// packets).
    const UNUSED: u64 = 0x0000_0000_0080_8000;
    const IS_HIGH: u64 = 1 << 15;
    match last {
        _ if word & UNUSED != 0 => 0,
        0 => word,
        0xff => word | IS_HIGH,
        _ => 0,
    }
}

/// The number of bytes, of the first `most` of `word`, that belong to the window that atoms have begun: whole
/// packets up to an address. An exception belongs to the window only together with its address.
#[inline]
fn after_atoms(word: u64, most: u32) -> u32 {
    /// C: another byte follows. In a context byte: a context ID follows.
    const CONTINUES: u64 = 0x80;
    const HAS_VMID: u64 = 0x40;
    let byte = |index: u32| word.checked_shr(8 * index).unwrap_or(0) & 0xff;
    // Whether a context has one byte.
    let is_short = |at: u32| byte(at) & (CONTINUES | HAS_VMID) == 0;
    let (mut end, mut whole, mut waits_for_address) = (0, 0, false);
    loop {
        let header = byte(end);
        let (length, is_last) = match header {
            0x90..=0x92 => (1, true),
            0x95 | 0x96 => (2 + u32::from(byte(end + 1) & CONTINUES != 0), true),
            0x9a | 0x9b => (5, true),
            0x82 | 0x83 if is_short(end + 5) => (6, true),
            0x07 | 0x80 => (1, false),
            0x81 if is_short(end + 1) => (2, false),
            0x06 => (2 + u32::from(byte(end + 1) & CONTINUES != 0), false),
            _ => return whole,
        };
        end += length;
        if end > most {
            return whole;
        }
        waits_for_address |= header == 0x06;
        if is_last || !waits_for_address {
            whole = end;
        }
        if is_last {
            return whole;
        }
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
        // A packet that does not fit is left to the next window.
        assert_eq!(bytes([0xf7, 0xf7, 0xf7, 0xf7, 0x9b, 0xff, 0xff, 0xff]), 4);
        assert_eq!(bytes([0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0x96, 0x80]), 6);
        assert_eq!(bytes([0xf7, 0x9d, 0, 0, 0, 0, 0, 0]), 1);
        // An exception of one byte and of two, with its address; without its address, it is left to the next
        // window.
        assert_eq!(bytes([0xf7, 0x06, 0x1d, 0x95, 0x4e, 0xf7, 0xf7, 0xf7]), 5);
        assert_eq!(bytes([0x06, 0x9d, 0x01, 0x9a, 0, 0, 0, 0]), 8);
        assert_eq!(bytes([0xf7, 0x06, 0x9d, 0x01, 0x9a, 0, 0, 0]), 1);
        assert_eq!(bytes([0x06, 0x9d, 0x01, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7]), 0);
        // Contexts of one byte, before an address, in it, and before one that does not fit.
        assert_eq!(bytes([0x81, 0x31, 0x9a, 0, 0, 0, 0, 0xf7]), 7);
        assert_eq!(bytes([0xf7, 0x82, 0, 0, 0, 0, 0x31, 0xf7]), 7);
        assert_eq!(bytes([0xf7, 0x07, 0x81, 0x31, 0x9a, 0, 0, 0]), 4);
        assert_eq!(bytes([0x06, 0x1d, 0x81, 0x31, 0x95, 0x4e, 0xf7, 0xf7]), 6);
        // Contexts with a VMID or a context ID change the visible code.
        assert_eq!(bytes([0xf7, 0x81, 0x71, 0x01, 0xf7, 0xf7, 0xf7, 0xf7]), 1);
        assert_eq!(bytes([0x82, 0, 0, 0, 0, 0xb1, 0, 0]), 0);
        // Nine bytes of a long address that eight bytes determine: no two addresses have the same word.
        let long =
            |first: u8, second: u8, last: u8| decoder.word(&[0x9d, first, second, 3, 4, 5, 6, 7, last, 0xf7]);
        let [low, high] = [0, 0xff].map(|last| long(1, 2, last).expect("nine bytes"));
        assert!(low != high && [low, high].into_iter().all(Decoder::is_nine_bytes));
        assert_eq!((decoder.window(low), decoder.window(high)), (u64::MAX, u64::MAX));
        for other in [long(1, 2, 0x7f), long(0x81, 2, 0), long(1, 0x82, 0xff)] {
            assert_eq!(other.map(|word| decoder.window(word)), Some(0));
        }
        assert_eq!(decoder.word(&[0x9d, 0, 0, 0, 0, 0, 0, 0]), None);
        // A timestamp, an event, a Q packet.
        for header in [0x02, 0x71, 0xa0, 0x00, 0x04, 0xb6] {
            assert_eq!(bytes([header, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7]), 0, "{header:x}");
            assert_eq!(bytes([0xdb, header, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7]), 1, "{header:x}");
        }
    }
}
