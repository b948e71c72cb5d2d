//! The Trace Memory Controller that writes to the system's memory (DDI 0461B, 3.3). Its stop is that of a TMC with a memory of its own.

use super::etb::{capture, format, register};
use super::tmc::{FORMATS, UNIT, ready};
use super::{unclaimed, unlock};
use crate::client::Client;
use crate::connection::Connection;
use crate::plan::Step;
use crate::problem::Problem;

/// Bursts of 16, as a privileged access, without a list of pages.
const BURSTS: u32 = 0xf02;

pub(crate) fn setup(base: u32, (address, bytes): (u32, u32)) -> Vec<Step> {
    let at = |name, offset| register(UNIT, base, name, offset);
    let mut steps = unlock(UNIT, base).to_vec();
    steps.extend([
        unclaimed(UNIT, base),
        capture(UNIT, base, false),
        ready(base),
        Step::Set { at: at("RSZ", 0x04), value: bytes / 4, mask: u32::MAX },
        Step::Set { at: at("MODE", 0x28), value: 0, mask: 3 },
        Step::Write(at("AXICTL", 0x110), BURSTS),
        Step::Set { at: at("DBALO", 0x118), value: address, mask: u32::MAX },
        Step::Write(at("DBAHI", 0x11c), 0),
        Step::Write(at("RRP", 0x14), address),
        Step::Write(at("RWP", 0x18), address),
        format(UNIT, base, FORMATS),
        Step::Write(at("TRG", 0x1c), 0),
        Step::Set { at: at("CTL", 0x20), value: 1, mask: 1 },
    ]);
    steps
}

/// The memory's bytes, the oldest first, while the unit is stopped.
pub(crate) fn read<C: Connection>(
    client: &mut Client<C>,
    base: u32,
    (address, bytes): (u32, u32),
) -> Result<Vec<u8>, Problem> {
    let is_full = client.read_word(base + 0x0c)? & 1 != 0;
    let written = client.read_word(base + 0x18)?.wrapping_sub(address).min(bytes);
    match is_full {
        false => client.read(address, written),
        true => {
            let mut found = client.read(address, bytes)?;
            found.rotate_left(written as usize % bytes as usize);
            Ok(found)
        }
    }
}
