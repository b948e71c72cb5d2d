//! Branch addresses: one to five bytes, compressed against the last address that was sent.
//!
//! ETM architecture (IHI 0014Q), 7.3.5: the original encoding, which ETMv3 may use, and the alternative one,
//! which ETMv3.4 and later may use. PFT (IHI 0035B, 4.5.4) always uses the alternative one.
//!
//! | byte | A32 | Thumb | Jazelle | bit 7 |
//! |---|---|---|---|---|
//! | 1 | `A[7:2]` in 6:1 | `A[6:1]` | `A[5:0]` | another address byte follows |
//! | 2 | `A[14:8]` | `A[13:7]` | `A[12:6]` | the same |
//! | 3 | `A[21:15]` | `A[20:14]` | `A[19:13]` | the same |
//! | 4 | `A[28:22]` | `A[27:21]` | `A[26:20]` | the same |
//! | 5 | `001` and `A[31:29]` | `01` and `A[31:28]` | `1` and `A[31:27]` | original: see [`After::Deprecated`] |
//!
//! In the alternative encoding, the last of bytes 2 to 4 holds only six address bits: its bit 6 states that
//! exception information follows.
//!
//! ```
//! use tracewalk::ids::Isa;
//! use tracewalk::protocol::branch_address::Alignment;
//!
//! // Thumb and ThumbEE have the same alignment: another field says whether the alternative one is in use.
//! let alignment = Alignment::of(Isa::T32).expect("not A64");
//! assert_eq!((alignment.isa(false), alignment.isa(true)), (Isa::T32, Isa::T32EE));
//! ```

use alloc::vec::Vec;
use core::fmt;

use crate::cursor::{Cursor, NeedInput};
use crate::ids::{Address, Isa, Location};

/// The encoding that a trace unit uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum AddressEncoding {
    /// Bytes 2 to 4 always hold seven address bits; exceptions need all five bytes.
    Original,
    /// The last of bytes 2 to 4 holds six address bits, and exceptions may be compressed.
    Alternative,
}

/// The alignment of instructions, which is all that the address bytes state of the instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Alignment {
    /// A32.
    Word,
    /// Thumb or ThumbEE.
    Halfword,
    /// Jazelle.
    Byte,
}

/// An address field, decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchAddress {
    /// The bits that were sent, and the base's bits above them.
    pub address: Address,
    /// The number of the address's low bits that were sent; 32 if the base does not matter.
    pub bits_sent: u32,
    /// The alignment, if all five bytes were sent.
    pub alignment: Option<Alignment>,
    /// The continuation of the packet after the address bytes.
    pub after: After,
}

/// The continuation of the packet after the address bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Nothing.
    Nothing,
    /// Exception information bytes.
    ExceptionInformation,
    /// Nothing, but byte 5 named an exception by the deprecated code of the original encoding.
    Deprecated {
        /// The code, 0 to 7 (IHI 0014Q, table 7.7).
        code: u8,
        /// Whether the last instruction was cancelled.
        cancel: bool,
    },
}

/// Why an address field cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// The input ends inside the field.
    NeedInput,
    /// Byte 5 has a reserved value.
    Reserved {
        /// The value.
        found: u8,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeedInput => NeedInput.fmt(f),
            Self::Reserved { found } => write!(f, "found 0x{found:02x} as address byte 5, which is reserved"),
        }
    }
}

impl core::error::Error for ReadError {}

impl From<NeedInput> for ReadError {
    fn from(_: NeedInput) -> Self {
        Self::NeedInput
    }
}

impl Alignment {
    /// The alignment of an instruction set; `None` for A64, which these address fields cannot name.
    #[must_use]
    pub const fn of(isa: Isa) -> Option<Self> {
        match isa {
            Isa::A32 => Some(Self::Word),
            Isa::T32 | Isa::T32EE => Some(Self::Halfword),
            Isa::Jazelle => Some(Self::Byte),
            Isa::A64 => None,
        }
    }

    /// The instruction set, given whether the alternative one is in use.
    #[must_use]
    pub const fn isa(self, alternative: bool) -> Isa {
        match (self, alternative) {
            (Self::Word, _) => Isa::A32,
            (Self::Halfword, false) => Isa::T32,
            (Self::Halfword, true) => Isa::T32EE,
            (Self::Byte, _) => Isa::Jazelle,
        }
    }

