//! Counting the packets in two blocks of 64 bytes at once.
//!
//! Where packets end does not depend on what they say, so one bit for each byte is enough to tell, and 64 of them fit into
//! a word:
//!
//! ```text
//! byte  84 88 ad 02 f5 47 1e 76 b1      P-headers, a branch, one with exception information, an exception return, …
//! more   1  1  1     1              1   bit 7
//! odd          1     1              1
//! branch       1     1              1   from an odd byte with bit 7 on, as long as bit 7 is set
//! last            1     1               the byte behind that
//! info                     1            the byte behind a last byte with bit 6
//! ends   1  1     1        1  1         everything that is followed by a header
//! ```
//!
//! What is done to the words of one block is done to those of another one in the same vectors, which `wide` gives without
//! `unsafe`: plain arrays in their place were not made vectors of by the compiler.
//!
//! Where something else stands, or what might be malformed, the count stops, and the decoder goes on. What the packets
//! say is lost on the way, the addresses that later ones are compressed against too.

use wide::{u8x16, u64x2 as Pair};

use super::resume::Announces;

/// What a protocol's plain packets look like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain {
    /// An even byte without bit 7 that is a packet.
    pub(super) single: Option<u8>,
    /// An even byte without bit 7 that has an address behind it, as a branch packet's.
    pub(super) prefix: Option<u8>,
    pub(super) announces: Announces,
    /// A bit that is clear in exception information.
    pub(super) reserved_information: Option<u8>,
}

/// How many bytes at the start of `input` are whole plain packets, and how many packets they are. `reserved` answers with
/// the bytes that are no packets although they are even and have bit 7 set.
///
/// What a byte is depends on few bytes in front of it. So each block looks at the last ones of the block before once more,
/// instead of beginning where a packet does: no block waits for what another one finds, and two are done at once.
#[inline]
pub(super) fn skim(input: &[u8], plain: Plain, reserved: impl Fn(&Planes) -> Pair) -> (usize, u64) {
    let (mut at, mut packets) = (0, 0);
    // The last block that a packet ends in, and where in it they do.
    let mut last = (0, 0);
    let mut seen = 0;
    while let Some(first) = input.get(at..).and_then(<[u8]>::first_chunk) {
        // Behind the last block there is no other one: it is seen twice, and counts once.
        let second = input.get(at + NEW..).and_then(<[u8]>::first_chunk);
        let unseen = if second.is_some() { u64::MAX << CONTEXT } else { 0 };
        let (ends, stops) = ends(&Planes::of(first, second.unwrap_or(first)), plain, &reserved);
        let news = Pair::new([u64::MAX << seen, unseen]);
        let (ends, stops) = (ends & news, stops & news);
        for (ends, stops) in ends.to_array().into_iter().zip(stops.to_array()) {
            let first_stop = stops & stops.wrapping_neg();
            let ends = ends & first_stop.wrapping_sub(1);
            packets += u64::from(ends.count_ones());
            if ends != 0 {
                last = (at, ends);
            }
            if stops != 0 {
                return (behind(last), packets);
            }
            at += NEW;
        }
        seen = CONTEXT;
    }
    (behind(last), packets)
}

/// A branch address, its exception information, and a header in front of it.
const CONTEXT: usize = 8;
/// How many bytes of a block the one before has not seen.
const NEW: usize = 64 - CONTEXT;

/// Behind the last packet that ends in this block.
fn behind((at, ends): (usize, u64)) -> usize {
    if ends == 0 { 0 } else { at + 64 - ends.leading_zeros() as usize }
}

/// Which bytes packets end with, and which ones are something else; behind the first of these nothing counts.
#[inline(always)]
fn ends(planes: &Planes, plain: Plain, reserved: impl Fn(&Planes) -> Pair) -> (Pair, Pair) {
    let [odd, .., bit_6, more] = planes.0;
    let alone = !more;
    // From the first of these on, as long as there are more, and the byte behind: an addition carries through.
    let reached = |from: Pair| (from + more) ^ more | from;
    let address = reached(odd & more);
    let (branch, last) = (address & more, address & alone);
    // An address has five bytes at most, of which four say that there are more.
    let two = branch & branch << 1_u32;
    let behind_four = (two & two << 2_u32) << 1_u32;
    let fifth = last & behind_four;
    let announcing = last & bit_6 & if plain.announces == Announces::AsTheFifth { fifth } else { last };
    let information: Pair = announcing << 1_u32;
    let header = alone & !last & !information;
    let p_header = more & !branch;
    let mut stops = (behind_four | information) & more;
    let mut ends = p_header | header & odd | last & !announcing | information;
    let mut unusual = header & !odd;
    if let Some(single) = plain.single {
        let single = unusual & planes.equal(single);
        ends |= single;
        unusual &= !single;
    }
    if let Some(prefix) = plain.prefix {
        let prefix = unusual & planes.equal(prefix);
        unusual &= !prefix;
        // An address of less than five bytes has no exception information there.
        let behind = reached(prefix << 1_u32 & more) & last & !fifth;
        stops = stops | prefix << 1_u32 & !odd | behind & bit_6;
    }
    if let Some(bits) = plain.reserved_information {
        stops |= information & planes.any(bits);
    }
    // In a fifth byte bits 5 to 3 say which instruction set it is; without any of them none.
    stops = stops | unusual | fifth & !planes.any(0b0011_1000) | p_header & reserved(planes);
    (ends, stops)
}

