//! Elements of the trace, until they are certain.

use alloc::collections::VecDeque;

use crate::directive::Waypoints;
use crate::span::Span;

use super::element::{Element, Impossible};

/// An element in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Entry {
    element: Element,
    span: Span,
    /// The number of P0 elements that the entry is: any number of atoms, or one or none.
    p0: u32,
}

/// Uncommitted elements. Invariant: empty, or the oldest is a P0 element, unless `unseen` ones come before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Queue {
    entries: VecDeque<Entry>,
    /// The number of P0 elements among the entries.
    p0: u64,
    /// The number of P0 elements from before decoding began.
    unseen: u64,
}

/// The most entries, to bound memory. No trace unit holds more P0 elements.
const LONGEST: usize = 1 << 16;

impl Queue {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.unseen == 0
    }

    /// The number of P0 elements.
    pub(super) const fn uncommitted(&self) -> u64 {
        self.unseen.saturating_add(self.p0)
    }

    /// Restarts after this number of P0 elements, which were not seen.
    pub(super) fn begin(&mut self, unseen: u64) {
        *self = Self { unseen, ..Self::default() };
    }

    pub(super) fn push_p0(&mut self, element: Element, span: Span) -> Result<(), Impossible> {
        self.p0 += 1;
        self.push_entry(Entry { element, span, p0: 1 })
    }

    /// Adds the atoms of a packet.
    #[inline]
    pub(super) fn push_atoms(&mut self, atoms: Waypoints, span: Span) -> Result<(), Impossible> {
        let p0 = atoms.count();
        self.p0 += u64::from(p0);
        self.push_entry(Entry { element: Element::Atoms(atoms), span, p0 })
    }

    pub(super) fn push(&mut self, element: Element, span: Span) -> Result<(), Impossible> {
        self.push_entry(Entry { element, span, p0: 0 })
    }

    fn push_entry(&mut self, entry: Entry) -> Result<(), Impossible> {
        if self.entries.len() >= LONGEST {
            return Err(Impossible);
        }
        self.entries.push_back(entry);
        Ok(())
    }

    /// Removes the oldest P0 elements and their followers, and passes them to `emit`.
    pub(super) fn commit(
        &mut self,
        count: u64,
        mut emit: impl FnMut(Element, Span),
    ) -> Result<(), Impossible> {
        if count > self.uncommitted() {
            return Err(Impossible);
        }
        let unseen = count.min(self.unseen);
        self.unseen -= unseen;
        let mut left = count - unseen;
        while self.unseen == 0 {
            let Some(entry) = self.entries.front_mut() else { break };
            let Entry { element, span, p0 } = *entry;
            if p0 > 0 && left == 0 {
                break;
            }
            if u64::from(p0) > left {
                let (committed, rest) = split(element, left);
                self.p0 -= left;
                (entry.element, entry.p0) = (rest, p0 - u32::try_from(left).unwrap_or(p0));
                emit(committed, span);
                break;
            }
            left -= u64::from(p0);
            self.p0 -= u64::from(p0);
            self.entries.pop_front();
            emit(element, span);
        }
        Ok(())
    }

    /// Removes the newest P0 elements and their followers, except certain ones: they did not happen.
    pub(super) fn cancel(&mut self, count: u64) -> Result<(), Impossible> {
        if count > self.uncommitted() {
            return Err(Impossible);
        }
        let seen = count.min(self.p0);
        let mut left = seen;
        let mut index = self.entries.len();
        while left > 0 && index > 0 {
            index -= 1;
            let Some(entry) = self.entries.get_mut(index) else { break };
            let p0 = u64::from(entry.p0);
            if p0 > left {
                entry.element = split(entry.element, p0 - left).0;
                entry.p0 = u32::try_from(p0 - left).unwrap_or(0);
                break;
            }
            left -= p0;
            if !entry.element.is_certain() {
                self.entries.remove(index);
            }
        }
        self.p0 -= seen;
        self.unseen -= count - seen;
        Ok(())
    }

    /// Inverts the newest atom and removes its target.
    pub(super) fn turn_newest_atom(&mut self) {
        let mut index = self.entries.len();
        while index > 0 {
            index -= 1;
            match self.entries.get_mut(index).map(|entry| &mut entry.element) {
                Some(Element::Atoms(atoms)) => {
                    *atoms = atoms.with_newest_turned();
                    return;
                }
                Some(Element::Address(_)) => _ = self.entries.remove(index),
                _ => {}
            }
        }
    }

    /// Empties the queue and passes on its certain elements. The others did not happen.
    pub(super) fn discard(&mut self, mut emit: impl FnMut(Element, Span)) {
        for Entry { element, span, .. } in core::mem::take(self).entries {
            if element.is_certain() {
                emit(element, span);
            }
        }
    }

    /// Empties the queue at the end of the trace, and passes on the certain elements before the oldest P0
    /// element.
    pub(super) fn finish(&mut self, mut emit: impl FnMut(Element, Span)) {
        for Entry { element, span, p0 } in core::mem::take(self).entries {
            if p0 > 0 {
                break;
            }
            if element.is_certain() {
                emit(element, span);
            }
        }
    }
}

