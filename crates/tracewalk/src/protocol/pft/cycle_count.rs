//! PFT's cycle count field (4.5.4): the number of cycles since the last count.
//!
//! | byte | bit 7 | bit 6 | bits 5:2 | bits 1:0 |
//! |---|---|---|---|---|
//! | 1 | the packet's | another byte follows | `count[3:0]` | the packet's |
//!
//! | byte | bit 7 | bits 6:0 |
//! |---|---|---|
//! | 2 to 5 | another byte follows; byte 5 is the last whatever it says | `count[10:4]`, `[17:11]`, `[24:18]`, `[31:25]` |
//!
//! In an atom packet the first byte is the header. In other packets the bits that are the packet's are zero,
//! except that the Cortex-A15 sets bit 7 in every I-sync packet. Reading accepts both; writing follows the
//! hardware.

use alloc::vec::Vec;

use crate::cursor::{Cursor, NeedInput};

/// Another byte follows the first one.
const FIRST_CONTINUES: u8 = 0b0100_0000;
/// The count's low bits in the first byte.
const FIRST_COUNT: u8 = 0b0011_1100;
/// Bits of the first byte that are not the count's.
const FIRST_OTHERS: u8 = 0b1000_0011;
/// The other bits in an I-sync packet.
pub(super) const I_SYNC_OTHERS: u8 = 0b1000_0000;
/// The other bits that are zero in all packets but atoms.
pub(super) const FIRST_RESERVED: u8 = 0b0000_0011;
/// Another byte follows a later one.
const CONTINUES: u8 = 0b1000_0000;
/// The most bytes after the first one.
const MOST_LATER_BYTES: u32 = 4;

/// Reads the rest of a count whose first byte was `first`.
pub(super) fn read(cursor: &mut Cursor<'_>, first: u8) -> Result<u32, NeedInput> {
    let mut count = u32::from((first & FIRST_COUNT) >> 2);
    let mut more = first & FIRST_CONTINUES != 0;
    for index in 0..MOST_LATER_BYTES {
        if !more {
            break;
        }
        let byte = cursor.byte()?;
        count |= u32::from(byte & !CONTINUES) << (4 + 7 * index);
        more = byte & CONTINUES != 0;
    }
    Ok(count)
}

/// Appends the shortest field for `count`; `others` are the packet's bits of the first byte.
pub(super) fn write(count: u32, others: u8, bytes: &mut Vec<u8>) {
    let group = |from: u32, width: u32| u8::try_from(count >> from & ((1 << width) - 1)).unwrap_or_default();
    let mut rest = count >> 4;
    let continues = if rest == 0 { 0 } else { FIRST_CONTINUES };
    bytes.push(others & FIRST_OTHERS | group(0, 4) << 2 | continues);
    let mut from = 4;
    while rest != 0 {
        rest >>= 7;
        let continues = if rest == 0 { 0 } else { CONTINUES };
        bytes.push(group(from, 7) | continues);
        from += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_written_count_is_read_back(noise: u32, shift in 0_u32..32, others: u8) {
            let count = noise >> shift;
            let mut bytes = Vec::new();
            write(count, others, &mut bytes);
            let mut cursor = Cursor::new(&bytes);
            let first = cursor.byte().unwrap();
            prop_assert_eq!(first & FIRST_OTHERS, others & FIRST_OTHERS);
            prop_assert_eq!(read(&mut cursor, first), Ok(count));
            prop_assert_eq!(cursor.position(), bytes.len());
        }
    }

    #[test]
    fn the_fifth_byte_ends_the_field_whatever_its_bit_7() {
        let mut cursor = Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(read(&mut cursor, 0xc4), Ok(0xffff_fff1));
        assert_eq!(cursor.position(), 4);
    }
}
