//! The result of disassembling one instruction.

use tracewalk::ids::Address;

/// One instruction as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disassembled {
    /// The size, 2 or 4 bytes (fewer if the program ends inside the instruction).
    pub bytes: u8,
    /// The mnemonic with its condition, like `bne`.
    pub mnemonic: String,
    /// The operands, like `r0, [r1, #4]`. Addresses are `0x`-prefixed.
    pub operands: String,
    /// The address among the operands: a branch target.
    pub target: Option<Address>,
    /// The address among the operands from which a load relative to the program counter takes its value.
    pub literal: Option<Address>,
}
