//! What the values of an operation tell about one another, bit by bit and in every direction.

use crate::bits::{Bits, Conflict, Width, low_mask, sign_extend};

/// An equation between a result `d` and up to three operands `a`, `b` and `c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// d = a + b
    Add,
    And,
    Or,
    Xor,
    /// d = the low half of a * b
    Mul,
    /// d = the high half of a * b
    MulHigh {
        signed: bool,
    },
    /// d = a / b rounded towards zero; 0 if b is 0.
    Div {
        signed: bool,
    },
    /// d = a shifted by the low byte of b.
    Shift(Shift),
    /// d = `count` bits of a from `low` on, with zeros or the sign above.
    Field {
        low: u8,
        count: u8,
        signed: bool,
    },
    /// d = a, but for `count` bits from `low` on, which are the low bits of b.
    Insert {
        low: u8,
        count: u8,
    },
    /// The bits of d from `to` on and those of a from `from` on are the same; others have nothing to do with one another.
    Share {
        to: u8,
        from: u8,
        count: u8,
    },
    /// d = the bits of a at other places.
    Permute(Permutation),
    /// d = the number of zeros above the highest one in a.
    LeadingZeros,
    /// d = whether a + b + c carries out.
    Carry,
    /// d = whether a >= b + c, with c of one bit: whether a - b - c borrows nothing.
    NoBorrow,
    /// d = whether a < b as signed numbers.
    LessSigned,
    /// d = whether a is 0.
    IsZero,
    /// d = a if c is 1, otherwise b.
    Select,
}

/// The shifts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shift {
    Left,
    Right,
    Arithmetic,
    Rotate,
}

/// The ways to move bits of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permutation {
    /// Bytes of the whole value.
    Bytes,
    /// Bytes of each halfword.
    BytesOfHalves,
    /// Bytes of each word.
    BytesOfWords,
    /// Bits of the whole value.
    Bits,
    /// Rotated right.
    Rotate(u8),
}

impl Permutation {
    /// The bits of `value` at their places.
    pub(crate) const fn apply(self, value: u64, width: Width) -> u64 {
        let above = 64 - width.bits();
        match self {
            Self::Bytes => value.swap_bytes() >> above,
            Self::BytesOfHalves => {
                const LOW: u64 = 0x00ff_00ff_00ff_00ff;
                value >> 8 & LOW | (value & LOW) << 8
            }
            Self::BytesOfWords => value.swap_bytes().rotate_right(32),
            Self::Bits => value.reverse_bits() >> above,
            Self::Rotate(by) => rotate(value, by as u32, width),
        }
    }

    const fn inverse(self, width: Width) -> Self {
        match self {
            #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
            Self::Rotate(by) => Self::Rotate((width.bits() - by as u32 % width.bits()) as u8),
            other => other,
        }
    }
}

/// `value` rotated right.
pub(crate) const fn rotate(value: u64, by: u32, width: Width) -> u64 {
    match width {
        Width::Word => ((value & 0xffff_ffff) as u32).rotate_right(by) as u64,
        Width::Double => value.rotate_right(by),
    }
}

