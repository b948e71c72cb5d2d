//! Random A64 programs that contain every kind of instruction that flow distinguishes.
//!
//! ```
//! use tracewalk_generate::a64;
//!
//! let firmware = a64::firmware(7);
//! assert!(firmware.path.instructions().count() > 100);
//! assert_eq!(firmware.path, a64::firmware(7).path);
//! ```

use tracewalk::ids::{Address, Exception, Isa, Location};
use tracewalk::program::Program;

use crate::elf::Elf;
use crate::firmware::Firmware;
use crate::record::Profile;
use crate::wander::Wander;

/// Two stretches of code: one in the lower half of the address space (user), one in the upper half (kernel).
const STRETCHES: [u64; 2] = [0x40_0000, 0xffff_8000_0812_0000];

/// How many instructions a stretch has.
const INSTRUCTIONS: u32 = 700;

/// How many steps the path has at most.
const STEPS: usize = 4000;

/// A program and a path through it, always the same for the same seed.
#[must_use]
pub fn firmware(seed: u32) -> Firmware {
    let mut state = seed.wrapping_mul(2_654_435_769) | 1;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    let mut program = Program::new();
    for start in STRETCHES {
        let words = (0..INSTRUCTIONS).map(|index| instruction(index, random(), random()));
        let bytes = words.flat_map(u32::to_le_bytes).collect::<Vec<_>>();
        // The two do not overlap.
        let _ = program.add(Address::new(start), &bytes);
    }
    let [start, kernel] = STRETCHES;
    let handler = |number: u16| Address::new(kernel + 0x80 * u64::from(number));
    let handlers = [2, 3, 4, 12, 14, 15].map(|number| (Exception::ArType(number), handler(number)));
    let wander = Wander {
        program: &program,
        profile: Profile::Ar,
        start: Location::new(Address::new(start), Isa::A64),
        handlers: handlers.to_vec(),
        steps: STEPS,
    };
    let path = wander.path(&mut random);
    Firmware { elf: Elf { program, profile: Profile::Ar }, path }
}

/// An instruction that does not leave its stretch on its own.
fn instruction(index: u32, kind: u32, operand: u32) -> u32 {
    const NOP: u32 = 0xd503_201f;
    let reach = |most: u32| {
        let from = index.saturating_sub(most);
        let until = (index + most).min(INSTRUCTIONS - 1);
        let target = from + (operand >> 8) % (until - from + 1);
        target.wrapping_sub(index)
    };
    let register = (operand & 0b1111) << 5;
    if index + 1 == INSTRUCTIONS {
        return 0x1400_0000 | reach(500) & 0x03ff_ffff;
    }
    match kind % 32 {
        // B, BL, B.cond, CBZ and CBNZ, TBZ and TBNZ.
        0 => 0x1400_0000 | reach(500) & 0x03ff_ffff,
        1 | 2 => 0x9400_0000 | reach(600) & 0x03ff_ffff,
        3..=6 => 0x5400_0000 | (reach(60) & 0x7_ffff) << 5 | (operand % 14),
        7 | 8 => 0xb400_0000 | (operand & 1) << 24 | (reach(40) & 0x7_ffff) << 5,
        9 => 0x3600_0000 | (operand & 1) << 24 | (reach(40) & 0x3fff) << 5,
        // BR, BLR, RET, BLRAAZ, RETAA.
        10 => 0xd61f_0000 | register,
        11 => 0xd63f_0000 | register,
        12 | 13 => 0xd65f_03c0,
        14 if operand & 0b11 == 0 => 0xd63f_081f | register,
        14 if operand & 0b11 == 1 => 0xd65f_0bff,
        // ERET, SVC, UDF, ISB, WFI, WFE, TSTART.
        15 if operand & 1 == 0 => 0xd69f_03e0,
        16 if operand & 1 == 0 => 0xd400_0001,
        17 if operand & 0b11 == 0 => operand >> 16,
        17 if operand & 0b11 == 1 => 0xd523_3060,
        17 => 0xd503_3fdf,
        18 if operand & 1 == 0 => 0xd503_207f,
        18 => 0xd503_205f,
        // ADD, LDR, STR.
        19..=22 => 0x8b02_0020 | register,
        23 => 0xf940_0020 | register,
        24 => 0xf900_0020 | register,
        _ => NOP,
    }
}
