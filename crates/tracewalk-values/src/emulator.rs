//! The tables of the instruction sets, compared with an emulator: random instructions with random registers run under QEMU.
//!
//! A case loads all registers and the flags, executes one instruction, and stores all of them. All cases are one program without
//! libraries, made here. Instructions that the emulator refuses are logged by a signal handler and not compared.

mod case;
mod numbers;
mod program;
mod proving;

use case::{Case, Set};
use numbers::Numbers;
use program::{ARENA, ARENA_BYTES, Program};

/// Random numbers that are the same in every run (SplitMix64).
#[derive(Debug)]
struct Random(u64);

impl Random {
    const fn new(seed: u64) -> Self {
        Self(seed)
    }

    const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    #[expect(clippy::cast_possible_truncation, reason = "half of the bits")]
    fn word(&mut self) -> u32 {
        (self.number() >> 16) as u32
    }

    /// A number less than `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }
}

/// Cases that can be executed: they do not branch, and use only memory that is there.
fn cases(set: Set, count: usize, random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    while cases.len() < count {
        let case = Case { address: Program::place(set, cases.len()), ..Case::random(set, random) };
        let mut trial = Numbers::new(&case, vec![Some(0); ARENA_BYTES]);
        case.execute(&mut trial);
        if trial.is_possible && case.goes_on() {
            cases.push(case);
        }
    }
    cases
}

/// Runs cases under the emulator, and compares registers, flags and memory.
fn check(set: Set, count: usize, seed: u64) {
    let cases = cases(set, count, &mut Random::new(seed));
    let ran = Program::new(set, &cases).run();
    let mut memory = vec![Some(0); ARENA_BYTES];
    let (mut compared, mut different) = (0, Vec::new());
    for (case, ran) in cases.iter().zip(&ran.cases) {
        let Some(after) = ran else { continue };
        let mut numbers = Numbers::new(case, memory);
        case.execute(&mut numbers);
        compared += 1;
        if let Some(difference) = numbers.difference(after) {
            different.push(format!("{difference}: {case}"));
        }
        memory = numbers.memory;
    }
    let differs = |at: &usize| memory[*at].is_some_and(|byte| byte != ran.arena[*at]);
    let differing = (0..ARENA_BYTES).filter(differs).take(5);
    different.extend(differing.map(|at| format!("memory at {:#x}", ARENA + at as u64)));
    println!("{set:?}: {compared} of {count} compared");
    different.iter().take(40).for_each(|line| println!("{line}"));
    assert!(different.is_empty(), "{} differences", different.len());
    assert!(compared > count / 2, "few instructions were compared");
}

#[test]
#[ignore = "needs QEMU's user emulation"]
fn heavy_instructions_do_what_the_emulator_does() {
    for set in [Set::T32, Set::A32, Set::A64] {
        for seed in 0..34 {
            check(set, 10_000, seed);
        }
    }
}

#[test]
#[ignore = "needs QEMU's user emulation"]
fn some_instructions_do_what_the_emulator_does() {
    for set in [Set::T32, Set::A32, Set::A64] {
        check(set, 3_400, 99);
    }
}
