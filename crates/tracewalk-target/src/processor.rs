//! The debug registers of M profile (DDI 0403E, C1.6; DDI 0553B, D1.2).

use crate::plan::{Register, Step};

/// The system control space.
pub(crate) const BASE: u32 = 0xe000_e000;

const fn register(name: &'static str, offset: u32) -> Register {
    Register { unit: "processor", base: BASE, name, offset }
}

pub(crate) const CPUID: u32 = BASE + 0xd00;
pub(crate) const DHCSR: u32 = BASE + 0xdf0;
/// C_DEBUGEN or S_REGRDY: one of them is set wherever a debugger is.
const DHCSR_KNOWN: u32 = 1 | 1 << 16;
const DHCSR_HALTED: u32 = 1 << 17;

/// Whether the value of DHCSR says that the processor runs. A server that does not know the register gives 0.
pub(crate) const fn runs(status: u32) -> bool {
    status & DHCSR_KNOWN != 0 && status & DHCSR_HALTED == 0
}

const DEMCR: Register = register("DEMCR", 0xdfc);
const DEMCR_TRCENA: u32 = 1 << 24;

/// Trace units answer only while tracing is enabled as a whole.
pub(crate) const ENABLE: Step = Step::Change { at: DEMCR, clear: 0, set: DEMCR_TRCENA, key: 0 };
/// The last step of all.
pub(crate) const RESTORE: Step = Step::Restore(DEMCR);

/// The processor's name, by its CPUID (the technical reference manuals).
pub(crate) const fn name(cpuid: u32) -> Option<&'static str> {
    Some(match cpuid >> 4 & 0xfff {
        0xc20 => "cortex-m0",
        0xc60 => "cortex-m0plus",
        0xc21 => "cortex-m1",
        0xc23 => "cortex-m3",
        0xc24 => "cortex-m4",
        0xc27 => "cortex-m7",
        0xd20 => "cortex-m23",
        0xd21 => "cortex-m33",
        0xd22 => "cortex-m55",
        0xd23 => "cortex-m85",
        0xd24 => "cortex-m52",
        0xd31 => "cortex-m35p",
        _ => return None,
    })
}
