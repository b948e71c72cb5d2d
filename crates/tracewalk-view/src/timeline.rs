//! A picture of some steps: the functions that ran, by depth of calls, and events.
//!
//! A window that can be followed while the user waits is drawn exactly, with bars narrower than a pixel joined. A
//! larger window is drawn from the overview: each piece shows the functions that ran at its beginning.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use tracewalk::flow::{Element, EventKind};
use tracewalk_analysis::drive::steps;

use crate::frames::{Began, Drawn, Functions, drawn};
use crate::recording::Recording;

/// The most steps that are drawn exactly.
const MOST_EXACT: u64 = 1 << 21;
/// The number that stands for functions too narrow to be distinguished.
const MANY: i64 = -1;
/// The most pixels of a page.
const WIDEST: u64 = 8192;

/// A bar: depth, first step, the step after the last one, the number of the function, and whether it handles an
/// exception.
#[derive(Clone, Copy, Debug, Serialize)]
struct Bar(usize, u64, u64, i64, u8);

/// Makes bars of running functions.
struct Bars {
    /// The number of steps in a pixel.
    pixel: u64,
    open: Vec<(Drawn, u64)>,
    bars: Vec<Bar>,
    /// The last bar of each depth.
    last: Vec<Option<usize>>,
}

impl Bars {
    const fn new(pixel: u64) -> Self {
        Self { pixel, open: Vec::new(), bars: Vec::new(), last: Vec::new() }
    }

    /// Notes that frames run from a step on.
    fn run(&mut self, frames: &[Drawn], now: u64) {
        let same = self.open.iter().zip(frames).take_while(|((open, _), frame)| open == *frame).count();
        self.close(same, now);
        self.open.extend(frames.iter().skip(same).map(|frame| (*frame, now)));
    }

    /// Notes that frames deeper than this end at a step.
    fn close(&mut self, depth: usize, now: u64) {
        while self.open.len() > depth
            && let Some((frame, from)) = self.open.pop()
        {
            self.bar(self.open.len(), from, now, frame);
        }
    }

    fn bar(&mut self, depth: usize, from: u64, to: u64, frame: Drawn) {
        if to <= from {
            return;
        }
        if self.last.len() <= depth {
            self.last.resize(depth + 1, None);
        }
        let last = self.last.get(depth).copied().flatten();
        let is_narrow = |from: u64, to: u64| to - from < self.pixel;
        let function = i64::from(frame.function);
        if let Some(bar) = last.and_then(|last| self.bars.get_mut(last))
            && from - bar.2.min(from) < self.pixel
            && is_narrow(from, to)
            && (is_narrow(bar.1, bar.2) || bar.3 == MANY)
        {
            bar.2 = to;
            bar.3 = if bar.3 == function { function } else { MANY };
            return;
        }
        if let Some(slot) = self.last.get_mut(depth) {
            *slot = Some(self.bars.len());
        }
        self.bars.push(Bar(depth, from, to, function, frame.is_exception.into()));
    }
}

/// Joins marks that are closer than a pixel.
struct Marks {
    pixel: u64,
    marks: Vec<(u64, u64, String)>,
}

impl Marks {
    const fn new(pixel: u64) -> Self {
        Self { pixel, marks: Vec::new() }
    }

    fn add(&mut self, at: u64, count: u64, name: impl FnOnce() -> String) {
        match self.marks.last_mut() {
            Some((last, many, _)) if at.saturating_sub(*last) < self.pixel => *many += count,
            _ => self.marks.push((at, count, name())),
        }
    }
}

pub(crate) fn of(recording: &mut Recording<'_>, from: u64, to: u64, width: u64) -> Value {
    let all = recording.totals().steps;
    let to = to.min(all);
    let from = from.min(to);
    let pixel = ((to - from) / width.clamp(1, WIDEST)).max(1);
    let mut functions = Functions::default();
    let is_exact = to - from <= MOST_EXACT && (to == from || recording.overview.reaches(to - 1));
    let (bars, exceptions, gaps) = match is_exact {
        true => exact(recording, (from, to), pixel, &mut functions),
        false => coarse(recording, (from, to), pixel, &mut functions),
    };
    let names = (0..).take(functions.known.len()).map(|number| functions.name(number, &recording.code));
    let names = names.collect::<Vec<_>>();
    let overview = Arc::clone(&recording.overview);
    let mut texts = Marks::new(pixel);
    let first = overview.texts.partition_point(|(at, ..)| *at < from);
    for (at, _, text) in overview.texts.iter().skip(first).take_while(|(at, ..)| *at < to) {
        texts.add(*at, 1, || text.clone());
    }
    json!({
        "from": from,
        "to": to,
        "exact": is_exact,
        "names": names,
        "bars": bars,
        "exceptions": exceptions,
        "gaps": gaps,
        "texts": texts.marks,
        "tasks": tasks(recording, from, to, pixel),
    })
}