/// The result of an operation on known operands.
pub(crate) fn evaluate(operation: Operation, width: Width, a: u64, b: u64, c: u64) -> u64 {
    let mask = width.mask();
    let wide = |value: u64| u128::from(value);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the bits of the result")]
    let result = match operation {
        Operation::Add => a.wrapping_add(b),
        Operation::And => a & b,
        Operation::Or => a | b,
        Operation::Xor => a ^ b,
        Operation::Mul => a.wrapping_mul(b),
        Operation::MulHigh { signed: false } => ((wide(a) * wide(b)) >> width.bits()) as u64,
        Operation::MulHigh { signed: true } => {
            ((i128::from(width.signed(a)) * i128::from(width.signed(b))) >> width.bits()) as u64
        }
        Operation::Div { signed: false } => a.checked_div(b).unwrap_or(0),
        Operation::Div { signed: true } if b == 0 => 0,
        Operation::Div { signed: true } => width.signed(a).wrapping_div(width.signed(b)).cast_unsigned(),
        Operation::Shift(shift) => shifted(shift, width, a, (b & 0xff) as u32),
        Operation::Field { low, count, signed } => {
            let field = a >> low & low_mask(count.into());
            if signed { sign_extend(field, count.into()) } else { field }
        }
        Operation::Insert { low, count } => {
            let field = low_mask(count.into()) << low;
            a & !field | b << low & field
        }
        Operation::Share { to, from, count } => (a >> from & low_mask(count.into())) << to,
        Operation::Permute(permutation) => permutation.apply(a, width),
        Operation::LeadingZeros => u64::from(a.leading_zeros() - (64 - width.bits())),
        Operation::Carry => u64::from(wide(a) + wide(b) + wide(c) > wide(mask)),
        Operation::NoBorrow => u64::from(wide(a) >= wide(b) + wide(c)),
        Operation::LessSigned => u64::from(width.signed(a) < width.signed(b)),
        Operation::IsZero => u64::from(a == 0),
        Operation::Select => {
            if c & 1 == 1 {
                a
            } else {
                b
            }
        }
    };
    result & mask
}

fn shifted(shift: Shift, width: Width, value: u64, by: u32) -> u64 {
    match shift {
        Shift::Left if by < width.bits() => value << by,
        Shift::Right if by < width.bits() => value >> by,
        Shift::Left | Shift::Right => 0,
        Shift::Arithmetic => (width.signed(value) >> by.min(63)).cast_unsigned(),
        Shift::Rotate => rotate(value, by % width.bits(), width),
    }
}

