//! A return stack that records its changes, for the memo and for segments.
//!
//! The memo needs the effect of a stretch of execution on a stack, independent of deeper entries: a
//! [`StackEffect`]. A worker that began in the middle of a trace does not know the entries below its own:
//! [`Below`] records whether they were needed.

use core::hash::{Hash, Hasher};

use crate::ids::Location;

use super::stack::{DEPTH, LocationStack, NOWHERE};

/// A [`LocationStack`], and its changes.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct WatchedStack {
    stack: LocationStack,
    /// Restarted when decoding continues from a checkpoint.
    #[cfg_attr(feature = "serde", serde(skip, default = "Watch::new"))]
    watch: Watch,
    below: Below,
}

/// The changes to a stack since [`WatchedStack::watch`].
#[derive(Clone, Copy, Debug)]
struct Watch {
    /// Pushes minus pops.
    level: i32,
    /// The lowest and the highest level. An entry that was only looked at counts as popped.
    lowest: i32,
    highest: i32,
    /// Whether an entry was asked for when there was none, or the stack was cleared.
    exhausted: bool,
    /// The entries below level 0 that were popped or looked at, in order. `lowest` bounds the valid ones.
    taken: [Location; MOST],
}

/// Whether there are entries below the known ones, and whether they were needed.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Below {
    /// Whether unknown entries may lie below, because decoding began in the middle.
    unknown: bool,
    /// Whether an unknown entry was asked for since [`WatchedStack::begin_part`].
    asked: bool,
    /// The maximum number of entries since then. They push out entries below.
    highest: usize,
}

/// The effect of a stretch of execution on a stack, independent of deeper entries: it takes certain entries,
/// and leaves others.
///
/// Replay reads an effect for every other window. The counts, the first entry taken and the first entry left
/// share 28 bytes, mostly in one cache line; the rest is seldom read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct StackEffect {
    /// The number of entries that the effect takes.
    taken: u8,
    /// The number of entries that the effect leaves.
    given: u8,
    /// The highest level above the first: the stack may have dropped as many of its oldest entries.
    rise: u8,
    /// The entries taken and the entries left, each from the oldest to the newest. Entries after the counts
    /// are [`NOWHERE`].
    entries: [Exchanged; MOST],
}

/// An entry that the effect takes, and one that it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Exchanged {
    taken: Location,
    given: Location,
}

/// The maximum number of entries of an effect.
const MOST: usize = 4;

impl WatchedStack {
    pub(super) const fn new() -> Self {
        let watch = Watch::NEW;
        let below = Below { unknown: false, asked: false, highest: 0 };
        Self { stack: LocationStack::new(), watch, below }
    }

    /// An unknown stack.
    pub(super) const fn unknown() -> Self {
        let below = Below { unknown: true, asked: false, highest: 0 };
        Self { below, ..Self::new() }
    }

    #[inline]
    pub(super) fn push(&mut self, location: Location) {
        self.stack.push(location);
        self.watch.level = self.watch.level.wrapping_add(1);
        self.watch.highest = self.watch.highest.max(self.watch.level);
        self.below.rise_to(self.stack.len());
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Location> {
        let newest = self.newest();
        if newest.is_some() {
            self.stack.drop_newest(1);
            self.watch.level = self.watch.level.wrapping_sub(1);
        }
        newest
    }

    /// The entry that [`WatchedStack::pop`] would return.
    #[inline]
    pub(super) fn newest(&mut self) -> Option<Location> {
        let newest = self.stack.newest();
        if let Some(location) = newest {
            self.watch.look(location);
        } else {
            self.watch.exhausted = true;
            self.below.asked |= self.below.unknown;
        }
        newest
    }

    pub(super) fn clear(&mut self) {
        self.stack.keep_newest(0);
        self.watch.exhausted = true;
        self.below.unknown = false;
    }

    /// Begins a new part for [`WatchedStack::is_certain`].
    pub(super) const fn begin_part(&mut self) {
        self.below.asked = false;
        self.below.highest = self.stack.len();
    }

    /// Whether the part that ended with this stack does not depend on entries below `guess`: none was asked
    /// for, or the stack `real`, which [proves](Self::proves) the guess, has none there.
    pub(super) const fn is_certain(&self, real: &Self, guess: &Self) -> bool {
        !self.below.asked || real.stack.len() == guess.stack.len()
    }

    /// Whether this stack equals `guess`, except for entries below that `guess` does not know.
    pub(super) fn proves(&self, guess: &Self) -> bool {
        let (mine, guessed) = (&self.stack, &guess.stack);
        let same = (0..guessed.len()).all(|depth| mine.at_depth(depth) == guessed.at_depth(depth));
        same && guessed.len() <= mine.len() && (guess.below.unknown || guessed.len() == mine.len())
    }

    /// This stack after some parts. The stack [proves](Self::proves) `guess`, the stack before the parts;
    /// `parts` are the stacks after each part, all of them [certain](Self::is_certain).
    pub(super) fn continued<'a>(&self, guess: &Self, parts: impl Iterator<Item = &'a Self>) -> Self {
        let (mut highest, mut end) = (guess.stack.len(), guess);
        for part in parts {
            highest = highest.max(part.below.highest);
            end = part;
        }
        let mut stack = Self::new();
        let guessed = guess.stack.len();
        if end.below.unknown {
            let known = (self.stack.len() - guessed).min(DEPTH - highest);
            let known = (guessed..guessed + known).rev().filter_map(|depth| self.stack.at_depth(depth));
            known.for_each(|location| stack.push(location));
        }
        let own = (0..end.stack.len()).rev().filter_map(|depth| end.stack.at_depth(depth));
        own.for_each(|location| stack.push(location));
        stack
    }

