//! An instruction with the registers before it.

use std::fmt;

use super::Random;
use super::program::{ARENA, ARENA_BYTES};
use crate::machine::{Condition, Machine};
use crate::path::ItBlock;
use crate::{a32, a64, t32};
use tracewalk::ids::{Address, Isa};
use tracewalk::isa::{self, Class};

/// The instruction sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    A32,
    T32,
    A64,
}

/// An instruction with the registers before it.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) set: Set,
    pub(super) code: u32,
    /// Its address, or that of the IT instruction before it.
    pub(super) address: u64,
    /// The condition of an IT instruction before it.
    pub(super) it: Option<u8>,
    /// The registers; of A64 31 is the stack pointer, which the program sets.
    pub(super) registers: [u64; 32],
    /// N, Z, C and V as bits 3 to 0.
    pub(super) flags: u32,
}

impl Case {
    pub(super) fn random(set: Set, random: &mut Random) -> Self {
        let code = match set {
            Set::T32 => thumb(random),
            Set::A32 => arm(random),
            Set::A64 => wide(random),
        };
        let it = (set == Set::T32 && random.below(5) == 0)
            .then(|| u8::try_from(random.below(15)).expect("four bits"));
        let registers = std::array::from_fn(|_| register(set, random));
        Self { set, code, address: 0, it, registers, flags: random.word() & 15 }
    }

    /// Whether a T32 instruction has two halfwords.
    pub(super) const fn is_wide(&self) -> bool {
        self.code >> 16 != 0
    }

    pub(super) fn execute<M: Machine>(&self, machine: &mut M) {
        let address = u32::try_from(self.address).expect("an address of 32 bits");
        match self.set {
            Set::T32 => {
                let condition = self.it.map_or(Condition::ALWAYS, Condition);
                let holds = machine.holds(condition);
                if machine.known_bit(holds) == Some(true) {
                    self.thumb(address + if self.it.is_some() { 2 } else { 0 }).execute(machine);
                }
            }
            Set::A32 => {
                let arm = a32::Arm { code: self.code, address };
                let holds = machine.holds(arm.condition());
                if arm.condition().0 >= 14 || machine.known_bit(holds) == Some(true) {
                    arm.execute(machine);
                }
            }
            Set::A64 => a64::execute(machine, self.code, self.address),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "two halfwords")]
    fn thumb(&self, address: u32) -> t32::Thumb {
        let (first, second) =
            if self.is_wide() { ((self.code >> 16) as u16, self.code as u16) } else { (self.code as u16, 0) };
        t32::Thumb { first, second, address, in_it_block: self.it.is_some() }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} {:08x} it {:?} flags {:x} registers {:x?}",
            self.set, self.code, self.it, self.flags, self.registers
        )
    }
}

/// Numbers with long runs of equal bits, small ones, addresses of memory, and any.
fn register(set: Set, random: &mut Random) -> u64 {
    let bits = if set == Set::A64 { 64 } else { 32 };
    let shift = u32::try_from(random.below(bits)).expect("small");
    let value = match random.below(8) {
        0 => random.below(64),
        1 => 1 << shift,
        2 => (u64::MAX << shift) ^ random.below(2),
        3..=5 => ARENA + ARENA_BYTES as u64 / 2 + 4 * random.below(64),
        _ => random.number(),
    };
    if set == Set::A64 { value } else { value & 0xffff_ffff }
}

fn thumb(random: &mut Random) -> u32 {
    let wide = 0xe800 | random.word() & 0x17ff;
    match random.below(10) {
        0..=2 => match random.word() & 0xffff {
            narrow if narrow >= 0xe800 => narrow & 0x7fff,
            narrow => narrow,
        },
        // Data processing.
        3 => (0xea00 | random.word() & 0x1ff) << 16 | random.word() & 0x7fff,
        4 => (0xf000 | random.word() & 0x5ff) << 16 | random.word() & 0x7fff,
        5 => (0xfa00 | random.word() & 0x1ff) << 16 | 0xf000 | random.word() & 0xfff,
        6 => (0xfa00 | random.word() & 0x1ff) << 16 | random.word() & 0xffff,
        // Loads and stores.
        7 => (0xf800 | random.word() & 0x1ff) << 16 | random.word() & 0xffff,
        8 => (0xe800 | random.word() & 0x1ff) << 16 | random.word() & 0xffff,
        _ => (wide | 0xe000) << 16 | random.word() & 0xffff,
    }
}

fn wide(random: &mut Random) -> u32 {
    let code = random.word();
    match random.below(8) {
        // Data processing with immediates and on registers.
        0 | 1 => code & !0x1c00_0000 | 0x1000_0000,
        2..=4 => code & !0x0e00_0000 | 0x0a00_0000,
        // Loads and stores, and those of single registers.
        5 => code & !0x0a00_0000 | 0x0800_0000,
        6 => code & !0x0600_0000 | 0x3800_0000,
        _ => code,
    }
}

fn arm(random: &mut Random) -> u32 {
    let condition = match random.below(8) {
        0 => u32::try_from(random.below(14)).expect("four bits") << 28,
        _ => 0xe000_0000,
    };
    let code = match random.below(6) {
        // Multiplication and extra loads and stores.
        0 => random.word() & 0x01ff_ffff & !0x90 | 0x90,
        // Media instructions.
        1 => random.word() & 0x01ff_ffff | 0x0600_0010,
        // Loads and stores.
        2 => random.word() & 0x03ff_ffff | 0x0400_0000,
        _ => random.word() & 0x0fff_ffff,
    };
    condition | code
}

impl Case {
    /// Whether execution goes on after the instruction: it does not branch, raise an exception, wait, or change the byte order.
    pub(super) fn goes_on(&self) -> bool {
        let (isa, code) = match self.set {
            Set::A32 => (Isa::A32, self.code.to_le_bytes()),
            Set::A64 => (Isa::A64, self.code.to_le_bytes()),
            Set::T32 if self.is_wide() => (Isa::T32, self.code.rotate_left(16).to_le_bytes()),
            Set::T32 => (Isa::T32, self.code.to_le_bytes()),
        };
        let is_order = self.set == Set::T32 && self.code & !0xf == 0xb650;
        let class = isa::classify(&code, Address::new(0x10_0000), isa).expect("whole instructions");
        // The emulator emulates Linux, which emulates an old coprocessor of this number.
        let is_old = self.set != Set::A64 && self.code >> 26 & 3 == 3 && matches!(self.code >> 8 & 15, 1 | 2);
        // HLT of ARMv8 asks the debugger for services.
        let is_halt = self.set == Set::T32 && self.code & !0x3f == 0xba80;
        // QEMU 7.2 ends itself at some of these (two registers of half precision).
        let is_fatal = self.set == Set::A64 && self.code & 0x0f7e_0c00 == 0x0e78_0800;
        let is_odd = is_order || is_old || is_halt || is_fatal;
        class.class == Class::Other && class.raises.is_none() && !is_odd
    }

    /// The IT instruction before this one.
    pub(super) fn it_code(&self) -> Option<u16> {
        self.it.map(|condition| 0xbf08 | u16::from(condition) << 4)
    }

    /// Whether the instruction is an IT instruction itself.
    pub(super) fn is_it(&self) -> bool {
        self.set == Set::T32 && !self.is_wide() && ItBlock::begun_by(self.code).is_some()
    }
}
