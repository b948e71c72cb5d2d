//! The user's `monitor` commands: the current place, jumps to others, and the known calls.

mod calls;
mod command;
mod go;
mod text;

use crate::core::{Core, Who};
use command::Command;

pub(crate) use go::jump;
pub(crate) use text::thread;

const HELP: &str = "\
monitor where              the place: step, time, function, line, exception
monitor goto N             the step with this number
monitor goto first|last    the recording's first or last place
monitor goto time T        the first place at or after a timestamp
monitor goto exception K   the handler of the Kth exception, from 1
monitor find FUNCTION      the next time that the function begins
monitor find back FUNCTION the last time before
monitor bt                 the call stack that the trace shows
monitor calls              what the function has called so far
monitor up-to-call         back to the call of the function
After a jump `maintenance flush register-cache` makes GDB read the registers again.
These jump and do not need it: set $step = N, set $time = T, set $exception = K.
";

/// The answer to an invalid line: the usage of the command that it begins with, or all commands.
fn usage(line: &str) -> String {
    let Some(first) = line.split_whitespace().next() else { return HELP.to_owned() };
    let lines = HELP
        .lines()
        .filter(|known| known.split_whitespace().nth(1) == Some(first) && known.starts_with("monitor "));
    let lines = lines.map(|line| format!("{line}\n")).collect::<String>();
    let help = if lines.is_empty() { HELP } else { &lines };
    format!("not a command: {}\n{help}", tracewalk::plain::plain(line.trim().into()))
}

/// The answer to a line.
pub(crate) fn answer(core: &mut Core<'_>, who: Who, line: &str) -> String {
    match Command::parse(line) {
        None => usage(line),
        Some(Command::Help) => HELP.to_owned(),
        Some(Command::Where) => text::place(core),
        Some(Command::Backtrace) => text::backtrace(core, who),
        Some(Command::Calls) => calls::calls(core),
        Some(Command::Go(goal)) => go::go(core, goal),
        Some(Command::Find(name, direction)) => go::find(core, &name, direction),
        Some(Command::UpToCall) => go::up_to_call(core),
    }
}
