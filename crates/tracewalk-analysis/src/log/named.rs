//! Entries of a log, and the contents of their numbers.

use std::sync::Arc;

use tracewalk::flow::{KeptPassage, Totals};

/// An entry of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The number of a passage, a block or a group, or one of the two below.
    pub(super) number: u32,
    /// The start, from the base on; or an index in another list.
    pub(super) at: u32,
}

impl Entry {
    /// The next item of `Log::others`: neither a passage, nor a block, nor a group with a number.
    pub(super) const OTHER: u32 = u32::MAX;
    /// The next item of `Log::waiting`: a passage with a number that cycles waited for.
    pub(super) const WAITING: u32 = u32::MAX - 1;
}

/// The content of a number.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) content: Content,
    pub(crate) totals: Totals,
    /// All elements begin before this distance from the content's start.
    pub(super) reach: u32,
    /// Whether the content states contexts, all of them without a context ID and a VMID.
    pub(crate) states_context: bool,
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
    /// The distance from the first member's start.
    pub(crate) after: u32,
}

/// All elements of a passage begin before this distance from its start.
pub(super) const PASSAGE: u32 = 64;

impl Named {
    pub(super) fn passage(passage: Arc<KeptPassage>) -> Self {
        let (totals, states_context) = (passage.totals(), passage.states_context());
        Self { content: Content::Passage(passage), totals, reach: PASSAGE, states_context }
    }

    /// A group of members that have numbers already.
    pub(super) fn group(members: Arc<[Member]>, named: &[Self]) -> Option<Self> {
        let (mut totals, mut states_context) = (Totals::default(), false);
        for member in &*members {
            let member = named.get(member.number as usize)?;
            states_context |= member.states_context;
            let Totals { blocks, instructions, gaps } = member.totals;
            totals.blocks = totals.blocks.saturating_add(blocks);
            totals.instructions = totals.instructions.saturating_add(instructions);
            totals.gaps = totals.gaps.saturating_add(gaps);
        }
        let last = members.last()?;
        let reach = last.after.saturating_add(named.get(last.number as usize)?.reach);
        Some(Self { content: Content::Group(members), totals, reach, states_context })
    }
}
