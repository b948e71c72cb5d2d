//! Relations between values whose differences are known.

use super::{Place, Term, Terms, ZERO};
use crate::bits::{Bits, Width};
use crate::relation::Operation;

impl Terms {
    /// What follows from known differences, without bits. Whether nothing more can follow.
    pub(super) fn by_classes(&mut self, operation: Operation, width: Width, [d, a, b, c]: [Term; 4]) -> bool {
        let known = |terms: &Self, term| terms.value(term);
        match operation {
            Operation::Add => {
                if let Some(value) = known(self, b) {
                    self.equate(d, a.plus(value));
                    return true;
                }
                if let Some(value) = known(self, a) {
                    self.equate(d, b.plus(value));
                    return true;
                }
                let (sum, left, right) = (self.place(d), self.place(a), self.place(b));
                for (same, other) in [(left, b), (right, a)] {
                    if sum.root != ZERO && sum.root == same.root {
                        let difference = sum.offset.wrapping_sub(same.offset);
                        self.equate(other, Term::constant(difference, width));
                        return true;
                    }
                }
                false
            }
            Operation::Xor => {
                let [sum, left, right] = [d, a, b].map(|term| self.place(term));
                let zero = Place { root: ZERO, offset: 0 };
                for (first, second, third, (x, y), z) in [
                    (sum, left, right, (d, a), b),
                    (sum, right, left, (d, b), a),
                    (left, right, sum, (a, b), d),
                ] {
                    if third == zero {
                        self.equate(x, y);
                        return true;
                    }
                    if first == second {
                        self.equate(z, Term::constant(0, width));
                        return true;
                    }
                }
                false
            }
            Operation::And | Operation::Or => {
                let neutral = if operation == Operation::And { width.mask() } else { 0 };
                if self.place(a) == self.place(b) || known(self, b) == Some(neutral) {
                    self.equate(d, a);
                    return true;
                }
                if known(self, a) == Some(neutral) {
                    self.equate(d, b);
                    return true;
                }
                // Bits that the mask removes are known to be zero.
                self.equal_if_same(operation, d, a, b) || self.equal_if_same(operation, d, b, a)
            }
            Operation::Mul => {
                for (one, other) in [(a, b), (b, a)] {
                    if known(self, one) == Some(1) {
                        self.equate(d, other);
                        return true;
                    }
                }
                false
            }
            Operation::Share { to: 0, from: 0, count } => {
                let low = crate::bits::low_mask(count.into());
                let high = |bits: Bits| (bits.known & !low == !low).then_some(bits.ones & !low);
                if d.width == a.width
                    && let (Some(left), Some(right)) = (high(self.bits(d)), high(self.bits(a)))
                    && left == right
                {
                    self.equate(d, a);
                    return true;
                }
                false
            }
            Operation::Field { low: 0, count, signed } if d.width == a.width => {
                let bits = self.bits(a);
                let count = u32::from(count) - u32::from(signed);
                let high = !crate::bits::low_mask(count);
                if bits.known & high == high && bits.ones & high == 0 {
                    self.equate(d, a);
                    return true;
                }
                false
            }
            Operation::Select => match known(self, c) {
                Some(0) => {
                    self.equate(d, b);
                    true
                }
                Some(_) => {
                    self.equate(d, a);
                    true
                }
                None if self.place(a) == self.place(b) => {
                    self.equate(d, a);
                    true
                }
                None => false,
            },
            Operation::IsZero => match known(self, d) {
                Some(1) => {
                    self.equate(a, Term::constant(0, width));
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Equates the result of AND or OR with an operand if the other one changes none of its unknown bits.
    fn equal_if_same(&mut self, operation: Operation, d: Term, a: Term, mask: Term) -> bool {
        let (bits, mask) = (self.bits(a), self.bits(mask));
        let harmless = match operation {
            Operation::And => mask.ones | bits.known & !bits.ones,
            _ => mask.known & !mask.ones | bits.ones,
        };
        if harmless == u64::MAX || harmless | !a.width.mask() == u64::MAX {
            self.equate(d, a);
            return true;
        }
        false
    }
}
