//! Each unit's part of a plan: how it is unlocked, set up, switched off and read.

pub(crate) mod etb;
pub(crate) mod etmv3;
pub(crate) mod etmv4;
pub(crate) mod etr;
pub(crate) mod funnel;
pub(crate) mod itm;
pub(crate) mod mtb;
pub(crate) mod tmc;
pub(crate) mod tpiu;

use crate::plan::{LOCK, Register, Step};
use crate::problem::Fault;

/// The key of the software lock (IHI 0029E, B2.3.10).
const KEY: u32 = 0xc5ac_ce55;

/// Opens the software lock of a unit, if it has one.
fn unlock(unit: &'static str, base: u32) -> [Step; 2] {
    let register = |name, offset| Register { unit, base, name, offset };
    [
        Step::Write(register(LOCK, 0xfb0), KEY),
        Step::Expect { at: register("LSR", 0xfb4), mask: 0x2, value: 0, or: Fault::Locked },
    ]
}

/// Refuses a source that is not allowed to trace: non-secure non-invasive debug is implemented and off.
fn allowed(unit: &'static str, base: u32) -> Step {
    let at = Register { unit, base, name: "AUTHSTATUS", offset: 0xfb8 };
    Step::Forbid { at, mask: 0xc, value: 0x8, or: Fault::NotAllowed }
}

/// Refuses a buffer that a debugger, or the program itself, has claimed (IHI 0029E, B2.3.4).
fn unclaimed(unit: &'static str, base: u32) -> Step {
    let at = Register { unit, base, name: "CLAIMCLR", offset: 0xfa4 };
    Step::Expect { at, mask: 0x3, value: 0, or: Fault::Claimed }
}
