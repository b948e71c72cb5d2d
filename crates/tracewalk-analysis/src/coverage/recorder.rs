//! Recording the coverage of one source.

use tracewalk::directive::BeginReason;
use tracewalk::flow::{Block, Element, EventKind, Gap, GapReason};
use tracewalk::ids::Address;
use tracewalk::span::{CaptureOffset, StreamOffset};

use super::blocks::{BlockCounter, Conditions, Packed};
use super::collected::{Part, SourceSummary};
use super::losses::{Loss, Losses};
use crate::analysis::Repeated;
use crate::times::{Timed, Times};
use crate::transactions::Turn;
use crate::{Doubt, Doubtful, InDoubt};

/// Counts the blocks of a source's elements and passages, in the order of the trace.
#[derive(Debug)]
pub struct Recorder {
    conditions: Conditions,
    doubtful: Doubtful,
    /// The execution that counts.
    settled: Ran,
    /// How often passages came outside of transactions.
    times: Times<()>,
    /// The execution in the open transaction.
    open: Option<Box<Open>>,
    doubt: Doubt,
    /// How many instructions are in doubt.
    in_doubt: u64,
    /// How many instructions ran in transactions without a commit.
    uncommitted: u64,
    losses: Losses,
    /// The place at which execution was lost, until it is found again.
    lost: Option<Loss>,
}

/// Blocks that ran, and their instructions.
#[derive(Debug, Default)]
struct Ran {
    blocks: BlockCounter,
    instructions: u64,
}

/// The execution in a transaction whose end has not come.
#[derive(Debug, Default)]
struct Open {
    ran: Ran,
    /// The instructions that a later gap puts in doubt. They count as uncommitted if the transaction fails before that gap.
    doubtful: u64,
}

impl Ran {
    #[inline]
    fn add(&mut self, block: &Block, times: u64) {
        self.blocks.add(Packed::of(block), times);
        self.instructions += times * u64::from(block.instructions);
    }

    fn add_passages(&mut self, passages: impl Iterator<Item = Timed<()>>) {
        for passage in passages {
            for element in passage.elements() {
                if let Element::Block(block) = element {
                    self.add(&block, passage.times);
                }
            }
        }
    }
}

impl Recorder {
    /// A recorder for a source that records these conditions.
    #[must_use]
    pub fn new(conditions: Conditions, doubtful: Doubtful) -> Self {
        Self {
            conditions,
            doubtful,
            settled: Ran::default(),
            times: Times::default(),
            open: None,
            doubt: Doubt::default(),
            in_doubt: 0,
            uncommitted: 0,
            losses: Losses::default(),
            lost: None,
        }
    }

    /// Takes the source's next element. `is_doubtful`: whether it is in doubt, from a gap before it or after it.
    #[inline]
    pub fn element(&mut self, element: &Element, is_doubtful: bool) {
        match element {
            Element::Block(block) => self.block(block, is_doubtful),
            Element::Event(event) => {
                if let EventKind::TraceOn(reason) = event.kind {
                    self.losses.begins += 1;
                    self.losses.overflows += u64::from(reason == BeginReason::Overflow);
                }
            }
            Element::Gap(gap) => self.gap(gap),
            Element::Proof(_) => {}
        }
        self.doubt.element(element, CaptureOffset::default);
        if let Some(turn) = Turn::of(element) {
            self.turn(turn);
        }
    }

    /// Takes the source's next element, which is a block of another program.
    #[inline]
    pub fn another_program(&mut self, block: &Block) {
        if !self.drops() {
            self.find(block.span.start);
        }
    }

    /// Takes the source's next elements, which are not in doubt.
    #[inline]
    pub fn passage(&mut self, repeated: &Repeated<'_>) {
        let is_plain = self.lost.is_none() && self.open.is_none() && !self.doubt.is_open();
        match self.times.get(repeated) {
            Some(passage) if is_plain => passage.times += 1,
            _ => self.unusual(repeated, is_plain),
        }
    }

    /// Takes a passage that is new, in a transaction, or after a loss.
    #[inline(never)]
    fn unusual(&mut self, repeated: &Repeated<'_>, is_plain: bool) {
        if is_plain && repeated.totals().blocks > 0 {
            let previous = self.times.insert(repeated, ());
            self.settled.add_passages(previous);
        } else {
            repeated.elements().for_each(|element| self.element(&element, false));
        }
    }

    /// The coverage; `capture`, `source` and `protocol` name its origin, and `bytes` is the amount of trace.
    #[must_use]
    pub fn finish(mut self, capture: &str, source: &str, protocol: &str, bytes: u64) -> Part {
        self.find(StreamOffset(bytes));
        // No commit of the open transaction is known.
        self.decide(false);
        let Self { conditions, doubtful, mut settled, mut times, in_doubt, uncommitted, losses, .. } = self;
        settled.add_passages(times.drain());
        let source = SourceSummary {
            capture: capture.to_owned(),
            source: source.to_owned(),
            protocol: protocol.to_owned(),
            conditions,
            bytes,
            instructions: settled.instructions,
            losses: Losses { in_doubt: InDoubt::of(in_doubt, doubtful), uncommitted, ..losses },
        };
        Part { source, blocks: settled.blocks.finish(conditions) }
    }

    /// Whether further elements are left out.
    #[inline]
    fn drops(&self) -> bool {
        self.doubt.is_open() && self.doubtful == Doubtful::Drop
    }

    fn block(&mut self, block: &Block, is_doubtful: bool) {
        // Blocks show the position until the gap that puts them in doubt.
        if !self.drops() {
            self.find(block.span.start);
        }
        if is_doubtful {
            let in_doubt = match &mut self.open {
                Some(open) if !self.doubt.is_open() => &mut open.doubtful,
                _ => &mut self.in_doubt,
            };
            *in_doubt += u64::from(block.instructions);
        }
        if !is_doubtful || self.doubtful == Doubtful::Keep {
            self.open.as_deref_mut().map_or(&mut self.settled, |open| &mut open.ran).add(block, 1);
        }
    }

    /// The fate of the open transaction is decided, if there is one, and another may begin.
    #[cold]
    fn turn(&mut self, turn: Turn) {
        self.decide(turn.commits());
        if turn == Turn::Begins {
            self.open = Some(Box::default());
        }
    }

    /// Counts the execution in the open transaction if it `commits`.
    fn decide(&mut self, commits: bool) {
        let Some(open) = self.open.take() else { return };
        let Open { ran, doubtful } = *open;
        if commits || self.doubt.is_open() {
            self.in_doubt += doubtful;
        } else if self.doubtful == Doubtful::Drop {
            self.uncommitted += doubtful;
        }
        if commits {
            self.settled.blocks.join(ran.blocks);
            self.settled.instructions += ran.instructions;
        } else {
            self.uncommitted += ran.instructions;
        }
    }

    #[cold]
    fn gap(&mut self, gap: &Gap) {
        if let GapReason::NoCode(at) = gap.reason {
            let page = Address::new(at.address.get() & !(Losses::PAGE - 1));
            *self.losses.no_image.entry(page).or_default() += 1;
        } else {
            // Execution that is lost already cannot be lost again.
            self.lost.get_or_insert((gap.span.start, gap.reason));
        }
    }

    /// Execution is found at `at`, if it was lost.
    #[inline]
    fn find(&mut self, at: StreamOffset) {
        if let Some(loss) = self.lost.take() {
            self.losses.count(loss, at);
        }
    }
}

#[cfg(test)]
mod tests;
