//! The Embedded Trace Buffer (DDI 0314H, 9; DDI 0480G, 3.11). Its pointers count words.

use super::{unclaimed, unlock};
use crate::client::Client;
use crate::connection::Connection;
use crate::plan::{Register, Step};
use crate::problem::Problem;

const UNIT: &str = "ETB";
pub(super) const STOPS_AT_FLUSH: u32 = 1 << 12;
pub(super) const FLUSHES: u32 = 1 << 6;

/// Registers that a TMC has, too.
pub(super) const fn register(unit: &'static str, base: u32, name: &'static str, offset: u32) -> Register {
    Register { unit, base, name, offset }
}

pub(super) const fn capture(unit: &'static str, base: u32, on: bool) -> Step {
    Step::Write(register(unit, base, "CTL", 0x20), on as u32)
}

pub(super) const fn format(unit: &'static str, base: u32, value: u32) -> Step {
    Step::Write(register(unit, base, "FFCR", 0x304), value)
}

/// What the units still hold goes into the buffer, and capturing stops.
pub(super) fn flush(unit: &'static str, base: u32, formatting: u32) -> [Step; 3] {
    let control = register(unit, base, "FFCR", 0x304);
    [
        format(unit, base, formatting | STOPS_AT_FLUSH),
        format(unit, base, formatting | STOPS_AT_FLUSH | FLUSHES),
        Step::Poll { at: control, mask: FLUSHES, value: 0 },
    ]
}

pub(crate) const fn control(base: u32) -> Register {
    register(UNIT, base, "CTL", 0x20)
}

/// The registers that stopping and reading change, those first that have to be restored first.
pub(crate) fn kept(base: u32) -> Vec<Register> {
    [("RRP", 0x14), ("FFCR", 0x304), ("CTL", 0x20)]
        .map(|(name, offset)| register(UNIT, base, name, offset))
        .into()
}

pub(crate) fn setup(base: u32) -> Vec<Step> {
    let at = |name, offset| register(UNIT, base, name, offset);
    let mut steps = unlock(UNIT, base).to_vec();
    steps.extend([
        unclaimed(UNIT, base),
        capture(UNIT, base, false),
        format(UNIT, base, 1),
        Step::Write(at("RRP", 0x14), 0),
        // It keeps its value over a reset, and old words would be taken for trace.
        Step::Set { at: at("RWP", 0x18), value: 0, mask: u32::MAX },
        Step::Write(at("TRG", 0x1c), 0),
        Step::Set { at: at("CTL", 0x20), value: 1, mask: 1 },
    ]);
    steps
}

pub(crate) fn stop(base: u32) -> Vec<Step> {
    let mut steps = flush(UNIT, base, 1).to_vec();
    steps.extend([
        capture(UNIT, base, false),
        Step::Poll { at: register(UNIT, base, "FFSR", 0x300), mask: 2, value: 2 },
    ]);
    steps
}

/// The buffer's bytes, the oldest first.
pub(crate) fn read<C: Connection>(client: &mut Client<C>, base: u32) -> Result<Vec<u8>, Problem> {
    let depth = client.read_word(base + 0x04)?;
    let has_wrapped = client.read_word(base + 0x0c)? & 1 != 0;
    let write = client.read_word(base + 0x18)?;
    let (first, words) = if has_wrapped { (write, depth) } else { (0, write) };
    client.write_word(base + 0x14, first)?;
    let mut bytes = Vec::new();
    for _ in 0..words.min(MOST_WORDS) {
        bytes.extend(client.read_word(base + 0x10)?.to_le_bytes());
    }
    Ok(bytes)
}

/// The most words that a unit's memory has.
pub(super) const MOST_WORDS: u32 = 1 << 22;
