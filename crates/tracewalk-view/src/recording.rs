//! One source that answers questions about any part of it.

use std::sync::Arc;

use serde_json::{Value, json};
use tracewalk::flow::{Block, Element, Ending, EventKind};
use tracewalk_analysis::call_stack::{CallStack, Frame, FrameKind};
use tracewalk_analysis::drive::{Cursor, FlowIndex, Totals, steps};
use tracewalk_analysis::values::Near;
use tracewalk_analysis::{Code, Position};

use crate::frames::Began;
use crate::names::{Names, hex};
use crate::overview::{Growing, Overview};
use crate::prepared::PreparedSource;
use crate::shown::{Row, row, seen};

/// One source.
pub(crate) struct Recording<'i> {
    pub(crate) name: String,
    /// The index of the source's buffer.
    pub(crate) buffer: usize,
    pub(crate) code: Arc<Code>,
    index: &'i FlowIndex<'i>,
    pub(crate) overview: Arc<Overview>,
    growing: &'i Growing,
    /// Moves between places.
    pub(crate) cursor: Cursor<'i>,
    /// Follows calls up to a place.
    follower: Cursor<'i>,
    pub(crate) calls: CallStack<u64>,
    /// The calls of the steps before this one have been followed.
    followed: u64,
    pub(crate) names: Names,
    /// What the path proves of registers and memory.
    pub(crate) values: Near<'i>,
}

/// The most rows in one answer.
pub(crate) const MOST_ROWS: u64 = 4096;

impl<'i> Recording<'i> {
    pub(crate) fn new(prepared: &'i PreparedSource, index: &'i FlowIndex<'i>) -> Self {
        let code = Arc::clone(&prepared.code);
        Self {
            name: prepared.name.clone(),
            buffer: prepared.source.buffer,
            index,
            overview: prepared.overview.now(),
            growing: &prepared.overview,
            cursor: index.cursor(),
            follower: index.cursor(),
            calls: CallStack::new(Arc::clone(&code)),
            code,
            followed: 0,
            names: Names::default(),
            values: Near::new(prepared.values.clone(), Arc::clone(&prepared.code), index),
        }
    }

    /// Takes the newest overview.
    pub(crate) fn refresh(&mut self) {
        if !self.overview.is_whole {
            self.overview = self.growing.now();
        }
    }

    pub(crate) const fn totals(&self) -> Totals {
        self.index.totals()
    }

    /// The totals of the source.
    pub(crate) fn summary(&self) -> Value {
        let Totals { steps, instructions, exceptions, cycles, time, .. } = self.totals();
        json!({
            "name": self.name,
            "steps": steps,
            "instructions": instructions,
            "exceptions": exceptions,
            "cycles": cycles,
            "time": time,
            "gaps": self.overview.gap_count,
            "texts": self.overview.texts.len(),
            "texts_left_out": self.overview.texts_left_out,
            "tasks": self.overview.tasks.len(),
            "followed": if self.overview.is_whole { steps } else { self.overview.steps },
            "complete": self.index.is_complete(),
        })
    }

    /// Some rows of the list.
    pub(crate) fn rows(&mut self, from: u64, count: u64) -> Value {
        let mut rows = Vec::<Row>::new();
        self.each_row(from, count.min(MOST_ROWS), &mut |row| rows.push(row));
        json!({ "rows": rows })
    }

    /// Calls `each` with some rows.
    pub(crate) fn each_row(&mut self, from: u64, count: u64, each: &mut dyn FnMut(Row)) {
        let to = from.saturating_add(count).min(self.totals().steps);
        if from >= to || !self.cursor.seek_step(from) {
            return;
        }
        let Some(start) = self.cursor.current().map(|here| here.before.steps) else { return };
        let is_known = self.follow(start);
        let mut element = None;
        while let Some(here) = self.cursor.current().filter(|here| here.step < to) {
            if is_known && element.replace(here.before.steps) != Some(here.before.steps) {
                self.calls.element(here.element, &mut Began(here.before.steps));
                self.followed = here.before.steps + steps(here.element);
            }
            let depth = if is_known { self.calls.depth() } else { 0 };
            each(row(&here, depth, &self.code, &mut self.names));
            if !self.cursor.step() {
                break;
            }
        }
    }