/// Adds to what is known of `d`, `a`, `b` and `c` what follows from what is known of the others.
///
/// # Errors
///
/// If no values fit.
pub(crate) fn refine(
    operation: Operation,
    width: Width,
    [d, a, b, c]: &mut [Bits; 4],
) -> Result<(), Conflict> {
    match operation {
        Operation::Add => {
            *d = d.meet(a.add(*b, Some(false), width))?;
            *a = a.meet(d.sub(*b, width))?;
            *b = b.meet(d.sub(*a, width))?;
        }
        Operation::And => {
            *d = d.meet(a.and(*b))?;
            *a = a.meet(one_of_and(*d, *b))?;
            *b = b.meet(one_of_and(*d, *a))?;
        }
        Operation::Or => {
            *d = d.meet(a.or(*b))?;
            *a = a.meet(one_of_or(*d, *b))?;
            *b = b.meet(one_of_or(*d, *a))?;
        }
        Operation::Xor => {
            *d = d.meet(a.xor(*b))?;
            *a = a.meet(d.xor(*b))?;
            *b = b.meet(d.xor(*a))?;
        }
        Operation::Mul => {
            *d = d.meet(a.mul(*b, width))?;
            *a = factor(*d, *a, *b, width)?;
            *b = factor(*d, *b, *a, width)?;
        }
        Operation::MulHigh { signed } => {
            forward(operation, width, d, *a, *b, *c)?;
            if !signed {
                let high = |a: u64, b: u64| {
                    #[expect(clippy::cast_possible_truncation, reason = "the high half")]
                    let high = ((u128::from(a) * u128::from(b)) >> width.bits()) as u64;
                    high
                };
                *d = d.within(high(a.least(), b.least()), high(a.greatest(), b.greatest()))?;
            }
        }
        Operation::Div { signed } => divide(signed, width, d, a, *b)?,
        Operation::Shift(shift) => match b.field(0, 8).value() {
            #[expect(clippy::cast_possible_truncation, reason = "a byte")]
            Some(by) => shift_by(shift, by as u32, width, d, a)?,
            None => shift_by_unknown(shift, width, d, a, b)?,
        },
        Operation::Field { low, count, signed: false } => {
            let (low, count): (u32, u32) = (low.into(), count.into());
            *d = d.meet(a.field(low, count))?;
            *a = a.meet(d.placed(low, count, Width::Double))?;
        }
        Operation::Field { low, count, signed: true } => {
            let (low, count): (u32, u32) = (low.into(), count.into());
            *d = d.meet(a.signed_field(low, count, width))?;
            // All copies of the sign are one bit.
            let copies = d.ones & width.mask() & !low_mask(count - 1);
            let clear = d.known & !d.ones & width.mask() & !low_mask(count - 1);
            if copies != 0 && clear != 0 {
                return Err(Conflict);
            }
            let sign = if copies != 0 || clear != 0 {
                let sign = 1 << (count - 1);
                Bits { known: sign, ones: if copies != 0 { sign } else { 0 } }
            } else {
                Bits { known: 0, ones: 0 }
            };
            let field = d.field(0, count).meet(sign)?;
            *a = a.meet(field.placed(low, count, Width::Double))?;
            *d = d.meet(a.signed_field(low, count, width))?;
        }
        Operation::Insert { low, count } => {
            let (low, count): (u32, u32) = (low.into(), count.into());
            let field = low_mask(count) << low;
            let around = |value: &Bits| Bits { known: value.known & !field, ones: value.ones & !field };
            *d = d.meet(around(a))?.meet(b.placed(low, count, Width::Double))?;
            *a = a.meet(around(d))?;
            let inserted = d.field(low, count);
            *b = b.meet(Bits { known: inserted.known & low_mask(count), ones: inserted.ones })?;
        }
        Operation::Share { to, from, count } => {
            let (to, from, count): (u32, u32, u32) = (to.into(), from.into(), count.into());
            *d = d.meet(a.field(from, count).placed(to, count, Width::Double))?;
            *a = a.meet(d.field(to, count).placed(from, count, Width::Double))?;
        }
        Operation::Permute(permutation) => {
            *d = d.meet(a.moved(width, |bits| permutation.apply(bits, width)))?;
            *a = a.meet(d.moved(width, |bits| permutation.inverse(width).apply(bits, width)))?;
        }
        Operation::LeadingZeros => {
            let count = |value: u64| u64::from(value.leading_zeros() - (64 - width.bits()));
            *d = d.within(count(a.greatest()), count(a.least()))?;
            if let Some(zeros) = d.value() {
                #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
                let ones = width.bits().checked_sub(zeros as u32).ok_or(Conflict)?;
                let least = if ones == 0 { 0 } else { 1 << (ones - 1) };
                *a = a.within(least, low_mask(ones))?;
            }
        }
        Operation::Carry => carry(width, d, a, b, c)?,
        // a >= b + c is a + not b + not c carrying out.
        Operation::NoBorrow => {
            let flip = |c: Bits| Bits { known: c.known, ones: c.ones ^ c.known & 1 };
            let (mut not_b, mut not_c) = (b.not(width), flip(*c));
            carry(width, d, a, &mut not_b, &mut not_c)?;
            (*b, *c) = (not_b.not(width), flip(not_c));
        }
        Operation::LessSigned => less_signed(width, d, a, b)?,
        Operation::IsZero => is_zero(d, a)?,
        Operation::Select => select(d, a, b, c)?,
    }
    Ok(())
}

/// What is known of one operand of an AND.
const fn one_of_and(result: Bits, other: Bits) -> Bits {
    let ones = result.ones;
    let zeros = result.known & !result.ones & other.ones;
    Bits { known: ones | zeros, ones }
}

/// What is known of one operand of an OR.
const fn one_of_or(result: Bits, other: Bits) -> Bits {
    let zeros = result.known & !result.ones;
    let ones = result.ones & other.known & !other.ones;
    Bits { known: ones | zeros, ones }
}

/// The result from known operands.
fn forward(
    operation: Operation,
    width: Width,
    d: &mut Bits,
    a: Bits,
    b: Bits,
    c: Bits,
) -> Result<(), Conflict> {
    if let (Some(a), Some(b), Some(c)) = (a.value(), b.value(), c.value()) {
        *d = d.meet(Bits::constant(evaluate(operation, width, a, b, c)))?;
    }
    Ok(())
}

