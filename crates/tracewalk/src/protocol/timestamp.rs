//! The timestamp field that ETMv3.5 and PFT share.
//!
//! ETM architecture (IHI 0014Q), 7.7.4 and PFT architecture (IHI 0035B), 4.5.9: groups of seven bits, least significant
//! first; bits that are not sent keep their value from the last timestamp.
//!
//! ```
//! use tracewalk::protocol::timestamp::{TimestampCoding, TimestampFormat, TimestampWidth};
//!
//! let format = TimestampFormat { width: TimestampWidth::Bits48, coding: TimestampCoding::Gray };
//! let (last, new) = (format.raw(4000), format.raw(4001));
//! let mut bytes = Vec::new();
//! format.write(last, new, &mut bytes);
//! assert_eq!((bytes.len(), format.value(new)), (1, 4001)); // one bit of a Gray code differs
//! ```

use alloc::vec::Vec;

use crate::cursor::{Cursor, NeedInput};

/// How a trace unit writes its timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TimestampFormat {
    /// The width of a timestamp.
    pub width: TimestampWidth,
    /// The coding of the value.
    pub coding: TimestampCoding,
}

/// The width of timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TimestampWidth {
    /// 48 bits, in at most seven bytes.
    #[default]
    Bits48,
    /// 64 bits, in at most nine bytes.
    Bits64,
}

/// The coding of a timestamp's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TimestampCoding {
    /// A natural binary number.
    Binary,
    /// A Gray code.
    #[default]
    Gray,
}

/// The last timestamp's bits as they were sent; the next timestamp is compressed against them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RawTimestamp(u64);

impl RawTimestamp {
    /// With the lowest `count` bits of `low`.
    pub(crate) const fn with_low_bits(self, count: usize, low: u64) -> Self {
        let mask = if count < 64 { (1 << count) - 1 } else { u64::MAX };
        Self(self.0 & !mask | low & mask)
    }

    /// All bits.
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }
}

impl TimestampWidth {
    /// The most bytes a timestamp takes.
    const fn longest(self) -> u32 {
        match self {
            Self::Bits48 => 7,
            Self::Bits64 => 9,
        }
    }

    /// How many bits the longest form's last byte holds; its bit 7 never continues.
    const fn last_byte_bits(self) -> u32 {
        match self {
            Self::Bits48 => 6,
            Self::Bits64 => 8,
        }
    }

    /// All bits of a value.
    const fn mask(self) -> u64 {
        match self {
            Self::Bits48 => (1 << 48) - 1,
            Self::Bits64 => u64::MAX,
        }
    }
}

impl TimestampFormat {
    /// Reads the field after a timestamp header, against the bits of the last one.
    pub(crate) fn read(self, cursor: &mut Cursor<'_>, last: RawTimestamp) -> Result<RawTimestamp, NeedInput> {
        let mut value = last.0;
        for index in 0..self.width.longest() {
            let byte = cursor.byte()?;
            let bits = if index + 1 == self.width.longest() { self.width.last_byte_bits() } else { 7 };
            let mask = ((1_u64 << bits) - 1) << (7 * index);
            value = value & !mask | u64::from(byte) << (7 * index) & mask;
            if byte & 0b1000_0000 == 0 {
                break;
            }
        }
        Ok(RawTimestamp(value & self.width.mask()))
    }

    /// Appends the shortest field that turns `last` into `new`.
    pub fn write(self, last: RawTimestamp, new: RawTimestamp, bytes: &mut Vec<u8>) {
        let changed = last.0 ^ new.0;
        for index in 0..self.width.longest() {
            let last_byte = index + 1 == self.width.longest();
            let bits = if last_byte { self.width.last_byte_bits() } else { 7 };
            let group = (new.0 >> (7 * index)) & ((1 << bits) - 1);
            let more = !last_byte && changed >> (7 * (index + 1)) != 0;
            bytes.push(u8::try_from(group).unwrap_or(u8::MAX) | u8::from(more) << 7);
            if !more {
                break;
            }
        }
    }

    /// The time for the bits as sent.
    #[must_use]
    pub const fn value(self, raw: RawTimestamp) -> u64 {
        match self.coding {
            TimestampCoding::Binary => raw.0,
            TimestampCoding::Gray => {
                let mut value = raw.0;
                let mut shift = 1;
                while shift < 64 {
                    value ^= value >> shift;
                    shift *= 2;
                }
                value
            }
        }
    }

    /// The bits to send for a time, cut to the width.
    #[must_use]
    pub const fn raw(self, value: u64) -> RawTimestamp {
        let value = value & self.width.mask();
        match self.coding {
            TimestampCoding::Binary => RawTimestamp(value),
            TimestampCoding::Gray => RawTimestamp(value ^ (value >> 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_format() -> impl Strategy<Value = TimestampFormat> {
        let width = prop_oneof![Just(TimestampWidth::Bits48), Just(TimestampWidth::Bits64)];
        let coding = prop_oneof![Just(TimestampCoding::Binary), Just(TimestampCoding::Gray)];
        (width, coding).prop_map(|(width, coding)| TimestampFormat { width, coding })
    }

    /// IHI 0014Q, 7.7.4: seven bits a byte, from the lowest up to the last one that changed.
    #[test]
    fn a_timestamp_takes_as_many_bytes_as_changed() {
        let format = TimestampFormat { width: TimestampWidth::Bits48, coding: TimestampCoding::Binary };
        let written = |last, new| {
            let mut bytes = Vec::new();
            format.write(RawTimestamp(last), RawTimestamp(new), &mut bytes);
            bytes
        };
        assert_eq!(written(0, 0), [0x00]);
        assert_eq!(written(0x80, 0xff), [0x7f]);
        assert_eq!(written(0, 0x80), [0x80, 0x01]);
        assert_eq!(written(0, 0x4000), [0x80, 0x80, 0x01]);
        assert_eq!(written(0, 1 << 41), [0x80, 0x80, 0x80, 0x80, 0x80, 0x40]);
        assert_eq!(written(0, 1 << 47), [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20]);
    }

    proptest! {
        #[test]
        fn a_written_timestamp_is_read_back(format in any_format(), last: u64, new: u64) {
            let (last, new) = (format.raw(last), format.raw(new));
            let mut bytes = Vec::new();
            format.write(last, new, &mut bytes);
            let mut cursor = Cursor::new(&bytes);
            prop_assert_eq!(format.read(&mut cursor, last), Ok(new));
            prop_assert_eq!(cursor.position(), bytes.len());
        }

        #[test]
        fn gray_coded_neighbours_differ_in_one_bit(value in 0_u64..u64::MAX) {
            let format = TimestampFormat { width: TimestampWidth::Bits64, coding: TimestampCoding::Gray };
            let (one, next) = (format.raw(value), format.raw(value + 1));
            prop_assert_eq!((one.0 ^ next.0).count_ones(), 1);
            prop_assert_eq!(format.value(one), value);
        }
    }

    #[test]
    fn the_longest_form_ends_without_a_stop_bit() {
        let format = TimestampFormat { width: TimestampWidth::Bits48, coding: TimestampCoding::Binary };
        let mut cursor = Cursor::new(&[0xff; 8]);
        let raw = format.read(&mut cursor, RawTimestamp::default()).unwrap();
        assert_eq!((format.value(raw), cursor.position()), ((1 << 48) - 1, 7));
    }
}
