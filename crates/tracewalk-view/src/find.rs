//! Moves and searches. None takes long: one that is not finished soon returns where it stopped, and the page continues
//! it.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tracewalk::flow::Element;
use tracewalk::ids::Address;
use tracewalk::program::ViewId;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::Position;
use tracewalk_analysis::place::{ExceptionName, Found, Happening, Unknown};

use crate::names::address;
use crate::query::Query;
use crate::recording::Recording;
use crate::shown::{row, seen};

/// The most elements that are examined before the page gets an answer.
const SLICE: u32 = 1 << 19;

/// The result of a move or a search.
enum Came {
    To(u64),
    /// There is no match in this direction.
    Nowhere,
    /// There is no match up to this step; the search is not finished.
    Only(u64),
    /// The target of the search does not exist.
    Unknown(String),
}

impl From<Came> for Value {
    fn from(came: Came) -> Self {
        match came {
            Came::To(step) => json!({ "step": step }),
            Came::Nowhere => json!({ "end": true }),
            Came::Only(step) => json!({ "unfinished": step }),
            Came::Unknown(what) => json!({ "unknown": what }),
        }
    }
}

/// Moves by an instruction, a line, a function, an exception or a gap; to a position; or to the call of the function.
pub(crate) fn go(recording: &mut Recording<'_>, query: &Query) -> Value {
    if !recording.cursor.seek_step(query.step) {
        return Came::Nowhere.into();
    }
    let back = query.back;
    let came = match query.what.as_str() {
        "instruction" => to_place(recording, back),
        "line" => line(recording, query),
        "function" => function(recording, query),
        "exception" => exception(recording, back),
        "gap" => gap(recording, query),
        "call" => call(recording, query.step),
        "time" => at(recording, Position::Time(query.from)),
        "byte" => at(recording, Position::Capture(CaptureOffset(query.from))),
        "number" => at(recording, Position::Instructions(query.from)),
        other => Came::Unknown(other.to_owned()),
    };
    came.into()
}

fn at(recording: &mut Recording<'_>, position: Position) -> Came {
    recording.step_at(position).map_or(Came::Nowhere, Came::To)
}

/// Steps to the next instruction, gap or exception.
fn to_place(recording: &mut Recording<'_>, back: bool) -> Came {
    for _ in 0..SLICE {
        let moved = if back { recording.cursor.step_back() } else { recording.cursor.step() };
        if !moved {
            return Came::Nowhere;
        }
        if recording.is_place() {
            return came_to(recording);
        }
    }
    recording.cursor.current().map_or(Came::Nowhere, |here| Came::Only(here.step))
}

fn came_to(recording: &Recording<'_>) -> Came {
    recording.cursor.current().map_or(Came::Nowhere, |here| Came::To(here.step))
}

/// Moves to another line of the source. If the move continues an earlier one, `from` is where that began.
fn line(recording: &mut Recording<'_>, query: &Query) -> Came {
    let key = |recording: &mut Recording<'_>| {
        let here = recording.cursor.current()?;
        here.instruction?;
        let row = row(&here, 0, &recording.code, &mut recording.names);
        Some((row.function, row.file, row.line))
    };
    different(recording, query, key)
}

/// Moves to another function.
fn function(recording: &mut Recording<'_>, query: &Query) -> Came {
    let key = |recording: &mut Recording<'_>| {
        let here = recording.cursor.current()?;
        let at = here.instruction?.location.address;
        let (_, seen) = seen(&recording.code, here.context);
        Some(seen.symbols.function(at).map_or(at, |function| function.start))
    };
    different(recording, query, key)
}

/// Moves to a step with another key, or to a gap.
fn different<K: PartialEq>(
    recording: &mut Recording<'_>,
    query: &Query,
    key: impl Fn(&mut Recording<'_>) -> Option<K>,
) -> Came {
    let began =
        if query.count > 0 && recording.cursor.seek_step(query.from) { query.from } else { query.step };
    recording.cursor.seek_step(began);
    let old = key(recording);
    recording.cursor.seek_step(query.step);
    for _ in 0..SLICE {
        let moved = if query.back { recording.cursor.step_back() } else { recording.cursor.step() };
        if !moved {
            return Came::Nowhere;
        }
        let is_gap = recording.cursor.current().is_some_and(|here| matches!(here.element, Element::Gap(_)));
        let new = key(recording);
        if is_gap || (new.is_some() && new != old) {
            return came_to(recording);
        }
    }
    recording.cursor.current().map_or(Came::Nowhere, |here| Came::Only(here.step))
}

fn exception(recording: &mut Recording<'_>, back: bool) -> Came {
    let Some(here) = recording.cursor.current() else { return Came::Nowhere };
    let is_exception = matches!(here.element, Element::Event(event)
        if matches!(event.kind, tracewalk::flow::EventKind::Exception { .. }));
    let before = here.before.exceptions;
    let number = match back {
        true => before.checked_sub(1),
        false => Some(before + u64::from(is_exception)),
    };
    match number.is_some_and(|number| recording.cursor.seek_exception(number)) {
        true => came_to(recording),
        false => Came::Nowhere,
    }
}

fn gap(recording: &Recording<'_>, query: &Query) -> Came {
    let gaps = &recording.overview.gaps;
    let found = match query.back {
        true => gaps.partition_point(|at| *at < query.step).checked_sub(1),
        false => Some(gaps.partition_point(|at| *at <= query.step)),
    };
    found.and_then(|index| gaps.get(index)).map_or(Came::Nowhere, |step| Came::To(*step))
}

/// Moves to the instruction that called the function, or to the last one before its exception.
fn call(recording: &mut Recording<'_>, step: u64) -> Came {
    let began = recording.here(step).and_then(|here| here["frames"][0]["began"].as_u64());
    if !began.is_some_and(|began| began > 0 && recording.cursor.seek_step(began)) {
        return Came::Nowhere;
    }
    to_place(recording, true)
}

/// Searches for the user's text.
pub(crate) fn find(recording: &mut Recording<'_>, query: &Query) -> Value {
    let what = query.what.trim();
    if let Some(step) = what.strip_prefix('#').and_then(|step| step.parse::<u64>().ok()) {
        let last = recording.totals().steps.saturating_sub(1);
        return Came::To(step.min(last)).into();
    }
    if let Ok(number) = what.parse::<u64>() {
        return at(recording, Position::Instructions(number)).into();
    }
    let happening = match happening(what).find(recording.seen_from(query.step)) {
        Ok(Found::Exception(name)) => return exception_named(recording, query, &name).into(),
        Ok(Found::Instructions(found)) => found,
        Err(unknown) => return unknown_happening(recording, query, what, &unknown).into(),
    };
    let addresses = happening.into_iter().map(|(view, addresses)| (view, addresses.into_iter().collect()));
    addresses_in(recording, query, &addresses.collect::<Vec<_>>()).into()
}

impl Recording<'_> {
    /// The whole program. Moves the cursor to a step.
    fn seen_from(&mut self, step: u64) -> &tracewalk_analysis::Code {
        self.cursor.seek_step(step);
        &self.code
    }
}

