//! The Trace Port Interface Unit of M profile (DDI 0314H, 8; DDI 0403E, C1.10): the trace leaves through pins.

use super::etb::{flush, register};
use super::unlock;
use crate::plan::{Register, Step};

const UNIT: &str = "TPIU";
/// Frames without a pause, with a mark for triggers.
const FORMATS: u32 = 0x102;

pub(crate) fn setup(base: u32, width: u32) -> Vec<Step> {
    let at = |name, offset| register(UNIT, base, name, offset);
    let mut steps = unlock(UNIT, base).to_vec();
    steps.extend([
        Step::Set { at: at("CSPSR", 0x04), value: 1 << (width - 1), mask: u32::MAX },
        // Pins in parallel, and none for SWO.
        Step::Write(at("SPPR", 0xf0), 0),
        Step::Write(at("FFCR", 0x304), FORMATS),
    ]);
    steps
}

/// What the units still hold leaves through the pins.
pub(crate) fn stop(base: u32) -> Vec<Step> {
    let settled: Register = register(UNIT, base, "FFSR", 0x300);
    let mut steps = flush(UNIT, base, FORMATS).to_vec();
    steps.push(Step::Poll { at: settled, mask: 1, value: 0 });
    steps
}
