//! Reading a packet's bytes front to back, with "not there yet" as an ordinary answer.

use core::fmt;

/// A place in a slice of input. Reading past its end is [`NeedInput`], never a panic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    input: &'a [u8],
    position: usize,
}

/// The input ends before the field does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeedInput;

impl fmt::Display for NeedInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the input ends before the field does")
    }
}

impl core::error::Error for NeedInput {}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `input`.
    #[must_use]
    #[inline]
    pub(crate) const fn new(input: &'a [u8]) -> Self {
        Self { input, position: 0 }
    }

    /// How many bytes were read so far.
    #[must_use]
    #[inline]
    pub(crate) const fn position(&self) -> usize {
        self.position
    }

    /// The next byte.
    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, NeedInput> {
        let byte = self.peek().ok_or(NeedInput)?;
        self.position += 1;
        Ok(byte)
    }

    /// The next byte, left where it is.
    #[must_use]
    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.input.get(self.position).copied()
    }

    /// An unsigned little-endian number of `bytes` bytes, at most eight.
    #[inline]
    pub(crate) fn little_endian(&mut self, bytes: u8) -> Result<u64, NeedInput> {
        let mut value = 0;
        for index in 0..u32::from(bytes.min(8)) {
            value |= u64::from(self.byte()?) << (8 * index);
        }
        Ok(value)
    }

    /// An unsigned little-endian number of `bytes` bytes, at most four.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "four bytes have 32 bits")]
    pub(crate) fn little_endian_word(&mut self, bytes: u8) -> Result<u32, NeedInput> {
        self.little_endian(bytes.min(4)).map(|value| value as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_little_endian_and_stop_at_the_end() {
        let mut cursor = Cursor::new(&[0x78, 0x56, 0x34, 0x12, 0xaa]);
        assert_eq!(cursor.little_endian_word(4), Ok(0x1234_5678));
        assert_eq!(cursor.little_endian(2), Err(NeedInput));
        assert_eq!(cursor.peek(), None);
    }

    #[test]
    fn numbers_have_up_to_eight_bytes_and_words_up_to_four() {
        let bytes = [0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x81, 0xff];
        for (size, expected) in [(0, 0), (1, 0xef), (5, 0x67_89ab_cdef), (8, 0x8123_4567_89ab_cdef)] {
            assert_eq!(Cursor::new(&bytes).little_endian(size), Ok(expected));
        }
        let mut cursor = Cursor::new(&bytes);
        assert_eq!((cursor.little_endian_word(9), cursor.position()), (Ok(0x89ab_cdef), 4));
        let mut cursor = Cursor::new(&bytes);
        assert_eq!((cursor.little_endian(9), cursor.position()), (Ok(0x8123_4567_89ab_cdef), 8));
    }
}
