//! Relocations: the branches of AArch64 and A32, and the addresses in debug information.
//!
//! Numbers are those of ELF for the Arm 64-bit Architecture (IHI 0056) and ELF for the Arm Architecture (IHI 0044).

use object::elf::{self, Machine};

/// The kind of a relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The offset of an A64 branch, in words: its lowest bit, and its number of bits.
    A64 { lowest: u32, bits: u32 },
    /// The offset of an A32 branch.
    A32,
    /// An address with this number of bytes.
    Address(usize),
    /// A value that does not affect flow.
    Data,
    /// Something else with this number of bytes, which may be a branch.
    Other(usize),
}

/// The result of a relocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Patch {
    Nothing,
    Bytes(Vec<u8>),
    /// The content of this number of bytes is unknown.
    Unknown(usize),
}

impl Kind {
    pub(super) fn of(machine: Machine, kind: u32) -> Self {
        match machine {
            elf::EM_AARCH64 => Self::of_a64(kind),
            _ => Self::of_a32(kind),
        }
    }

    fn of_a64(kind: u32) -> Self {
        match kind {
            // R_AARCH64_TSTBR14, CONDBR19, JUMP26 and CALL26.
            279 => Self::A64 { lowest: 5, bits: 14 },
            280 => Self::A64 { lowest: 5, bits: 19 },
            282 | 283 => Self::A64 { lowest: 0, bits: 26 },
            // R_AARCH64_ABS64 and ABS32.
            257 => Self::Address(8),
            258 => Self::Address(4),
            // Other addresses of data, and their parts in instructions.
            0 | 256 | 259..=278 | 284..=312 => Self::Data,
            _ => Self::Other(4),
        }
    }

    fn of_a32(kind: u32) -> Self {
        match kind {
            // R_ARM_PC24, PLT32, CALL and JUMP24.
            1 | 27..=29 => Self::A32,
            // R_ARM_ABS32 and TARGET1.
            2 | 38 => Self::Address(4),
            // R_ARM_NONE, REL32, V4BX, PREL31, MOVW, MOVT and their forms in Thumb.
            0 | 3 | 40 | 42..=50 => Self::Data,
            // R_ARM_THM_JUMP11 and JUMP8.
            102 | 103 => Self::Other(2),
            _ => Self::Other(4),
        }
    }

    /// The relocated bytes at index `at`, given the place's address, the target and the addend. Without an
    /// addend, the one in `bytes` applies.
    pub(super) fn patch(
        self,
        bytes: &[u8],
        at: usize,
        (place, target, addend): (u64, Option<u64>, Option<i64>),
    ) -> Patch {
        let there = bytes.get(at..).and_then(|bytes| bytes.first_chunk()).copied().map(u32::from_le_bytes);
        let word = |word: u32| Patch::Bytes(word.to_le_bytes().to_vec());
        match self {
            Self::Data => Patch::Nothing,
            Self::Other(length) => Patch::Unknown(length),
            Self::Address(length) => {
                let value = target.zip(there).map(|(target, there)| {
                    target.wrapping_add_signed(addend.unwrap_or_else(|| there.into()))
                });
                let bytes = value.and_then(|value| value.to_le_bytes().get(..length).map(<[u8]>::to_vec));
                bytes.map_or(Patch::Nothing, Patch::Bytes)
            }
            Self::A64 { lowest, bits } => {
                let patched = target.zip(there).and_then(|(target, there)| {
                    let target = target.wrapping_add_signed(addend.unwrap_or(0));
                    let words = words_between(place, target, bits)?;
                    let mask = u32::MAX >> (32 - bits);
                    Some(there & !(mask << lowest) | (words & mask) << lowest)
                });
                patched.map_or(Patch::Unknown(4), word)
            }
            Self::A32 => {
                const OFFSET: u32 = 0x00ff_ffff;
                const UNCONDITIONAL: u32 = 0xf000_0000;
                // The branch's own offset is the addend. It is -8 for a plain branch, because the processor
                // adds 8 to its own address.
                let patched = target.zip(there).and_then(|(target, there)| {
                    let own = i64::from((there << 8).cast_signed() >> 6);
                    let target = target.wrapping_add_signed(addend.unwrap_or(own));
                    // A linker turns a call of Thumb code into another instruction.
                    let is_plain = there & UNCONDITIONAL != UNCONDITIONAL && target & 1 == 0;
                    let words = words_between(place, target, 24).filter(|_| is_plain)?;
                    Some(there & !OFFSET | words & OFFSET)
                });
                patched.map_or(Patch::Unknown(4), word)
            }
        }
    }
}

