//! Parses a line of `monitor`.

use crate::walk::Direction;

/// A command with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Where,
    Go(Goal),
    /// The next time that a function begins, or the last time before.
    Find(String, Direction),
    Calls,
    Backtrace,
    UpToCall,
    Help,
}

/// The goal of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    First,
    Last,
    Step(u64),
    Time(u64),
    /// The handler of the exception of this number, from 1.
    Exception(u64),
}

impl Command {
    /// The command of a line; `None` if the line is invalid.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let words = line.split_whitespace().collect::<Vec<_>>();
        Some(match *words.as_slice() {
            ["where"] => Self::Where,
            ["goto", "first"] => Self::Go(Goal::First),
            ["goto", "last"] => Self::Go(Goal::Last),
            ["goto", "time", time] => Self::Go(Goal::Time(number(time)?)),
            ["goto", "exception", which] => Self::Go(Goal::Exception(number(which)?)),
            ["goto", step] => Self::Go(Goal::Step(number(step)?)),
            ["find", "back", ref name @ ..] if !name.is_empty() => {
                Self::Find(name.join(" "), Direction::Backward)
            }
            ["find", ref name @ ..] if !name.is_empty() => Self::Find(name.join(" "), Direction::Forward),
            ["calls"] => Self::Calls,
            ["bt" | "backtrace"] => Self::Backtrace,
            ["up-to-call"] => Self::UpToCall,
            ["help"] => Self::Help,
            _ => return None,
        })
    }
}

/// A number in decimal, or in hexadecimal with `0x`.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_say_what_they_say() {
        let commands = [
            ("where", Some(Command::Where)),
            ("goto 0x10", Some(Command::Go(Goal::Step(16)))),
            (" goto  last ", Some(Command::Go(Goal::Last))),
            ("goto time 12", Some(Command::Go(Goal::Time(12)))),
            ("goto exception 3", Some(Command::Go(Goal::Exception(3)))),
            ("find operator new", Some(Command::Find("operator new".to_owned(), Direction::Forward))),
            ("find back f", Some(Command::Find("f".to_owned(), Direction::Backward))),
            ("find", None),
            ("goto", None),
            ("goto -1", None),
            ("", None),
        ];
        for (line, command) in commands {
            assert_eq!(Command::parse(line), command, "{line}");
        }
    }
}