fn happening(what: &str) -> Happening {
    if let Some(address) = address(what) {
        return Happening::Address(address);
    }
    if let Some(name) = what.strip_prefix("exception:") {
        return Happening::Exception(match name.parse() {
            Ok(number) => ExceptionName::Number(number),
            Err(_) => ExceptionName::Named(name.to_owned()),
        });
    }
    if let Some((file, line)) = what.rsplit_once(':')
        && let Ok(line) = line.parse()
    {
        return Happening::Line { file: file.to_owned(), line };
    }
    Happening::Function { name: what.to_owned(), offset: 0 }
}

/// If the text is not a function's name, it may be part of one, or of a text that an ITM sent.
fn unknown_happening(recording: &mut Recording<'_>, query: &Query, what: &str, unknown: &Unknown) -> Came {
    let wanted = what.to_lowercase();
    let functions = recording.code.symbols.functions();
    let names = functions.iter().filter(|function| function.name.to_lowercase().contains(&wanted));
    let addresses = names.map(|function| function.start).collect::<BTreeSet<_>>();
    let is_function = matches!(unknown, Unknown::Function);
    if is_function && !addresses.is_empty() {
        return addresses_in(recording, query, &[(ViewId::default(), addresses)]);
    }
    let has_text = |(_, _, text): &&(u64, u8, String)| text.to_lowercase().contains(&wanted);
    let texts = &recording.overview.texts;
    let found = match query.back {
        true => texts.iter().rev().filter(|(at, ..)| *at < query.step).find(has_text),
        false => texts.iter().filter(|(at, ..)| *at > query.step).find(has_text),
    };
    match (found, texts.iter().any(|text| has_text(&text))) {
        (Some((at, ..)), _) => Came::To((*at).min(recording.totals().steps.saturating_sub(1))),
        (None, true) => Came::Nowhere,
        (None, false) => Came::Unknown(what.to_owned()),
    }
}

fn exception_named(recording: &mut Recording<'_>, query: &Query, name: &ExceptionName) -> Came {
    for _ in 0..SLICE / 16 {
        let Came::To(step) = exception(recording, query.back) else { return Came::Nowhere };
        let is_it = recording.cursor.current().is_some_and(|here| match here.element {
            Element::Event(event) => match event.kind {
                tracewalk::flow::EventKind::Exception { exception, .. } => {
                    name.is(exception, &recording.code.interrupts)
                }
                _ => false,
            },
            _ => false,
        });
        if is_it {
            return Came::To(step);
        }
    }
    recording.cursor.current().map_or(Came::Nowhere, |here| Came::Only(here.step))
}

/// Goes to the next step that executes one of these instructions.
fn addresses_in(
    recording: &mut Recording<'_>,
    query: &Query,
    addresses: &[(ViewId, BTreeSet<Address>)],
) -> Came {
    let wanted = |view: ViewId| addresses.iter().find(|(of, _)| *of == view).map(|(_, addresses)| addresses);
    for _ in 0..SLICE {
        let moved = if query.back { recording.cursor.step_back() } else { recording.cursor.step() };
        if !moved {
            return Came::Nowhere;
        }
        let Some(here) = recording.cursor.current() else { return Came::Nowhere };
        let (view, _) = seen(&recording.code, here.context);
        let Some(wanted) = wanted(view) else { continue };
        let Some(at) = here.instruction.map(|instruction| instruction.location.address) else { continue };
        if wanted.contains(&at) {
            return Came::To(here.step);
        }
        // Skips the rest of a block that has none of the addresses.
        let Element::Block(block) = here.element else { continue };
        if wanted.range(block.start..block.end).next().is_none() {
            let end = here.before.steps + u64::from(block.instructions) - 1;
            let start = here.before.steps;
            recording.cursor.seek_step(if query.back { start } else { end });
        }
    }
    recording.cursor.current().map_or(Came::Nowhere, |here| Came::Only(here.step))
}
