//! Entries of notes, and what their numbers stand for.

use std::sync::Arc;

use tracewalk::flow::{KeptPassage, Totals};

/// What was noted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The number of a passage, a block or a group, or one of the two below.
    pub(super) number: u32,
    /// Where it begins, from the base on; or which of the others it is.
    pub(super) at: u32,
}

impl Entry {
    /// Neither a passage, nor a block, nor a group with a number: the next one of `Log::others`.
    pub(super) const OTHER: u32 = u32::MAX;
    /// A passage with a number that something was waited for: the next one of `Log::waiting`.
    pub(super) const WAITING: u32 = u32::MAX - 1;
}

/// What a number stands for.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) content: Content,
    pub(crate) totals: Totals,
    /// No element begins as far after where this begins.
    pub(super) reach: u32,
}

/// A passage, or several: members of a group are passages, or groups of passages.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Passage(Arc<KeptPassage>),
    Group(Arc<[Member]>),
}

/// One of the passages or groups of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Member {
    pub(crate) number: u32,
    /// How far after the first one it begins.
    pub(crate) after: u32,
}

/// Nothing that a passage says stands as far after where it begins.
pub(super) const PASSAGE: u32 = 64;

impl Named {
    pub(super) fn passage(passage: Arc<KeptPassage>) -> Self {
        Self { totals: passage.totals(), content: Content::Passage(passage), reach: PASSAGE }
    }

    /// These, of what has numbers already.
    pub(super) fn group(members: Arc<[Member]>, named: &[Self]) -> Option<Self> {
        let mut totals = Totals::default();
        for member in &*members {
            let Totals { blocks, instructions, gaps } = named.get(member.number as usize)?.totals;
            totals.blocks = totals.blocks.saturating_add(blocks);
            totals.instructions = totals.instructions.saturating_add(instructions);
            totals.gaps = totals.gaps.saturating_add(gaps);
        }
        let last = members.last()?;
        let reach = last.after.saturating_add(named.get(last.number as usize)?.reach);
        Some(Self { content: Content::Group(members), totals, reach })
    }
}
