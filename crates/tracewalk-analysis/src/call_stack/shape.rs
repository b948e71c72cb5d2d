//! Numbers for the states of a call stack: equal states have the same number.

use tracewalk::program::{Scope, ViewId};

use super::CallStack;
use super::frame::{CellId, Frame, FrameKind, FunctionId, Task};
use super::stack::{Jump, Next, Origin};
use crate::quick::QuickIndex;

/// The number of a state: everything that the effect of the next elements on a call stack depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShapeId(pub(super) u32);

/// The states that were seen.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    cells: Vec<Cell>,
    cell_index: QuickIndex,
    rests: Vec<Rest>,
    rest: usize,
    shapes: Vec<Shape>,
    shape_index: QuickIndex,
    /// The last cell that was forgotten. The others follow, in the order of the list.
    forgotten: CellId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Cell {
    below: CellId,
    kind: FrameKind,
    function: FunctionId,
    schedules: bool,
    /// The mark by which an observer distinguishes frames.
    mark: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Shape {
    top: CellId,
    rest: usize,
    next: Next,
}

/// The parts of a state that seldom change.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rest {
    jumps: Vec<Jump>,
    origin: Origin,
    task: Task,
    view: ViewId,
    context: Scope,
    /// Whether no other task waits.
    is_alone: bool,
}

/// The most cells that are kept.
const MOST_CELLS: usize = 1 << 16;
const MOST_SHAPES: usize = 1 << 16;
const MOST_RESTS: usize = 1 << 10;
/// The depth of the deepest stack with a number.
const DEEPEST: usize = 1 << 10;

impl Shapes {
    /// Whether [`Shapes::forget`] is due before more states can be numbered.
    pub(super) fn is_full(&self) -> bool {
        self.cells.len() >= MOST_CELLS || self.shapes.len() >= MOST_SHAPES || self.rests.len() >= MOST_RESTS
    }

    /// Forgets all states.
    pub(super) fn forget(&mut self) {
        let cells = u32::try_from(self.cells.len()).unwrap_or(u32::MAX);
        *self = Self { forgotten: CellId(self.forgotten.0.saturating_add(cells)), ..Self::default() };
    }

    /// The pending step before the next block in a state.
    pub(super) fn next(&self, shape: ShapeId) -> Option<Next> {
        self.shapes.get(shape.0 as usize).map(|shape| shape.next)
    }

    /// Whether two states differ only in frames and in the pending step.
    pub(super) fn differ_in_frames(&self, one: ShapeId, other: ShapeId) -> bool {
        let rest = |shape: ShapeId| self.shapes.get(shape.0 as usize).map(|shape| shape.rest);
        rest(one) == rest(other)
    }

    /// Restores a stack's jumps and origin from a state.
    pub(super) fn resume<M>(&self, shape: ShapeId, calls: &mut CallStack<M>) {
        let rest = self.shapes.get(shape.0 as usize).and_then(|shape| self.rests.get(shape.rest));
        if let Some(rest) = rest {
            calls.stack.jumps.clone_from(&rest.jumps);
            calls.stack.origin.clone_from(&rest.origin);
        }
    }

    /// The state of a stack whose frames these keys distinguish; `None` for a stack that is too deep or too unusual to cache.
    pub(super) fn of<M>(&mut self, calls: &mut CallStack<M>, key: impl Fn(&M) -> u32) -> Option<ShapeId> {
        let depth = calls.stack.frames.len();
        if calls.next_task.is_some() || depth == 0 || depth > DEEPEST || self.is_full() {
            return None;
        }
        let top = self.top(calls, key);
        let shape = Shape { top, rest: self.rest(calls), next: calls.next };
        Some(ShapeId(self.shape_index.number(&mut self.shapes, shape)))
    }

    fn top<M>(&mut self, calls: &mut CallStack<M>, key: impl Fn(&M) -> u32) -> CellId {
        let frames = &mut calls.stack.frames;
        let forgotten = self.forgotten;
        let known = frames.iter().rposition(|frame| frame.cell > forgotten);
        let mut top = known.and_then(|known| frames.get(known)).map_or(CellId::UNKNOWN, |frame| frame.cell);
        for frame in frames.range_mut(known.map_or(0, |known| known + 1)..) {
            let Frame { kind, function, schedules, .. } = *frame;
            let cell = Cell { below: top, kind, function, schedules, mark: key(&frame.mark) };
            let place = self.cell_index.number(&mut self.cells, cell);
            top = CellId(forgotten.0.saturating_add(place + 1));
            frame.cell = top;
        }
        top
    }

    fn rest<M>(&mut self, calls: &CallStack<M>) -> usize {
        let (view, context) = calls.functions.code().seen();
        let is_same = |rest: &Rest| {
            rest.view == view
                && rest.context == context
                && rest.task == calls.stack.task
                && rest.origin == calls.stack.origin
                && rest.jumps == calls.stack.jumps
                && rest.is_alone == calls.parked.is_empty()
        };
        if !self.rests.get(self.rest).is_some_and(is_same) {
            let known = self.rests.iter().position(is_same);
            self.rest = known.unwrap_or_else(|| {
                let (jumps, origin) = (calls.stack.jumps.clone(), calls.stack.origin.clone());
                let (task, is_alone) = (calls.stack.task, calls.parked.is_empty());
                self.rests.push(Rest { jumps, origin, task, view, context, is_alone });
                self.rests.len() - 1
            });
        }
        self.rest
    }
}
