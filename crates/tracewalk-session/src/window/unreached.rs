//! Why a window cannot be reported: a place that is not in the program, or that execution never reached.

use std::collections::BTreeSet;
use std::fmt;

use tracewalk::ids::Exception;
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::place::{Happening, Unknown};
use tracewalk_analysis::{Code, Happened, Place, Position};
use tracewalk_input::nearest;

/// The number of suggested names.
const NAMED: usize = 3;

/// Why a part of a trace cannot be reported.
#[derive(Clone, Debug, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum WindowError {
    /// The end is not after the start, or nothing is before it.
    EmptyWindow { from: Option<Position>, to: Position },
    /// No function of the program has the name. The nearest names; none if the program has no names.
    NoSuchFunction { what: Happening, nearest: Vec<String> },
    /// The function has fewer bytes.
    OffsetOutsideFunction { what: Happening, bytes: u64 },
    /// No source file of the program has the name. The nearest names; none if the program has no lines.
    NoSuchFile { what: Happening, nearest: Vec<String> },
    /// The line has no code. The nearest lines with code.
    NoSuchLine { what: Happening, nearest: Vec<u32> },
    /// The program has no such place.
    NoSuchPlace(Happening),
    /// The protocols of the trace cannot report the exception. The names of those that they can report.
    NoSuchException {
        what: Happening,
        protocols: Vec<String>,
        names: Vec<&'static str>,
        has_interrupts: bool,
    },
    /// The place was reached, but less often.
    PlaceFewerTimes { place: Place, times: u64 },
    /// The place was never reached. For an exception: those that were taken.
    PlaceNever { place: Place, exceptions: Option<Vec<String>> },
    /// The trace cannot be measured in the unit.
    NotMeasured(Unit),
}

impl WindowError {
    /// A stable short name, like `no_such_function`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for WindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyWindow { from: Some(from), to } => {
                write!(f, "the end is {to}, and the start {from}: nothing is between them")
            }
            Self::EmptyWindow { from: None, to } => write!(f, "the end is {to}: nothing is before it"),
            Self::NoSuchFunction { what, .. } => {
                write!(f, "`{what}`: the program has no function with that name")
            }
            Self::OffsetOutsideFunction { what, bytes: 1 } => write!(f, "`{what}`: the function has 1 byte"),
            Self::OffsetOutsideFunction { what, bytes } => {
                write!(f, "`{what}`: the function has {bytes} bytes")
            }
            Self::NoSuchFile { what, .. } => {
                write!(f, "`{what}`: no code of the program comes from a file with that name")
            }
            Self::NoSuchLine { what, .. } => write!(f, "`{what}`: no code comes from that line"),
            Self::NoSuchPlace(what) => write!(f, "`{what}`: the program has no such place"),
            Self::NoSuchException { what, protocols, .. } => {
                write!(f, "`{what}`: the trace ({}) cannot have this exception", protocols.join(" and "))
            }
            Self::PlaceFewerTimes { place, times } => {
                let times = if *times == 1 { "1 time".to_owned() } else { format!("{times} times") };
                write!(f, "`{place}`: `{}` occurred only {times}", what(place))
            }
            Self::PlaceNever { place, .. } => {
                write!(f, "`{place}` never occurs in the part that was followed")
            }
            Self::NotMeasured(unit) => {
                let missing = match unit {
                    Unit::Cycles => "cycle counts",
                    Unit::Time => "timestamps",
                    Unit::Instructions => "instructions",
                    Unit::Samples => "samples",
                };
                write!(f, "the measured part of the trace has no {missing}")
            }
        }
    }
}

/// Whether a place is an exception.
pub(super) const fn is_exception(place: &Place) -> bool {
    matches!(place, Place::Happening { what: Happening::Exception(_), .. })
}

/// The program has no such place.
pub(super) fn unknown(what: &Happening, why: &Unknown, code: &Code) -> WindowError {
    let what = what.clone();
    match (why, &what) {
        (Unknown::Function, Happening::Function { name, .. }) => {
            let functions = code.symbols.functions();
            let nearest = suggestions(name, functions.iter().map(|function| function.name.as_str()));
            WindowError::NoSuchFunction { what, nearest }
        }
        (Unknown::Offset { bytes }, _) => WindowError::OffsetOutsideFunction { what, bytes: *bytes },
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
            let nearest = suggestions(file, files.iter().map(String::as_str));
            WindowError::NoSuchFile { what, nearest }
        }
        (Unknown::Line { before, after }, _) => {
            WindowError::NoSuchLine { what, nearest: before.iter().chain(after).copied().collect() }
        }
        _ => WindowError::NoSuchPlace(what),
    }
}

/// The trace cannot report an exception: each protocol and profile has its own names.
pub(super) fn no_exception(what: &Happening, protocols: &BTreeSet<&str>, all: &[Exception]) -> WindowError {
    let mut names = Vec::new();
    for name in all.iter().filter_map(|exception| exception.name()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    WindowError::NoSuchException {
        what: what.clone(),
        protocols: protocols.iter().map(|protocol| (*protocol).to_owned()).collect(),
        names,
        has_interrupts: all.contains(&Exception::M(16)),
    }
}

/// Execution did not reach a place often enough.
pub(super) fn never(missing: &Happened, exceptions: &BTreeSet<String>) -> WindowError {
    let Happened { place, times, .. } = missing;
    let place = place.clone();
    if *times > 0 {
        return WindowError::PlaceFewerTimes { place, times: *times };
    }
    let exceptions = is_exception(&place).then(|| exceptions.iter().cloned().collect());
    WindowError::PlaceNever { place, exceptions }
}

/// What happens at a place, without the number of times.
fn what(place: &Place) -> String {
    match place {
        Place::Happening { what, .. } => what.to_string(),
        Place::Position(position) => position.to_string(),
    }
}

/// The nearest names.
fn suggestions<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    nearest::nearest_few(given, known, NAMED).into_iter().map(str::to_owned).collect()
}
