//! How often passages came, to be counted by their elements at the end.

use std::sync::Arc;

use tracewalk::flow::{Element, KeptPassage, Placing};
use tracewalk::span::StreamOffset;

use crate::analysis::Repeated;

/// How often each passage of a set of numbers came, with a note of its consumer.
#[derive(Debug)]
pub(crate) struct Times<T> {
    set: u32,
    /// By number.
    passages: Vec<Option<Timed<T>>>,
}

/// A passage, and how often it came.
#[derive(Debug)]
pub(crate) struct Timed<T> {
    passage: Arc<KeptPassage>,
    pub(crate) times: u64,
    pub(crate) note: T,
}

impl<T> Default for Times<T> {
    fn default() -> Self {
        Self { set: 0, passages: Vec::new() }
    }
}

impl<T> Times<T> {
    /// A passage that came before.
    #[inline]
    pub(crate) fn get(&mut self, repeated: &Repeated<'_>) -> Option<&mut Timed<T>> {
        if repeated.set() != self.set {
            return None;
        }
        self.passages.get_mut(repeated.number() as usize)?.as_mut()
    }

    /// Adds a passage that has not come before. Returns the passages of the previous set, if another set begins.
    pub(crate) fn insert(
        &mut self,
        repeated: &Repeated<'_>,
        note: T,
    ) -> impl Iterator<Item = Timed<T>> + use<T> {
        let is_other = repeated.set() != self.set;
        let before = if is_other { std::mem::take(&mut self.passages) } else { Vec::new() };
        self.set = repeated.set();
        let number = repeated.number() as usize;
        if self.passages.len() <= number {
            self.passages.resize_with(number + 1, || None);
        }
        let passage = Arc::clone(repeated.passage());
        self.passages[number] = Some(Timed { passage, times: 1, note });
        before.into_iter().flatten()
    }

    /// Takes all passages out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Timed<T>> + use<T> {
        std::mem::take(&mut self.passages).into_iter().flatten()
    }
}

impl<T> Timed<T> {
    /// The passage's elements, without their places.
    pub(crate) fn elements(&self) -> impl Iterator<Item = Element> + '_ {
        self.passage.placed(Placing::at(StreamOffset(0))).elements()
    }
}
