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
/// bit 7 of each byte of a word that is no packet although it is even and has bit 7 set.
#[inline]
pub(super) fn skim(input: &[u8], plain: Plain, reserved: impl Fn(u64) -> u64) -> (usize, u64) {
    let (mut bytes, mut packets) = (0, 0);
    while let Some(block) = input.get(bytes..).and_then(<[u8]>::first_chunk::<64>) {
        let (ends, stopped) = ends(block, plain, &reserved);
        bytes += 64 - ends.leading_zeros() as usize;
        packets += u64::from(ends.count_ones());
        if stopped || ends == 0 {
            break;
        }
    }
    (bytes, packets)
}

/// Where packets end, up to where something else stands, and whether something does.
#[inline(always)]
fn ends(block: &[u8; 64], plain: Plain, reserved: impl Fn(u64) -> u64) -> (u64, bool) {
    let more = all(block, |word| word);
    let odd = all(block, |word| word << 7);
    let bit_6 = all(block, |word| word << 1);
    let alone = !more;
    // An address has five bytes at most, of which four say that there are more.
    let spread = |from: u64| (0..3).fold(from, |all, _| all | all << 1 & more);
    let branch = spread(odd & more);
    let start = branch & !(branch << 1);
    let first_four = start | start << 1 | start << 2 | start << 3;
    let last = branch << 1 & alone;
    let fifth = last & (branch & branch << 1 & branch << 2 & branch << 3) << 1;
    let announcing = last & bit_6 & if plain.announces == Announces::AsTheFifth { fifth } else { last };
    let information = announcing << 1;
    let header = alone & !last & !information;
    let short = header & odd;
    let p_header = more & !branch;
    let mut stops = (branch << 1 & more | branch) & !first_four | information & more;
    let mut ends = p_header | short | last & !announcing | information;
    // What follows is asked only where it matters: most blocks have not all of it.
    let mut unusual = header & !odd;
    if let Some(single) = plain.single.filter(|_| unusual != 0) {
        let single = unusual & all(block, |word| equal(word, single));
        ends |= single;
        unusual &= !single;
    }
    if let Some(prefix) = plain.prefix.filter(|_| unusual != 0) {
        let prefix = unusual & all(block, |word| equal(word, prefix));
        unusual &= !prefix;
        // An address of less than five bytes has no exception information there.
        let behind = spread(prefix << 1 & more) << 1 & last & !fifth;
        stops |= prefix << 1 & !odd | behind & bit_6;
    }
    stops |= unusual;
    if fifth != 0 {
        // Bits 5 to 3 say which instruction set it is; without any of them none.
        stops |= fifth & all(block, |word| !(word << 2 | word << 3 | word << 4));
    }
    if let Some(bit) = plain.reserved_information.filter(|_| information != 0) {
        stops |= information & all(block, |word| !equal(word & LOW_BITS.wrapping_mul(u64::from(bit)), 0));
    }
    if p_header != 0 {
        stops |= p_header & all(block, reserved);
    }
    let first_stop = stops & stops.wrapping_neg();
    (ends & first_stop.wrapping_sub(1), stops != 0)
}

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = LOW_BITS << 7;

/// One bit for each byte of the block: bit 7 of what `class` makes of it, eight bytes at a time.
#[inline(always)]
fn all(block: &[u8; 64], class: impl Fn(u64) -> u64) -> u64 {
    let words = block.as_chunks().0.iter().zip((0..).step_by(8));
    words.fold(0, |all, (word, place)| all | gather(class(u64::from_le_bytes(*word))) << place)
}

/// Bit 7 of byte n becomes bit n: each product with a power of two puts one of them in its place, and no two of all the
/// products meet.
#[inline(always)]
const fn gather(word: u64) -> u64 {
    (word & HIGH_BITS).wrapping_mul(0x0002_0408_1020_4081) >> 56
}

/// Bit 7 of each byte that is `byte`.
#[inline(always)]
const fn equal(word: u64, byte: u8) -> u64 {
    let differs = word ^ LOW_BITS.wrapping_mul(byte as u64);
    !((differs & !HIGH_BITS).wrapping_add(!HIGH_BITS) | differs) & HIGH_BITS
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
        let (ends, stopped) = ends(&block, plain, |_| 0);
        assert_eq!(ends & 0x3ff, 0b10_1100_1011);
        assert_eq!(ends >> 10, u64::MAX >> 10);
        assert!(!stopped);
    }
}
