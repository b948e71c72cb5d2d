//! The Trace Memory Controller with a memory of its own (DDI 0461B).

use super::etb::{MOST_WORDS, capture, flush, format, register};
use super::{unclaimed, unlock};
use crate::client::Client;
use crate::connection::Connection;
use crate::plan::{Register, Step};
use crate::problem::Problem;

pub(super) const UNIT: &str = "TMC";
/// The formatter, and triggers.
pub(super) const FORMATS: u32 = 3;
/// What RRD gives when nothing is left.
const NOTHING: u32 = u32::MAX;

pub(super) const fn ready(base: u32) -> Step {
    Step::Poll { at: register(UNIT, base, "STS", 0x0c), mask: 4, value: 4 }
}

/// The registers that stopping changes. The pointers are the unit's own.
pub(crate) fn kept(base: u32) -> Vec<Register> {
    [("FFCR", 0x304), ("CTL", 0x20)].map(|(name, offset)| register(UNIT, base, name, offset)).into()
}

pub(crate) fn setup(base: u32) -> Vec<Step> {
    let at = |name, offset| register(UNIT, base, name, offset);
    let mut steps = unlock(UNIT, base).to_vec();
    steps.extend([
        unclaimed(UNIT, base),
        capture(UNIT, base, false),
        ready(base),
        // A circular buffer: an ETF would pass trace on otherwise.
        Step::Set { at: at("MODE", 0x28), value: 0, mask: 3 },
        format(UNIT, base, FORMATS),
        // The unit manages its pointers.
        Step::Write(at("TRG", 0x1c), 0),
        Step::Set { at: at("CTL", 0x20), value: 1, mask: 1 },
    ]);
    steps
}

/// The trace is read while the unit is stopped, before it is disabled.
pub(crate) fn stop(base: u32) -> Vec<Step> {
    let mut steps = flush(UNIT, base, FORMATS).to_vec();
    steps.push(ready(base));
    steps
}

pub(crate) const fn restore(base: u32) -> Step {
    capture(UNIT, base, false)
}

/// The buffer's bytes, the oldest first. Words come in groups of the memory's width, and the first of a group may end them.
pub(crate) fn read<C: Connection>(client: &mut Client<C>, base: u32) -> Result<Vec<u8>, Problem> {
    let group = match client.read_word(base + 0xfc8)? >> 8 & 7 {
        width @ 2..=5 => 1_u32 << (width - 2),
        _ => 1,
    };
    // A unit that was not stopped gives words without an end.
    let words = client.read_word(base + 0x04)?.min(MOST_WORDS);
    let mut bytes = Vec::new();
    for word in 0..words {
        match client.read_word(base + 0x10)? {
            NOTHING if word % group == 0 => break,
            value => bytes.extend(value.to_le_bytes()),
        }
    }
    Ok(bytes)
}
