//! Errors for a place that is not in the program, or that execution never reached.

use std::collections::BTreeSet;

use tracewalk::ids::Exception;
use tracewalk_analysis::place::{Happening, Unknown};
use tracewalk_analysis::{Code, Happened, Place};
use tracewalk_input::nearest;

use crate::failure::Failure;
use tracewalk_report::counted;

/// The number of suggested names.
const NAMED: usize = 3;

/// Whether a place is an exception.
pub(super) const fn is_exception(place: &Place) -> bool {
    matches!(place, Place::Happening { what: Happening::Exception(_), .. })
}

/// The program has no such place.
pub(super) fn unknown(what: &Happening, why: &Unknown, code: &Code) -> Failure {
    match (why, what) {
        (Unknown::Function, Happening::Function { name, .. }) => {
            let functions = code.symbols.functions();
            let names = functions.iter().map(|function| function.name.as_str());
            let hint = match suggestion(name, names) {
                Some(names) => {
                    format!("the nearest names are {names}; for an inlined function, give one of its lines as FILE:LINE")
                }
                None => {
                    "it has no names: give an ELF file with symbols with --image, or give an address (0x8000306)"
                        .to_owned()
                }
            };
            Failure::input(
                "no_such_function",
                format!("`{what}`: the program has no function with that name"),
                hint,
            )
        }
        (Unknown::Offset { bytes }, _) => Failure::input(
            "offset_outside_function",
            format!("`{what}`: the function has {}", counted(*bytes, "byte")),
            "give a smaller offset, or an address (0x8000306)",
        ),
        (Unknown::File, Happening::Line { file, .. }) => {
            let mut files = BTreeSet::new();
            code.symbols.line_extents(&mut |name, _| {
                let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
                if !files.contains(name) {
                    files.insert(name.to_owned());
                }
                false
            });
            let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
            let hint = match suggestion(file, files.iter().map(String::as_str)) {
                Some(names) => format!("the nearest names are {names}"),
                None => {
                    "it has no lines: build it with debug information (-g), or give a function or an address"
                        .to_owned()
                }
            };
            Failure::input(
                "no_such_file",
                format!("`{what}`: no code of the program comes from a file with that name"),
                hint,
            )
        }
        (Unknown::Line { before, after }, _) => {
            let lines = before.iter().chain(after).map(u32::to_string).collect::<Vec<_>>();
            Failure::input(
                "no_such_line",
                format!("`{what}`: no code comes from that line"),
                format!("the nearest lines with code are {}", lines.join(", ")),
            )
        }
        _ => Failure::input(
            "no_such_place",
            format!("`{what}`: the program has no such place"),
            "give an address (0x8000306)",
        ),
    }
}

/// The trace cannot report an exception: each protocol and profile has its own names.
pub(super) fn no_exception(what: &Happening, protocols: &BTreeSet<&str>, all: &[Exception]) -> Failure {
    let mut names = Vec::new();
    for name in all.iter().filter_map(|exception| exception.name()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let protocols = protocols.iter().copied().collect::<Vec<_>>().join(" and ");
    let interrupts = if all.contains(&Exception::M(16)) { ", IRQ0, IRQ1 and so on" } else { "" };
    Failure::input(
        "no_such_exception",
        format!("`{what}`: the trace ({protocols}) cannot have this exception"),
        format!("the names are {}{interrupts}; or give a number of its numbering", names.join(", ")),
    )
}

/// Execution did not reach a place often enough.
pub(super) fn never(missing: &Happened, exceptions: &BTreeSet<String>) -> Failure {
    let Happened { place, times, .. } = missing;
    let what = match place {
        Place::Happening { what, .. } => what.to_string(),
        Place::Position(position) => position.to_string(),
    };
    if *times > 0 {
        let problem = format!("`{place}`: `{what}` occurred only {}", counted(*times, "time"));
        return Failure::input("place_fewer_times", problem, format!("give at most {what}#{times}"));
    }
    let hint = match (is_exception(place), exceptions.is_empty()) {
        (true, false) => {
            let taken = exceptions.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            format!("the trace has these exceptions: {taken}")
        }
        (true, true) => "no exception was taken".to_owned(),
        (false, _) => "`tracewalk calls` shows what ran".to_owned(),
    };
    Failure::input("place_never", format!("`{place}` never occurs in the part that was followed"), hint)
}

/// The nearest names; `None` if there are none at all.
fn suggestion<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names = nearest::nearest_few(given, known, NAMED);
    (!names.is_empty()).then(|| names.join(", "))
}
