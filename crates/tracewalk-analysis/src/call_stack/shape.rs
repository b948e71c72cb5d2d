//! Numbers for the states of a call stack: equal states have the same number.

use tracewalk::program::{Scope, ViewId};

use super::CallStack;
use super::frame::{CellId, Frame, FrameKind, FunctionId, Task};
use super::stack::{Jump, Next, Origin};
use crate::quick::QuickMap;

/// The number of a state: everything that the effect of the next elements on a call stack depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShapeId(pub(super) u32);

/// The states that were seen, of a stack whose frames have marks, `M`.
#[derive(Debug)]
pub(super) struct Shapes<M> {
    cells: QuickMap<Cell, CellId>,
    /// The frame of each cell, in the order of their numbers.
    placed: Vec<Placed<M>>,
    rests: Vec<Rest>,
    rest: usize,
    numbers: QuickMap<Shape, ShapeId>,
    shapes: Vec<Shape>,
    /// The last cell that was forgotten.
    forgotten: CellId,
    last: CellId,
    /// The frames that are being restored, innermost first.
    restored: Vec<Frame<M>>,
}

/// The innermost frame of a cell.
#[derive(Clone, Copy, Debug)]
struct Placed<M> {
    below: CellId,
    /// The number of frames, with this one.
    depth: u32,
    frame: Frame<M>,
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

impl<M> Default for Shapes<M> {
    fn default() -> Self {
        Self {
            cells: QuickMap::default(),
            placed: Vec::new(),
            rests: Vec::new(),
            rest: 0,
            numbers: QuickMap::default(),
            shapes: Vec::new(),
            forgotten: CellId::UNKNOWN,
            last: CellId::UNKNOWN,
            restored: Vec::new(),
        }
    }
}

impl<M: Copy> Shapes<M> {
    /// Whether [`Shapes::forget`] is due before more states can be numbered.
    pub(super) fn is_full(&self) -> bool {
        self.cells.len() >= MOST_CELLS || self.shapes.len() >= MOST_SHAPES || self.rests.len() >= MOST_RESTS
    }

    /// Forgets all states.
    pub(super) fn forget(&mut self) {
        let last = self.last;
        *self = Self { forgotten: last, last, ..Self::default() };
    }

    /// The pending step before the next block in a state.
    pub(super) fn next(&self, shape: ShapeId) -> Option<Next> {
        self.shapes.get(shape.0 as usize).map(|shape| shape.next)
    }

    /// The number of frames in a state.
    pub(super) fn depth(&self, shape: ShapeId) -> usize {
        let top = self.shapes.get(shape.0 as usize).and_then(|shape| self.placed(shape.top));
        top.map_or(0, |top| top.depth as usize)
    }

    /// Changes a stack from one state to another, apart from the pending step. Frames that are in both keep their marks; a frame
    /// that is entered has the mark that its cell had first.
    pub(super) fn restore(&mut self, from: ShapeId, to: ShapeId, calls: &mut CallStack<M>) {
        let known = |shape: ShapeId| self.shapes.get(shape.0 as usize).copied();
        let (Some(from), Some(to)) = (known(from), known(to)) else { return };
        let frames = &mut calls.stack.frames;
        let (mut cell, mut depth) = (to.top, 0);
        while let Some(placed) = self.placed(cell) {
            depth = placed.depth as usize;
            if frames.get(depth - 1).is_some_and(|frame| frame.cell == cell) {
                break;
            }
            let frame = Frame { cell, ..placed.frame };
            (cell, depth) = (placed.below, depth - 1);
            self.restored.push(frame);
        }
        frames.truncate(depth);
        frames.extend(self.restored.drain(..).rev());
        if from.rest != to.rest
            && let Some(rest) = self.rests.get(to.rest)
        {
            calls.stack.jumps.clone_from(&rest.jumps);
            calls.stack.origin.clone_from(&rest.origin);
        }
    }

    /// The innermost frame of a cell that is not forgotten.
    fn placed(&self, cell: CellId) -> Option<&Placed<M>> {
        let index = cell.0.checked_sub(self.forgotten.0 + 1)?;
        self.placed.get(index as usize)
    }

    /// The state of a stack whose frames these keys distinguish; `None` for a stack that is too deep or too unusual to cache.
    pub(super) fn of(&mut self, calls: &mut CallStack<M>, key: impl Fn(&M) -> u32) -> Option<ShapeId> {
        let depth = calls.stack.frames.len();
        if calls.next_task.is_some() || depth == 0 || depth > DEEPEST || self.is_full() {
            return None;
        }
        let top = self.top(calls, key);
        let shape = Shape { top, rest: self.rest(calls), next: calls.next };
        let Self { numbers, shapes, .. } = self;
        Some(*numbers.entry(shape).or_insert_with(|| {
            shapes.push(shape);
            ShapeId(u32::try_from(shapes.len() - 1).unwrap_or(u32::MAX))
        }))
    }

    fn top(&mut self, calls: &mut CallStack<M>, key: impl Fn(&M) -> u32) -> CellId {
        let frames = &mut calls.stack.frames;
        // The outermost frames may have been dropped since a cell was numbered.
        let depth_of = |frame: &Frame<M>| self.placed(frame.cell).map_or(0, |placed| placed.depth as usize);
        let known =
            (1..=frames.len()).rev().find(|depth| frames.get(*depth - 1).map(depth_of) == Some(*depth));
        let known = known.unwrap_or(0);
        let mut top =
            known.checked_sub(1).and_then(|last| frames.get(last)).map_or(CellId::UNKNOWN, |last| last.cell);
        for (depth, frame) in (known as u32 + 1..).zip(frames.range_mut(known..)) {
            let Frame { kind, function, schedules, .. } = *frame;
            let cell = Cell { below: top, kind, function, schedules, mark: key(&frame.mark) };
            let Self { cells, placed, last, .. } = self;
            let below = top;
            top = *cells.entry(cell).or_insert_with(|| {
                last.0 = last.0.saturating_add(1);
                placed.push(Placed { below, depth, frame: *frame });
                *last
            });
            frame.cell = top;
        }
        top
    }

    fn rest(&mut self, calls: &CallStack<M>) -> usize {
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