/// Two blocks of 64 bytes, as eight pairs of words: pair n has bit n of each byte, the first byte's lowest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planes([Pair; 8]);

impl Planes {
    /// Transposes the bytes of the words, so that neighbours come to lie in different words at the same place, and then the
    /// bits of the bytes that lie there.
    ///
    /// Interleaving two pieces of 16 bytes moves the highest bit of a byte's place in them to which piece it is in, and the bit
    /// that the two pieces differed in to the lowest of its place. So a byte's place goes from `block 5 4, 3 2 1 0` (bits of its
    /// place in the block) to `2 1 0, block 5 4 3`.
    #[inline(always)]
    fn of(first: &[u8; 64], second: &[u8; 64]) -> Self {
        let mut pieces = [u8x16::ZERO; 8];
        let both = first.as_chunks().0.iter().zip(second.as_chunks().0);
        for (pieces, (first, second)) in pieces.as_chunks_mut().0.iter_mut().zip(both) {
            *pieces = [u8x16::new(*first), u8x16::new(*second)];
        }
        interleave::<1>(&mut pieces);
        interleave::<4>(&mut pieces);
        interleave::<2>(&mut pieces);
        interleave::<1>(&mut pieces);
        let mut words = pieces.map(|piece| {
            let bytes = piece.to_array();
            let word =
                |half: usize| bytes.as_chunks().0.get(half).map_or(0, |bytes| u64::from_le_bytes(*bytes));
            Pair::new([word(0), word(1)])
        });
        exchange::<4>(&mut words, 0x0f0f_0f0f_0f0f_0f0f);
        exchange::<2>(&mut words, 0x3333_3333_3333_3333);
        exchange::<1>(&mut words, 0x5555_5555_5555_5555);
        Self(words)
    }

    /// The bytes that are `byte`.
    #[inline(always)]
    fn equal(&self, byte: u8) -> Pair {
        let same = |bit: usize| if byte >> bit & 1 == 1 { self.0[bit] } else { !self.0[bit] };
        (0..8).fold(Pair::splat(u64::MAX), |all, bit| all & same(bit))
    }

    /// The bytes that have one of these bits.
    #[inline(always)]
    pub(super) fn any(&self, bits: u8) -> Pair {
        (0..8).filter(|bit| bits >> bit & 1 == 1).fold(Pair::ZERO, |any, bit| any | self.0[bit])
    }
}

/// Interleaves pieces with those that stand `APART` places behind them.
#[inline(always)]
fn interleave<const APART: usize>(pieces: &mut [u8x16; 8]) {
    for low in (0..pieces.len()).filter(|place| place & APART == 0) {
        let (first, second) = (pieces[low], pieces[low | APART]);
        pieces[low] = u8x16::unpack_low(first, second);
        pieces[low | APART] = u8x16::unpack_high(first, second);
    }
}

