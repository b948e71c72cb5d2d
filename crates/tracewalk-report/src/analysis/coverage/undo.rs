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

/// Things that were counted once, in order, each with where the trace begins that proves it. Where there is no room for more, the
/// oldest are looked at.
#[derive(Clone, Debug)]
struct Log<T>(Vec<(StreamOffset, T)>);

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
    /// See [`Passage::waited`].
    pub(super) waited: u64,
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
            let once = PassageOnce { id: passage.id().number(), waited: passage.waited() };
            log.passages.push(passage.at(), once);
        }
        is_counted
    }

    /// Adds what was counted behind this, and may have to be taken back.
    pub(super) fn join(&mut self, next: Self, next_log: UndoLog, log: &mut UndoLog) {
        for (at, once) in next_log.blocks.0 {
            log.blocks.push(at, once);
        }
        for (at, passage) in next_log.passages.0 {
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
        for (_, once) in self.blocks.0.drain(..).filter(|(at, _)| *at >= since) {
            instructions += u64::from(once.instructions);
            if doubtful == Doubtful::Drop {
                counts.blocks.take_back(once.block);
            }
        }
        for (at, passage) in self.passages.0.drain(..) {
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
        if self.0.len() < self.0.capacity() {
            self.0.push((at, what));
        } else {
            self.push_into_full(at, what);
        }
    }

    /// Forgets what doubt does not reach any more, to have room.
    #[cold]
    #[inline(never)]
    fn push_into_full(&mut self, at: StreamOffset, what: T) {
        // A passage says where it begins, and has a few bytes.
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
