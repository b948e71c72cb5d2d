//! A partly known value.

/// The width of a value in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Width {
    /// 32 bits: the registers of A32 and T32, and W registers.
    Word,
    /// 64 bits: X registers.
    Double,
}

impl Width {
    /// The number of bits.
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Self::Word => 32,
            Self::Double => 64,
        }
    }

    /// All bits of a value of this width.
    pub(crate) const fn mask(self) -> u64 {
        match self {
            Self::Word => 0xffff_ffff,
            Self::Double => u64::MAX,
        }
    }

    /// The highest bit.
    pub(crate) const fn sign(self) -> u64 {
        1 << (self.bits() - 1)
    }

    /// `value` as a two's complement number of this width.
    pub(crate) const fn signed(self, value: u64) -> i64 {
        sign_extend(value, self.bits()).cast_signed()
    }
}

/// The lowest `count` bits.
pub(crate) const fn low_mask(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// `value` of `count` bits, with its highest bit copied to all bits above.
pub(crate) const fn sign_extend(value: u64, count: u32) -> u64 {
    let above = 64 - count;
    ((value << above).cast_signed() >> above).cast_unsigned()
}

/// A partly known value. A value of 32 bits has known zeros above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits {
    /// The bits that are known.
    pub(crate) known: u64,
    /// The known bits that are set: a subset of `known`.
    pub(crate) ones: u64,
}

/// Two statements about one value that cannot both be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict;

impl Bits {
    /// An unknown value.
    pub(crate) const fn unknown(width: Width) -> Self {
        Self { known: !width.mask(), ones: 0 }
    }

    /// A known value.
    pub(crate) const fn constant(value: u64) -> Self {
        Self { known: u64::MAX, ones: value }
    }

    /// A value of `count` unknown bits with zeros above.
    pub(crate) const fn of_low(count: u32) -> Self {
        Self { known: !low_mask(count), ones: 0 }
    }

    /// The value, if all bits are known.
    pub(crate) const fn value(self) -> Option<u64> {
        if self.known == u64::MAX { Some(self.ones) } else { None }
    }

    /// The smallest possible value.
    pub(crate) const fn least(self) -> u64 {
        self.ones
    }

    /// The greatest possible value.
    pub(crate) const fn greatest(self) -> u64 {
        self.ones | !self.known
    }

    /// The bits that are known to be zero.
    const fn zeros(self) -> u64 {
        self.known & !self.ones
    }

    /// What is known if both statements are true.
    pub(crate) const fn meet(self, other: Self) -> Result<Self, Conflict> {
        if (self.ones ^ other.ones) & self.known & other.known != 0 {
            return Err(Conflict);
        }
        Ok(Self { known: self.known | other.known, ones: self.ones | other.ones })
    }

    /// What is known if one of the statements is true.
    pub(crate) const fn join(self, other: Self) -> Self {
        let known = self.known & other.known & !(self.ones ^ other.ones);
        Self { known, ones: self.ones & known }
    }

    /// Whether both could be the same value.
    pub(crate) const fn may_equal(self, other: Self) -> bool {
        (self.ones ^ other.ones) & self.known & other.known == 0
    }

    /// What is known of a value from `least` to `greatest`: the high bits that the bounds share.
    pub(crate) const fn within(self, least: u64, greatest: u64) -> Result<Self, Conflict> {
        let least = if least > self.least() { least } else { self.least() };
        let greatest = if greatest < self.greatest() { greatest } else { self.greatest() };
        if least > greatest {
            return Err(Conflict);
        }
        let shared = !low_mask(64 - (least ^ greatest).leading_zeros());
        self.meet(Self { known: shared, ones: least & shared })
    }

    /// The complement.
    pub(crate) const fn not(self, width: Width) -> Self {
        Self { known: self.known, ones: self.zeros() & width.mask() }
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        let ones = self.ones & other.ones;
        Self { known: ones | self.zeros() | other.zeros(), ones }
    }

    pub(crate) const fn or(self, other: Self) -> Self {
        let ones = self.ones | other.ones;
        Self { known: ones | self.zeros() & other.zeros(), ones }
    }

