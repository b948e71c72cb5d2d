//! Fields of an encoding, numbered as the manual numbers them.

/// Bits `HIGH` to `LOW` of `encoding`, moved down to bit 0.
#[inline]
pub(super) const fn field<const HIGH: u32, const LOW: u32>(encoding: u32) -> u32 {
    (encoding << (31 - HIGH)) >> (31 - HIGH + LOW)
}

/// Whether bit `N` of `encoding` is set.
#[inline]
pub(super) const fn bit<const N: u32>(encoding: u32) -> bool {
    encoding & (1 << N) != 0
}

/// `value` as a two's complement number of `BITS` bits.
#[inline]
pub(super) const fn sign_extend<const BITS: u32>(value: u32) -> i32 {
    (value << (32 - BITS)).cast_signed() >> (32 - BITS)
}

/// The number of registers in a list of 16 bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "at most 16")]
pub(super) const fn registers_in_list(encoding: u32) -> u8 {
    field::<15, 0>(encoding).count_ones() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_numbered_from_the_top() {
        assert_eq!(field::<31, 28>(0xe12f_ff1e), 0xe);
        assert_eq!(field::<15, 0>(0xe12f_ff1e), 0xff1e);
        assert_eq!(field::<31, 0>(0xe12f_ff1e), 0xe12f_ff1e);
        assert!(bit::<31>(0x8000_0000) && !bit::<30>(0x8000_0000));
    }

    #[test]
    fn the_highest_bit_is_the_sign() {
        assert_eq!(sign_extend::<24>(0x00ff_fffe), -2);
        assert_eq!(sign_extend::<24>(0x007f_ffff), 0x007f_ffff);
    }
}
