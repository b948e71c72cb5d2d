//! Fields of an encoding, numbered as the manuals number them.

/// Bits `HIGH` to `LOW` of `encoding`, moved down to bit 0.
#[inline]
pub(crate) const fn field<const HIGH: u32, const LOW: u32>(encoding: u32) -> u32 {
    (encoding << (31 - HIGH)) >> (31 - HIGH + LOW)
}

/// Whether bit `N` of `encoding` is set.
#[inline]
pub(crate) const fn bit<const N: u32>(encoding: u32) -> bool {
    encoding & (1 << N) != 0
}