/// The distance to a target in words, if it fits into this number of bits. For a more distant target the
/// kernel makes a stub, whose place is unknown.
fn words_between(place: u64, target: u64, bits: u32) -> Option<u32> {
    let bytes = target.wrapping_sub(place).cast_signed();
    let reach = 1_i64 << (bits + 1);
    let is_in_reach = bytes % 4 == 0 && (-reach..reach).contains(&bytes);
    // The mask keeps the low 32 bits of a negative number as well.
    is_in_reach.then(|| u32::try_from((bytes >> 2).cast_unsigned() & u64::from(u32::MAX)).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(kind: Kind, instruction: u32, values: (u64, Option<u64>, Option<i64>)) -> Patch {
        kind.patch(&instruction.to_le_bytes(), 0, values)
    }

    fn word(word: u32) -> Patch {
        Patch::Bytes(word.to_le_bytes().to_vec())
    }

    #[test]
    fn branches_of_a64_lead_to_their_targets() {
        // An assembler's encodings for targets 0x20 bytes before and 0x100 bytes after the branch.
        let kernel = 0xffff_ffc0_0800_0000;
        let call = Kind::of(elf::EM_AARCH64, 283);
        assert_eq!(patched(call, 0x9400_0000, (kernel + 0x20, Some(kernel), Some(0))), word(0x97ff_fff8));
        assert_eq!(patched(call, 0x9400_0000, (kernel, Some(kernel), Some(0x100))), word(0x9400_0040));
        // cbz x0
        let conditional = Kind::of(elf::EM_AARCH64, 280);
        assert_eq!(
            patched(conditional, 0xb400_0000, (kernel, Some(kernel + 0x100), Some(0))),
            word(0xb400_0800)
        );
        // tbnz w0, #3
        let tested = Kind::of(elf::EM_AARCH64, 279);
        assert_eq!(patched(tested, 0x3718_0000, (kernel + 0x20, Some(kernel), Some(0))), word(0x371f_ff00));
        for (kind, reach) in [(call, 1 << 27), (conditional, 1 << 20), (tested, 1 << 15)] {
            let to = |target| patched(kind, 0, (kernel, Some(target), Some(0)));
            assert!(matches!(to(kernel + reach - 4), Patch::Bytes(_)));
            assert!(matches!(to(kernel - reach), Patch::Bytes(_)));
            assert_eq!(to(kernel + reach), Patch::Unknown(4));
            assert_eq!(to(kernel - reach - 4), Patch::Unknown(4));
        }
        assert_eq!(patched(call, 0x9400_0000, (kernel, None, Some(0))), Patch::Unknown(4));
    }

    #[test]
    fn branches_of_a32_have_their_addend_in_themselves() {
        let call = Kind::of(elf::EM_ARM, 28);
        // bl . , to 0x100 before and after it.
        assert_eq!(patched(call, 0xebff_fffe, (0xbf00_0100, Some(0xbf00_0000), None)), word(0xebff_ffbe));
        assert_eq!(patched(call, 0xebff_fffe, (0xbf00_0000, Some(0xbf00_0100), None)), word(0xeb00_003e));
        // Calls of Thumb code need another instruction.
        assert_eq!(patched(call, 0xebff_fffe, (0xbf00_0000, Some(0xbf00_0101), None)), Patch::Unknown(4));
        assert_eq!(patched(call, 0xebff_fffe, (0xbf00_0000, Some(0xc800_0000), None)), Patch::Unknown(4));
    }

    #[test]
    fn what_is_no_branch_stays_and_what_is_not_known_is_left_out() {
        for kind in [275, 277, 286] {
            assert_eq!(patched(Kind::of(elf::EM_AARCH64, kind), 1, (0, None, Some(0))), Patch::Nothing);
        }
        assert_eq!(patched(Kind::of(elf::EM_AARCH64, 9999), 1, (0, Some(0), Some(0))), Patch::Unknown(4));
        assert_eq!(patched(Kind::of(elf::EM_ARM, 102), 1, (0, Some(0), None)), Patch::Unknown(2));
        let address = Kind::of(elf::EM_AARCH64, 257);
        let bytes = Patch::Bytes(0x1_0000_0004_u64.to_le_bytes().to_vec());
        assert_eq!(patched(address, 0, (0, Some(0x1_0000_0000), Some(4))), bytes);
    }
}
