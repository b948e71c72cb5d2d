//! The spans of running functions, exceptions and tasks, and the position of execution.

use tracewalk::flow::Block;

use super::item::{Certainty, Change, Finish, SpanId, Start, What};
use super::place::Place;
use super::tracks::{RowId, Tracks};
use crate::call_stack::{Entry, Evidence, Frame, FrameKind, FunctionId, Left, Observer, Piece, Run, Task};
use crate::clock::share;

/// The observer's mark of a running function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    row: RowId,
    function: SpanId,
    /// The exception that its frame handles.
    exception: Option<(SpanId, RowId)>,
}

/// Makes spans from a call stack's reports, and collects the changes.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) spans: Spans,
    /// Changes that were not taken yet.
    pub(super) changes: Vec<(Place, Change)>,
}

/// The open spans, and the position of execution.
#[derive(Debug)]
pub(super) struct Spans {
    pub(super) tracks: Tracks,
    pub(super) task: Task,
    /// Whether places are counted in cycles.
    pub(super) by_cycles: bool,
    /// Whether functions have spans.
    pub(super) functions: bool,
    /// The end of the current block, and the number of its remaining instructions.
    block_end: u64,
    block_rest: u64,
    /// The exception whose handler's frame is being taken over.
    replaced: Option<(SpanId, RowId)>,
    /// Whether anything has run.
    pub(super) begun: bool,
}

impl Recorder {
    /// Spans before the first element.
    pub(super) fn new(task: Task, by_cycles: bool) -> Self {
        let spans = Spans {
            tracks: Tracks::default(),
            task,
            by_cycles,
            functions: true,
            block_end: 0,
            block_rest: 0,
            replaced: None,
            begun: false,
        };
        Self { spans, changes: Vec::new() }
    }

    /// The current block has ended.
    pub(super) fn end_block(&mut self) {
        self.spans.end_block();
    }

    /// A block of `instructions` instructions begins, with this cost.
    pub(super) fn begin_block(&mut self, count: u64, instructions: u32) {
        self.spans.begin_block(count, instructions.into());
    }

    /// An event without a length happens.
    pub(super) fn mark(&mut self, place: Place, change: Change) {
        self.changes.push((place, change));
    }

    /// Ends everything that is open on a track.
    pub(super) fn end_all(&mut self, row: RowId, finish: Finish) {
        let Self { spans, changes, .. } = self;
        spans.tracks.end_all(row, finish, &mut |place, change| changes.push((place, change)));
    }

    /// Begins a span on a track that has none.
    pub(super) fn begin(&mut self, row: RowId, what: What) {
        let Self { spans, changes, .. } = self;
        spans.tracks.begin(row, what, Start::Here, &mut |place, change| changes.push((place, change)));
    }
}

impl Spans {
    #[inline]
    fn begin_block(&mut self, count: u64, instructions: u64) {
        self.block_end = self.tracks.now.count.saturating_add(count);
        self.block_rest = instructions;
    }

    #[inline]
    const fn end_block(&mut self) {
        self.tracks.now = Place { count: self.block_end, certainty: Certainty::Exact };
        self.begun = true;
    }

    /// Instructions run here.
    #[inline]
    fn begin_running(&mut self, out: &mut impl FnMut(Place, Change)) {
        self.begin_task(out);
        if self.tracks.is_open(RowId::GAPS) {
            self.tracks.end_all(RowId::GAPS, Finish::Returned, out);
        }
    }

    /// The task runs from here on, unless it does already.
    #[inline]
    fn begin_task(&mut self, out: &mut impl FnMut(Place, Change)) {
        if !self.tracks.is_open(RowId::RUNNING) {
            self.tracks.begin(RowId::RUNNING, What::Task(self.task), Start::Here, out);
        }
    }

    /// A number of instructions of the block runs.
    fn run_piece(&mut self, instructions: u64, out: &mut impl FnMut(Place, Change)) {
        self.begin_running(out);
        let rest = self.block_end.saturating_sub(self.tracks.now.count);
        self.tracks.now.count += share(rest, 0, instructions, self.block_rest);
        self.block_rest = self.block_rest.saturating_sub(instructions);
        let is_counted = self.block_rest == 0 || !self.by_cycles;
        self.tracks.now.certainty = if is_counted { Certainty::Exact } else { Certainty::Interpolated };
    }

    /// Whole blocks run, with this cost.
    #[inline]
    fn run_blocks(&mut self, count: u64, out: &mut impl FnMut(Place, Change)) {
        self.begin_running(out);
        self.block_end = self.tracks.now.count.saturating_add(count);
        self.end_block();
    }

