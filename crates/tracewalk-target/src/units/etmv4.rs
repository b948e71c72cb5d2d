//! The ETM of architecture 4 (IHI 0064H, 4.4).

use super::{allowed, unlock};
use crate::plan::{Register, Step};
use crate::problem::Fault;

const UNIT: &str = "ETM";
/// The event that always holds, and the start/stop logic started.
const ALWAYS: u32 = 0x201;
/// A synchronisation every 2^10 bytes.
const SYNCHRONISES: u32 = 0xa;
/// The registers that decoding needs.
const DECODING: [(&str, u32); 8] = [
    ("TRCCONFIGR", 0x010),
    ("TRCIDR0", 0x1e0),
    ("TRCIDR1", 0x1e4),
    ("TRCIDR2", 0x1e8),
    ("TRCIDR8", 0x180),
    ("TRCIDR12", 0x190),
    ("TRCIDR13", 0x194),
    ("TRCDEVARCH", 0xfbc),
];

const fn register(base: u32, name: &'static str, offset: u32) -> Register {
    Register { unit: UNIT, base, name, offset }
}

/// Until TRCSTATR shows that the unit is idle, or traces.
const fn settled(base: u32, idle: bool) -> Step {
    Step::Poll { at: register(base, "TRCSTATR", 0x00c), mask: 1, value: idle as u32 }
}

const fn enable(base: u32, on: bool) -> Step {
    Step::Write(register(base, "TRCPRGCTLR", 0x004), on as u32)
}

/// The registers that decoding needs.
pub(crate) fn registers(base: u32) -> Vec<Register> {
    DECODING.map(|(name, offset)| register(base, name, offset)).into()
}

pub(crate) const fn id(base: u32) -> Register {
    register(base, "TRCTRACEIDR", 0x040)
}

/// Traces every instruction, under this trace ID.
pub(crate) fn setup(base: u32, trace_id: u8) -> Vec<Step> {
    let at = |name, offset| register(base, name, offset);
    let os_lock = Step::Expect { at: at("TRCOSLSR", 0x304), mask: 2, value: 0, or: Fault::OsLocked };
    let mut steps = unlock(UNIT, base).to_vec();
    steps.extend([
        Step::Write(at("TRCOSLAR", 0x300), 0),
        os_lock,
        Step::Write(at("TRCPDCR", 0x310), 1 << 3),
        Step::Forbid { at: at("TRCIDR1", 0x1e4), mask: u32::MAX, value: 0, or: Fault::Off },
        allowed(UNIT, base),
        enable(base, false),
        settled(base, true),
        Step::Write(at("TRCCONFIGR", 0x010), 1),
        Step::Write(at("TRCEVENTCTL0R", 0x020), 0),
        Step::Write(at("TRCEVENTCTL1R", 0x024), 0),
        Step::Write(at("TRCSTALLCTLR", 0x02c), 0),
        Step::Write(at("TRCTSCTLR", 0x030), 0),
        Step::Write(at("TRCSYNCPR", 0x034), SYNCHRONISES),
        Step::Set { at: id(base), value: trace_id.into(), mask: 0x7f },
        // The bits that exclude exception levels are unknown after a reset.
        Step::Set { at: at("TRCVICTLR", 0x080), value: ALWAYS, mask: 0x00ff_02ff },
        Step::Write(at("TRCVIIECTLR", 0x084), 0),
        Step::Write(at("TRCVISSCTLR", 0x088), 0),
    ]);
    steps.extend(registers(base).into_iter().map(Step::Note));
    steps.extend([enable(base, true), settled(base, false)]);
    steps
}

/// Disabling drains the FIFO.
pub(crate) fn stop(base: u32) -> Vec<Step> {
    vec![enable(base, false), settled(base, true)]
}
