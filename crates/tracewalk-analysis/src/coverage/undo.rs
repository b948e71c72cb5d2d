//! Takes back the counts since the position was last proven.

use tracewalk::flow::Passage;
use tracewalk::span::StreamOffset;

use super::blocks::BlockCounter;
use super::once::{Once, PassageOnce};
use super::passages::{PassageCounter, PassageCounts, PassageSums};
use crate::{Doubt, Doubtful};

/// Counts blocks, alone and in passages.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) blocks: BlockCounter,
    /// A thread's counts, and the passages that it has learned.
    passages: PassageCounter,
    /// A thread's counts, without its table.
    counts: PassageCounts,
    /// The counts of joined parts.
    sums: PassageSums,
    /// The instructions of the blocks that are not in passages.
    instructions: u64,
}

/// Counts, and those of them that may have to be taken back.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    pub(super) counts: Counts,
    pub(super) log: UndoLog,
}

/// The counts since the position was last proven, which may have to be taken back: at most twice the counts of
/// [`Doubt::REACH`] bytes of trace.
#[derive(Clone, Debug, Default)]
pub(super) struct UndoLog {
    blocks: Log<Once>,
    passages: Log<PassageOnce>,
}

/// Single counts in order, each with the start of the trace that proves it. When the log is full, entries out of doubt's reach
/// are dropped.
#[derive(Clone, Debug)]
struct Log<T>(Vec<(StreamOffset, T)>);

impl Counts {
    pub(super) fn count(&mut self, at: StreamOffset, once: Once, log: &mut UndoLog) {
        self.blocks.add(once.block, 1);
        self.instructions += u64::from(once.instructions);
        log.blocks.push(at, once);
    }

    /// Counts a passage; `false` if it has elements other than blocks that matter to coverage.
    #[inline(always)]
    pub(super) fn count_passage(&mut self, passage: &Passage<'_>, log: &mut UndoLog) -> bool {
        let Some(number) = self.passages.count(passage) else { return false };
        let waited = u32::try_from(passage.waited()).unwrap_or(u32::MAX);
        log.passages.push(passage.at(), PassageOnce { number, waited });
        true
    }

    /// No counts, with the learned passages.
    pub(super) fn lend(&mut self) -> Self {
        Self { passages: self.passages.lend(), ..Self::default() }
    }

    /// Takes the learned passages back.
    pub(super) fn learn(&mut self, lent: &mut Self) {
        lent.counts = lent.passages.take_counts();
        self.passages = std::mem::take(&mut lent.passages);
    }

    /// Adds the next counts, and their undo log.
    pub(super) fn join(&mut self, next: Self, next_log: UndoLog, log: &mut UndoLog) {
        let Self { mut blocks, mut passages, counts, sums, instructions } = next;
        let counts = counts.or(&mut passages);
        let instructions = instructions + sums.count_blocks(&mut blocks);
        for (at, once) in next_log.blocks.0 {
            log.blocks.push(at, once);
        }
        // Counts that may be taken back are kept block by block.
        let known = counts.contents();
        for (at, passage) in &next_log.passages.0 {
            for (at, once) in known.blocks_of(*passage, *at) {
                self.blocks.add(once.block, 1);
                self.instructions += u64::from(once.instructions);
                log.blocks.push(at, once);
            }
        }
        drop(known);
        self.blocks.join(blocks);
        let once = next_log.passages.0.iter().map(|(_, passage)| passage.number);
        self.instructions += instructions + self.sums.add(&counts, once, &mut self.blocks);
    }

    /// The blocks, with those in passages, and their instructions.
    pub(super) fn finish(self) -> (BlockCounter, u64) {
        let Self { mut blocks, mut passages, counts, mut sums, instructions } = self;
        let counts = counts.or(&mut passages);
        let in_passages = sums.add(&counts, std::iter::empty(), &mut blocks) + sums.count_blocks(&mut blocks);
        (blocks, instructions + in_passages)
    }
}

impl Ledger {
    /// The counts so far; only the learned passages stay.
    pub(super) fn split_off(&mut self) -> Self {
        let Self { counts, log } = self;
        let before = Counts {
            blocks: std::mem::take(&mut counts.blocks),
            counts: counts.passages.take_counts(),
            sums: std::mem::take(&mut counts.sums),
            instructions: std::mem::take(&mut counts.instructions),
            passages: PassageCounter::default(),
        };
        Self { counts: before, log: std::mem::take(log) }
    }

    /// Adds the next counts.
    pub(super) fn join(&mut self, next: Self) {
        self.counts.join(next.counts, next.log, &mut self.log);
    }

    /// As [`UndoLog::doubt`].
    pub(super) fn doubt(&mut self, since: StreamOffset, doubtful: Doubtful) -> u64 {
        self.log.doubt(since, &mut self.counts, doubtful)
    }

    /// The number of instructions that were counted.
    pub(super) fn instructions(self) -> u64 {
        self.counts.finish().1
    }
}

impl UndoLog {
    /// The trace before `at` is confirmed.
    pub(super) fn proven(&mut self, at: StreamOffset) {
        self.blocks.forget_before(at);
        self.passages.forget_before(at);
    }

    /// The trace from `since` on is in doubt: takes its counts back, if they are to be left out. Returns the number of
    /// instructions.
    pub(super) fn doubt(&mut self, since: StreamOffset, counts: &mut Counts, doubtful: Doubtful) -> u64 {
        let drops = doubtful == Doubtful::Drop;
        let mut in_doubt = 0;
        for (_, once) in self.blocks.0.drain(..).filter(|(at, _)| *at >= since) {
            in_doubt += u64::from(once.instructions);
            if drops {
                counts.blocks.take_back(once.block);
                counts.instructions -= u64::from(once.instructions);
            }
        }
        let known = counts.passages.contents();
        let mut taken_back = Vec::new();
        for (at, passage) in self.passages.0.drain(..) {
            let is_in_doubt = |(at, _): &(StreamOffset, Once)| *at >= since;
            let (doubtful, certain) = known.blocks_of(passage, at).partition::<Vec<_>, _>(is_in_doubt);
            in_doubt += doubtful.iter().map(|(_, once)| u64::from(once.instructions)).sum::<u64>();
            if drops && !doubtful.is_empty() {
                taken_back.push(passage.number);
                for (_, once) in certain {
                    counts.blocks.add(once.block, 1);
                    counts.instructions += u64::from(once.instructions);
                }
            }
        }
        drop(known);
        counts.passages.take_back(&taken_back);
        in_doubt
    }
}

impl<T> Log<T> {
    #[inline(always)]
    fn push(&mut self, at: StreamOffset, what: T) {
        if self.0.len() < self.0.capacity() {
            self.0.push((at, what));
        } else {
            self.push_into_full(at, what);
        }
    }

    /// Drops entries that doubt no longer reaches, to make room.
    #[cold]
    #[inline(never)]
    fn push_into_full(&mut self, at: StreamOffset, what: T) {
        // A passage records its start, and has a few bytes.
        const PASSAGE: u64 = 64;
        const ENOUGH: usize = 1 << 10;
        self.forget_before(StreamOffset(at.0.saturating_sub(Doubt::REACH + PASSAGE)));
        self.0.reserve(self.0.len().max(ENOUGH));
        self.0.push((at, what));
    }

    fn forget_before(&mut self, at: StreamOffset) {
        match self.0.last() {
            Some((last, _)) if *last >= at => self.0.retain(|(counted, _)| *counted >= at),
            _ => self.0.clear(),
        }
    }
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}