    /// Starts to record the changes that [`WatchedStack::effect`] returns.
    pub(super) const fn watch(&mut self) {
        let taken = self.watch.taken;
        self.watch = Watch { taken, ..Watch::NEW };
    }

    /// The changes since [`WatchedStack::watch`]; `None` if the stack ran empty or was cleared, or if there
    /// are too many changes.
    pub(super) fn effect(&self) -> Option<StackEffect> {
        let Watch { level, lowest, highest, exhausted, taken } = &self.watch;
        if *exhausted {
            return None;
        }
        if *lowest == 0 && *highest == 0 {
            // Most windows do not change the stack.
            return Some(StackEffect::default());
        }
        let mut effect = StackEffect {
            taken: count(lowest.unsigned_abs())?,
            given: count(u32::try_from(level - lowest).ok()?)?,
            rise: count(u32::try_from(*highest).ok()?)?,
            ..StackEffect::default()
        };
        let taken = taken.get(..effect.taken.into())?.iter().rev();
        effect.entries.iter_mut().zip(taken).for_each(|(entry, &location)| entry.taken = location);
        for (entry, depth) in effect.entries.iter_mut().zip((0..effect.given.into()).rev()) {
            entry.given = self.stack.at_depth(depth)?;
        }
        Some(effect)
    }

    /// Whether this stack has the entries that the effect takes: nearly always one or none.
    #[inline(always)]
    pub(super) fn allows(&self, effect: &StackEffect) -> bool {
        let [first, ..] = &effect.entries;
        match effect.taken {
            0 => true,
            1 => self.stack.newest() == Some(first.taken),
            _ => effect.takes_newest_of(&self.stack),
        }
    }

    /// Applies the effect, which must be [allowed](WatchedStack::allows).
    #[inline(always)]
    pub(super) fn apply(&mut self, effect: &StackEffect) {
        // Of the two stacks of a program one is seldom used.
        if effect.rise == 0 && effect.taken == 0 {
            return;
        }
        self.below.rise_to(self.stack.len() + usize::from(effect.rise));
        // Pushes in between may have dropped the oldest entries.
        self.stack.keep_newest(DEPTH - usize::from(effect.rise));
        self.stack.drop_newest(effect.taken.into());
        let [first, more @ ..] = &effect.entries;
        if effect.given > 0 {
            self.stack.push(first.given);
            more.iter().take(usize::from(effect.given) - 1).for_each(|entry| self.stack.push(entry.given));
        }
    }
}

impl Watch {
    #[cfg(feature = "serde")]
    const fn new() -> Self {
        Self::NEW
    }

    const NEW: Self = Self { level: 0, lowest: 0, highest: 0, exhausted: false, taken: [NOWHERE; MOST] };

    /// Records that the newest entry is popped or looked at.
    #[inline]
    fn look(&mut self, newest: Location) {
        let below = self.level.wrapping_sub(1);
        if below < self.lowest {
            let index = usize::try_from(self.lowest.unsigned_abs()).unwrap_or(usize::MAX);
            if let Some(entry) = self.taken.get_mut(index) {
                *entry = newest;
            }
            self.lowest = below;
        }
    }
}

impl Below {
    /// Records that there were `count` entries: a full stack has pushed out all entries below.
    #[inline]
    fn rise_to(&mut self, count: usize) {
        self.highest = self.highest.max(count);
        self.unknown &= count < DEPTH;
    }
}

impl StackEffect {
    /// Whether the entries that the effect takes are the newest of `stack`.
    #[inline(never)]
    fn takes_newest_of(&self, stack: &LocationStack) -> bool {
        let mut from_newest = self.entries.iter().take(self.taken.into()).rev().zip(0..);
        from_newest.all(|(entry, depth)| stack.at_depth(depth) == Some(entry.taken))
    }
}

/// The number of entries; `None` if it is more than an effect can have.
fn count(entries: u32) -> Option<u8> {
    u8::try_from(entries).ok().filter(|&count| usize::from(count) <= MOST)
}

impl Hash for StackEffect {
    fn hash<H: Hasher>(&self, state: &mut H) {
        [self.taken, self.given, self.rise].hash(state);
        self.entries.iter().take(self.taken.into()).for_each(|entry| entry.taken.hash(state));
        self.entries.iter().take(self.given.into()).for_each(|entry| entry.given.hash(state));
    }
}

