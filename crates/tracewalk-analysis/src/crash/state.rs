//! The state of a halted processor, as a debugger read it, and the meaning of fault status registers.

use std::collections::BTreeMap;

use tracewalk::ids::Address;

/// The registers and memory of a halted processor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The core registers, r0 to pc.
    pub registers: [Option<u32>; 16],
    /// xPSR.
    pub xpsr: Option<u32>,
    /// The main and the process stack pointer.
    pub stack_pointers: [Option<u32>; 2],
    /// The registers of A64: x0 to x30, 31 for sp and 32 for pc.
    pub wide: BTreeMap<u8, u64>,
    /// Pieces of memory by their first addresses.
    pub memory: BTreeMap<u32, Vec<u8>>,
}

/// The registers that an exception stacks (DDI 0403E, B1.5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackedFrame {
    /// The frame's address.
    pub address: Address,
    /// r0, r1, r2, r3, r12, lr, pc and xPSR.
    pub words: [u32; 8],
}

impl StackedFrame {
    /// The stacked program counter: where execution resumes.
    #[must_use]
    pub fn returns_to(&self) -> Address {
        let [.., counter, _] = self.words;
        Address::from(counter & !1)
    }
}

/// The addresses of the System Control Block's registers (DDI 0403E, table B3-4).
pub(super) const CPUID: u32 = 0xe000_ed00;
pub(super) const ICSR: u32 = 0xe000_ed04;
pub(super) const VTOR: u32 = 0xe000_ed08;
pub(super) const MPU_CTRL: u32 = 0xe000_ed94;
const CFSR: u32 = 0xe000_ed28;
const HFSR: u32 = 0xe000_ed2c;
const MMFAR: u32 = 0xe000_ed34;
const BFAR: u32 = 0xe000_ed38;
/// Armv8-M (DDI 0553B, D1.2).
const SFSR: u32 = 0xe000_ede4;
const SFAR: u32 = 0xe000_ede8;

/// The fault status registers (DDI 0403E, B3.2.15 to B3.2.18; DDI 0553B, D1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultStatus {
    /// Configurable fault status.
    pub cfsr: Option<u32>,
    /// HardFault status.
    pub hfsr: Option<u32>,
    /// The address of a MemManage fault; valid if `CFSR.MMARVALID` is set.
    pub mmfar: Option<u32>,
    /// The address of a bus fault; valid if `CFSR.BFARVALID` is set.
    pub bfar: Option<u32>,
    /// SecureFault status, with a flag set: of Armv8-M.
    pub sfsr: Option<u32>,
    /// The address of a SecureFault; valid if `SFSR.SFARVALID` is set.
    pub sfar: Option<u32>,
}

/// A register of [`FaultStatus`] and its fields that are set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusRegister {
    /// Arm's name.
    pub name: &'static str,
    /// The address.
    pub address: Address,
    /// The value.
    pub value: u32,
    /// The fields that are set, by Arm's names, each with its meaning.
    pub fields: Vec<(&'static str, &'static str)>,
}

/// A flag's bit, name and meaning.
type Flag = (u32, &'static str, &'static str);

pub(super) const IACCVIOL: u32 = 1 << 0;
pub(super) const DACCVIOL: u32 = 1 << 1;
const MSTKERR: u32 = 1 << 4;
const MLSPERR: u32 = 1 << 5;
pub(super) const MMARVALID: u32 = 1 << 7;
pub(super) const IBUSERR: u32 = 1 << 8;
pub(super) const PRECISERR: u32 = 1 << 9;
pub(super) const IMPRECISERR: u32 = 1 << 10;
const STKERR: u32 = 1 << 12;
const LSPERR: u32 = 1 << 13;
pub(super) const BFARVALID: u32 = 1 << 15;
pub(super) const UNDEFINSTR: u32 = 1 << 16;
pub(super) const INVSTATE: u32 = 1 << 17;
pub(super) const STKOF: u32 = 1 << 20;
pub(super) const UNALIGNED: u32 = 1 << 24;
pub(super) const DIVBYZERO: u32 = 1 << 25;