/// Exchanges the `APART` upper ones of twice as many bits of words with the lower ones of those that stand so many places
/// behind them.
#[inline(always)]
fn exchange<const APART: u32>(words: &mut [Pair; 8], lower: u64) {
    for low in (0..words.len()).filter(|place| place & APART as usize == 0) {
        let high = low | APART as usize;
        let differs = (words[low] >> APART ^ words[high]) & Pair::splat(lower);
        words[high] ^= differs;
        words[low] ^= differs << APART;
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// What `skim` finds, byte by byte: the end of the last packet and how many there are, up to the end of the last
    /// whole block.
    fn one_by_one(input: &[u8], plain: Plain, reserved: u8) -> (usize, u64) {
        let covered = input.len().checked_sub(64).map_or(0, |rest| rest / 56 * 56 + 64);
        let (mut end, mut packets, mut bytes) = (0, 0, input[..covered].iter().copied());
        while let Some(behind) = packet(&mut bytes, plain, reserved) {
            packets += 1;
            end = covered - behind;
        }
        (end, packets)
    }

    /// Takes a plain packet, and tells how many bytes are left behind it.
    fn packet(
        bytes: &mut (impl ExactSizeIterator<Item = u8> + Clone),
        plain: Plain,
        reserved: u8,
    ) -> Option<usize> {
        let mut header = bytes.next()?;
        let has_prefix = Some(header) == plain.prefix;
        if has_prefix {
            header = bytes.next().filter(|byte| byte & 1 == 1)?;
        }
        match header {
            _ if header & 1 == 1 => address(header, has_prefix, bytes, plain)?,
            0x80.. if header != reserved => {}
            _ if Some(header) == plain.single => {}
            _ => return None,
        }
        Some(bytes.len())
    }

    fn address(
        first: u8,
        has_prefix: bool,
        bytes: &mut impl Iterator<Item = u8>,
        plain: Plain,
    ) -> Option<()> {
        let (mut last, mut count) = (first, 1);
        while last >= 0x80 {
            (last, count) = (bytes.next()?, count + 1);
            if count == 5 && (last >= 0x80 || last & 0b0011_1000 == 0) {
                return None;
            }
        }
        let announces = last & 0b0100_0000 != 0
            && match plain.announces {
                Announces::BehindTheFirst => count > 1,
                Announces::AsTheFifth => count == 5,
            };
        if has_prefix && count > 1 && count < 5 && last & 0b0100_0000 != 0 {
            return None;
        }
        if announces {
            let clear = 0b1000_0000 | plain.reserved_information.unwrap_or(0);
            bytes.next().filter(|information| information & clear == 0)?;
        }
        Some(())
    }

    const PREFIX: u8 = 0x72;
    const SINGLE: u8 = 0x76;
    const RESERVED: u8 = 0x92;

    /// Bytes of which most are plain packets.
    fn some_packets() -> impl Strategy<Value = Vec<u8>> {
        let header = (0x40..0x80_u8).prop_map(|byte| vec![byte << 1]);
        let branch = (any::<[u8; 6]>(), 1..6_usize, any::<bool>()).prop_map(|(bytes, count, prefix)| {
            let mut packet = bytes[..count].to_vec();
            packet.iter_mut().for_each(|byte| *byte |= 0x80);
            packet[0] |= 1;
            packet[count - 1] &= 0x7f;
            if count == 5 {
                packet[4] |= 0b1000;
            }
            if count > 1 && packet[count - 1] & 0x40 != 0 {
                packet.push(bytes[5] & 0x5f);
            }
            [if prefix { vec![PREFIX] } else { Vec::new() }, packet].concat()
        });
        let other =
            prop_oneof![Just(SINGLE), Just(PREFIX), Just(RESERVED), any::<u8>()].prop_map(|byte| vec![byte]);
        let packets = prop_oneof![20 => header, 20 => branch, 1 => Just(vec![SINGLE]), 1 => other];
        proptest::collection::vec(packets, 0..120).prop_map(|packets| packets.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn as_much_is_counted_as_byte_by_byte(bytes in some_packets(), kind in 0..4) {
            let plain = Plain {
                single: (kind != 1).then_some(SINGLE),
                prefix: (kind >= 2).then_some(PREFIX),
                announces: if kind == 3 { Announces::AsTheFifth } else { Announces::BehindTheFirst },
                reserved_information: (kind == 2).then_some(0b0010_0000),
            };
            let found = skim(&bytes, plain, |planes| planes.equal(RESERVED));
            prop_assert_eq!(found, one_by_one(&bytes, plain, RESERVED));
        }
    }

    #[test]
    fn the_example_ends_where_it_should() {
        let mut block = [0x84; 64];
        block[..9].copy_from_slice(&[0x84, 0x88, 0xad, 0x02, 0xf5, 0x47, 0x1e, 0x76, 0xb1]);
        block[9] = 0x02;
        let plain = Plain {
            single: Some(0x76),
            prefix: None,
            announces: Announces::BehindTheFirst,
            reserved_information: None,
        };
        let (ends, stops) = ends(&Planes::of(&block, &[0x84; 64]), plain, |_| Pair::ZERO);
        let [ends, all] = ends.to_array();
        assert_eq!(ends & 0x3ff, 0b10_1100_1011);
        assert_eq!(ends >> 10, u64::MAX >> 10);
        assert_eq!(all, u64::MAX);
        assert_eq!(stops, Pair::ZERO);
    }

    #[test]
    fn planes_are_the_bits_of_the_bytes() {
        let mut byte = 0x5a_u8;
        let blocks = [(); 2].map(|()| {
            [(); 64].map(|()| {
                byte = byte.wrapping_mul(37).wrapping_add(91);
                byte
            })
        });
        let planes = Planes::of(&blocks[0], &blocks[1]);
        for (which, block) in blocks.iter().enumerate() {
            for (n, byte) in block.iter().enumerate() {
                let bit = |pair: &Pair| pair.to_array()[which] >> n & 1;
                let bits = planes.0.iter().rev().fold(0, |bits, plane| bits << 1 | bit(plane));
                assert_eq!(bits, u64::from(*byte));
                assert_eq!(bit(&planes.equal(*byte)), 1);
            }
        }
        assert_eq!(planes.any(0x81), planes.0[0] | planes.0[7]);
    }
}
