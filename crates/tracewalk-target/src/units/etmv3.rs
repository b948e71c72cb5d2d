//! The ETM of architecture 3.5 (IHI 0014Q, 3.5), as in Cortex-M3 and M4.

use super::{allowed, unlock};
use crate::plan::{Register, Step};
use crate::problem::Fault;

const UNIT: &str = "ETM";
/// Enabled, stalling the processor before trace is lost, with a port of 8 bits.
const RUNS: u32 = 1 << 11 | 1 << 7 | 1 << 4;
const PROGRAMMING: u32 = 1 << 10;
const ALWAYS: u32 = 0x6f;
const NEVER: u32 = 0x406f;
const EXCLUDES_NOTHING: u32 = 1 << 24;

const fn register(base: u32, name: &'static str, offset: u32) -> Register {
    Register { unit: UNIT, base, name, offset }
}

const fn control(base: u32) -> Register {
    register(base, "ETMCR", 0x0)
}

/// Until ETMSR shows that programming has begun or ended.
const fn settled(base: u32, programming: bool) -> Step {
    Step::Poll { at: register(base, "ETMSR", 0x10), mask: 2, value: (programming as u32) << 1 }
}

/// The registers that decoding needs.
pub(crate) fn registers(base: u32) -> Vec<Register> {
    vec![control(base), register(base, "ETMIDR", 0x1e4), register(base, "ETMCCER", 0x1e8)]
}

pub(crate) const fn id(base: u32) -> Register {
    register(base, "ETMTRACEIDR", 0x200)
}

/// Traces every instruction, under this trace ID.
pub(crate) fn setup(base: u32, trace_id: u8) -> Vec<Step> {
    let identity = register(base, "ETMIDR", 0x1e4);
    let mut steps = unlock(UNIT, base).to_vec();
    steps.extend([
        Step::Forbid { at: identity, mask: u32::MAX, value: 0, or: Fault::Off },
        allowed(UNIT, base),
        Step::Write(control(base), RUNS | PROGRAMMING),
        settled(base, true),
        Step::Set { at: register(base, "ETMTEEVR", 0x20), value: ALWAYS, mask: 0x1ffff },
        Step::Set { at: register(base, "ETMTECR1", 0x24), value: EXCLUDES_NOTHING, mask: 0x03ff_ffff },
        Step::Write(register(base, "ETMTRIGGER", 0x08), NEVER),
        Step::Set { at: id(base), value: trace_id.into(), mask: 0x7f },
        Step::Note(identity),
        Step::Note(register(base, "ETMCCER", 0x1e8)),
        Step::Set { at: control(base), value: RUNS, mask: PROGRAMMING | 1 },
        settled(base, false),
        Step::Note(control(base)),
    ]);
    steps
}

/// Programming drains the FIFO.
pub(crate) fn stop(base: u32) -> Vec<Step> {
    vec![Step::Write(control(base), RUNS | PROGRAMMING), settled(base, true)]
}
