//! What an observer of a call stack receives.

use tracewalk::flow::Block;
use tracewalk::ids::{Address, Isa};

use super::frame::{Entry, Evidence, Frame, FrameKind, FunctionId, Left, Task};

/// Instructions of one function that ran one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Piece {
    /// The first instruction.
    pub start: Address,
    /// The address after the last one.
    pub end: Address,
    /// The instruction set.
    pub isa: Isa,
    /// How many instructions.
    pub instructions: u32,
}

/// Pieces of one function that ran one after the other, and may do so again.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The run's number, until [`Observer::forget_runs`]. Other runs may have the same pieces.
    pub number: u32,
    /// The pieces.
    pub pieces: &'a [Piece],
    /// The number of their instructions.
    pub instructions: u32,
}

/// Runs by their numbers.
#[derive(Debug, Default)]
pub struct Runs {
    /// For each run, the end of its pieces, and the number of its instructions.
    runs: Vec<(u32, u32)>,
    pieces: Vec<Piece>,
}

impl Runs {
    /// A run by its number.
    #[inline]
    #[must_use]
    pub fn get(&self, number: u32) -> Option<Run<'_>> {
        let (end, instructions) = *self.runs.get(number as usize)?;
        let first = number.checked_sub(1).and_then(|before| self.runs.get(before as usize));
        let first = first.map_or(0, |(end, _)| *end);
        Some(Run { number, pieces: self.pieces.get(first as usize..end as usize)?, instructions })
    }

    /// The number of pieces.
    pub(super) const fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Another run begins with this piece.
    pub(super) fn begin(&mut self, piece: Piece) {
        self.begin_empty();
        self.extend(piece);
    }

    /// Another run begins, without pieces.
    pub(super) fn begin_empty(&mut self) {
        self.runs.push((u32::try_from(self.pieces.len()).unwrap_or(u32::MAX), 0));
    }

    /// The last run goes on with this piece.
    pub(super) fn extend(&mut self, piece: Piece) {
        self.pieces.push(piece);
        if let Some((end, instructions)) = self.runs.last_mut() {
            *end = end.saturating_add(1);
            *instructions = instructions.saturating_add(piece.instructions);
        }
    }

    /// Forgets all runs but the first ones.
    pub(super) fn truncate(&mut self, runs: usize) {
        self.runs.truncate(runs);
        let end = self.runs.last().map_or(0, |(end, _)| *end);
        self.pieces.truncate(end as usize);
    }
}

/// Receives the functions that run.
///
/// Frames are entered and left in the order of a stack. Frames of other tasks wait untouched between two calls of
/// [`Observer::switch`], and are left when the trace ends.
pub trait Observer {
    /// The observer's data for a frame.
    type Mark;

    /// A function is entered from the frame `below`. The result becomes the frame's mark.
    fn enter(
        &mut self,
        below: Option<&mut Frame<Self::Mark>>,
        kind: FrameKind,
        function: FunctionId,
        entry: Entry,
    ) -> Self::Mark;

    /// A frame that was lost is found again, on the frame `below`.
    fn regain(&mut self, _below: Option<&mut Frame<Self::Mark>>, _frame: &mut Frame<Self::Mark>) {}

    /// Instructions of the innermost frame's function ran.
    fn run(&mut self, _top: &mut Frame<Self::Mark>, _piece: &Piece) {}

    /// Pieces of the innermost frame's function ran, one after the other.
    fn run_all(&mut self, top: &mut Frame<Self::Mark>, run: &Run<'_>) {
        run.pieces.iter().for_each(|piece| self.run(top, piece));
    }

    /// A block of a passage is taken by itself next.
    fn begin_block(&mut self, _block: &Block) {}

    /// That block has ended.
    fn end_block(&mut self) {}

    /// The numbers of all runs are forgotten.
    fn forget_runs(&mut self, _runs: &Runs) {}

    /// A function is left, for the frame `below`.
    fn leave(&mut self, _frame: &mut Frame<Self::Mark>, _below: Option<&mut Frame<Self::Mark>>, _how: Left) {}

    /// The task with this innermost frame stops running.
    fn suspend(&mut self, _top: &mut Frame<Self::Mark>) {}

    /// Another task runs; frames that it has already are not entered again.
    fn switch(&mut self, _from: Task, _to: Task, _evidence: Evidence) {}

    /// The task that has run as `from` since the last switch turns out to be `to`. If `from` is a number that `to` had while it was
    /// unresolved, that holds for all that `from` did.
    fn identify(&mut self, from: Task, to: Task) {
        self.switch(from, to, Evidence::Resumed);
    }
}

/// Ignores everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unobserved;

impl Observer for Unobserved {
    type Mark = ();

    fn enter(&mut self, _: Option<&mut Frame<()>>, _: FrameKind, _: FunctionId, _: Entry) {}
}
