//! `--from` and `--to`: a part of the trace.

use clap::Args;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::{Position, Window};

use super::numbers::number;
use crate::failure::Failure;

/// The part of the trace that is reported.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WindowArgs {
    /// Report what ran from here on: 2000 (behind so many instructions), 2000c (cycles), 2000t (from that timestamp on),
    /// @0x7d0 (from that byte of the capture on).
    #[arg(long, value_name = "POSITION", value_parser = position, help_heading = "Window")]
    from: Option<Position>,

    /// Report what ran up to here.
    #[arg(long, value_name = "POSITION", value_parser = position, help_heading = "Window")]
    to: Option<Position>,
}

impl WindowArgs {
    pub(crate) fn window(self) -> Result<Window, Failure> {
        let Self { from, to } = self;
        match (from, to) {
            (Some(start), Some(end)) if start.is_before(end) == Some(false) => Err(Failure::input(
                format!("--to is {end}, and --from is {start}: nothing is between them"),
                "give a greater --to",
            )),
            (_, Some(end)) if end.is_beginning() => {
                Err(Failure::input(format!("--to is {end}: nothing is before it"), "give a greater --to"))
            }
            _ => Ok(Window { from, to }),
        }
    }
}

fn position(text: &str) -> Result<Position, String> {
    let text = text.trim();
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    // Hexadecimal digits come first: 0x10c is a number of instructions.
    let last = text.chars().next_back().filter(|_| !hexadecimal);
    let without_last = || text.get(..text.len() - 1).unwrap_or_default();
    let position = match (text.strip_prefix('@'), last) {
        (Some(offset), _) => number(offset).map(|at| Position::Capture(CaptureOffset(at))),
        (None, Some('c')) => number(without_last()).map(Position::Cycles),
        (None, Some('t')) => number(without_last()).map(Position::Time),
        (None, _) => number(text).map(Position::Instructions),
    };
    position.ok_or_else(|| {
        "expected a number of instructions (2000), of cycles (2000c), a timestamp (2000t) or a byte of the capture \
         (@0x7d0)"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_written_with_their_unit() {
        let cases = [
            ("2000", Position::Instructions(2000)),
            ("2_000", Position::Instructions(2000)),
            ("0x10c", Position::Instructions(0x10c)),
            ("7c", Position::Cycles(7)),
            ("5000000000t", Position::Time(5_000_000_000)),
            ("@0x20", Position::Capture(CaptureOffset(0x20))),
            ("@32", Position::Capture(CaptureOffset(32))),
        ];
        for (text, expected) in cases {
            assert_eq!(position(text), Ok(expected), "{text}");
        }
        for wrong in ["", "c", "@", "-1", "+1", "1.5", "20s", "0xg", "é"] {
            assert!(position(wrong).is_err(), "{wrong}");
        }
    }
}