    fn leave_frame(&mut self, marks: &Marks, how: Left, out: &mut impl FnMut(Place, Change)) {
        let Marks { row, function, exception } = *marks;
        if self.functions {
            self.tracks.end(function, row, how.into(), out);
        }
        match (exception, how) {
            (None, _) => {}
            (Some(exception), Left::Replaced) => self.replaced = Some(exception),
            (Some((id, row)), _) => self.tracks.end(id, row, how.into(), out),
        }
    }

    pub(super) const fn pass(&mut self, cycles: u64) {
        if self.by_cycles {
            self.tracks.now.count = self.tracks.now.count.saturating_add(cycles);
            self.tracks.now.certainty = Certainty::Exact;
        }
    }

    fn enter_frame(
        &mut self,
        below: Option<RowId>,
        (kind, function, entry): (FrameKind, FunctionId, Entry),
        out: &mut impl FnMut(Place, Change),
    ) -> Marks {
        let start = match entry {
            Entry::Found | Entry::Regained => Start::Earlier,
            Entry::Called | Entry::TailCalled | Entry::Joined | Entry::Interrupting => Start::Here,
        };
        let replaced = self.replaced.take();
        if self.begun && matches!(kind, FrameKind::Exception(_)) {
            // The exception interrupts the task that goes on here, though nothing of it may have run.
            self.begin_task(out);
        }
        let exception = match kind {
            FrameKind::Exception(interruption) => Some(replaced.unwrap_or_else(|| {
                let row = self.tracks.row_of_exception(interruption.exception);
                (self.tracks.begin(row, What::Exception(interruption), start, out), row)
            })),
            FrameKind::Root | FrameKind::Call { .. } => None,
        };
        if !self.functions {
            return Marks { row: RowId::RUNNING, function: SpanId::default(), exception };
        }
        let row = match (exception, below) {
            (Some((_, row)), _) => row,
            (None, Some(below)) => below,
            (None, None) => self.tracks.row_of_task(self.task),
        };
        let function = self.tracks.begin(row, What::Function { function, entry }, start, out);
        Marks { row, function, exception }
    }
}

impl Observer for Recorder {
    type Mark = Marks;

    fn enter(
        &mut self,
        below: Option<&mut Frame<Marks>>,
        kind: FrameKind,
        function: FunctionId,
        entry: Entry,
    ) -> Marks {
        let Self { spans, changes, .. } = self;
        let below = below.map(|below| below.mark.row);
        spans.enter_frame(below, (kind, function, entry), &mut |place, change| changes.push((place, change)))
    }

    fn regain(&mut self, below: Option<&mut Frame<Marks>>, frame: &mut Frame<Marks>) {
        let Self { spans, changes, .. } = self;
        let below = below.map(|below| below.mark.row);
        let out = &mut |place, change| changes.push((place, change));
        frame.mark = spans.enter_frame(below, (frame.kind, frame.function, Entry::Regained), out);
    }

    fn run(&mut self, _: &mut Frame<Marks>, piece: &Piece) {
        let Self { spans, changes, .. } = self;
        spans.run_piece(piece.instructions.into(), &mut |place, change| changes.push((place, change)));
    }

    fn run_all(&mut self, _: &mut Frame<Marks>, run: &Run<'_>) {
        let count = if self.spans.by_cycles { 0 } else { run.instructions.into() };
        let Self { spans, changes, .. } = self;
        spans.run_blocks(count, &mut |place, change| changes.push((place, change)));
    }

    fn begin_block(&mut self, block: &Block) {
        let count = if self.spans.by_cycles { 0 } else { block.instructions.into() };
        self.begin_block(count, block.instructions);
    }

    fn end_block(&mut self) {
        self.end_block();
    }

    fn leave(&mut self, frame: &mut Frame<Marks>, _: Option<&mut Frame<Marks>>, how: Left) {
        let Self { spans, changes, .. } = self;
        spans.leave_frame(&frame.mark, how, &mut |place, change| changes.push((place, change)));
    }

    fn switch(&mut self, from: Task, to: Task, _: Evidence) {
        let Self { spans, changes, .. } = self;
        let out = &mut |place, change| changes.push((place, change));
        spans.tracks.end_all(RowId::RUNNING, Finish::Suspended, out);
        spans.tracks.switch(from, to, out);
        spans.task = to;
    }
}