/// Of HFSR.
pub(super) const FORCED: u32 = 1 << 30;

/// B3.2.15.
const CFSR_FLAGS: &[Flag] = &[
    (IACCVIOL, "IACCVIOL", "an instruction fetch was not permitted"),
    (DACCVIOL, "DACCVIOL", "a data access was not permitted"),
    (1 << 3, "MUNSTKERR", "unstacking was not permitted"),
    (MSTKERR, "MSTKERR", "stacking was not permitted"),
    (MLSPERR, "MLSPERR", "saving floating-point registers was not permitted"),
    (MMARVALID, "MMARVALID", "MMFAR holds the address"),
    (IBUSERR, "IBUSERR", "bus error on an instruction fetch"),
    (PRECISERR, "PRECISERR", "bus error on a data access of this instruction"),
    (IMPRECISERR, "IMPRECISERR", "bus error on a data access of an earlier instruction"),
    (1 << 11, "UNSTKERR", "bus error while unstacking"),
    (STKERR, "STKERR", "bus error while stacking"),
    (LSPERR, "LSPERR", "bus error while saving floating-point registers"),
    (BFARVALID, "BFARVALID", "BFAR holds the address"),
    (UNDEFINSTR, "UNDEFINSTR", "an undefined instruction"),
    (INVSTATE, "INVSTATE", "an invalid state, most often no Thumb bit"),
    (1 << 18, "INVPC", "an invalid EXC_RETURN"),
    (1 << 19, "NOCP", "a coprocessor that is disabled or missing"),
    (STKOF, "STKOF", "the stack pointer went below its limit"),
    (UNALIGNED, "UNALIGNED", "an unaligned access"),
    (DIVBYZERO, "DIVBYZERO", "a division by zero"),
];

/// B3.2.16.
const HFSR_FLAGS: &[Flag] = &[
    (1 << 1, "VECTTBL", "the vector could not be read"),
    (FORCED, "FORCED", "escalated from another fault"),
    (1 << 31, "DEBUGEVT", "a debug event"),
];

const SFARVALID: u32 = 1 << 6;

/// DDI 0553B, D1.2.
const SFSR_FLAGS: &[Flag] = &[
    (1 << 0, "INVEP", "an entry to Secure code that is not an SG instruction"),
    (1 << 1, "INVIS", "an invalid integrity signature in a stacked frame"),
    (1 << 2, "INVER", "an invalid return from an exception to Secure code"),
    (1 << 3, "AUVIOL", "an access to Secure memory from Non-secure code"),
    (1 << 4, "INVTRAN", "a branch from Secure to Non-secure code that is not marked as one"),
    (1 << 5, "LSPERR", "saving floating-point registers was not permitted"),
    (SFARVALID, "SFARVALID", "SFAR holds the address"),
    (1 << 7, "LSERR", "an error in the state of saved floating-point registers"),
];

impl Snapshot {
    /// The word at `address`, if that memory is known.
    #[must_use]
    pub fn word(&self, address: u32) -> Option<u32> {
        self.memory.range(..=address).rev().find_map(|(start, bytes)| {
            let offset = usize::try_from(address - start).ok()?;
            bytes.get(offset..)?.first_chunk().copied().map(u32::from_le_bytes)
        })
    }

    /// Whether the byte at `address` is known.
    #[must_use]
    pub fn holds(&self, address: u32) -> bool {
        let mut pieces = self.memory.range(..=address).rev();
        pieces.any(|(start, bytes)| u64::from(address - start) < bytes.len() as u64)
    }

    /// The fault status registers. ARMv6-M has none: values read at their addresses mean nothing.
    #[must_use]
    pub fn fault_status(&self) -> FaultStatus {
        if self.is_baseline() == Some(true) {
            return FaultStatus::default();
        }
        FaultStatus {
            cfsr: self.word(CFSR),
            hfsr: self.word(HFSR),
            mmfar: self.word(MMFAR),
            bfar: self.word(BFAR),
            // Reserved before Armv8-M, and then 0.
            sfsr: self.word(SFSR).filter(|value| *value != 0),
            sfar: self.word(SFAR),
        }
    }