    /// How many low address bits are not sent.
    const fn shift(self) -> u32 {
        match self {
            Self::Word => 2,
            Self::Halfword => 1,
            Self::Byte => 0,
        }
    }

    /// Byte 5: the bits that name the alignment.
    const fn marker(self) -> u8 {
        match self {
            Self::Word => 0b0000_1000,
            Self::Halfword => 0b0001_0000,
            Self::Byte => 0b0010_0000,
        }
    }

    /// Byte 5: the address bits.
    const fn top_bits(self) -> u8 {
        self.marker() - 1
    }

    /// The alignment that byte 5 names; `None` if it is reserved.
    const fn from_byte_5(byte: u8) -> Option<Self> {
        match byte & 0b0011_1111 {
            0b0010_0000..=0b0011_1111 => Some(Self::Byte),
            0b0001_0000..=0b0001_1111 => Some(Self::Halfword),
            0b0000_1000..=0b0000_1111 => Some(Self::Word),
            _ => None,
        }
    }
}

/// Another byte follows.
const CONTINUES: u8 = 0b1000_0000;
/// Exception information follows; only in a last byte that has this flag.
const EXCEPTION: u8 = 0b0100_0000;
/// The original encoding's byte 5 with bit 7 set: the exception's code and the cancel bit.
const DEPRECATED_CODE: u8 = 0b0011_1000;
const DEPRECATED_CANCEL: u8 = 0b0100_0000;

/// The most bytes in an address field.
pub const MOST_BYTES: usize = 5;

/// Address bits in bytes 1 to 4 together.
const BITS_IN_FOUR_BYTES: u32 = 27;

/// The address and alignment that a field is compressed against, from `last`, the last address sent. Without
/// it they are placeholders: a reader then only learns the field's length.
pub(super) fn base(last: Option<Location>) -> (Address, Alignment) {
    let known = last.and_then(|last| Some((last.address, Alignment::of(last.isa)?)));
    known.unwrap_or((Address::new(0), Alignment::Word))
}

/// Reads an address field. `base` is the last address that was sent, `alignment` that of the instruction set there.
pub(crate) fn read(
    cursor: &mut Cursor<'_>,
    encoding: AddressEncoding,
    base: Address,
    alignment: Alignment,
) -> Result<BranchAddress, ReadError> {
    let first = cursor.byte()?;
    let mut value = u32::from(first >> 1 & 0b0011_1111);
    let mut bits = 6;
    let mut byte = first;
    for number in 2..=4 {
        if byte & CONTINUES == 0 {
            return Ok(short(base, alignment, value, bits, After::Nothing));
        }
        byte = cursor.byte()?;
        if byte & CONTINUES == 0 && encoding == AddressEncoding::Alternative {
            value |= u32::from(byte & 0b0011_1111) << bits;
            let exception = byte & EXCEPTION != 0;
            let after = if exception { After::ExceptionInformation } else { After::Nothing };
            return Ok(short(base, alignment, value, bits + 6, after));
        }
        value |= u32::from(byte & 0b0111_1111) << bits;
        bits += 7;
        debug_assert_eq!(bits, 6 + 7 * (number - 1));
    }
    if byte & CONTINUES == 0 {
        return Ok(short(base, alignment, value, bits, After::Nothing));
    }
    full(cursor.byte()?, encoding, value)
}

/// A field of one to four bytes.
fn short(base: Address, alignment: Alignment, value: u32, bits: u32, after: After) -> BranchAddress {
    let bits_sent = bits + alignment.shift();
    let mask = (1 << bits_sent) - 1;
    let address = Address::from(base.low_word() & !mask | value << alignment.shift());
    BranchAddress { address, bits_sent, alignment: None, after }
}