/// A factor, from the product and the other factor.
fn factor(product: Bits, factor: Bits, other: Bits, width: Width) -> Result<Bits, Conflict> {
    let Some(other) = other.value().filter(|&other| other != 0) else { return Ok(factor) };
    let zeros = other.trailing_zeros();
    let odd = other >> zeros;
    if product.field(0, zeros).ones != 0 {
        return Err(Conflict);
    }
    // Modulo 2^(width - zeros) an odd number has an inverse.
    let count = width.bits() - zeros;
    let quotient = product.shr(zeros).mul(Bits::constant(inverse(odd) & width.mask()), width);
    let low = low_mask(count);
    factor.meet(Bits { known: quotient.known & low, ones: quotient.ones & low })
}

/// The number whose product with an odd number is 1 modulo 2^64 (Newton's method).
const fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

fn divide(signed: bool, width: Width, d: &mut Bits, a: &mut Bits, b: Bits) -> Result<(), Conflict> {
    let zero = Bits::constant(0);
    forward(Operation::Div { signed }, width, d, *a, b, zero)?;
    let Some(divisor) = b.value() else { return Ok(()) };
    if divisor == 0 {
        *d = d.meet(zero)?;
        return Ok(());
    }
    // Signed numbers that are not negative divide in the same way.
    let is_unsigned = !signed || (a.greatest() | divisor) & width.sign() == 0;
    if is_unsigned {
        *d = d.within(a.least() / divisor, a.greatest() / divisor)?;
        let least = u128::from(d.least()) * u128::from(divisor);
        let greatest = u128::from(d.greatest()) * u128::from(divisor) + u128::from(divisor - 1);
        let limit = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        *a = a.within(limit(least), limit(greatest))?;
    }
    Ok(())
}

fn shift_by(shift: Shift, by: u32, width: Width, d: &mut Bits, a: &mut Bits) -> Result<(), Conflict> {
    let bits = width.bits();
    match shift {
        Shift::Left | Shift::Right if by >= bits => *d = d.meet(Bits::constant(0))?,
        Shift::Left => {
            *d = d.meet(a.shl(by, width))?;
            *a = a.meet(d.field(by, bits - by).placed(0, bits - by, Width::Double))?;
        }
        Shift::Right => {
            *d = d.meet(a.shr(by))?;
            *a = a.meet(d.placed(by, bits - by, Width::Double))?;
        }
        Shift::Arithmetic => {
            #[expect(clippy::cast_possible_truncation, reason = "less than 64")]
            let low = by.min(bits - 1) as u8;
            #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
            let field = Operation::Field { low, count: bits as u8 - low, signed: true };
            let mut values = [*d, *a, Bits::constant(0), Bits::constant(0)];
            refine(field, width, &mut values)?;
            [*d, *a, ..] = values;
        }
        Shift::Rotate => {
            #[expect(clippy::cast_possible_truncation, reason = "less than 64")]
            let rotation = Permutation::Rotate((by % bits) as u8);
            *d = d.meet(a.moved(width, |bits| rotation.apply(bits, width)))?;
            *a = a.meet(d.moved(width, |bits| rotation.inverse(width).apply(bits, width)))?;
        }
    }
    Ok(())
}

/// Of the possible amounts, those that fit.
fn shift_by_unknown(
    shift: Shift,
    width: Width,
    d: &mut Bits,
    a: &mut Bits,
    b: &mut Bits,
) -> Result<(), Conflict> {
    let amount = b.field(0, 8);
    let mut found: Option<(Bits, Bits, Bits)> = None;
    for by in amount.least()..=amount.greatest() {
        if !amount.may_equal(Bits::constant(by)) {
            continue;
        }
        let (mut result, mut operand) = (*d, *a);
        #[expect(clippy::cast_possible_truncation, reason = "a byte")]
        if shift_by(shift, by as u32, width, &mut result, &mut operand).is_err() {
            continue;
        }
        let by = Bits::constant(by);
        found = Some(match found {
            None => (result, operand, by),
            Some((d, a, b)) => (d.join(result), a.join(operand), b.join(by)),
        });
    }
    let (result, operand, by) = found.ok_or(Conflict)?;
    (*d, *a) = (result, operand);
    *b = b.meet(Bits { known: by.known & 0xff, ones: by.ones & 0xff })?;
    Ok(())
}

