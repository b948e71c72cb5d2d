//! Exception information in branch packets: the exception, whether it cancels, and the state after it.

use crate::ids::{Address, Exception, Profile};
use crate::protocol::SecurityBits;

/// The exception part of a branch packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchException {
    /// Exception information bytes.
    Information(ExceptionInformation),
    /// The deprecated code in address byte 5 (table 7.7).
    Deprecated {
        /// EEE, 0 to 7.
        code: u8,
        /// Whether the last traced instruction was cancelled.
        cancel: bool,
    },
}

/// Exception information bytes 0 to 2, with missing fields as table 7.5 defines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExceptionInformation {
    /// Excp: 0 if there was no exception.
    pub code: u16,
    /// Can: whether the last traced instruction was cancelled.
    pub cancel: bool,
    /// AltISA.
    pub alternative_isa: bool,
    /// NS and Hyp.
    pub security: SecurityBits,
    /// Resume, 0 to 15.
    pub resume: u8,
}

impl BranchException {
    /// Whether the last traced instruction was cancelled.
    #[must_use]
    pub const fn cancel(&self) -> bool {
        match self {
            Self::Information(information) => information.cancel,
            Self::Deprecated { cancel, .. } => *cancel,
        }
    }

    /// The exception, in the numbering of the processor's profile; `None` if the packet reports none.
    ///
    /// `handler` is the branch's target: five exceptions share a deprecated code and differ only in the
    /// vector.
    #[must_use]
    pub fn exception(&self, profile: Profile, handler: Option<Address>) -> Option<Exception> {
        match (self, profile) {
            (Self::Information(ExceptionInformation { code: 0, .. }), _) => None,
            (Self::Information(information), Profile::M) => {
                Some(Exception::M(m_profile_number(information.code)))
            }
            // Excp[8:4] is zero on every other profile.
            (Self::Information(information), Profile::Ar) => {
                Some(Exception::Ar(u8::try_from(information.code & 0b1111).unwrap_or_default()))
            }
            (Self::Deprecated { code, cancel }, _) => {
                Some(Exception::Ar(deprecated_code(*code, *cancel, handler)))
            }
        }
    }
}

/// Table 7.11: Excp[8:0] of ARMv7-M, as the architecture's exception number. Interrupts 0 to 7 and the frequent system exceptions
/// have codes of four bits. Reserved codes are kept.
const fn m_profile_number(code: u16) -> u16 {
    match code {
        0x01..=0x07 => 16 + code, // IRQ1 to IRQ7
        0x08 => 16,               // IRQ0
        0x09 => 6,                // UsageFault
        0x0a => 2,                // NMI
        0x0b => 11,               // SVCall
        0x0c => 12,               // DebugMonitor
        0x0d => 4,                // MemManage
        0x0e => 14,               // PendSV
        0x0f => 15,               // SysTick
        0x11 => 1,                // Reset
        0x13 => 3,                // HardFault
        0x15 => 5,                // BusFault
        _ => code,                // from 0x18 on: IRQ8 and above, by their own exception number
    }
}

/// The inverse of [`m_profile_number`]: Excp[8:0] for an exception number; `None` if there is no code for it.
#[must_use]
pub(super) const fn m_profile_code(number: u16) -> Option<u16> {
    Some(match number {
        17..=23 => number - 16,
        16 => 0x08,
        6 => 0x09,
        2 => 0x0a,
        11 => 0x0b,
        12 => 0x0c,
        4 => 0x0d,
        14 => 0x0e,
        15 => 0x0f,
        1 => 0x11,
        3 => 0x13,
        5 => 0x15,
        24..=0x1ff => number,
        _ => return None,
    })
}

/// Table 7.7: the deprecated code EEE as the code of table 7.12. Code 0 stands for five exceptions, which the
/// offset in the vector table distinguishes; an address that is no vector is a generic exception (13).
fn deprecated_code(code: u8, cancel: bool, handler: Option<Address>) -> u8 {
    match (code, handler.map(|handler| handler.get() & 0x1f)) {
        (0, Some(0x04)) => 9,
        (0, Some(0x08)) => 10,
        (0, Some(0x0c)) => 11,
        (0, Some(0x10)) => 12,
        (0, Some(0x00)) => 8,
        // A data abort always cancels; no other exception with this code always does.
        (0, _) if cancel => 12,
        (1, _) => 14,
        (4, _) => 5,
        (5, _) => 15,
        (6, _) => 4,
        (7, _) => 1,
        _ => 13,
    }
}

impl ExceptionInformation {
    /// Information for an exception, by the architecture's number; `None` if ETMv3 has no code for it.
    #[must_use]
    pub fn for_exception(exception: Exception, cancel: bool) -> Option<Self> {
        let code = match exception {
            Exception::M(number) => m_profile_code(number)?,
            Exception::Ar(code @ 1..=15) => u16::from(code),
            Exception::Ar(_) | Exception::ArType(_) | Exception::MType(_) => return None,
        };
        Some(Self { code, cancel, ..Self::default() })
    }
}