type Pictured = (Vec<Bar>, Vec<(u64, u64, String)>, Vec<(u64, u64, String)>);

fn exact(
    recording: &mut Recording<'_>,
    (from, to): (u64, u64),
    pixel: u64,
    functions: &mut Functions,
) -> Pictured {
    let (mut bars, mut exceptions, mut gaps) = (Bars::new(pixel), Marks::new(pixel), Marks::new(pixel));
    let mut frames = Vec::new();
    if from >= to || !recording.cursor.seek_step(from) {
        return (Vec::new(), Vec::new(), Vec::new());
    }
    let start = recording.cursor.current().map_or(from, |here| here.before.steps);
    recording.follow(start);
    let mut end = from;
    while let Some(here) = recording.cursor.current().filter(|here| here.before.steps < to) {
        let now = here.before.steps.max(from);
        recording.calls.element(here.element, &mut Began(here.before.steps));
        drawn(&recording.calls, functions, &mut frames);
        bars.run(&frames, now);
        end = here.before.steps + steps(here.element);
        match here.element {
            Element::Gap(gap) => gaps.add(now, 1, || gap.reason.to_string()),
            Element::Event(event) => {
                if let EventKind::Exception { exception, .. } = event.kind {
                    let name = || match exception {
                        Some(exception) => recording.code.interrupts.describe(exception).to_string(),
                        None => "an exception".to_owned(),
                    };
                    exceptions.add(now, 1, name);
                }
            }
            Element::Block(_) | Element::Proof(_) => {}
        }
        if !recording.cursor.next_element() {
            break;
        }
    }
    recording.followed_to(end);
    bars.close(0, end.min(to));
    (bars.bars, exceptions.marks, gaps.marks)
}

fn coarse(
    recording: &Recording<'_>,
    (from, to): (u64, u64),
    pixel: u64,
    functions: &mut Functions,
) -> Pictured {
    let overview = &*recording.overview;
    let (mut bars, mut exceptions, mut gaps) = (Bars::new(pixel), Marks::new(pixel), Marks::new(pixel));
    let first = from / overview.distance.max(1);
    let skipped = usize::try_from(first).unwrap_or(usize::MAX);
    let mut frames = Vec::new();
    for (number, piece) in (first..).zip(overview.pieces.iter().skip(skipped)) {
        let at = number.saturating_mul(overview.distance);
        if at >= to {
            break;
        }
        let now = at.max(from);
        frames.clear();
        frames.extend(piece.frames.iter().filter_map(|frame| {
            let known =
                usize::try_from(frame.function).ok().and_then(|known| overview.functions.known.get(known));
            Some(Drawn { function: functions.number(*known?), began: 0, ..*frame })
        }));
        bars.run(&frames, now);
        if piece.exceptions > 0 {
            exceptions.add(now, piece.exceptions.into(), String::new);
        }
        if piece.gaps > 0 {
            gaps.add(now, piece.gaps.into(), String::new);
        }
    }
    // Steps that were not followed yet are not drawn.
    let end = if overview.is_whole { to } else { to.min(overview.steps) };
    bars.close(0, end);
    (bars.bars, exceptions.marks, gaps.marks)
}

/// The tasks that ran, if there are several: the first step of each stretch, the step after its last one, and the task.
fn tasks(recording: &Recording<'_>, from: u64, to: u64, pixel: u64) -> Vec<(u64, u64, String)> {
    let known = &recording.overview.tasks;
    if known.len() < 2 {
        return Vec::new();
    }
    let first = known.partition_point(|(at, _)| *at <= from).saturating_sub(1);
    let mut tasks = Vec::<(u64, u64, String)>::new();
    for (index, (at, task)) in known.iter().enumerate().skip(first) {
        if *at >= to {
            break;
        }
        let end = known.get(index + 1).map_or(to, |(next, _)| *next).min(to);
        match tasks.last_mut() {
            // A stretch narrower than a pixel is joined to the one before.
            Some(last) if end - *at < pixel && last.1 - last.0 < pixel => last.1 = end,
            _ => tasks.push(((*at).max(from), end, task.name(&recording.code))),
        }
    }
    tasks
}
