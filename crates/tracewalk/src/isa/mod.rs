//! Code bytes → the properties of one instruction that flow needs: its size, whether it branches, and its target.
//!
//! Code bytes, an address and an instruction set go in, an [`Instruction`] comes out. The functions are pure
//! and total: every bit pattern has an answer. They never read past the end of the code bytes: a 16-bit
//! instruction that ends a region is decoded from its two bytes. Mnemonics, operands and the effect on
//! registers are not here; that is a disassembler's work.
//!
//! The encodings follow the tables of the ARM Architecture Reference Manual, ARMv7-A and ARMv7-R edition (DDI
//! 0406C), in their order; what ARMv8-M adds (DDI 0553B) is marked. A64 follows the A-profile edition (DDI
//! 0487). An UNPREDICTABLE encoding is classified as the instruction whose fields it has, and as a branch
//! only if that instruction is one of the manual's branches (T32's `ADD.W` to the PC is not). An UNDEFINED
//! encoding is [`Class::Other`]: it raises an exception. Bits that should be one or zero are ignored.
//!
//! ```
//! use tracewalk::ids::{Address, Isa, Location};
//! use tracewalk::isa::{Class, classify};
//!
//! // At 0x8000306: `bl 0x8000408`
//! let call = classify(&[0x00, 0xf0, 0x7f, 0xf8], Address::new(0x0800_0306), Isa::T32).unwrap();
//! assert_eq!(call.class, Class::Direct(Location::new(Address::new(0x0800_0408), Isa::T32)));
//! assert!(call.link && !call.conditional);
//! ```

mod a32;
mod a64;
mod a64_access;
mod bits;
mod coprocessor;
mod instruction;
mod t32;

use crate::ids::{Address, Isa};

pub use instruction::{Access, Barrier, Class, Direction, Instruction, Raises, Return, Unclassified};
/// The size in bytes of the instruction at the start of `code`, which must be one that can be classified.
#[inline]
#[must_use]
pub(crate) const fn size(code: &[u8], isa: Isa) -> u64 {
    match (isa, code) {
        (Isa::T32 | Isa::T32EE, [a, b, ..]) if !t32::is_32_bit(u16::from_le_bytes([*a, *b])) => 2,
        _ => 4,
    }
}

/// Classifies the instruction at the start of `code`, whose first byte is at `address`.
///
/// `code` may go on after the instruction; two bytes are enough for a 16-bit one.
///
/// # Errors
///
/// [`Unclassified::Truncated`] if `code` ends within the instruction, [`Unclassified::Jazelle`] for Java bytecode.
#[inline]
pub fn classify(code: &[u8], address: Address, isa: Isa) -> Result<Instruction, Unclassified> {
    match isa {
        Isa::A32 => match code {
            [a, b, c, d, ..] => Ok(a32::classify(u32::from_le_bytes([*a, *b, *c, *d]), address)),
            _ => Err(Unclassified::Truncated),
        },
        Isa::T32 | Isa::T32EE => {
            let [a, b, rest @ ..] = code else { return Err(Unclassified::Truncated) };
            let first = u16::from_le_bytes([*a, *b]);
            if !t32::is_32_bit(first) {
                return Ok(t32::classify_16_bit(first, address, isa));
            }
            match rest {
                [c, d, ..] => Ok(t32::classify_32_bit(first, u16::from_le_bytes([*c, *d]), address, isa)),
                _ => Err(Unclassified::Truncated),
            }
        }
        Isa::Jazelle => Err(Unclassified::Jazelle),
        Isa::A64 => match code {
            [a, b, c, d, ..] => Ok(a64::classify(u32::from_le_bytes([*a, *b, *c, *d]), address)),
            _ => Err(Unclassified::Truncated),
        },
    }
}

#[cfg(test)]
mod tests;
