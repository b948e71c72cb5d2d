//! Jumps.

use std::collections::BTreeSet;

use tracewalk::ids::Address;
use tracewalk_analysis::Position;

use super::command::Goal;
use super::text;
use crate::core::Core;
use crate::registers::Place;
use crate::walk::{Direction, Search};

/// The note after each jump: GDB 13 keeps the registers that it has read (`remote_target::rcmd`), and no answer changes
/// that.
const READ_ANEW: &str = "GDB shows the place after `maintenance flush register-cache`\n";

pub(super) fn go(core: &mut Core<'_>, goal: Goal) -> String {
    let found = reaches(core, goal);
    let problem = missing(core, goal);
    arrived(core, found, &problem)
}

/// The reason why there is no such place.
fn missing(core: &Core<'_>, goal: Goal) -> String {
    let totals = core.index().totals();
    match goal {
        Goal::First | Goal::Last => "no place".to_owned(),
        Goal::Step(step) => format!("no step {step}: there are {}", core.steps()),
        Goal::Time(_) if totals.time == 0 => "the trace has no timestamps".to_owned(),
        Goal::Time(time) => format!("no time {time}: the last one is {}", totals.time),
        Goal::Exception(number) => format!("no exception {number}: there are {}, from 1", totals.exceptions),
    }
}

/// Goes to the place at which this register has this value.
///
/// # Errors
///
/// The reason, if there is no such place.
pub(crate) fn jump(core: &mut Core<'_>, place: Place, value: u64) -> Result<(), String> {
    let goal = match place {
        Place::Step => Goal::Step(value),
        Place::Time => Goal::Time(value),
        Place::Exception => Goal::Exception(value),
    };
    if reaches(core, goal) { Ok(()) } else { Err(missing(core, goal)) }
}

fn reaches(core: &mut Core<'_>, goal: Goal) -> bool {
    match goal {
        Goal::First => core.go_to_end(Direction::Backward),
        Goal::Last => core.go_to_end(Direction::Forward),
        Goal::Step(step) => core.seek_step(step),
        Goal::Time(time) => core.index().totals().time > 0 && core.seek(Position::Time(time)),
        Goal::Exception(number) => number.checked_sub(1).is_some_and(|number| core.seek_exception(number)),
    }
}

pub(super) fn find(core: &mut Core<'_>, name: &str, direction: Direction) -> String {
    let starts = starts(core, name);
    if starts.is_empty() {
        return format!("there is no function {}\n", tracewalk::plain::plain(name.into()));
    }
    let mark = core.step_number();
    let found = loop {
        match core.search(&starts, direction) {
            Search::Found => break true,
            // An exception entered such a function in the middle: the search goes on.
            Search::Entered => {}
            Search::End => break false,
            Search::Unfinished => {}
        }
    };
    if !found {
        core.seek_step(mark);
    }
    let when = if direction == Direction::Forward { "after" } else { "before" };
    arrived(
        core,
        found,
        &format!("{} does not begin {when} this place", tracewalk::plain::plain(name.into())),
    )
}

/// The start addresses of functions with this name, in every view of the program.
fn starts(core: &Core<'_>, name: &str) -> BTreeSet<Address> {
    let views = std::iter::once(&*core.code).chain(core.code.views.values().map(|code| &**code));
    views.flat_map(|code| code.symbols.functions_named(name)).map(|function| function.start).collect()
}

pub(super) fn up_to_call(core: &mut Core<'_>) -> String {
    let began = core.state().and_then(|state| state.levels.last()).map(|level| level.frame.mark.began);
    let outermost = core.state().is_none_or(|state| state.levels.len() < 2);
    let mark = core.step_number();
    let found = !outermost
        && began.is_some_and(|began| core.seek_step(began))
        && (core.step(Direction::Backward) || !core.seek_step(mark));
    arrived(core, found, "the caller was not recorded")
}

fn arrived(core: &mut Core<'_>, found: bool, problem: &str) -> String {
    match found {
        true => format!("{}{READ_ANEW}", text::place(core)),
        false => format!("{problem}\n"),
    }
}
