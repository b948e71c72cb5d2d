//! Flow in the runs format, as the corpus keeps expected results.

use tracewalk::flow::{Element, EventKind, GapReason};

/// An element's line; `None` if the format has no line for the element.
pub(crate) fn line(element: &Element) -> Option<String> {
    Some(match element {
        Element::Block(block) => {
            format!("R {:x} {:x} {}", block.start.get(), block.end.get(), block.isa.name().to_lowercase())
        }
        Element::Event(event) => match event.kind {
            EventKind::TraceOn(_) => "O".into(),
            EventKind::ExceptionReturn => "T".into(),
            EventKind::Exception { exception, preferred_return, .. } => {
                let number = exception.map_or("-".into(), |exception| exception.number().to_string());
                let returns = preferred_return.map_or("-".into(), |at| format!("{:x}", at.get()));
                format!("X {number} {returns}")
            }
            // The format has no line for other events.
            _ => return None,
        },
        Element::Gap(gap) => match gap.reason {
            GapReason::NoCode(at) => format!("N {:x}", at.address.get()),
            GapReason::AddressUnknown => "U".into(),
            GapReason::Unseen { from, instructions, then } => {
                let from = from.map_or("-".into(), |from| format!("{:x}", from.address.get()));
                format!("Q {from} {:x} {}", then.address.get(), instructions.unwrap_or(0))
            }
            other => format!("gap: {other}"),
        },
        Element::Proof(_) => return None,
    })
}

/// The lines without `O`, and with touching runs joined.
pub(crate) fn joined(lines: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut joined = Vec::<String>::new();
    for line in lines.into_iter().filter(|line| line != "O") {
        let touching = joined.last().zip(run(&line)).and_then(|(before, (start, end, isa))| {
            let (from, until, same) = run(before)?;
            (until == start && same == isa).then(|| format!("R {from} {end} {isa}"))
        });
        if touching.is_some() {
            joined.pop();
        }
        joined.push(touching.unwrap_or(line));
    }
    joined
}

/// Start, end and instruction set of a run.
fn run(line: &str) -> Option<(&str, &str, &str)> {
    let (start, rest) = line.strip_prefix("R ")?.split_once(' ')?;
    let (end, isa) = rest.split_once(' ')?;
    Some((start, end, isa))
}
