//! Places: where a debugger can stop in a source's flow.
//!
//! A place is a moment before an execution: of an instruction, of code that no image holds, or where the processor
//! tried to execute such code and took an exception instead. A cursor's other steps (timestamps, contexts, interrupts
//! that were taken) are passed.

use std::collections::BTreeSet;

use tracewalk::flow::{Block, Element, Event, EventKind, Gap, GapReason};
use tracewalk::ids::{Address, Isa, Location};
use tracewalk_analysis::drive::{Cursor, Here};
use tracewalk_analysis::{Code, Position};

/// The direction of a step or a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// At one of the addresses.
    Found,
    /// Backwards, at a handler inside a function that begins at one of the addresses. GDB puts a breakpoint at the
    /// beginning to return to the caller, but an exception entered the function at the handler.
    Entered,
    /// At the recording's first or last place.
    End,
    /// Not yet at an end: call the search again.
    Unfinished,
}

/// The most elements that a search examines before it can be interrupted.
const SLICE: u32 = 1 << 12;

/// The location of the place that a cursor is on; `None` if nothing executes there.
pub(crate) fn location(here: &Here<'_>, code: &Code) -> Option<Location> {
    match here.element {
        Element::Block(_) => here.instruction.map(|instruction| instruction.location),
        Element::Gap(Gap { reason: GapReason::NoCode(at) | GapReason::Undecodable(at, _), .. }) => Some(*at),
        Element::Event(Event { kind: EventKind::Exception { preferred_return: Some(at), .. }, .. }) => {
            let has_code = seen(code, here).program.holds(*at);
            let isa = if code.profile == tracewalk::ids::Profile::M { Isa::T32 } else { Isa::A32 };
            (!has_code).then(|| Location::new(*at, isa))
        }
        _ => None,
    }
}

/// The program as seen in a cursor's context.
pub(crate) fn seen<'c>(code: &'c Code, here: &Here<'_>) -> &'c Code {
    match here.context {
        Some(EventKind::Context { context_id, vmid, .. }) => code.in_context(context_id, vmid),
        _ => code,
    }
}

/// Whether a cursor is on a place.
fn is_place(cursor: &mut Cursor<'_>, code: &Code) -> bool {
    let Some(here) = cursor.current() else { return false };
    let Some(at) = location(&here, code) else { return false };
    if !matches!(here.element, Element::Event(_)) {
        return true;
    }
    // The attempt may already have been reported as a gap.
    if !cursor.step_back() {
        return true;
    }
    let is_same = cursor.current().is_some_and(|before| {
        matches!(before.element, Element::Gap(_)) && location(&before, code) == Some(at)
    });
    cursor.step();
    !is_same
}

/// Goes to the next place, or the one before. Returns whether there is one; else the cursor stays.
pub(crate) fn step(cursor: &mut Cursor<'_>, code: &Code, direction: Direction) -> bool {
    let mark = cursor.current().map(|here| here.step);
    loop {
        let moved = match direction {
            Direction::Forward => cursor.step(),
            Direction::Backward => cursor.step_back(),
        };
        if !moved {
            mark.map(|step| cursor.seek_step(step));
            return false;
        }
        if is_place(cursor, code) {
            return true;
        }
    }
}

/// Goes to the first or last place. Returns whether there is one.
pub(crate) fn go_to_end(cursor: &mut Cursor<'_>, code: &Code, direction: Direction, steps: u64) -> bool {
    let to = match direction {
        Direction::Forward => steps.saturating_sub(1),
        Direction::Backward => 0,
    };
    cursor.seek_step(to) && settle(cursor, code, opposite(direction))
}

/// Goes to a position, or to the first place after it. Returns whether there is one; else the cursor stays.
pub(crate) fn seek(cursor: &mut Cursor<'_>, code: &Code, position: Position) -> bool {
    let mark = cursor.current().map(|here| here.step);
    if cursor.seek(position) && settle(cursor, code, Direction::Forward) {
        return true;
    }
    mark.map(|step| cursor.seek_step(step));
    false
}

/// Goes to a step, or to the first place after it, or else the last one before it.
pub(crate) fn seek_step(cursor: &mut Cursor<'_>, code: &Code, step: u64) -> bool {
    cursor.seek_step(step)
        && (settle(cursor, code, Direction::Forward) || settle(cursor, code, Direction::Backward))
}

/// Goes on to a place, unless the cursor is on one.
pub(crate) fn settle(cursor: &mut Cursor<'_>, code: &Code, direction: Direction) -> bool {
    is_place(cursor, code) || step(cursor, code, direction)
}

const fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Forward => Direction::Backward,
        Direction::Backward => Direction::Forward,
    }
}

/// Goes on to the next place at one of these addresses, or back to the last one before. Goes to the end if there is
/// none. `leaves` is set if the last search ended at this handler ([`Search::Entered`]).
pub(crate) fn search(
    cursor: &mut Cursor<'_>,
    code: &Code,
    addresses: &BTreeSet<Address>,
    direction: Direction,
    mut leaves: bool,
) -> Search {
    for _ in 0..SLICE {
        let was =
            cursor.current().and_then(|here| Some((location(&here, code)?.address, here.before.exceptions)));
        if !step(cursor, code, direction) {
            return Search::End;
        }
        let Some(here) = cursor.current() else { return Search::End };
        if let Some((handler, exceptions)) = was
            && !std::mem::take(&mut leaves)
            && here.before.exceptions < exceptions
            && is_within(code, handler, addresses)
        {
            step(cursor, code, Direction::Forward);
            return Search::Entered;
        }
        if location(&here, code).is_some_and(|at| addresses.contains(&at.address)) {
            return Search::Found;
        }
        // Skips a block without any of the addresses, except its outermost instruction, because the recording may end
        // there.
        if let Element::Block(Block { start, end, .. }) = here.element
            && addresses.range(*start..*end).next().is_none()
        {
            pass(cursor, direction);
        }
    }
    Search::Unfinished
}

/// Whether an address is within a function that begins at one of these, and not at its beginning.
pub(crate) fn is_within(code: &Code, at: Address, addresses: &BTreeSet<Address>) -> bool {
    let start = code.symbols.function(at).map(|function| function.start);
    start.is_some_and(|start| start != at && addresses.contains(&start))
}

/// Goes to the outermost instruction of a block in one direction.
fn pass(cursor: &mut Cursor<'_>, direction: Direction) {
    match direction {
        Direction::Forward => cursor.to_last_of_element(),
        Direction::Backward => cursor.to_first_of_element(),
    }
}
