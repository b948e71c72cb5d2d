//! Recording the coverage of one source, element by element.

use tracewalk::directive::BeginReason;
use tracewalk::flow::{Block, Element, EventKind, Gap, GapReason, Passage};
use tracewalk::ids::Address;
use tracewalk::span::{CaptureOffset, StreamOffset};

use super::blocks::{Conditions, Packed};
use super::collected::{Part, SourceSummary};
use super::losses::{Loss, Losses};
use super::once::Once;
use super::undo::Ledger;
use crate::transactions::Turn;
use crate::{Doubt, DoubtChange, Doubtful, Doubting, InDoubt, sink};

/// Counts the blocks of a source's elements, in parts in the order of the trace.
#[derive(Clone, Debug)]
pub struct Recorder {
    conditions: Conditions,
    /// All parts together.
    whole: RecordedPart,
}

/// The blocks of a part of a source's elements. The joined parts equal the whole.
#[derive(Clone, Debug, Default)]
pub struct RecordedPart {
    doubtful: Doubtful,
    /// The execution that counts. Before the first turn: if no transaction is open where the part begins.
    settled: Ledger,
    /// The execution in the open transaction.
    open: Option<Box<Ledger>>,
    /// Whether it is known which transaction was open last: in the whole trace, and from the first turn of a part on.
    knows_transaction: bool,
    /// The execution before the first turn of a part.
    before: Option<Box<BeforeTurn>>,
    doubt: Doubt,
    /// Whether execution is followed, not in doubt and in no transaction, so that only the blocks of a passage matter.
    is_followed: bool,
    /// How many instructions are in doubt.
    in_doubt: u64,
    /// How many instructions ran in transactions without a commit.
    uncommitted: u64,
    /// The last place in this part at which the position was proven.
    proven: Option<StreamOffset>,
    /// The place of the first block's proof.
    first_block: Option<StreamOffset>,
    /// The place at which execution was lost before the first block, if this part lost it.
    lost_at_first: Option<Loss>,
    losses: Losses,
    /// The place at which execution was lost, until it is found again.
    lost: Option<Loss>,
}

/// The execution in a part before its first turn. Whether a transaction was open is known only when parts are joined.
#[derive(Clone, Debug)]
struct BeforeTurn {
    ledger: Ledger,
    turn: Turn,
    /// The offset from which the turn itself puts earlier execution in doubt, before it decides.
    doubted: Option<StreamOffset>,
    /// The offset from which the first gap after the turn puts execution in doubt. Later gaps reach no further back.
    doubted_later: Option<StreamOffset>,
}

impl Recorder {
    /// A recorder for a source that records these conditions.
    #[must_use]
    pub fn new(conditions: Conditions, doubtful: Doubtful) -> Self {
        let whole = RecordedPart { knows_transaction: true, ..RecordedPart::new(doubtful) };
        Self { conditions, whole }
    }

    /// An empty part.
    #[must_use]
    pub fn part(&self) -> RecordedPart {
        RecordedPart::new(self.whole.doubtful)
    }

    /// Takes the source's next element.
    #[inline]
    pub fn element(&mut self, element: &Element) {
        self.whole.count_element(element);
    }

    /// Takes the source's next element, which is a block of another program.
    #[inline]
    pub fn another_program(&mut self, block: &Block) {
        if !self.whole.drops() {
            self.whole.see(block);
        }
    }

    /// Takes the source's next part.
    pub fn join(&mut self, part: RecordedPart) {
        self.whole.join(part);
    }