/// A field of five bytes, of which the first four held `value`.
fn full(byte: u8, encoding: AddressEncoding, value: u32) -> Result<BranchAddress, ReadError> {
    let (alignment, after) = match (byte & CONTINUES != 0, encoding) {
        (true, AddressEncoding::Alternative) => return Err(ReadError::Reserved { found: byte }),
        (true, AddressEncoding::Original) => {
            let code = (byte & DEPRECATED_CODE) >> 3;
            (Alignment::Word, After::Deprecated { code, cancel: byte & DEPRECATED_CANCEL != 0 })
        }
        (false, _) => {
            let alignment = Alignment::from_byte_5(byte).ok_or(ReadError::Reserved { found: byte })?;
            let exception = byte & EXCEPTION != 0;
            (alignment, if exception { After::ExceptionInformation } else { After::Nothing })
        }
    };
    let top = u32::from(byte & alignment.top_bits());
    let address = Address::from((value | top << BITS_IN_FOUR_BYTES) << alignment.shift());
    Ok(BranchAddress { address, bits_sent: 32, alignment: Some(alignment), after })
}

/// Reads a field of one to four address bytes with nothing after it, without a branch per byte. `None` for
/// every other field: use [`read`].
#[inline]
pub(crate) fn read_short(
    bytes: [u8; 8],
    encoding: AddressEncoding,
    base: Address,
    alignment: Alignment,
) -> Option<(Address, usize)> {
    let word = u64::from_le_bytes(bytes);
    let ends = !word & 0x8080_8080;
    if ends == 0 {
        return None;
    }
    // The last byte is the first one with bit 7 clear.
    let index = ends.trailing_zeros() / 8;
    let last = word >> (8 * index);
    let alternative = encoding == AddressEncoding::Alternative && index > 0;
    if alternative && last & u64::from(EXCEPTION) != 0 {
        return None;
    }
    let gathered =
        word >> 1 & 0x3f | (word >> 8 & 0x7f) << 6 | (word >> 16 & 0x7f) << 13 | (word >> 24 & 0x7f) << 20;
    let bits = 6 + 7 * index - u32::from(alternative);
    let mask = (1_u32 << (bits + alignment.shift())) - 1;
    let value = u32::try_from(gathered & u64::from(u32::MAX)).unwrap_or_default() << alignment.shift();
    Some((Address::from(base.low_word() & !mask | value & mask), index as usize + 1))
}

/// The content of an address field to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The address.
    pub address: Address,
    /// The alignment at the address.
    pub alignment: Alignment,
    /// Whether to send all five bytes even if fewer would do.
    pub all_bytes: bool,
    /// The continuation of the packet after the address bytes.
    pub after: After,
}

/// Appends the shortest field for `target`, given the last address sent and its alignment.
pub fn write(
    bytes: &mut Vec<u8>,
    encoding: AddressEncoding,
    base: Address,
    base_alignment: Alignment,
    target: Target,
) {
    let value = target.address.low_word() >> target.alignment.shift();
    let changed = (base.low_word() ^ target.address.low_word()) >> target.alignment.shift();
    let exception = target.after == After::ExceptionInformation;
    let deprecated = matches!(target.after, After::Deprecated { .. });
    let full = target.all_bytes
        || deprecated
        || base_alignment != target.alignment
        || exception && encoding == AddressEncoding::Original;
    let shortest = if exception { 2 } else { 1 };
    let count =
        if full { 5 } else { (shortest..5).find(|&n| changed >> bits_in(encoding, n) == 0).unwrap_or(5) };
    let byte = |from: u32, width: u32| u8::try_from(value >> from & ((1 << width) - 1)).unwrap_or(0);
    let more = |number: u32| if number < count { CONTINUES } else { 0 };
    bytes.push(byte(0, 6) << 1 | 1 | more(1));
    for number in 2..=count.min(4) {
        let from = 6 + 7 * (number - 2);
        let last_of_alternative = number == count && encoding == AddressEncoding::Alternative;
        let flag = if last_of_alternative && exception { EXCEPTION } else { 0 };
        bytes.push(byte(from, if last_of_alternative { 6 } else { 7 }) | more(number) | flag);
    }
    if count == 5 {
        let top = byte(BITS_IN_FOUR_BYTES, 8) & target.alignment.top_bits();
        bytes.push(match target.after {
            After::Nothing => top | target.alignment.marker(),
            After::ExceptionInformation => top | target.alignment.marker() | EXCEPTION,
            After::Deprecated { code, cancel } => {
                CONTINUES | top | code << 3 & DEPRECATED_CODE | if cancel { DEPRECATED_CANCEL } else { 0 }
            }
        });
    }
}

