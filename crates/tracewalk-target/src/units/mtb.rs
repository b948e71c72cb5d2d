//! The Micro Trace Buffer (DDI 0486B).

use crate::plan::{Register, Step};

const UNIT: &str = "MTB";
const ENABLED: u32 = 1 << 31;
pub(crate) const WRAPPED: u32 = 1 << 2;
/// MTB_FLOW.AUTOHALT.
const HALTS: u32 = 1 << 1;

const fn register(base: u32, name: &'static str, offset: u32) -> Register {
    Register { unit: UNIT, base, name, offset }
}

pub(crate) const fn position(base: u32) -> Register {
    register(base, "MTB_POSITION", 0x0)
}

pub(crate) const fn master(base: u32) -> Register {
    register(base, "MTB_MASTER", 0x4)
}

pub(crate) const fn ram(base: u32) -> Register {
    register(base, "MTB_BASE", 0xc)
}

/// Switches the MTB off, so that its position can be written.
const fn off(base: u32) -> Step {
    Step::Change { at: master(base), clear: ENABLED, set: 0, key: 0 }
}

/// The part of a buffer after which the processor halts: some packets are still written until it does.
pub(crate) const fn watermark(bytes: u32) -> u32 {
    const ROOM: u32 = 64;
    if bytes < 4 * ROOM { bytes / 2 } else { bytes - ROOM }
}

/// Writes packets to 2^n bytes from an address on, around and around; with `halts`, the processor halts when they are full.
pub(crate) fn setup(base: u32, (address, bytes): (u32, u32), halts: bool) -> Vec<Step> {
    // MASK: the buffer has 2^(MASK + 4) bytes.
    let mask = bytes.trailing_zeros().saturating_sub(4);
    let flow = if halts { address.wrapping_add(watermark(bytes)) | HALTS } else { 0 };
    vec![
        off(base),
        // Only as many low bits are kept as the unit's memory needs, also of the watermark.
        Step::Set { at: register(base, "MTB_FLOW", 0x8), value: flow, mask: (bytes - 1) & !7 | 3 },
        Step::Set { at: position(base), value: address & !7, mask: (bytes - 1) & !7 | WRAPPED },
        Step::Set { at: master(base), value: ENABLED | mask, mask: ENABLED | 0x1f },
    ]
}

/// Keeps the registers first: what runs after this must not be traced.
pub(crate) fn stop(base: u32) -> Vec<Step> {
    let flow = Step::Write(register(base, "MTB_FLOW", 0x8), 0);
    vec![Step::Note(position(base)), Step::Note(master(base)), off(base), flow]
}
