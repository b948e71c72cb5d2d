//! The Data Watchpoint and Trace unit and the Instrumentation Trace Macrocell (DDI 0403E, C1.7 and C1.8): exceptions with their times.

use super::unlock;
use crate::plan::{Register, Step};
use crate::problem::Fault;

/// ITM and DWT, by their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Itm {
    pub(crate) itm: u32,
    pub(crate) dwt: u32,
}

/// Exceptions, and the cycle counter that times and synchronisation need.
const EXCEPTIONS: u32 = 1 << 16;
const COUNTS: u32 = 1;
const SYNCHRONISES: u32 = 1 << 10;
/// The unit has no trace at all.
const NOTRCPKT: u32 = 1 << 27;
/// The bits that choose other packets: samples, and counters that overflow.
const OTHERS: u32 = 0x007e_1000;
/// The unit, its times, its synchronisation packets, and the DWT's packets.
const RUNS: u32 = 0xf;
const BUSY: u32 = 1 << 23;

impl Itm {
    fn control(self) -> Register {
        Register { unit: "ITM", base: self.itm, name: "ITM_TCR", offset: 0xe80 }
    }

    fn counters(self) -> Register {
        Register { unit: "DWT", base: self.dwt, name: "DWT_CTRL", offset: 0 }
    }

    /// The program's own messages stay as they are.
    pub(crate) fn setup(self, trace_id: u8) -> Vec<Step> {
        let (control, counters) = (self.control(), self.counters());
        let mut steps = unlock("ITM", self.itm).to_vec();
        steps.extend(unlock("DWT", self.dwt));
        steps.extend([
            Step::Forbid { at: counters, mask: NOTRCPKT, value: NOTRCPKT, or: Fault::NoTrace },
            Step::Keep(control),
            Step::Write(control, 0),
            Step::Poll { at: control, mask: BUSY, value: 0 },
            Step::Change { at: counters, clear: OTHERS, set: EXCEPTIONS | SYNCHRONISES | COUNTS, key: 0 },
            Step::Expect { at: counters, mask: EXCEPTIONS, value: EXCEPTIONS, or: Fault::NoTrace },
            Step::Set { at: control, value: RUNS | u32::from(trace_id) << 16, mask: 0x007f_000f },
        ]);
        steps
    }

    pub(crate) fn stop(self) -> Vec<Step> {
        let control = self.control();
        vec![Step::Write(control, 0), Step::Poll { at: control, mask: BUSY, value: 0 }]
    }

    pub(crate) fn restore(self) -> Vec<Step> {
        vec![Step::Restore(self.counters()), Step::Restore(self.control())]
    }
}