    /// Everything known about a place.
    pub(crate) fn here(&mut self, step: u64) -> Option<Value> {
        if !self.cursor.seek_step(step) {
            return None;
        }
        let start = self.cursor.current()?.before.steps;
        let is_known = self.follow(start);
        let here = self.cursor.current()?;
        let before = self.calls.checkpoint();
        let shown = row(&here, 0, &self.code, &mut self.names);
        // A frame may begin within a block: only instructions up to the place count.
        let element = match (here.element, here.instruction) {
            (Element::Block(block), Some(at)) if !at.is_last => Element::Block(Block {
                end: self.code.after(at.location),
                instructions: u32::try_from(here.step - start + 1).unwrap_or(u32::MAX),
                last: at.location.address,
                ending: Ending::Interrupted,
                ..*block
            }),
            (element, _) => *element,
        };
        let (at, totals, context) = (here.at.0, here.before, here.context);
        let instructions = here.instruction.map_or(totals.instructions, |instruction| instruction.number);
        self.calls.element(&element, &mut Began(start));
        let task = self.calls.task().to_string();
        let mut frames = self.calls.frames().map(|frame| self.frame(frame)).collect::<Vec<_>>();
        frames.reverse();
        frames.truncate(MOST_FRAMES);
        let frames = is_known.then_some(frames);
        let depth = if is_known { self.calls.depth() } else { 0 };
        self.calls.go_on_from(&before);
        let context = match context {
            Some(kind @ EventKind::Context { .. }) => Some(kind.to_string()),
            _ => None,
        };
        Some(json!({
            "row": Row { depth, ..shown },
            "offset": at,
            "frames": frames,
            "task": is_known.then_some(task),
            "context": context,
            "before": {
                "instructions": instructions,
                "exceptions": totals.exceptions,
                "cycles": totals.cycles,
                "time": totals.time,
            },
        }))
    }

    fn frame(&self, frame: &Frame<u64>) -> Value {
        let (kind, site) = match frame.kind {
            FrameKind::Root => ("root", None),
            FrameKind::Call { site, .. } => ("call", site),
            FrameKind::Exception(_) => ("exception", None),
        };
        let exception = match frame.kind {
            FrameKind::Exception(interruption) => {
                interruption.exception.map(|exception| self.code.interrupts.describe(exception).to_string())
            }
            _ => None,
        };
        let scope = frame.function.scope();
        let place = site.and_then(|site| self.code.in_scope(scope).symbols.innermost(site));
        json!({
            "function": frame.function.name(&self.code),
            "kind": kind,
            "exception": exception,
            "began": frame.mark,
            "site": site.map(hex),
            "file": place.as_ref().and_then(|place| place.file.clone()),
            "line": place.as_ref().and_then(|place| place.line),
        })
    }

    /// Follows calls up to a step, which is the first one of its element. Returns whether the calls at the step are
    /// known.
    pub(crate) fn follow(&mut self, until: u64) -> bool {
        if !self.overview.reaches(until) {
            return false;
        }
        let Some((start, checkpoint)) = self.overview.stacks.before(until) else { return true };
        if self.followed > until || self.followed < *start {
            self.calls.go_on_from(checkpoint);
            self.followed = *start;
        }
        if self.followed < until && self.follower.seek_step(self.followed) {
            while self.followed < until
                && let Some(here) = self.follower.current()
            {
                self.calls.element(here.element, &mut Began(self.followed));
                self.followed += steps(here.element);
                if !self.follower.next_element() {
                    break;
                }
            }
        }
        true
    }

    /// Notes that calls have been followed up to a step.
    pub(crate) const fn followed_to(&mut self, step: u64) {
        self.followed = step;
    }

    /// The texts that ITMs sent.
    pub(crate) fn texts(&self) -> Value {
        json!({ "texts": self.overview.texts.iter().take(MOST_TEXTS).collect::<Vec<_>>() })
    }

    /// The step at a position of this source.
    pub(crate) fn step_at(&mut self, position: Position) -> Option<u64> {
        self.cursor.seek(position).then(|| self.cursor.current().map(|here| here.step)).flatten()
    }

    /// Whether a debugger would stop at the cursor's step.
    pub(crate) fn is_place(&self) -> bool {
        self.cursor.current().is_some_and(|here| match here.element {
            Element::Block(_) | Element::Gap(_) => true,
            Element::Event(event) => matches!(event.kind, EventKind::Exception { .. }),
            Element::Proof(_) => false,
        })
    }

    /// The program as seen at the cursor.
    pub(crate) fn seen(&self) -> &Code {
        seen(&self.code, self.cursor.current().and_then(|here| here.context)).1
    }
}

/// The most frames that are listed.
const MOST_FRAMES: usize = 512;
/// The most texts that are listed.
const MOST_TEXTS: usize = 1 << 16;