    /// Whether the processor is of ARMv6-M, by CPUID's architecture field (DDI 0419E, B3.2.3).
    #[must_use]
    pub fn is_baseline(&self) -> Option<bool> {
        let cpuid = self.word(CPUID)?;
        match cpuid >> 16 & 0xf {
            0xc => Some(true),
            0xf => Some(false),
            _ => None,
        }
    }

    /// Whether the processor may have stack limits, by the part number in CPUID: processors of ARMv6-M and ARMv7-M, which have none,
    /// have part numbers that begin with 0xC.
    #[must_use]
    pub fn has_stack_limits(&self) -> Option<bool> {
        Some(self.word(CPUID)? >> 12 & 0xf != 0xc)
    }

    /// The exception that was being handled; `None` in thread mode and if it is not known.
    #[must_use]
    pub fn exception_number(&self) -> Option<u16> {
        u16::try_from(self.xpsr? & 0x1ff).ok().filter(|number| *number != 0)
    }
}

impl FaultStatus {
    /// The registers that are known, with their fields that are set.
    #[must_use]
    pub fn registers(&self) -> Vec<StatusRegister> {
        let set = |flags: &[Flag], value: u32| {
            let set = flags.iter().filter(|(bit, ..)| value & bit != 0);
            set.map(|(_, name, meaning)| (*name, *meaning)).collect()
        };
        let valid = |value: Option<u32>, flag: u32| value.filter(|_| self.is_set(flag));
        let secure = self.sfar.filter(|_| self.sfsr.is_some_and(|status| status & SFARVALID != 0));
        let registers = [
            ("CFSR", CFSR, self.cfsr, CFSR_FLAGS),
            ("HFSR", HFSR, self.hfsr, HFSR_FLAGS),
            ("MMFAR", MMFAR, valid(self.mmfar, MMARVALID), &[]),
            ("BFAR", BFAR, valid(self.bfar, BFARVALID), &[]),
            ("SFSR", SFSR, self.sfsr, SFSR_FLAGS),
            ("SFAR", SFAR, secure, &[]),
        ];
        let known = registers.into_iter().filter_map(|(name, address, value, flags)| {
            let value = value?;
            Some(StatusRegister { name, address: Address::from(address), value, fields: set(flags, value) })
        });
        known.collect()
    }

    /// Whether an exception could not store its frame, or not all of it.
    pub(super) fn is_not_stacked(&self) -> bool {
        self.is_set(MSTKERR | MLSPERR | STKERR | LSPERR | STKOF)
    }

    /// Whether CFSR is known and has this flag set.
    #[must_use]
    pub fn is_set(&self, flag: u32) -> bool {
        self.cfsr.is_some_and(|cfsr| cfsr & flag != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(words: &[(u32, u32)]) -> Snapshot {
        let memory = words.iter().map(|(at, word)| (*at, word.to_le_bytes().to_vec())).collect();
        Snapshot { memory, ..Snapshot::default() }
    }

    #[test]
    fn fields_of_fault_status_have_their_names() {
        let snapshot = snapshot(&[(CFSR, 0x8200), (HFSR, 1 << 30), (MMFAR, 0x10), (BFAR, 0x8765_4330)]);
        let registers = snapshot.fault_status().registers();
        let names = registers.iter().map(|register| register.name).collect::<Vec<_>>();
        assert_eq!(names, ["CFSR", "HFSR", "BFAR"]);
        let fields = registers[0].fields.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        assert_eq!(fields, ["PRECISERR", "BFARVALID"]);
        assert_eq!(registers[1].fields[0].0, "FORCED");
    }

    #[test]
    fn a_cortex_m0_has_no_fault_status() {
        let snapshot = snapshot(&[(CPUID, 0x410c_c601), (CFSR, 0)]);
        assert_eq!(snapshot.fault_status(), FaultStatus::default());
        assert_eq!(snapshot.is_baseline(), Some(true));
    }
}
