//! A32 encodings (ARM Architecture Reference Manual, DDI 0406C, A5).

use super::Instruction;
use crate::ids::Address;

pub(super) fn classify(_word: u32, _address: Address) -> Instruction {
    Instruction::other(4)
}
