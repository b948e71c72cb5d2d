//! What the memo gives of ETMv4 is what the walk gives, while directives wait for a count of cycles and P0 elements for a commit.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::tests::elements;
use super::*;
use crate::flow::Engine;
use crate::ids::Address;
use crate::program::Program;
use crate::protocol::etmv4;

const BASE: u64 = 0x40_0000;

/// nop; b.eq .+8; b .-8; blr x0; ret; isb; ldr x0, [x0]; cbz x0, .; bl .+12; svc #0
const CODE: [u32; 10] = [
    0xd503_201f,
    0x5400_0040,
    0x17ff_fffe,
    0xd63f_0000,
    0xd65f_03c0,
    0xd503_3fdf,
    0xf940_0000,
    0xb400_0000,
    0x9400_0003,
    0xd400_0001,
];

fn program(order: &[usize]) -> Program {
    let code = order.iter().flat_map(|&index| CODE[index % CODE.len()].to_le_bytes());
    let mut program = Program::new();
    program.add(Address::new(BASE), &code.collect::<Vec<_>>()).expect("nothing else is there");
    program
}

/// A-sync, trace info with a threshold, trace on, the code's start.
fn start(threshold: u8) -> Vec<u8> {
    let a_sync = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80];
    let address = [0x85, 0, 0, 0x40, 0, 0, 0, 0, 0, 0x31];
    [&a_sync[..], &[0x01, 0x09, 0x01, threshold], &[0x04], &address].concat()
}

fn any_packet() -> impl Strategy<Value = Vec<u8>> {
    let one = |byte| Just(vec![byte]);
    prop_oneof![
        12 => prop_oneof![one(0xf7), one(0xf6), one(0xdb), one(0xd9), one(0xc1), one(0xfe)],
        // Cycles in one byte, in two, and in more, with what they commit.
        6 => (0x10_u8..0x20).prop_map(|header| vec![header]),
        2 => any::<u8>().prop_map(|byte| vec![0x0c, byte]),
        2 => (0_u8..3, 0_u8..0x80, 0_u8..2).prop_map(|(commit, low, high)| vec![0x0e, commit, low | 0x80, high]),
        1 => (0_u8..3).prop_map(|commit| vec![0x0f, commit]),
        5 => (0_u8..6).prop_map(|to| vec![0x95, to]),
        2 => prop_oneof![one(0x90), one(0x91), one(0x92)],
        2 => (0_u8..4).prop_map(|to| vec![0x9a, to, 0, 0x40, 0]),
        // Commit, cancel, mispredict.
        3 => (1_u8..3).prop_map(|count| vec![0x2d, count]),
        1 => (1_u8..3).prop_map(|count| vec![0x2e, count]),
        2 => (0x30_u8..0x38).prop_map(|header| vec![header]),
        // Exceptions with where they return to, and their handlers.
        1 => (0_u8..4).prop_map(|to| vec![0x06, 0x05, 0x95, to, 0x95, to / 2]),
        1 => (0_u8..4).prop_map(|to| vec![0x06, 0x1d, 0x95, to]),
        1 => one(0x07),
        1 => prop_oneof![Just(vec![0x81, 0x31]), Just(vec![0x81, 0x30]), Just(vec![0x80])],
        1 => (0_u8..128).prop_map(|time| vec![0x02, time]),
        1 => (1_u8..16).prop_map(|events| vec![0x70 | events]),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ]
}

/// Without and with counts, with and without commits in them, with little and with more speculation.
fn any_config() -> impl Strategy<Value = SourceConfig> {
    let config =
        |(cycle_counting, counts_commit, return_stack, greatest_speculation): (bool, bool, bool, u32)| {
            let registers = etmv4::Registers {
                trcconfigr: Some(1 | u32::from(cycle_counting) << 4 | u32::from(return_stack) << 12),
                trcidr0: Some(if counts_commit { 0x0800_0ea1 } else { 0x2800_0ea1 }),
                trcidr1: Some(0x4100_f403),
                trcidr2: Some(0x488),
                trcidr8: Some(greatest_speculation),
                ..etmv4::Registers::default()
            };
            let profile = Some(etmv4::Profile::Ar);
            SourceConfig::Etmv4(etmv4::Config::from_registers(registers, profile).expect("sound registers"))
        };
    let speculation = prop_oneof![Just(0), Just(1), Just(3), Just(30)];
    (any::<bool>(), any::<bool>(), any::<bool>(), speculation).prop_map(config)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn what_waits_for_counts_and_commits_means_the_same_again(
        config in any_config(),
        order in proptest::collection::vec(0_usize..CODE.len(), 12..40),
        phrases in proptest::collection::vec(proptest::collection::vec(any_packet(), 1..12), 1..4),
        song in proptest::collection::vec((0_usize..4, 1_usize..12), 1..20),
        size in 8_usize..400,
    ) {
        let mut bytes = start(3);
        for (phrase, times) in song {
            let phrase = phrases[phrase % phrases.len()].concat();
            (0..times).for_each(|_| bytes.extend_from_slice(&phrase));
            if times > 8 {
                bytes.extend(start(4));
            }
        }
        let program = program(&order);
        let walk = elements(&config, Engine::Walk, &bytes, &program, bytes.len());
        prop_assert_eq!(&elements(&config, Engine::Graph, &bytes, &program, bytes.len()), &walk);
        prop_assert_eq!(&elements(&config, Engine::Graph, &bytes, &program, size), &walk);
    }
}
