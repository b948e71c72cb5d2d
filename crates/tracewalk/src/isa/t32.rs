//! T32 encodings (ARM Architecture Reference Manual, DDI 0406C, A6).

use super::Instruction;
use crate::ids::{Address, Isa};

pub(super) const fn is_32_bit(first: u16) -> bool {
    first >> 11 >= 0b11101
}

pub(super) fn classify_16_bit(_code: u16, _address: Address, _isa: Isa) -> Instruction {
    Instruction::other(2)
}

pub(super) fn classify_32_bit(_first: u16, _second: u16, _address: Address, _isa: Isa) -> Instruction {
    Instruction::other(4)
}
