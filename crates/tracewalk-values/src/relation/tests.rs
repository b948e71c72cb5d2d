use proptest::prelude::*;

use super::*;

fn operations() -> Vec<Operation> {
    let shifts = [Shift::Left, Shift::Right, Shift::Arithmetic, Shift::Rotate].map(Operation::Shift);
    let permutations = [
        Permutation::Bytes,
        Permutation::BytesOfHalves,
        Permutation::Bits,
        Permutation::Rotate(0),
        Permutation::Rotate(7),
    ];
    let mut all = vec![
        Operation::Add,
        Operation::And,
        Operation::Or,
        Operation::Xor,
        Operation::Mul,
        Operation::MulHigh { signed: false },
        Operation::MulHigh { signed: true },
        Operation::Div { signed: false },
        Operation::Div { signed: true },
        Operation::Field { low: 3, count: 9, signed: false },
        Operation::Field { low: 3, count: 9, signed: true },
        Operation::Field { low: 0, count: 32, signed: false },
        Operation::Field { low: 31, count: 1, signed: true },
        Operation::Insert { low: 5, count: 11 },
        Operation::Insert { low: 0, count: 32 },
        Operation::LeadingZeros,
        Operation::Carry,
        Operation::NoBorrow,
        Operation::LessSigned,
        Operation::IsZero,
        Operation::Select,
    ];
    all.extend(shifts);
    all.extend(permutations.map(Operation::Permute));
    all
}

/// Numbers with long runs of equal bits, small ones, and any.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..9_u64, any::<u64>(), (0..64_u32).prop_map(|bit| 1 << bit), (0..64_u32).prop_map(low_mask)]
}

/// Which bits of a number are known.
fn knowledge() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(u64::MAX),
        any::<u64>(),
        (any::<u64>(), any::<u64>()).prop_map(|(a, b)| a | b),
        (0..64_u32).prop_map(|bit| !low_mask(bit)),
        (0..64_u32).prop_map(|bit| !(1 << bit)),
    ]
}

fn known_in(value: u64, known: u64, width: Width) -> Bits {
    let known = known | !width.mask();
    Bits { known, ones: value & known }
}

/// Whether `value` is one that `bits` allows.
fn allows(bits: Bits, value: u64) -> bool {
    bits.may_equal(Bits::constant(value)) && bits.ones & !bits.known == 0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Whatever is known of a true equation, refining it never contradicts the values.
    #[test]
    fn true_values_stay_possible(
        operation in prop::sample::select(operations()),
        wide in any::<bool>(),
        (a, b, c) in (number(), number(), 0..2_u64),
        known in [knowledge(), knowledge(), knowledge(), knowledge()],
    ) {
        let width = if wide { Width::Double } else { Width::Word };
        let (a, b) = (a & width.mask(), b & width.mask());
        let d = evaluate(operation, width, a, b, c);
        let values = [d, a, b, c];
        let mut bits = [0, 1, 2, 3].map(|index| known_in(values[index], known[index], width));
        let before = bits;
        for _ in 0..3 {
            prop_assert_eq!(refine(operation, width, &mut bits), Ok(()), "{:?} {:x?}", operation, values);
            for (bits, value) in bits.iter().zip(values) {
                prop_assert!(allows(*bits, value), "{operation:?} {values:x?} {before:x?} {bits:x?}");
            }
        }
        for (bits, before) in bits.iter().zip(before) {
            prop_assert_eq!(before.known & !bits.known, 0, "something was forgotten: {:?}", operation);
        }
    }

    /// With all operands known the result is.
    #[test]
    fn known_operands_give_the_result(
        operation in prop::sample::select(operations()),
        (a, b, c) in (number(), number(), 0..2_u64),
    ) {
        let width = Width::Word;
        let (a, b) = (a & width.mask(), b & width.mask());
        let d = evaluate(operation, width, a, b, c);
        let mut bits = [Bits::unknown(width), Bits::constant(a), Bits::constant(b), Bits::constant(c)];
        prop_assert_eq!(refine(operation, width, &mut bits), Ok(()));
        prop_assert_eq!(bits[0].value(), Some(d), "{:?} {:x} {:x} {}", operation, a, b, c);
    }

    /// Shared bits are those of the other value, and no others become known.
    #[test]
    fn shared_bits_are_those_of_the_other_value(a in any::<u64>(), d in any::<u64>(), known in knowledge(), to in 0..8_u8, from in 0..8_u8) {
        let mask = 0xff_u64;
        let (to, from) = (8 * to, 8 * from);
        let d = d & !(mask << to) | (a >> from & mask) << to;
        let mut bits = [known_in(d, known, Width::Double), known_in(a, !known, Width::Double), Bits::constant(0), Bits::constant(0)];
        prop_assert_eq!(refine(Operation::Share { to, from, count: 8 }, Width::Double, &mut bits), Ok(()));
        prop_assert!(allows(bits[0], d) && allows(bits[1], a));
        prop_assert_eq!(bits[0].field(to.into(), 8).value(), bits[1].field(from.into(), 8).value());
    }
}

#[test]
fn a_product_with_a_known_odd_factor_gives_the_other() {
    let mut bits =
        [Bits::constant(0x6cc), Bits::unknown(Width::Word), Bits::constant(0x9e37_79b1), Bits::constant(0)];
    refine(Operation::Mul, Width::Word, &mut bits).expect("possible");
    let factor = bits[1].value().expect("known");
    assert_eq!(factor.wrapping_mul(0x9e37_79b1) & 0xffff_ffff, 0x6cc);
}

#[test]
fn a_result_that_is_not_zero_has_its_only_unknown_bit_set() {
    let mut bits = [Bits::constant(0), Bits { known: !4, ones: 0 }, Bits::constant(0), Bits::constant(0)];
    refine(Operation::IsZero, Width::Word, &mut bits).expect("possible");
    assert_eq!(bits[1].value(), Some(4));
}
