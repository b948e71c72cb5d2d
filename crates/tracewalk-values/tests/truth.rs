//! Values along recorded paths, compared with what an emulator recorded.

mod program;

use program::{Case, Outcome};
use tracewalk_values::End;

/// A run of a program: which part of the path, and what is known of its end.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// All of the path, from reset.
    Full,
    /// The last instructions.
    Last(usize),
}

fn run(name: &str, part: Part, registers: bool, memory: bool) -> Option<Outcome> {
    let case = Case::read(name)?;
    let all = case.end();
    let end = End {
        registers: if registers { all.registers } else { [None; 32] },
        memory: if memory { all.memory } else { Vec::new() },
    };
    let last = match part {
        Part::Full => None,
        Part::Last(count) => Some(count),
    };
    Some(case.prove(last, (registers || memory).then_some(&end)))
}

#[test]
fn nothing_that_is_stated_differs_from_the_record() {
    for name in ["stock", "telemetry", "grid"] {
        for part in [Part::Full, Part::Last(2_600)] {
            for (registers, memory) in [(false, false), (true, false), (true, true)] {
                let Some(outcome) = run(name, part, registers, memory) else { continue };
                println!("{name:10} {part:?} registers {registers} memory {memory}: {outcome}");
                assert_eq!(outcome.wrong, Vec::<String>::new());
            }
        }
    }
}
