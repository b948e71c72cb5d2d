//! The instructions of M profile: the texts of `arm-none-eabi-objdump` 2.40 for Armv8.1-M, one example at least for each row of the
//! tables.

use std::collections::BTreeSet;
use std::slice;

use tracewalk::ids::{Address, Isa, Location, Profile};
use tracewalk::program::Program;

use super::ROWS;
use crate::disassembly::template::{Row, written};
use crate::disassembly::{Disassembler, mve};

const START: Location = Location::new(Address::new(0x1_0000), Isa::T32);

/// The code and the text of each line of `examples.txt`.
fn examples() -> impl Iterator<Item = (u32, &'static str)> {
    let lines = include_str!("examples.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let (code, text) = line.split_at_checked(9).expect("two halfwords");
        let word = u32::from_str_radix(&code.replace(' ', ""), 16).expect("hexadecimal digits");
        (word, text.trim_start())
    })
}

/// A program of these words and halfwords.
fn program(code: &[u32]) -> Program {
    let halfwords = code
        .iter()
        .flat_map(|unit| [unit >> 16, unit & 0xffff].into_iter().skip(usize::from(unit >> 16 == 0)));
    let code = halfwords.flat_map(|half| half.to_le_bytes().into_iter().take(2)).collect::<Vec<_>>();
    let mut program = Program::new();
    program.add(START.address, &code).expect("room for the code");
    program
}

/// The texts of these words and halfwords.
fn texts(code: &[u32]) -> Vec<String> {
    let program = program(code);
    let mut at = START;
    let mut texts = Vec::new();
    while let Some(text) = Disassembler::new(Profile::M).disassemble(&program, at) {
        texts.push(format!("{} {}", text.mnemonic, text.operands).trim_end().to_owned());
        at = at.after(text.bytes.into());
    }
    texts
}

#[test]
fn instructions_of_m_profile_have_the_texts_of_objdump() {
    for (word, text) in examples() {
        assert_eq!(texts(&[word]), [text], "{word:08x}");
    }
}

#[test]
fn every_row_of_the_tables_has_an_example() {
    for rows in [&mve::ROWS[..], &ROWS[..]] {
        let applies = |row: &Row, word| written(slice::from_ref(row), word, START).is_some();
        let used = examples().filter_map(|(word, _)| rows.iter().position(|row| applies(row, word)));
        let used = used.collect::<BTreeSet<_>>();
        let unused = (0..rows.len()).filter(|row| !used.contains(row)).collect::<Vec<_>>();
        assert!(unused.is_empty(), "{unused:?}");
    }
}

#[test]
fn instructions_of_a_vpt_block_have_its_letters() {
    let vadd = 0xef22_0844;
    assert_eq!(texts(&[0xfe71_0f4d, vadd, vadd]), ["vpst", "vaddt.i32 q0, q1, q2", "vadd.i32 q0, q1, q2"]);
    // The comparison of floats is in its block's encoding, and a load whose second half looks like a first one before it.
    assert_eq!(
        texts(&[0xed90_fe80, 0xee71_af00, vadd, 0xfe31_0f4d, 0xffb0_05c2, 0xed9d_1f01, vadd]),
        [
            "vldrh.u16 q7, [r0]",
            "vptett.f32 eq, q0, q0",
            "vaddt.i32 q0, q1, q2",
            "vpnote",
            "vmvnt q0, q1",
            "vldrwt.u32 q0, [sp, #4]",
            "vadd.i32 q0, q1, q2",
        ]
    );
}

#[test]
fn instructions_of_m_profile_have_the_condition_of_an_it_block() {
    let (vmrs, msr, blxns) = (0xeefd_0a10, 0xf380_8811, 0x47a4);
    assert_eq!(
        texts(&[0xbf0e, vmrs, msr, blxns, vmrs]),
        ["itee eq", "vmrseq r0, p0", "msrne basepri, r0", "blxnsne r4", "vmrs r0, p0"]
    );
    // The second half of VMRS looks like the first of another instruction.
    let after_vmrs = [0xeef1_fa10, 0xbf0c, 0x2301, 0x2302];
    assert_eq!(texts(&after_vmrs), ["vmrs apsr_nzcv, fpscr", "ite eq", "moveq r3, #1", "movne r3, #2"]);
}

#[test]
fn no_block_begins_in_the_middle_of_an_instruction_or_in_erased_memory() {
    let vadd = 0xef22_0844;
    // Halves of two other instructions make a VPST.
    assert_eq!(texts(&[0xed90_fe71, 0x0f4d, 0xbf00, vadd]).last().unwrap(), "vadd.i32 q0, q1, q2");
    let erased = [[u32::MAX; 16].as_slice(), &[0xfe71_0f4d, vadd]].concat();
    assert_eq!(texts(&erased).last().unwrap(), "vadd.i32 q0, q1, q2");
}

#[test]
fn instructions_that_only_a_profile_has_are_data() {
    let words = [
        0xf001_e80c,
        0xef20_0804,
        0xf920_0a0f,
        0xfc20_0800,
        0xee80_0b10,
        0xf3ef_8fb9,
        0xec9f_0b40,
        0xea5a_2fed,
        0xfb5e_5f1f,
    ];
    for word in words {
        assert!(texts(&[word])[0].starts_with(".word"), "{word:x}: {:?}", texts(&[word]));
    }
}

#[test]
fn a_loop_and_a_branch_future_have_their_target() {
    let target = |word| {
        let text =
            Disassembler::new(Profile::M).disassemble(&program(&[word]), START).expect("code is there");
        text.target.map(Address::get)
    };
    assert_eq!(target(0xf00f_c0ff), Some(0xfe08), "le");
    assert_eq!(target(0xf046_c261), Some(0x1_04c4), "wls");
    assert_eq!(target(0xf157_ee8b), Some(0x7d1a), "bf");
    assert_eq!(target(0xf66b_e001), None, "bfx, whose only label is that of the branch");
}
