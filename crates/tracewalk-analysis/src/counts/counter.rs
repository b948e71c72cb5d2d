//! Counts blocks and branches, and whole passages at once.

use tracewalk::flow::{Element, EventKind};
use tracewalk::ids::{Address, Exception};

use super::{Branch, Counts, Range, Way};
use crate::analysis::Repeated;
use crate::quick::QuickMap;

/// Counts execution in one context.
#[derive(Debug, Default)]
pub(super) struct Counter {
    tally: Tally,
    /// The counts of one passage while it is learned; empty before and after.
    learning: Tally,
    /// The last branch taken, if the next block begins at its target.
    taken: Option<Taken>,
    /// The set of the passages' numbers.
    set: u32,
    /// The passages, by number.
    passages: Vec<Known>,
}

/// What is known of a passage. Learning pays only if the passage comes often enough.
#[derive(Debug, Default)]
enum Known {
    /// Nothing.
    #[default]
    New,
    /// It came once.
    Seen,
    /// Its counts.
    Counted(Box<Learned>),
}

/// The counts.
#[derive(Debug, Default)]
struct Tally {
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

/// The counts of a passage, and how often it occurred.
#[derive(Debug, Default)]
struct Learned {
    count: u64,
    /// The branches that led into it, with the number of times.
    entered: Vec<(Taken, u64)>,
    /// The outcome of the branch before it.
    first: After,
    /// The ranges that it counts.
    ranges: Vec<(Range, u64)>,
    branches: Vec<(Branch, u64)>,
    instructions: u64,
    unrecorded: u64,
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
        self.tally.element(element, &mut self.taken);
    }

    /// The trace does not report the target of the previous branch.
    pub(super) fn cut(&mut self) {
        self.tally.cut(&mut self.taken);
    }

    /// Takes the elements of a passage with at least one block.
    pub(super) fn passage(&mut self, repeated: &Repeated<'_>) {
        if self.set != repeated.set() {
            self.settle();
            self.set = repeated.set();
        }
        let number = repeated.number() as usize;
        if self.passages.len() <= number {
            self.passages.resize_with(number + 1, Known::default);
        }
        let Some(place) = self.passages.get_mut(number) else { return };
        let learned = match place {
            Known::New => {
                *place = Known::Seen;
                return self.each(repeated);
            }
            Known::Seen => {
                *place = Known::Counted(Box::new(Learned::of(repeated, &mut self.learning)));
                return self.passage(repeated);
            }
            Known::Counted(learned) => learned,
        };
        learned.count += 1;
        if let Some(taken) = self.taken {
            learned.enter(taken, &mut self.tally);
        }
        self.taken = learned.taken;
    }

    /// Takes the elements of a passage one by one.
    #[inline(never)]
    fn each(&mut self, repeated: &Repeated<'_>) {
        repeated.elements().for_each(|element| self.element(&element));
    }

    /// Adds the counts of the passages to the total, and forgets the passages.
    fn settle(&mut self) {
        for passage in std::mem::take(&mut self.passages) {
            if let Known::Counted(learned) = passage {
                learned.settle(&mut self.tally);
            }
        }
    }

    /// Adds the counts of execution that follows. The next block is at the target of its last branch.
    pub(super) fn join(&mut self, mut next: Self) {
        self.cut();
        next.settle();
        let Tally { ranges, branches, instructions, unrecorded } = next.tally;
        ranges.into_iter().for_each(|(range, count)| self.tally.range(range, count));
        branches.into_iter().for_each(|(branch, count)| self.tally.branch(branch, count));
        self.tally.instructions += instructions;
        self.tally.unrecorded += unrecorded;
        self.taken = next.taken;
    }

    /// The counts up to the end of the trace.
    pub(super) fn finish(mut self) -> Counts {
        self.cut();
        self.settle();
        let Tally { ranges, branches, instructions, unrecorded } = self.tally;
        let (ranges, branches) = (ranges.into_iter().collect(), branches.into_iter().collect());
        Counts { ranges, branches, instructions, unrecorded }
    }
}

impl Tally {
    fn element(&mut self, element: &Element, taken: &mut Option<Taken>) {
        match element {
            Element::Block(block) => {
                if let Some(Taken { from, way }) = taken.take() {
                    self.branch(Branch { from, to: block.start, way }, 1);
                }
                self.range(Range::of(block), 1);
                self.instructions += u64::from(block.instructions);
                match Way::of(block.ending) {
                    Some(way) if way.is_taken() => *taken = Some(Taken { from: block.last, way }),
                    Some(way) => self.branch(Branch { from: block.last, to: block.end, way }, 1),
                    None => {}
                }
            }
            _ => match After::of(element) {
                After::Same => {}
                After::At(to) => {
                    if let Some(Taken { from, way }) = taken.take() {
                        self.branch(Branch { from, to, way }, 1);
                    }
                }
                After::Returned => *taken = None,
                After::Unrecorded => self.cut(taken),
            },
        }
    }

    fn cut(&mut self, taken: &mut Option<Taken>) {
        self.unrecorded += u64::from(taken.take().is_some());
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

impl Learned {
    /// Learns the counts of a passage.
    fn of(repeated: &Repeated<'_>, tally: &mut Tally) -> Self {
        let mut taken = None;
        let mut first = After::Same;
        for element in repeated.elements() {
            if first == After::Same {
                first = After::of(&element);
            }
            tally.element(&element, &mut taken);
        }
        Self {
            first,
            ranges: tally.ranges.drain().collect(),
            branches: tally.branches.drain().collect(),
            instructions: std::mem::take(&mut tally.instructions),
            unrecorded: std::mem::take(&mut tally.unrecorded),
            taken,
            ..Self::default()
        }
    }

    /// Counts an entry into the passage from this branch.
    fn enter(&mut self, taken: Taken, tally: &mut Tally) {
        if let Some((_, count)) = self.entered.iter_mut().find(|(known, _)| *known == taken) {
            *count += 1;
            return;
        }
        if self.entered.len() >= MOST_ENTERED {
            self.settle_entered(tally);
        }
        self.entered.push((taken, 1));
    }

    fn settle_entered(&mut self, tally: &mut Tally) {
        for (Taken { from, way }, count) in self.entered.drain(..) {
            match self.first {
                After::At(to) => tally.branch(Branch { from, to, way }, count),
                After::Returned => {}
                After::Same | After::Unrecorded => tally.unrecorded += count,
            }
        }
    }

    fn settle(mut self, tally: &mut Tally) {
        self.settle_entered(tally);
        for (range, count) in self.ranges {
            tally.range(range, count.saturating_mul(self.count));
        }
        for (branch, count) in self.branches {
            tally.branch(branch, count.saturating_mul(self.count));
        }
        tally.instructions += self.instructions * self.count;
        tally.unrecorded += self.unrecorded * self.count;
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
