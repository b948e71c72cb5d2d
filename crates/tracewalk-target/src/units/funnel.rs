//! The funnel (DDI 0314H, 7; DDI 0480G, 3.5). No table says which port a source feeds: all are opened, because nothing else traces.

use super::unlock;
use crate::plan::{Register, Step};

const UNIT: &str = "funnel";

const fn control(base: u32) -> Register {
    Register { unit: UNIT, base, name: "CTRL", offset: 0 }
}

pub(crate) fn setup(base: u32) -> Vec<Step> {
    let mut steps = unlock(UNIT, base).to_vec();
    steps.push(Step::Change { at: control(base), clear: 0, set: 0xff, key: 0 });
    steps
}

pub(crate) const fn restore(base: u32) -> Step {
    Step::Restore(control(base))
}
