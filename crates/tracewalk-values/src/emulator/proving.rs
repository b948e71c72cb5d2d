//! The prover, compared with numbers: whatever is known of the registers before an instruction, and whatever the path tells of
//! the flags after it, nothing that it concludes is wrong. The emulator is not needed.

use tracewalk::ids::{Address, Isa, Location};

use super::case::{Case, Set};
use super::numbers::Numbers;
use super::program::ARENA_BYTES;
use super::{Random, cases};
use std::collections::BTreeMap;

use crate::bits::{Bits, Width};
use crate::image::Image;
use crate::machine::{Condition, Machine as _};
use crate::path::{Instruction, ItBlock, Step};
use crate::profile::{Processor, Profile};
use crate::prover::{Prover, State};

/// What is known of a number: all of it, nothing, or some bits.
fn knowledge(random: &mut Random, value: u64, width: Width) -> Bits {
    let known = match random.below(4) {
        0 => 0,
        1 => u64::MAX,
        2 => random.number(),
        _ => !(0xff << random.below(56)),
    } | !width.mask();
    Bits { known, ones: value & known }
}

fn allows(bits: Bits, value: Option<u64>) -> bool {
    value.is_none_or(|value| bits.may_equal(Bits::constant(value)))
}

fn isa(set: Set) -> Isa {
    match set {
        Set::A32 => Isa::A32,
        Set::T32 => Isa::T32,
        Set::A64 => Isa::A64,
    }
}

fn check(case: &Case, random: &mut Random) {
    let mut numbers = Numbers::new(case, vec![Some(0x5a); ARENA_BYTES]);
    case.execute(&mut numbers);
    let (profile, width) = match case.set {
        Set::A64 => (Profile::A64, Width::Double),
        Set::A32 => (Profile::A32, Width::Word),
        Set::T32 => (Profile::M, Width::Word),
    };
    let registers = case.registers.map(|value| knowledge(random, value, width));
    let image = Image::new();
    let state =
        State { registers, it_block: ItBlock::default(), maybe_in_it_block: 0, it_blocks: BTreeMap::new() };
    let mut prover = Prover::new(&image, Processor::new(profile, &image), &state);
    let mut address = case.address;
    let mut step = |prover: &mut Prover<'_>, code, bytes: u8| {
        let at = Location::new(Address::new(address), isa(case.set));
        address += u64::from(bytes);
        prover.step(&Step::Instruction(Instruction { at, code, bytes, executed: None, next: None }));
    };
    // The flags before, as the numbers have them.
    prover.set_known_flags(case.flags);
    if let Some(it) = case.it_code() {
        step(&mut prover, it.into(), 2);
    }
    step(&mut prover, case.code, if case.set == Set::T32 && !case.is_wide() { 2 } else { 4 });
    let compare = |prover: &Prover<'_>, when: &str| {
        for index in 0..if case.set == Set::A64 { 31 } else { 15 } {
            let bits = prover.state().registers[index];
            assert!(
                allows(bits, numbers.register(index)),
                "{when}: register {index} is {:x?}, the prover has {bits:x?}: {case}",
                numbers.register(index)
            );
        }
        assert!(!prover.terms.has_conflict, "{when}: {case}");
    };
    compare(&prover, "after the instruction");
    let conditions = (0..14).map(Condition).collect::<Vec<_>>();
    for &condition in &conditions {
        let holds = prover.holds(condition);
        prover.terms.settle();
        let bits = prover.terms.bits(holds);
        let real = numbers.condition(condition).map(u64::from);
        assert!(
            allows(bits, real),
            "condition {} is {real:?}, the prover has {bits:x?}: {case}",
            condition.0
        );
    }
    for condition in conditions {
        let Some(real) = numbers.condition(condition) else { continue };
        let holds = prover.holds(condition);
        prover.terms.learn(holds, Bits::constant(real.into()));
        prover.terms.settle();
        compare(&prover, "after a condition");
    }
}

#[test]
fn what_the_prover_concludes_is_right() {
    for set in [Set::T32, Set::A32, Set::A64] {
        let mut random = Random::new(5);
        for case in cases(set, 6_000, &mut random) {
            check(&case, &mut random);
        }
    }
}
