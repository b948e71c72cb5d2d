//! Counting the packets in 64 bytes at once.
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
//! Where something else stands, or what might be malformed, the count stops, and the decoder goes on. What the packets
//! say is lost on the way, the addresses that later ones are compressed against too.

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
/// instead of beginning where a packet does: no block waits for what another one finds, and several are in work at once.
#[inline]
pub(super) fn skim(input: &[u8], plain: Plain, reserved: impl Fn(&Planes) -> u64) -> (usize, u64) {
    /// A branch address, its exception information, and a header in front of it.
    const CONTEXT: usize = 8;
    let (mut bytes, mut packets) = (0, 0);
    let (mut at, mut news) = (0, u64::MAX);
    while let Some(block) = input.get(at..).and_then(<[u8]>::first_chunk::<64>) {
        let (ends, stops) = ends(&Planes::of(block), plain, &reserved);
        let first_stop = stops & news & (stops & news).wrapping_neg();
        let ends = ends & news & first_stop.wrapping_sub(1);
        packets += u64::from(ends.count_ones());
        if ends != 0 {
            bytes = at + 64 - ends.leading_zeros() as usize;
        }
        if first_stop != 0 {
            break;
        }
        at += 64 - CONTEXT;
        news = u64::MAX << CONTEXT;
    }
    (bytes, packets)
}

/// Which bytes packets end with, and which ones are something else; behind the first of these nothing counts.
#[inline(always)]
fn ends(planes: &Planes, plain: Plain, reserved: impl Fn(&Planes) -> u64) -> (u64, u64) {
    let [odd, .., bit_6, more] = planes.0;
    let alone = !more;
    // From the first of these on, as long as there are more, and the byte behind: an addition carries through.
    let reached = |from: u64| from.wrapping_add(more) ^ more | from;
    let address = reached(odd & more);
    let (branch, last) = (address & more, address & alone);
    // An address has five bytes at most, of which four say that there are more.
    let two = branch & branch << 1;
    let behind_four = (two & two << 2) << 1;
    let fifth = last & behind_four;
    let announcing = last & bit_6 & if plain.announces == Announces::AsTheFifth { fifth } else { last };
    let information = announcing << 1;
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
        let behind = reached(prefix << 1 & more) & last & !fifth;
        stops |= prefix << 1 & !odd | behind & bit_6;
    }
    if let Some(bits) = plain.reserved_information {
        stops |= information & planes.any(bits);
    }
    // In a fifth byte bits 5 to 3 say which instruction set it is; without any of them none.
    stops |= unusual | fifth & !planes.any(0b0011_1000) | p_header & reserved(planes);
    (ends, stops)
}

/// 64 bytes, as eight words: word n has bit n of each byte, the first byte's lowest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planes([u64; 8]);

impl Planes {
    /// Transposes the bytes of the words, so that neighbours come to lie in different words at the same place, and then the
    /// bits of the bytes that lie there.
    #[inline(always)]
    fn of(block: &[u8; 64]) -> Self {
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(block.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        for (apart, shift, mask) in [
            (4, 32, 0x0000_0000_ffff_ffff),
            (2, 16, 0x0000_ffff_0000_ffff),
            (1, 8, 0x00ff_00ff_00ff_00ff),
            (4, 4, 0x0f0f_0f0f_0f0f_0f0f),
            (2, 2, 0x3333_3333_3333_3333),
            (1, 1, 0x5555_5555_5555_5555),
        ] {
            for pair in words.chunks_exact_mut(2 * apart) {
                let (low, high) = pair.split_at_mut(apart);
                for (low, high) in low.iter_mut().zip(high) {
                    let differs = (*low >> shift ^ *high) & mask;
                    *high ^= differs;
                    *low ^= differs << shift;
                }
            }
        }
        Self(words)
    }

    /// The bytes that are `byte`.
    #[inline(always)]
    fn equal(&self, byte: u8) -> u64 {
        let same = |bit: usize| if byte >> bit & 1 == 1 { self.0[bit] } else { !self.0[bit] };
        (0..8).fold(u64::MAX, |all, bit| all & same(bit))
    }

    /// The bytes that have one of these bits.
    #[inline(always)]
    pub(super) fn any(&self, bits: u8) -> u64 {
        (0..8).filter(|bit| bits >> bit & 1 == 1).fold(0, |any, bit| any | self.0[bit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let (ends, stops) = ends(&Planes::of(&block), plain, |_| 0);
        assert_eq!(ends & 0x3ff, 0b10_1100_1011);
        assert_eq!(ends >> 10, u64::MAX >> 10);
        assert_eq!(stops, 0);
    }

    #[test]
    fn planes_are_the_bits_of_the_bytes() {
        let mut byte = 0x5a_u8;
        let block = [(); 64].map(|()| {
            byte = byte.wrapping_mul(37).wrapping_add(91);
            byte
        });
        let planes = Planes::of(&block);
        for (n, byte) in block.iter().enumerate() {
            let bits = planes.0.iter().rev().fold(0, |bits, plane| bits << 1 | plane >> n & 1);
            assert_eq!(bits, u64::from(*byte));
            assert_eq!(planes.equal(*byte) >> n & 1, 1);
        }
        assert_eq!(planes.any(0x81), planes.0[0] | planes.0[7]);
    }
}
