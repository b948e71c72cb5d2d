use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::ids::Location;

const ADDRESS: Address = Address::new(0x8000);

fn a32(word: u32) -> Instruction {
    classify(&word.to_le_bytes(), ADDRESS, Isa::A32).expect("a word is a whole instruction")
}

fn t32(code: u32, isa: Isa) -> Instruction {
    let halfwords = if code > 0xffff { [code >> 16, code & 0xffff] } else { [code, 0] };
    let bytes =
        halfwords.into_iter().flat_map(|half| half.to_le_bytes().into_iter().take(2)).collect::<Vec<_>>();
    classify(&bytes, ADDRESS, isa).expect("two halfwords hold a whole instruction")
}

/// Asserts the properties that every instruction has, whatever its bits.
fn assert_plausible(code: &[u8], address: Address, isa: Isa) {
    let instruction = classify(code, address, isa).expect("four bytes hold a whole instruction");
    let bytes = usize::from(instruction.bytes);
    assert!(bytes == 4 || bytes == 2 && isa != Isa::A32, "{instruction:?}");
    if let Class::Direct(target) = instruction.class {
        assert_eq!(target.address, target.address.aligned_for(target.isa), "{instruction:?}");
    }
    assert!(!instruction.link || instruction.is_branch(), "{instruction:?}");
    assert!(instruction.returns.is_none() || instruction.class == Class::Indirect, "{instruction:?}");
    if let Some(access) = instruction.access {
        let is_sized = matches!(access.bytes, 1 | 2 | 4 | 8) && access.transfers > 0;
        let has_direction_alone = access.bytes == 0 && access.transfers == 0;
        assert!(if isa == Isa::A64 { has_direction_alone } else { is_sized }, "{instruction:?}");
    }
    assert_eq!(classify(&code[..bytes], address, isa), Ok(instruction), "its own bytes are enough");
    for end in 0..bytes {
        assert_eq!(classify(&code[..end], address, isa), Err(Unclassified::Truncated));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn any_four_bytes_are_an_instruction_in_every_instruction_set(code: [u8; 4], address: u64) {
        let address = Address::new(address);
        for isa in [Isa::A32, Isa::T32, Isa::T32EE] {
            assert_plausible(&code, Address::from(address.low_word()), isa);
        }
        assert_plausible(&code, address, Isa::A64);
    }
}

#[test]
fn any_halfword_starts_an_instruction() {
    for first in 0..=u16::MAX {
        let [a, b] = first.to_le_bytes();
        for isa in [Isa::T32, Isa::T32EE] {
            assert_plausible(&[a, b, 0x00, 0x80], ADDRESS, isa);
        }
    }
}

#[test]
fn jazelle_is_not_decoded() {
    assert_eq!(classify(&[0; 4], ADDRESS, Isa::Jazelle), Err(Unclassified::Jazelle));
}

#[test]
fn returns_are_known_by_their_form() {
    let function = Some(Return::Function);
    let exception = Some(Return::Exception);
    let a32_forms = [
        (0xe12f_ff1e, function),  // bx lr
        (0xe12f_ff13, None),      // bx r3
        (0xe12f_ff3e, None),      // blx lr
        (0xe1a0_f00e, function),  // mov pc, lr
        (0xe1b0_f00e, exception), // movs pc, lr
        (0xe25e_f004, exception), // subs pc, lr, #4
        (0xe49d_f004, function),  // ldr pc, [sp], #4
        (0xe49d_f008, function),  // ldr pc, [sp], #8
        (0xe59d_f004, None),      // ldr pc, [sp, #4]
        (0xe41d_f004, None),      // ldr pc, [sp], #-4
        (0xe8bd_8010, function),  // pop {r4, pc}
        (0xe91b_a800, function),  // ldmdb r11, {r11, sp, pc}
        (0xe890_8002, None),      // ldm r0, {r1, pc}
        (0xe8fd_8000, exception), // ldm sp!, {pc}^
        (0xf8bd_0a00, exception), // rfeia sp!
        (0xe160_006e, exception), // eret
    ];
    for (word, expected) in a32_forms {
        assert_eq!(a32(word).returns, expected, "{word:08x}");
    }
    let t32_forms = [
        (0x4770, function),       // bx lr
        (0x4718, None),           // bx r3
        (0x46f7, function),       // mov pc, lr
        (0x4687, None),           // mov pc, r0
        (0xbd10, function),       // pop {r4, pc}
        (0xf85d_fb04, function),  // ldr.w pc, [sp], #4
        (0xf85d_f904, None),      // ldr.w pc, [sp], #-4
        (0xf8dd_fb04, None),      // ldr.w pc, [sp, #2820]
        (0xe8bd_8010, function),  // pop.w {r4, pc}
        (0xe910_8002, None),      // ldmdb r0, {r1, pc}
        (0xf3de_8f04, exception), // subs pc, lr, #4
        (0xf3de_8f00, exception), // eret
        (0xe81d_c000, exception), // rfedb sp
    ];
    for (code, expected) in t32_forms {
        assert_eq!(t32(code, Isa::T32).returns, expected, "{code:04x}");
    }
}

#[test]
fn it_blocks_end_at_the_lowest_bit_of_the_mask() {
    let lengths = (0xbf00..=0xbf1f).map(|code| t32(code, Isa::T32).it_block).collect::<Vec<_>>();
    let of_one_condition = [0, 4, 3, 4, 2, 4, 3, 4, 1, 4, 3, 4, 2, 4, 3, 4];
    assert_eq!(lengths, [of_one_condition; 2].concat());
    assert_eq!(t32(0xbe08, Isa::T32).it_block, 0);
}

#[test]
fn targets_wrap_at_the_end_of_memory() {
    let branch = classify(&0xea00_0000_u32.to_le_bytes(), Address::new(0xffff_fffc), Isa::A32);
    let target = Class::Direct(Location::new(Address::new(4), Isa::A32));
    assert_eq!(branch.map(|instruction| instruction.class), Ok(target));
}

#[test]
fn t32_blx_starts_from_a_word_and_needs_an_even_offset() {
    let to = |address| Class::Direct(Location::new(Address::from(address), Isa::A32));
    let blx = |address| {
        classify(&[0x00, 0xf0, 0x02, 0xe8], Address::from(address), Isa::T32).map(|found| found.class)
    };
    assert_eq!(blx(0x8000), Ok(to(0x8008)));
    assert_eq!(blx(0x8002), Ok(to(0x8008)));
    assert_eq!(t32(0xf000_e803, Isa::T32), Instruction::other(4));
}

#[test]
fn enterx_and_leavex_go_on_after_themselves() {
    let next = |isa| Class::Direct(Location::new(Address::new(0x8004), isa));
    assert_eq!(t32(0xf3bf_8f1f, Isa::T32).class, next(Isa::T32EE));
    assert_eq!(t32(0xf3bf_8f0f, Isa::T32EE).class, next(Isa::T32));
}

#[test]
fn handler_branches_exist_in_t32ee_alone() {
    // hbp, hb, hbl, hblp, chka
    let expected = [
        (0xc025, Class::Indirect, false),
        (0xc225, Class::Indirect, false),
        (0xc325, Class::Indirect, true),
        (0xc425, Class::Indirect, true),
        (0xc725, Class::Indirect, true),
        (0xca25, Class::Other, false),
    ];
    for (code, class, link) in expected {
        let instruction = t32(code, Isa::T32EE);
        assert_eq!((instruction.class, instruction.link), (class, link), "{code:04x}");
        assert_eq!(t32(code, Isa::T32).class, Class::Other, "{code:04x}");
    }
    let branch = t32(0xe7fe, Isa::T32EE).class;
    assert_eq!(branch, Class::Direct(Location::new(ADDRESS, Isa::T32EE)), "other branches stay in T32EE");
}

#[test]
fn exceptions_are_raised_by_their_instructions() {
    let a32_forms = [
        (0xef00_0001, Raises::SupervisorCall),
        (0xe140_0070, Raises::HypervisorCall),
        (0xe160_0070, Raises::SecureMonitorCall),
        (0xe120_0071, Raises::Breakpoint),
        (0xe7f0_00f0, Raises::Undefined),
    ];
    for (word, raises) in a32_forms {
        let instruction = a32(word);
        assert_eq!((instruction.class, instruction.raises), (Class::Other, Some(raises)), "{word:08x}");
    }
    let t32_forms = [
        (0xdf00, Raises::SupervisorCall),
        (0xf7e0_8000, Raises::HypervisorCall),
        (0xf7f0_8000, Raises::SecureMonitorCall),
        (0xbe00, Raises::Breakpoint),
        (0xde00, Raises::Undefined),
        (0xf7f0_a000, Raises::Undefined),
    ];
    for (code, raises) in t32_forms {
        let instruction = t32(code, Isa::T32);
        assert_eq!((instruction.class, instruction.raises), (Class::Other, Some(raises)), "{code:04x}");
    }
    assert!(a32(0x0f00_0001).conditional, "svceq");
}

#[test]
fn coprocessor_barriers_need_mcr() {
    assert_eq!(a32(0xee07_3f95).class, Class::Barrier(Barrier::Isb), "with any register");
    assert_eq!(a32(0xfe07_0f95).class, Class::Other, "mcr2");
    assert_eq!(a32(0xee17_0f95).class, Class::Other, "mrc");
    assert_eq!(a32(0xee27_0f95).class, Class::Other, "opc1 is not 0");
    assert_eq!(t32(0xee07_0f9a, Isa::T32).class, Class::Barrier(Barrier::Dsb));
}

#[test]
fn the_security_gateway_of_armv8_m_is_no_load() {
    assert_eq!(t32(0xe97f_e97f, Isa::T32), Instruction::other(4));
    assert_eq!(t32(0xe841_f200, Isa::T32), Instruction::other(4), "tt r2, r1");
    assert!(t32(0xe9d0_e97f, Isa::T32).access.is_some(), "ldrd lr, r9, [r0, #508]");
}

/// ARMv7-M ARM (DDI 0403E), A7.7.161: STR (immediate) T4 with P and W clear is undefined; A7.7.163: STR (register) T2 has
/// zeros in bits 11 to 6 of its second halfword.
#[test]
fn a_store_that_is_undefined_stores_nothing() {
    let stores = |second: u32| t32(0xf840_0000 | second, Isa::T32).access.is_some();
    let defined = [
        0x1002, // str.w r1, [r0, r2]
        0x1c04, // str.w r1, [r0, #-4]
        0x1e04, // strt r1, [r0, #4]
        0x1904, // str.w r1, [r0], #-4
        0x1b04, // str.w r1, [r0], #4
        0x1d04, // str.w r1, [r0, #-4]!
        0x1f04, // str.w r1, [r0, #4]!
    ];
    assert!(defined.into_iter().all(stores));
    let undefined = [0x1804, 0x1a04, 0x1042, 0x1082, 0x1102, 0x1202, 0x1402];
    assert!(!undefined.into_iter().any(stores));
    assert!(t32(0xf8c0_1804, Isa::T32).access.is_some(), "str.w r1, [r0, #2052]");
}
