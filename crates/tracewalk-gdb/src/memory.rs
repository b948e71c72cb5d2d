//! Known memory at a place.
//!
//! ```text
//! the halted processor's memory    if it was halted here and a debugger saved it
//! the program's bytes              if the image states that the program cannot write there
//! data trace                       the last load or store before the place (`transfers`)
//! values                           what the path proves, for what runs at the place
//! the artificial stack             slots that GDB needs to find callers, unless the processor's own registers are known
//! ```

use tracewalk::ids::Address;

use crate::core::{Core, Who};

/// The most bytes that are read at once.
const MOST: u64 = 1 << 12;

/// The bytes from `start` on, up to the first unknown one.
pub(crate) fn read(core: &mut Core<'_>, who: Who, start: u64, length: u64) -> Vec<u8> {
    let addresses = (0..length.min(MOST)).map_while(|offset| start.checked_add(offset));
    addresses.map_while(|at| byte(core, who, at)).collect()
}

fn byte(core: &mut Core<'_>, who: Who, at: u64) -> Option<u8> {
    let known = core.halted_byte(at).or_else(|| core.constant(Address::new(at), who));
    let known = known.or_else(|| core.traced(at, who));
    let known = known.or_else(|| core.proven(at, who));
    known.or_else(|| core.state_of(who)?.machine.memory.get(&at).copied())
}
