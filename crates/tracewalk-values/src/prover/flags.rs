//! The flags: where they come from, and conditions as bits that are made only when asked for.

use super::{FALSE, Prover, TRUE};
use crate::bits::{Bits, Width};
use crate::machine::{Carry, Condition, Flags, Machine};
use crate::relation::{Operation, Shift};
use crate::terms::Term;

/// Where the flags come from, and the bits that were made of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlagState {
    /// The result that N and Z are of.
    result: Option<Term>,
    carry: CarrySource,
    order: Order,
    zero: Option<Term>,
    less: Option<Term>,
}

#[derive(Clone, Copy, Debug, Default)]
enum CarrySource {
    #[default]
    Unknown,
    Known(Term),
    Bit(Term, u8),
    Sum([Term; 3]),
    Difference([Term; 3]),
}

/// What N differing from V means.
#[derive(Clone, Copy, Debug, Default)]
enum Order {
    #[default]
    Unknown,
    /// The first is less than the second.
    Less(Term, Term),
    /// V is 0, so that N alone counts.
    Sign,
}

impl Prover<'_> {
    /// Sets the flags to N, Z, C and V in bits 3 to 0.
    #[cfg(test)]
    pub(crate) fn set_known_flags(&mut self, flags: u32) {
        self.change_flags(Flags::Fixed(flags));
    }

    pub(super) fn change_flags(&mut self, flags: Flags<Term>) {
        if self.guard.is_some() {
            self.flags = FlagState::default();
            return;
        }
        self.flags = match flags {
            Flags::Sum { result, a, b, carry } => FlagState {
                result: Some(result),
                carry: CarrySource::Sum([a, b, carry]),
                order: self.order_of_sum(a, b, carry),
                ..FlagState::default()
            },
            Flags::Difference { result, a, b, borrow } => FlagState {
                result: Some(result),
                carry: CarrySource::Difference([a, b, borrow]),
                order: if self.terms.value(borrow) == Some(0) { Order::Less(a, b) } else { Order::Unknown },
                ..FlagState::default()
            },
            Flags::Logic { result, carry } => FlagState {
                result: Some(result),
                carry: self.shifted_carry(carry),
                // V stays as it was, which is known only in the simplest case.
                order: if matches!(self.flags.order, Order::Sign) { Order::Sign } else { Order::Unknown },
                ..FlagState::default()
            },
            Flags::Cleared { result } => FlagState {
                result: Some(result),
                carry: CarrySource::Known(FALSE),
                order: Order::Sign,
                ..FlagState::default()
            },
            Flags::Fixed(flags) => {
                let flag = |bit: u32| if flags >> bit & 1 == 1 { TRUE } else { FALSE };
                let negative = if flags & 8 == 0 { 0 } else { Width::Word.sign() };
                FlagState {
                    result: Some(Term::constant(negative, Width::Word)),
                    carry: CarrySource::Known(flag(1)),
                    order: Order::Unknown,
                    zero: Some(flag(2)),
                    less: Some(if flag(3) == flag(0) { FALSE } else { TRUE }),
                }
            }
            Flags::Unknown => FlagState::default(),
        };
    }

    /// a + b as a comparison of a with -b, if b is known and has a negative.
    fn order_of_sum(&self, a: Term, b: Term, carry: Term) -> Order {
        if self.terms.value(carry) != Some(0) {
            return Order::Unknown;
        }
        let negated = |term: Term| {
            let value = self.terms.value(term)?;
            (value != term.width.sign()).then(|| Term::constant(value.wrapping_neg(), term.width))
        };
        match (negated(b), negated(a)) {
            (Some(b), _) => Order::Less(a, b),
            (None, Some(a)) => Order::Less(b, a),
            _ => Order::Unknown,
        }
    }

    fn shifted_carry(&mut self, carry: Carry<Term>) -> CarrySource {
        match carry {
            Carry::Unchanged => self.flags.carry,
            Carry::Known(carry) => CarrySource::Known(if carry { TRUE } else { FALSE }),
            Carry::Bit(value, bit) => CarrySource::Bit(value, bit),
            Carry::Shifted { shift, value, by } => {
                let Some(by) = self.terms.bits(by).field(0, 8).value() else { return CarrySource::Unknown };
                #[expect(clippy::cast_possible_truncation, reason = "less than 32")]
                match (shift, by) {
                    (_, 0) => self.flags.carry,
                    (Shift::Left, 1..=32) => CarrySource::Bit(value, (32 - by) as u8),
                    (Shift::Right, 1..=32) => CarrySource::Bit(value, (by - 1) as u8),
                    (Shift::Left | Shift::Right, _) => CarrySource::Known(FALSE),
                    (Shift::Arithmetic, by) => CarrySource::Bit(value, (by.min(32) - 1) as u8),
                    (Shift::Rotate, by) => CarrySource::Bit(value, ((by + 31) % 32) as u8),
                }
            }
        }
    }

    /// A condition as a bit.
    pub(super) fn condition(&mut self, condition: Condition) -> Term {
        let bit = match condition.0 >> 1 {
            0 => self.zero_flag(),
            1 => self.carry_flag(),
            2 => self.negative_flag(),
            4 => {
                let (carry, zero) = (self.carry_flag(), self.zero_flag());
                let not_zero = self.invert(zero);
                self.binary(Operation::And, Width::Word, carry, not_zero)
            }
            5 => {
                let less = self.less_flag();
                self.invert(less)
            }
            6 => {
                let (less, zero) = (self.less_flag(), self.zero_flag());
                let either = self.binary(Operation::Or, Width::Word, less, zero);
                self.invert(either)
            }
            7 => return TRUE,
            // V alone is rare.
            _ => self.unknown_bit(),
        };
        if condition.0 & 1 == 1 { self.invert(bit) } else { bit }
    }

    fn zero_flag(&mut self) -> Term {
        if let Some(zero) = self.flags.zero {
            return zero;
        }
        let zero = match self.flags.result {
            Some(result) => self.unary(Operation::IsZero, result.width, result),
            None => self.unknown_bit(),
        };
        self.flags.zero = Some(zero);
        zero
    }

    fn negative_flag(&mut self) -> Term {
        match self.flags.result {
            Some(result) => self.field(result, result.width.bits() - 1, 1, false, Width::Word),
            None => self.unknown_bit(),
        }
    }

    fn carry_flag(&mut self) -> Term {
        let carry = match self.flags.carry {
            CarrySource::Known(carry) => return carry,
            CarrySource::Unknown => self.unknown_bit(),
            CarrySource::Bit(value, bit) => self.field(value, bit.into(), 1, false, Width::Word),
            CarrySource::Sum(operands) => self.operation(Operation::Carry, operands[0].width, operands),
            CarrySource::Difference(operands) => {
                self.operation(Operation::NoBorrow, operands[0].width, operands)
            }
        };
        self.flags.carry = CarrySource::Known(carry);
        carry
    }

    fn less_flag(&mut self) -> Term {
        if let Some(less) = self.flags.less {
            return less;
        }
        let less = match self.flags.order {
            Order::Less(a, b) => self.binary(Operation::LessSigned, a.width, a, b),
            Order::Sign => self.negative_flag(),
            Order::Unknown => self.unknown_bit(),
        };
        self.flags.less = Some(less);
        less
    }

    /// What is known of the result of an operation whatever its operands are.
    pub(super) fn result_bits(operation: Operation, width: Width) -> Bits {
        match operation {
            Operation::Carry | Operation::NoBorrow | Operation::LessSigned | Operation::IsZero => {
                Bits::of_low(1)
            }
            _ => Bits::unknown(width),
        }
    }
}
