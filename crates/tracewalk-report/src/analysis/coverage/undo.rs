//! Taking back what was counted since the position was proven.

use tracewalk::flow::{Doubt, Passage};
use tracewalk::span::StreamOffset;

use super::blocks::{BlockCounter, Packed};
use super::passages::PassageCounter;
use crate::analysis::Doubtful;

/// Counts blocks, alone and in passages.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) blocks: BlockCounter,
    passages: PassageCounter,
    pub(super) instructions: u64,
}

/// What was counted since the position was proven, and may have to be taken back. It holds no more than what
/// [`Doubt::REACH`] bytes of trace say, and at most as much again.
#[derive(Clone, Debug, Default)]
pub(super) struct UndoLog {
    blocks: Log<Once>,
    passages: Log<PassageOnce>,
}

/// Things that were counted once, in order.
#[derive(Clone, Debug)]
struct Log<T> {
    /// Each with the trace that proves it, or where that begins.
    counted: Vec<(StreamOffset, T)>,
    /// At so many the oldest are looked at.
    full: usize,
}

/// A block that was counted once, and its instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Once {
    pub(super) block: Packed,
    pub(super) instructions: u32,
}

/// A passage that was counted once.
#[derive(Clone, Copy, Debug)]
pub(super) struct PassageOnce {
    pub(super) id: u64,
    /// Where blocks in front of it are seen from.
    pub(super) before: StreamOffset,
}

impl Counts {
    pub(super) fn count(&mut self, at: StreamOffset, once: Once, log: &mut UndoLog) {
        self.blocks.add(once.block, 1);
        self.instructions += u64::from(once.instructions);
        log.blocks.push(at, once);
    }

    /// Counts a passage; `false` where there is more in it than blocks and what does not matter to coverage.
    #[inline(always)]
    pub(super) fn count_passage(&mut self, passage: &Passage<'_>, log: &mut UndoLog) -> bool {
        let is_counted = self.passages.count(passage);
        if is_counted {
            self.instructions += u64::from(passage.totals().instructions);
            let once = PassageOnce { id: passage.id().number(), before: passage.before() };
            log.passages.push(passage.at(), once);
        }
        is_counted
    }

    /// Adds what was counted behind this, and may have to be taken back.
    pub(super) fn join(&mut self, next: Self, next_log: UndoLog, log: &mut UndoLog) {
        for (at, once) in next_log.blocks.counted {
            log.blocks.push(at, once);
        }
        for (at, passage) in next_log.passages.counted {
            for (at, once) in next.passages.blocks_of(passage, at) {
                log.blocks.push(at, once);
            }
        }
        self.blocks.join(next.blocks);
        next.passages.count_blocks(&mut self.blocks);
        self.instructions += next.instructions;
    }

    /// The blocks, with those in passages.
    pub(super) fn into_blocks(self) -> BlockCounter {
        let Self { mut blocks, passages, .. } = self;
        passages.count_blocks(&mut blocks);
        blocks
    }
}

impl UndoLog {
    /// What trace in front of `at` says is confirmed.
    pub(super) fn proven(&mut self, at: StreamOffset) {
        self.blocks.forget_before(at);
        self.passages.forget_before(at);
    }

    /// What trace from `since` on says is in doubt: takes it back from `counts`, if it is to be left out. Answers how many
    /// instructions these are.
    pub(super) fn doubt(&mut self, since: StreamOffset, counts: &mut Counts, doubtful: Doubtful) -> u64 {
        let mut instructions = 0;
        for (_, once) in self.blocks.counted.drain(..).filter(|(at, _)| *at >= since) {
            instructions += u64::from(once.instructions);
            if doubtful == Doubtful::Drop {
                counts.blocks.take_back(once.block);
            }
        }
        for (at, passage) in self.passages.counted.drain(..) {
            let in_doubt = |(at, _): &(StreamOffset, Once)| *at >= since;
            let blocks = counts.passages.blocks_of(passage, at);
            let told = blocks.filter(in_doubt).map(|(_, once)| u64::from(once.instructions)).sum::<u64>();
            instructions += told;
            if doubtful == Doubtful::Drop && told > 0 {
                for (_, once) in counts.passages.blocks_of(passage, at).filter(|block| !in_doubt(block)) {
                    counts.blocks.add(once.block, 1);
                }
                counts.passages.take_back(passage.id);
            }
        }
        if doubtful == Doubtful::Drop {
            counts.instructions -= instructions;
        }
        instructions
    }
}

impl<T> Log<T> {
    #[inline(always)]
    fn push(&mut self, at: StreamOffset, what: T) {
        if self.counted.len() >= self.full {
            self.forget_old(at);
        }
        self.counted.push((at, what));
    }

    /// Forgets what doubt does not reach any more.
    #[cold]
    #[inline(never)]
    fn forget_old(&mut self, now: StreamOffset) {
        // A passage says where it begins, and has a few bytes.
        const PASSAGE: u64 = 64;
        const ENOUGH: usize = 1 << 12;
        self.forget_before(StreamOffset(now.0.saturating_sub(Doubt::REACH + PASSAGE)));
        self.full = (self.counted.len() * 2).max(ENOUGH);
    }

    fn forget_before(&mut self, at: StreamOffset) {
        match self.counted.last() {
            Some((last, _)) if *last >= at => self.counted.retain(|(counted, _)| *counted >= at),
            _ => self.counted.clear(),
        }
    }
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Self { counted: Vec::new(), full: 0 }
    }
}
