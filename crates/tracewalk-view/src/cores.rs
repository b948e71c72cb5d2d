//! The functions that ran on the other cores at the same time: a lane for each of the capture's other sources, on the
//! ruler of the source that is shown.
//!
//! ```text
//! a step of this source ─▶ its timestamp, or its byte of the capture ─▶ the step of each other source at the same place
//! ```
//!
//! The window is divided into parts, and a lane shows only the function that runs at the beginning of each part.

use serde_json::{Value, json};
use tracewalk::flow::Element;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::Position;

use crate::query::Query;
use crate::recording::Recording;
use crate::shown::seen;

/// The width of a part of the window, roughly, in pixels.
const PART: u64 = 12;
/// The most parts of a window: each is a jump in each source.
const MOST_PARTS: u64 = 96;
/// How many steps are searched for an instruction.
const NEAR: usize = 64;

/// The ruler on which sources are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ruler {
    /// Timestamps, if all sources have them.
    Time,
    /// Bytes of the capture, if the sources are in the same buffer.
    Byte,
}

impl Ruler {
    const fn name(self) -> &'static str {
        match self {
            Self::Time => "timestamp",
            Self::Byte => "byte of the capture",
        }
    }
}

/// The function that runs on another core between two steps of the source that is shown.
struct Bar {
    from: u64,
    to: u64,
    /// The function's name; `None` for a gap.
    name: Option<String>,
    /// The other source's step.
    step: u64,
}

/// The lanes of the other sources between two steps of one.
pub(crate) fn of(recordings: &mut [Recording<'_>], query: &Query) -> Value {
    let ruler = ruler(recordings, query.source);
    let Some(positions) = ruler.and_then(|ruler| positions(recordings, query, ruler)) else {
        return json!({ "ruler": null, "lanes": [] });
    };
    let others = recordings.iter_mut().enumerate().filter(|(source, _)| *source != query.source);
    let lanes = others.filter(|(_, other)| other.totals().steps > 0).map(|(source, other)| {
        let bars = lane(other, &positions).into_iter();
        let bars = bars.map(|Bar { from, to, name, step }| json!([from, to, name, step]));
        json!({ "source": source, "name": other.name, "bars": bars.collect::<Vec<_>>() })
    });
    let lanes = lanes.collect::<Vec<_>>();
    json!({ "ruler": ruler.map(Ruler::name), "lanes": lanes })
}

/// The ruler of the sources; `None` if there is only one source, or they have nothing in common.
fn ruler(recordings: &[Recording<'_>], source: usize) -> Option<Ruler> {
    let with_steps = || recordings.iter().filter(|recording| recording.totals().steps > 0);
    let shown = recordings.get(source)?;
    match with_steps().count() {
        ..2 => None,
        _ if with_steps().all(|recording| recording.totals().time > 0) => Some(Ruler::Time),
        _ if with_steps().all(|recording| recording.buffer == shown.buffer) => Some(Ruler::Byte),
        _ => None,
    }
}

/// The beginnings of the window's parts, and its end: steps of the source that is shown, and their places on the ruler.
fn positions(recordings: &mut [Recording<'_>], query: &Query, ruler: Ruler) -> Option<Vec<(u64, Position)>> {
    let shown = recordings.get_mut(query.source)?;
    let to = query.to.min(shown.totals().steps);
    let from = query.from.min(to);
    let parts = (query.width / PART).clamp(1, MOST_PARTS).min((to - from).max(1));
    let mut positions = Vec::new();
    for part in 0..=parts {
        // A window has fewer steps than 2^57.
        let step = from + (to - from) * part / parts;
        if !shown.cursor.seek_step(step.min(to.saturating_sub(1))) {
            break;
        }
        let here = shown.cursor.current()?;
        let position = match ruler {
            Ruler::Time => Position::Time(here.before.time),
            Ruler::Byte => Position::Capture(CaptureOffset(here.at.0)),
        };
        positions.push((step, position));
    }
    Some(positions)
}

/// The functions that run on another core at these places.
fn lane(other: &mut Recording<'_>, positions: &[(u64, Position)]) -> Vec<Bar> {
    let mut bars = Vec::<Bar>::new();
    for part in positions.windows(2) {
        let &[(from, position), (to, _)] = part else { continue };
        // The other source has ended before this place.
        let Some(step) = other.step_at(position) else { break };
        let name = running(other);
        match bars.last_mut() {
            Some(last) if last.to == from && last.name == name => last.to = to,
            _ => bars.push(Bar { from, to, name, step }),
        }
    }
    bars
}

/// The function that runs at the cursor, or soon after; `None` in a gap.
fn running(recording: &mut Recording<'_>) -> Option<String> {
    for _ in 0..NEAR {
        let here = recording.cursor.current()?;
        if matches!(here.element, Element::Gap(_)) {
            return None;
        }
        if let Some(instruction) = here.instruction {
            let at = instruction.location.address;
            let (_, code) = seen(&recording.code, here.context);
            return Some(
                code.symbols.function(at).map_or_else(|| at.to_string(), |function| function.name.to_owned()),
            );
        }
        if !recording.cursor.step() {
            return None;
        }
    }
    None
}
