//! Exceptions by number, and their handlers by the vector table.

use tracewalk::ids::{Address, Exception, Isa, Location};
use tracewalk::isa::{self, Class};
use tracewalk::program::Vectors;

use super::state::{self, Snapshot};
use super::trail::Taken;
use crate::Code;

/// Reset, NMI and the faults (DDI 0403E, table B1-4).
pub(super) const RESET: Exception = Exception::M(1);
const NMI: Exception = Exception::M(2);

/// HardFault to SecureFault.
pub(super) fn is_fault(exception: Exception) -> bool {
    matches!(exception, Exception::M(3..=7))
}

/// The address of a vector, and the handler in it.
pub(super) fn vector(code: &Code, snapshot: &Snapshot, number: u16) -> Option<(Address, Address)> {
    let moved = || snapshot.word(state::VTOR).map(Address::from);
    let table = code.program.vector_table().or_else(moved)?;
    let at = table.checked_add(4 * u64::from(number))?;
    Some((at, Address::from(code.program.word(at)? & !1)))
}

/// The exceptions whose vectors lead to a handler.
pub(super) fn sharing(code: &Code, snapshot: &Snapshot, handler: Address) -> Vec<u16> {
    /// ARMv8-M has the most vectors.
    const MOST_VECTORS: u16 = 496;
    let mut first_code = u64::MAX;
    let mut found = Vec::new();
    for number in 1..MOST_VECTORS {
        let Some((at, to)) = vector(code, snapshot, number) else { break };
        // The table ends where code begins.
        if at.get() >= first_code {
            break;
        }
        if to > at {
            first_code = first_code.min(to.get());
        }
        if to == handler {
            found.push(number);
        }
    }
    found
}

/// The bytes of a handler's first instruction, if that branches to itself.
pub(super) fn endless_loop(handler: Address, code: &Code) -> Option<Vec<u8>> {
    let bytes = code.program.code(handler)?;
    let first = isa::classify(bytes, handler, Isa::T32).ok()?;
    let itself = Class::Direct(Location::new(handler, Isa::T32));
    let bytes = bytes.get(..usize::from(first.bytes))?.to_vec();
    (first.class == itself && !first.conditional).then_some(bytes)
}

/// Whether an exception was taken by an endless loop that several vectors share.
pub(super) fn is_unhandled(taken: &Taken, code: &Code, snapshot: &Snapshot) -> bool {
    let handler = taken.handler.filter(|handler| endless_loop(*handler, code).is_some());
    handler.is_some_and(|handler| sharing(code, snapshot, handler).len() > 1)
}

/// Whether an exception is a watchdog's, by the names of the interrupt and of its handler.
pub(super) fn is_watchdog(taken: &Taken, code: &Code) -> bool {
    const NAMES: [&str; 4] = ["watchdog", "wdt", "wdog", "wwdg"];
    let Some(handler) = taken.handler else { return false };
    let may_be = taken.exception.is_some_and(|exception| exception == NMI || exception.number() >= 16);
    let name = code.symbols.function(handler).filter(|function| function.start == handler);
    let named = |name: &str| {
        let name = name.to_ascii_lowercase();
        NAMES.iter().any(|known| name.contains(known))
    };
    may_be
        && name.is_some_and(|function| named(function.name))
        && !matches!(code.program.vectors_to(handler), Vectors::Several)
}
