//! Places and call stacks as text.

use std::fmt::Write as _;

use tracewalk::flow::EventKind;
use tracewalk::ids::{Address, Location};
use tracewalk_analysis::Code;
use tracewalk_analysis::call_stack::{FrameKind, Task};

use crate::core::{Core, Who};
use crate::machine::{Level, handled};

/// The most frames of a call stack that are printed.
const MOST_FRAMES: usize = 1000;

/// The text beside a thread in `info threads`.
pub(crate) fn thread(core: &mut Core<'_>, who: Who) -> String {
    let mut text = core.name.clone();
    let Some(state) = core.state_of(who) else { return text };
    let (step, task, exception) = (state.step, state.task, handled(&state.levels));
    // The number of a task is informative only if there are others.
    if matches!(task, Task::Context(_)) {
        let _ = write!(text, ", {}", task.name(&core.code));
    }
    match who {
        Who::Running => {}
        Who::Context(context) if core.is_running(context) => text.push_str(", running"),
        Who::Context(_) => _ = write!(text, ", ran last at step {step}"),
    }
    if let Some(exception) = exception {
        let _ = write!(text, ", in {}", core.code.interrupts.describe(exception));
    }
    text
}

/// The description of the place.
pub(super) fn place(core: &mut Core<'_>) -> String {
    let totals = core.index().totals();
    let (step, steps) = (core.step_number(), core.steps());
    let mut text = format!("step {step} of {steps}");
    if let Some(here) = core.here() {
        if let Some(instruction) = here.instruction {
            let _ = write!(text, ", instruction {} of {}", instruction.number, totals.instructions);
        }
        let _ = write!(text, ", byte {} of the capture", here.at.0);
        if totals.time > 0 {
            let _ = write!(text, ", time {}", here.before.time);
        }
        if totals.cycles > 0 {
            let _ = write!(text, ", cycle {}", here.before.cycles);
        }
        if let Some(context @ EventKind::Context { .. }) = here.context {
            let _ = write!(text, ", {context}");
        }
    }
    text.push('\n');
    if let Some(location) = core.location() {
        let _ = writeln!(text, "{}", described(core.seen(), location));
    }
    let exception = core.state().and_then(|state| handled(&state.levels));
    if let Some(exception) = exception {
        let _ = writeln!(text, "in {}", core.code.interrupts.describe(exception));
    }
    if core.state().is_some_and(|state| state.is_halted) {
        text.push_str("registers and memory are the halted processor's\n");
    }
    text
}

/// The call stack, innermost first.
pub(super) fn backtrace(core: &mut Core<'_>, who: Who) -> String {
    let Some(levels) = core.state_of(who).map(|state| state.levels.clone()) else { return String::new() };
    let mut text = String::new();
    for (number, level) in levels.iter().rev().take(MOST_FRAMES).enumerate() {
        let _ = write!(text, "#{number:<3} {}", named(core.seen_by(who), level.at));
        let _ = writeln!(text, "  {}", origin(core, level));
    }
    if levels.len() > MOST_FRAMES {
        let _ = writeln!(text, "{} more", levels.len() - MOST_FRAMES);
    }
    if levels.first().is_some_and(|level| level.frame.kind == FrameKind::Root) {
        text.push_str("the caller of the last one was not recorded\n");
    }
    text
}

/// How and when a frame began.
fn origin(core: &Core<'_>, level: &Level) -> String {
    let began = level.frame.mark.began;
    match level.frame.kind {
        FrameKind::Root => format!("seen from step {began} on"),
        FrameKind::Call { .. } => format!("called, began at step {began}"),
        FrameKind::Exception(interruption) => {
            let name =
                interruption.exception.map(|exception| core.code.interrupts.describe(exception).to_string());
            format!("{}, taken at step {began}", name.as_deref().unwrap_or("an exception"))
        }
    }
}

/// An address with its function and line.
pub(super) fn named(code: &Code, at: Address) -> String {
    let mut text = at.to_string();
    if let Some(function) = code.symbols.function(at) {
        let _ = write!(text, "  {}", function.name);
        match at.offset_from(function.start) {
            Some(0) | None => {}
            Some(offset) => _ = write!(text, "+0x{offset:x}"),
        }
    }
    let line = code.symbols.innermost(at);
    if let Some((file, line)) = line.and_then(|frame| frame.file.zip(frame.line)) {
        let file = file.rsplit(['/', '\\']).next().unwrap_or(&file);
        let _ = write!(text, "  {file}:{line}");
    }
    text
}

fn described(code: &Code, Location { address, isa }: Location) -> String {
    match code.program.holds(address) {
        true => format!("{}  ({})", named(code, address), isa.name()),
        false => format!("{address}, where no image has code"),
    }
}
