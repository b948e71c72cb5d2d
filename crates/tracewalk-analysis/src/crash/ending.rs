//! The exception that ended a program: which one it is, its number, where it was taken, and the frame that it stacked.

use tracewalk::ids::{Address, Exception};

use super::handlers::{self, RESET, is_fault};
use super::state::{Snapshot, StackedFrame};
use super::trail::{Happened, Taken};
use crate::Code;

/// The index of the exception that ended the program: the innermost fault that is still being handled at the end, else a reset,
/// else an exception without a handler of its own or a watchdog's.
pub(super) fn ending(pieces: &[&Happened], code: &Code, snapshot: &Snapshot) -> Option<usize> {
    let mut active = Vec::new();
    let mut reset = None;
    for (index, piece) in pieces.iter().enumerate() {
        match piece {
            Happened::Taken(taken) if taken.exception == Some(RESET) => {
                reset = Some(index);
                active.clear();
            }
            Happened::Taken(_) => active.push(index),
            Happened::Returned => {
                active.pop();
            }
            Happened::Lost(_) => (active, reset) = (Vec::new(), None),
            Happened::Ran(_) | Happened::NoCode(_) => {}
        }
    }
    let taken = |index: &usize| match pieces.get(*index) {
        Some(Happened::Taken(taken)) => Some(taken),
        _ => None,
    };
    let is = |wanted: &dyn Fn(&Taken) -> bool| {
        active.iter().rev().find(|index| taken(index).is_some_and(wanted)).copied()
    };
    is(&|taken| number(taken, code, snapshot).0.is_some_and(is_fault))
        .or(reset)
        .or_else(|| is(&|taken| handlers::is_unhandled(taken, code, snapshot)))
        .or_else(|| is(&|taken| handlers::is_watchdog(taken, code)))
}

/// The number of an exception, and whether only the registers give it.
pub(super) fn number(taken: &Taken, code: &Code, snapshot: &Snapshot) -> (Option<Exception>, bool) {
    if taken.exception.is_some() {
        return (taken.exception, false);
    }
    let function = |at: Address| code.symbols.function(at).map(|function| function.start);
    let halted = snapshot.registers[15].and_then(|at| function(Address::from(at & !1)));
    // The vectors may be elsewhere than the image and the registers say.
    let is_in_handler = halted.is_some() && halted == taken.handler.and_then(function);
    let found = snapshot.exception_number().filter(|number| {
        let vector = handlers::vector(code, snapshot, *number).map(|(_, handler)| handler);
        is_in_handler || vector.is_some() && vector == taken.handler
    });
    (found.map(Exception::M), found.is_some())
}

/// The address at which an exception was taken. If the trace does not state it, it may be the address without code that execution
/// reached: the stacked frame has to confirm it. Without a program, every address is one without code.
pub(super) fn returns_to(taken: &Taken, before: &[&Happened], code: &Code) -> Option<Address> {
    match (taken.returns_to, before.last()) {
        (None, Some(Happened::NoCode(at))) if !code.program.is_empty() => Some(*at),
        (stated, _) => stated,
    }
}

/// The frame that the exception stacked, if its program counter is the place at which the exception was taken.
pub(super) fn frame(taken: &Taken, snapshot: &Snapshot) -> Option<StackedFrame> {
    stacked(taken, snapshot).filter(|frame| taken.returns_to == Some(frame.returns_to()))
}

/// The frame that the exception stacked, by the registers alone. Found by EXC_RETURN, if the handler has not moved the stack
/// pointer yet.
pub(super) fn stacked(taken: &Taken, snapshot: &Snapshot) -> Option<StackedFrame> {
    const PROCESS_STACK: u32 = 1 << 2;
    let [.., stack_pointer, link, at] = snapshot.registers;
    if taken.exception == Some(RESET) || taken.handler.is_none() || taken.handler != at.map(Address::from) {
        return None;
    }
    let link = link.filter(|link| *link >= 0xffff_ff00)?;
    let address = if link & PROCESS_STACK == 0 { stack_pointer } else { snapshot.stack_pointers[1] }?;
    let mut words = [0; 8];
    for (word, offset) in words.iter_mut().zip((0..).step_by(4)) {
        *word = snapshot.word(address.checked_add(offset)?)?;
    }
    Some(StackedFrame { address: Address::from(address), words })
}