impl Default for StackEffect {
    fn default() -> Self {
        let nowhere = Exchanged { taken: NOWHERE, given: NOWHERE };
        Self { taken: 0, given: 0, rise: 0, entries: [nowhere; MOST] }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::ids::{Address, Isa};

    fn at(index: u32) -> Location {
        Location::new(Address::from(index), Isa::T32)
    }

    fn contents(mut stack: WatchedStack) -> Vec<Location> {
        core::iter::from_fn(|| stack.pop()).collect()
    }

    /// The stack after these entries are pushed.
    fn with(mut stack: WatchedStack, entries: core::ops::Range<u32>) -> WatchedStack {
        entries.for_each(|entry| stack.push(at(entry)));
        stack
    }

    #[test]
    fn a_stack_is_proven_by_its_newest_entries_and_what_it_may_not_know_of() {
        let known = |entries| with(WatchedStack::new(), entries);
        let guessed = |entries| with(WatchedStack::unknown(), entries);
        assert!(known(0..3).proves(&known(0..3)) && known(0..3).proves(&guessed(0..3)));
        assert!(known(0..3).proves(&guessed(1..3)) && known(0..3).proves(&WatchedStack::unknown()));
        assert!(!known(0..3).proves(&known(1..3)), "there is one more below");
        assert!(!known(0..3).proves(&guessed(0..2)), "another one is the newest");
        assert!(!known(1..3).proves(&guessed(0..3)), "one is missing below");
        assert!(known(0..30).proves(&guessed(10..30)), "both have forgotten the same");
    }

    #[test]
    fn an_answer_from_below_is_uncertain_until_the_stack_was_full() {
        let mut guess = WatchedStack::unknown();
        let before = guess.clone();
        let [nothing, something] = [0..0, 0..1].map(|entries| with(WatchedStack::new(), entries));
        assert!(guess.is_certain(&something, &before));
        guess.push(at(1));
        assert_eq!((guess.pop(), guess.pop()), (Some(at(1)), None));
        assert!(!guess.is_certain(&something, &before), "the real one had an entry there");
        assert!(guess.is_certain(&nothing, &before), "nor had the real one");
        let depth = u32::try_from(DEPTH).expect("few");
        for (entries, certain) in [(depth - 1, false), (depth, true)] {
            let mut full = with(WatchedStack::unknown(), 0..entries);
            (0..=entries).for_each(|_| _ = full.pop());
            assert_eq!(full.is_certain(&something, &before), certain, "{entries} entries");
        }
    }

    proptest! {
        #[test]
        fn parts_put_together_are_what_one_after_the_other_would_be(
            first in proptest::collection::vec(0_u32..3, 0..20),
            known in 0_usize..20,
            // Push, pop.
            parts in proptest::collection::vec(proptest::collection::vec(proptest::option::of(0_u32..9), 0..24), 1..4),
        ) {
            let act = |stack: &mut WatchedStack, step: &Option<u32>| match step {
                Some(entry) => stack.push(at(*entry)),
                None => _ = stack.pop(),
            };
            let mut real = WatchedStack::new();
            first.iter().for_each(|&entry| real.push(at(entry)));
            let mut guess = WatchedStack::unknown();
            first.iter().skip(known).for_each(|&entry| guess.push(at(entry)));
            prop_assert!(real.proves(&guess));
            let (mut expected, mut end, mut ends) = (real.clone(), guess.clone(), Vec::new());
            for part in &parts {
                end.begin_part();
                part.iter().for_each(|step| act(&mut end, step));
                ends.push(end.clone());
                part.iter().for_each(|step| act(&mut expected, step));
            }
            if ends.iter().all(|end| end.is_certain(&real, &guess)) {
                prop_assert_eq!(contents(real.continued(&guess, ends.iter())), contents(expected));
            }
        }

        #[test]
        fn an_effect_does_to_any_stack_that_allows_it_what_was_done_to_the_first(
            first in proptest::collection::vec(0_u32..3, 0..20),
            second in proptest::collection::vec(0_u32..3, 0..20),
            // Push, pop, look.
            done in proptest::collection::vec(prop_oneof![(0_u32..3).prop_map(Some), Just(None), Just(Some(9))], 0..8),
        ) {
            let stack = |entries: &[u32]| {
                let mut stack = WatchedStack::new();
                entries.iter().for_each(|&entry| stack.push(at(entry)));
                stack
            };
            let act = |stack: &mut WatchedStack| {
                let what = |step: &Option<u32>| match step {
                    Some(9) => stack.newest(),
                    Some(entry) => { stack.push(at(*entry)); None }
                    None => stack.pop(),
                };
                done.iter().map(what).collect::<Vec<_>>()
            };
            let mut worked = stack(&first);
            worked.watch();
            let answers = act(&mut worked);
            let Some(effect) = worked.effect() else { return Ok(()) };
            let mut other = stack(&second);
            if other.allows(&effect) {
                let mut expected = other.clone();
                prop_assert_eq!(act(&mut expected), answers);
                other.apply(&effect);
                prop_assert_eq!(contents(other), contents(expected));
            } else {
                prop_assert_ne!(first, second);
            }
        }
    }
}
