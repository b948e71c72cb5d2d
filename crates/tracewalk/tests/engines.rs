//! The graph and the walk give the same elements, however the input is cut: over whole captures, sound and
//! damaged.

use std::path::Path;

use proptest::prelude::*;
use tracewalk::ids::Address;
use tracewalk::program::Program;
use tracewalk::protocol::{Registers, etmv3, pft};
use tracewalk::source::SourceConfig;

use crate::support::{corpus, elements};

/// A capture of one source.
struct Capture {
    name: &'static str,
    config: SourceConfig,
    bytes: Vec<u8>,
    program: Program,
}

/// The corpus's captures that are one source's bytes: folder, trace, code, the code's address, ETMCR, ETMIDR.
const CAPTURES: [(&str, &str, &str, u32, u32, u32); 6] = [
    ("synthetic/mix-m3-etmv3", "trace.bin", "program.bin", 0, 0x400, 0x4114_f250),
    ("synthetic/mix-m3-etmv3-broadcast", "trace.bin", "program.bin", 0, 0x500, 0x4114_f250),
    ("synthetic/mix-a7-etmv3-original", "trace.bin", "program.bin", 0x6001_0000, 0x400, 0x410c_f250),
    ("synthetic/mix-a7-etmv3-alternative", "trace.bin", "program.bin", 0x6001_0000, 0x400, 0x411c_f250),
    ("synthetic/mix-a9-ptm", "trace.bin", "program.bin", 0x6001_0000, 0x400, 0x411c_f312),
    (
        "real/tc2-ptm-rstk-t32",
        "PTM_0_2.bin",
        "mem_Cortex-A15_0_1_RO_CODE.bin",
        0x8000_0278,
        0x2000_0400,
        0x411c_f312,
    ),
];

fn captures(corpus: &Path) -> Vec<Capture> {
    let read =
        |name: String| std::fs::read(corpus.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let capture = |(folder, trace, code, at, etmcr, etmidr): (&'static str, _, _, _, _, _)| {
        let registers = Registers {
            etmcr: Some(etmcr),
            etmidr: Some(etmidr),
            etmccer: Some(0x34c0_1ac2),
            etmtraceidr: None,
        };
        let config = if etmidr >> 8 & 0b1111 == 3 {
            SourceConfig::Pft(pft::Config::from_registers(registers, None).expect("sound registers"))
        } else {
            SourceConfig::Etmv3(etmv3::Config::from_registers(registers, None).expect("sound registers"))
        };
        let mut program = Program::new();
        program.add(Address::from(at), &read(format!("{folder}/{code}"))).expect("one region");
        Capture { name: folder, config, bytes: read(format!("{folder}/{trace}")), program }
    };
    CAPTURES.into_iter().map(capture).collect()
}

#[tracewalk_corpus::test]
fn whole_captures_give_the_same_by_graph_and_by_walk_however_they_are_cut() {
    let corpus = corpus();
    for Capture { name, config, bytes, program } in captures(&corpus) {
        let whole = elements(&config, &bytes, &program, bytes.len());
        assert!(whole.len() > 1000, "{name} is a story");
        for size in [1, 7, 4096] {
            assert!(elements(&config, &bytes, &program, size) == whole, "{name} in pieces of {size}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[tracewalk_corpus::test]
    fn damaged_captures_give_the_same_by_graph_and_by_walk_however_they_are_cut(
        which in 0..CAPTURES.len(),
        from: prop::sample::Index,
        length in 100_usize..4000,
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 0_u8..8), 0..12),
        lost in proptest::option::of(any::<prop::sample::Index>()),
        size in 1_usize..300,
    ) {
        let corpus = corpus();
        let Capture { config, bytes, program, .. } = captures(&corpus).swap_remove(which);
        let start = from.index(bytes.len() - length);
        let mut bytes = bytes[start..start + length].to_vec();
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        if let Some(lost) = lost {
            bytes.remove(lost.index(bytes.len()));
        }
        let whole = elements(&config, &bytes, &program, bytes.len());
        prop_assert_eq!(elements(&config, &bytes, &program, size), whole);
    }
}