/// The number of address bits in a field of `bytes` bytes, at most four.
const fn bits_in(encoding: AddressEncoding, bytes: u32) -> u32 {
    match (encoding, bytes) {
        (_, 1) => 6,
        (AddressEncoding::Original, _) => 7 * bytes - 1,
        (AddressEncoding::Alternative, _) => 7 * bytes - 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_alignment() -> impl Strategy<Value = Alignment> {
        prop_oneof![Just(Alignment::Word), Just(Alignment::Halfword), Just(Alignment::Byte)]
    }

    fn any_encoding() -> impl Strategy<Value = AddressEncoding> {
        prop_oneof![Just(AddressEncoding::Original), Just(AddressEncoding::Alternative)]
    }

    proptest! {
        #[test]
        fn a_written_address_is_read_back(
            encoding in any_encoding(),
            base: u32,
            base_alignment in any_alignment(),
            distance in 0_u32..32,
            noise: u32,
            alignment in any_alignment(),
            all_bytes: bool,
            exception: bool,
        ) {
            // Addresses near the base, so that every length occurs.
            let aligned = |address: u32, alignment: Alignment| address >> alignment.shift() << alignment.shift();
            let base = Address::from(aligned(base, base_alignment));
            let address = Address::from(aligned(base.low_word() ^ noise >> distance, alignment));
            let after = if exception { After::ExceptionInformation } else { After::Nothing };
            let mut bytes = Vec::new();
            write(&mut bytes, encoding, base, base_alignment, Target { address, alignment, all_bytes, after });
            let mut cursor = Cursor::new(&bytes);
            let read = read(&mut cursor, encoding, base, base_alignment).unwrap();
            prop_assert_eq!(read.address, address);
            prop_assert_eq!(read.after, after);
            prop_assert_eq!(read.alignment.unwrap_or(base_alignment), alignment);
            prop_assert_eq!(cursor.position(), bytes.len());
            prop_assert!(!all_bytes || bytes.len() == 5);
        }
    }

    proptest! {
        #[test]
        fn a_short_address_is_read_as_any_other(
            bytes: [u8; 8],
            few in 0_usize..4,
            encoding in any_encoding(),
            base: u32,
            alignment in any_alignment(),
        ) {
            // Random bytes seldom end early.
            let mut bytes = bytes;
            bytes[few] &= !CONTINUES;
            let mut cursor = Cursor::new(&bytes);
            let base = Address::from(base);
            let any = read(&mut cursor, encoding, base, alignment);
            let short = read_short(bytes, encoding, base, alignment);
            match (any, short) {
                (Ok(field), Some(short)) => {
                    prop_assert_eq!((field.address, cursor.position()), short);
                    prop_assert_eq!(field.after, After::Nothing);
                }
                (Ok(field), None) => prop_assert!(field.alignment.is_some() || field.after != After::Nothing),
                (Err(_), short) => prop_assert_eq!(short, None),
            }
        }
    }

    #[test]
    fn the_two_encodings_read_the_same_bytes_differently() {
        let base = Address::new(0xc000_7000);
        let read_as =
            |encoding| read(&mut Cursor::new(&[0x95, 0x02]), encoding, base, Alignment::Halfword).unwrap();
        assert_eq!(read_as(AddressEncoding::Original).address, Address::new(0xc000_4114));
        assert_eq!(read_as(AddressEncoding::Alternative).address, Address::new(0xc000_6114));
    }

    #[test]
    fn reserved_fifth_bytes_are_refused() {
        let with_byte_5 = |encoding, byte| {
            let bytes = [0x81, 0x80, 0x80, 0x80, byte];
            read(&mut Cursor::new(&bytes), encoding, Address::new(0), Alignment::Word)
        };
        assert_eq!(with_byte_5(AddressEncoding::Original, 0x07), Err(ReadError::Reserved { found: 0x07 }));
        assert_eq!(with_byte_5(AddressEncoding::Alternative, 0x88), Err(ReadError::Reserved { found: 0x88 }));
        let deprecated = with_byte_5(AddressEncoding::Original, 0b1100_1000).unwrap();
        assert_eq!(deprecated.after, After::Deprecated { code: 1, cancel: true });
    }
}