/// Bounds from a carry, and the carry from bounds.
fn carry(width: Width, d: &mut Bits, a: &mut Bits, b: &mut Bits, c: &mut Bits) -> Result<(), Conflict> {
    let wide = |value: u64| i128::from(value);
    let limit = wide(width.mask());
    let bound = |value: i128| u64::try_from(value.clamp(0, limit)).unwrap_or(0);
    let least = wide(a.least()) + wide(b.least()) + wide(c.least());
    let greatest = wide(a.greatest()) + wide(b.greatest()) + wide(c.greatest());
    if least > limit {
        *d = d.meet(Bits::constant(1))?;
    } else if greatest <= limit {
        *d = d.meet(Bits::constant(0))?;
    }
    match d.value() {
        Some(0) => {
            *a = a.within(0, bound(limit - wide(b.least()) - wide(c.least())))?;
            *b = b.within(0, bound(limit - wide(a.least()) - wide(c.least())))?;
            *c = c.within(0, bound(limit - wide(a.least()) - wide(b.least())))?;
        }
        Some(_) => {
            *a = a.within(bound(limit + 1 - wide(b.greatest()) - wide(c.greatest())), width.mask())?;
            *b = b.within(bound(limit + 1 - wide(a.greatest()) - wide(c.greatest())), width.mask())?;
            *c = c.within(bound(limit + 1 - wide(a.greatest()) - wide(b.greatest())), width.mask())?;
        }
        None => {}
    }
    Ok(())
}

/// a < b as signed numbers, which is not a >= b with inverted signs.
fn less_signed(width: Width, d: &mut Bits, a: &mut Bits, b: &mut Bits) -> Result<(), Conflict> {
    let invert = |value: Bits| Bits { known: value.known, ones: value.ones ^ value.known & width.sign() };
    let (mut left, mut right) = (invert(*a), invert(*b));
    let mut not_less = Bits { known: d.known, ones: d.ones ^ d.known & 1 };
    let mut values = [not_less, left, right, Bits::constant(0)];
    refine(Operation::NoBorrow, width, &mut values)?;
    [not_less, left, right, _] = values;
    (*a, *b) = (invert(left), invert(right));
    *d = Bits { known: not_less.known, ones: not_less.ones ^ not_less.known & 1 };
    Ok(())
}

fn is_zero(d: &mut Bits, a: &mut Bits) -> Result<(), Conflict> {
    if a.ones != 0 {
        *d = d.meet(Bits::constant(0))?;
    } else if a.known == u64::MAX {
        *d = d.meet(Bits::constant(1))?;
    }
    match d.value() {
        Some(0) if a.ones == 0 && a.known.count_zeros() == 1 => *a = Bits::constant(!a.known),
        Some(0) if a.value() == Some(0) => return Err(Conflict),
        Some(0) | None => {}
        Some(_) => *a = a.meet(Bits::constant(0))?,
    }
    Ok(())
}

fn select(d: &mut Bits, a: &mut Bits, b: &mut Bits, c: &mut Bits) -> Result<(), Conflict> {
    if !d.may_equal(*a) {
        *c = c.meet(Bits::constant(0))?;
    }
    if !d.may_equal(*b) {
        *c = c.meet(Bits::constant(1))?;
    }
    match c.value() {
        Some(1) => (*d, *a) = (d.meet(*a)?, d.meet(*a)?),
        Some(_) => (*d, *b) = (d.meet(*b)?, d.meet(*b)?),
        None => *d = d.meet(a.join(*b))?,
    }
    Ok(())
}

#[cfg(test)]
mod tests;
