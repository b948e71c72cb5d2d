//! Groups of passages that often follow one another, and groups of such groups.
//!
//! The passages in a group decide where it ends. The same passages are therefore grouped in the same way wherever they occur, and
//! grouping agrees again a few passages after a difference.

use std::sync::Arc;

use super::named::{Entry, Member};
use super::numbers::Numbers;
use crate::quick::{CameOnce, QuickMap, mix};

/// The most members of a group, and the longest stretch of trace that it covers.
const MOST: usize = 24;
const LONGEST: u32 = 1 << 10;

/// The average number of passages after which one ends a group.
const ONE_OF: u64 = 8;

/// The groups that a thread knows.
#[derive(Debug, Default)]
pub(super) struct Groups {
    known: QuickMap<u64, (u32, Arc<[Member]>)>,
    /// Groups that were seen once.
    seen: CameOnce,
    members: Vec<Member>,
}

/// The group that grows at the end of the notes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growing {
    /// The first entry.
    pub(super) start: usize,
    hash: u64,
}

impl Growing {
    /// An empty group.
    pub(super) fn from(start: usize) -> Self {
        Self { start, hash: 0 }
    }

    /// Takes another passage or group, the last of `entries`. Returns whether the group ends with it.
    #[inline]
    pub(super) fn takes(&mut self, number: u32, entries: usize) -> bool {
        self.hash = mix(self.hash ^ u64::from(number));
        let ends = mix(u64::from(number) + 1).is_multiple_of(ONE_OF);
        ends || entries - self.start >= MOST
    }
}

impl Groups {
    /// The number of a group that was seen before; a group that was seen once gets a number.
    pub(super) fn number(&mut self, group: Growing, entries: &[Entry], numbers: &Numbers) -> Option<u32> {
        let [first, _, ..] = entries else { return None };
        let members = entries
            .iter()
            .map(|entry| Member { number: entry.number, after: entry.at.wrapping_sub(first.at) });
        if let Some((number, known)) = self.known.get(&group.hash) {
            return known.iter().copied().eq(members).then_some(*number);
        }
        if !self.seen.note(group.hash) {
            return None;
        }
        self.members.clear();
        self.members.extend(members);
        let is_short = self.members.last().is_some_and(|last| last.after <= LONGEST);
        let number = if is_short { numbers.group(&self.members)? } else { return None };
        self.known.insert(group.hash, (number, Arc::from(&*self.members)));
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::super::named::{Content, Named, PASSAGE};
    use super::*;
    use crate::log::{Log, Noting};
    use crate::samples::{block, taken};
    use crate::sink::Part;
    use tracewalk::flow::{Block, Element};
    use tracewalk::span::{CaptureOffset, Span, StreamOffset};

    /// Blocks that begin at these addresses, each of a byte of trace.
    fn noted(noting: Noting, addresses: impl Iterator<Item = u32>) -> Log {
        let mut log = Log::new(noting);
        for (at, start) in (0..).zip(addresses) {
            let Element::Block(block) = block(start, start + 4, taken()) else { continue };
            let block = Block { span: Span::new(StreamOffset(at), 1), ..block };
            log.element(&Element::Block(block), || CaptureOffset(at));
        }
        log
    }

    fn named(log: &Log) -> Vec<Named> {
        let mut named = Vec::new();
        log.known.numbers.update(&mut named);
        named
    }

    #[test]
    fn what_follows_one_another_again_and_again_is_one_entry() {
        let addresses = || (0..8000).map(|step| 0x100 + step % 40 * 0x10);
        let (plain, grouped) = (noted(Noting::Passages, addresses()), noted(Noting::Groups, addresses()));
        assert_eq!(plain.entries.len(), 8000);
        assert!(grouped.entries.len() < 3000, "{} entries", grouped.entries.len());
        // The same blocks, in order, at the same places.
        let named = named(&grouped);
        let mut found = grouped.entries.iter().map(|entry| (entry.number, entry.at)).collect::<Vec<_>>();
        let mut deepest = 0;
        while found.iter().any(|(number, _)| matches!(named[*number as usize].content, Content::Group(_))) {
            deepest += 1;
            let unfolded = found.iter().flat_map(|(number, at)| match &named[*number as usize].content {
                Content::Passage(_) => vec![(*number, *at)],
                Content::Group(members) => {
                    members.iter().map(|member| (member.number, at + member.after)).collect()
                }
            });
            found = unfolded.collect();
        }
        assert_eq!(deepest, 2, "groups of groups");
        let expected = plain.entries.iter().map(|entry| entry.at).collect::<Vec<_>>();
        assert_eq!(found.iter().map(|(_, at)| *at).collect::<Vec<_>>(), expected);
        let starts = found.iter().map(|(number, _)| match &named[*number as usize].content {
            Content::Passage(passage) => passage.totals().blocks,
            Content::Group(_) => 0,
        });
        assert!(starts.eq(std::iter::repeat_n(1, 8000)));
        let same = found.iter().zip(found.iter().skip(40)).all(|(one, other)| one.0 == other.0);
        assert!(same, "a period of 40 blocks");
    }

    #[test]
    fn what_never_comes_again_is_no_group() {
        let log = noted(Noting::Groups, (0..5000).map(|step| 0x1000 + step * 0x10));
        assert_eq!(log.entries.len(), 5000);
        assert!(named(&log).iter().all(|named| matches!(named.content, Content::Passage(_))));
    }

    #[test]
    fn a_group_reaches_as_far_as_its_last_passage() {
        let log = noted(Noting::Groups, (0..4000).map(|step| 0x100 + step % 40 * 0x10));
        let named = named(&log);
        let mut of_groups = 0;
        for group in &named {
            let Content::Group(members) = &group.content else { continue };
            let mut all = members.iter().map(|member| &named[member.number as usize]);
            let (blocks, last) =
                (all.clone().map(|member| member.totals.blocks).sum::<u32>(), all.next_back());
            let last = last.expect("a group has members");
            assert_eq!(group.reach, members.last().expect("a group has members").after + last.reach);
            assert_eq!(group.totals.blocks, blocks);
            assert!((2..=MOST).contains(&members.len()));
            match last.content {
                Content::Passage(_) => assert_eq!(last.reach, PASSAGE),
                Content::Group(_) => of_groups += 1,
            }
        }
        assert!(of_groups > 0);
    }
}