    /// The coverage; `capture`, `source` and `protocol` name its origin, and `bytes` is the amount of trace.
    #[must_use]
    pub fn finish(self, capture: &str, source: &str, protocol: &str, bytes: u64) -> Part {
        let Self { conditions, mut whole } = self;
        let end = StreamOffset(bytes);
        if let Some(loss) = whole.lost_at_first {
            whole.losses.count(loss, whole.first_block.unwrap_or(end));
        }
        whole.found(end);
        // No commit of the open transaction is known.
        whole.decide(false);
        whole.losses.in_doubt = InDoubt::of(whole.in_doubt, whole.doubtful);
        whole.losses.uncommitted = whole.uncommitted;
        let (blocks, instructions) = whole.settled.counts.finish();
        let source = SourceSummary {
            capture: capture.to_owned(),
            source: source.to_owned(),
            protocol: protocol.to_owned(),
            conditions,
            bytes,
            instructions,
            losses: whole.losses,
        };
        Part { source, blocks: blocks.finish(conditions) }
    }
}

impl sink::Part for RecordedPart {
    fn lend(&mut self) -> Self {
        let settled = Ledger { counts: self.settled.counts.lend(), ..Ledger::default() };
        Self { settled, ..Self::new(self.doubtful) }
    }

    fn learn(&mut self, lent: &mut Self) {
        self.settled.counts.learn(&mut lent.settled.counts);
    }

    fn begin(&mut self, doubting: Doubting) {
        self.doubt = doubting.doubt();
        self.note_state();
    }

    #[inline]
    fn element(&mut self, element: &Element, _: impl FnOnce() -> CaptureOffset) {
        self.count_element(element);
    }

    #[inline]
    fn passage(&mut self, passage: &Passage<'_>, _: impl FnMut(StreamOffset) -> CaptureOffset) {
        let Ledger { counts, log } = &mut self.settled;
        let is_counted = self.is_followed && counts.count_passage(passage, log);
        if !is_counted {
            passage.elements().for_each(|element| self.count_element(&element));
        }
    }
}

impl RecordedPart {
    fn new(doubtful: Doubtful) -> Self {
        Self { doubtful, ..Self::default() }
    }

    /// Whether further elements are left out.
    #[inline]
    fn drops(&self) -> bool {
        self.doubt.is_open() && self.doubtful == Doubtful::Drop
    }

    #[inline]
    fn count_element(&mut self, element: &Element) {
        match element {
            Element::Block(block) => {
                if self.doubt.is_open() {
                    self.in_doubt += u64::from(block.instructions);
                }
                if !self.drops() {
                    self.see(block);
                    let once = Once { block: Packed::of(block), instructions: block.instructions };
                    let Ledger { counts, log } = self.open.as_deref_mut().unwrap_or(&mut self.settled);
                    counts.count(block.span.start, once, log);
                }
            }
            Element::Event(event) => {
                if let EventKind::TraceOn(reason) = event.kind {
                    self.losses.begins += 1;
                    self.losses.overflows += u64::from(reason == BeginReason::Overflow);
                }
                if let Some(turn) = Turn::of(element) {
                    self.turn(turn, None);
                }
            }
            Element::Gap(gap) => {
                self.gap(gap);
                self.note_doubt(element);
            }
            Element::Proof(_) => self.note_doubt(element),
        }
    }

    /// Takes back the counts that a gap puts in doubt; drops the undo log when the position is proven.
    fn note_doubt(&mut self, element: &Element) {
        let mut doubted = None;
        if let Some(DoubtChange::Begins { since }) = self.doubt.element(element) {
            self.in_doubt += self.put_in_doubt(since);
            doubted = Some(since);
            if let Some(before) = &mut self.before {
                before.doubted_later.get_or_insert(since);
            }
        }
        if let Element::Proof(proof) = element {
            self.prove(proof.span.start);
        }
        if let Some(turn) = Turn::of(element) {
            self.turn(turn, doubted);
        }
        self.note_state();
    }

    /// The trace from `since` on is in doubt. Returns the number of its instructions.
    fn put_in_doubt(&mut self, since: StreamOffset) -> u64 {
        let open = self.open.as_deref_mut().map_or(0, |open| open.doubt(since, self.doubtful));
        open + self.settled.doubt(since, self.doubtful)
    }