    pub(crate) const fn xor(self, other: Self) -> Self {
        let known = self.known & other.known;
        Self { known, ones: (self.ones ^ other.ones) & known }
    }

    /// The sum with a carry, whose bit is known or not.
    pub(crate) const fn add(self, other: Self, carry: Option<bool>, width: Width) -> Self {
        let (carry_least, carry_greatest) = match carry {
            Some(carry) => (carry as u64, carry as u64),
            None => (0, 1),
        };
        let least = self.least().wrapping_add(other.least()).wrapping_add(carry_least);
        let greatest = self.greatest().wrapping_add(other.greatest()).wrapping_add(carry_greatest);
        // The carry into each bit: certainly one in the least sum, certainly zero in the greatest.
        let carried = least ^ self.ones ^ other.ones;
        let not_carried = !(greatest ^ self.greatest() ^ other.greatest());
        let known = self.known & other.known & (carried | not_carried) | !width.mask();
        Self { known, ones: least & known & width.mask() }
    }

    /// The difference.
    pub(crate) const fn sub(self, other: Self, width: Width) -> Self {
        self.add(other.not(width), Some(true), width)
    }

    /// The sum with a known value.
    pub(crate) const fn plus(self, value: u64, width: Width) -> Self {
        if value == 0 {
            return self;
        }
        self.add(Self::constant(value & width.mask()), Some(false), width)
    }

    /// The low half of the product.
    pub(crate) const fn mul(self, other: Self, width: Width) -> Self {
        let (left, right) = (self.trailing_known(), other.trailing_known());
        let (left_zeros, right_zeros) = (self.trailing_zeros(), other.trailing_zeros());
        let left = left.saturating_add(right_zeros);
        let right = right.saturating_add(left_zeros);
        let low = low_mask(if left < right { left } else { right }) & width.mask();
        let product = self.ones.wrapping_mul(other.ones);
        let greatest = self.greatest() as u128 * other.greatest() as u128;
        let high = if greatest > width.mask() as u128 {
            !width.mask()
        } else {
            !low_mask(128 - greatest.leading_zeros())
        };
        Self { known: low | high, ones: product & low & !high }
    }

    /// The number of low bits that are known.
    const fn trailing_known(self) -> u32 {
        self.known.trailing_ones()
    }

    /// The number of low bits that are known to be zero.
    pub(crate) const fn trailing_zeros(self) -> u32 {
        self.zeros().trailing_ones()
    }

    /// Shifted left by less than the width.
    pub(crate) const fn shl(self, by: u32, width: Width) -> Self {
        let known = self.known << by | low_mask(by) | !width.mask();
        Self { known, ones: self.ones << by & width.mask() }
    }

    /// Shifted right by less than the width.
    pub(crate) const fn shr(self, by: u32) -> Self {
        Self { known: self.known >> by | !(u64::MAX >> by), ones: self.ones >> by }
    }

    /// Moved by a function that takes each bit to a place.
    pub(crate) fn moved(self, width: Width, place: impl Fn(u64) -> u64) -> Self {
        Self { known: place(self.known & width.mask()) | !width.mask(), ones: place(self.ones) }
    }

    /// `count` bits from `low` on, with zeros above.
    pub(crate) const fn field(self, low: u32, count: u32) -> Self {
        let mask = low_mask(count);
        Self { known: self.known >> low & mask | !mask, ones: self.ones >> low & mask }
    }

    /// The same field, with its highest bit copied above.
    pub(crate) const fn signed_field(self, low: u32, count: u32, width: Width) -> Self {
        let mask = low_mask(count);
        let known = sign_extend(self.known >> low & mask, count) | !width.mask();
        Self { known, ones: sign_extend(self.ones >> low & mask, count) & width.mask() }
    }

    /// Only `count` bits from `low` on are known, and they are the low bits of this value.
    pub(crate) const fn placed(self, low: u32, count: u32, width: Width) -> Self {
        let mask = low_mask(count);
        Self {
            known: (self.known & mask) << low | !width.mask(),
            ones: (self.ones & mask) << low & width.mask(),
        }
    }
}
