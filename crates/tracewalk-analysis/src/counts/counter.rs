//! Counts blocks and branches, and whole passages at once.

use tracewalk::flow::{Element, EventKind};
use tracewalk::ids::{Address, Exception};

use super::{Branch, Counts, Range, Way};
use crate::analysis::Repeated;
use crate::quick::QuickMap;
use crate::times::{Timed, Times};

/// Counts execution in one context.
#[derive(Debug, Default)]
pub(super) struct Counter {
    sums: Sums,
    /// The last branch taken, if the next block begins at its target.
    taken: Option<Taken>,
    times: Times<Edges>,
}

/// The counts.
#[derive(Debug, Default)]
struct Sums {
    ranges: QuickMap<Range, u64>,
    branches: QuickMap<Branch, u64>,
    instructions: u64,
    unrecorded: u64,
}

/// A branch that was taken, and not yet followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Taken {
    from: Address,
    way: Way,
}

/// How execution enters and leaves a passage.
#[derive(Debug, Default)]
struct Edges {
    /// The branches that led into it, with the number of times.
    entered: Vec<(Taken, u64)>,
    /// The outcome of the branch before it.
    first: After,
    /// The branch that it ends with.
    taken: Option<Taken>,
}

/// An element's evidence about the target of the branch before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum After {
    /// Nothing.
    #[default]
    Same,
    /// The branch led to this address.
    At(Address),
    /// The branch was a return from an exception, which is not counted as a branch.
    Returned,
    /// The trace does not report the target.
    Unrecorded,
}

/// The most branches into a passage that are noted with it; more are counted at once.
const MOST_ENTERED: usize = 8;

impl Counter {
    /// Takes the next element.
    pub(super) fn element(&mut self, element: &Element) {
        self.sums.element(element, 1, &mut self.taken);
    }

    /// The trace does not report the target of the previous branch.
    pub(super) fn cut(&mut self) {
        self.sums.cut(1, &mut self.taken);
    }

    /// Takes the elements of a passage with at least one block.
    #[inline]
    pub(super) fn passage(&mut self, repeated: &Repeated<'_>) {
        let Some(passage) = self.times.get(repeated) else { return self.first_time(repeated) };
        passage.times += 1;
        if let Some(taken) = self.taken {
            passage.note.enter(taken, &mut self.sums);
        }
        self.taken = passage.note.taken;
    }

    #[inline(never)]
    fn first_time(&mut self, repeated: &Repeated<'_>) {
        let mut edges = Edges::of(repeated);
        let after = edges.taken;
        if let Some(taken) = std::mem::replace(&mut self.taken, after) {
            edges.enter(taken, &mut self.sums);
        }
        let previous = self.times.insert(repeated, edges);
        previous.for_each(|passage| self.sums.passage(&passage));
    }

    /// Adds the counts of execution that follows. The next block is at the target of its last branch.
    pub(super) fn join(&mut self, next: Self) {
        self.cut();
        self.taken = next.taken;
        let Sums { ranges, branches, instructions, unrecorded } = next.sums();
        ranges.into_iter().for_each(|(range, count)| self.sums.range(range, count));
        branches.into_iter().for_each(|(branch, count)| self.sums.branch(branch, count));
        self.sums.instructions += instructions;
        self.sums.unrecorded += unrecorded;
    }

    /// The counts up to the end of the trace.
    pub(super) fn finish(mut self) -> Counts {
        self.cut();
        let Sums { ranges, branches, instructions, unrecorded } = self.sums();
        let (ranges, branches) = (ranges.into_iter().collect(), branches.into_iter().collect());
        Counts { ranges, branches, instructions, unrecorded }
    }

    fn sums(mut self) -> Sums {
        self.times.drain().for_each(|passage| self.sums.passage(&passage));
        self.sums
    }
}

impl Sums {
    /// Counts an element that came a number of times, each time after the same one.
    fn element(&mut self, element: &Element, times: u64, taken: &mut Option<Taken>) {
        match element {
            Element::Block(block) => {
                if let Some(Taken { from, way }) = taken.take() {
                    self.branch(Branch { from, to: block.start, way }, times);
                }
                self.range(Range::of(block), times);
                self.instructions += times * u64::from(block.instructions);
                match Way::of(block.ending) {
                    Some(way) if way.is_taken() => *taken = Some(Taken { from: block.last, way }),
                    Some(way) => self.branch(Branch { from: block.last, to: block.end, way }, times),
                    None => {}
                }
            }
            _ => match After::of(element) {
                After::Same => {}
                After::At(to) => {
                    if let Some(Taken { from, way }) = taken.take() {
                        self.branch(Branch { from, to, way }, times);
                    }
                }
                After::Returned => *taken = None,
                After::Unrecorded => self.cut(times, taken),
            },
        }
    }

    fn cut(&mut self, times: u64, taken: &mut Option<Taken>) {
        self.unrecorded += if taken.take().is_some() { times } else { 0 };
    }

    /// Counts the elements of a passage, and the branches into it.
    fn passage(&mut self, passage: &Timed<Edges>) {
        let mut taken = None;
        passage.elements().for_each(|element| self.element(&element, passage.times, &mut taken));
        let Edges { entered, first, .. } = &passage.note;
        entered.iter().for_each(|(taken, count)| self.enter(*taken, *first, *count));
    }

    /// Counts entries into a passage from a branch.
    fn enter(&mut self, Taken { from, way }: Taken, first: After, count: u64) {
        match first {
            After::At(to) => self.branch(Branch { from, to, way }, count),
            After::Returned => {}
            After::Same | After::Unrecorded => self.unrecorded += count,
        }
    }

    fn range(&mut self, range: Range, count: u64) {
        let sum = self.ranges.entry(range).or_default();
        *sum = sum.saturating_add(count);
    }

    fn branch(&mut self, branch: Branch, count: u64) {
        let sum = self.branches.entry(branch).or_default();
        *sum = sum.saturating_add(count);
    }
}

impl Edges {
    fn of(repeated: &Repeated<'_>) -> Self {
        let mut edges = Self::default();
        // Counts for the sake of the last branch alone.
        let mut sums = Sums::default();
        for element in repeated.elements() {
            if edges.first == After::Same {
                edges.first = After::of(&element);
            }
            sums.element(&element, 1, &mut edges.taken);
        }
        edges
    }

    /// Counts an entry into the passage from this branch.
    #[inline]
    fn enter(&mut self, taken: Taken, sums: &mut Sums) {
        if let Some((_, count)) = self.entered.iter_mut().find(|(known, _)| *known == taken) {
            *count += 1;
            return;
        }
        if self.entered.len() >= MOST_ENTERED {
            let first = self.first;
            self.entered.drain(..).for_each(|(taken, count)| sums.enter(taken, first, count));
        }
        self.entered.push((taken, 1));
    }
}

impl After {
    fn of(element: &Element) -> Self {
        match element {
            Element::Block(block) => Self::At(block.start),
            Element::Gap(_) => Self::Unrecorded,
            Element::Proof(_) => Self::Same,
            Element::Event(event) => match event.kind {
                // The branch's target has not run yet: the handler returns there.
                EventKind::Exception { preferred_return: Some(to), .. } => Self::At(to),
                // In M profile an exception may replace another exception's return.
                EventKind::Exception { exception: Some(Exception::M(_) | Exception::MType(_)), .. }
                | EventKind::ExceptionReturn => Self::Returned,
                EventKind::Exception { .. } | EventKind::TraceOn(_) => Self::Unrecorded,
                _ => Self::Same,
            },
        }
    }
}
