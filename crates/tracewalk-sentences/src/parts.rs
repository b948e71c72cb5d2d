//! Errors of a part of a trace and of comparisons → what helps.

use tracewalk_session::{CompareError, WindowError};

use crate::{NotMeasured, not_measured};

/// What to try if a part of a trace cannot be reported.
pub(super) fn of_window(error: &WindowError) -> String {
    match error {
        WindowError::EmptyWindow { .. } => "give a greater --to".to_owned(),
        WindowError::NoSuchFunction { nearest, .. } if nearest.is_empty() => {
            "it has no names: give an ELF file with symbols with --image, or give an address (0x8000306)"
                .to_owned()
        }
        WindowError::NoSuchFunction { nearest, .. } => format!(
            "the nearest names are {}; for an inlined function, give one of its lines as FILE:LINE",
            nearest.join(", ")
        ),
        WindowError::OffsetOutsideFunction { .. } => {
            "give a smaller offset, or an address (0x8000306)".to_owned()
        }
        WindowError::NoSuchFile { nearest, .. } if nearest.is_empty() => {
            "it has no lines: build it with debug information (-g), or give a function or an address"
                .to_owned()
        }
        WindowError::NoSuchFile { nearest, .. } => format!("the nearest names are {}", nearest.join(", ")),
        WindowError::NoSuchLine { nearest, .. } => {
            let lines = nearest.iter().map(u32::to_string).collect::<Vec<_>>();
            format!("the nearest lines with code are {}", lines.join(", "))
        }
        WindowError::NoSuchException { names, has_interrupts, .. } => {
            let interrupts = if *has_interrupts { ", IRQ0, IRQ1 and so on" } else { "" };
            format!("the names are {}{interrupts}; or give a number of its numbering", names.join(", "))
        }
        WindowError::PlaceFewerTimes { place, times } => {
            let place = place.to_string();
            let what = place.rsplit_once('#').map_or(&*place, |(what, _)| what);
            format!("give at most {what}#{times}")
        }
        WindowError::PlaceNever { exceptions: None, .. } => "`tracewalk calls` shows what ran".to_owned(),
        WindowError::PlaceNever { exceptions: Some(taken), .. } if taken.is_empty() => {
            "no exception was taken".to_owned()
        }
        WindowError::PlaceNever { exceptions: Some(taken), .. } => {
            format!("the trace has these exceptions: {}", taken.join(", "))
        }
        WindowError::NotMeasured(unit) => {
            let NotMeasured { switch, .. } = not_measured(*unit);
            format!("leave out --unit, measure a longer part, or switch on {switch} when capturing")
        }
        // A newer session may have errors that have no remedy here yet.
        _ => "give an address (0x8000306)".to_owned(),
    }
}

/// What to try if two captures cannot be compared.
pub(super) const fn of_compare(error: &CompareError) -> &'static str {
    match error {
        CompareError::DifferentSources => "choose with --id the source to compare in both",
        CompareError::NoFlow => "give the program with --image",
        _ => "only runs of the same program can be compared",
    }
}