    /// The trace before `at` is confirmed.
    fn prove(&mut self, at: StreamOffset) {
        self.settled.log.proven(at);
        if let Some(open) = &mut self.open {
            open.log.proven(at);
        }
        self.proven = Some(at);
    }

    /// The fate of the open transaction is decided, if there is one, and another may begin. `doubted`: the offset from which
    /// earlier execution was just put in doubt.
    #[cold]
    fn turn(&mut self, turn: Turn, doubted: Option<StreamOffset>) {
        if self.knows_transaction {
            self.decide(turn.commits());
        } else {
            let ledger = self.settled.split_off();
            self.before = Some(Box::new(BeforeTurn { ledger, turn, doubted, doubted_later: None }));
            self.knows_transaction = true;
        }
        if turn == Turn::Begins {
            self.open = Some(Box::default());
        }
        self.note_state();
    }

    /// Counts the execution in the open transaction if it `commits`.
    fn decide(&mut self, commits: bool) {
        match self.open.take() {
            Some(open) if commits => self.settled.join(*open),
            Some(open) => self.uncommitted += open.instructions(),
            None => {}
        }
    }

    fn note_state(&mut self) {
        let is_open = self.doubt.is_open() || self.open.is_some();
        self.is_followed = self.lost.is_none() && self.first_block.is_some() && !is_open;
    }

    /// Adds the part that follows this one.
    fn join(&mut self, next: Self) {
        match next.before {
            // The open transaction stays open.
            None => {
                if let Some(at) = next.proven {
                    self.prove(at);
                }
                self.open.as_deref_mut().unwrap_or(&mut self.settled).join(next.settled);
            }
            Some(before) => {
                let BeforeTurn { ledger, turn, doubted, doubted_later } = *before;
                if let Some(since) = doubted {
                    self.in_doubt += self.put_in_doubt(since);
                }
                self.open.as_deref_mut().unwrap_or(&mut self.settled).join(ledger);
                self.decide(turn.commits());
                if let Some(since) = doubted_later {
                    self.in_doubt += self.put_in_doubt(since);
                }
                if let Some(at) = next.proven {
                    self.prove(at);
                }
                self.settled.join(next.settled);
                self.open = next.open;
            }
        }
        self.in_doubt += next.in_doubt;
        self.uncommitted += next.uncommitted;
        self.doubt = next.doubt;
        let open = if self.first_block.is_some() { &mut self.lost } else { &mut self.lost_at_first };
        // Execution that is lost already cannot be lost again.
        *open = open.or(next.lost_at_first);
        if let Some(first) = next.first_block {
            if self.first_block.is_some() {
                self.found(first);
            } else {
                self.first_block = Some(first);
            }
            self.lost = next.lost;
        }
        self.losses.add(&next.losses);
    }

    /// A block shows the position of execution.
    #[inline]
    fn see(&mut self, block: &Block) {
        if self.lost.is_some() || self.first_block.is_none() {
            self.found_at(block);
        }
    }

    #[cold]
    fn gap(&mut self, gap: &Gap) {
        let lost = if self.first_block.is_some() { &mut self.lost } else { &mut self.lost_at_first };
        if let GapReason::NoCode(at) = gap.reason {
            let page = Address::new(at.address.get() & !(Losses::PAGE - 1));
            *self.losses.no_image.entry(page).or_default() += 1;
        } else {
            lost.get_or_insert((gap.span.start, gap.reason));
        }
        self.note_state();
    }

    /// Execution is found at a block.
    #[cold]
    fn found_at(&mut self, block: &Block) {
        self.first_block.get_or_insert(block.span.start);
        self.found(block.span.start);
        self.note_state();
    }

    /// Execution is found at `at`.
    fn found(&mut self, at: StreamOffset) {
        if let Some(loss) = self.lost.take() {
            self.losses.count(loss, at);
        }
    }
}

#[cfg(test)]
mod tests;