/// The oldest `count` atoms, and the others. Only atoms are several P0 elements.
fn split(element: Element, count: u64) -> (Element, Element) {
    match element {
        Element::Atoms(atoms) => {
            let (before, after) = atoms.split_at(u32::try_from(count).unwrap_or(u32::MAX));
            (Element::Atoms(before), Element::Atoms(after))
        }
        other => (other, other),
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::span::StreamOffset;

    /// A change of a queue.
    #[derive(Clone, Debug)]
    enum Change {
        Atoms(Waypoints),
        Time,
        Address,
        Commit(u64),
        Cancel(u64),
        Turn,
    }

    fn any_change() -> impl Strategy<Value = Change> {
        let waypoints = |(count, bits)| Change::Atoms(Waypoints::new(count, bits).expect("few"));
        prop_oneof![
            4 => (1..25_u32, any::<u32>()).prop_map(waypoints),
            1 => Just(Change::Time),
            1 => Just(Change::Address),
            3 => (0..20_u64).prop_map(Change::Commit),
            1 => (0..20_u64).prop_map(Change::Cancel),
            1 => Just(Change::Turn),
        ]
    }

    /// Each atom alone, and each other element.
    fn alone(element: Element, span: Span) -> Vec<(Element, Span)> {
        let Element::Atoms(mut left) = element else { return std::vec![(element, span)] };
        let mut atoms = Vec::new();
        while let Some((executed, rest)) = left.split_first() {
            atoms.push((Element::Atoms(Waypoints::new(1, executed.into()).expect("one")), span));
            left = rest;
        }
        atoms
    }

    proptest! {
        #[test]
        fn atoms_of_a_packet_are_queued_as_if_each_came_alone(
            changes in proptest::collection::vec(any_change(), 1..40),
            unseen in 0..8_u64,
        ) {
            let place = super::super::element::Place {
                address: crate::ids::Address::new(8),
                alignment: crate::protocol::etmv4::address::AddressUnit::Words,
            };
            let [mut together, mut apart] = [Queue::default(), Queue::default()];
            [&mut together, &mut apart].into_iter().for_each(|queue| queue.begin(unseen));
            for (index, change) in (0..).zip(changes) {
                let span = Span::new(StreamOffset(index), 1);
                let [mut from_together, mut from_apart] = [Vec::new(), Vec::new()];
                let results = match change {
                    Change::Atoms(atoms) => {
                        for (atom, span) in alone(Element::Atoms(atoms), span) {
                            apart.push_p0(atom, span).expect("there is room");
                        }
                        [together.push_atoms(atoms, span).is_ok(), true]
                    }
                    Change::Time => {
                        [&mut together, &mut apart].map(|queue| queue.push(Element::Timestamp(index), span).is_ok())
                    }
                    Change::Address => {
                        [&mut together, &mut apart].map(|queue| queue.push(Element::Address(place), span).is_ok())
                    }
                    Change::Commit(count) => [
                        together.commit(count, |element, span| from_together.extend(alone(element, span))).is_ok(),
                        apart.commit(count, |element, span| from_apart.push((element, span))).is_ok(),
                    ],
                    Change::Cancel(count) => {
                        [&mut together, &mut apart].map(|queue| queue.cancel(count).is_ok())
                    }
                    Change::Turn => [&mut together, &mut apart].map(|queue| {
                        queue.turn_newest_atom();
                        true
                    }),
                };
                prop_assert_eq!(results[0], results[1]);
                prop_assert_eq!(from_together, from_apart);
                prop_assert_eq!(together.uncommitted(), apart.uncommitted());
                prop_assert_eq!(together.is_empty(), apart.is_empty());
            }
            let [mut from_together, mut from_apart] = [Vec::new(), Vec::new()];
            let all = together.uncommitted();
            let _ = together.commit(all, |element, span| from_together.extend(alone(element, span)));
            let _ = apart.commit(all, |element, span| from_apart.push((element, span)));
            prop_assert_eq!(from_together, from_apart);
        }
    }
}
