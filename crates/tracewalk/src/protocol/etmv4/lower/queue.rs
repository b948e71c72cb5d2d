//! Elements of the trace, until they are certain.

use alloc::collections::VecDeque;

use crate::span::Span;

use super::element::{Element, Impossible};

/// An element in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Entry {
    element: Element,
    span: Span,
    is_p0: bool,
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
        self.push_entry(Entry { element, span, is_p0: true })
    }

    pub(super) fn push(&mut self, element: Element, span: Span) -> Result<(), Impossible> {
        self.push_entry(Entry { element, span, is_p0: false })
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
            match self.entries.front() {
                Some(Entry { is_p0: true, .. }) if left == 0 => break,
                Some(&Entry { element, span, is_p0 }) => {
                    left -= u64::from(is_p0);
                    self.p0 -= u64::from(is_p0);
                    self.entries.pop_front();
                    emit(element, span);
                }
                None => break,
            }
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
            let Some(entry) = self.entries.get(index) else { break };
            left -= u64::from(entry.is_p0);
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
                Some(Element::Atom { executed }) => {
                    *executed = !*executed;
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
        for Entry { element, span, is_p0 } in core::mem::take(self).entries {
            if is_p0 {
                break;
            }
            if element.is_certain() {
                emit(element, span);
            }
        }
    }
}
