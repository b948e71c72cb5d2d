//! A stack of places that execution is to return to.

use core::hash::{Hash, Hasher};

use crate::ids::{Address, Isa, Location};

/// How many places are remembered. A decoder's return stack may be deeper than the trace unit's (IHI 0035B, 4.13): the
/// unit's newest entry is always the decoder's newest entry. No known unit has more than four.
const DEPTH: usize = 16;

/// A stack that forgets its oldest entry when it is full.
#[derive(Clone, Debug)]
pub(super) struct LocationStack {
    entries: [Location; DEPTH],
    /// Where the next entry goes.
    top: usize,
    /// How many entries count, at most `DEPTH`.
    count: usize,
    used: Use,
    history: History,
}

/// What lies below the entries, and whether it mattered.
#[derive(Clone, Copy, Debug, Default)]
struct History {
    /// Decoding began in the middle: there may be more.
    unknown: bool,
    /// It was asked for, in vain, since [`LocationStack::begin_part`].
    asked: bool,
    /// The most entries since then: so many push what lies below out.
    highest: usize,
}

/// What became of a stack since [`LocationStack::watch`].
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// Pushes less pops.
    level: i32,
    /// The least and the greatest it was, or, where an entry was only looked at, what it would have been.
    lowest: i32,
    highest: i32,
    /// An entry was asked for where there was none, or the stack was cleared.
    exhausted: bool,
}

/// What a stretch of execution does to a stack, whatever lies deeper in it: it takes entries, which have to be these,
/// and leaves others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Exchange {
    taken: Few,
    given: Few,
    /// How far above the first level it came: so much of the bottom may be forgotten.
    rise: usize,
}

/// A few entries, the newest one last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Few {
    /// Those behind the first `count` are nowhere.
    entries: [Location; MOST],
    count: usize,
}

/// How many entries an exchange has at most.
const MOST: usize = 4;

const NOWHERE: Location = Location::new(Address::new(0), Isa::A32);

impl LocationStack {
    pub(super) const fn new() -> Self {
        let used = Use { level: 0, lowest: 0, highest: 0, exhausted: false };
        let history = History { unknown: false, asked: false, highest: 0 };
        Self { entries: [NOWHERE; DEPTH], top: 0, count: 0, used, history }
    }

    /// A stack of which nothing is known.
    pub(super) const fn unknown() -> Self {
        let history = History { unknown: true, asked: false, highest: 0 };
        Self { history, ..Self::new() }
    }

    #[inline]
    pub(super) fn push(&mut self, location: Location) {
        self.place(location);
        self.count = (self.count + 1).min(DEPTH);
        self.used.level = self.used.level.wrapping_add(1);
        self.used.highest = self.used.highest.max(self.used.level);
        self.rise_to(self.count);
    }

    /// There were so many entries: what lies below is forgotten as far as there is no room for it.
    #[inline]
    fn rise_to(&mut self, count: usize) {
        self.history.highest = self.history.highest.max(count);
        self.history.unknown &= count < DEPTH;
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Location> {
        let newest = self.newest();
        if newest.is_some() {
            self.count -= 1;
            self.top = (self.top + DEPTH - 1) % DEPTH;
            self.used.level = self.used.level.wrapping_sub(1);
        }
        newest
    }

    /// What [`LocationStack::pop`] would give.
    #[inline]
    pub(super) fn newest(&mut self) -> Option<Location> {
        if self.count == 0 {
            self.used.exhausted = true;
            self.history.asked |= self.history.unknown;
            return None;
        }
        self.used.lowest = self.used.lowest.min(self.used.level.wrapping_sub(1));
        self.entries.get((self.top + DEPTH - 1) % DEPTH).copied()
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.used.exhausted = true;
        self.history.unknown = false;
    }

    /// From here on [`LocationStack::is_certain`] tells of a new part.
    pub(super) fn begin_part(&mut self) {
        self.history.asked = false;
        self.history.highest = self.count;
    }

    /// Whether what was done in a part, behind which the stack was this, does not depend on what lay below `guess`: it was
    /// not asked for, or there was nothing on the stack `real`, which [proves](Self::proves) the guess.
    pub(super) const fn is_certain(&self, real: &Self, guess: &Self) -> bool {
        !self.history.asked || real.count == guess.count
    }

    /// Whether this is what `guess` is, which may know less of what lies below.
    pub(super) fn proves(&self, guess: &Self) -> bool {
        let same = (0..guess.count).all(|depth| self.at_depth(depth) == guess.at_depth(depth));
        same && guess.count <= self.count && (guess.history.unknown || guess.count == self.count)
    }

    /// This stack, when what was done in some parts is done to it: it [proves](Self::proves) what `guess` was before them,
    /// and this is what it was behind each of them, all of them [certain](Self::is_certain).
    pub(super) fn continued<'a>(&self, guess: &Self, parts: impl Iterator<Item = &'a Self>) -> Self {
        let (mut highest, mut end) = (guess.count, guess);
        for part in parts {
            highest = highest.max(part.history.highest);
            end = part;
        }
        let mut stack = Self::new();
        if end.history.unknown {
            let below = (self.count - guess.count).min(DEPTH - highest);
            let below = (guess.count..guess.count + below).rev().filter_map(|depth| self.at_depth(depth));
            below.for_each(|location| stack.push(location));
        }
        (0..end.count)
            .rev()
            .filter_map(|depth| end.at_depth(depth))
            .for_each(|location| stack.push(location));
        stack
    }

    /// The entry below so many others.
    fn at_depth(&self, depth: usize) -> Option<Location> {
        let place = (self.top + 2 * DEPTH - 1 - depth) % DEPTH;
        self.entries.get(place).copied().filter(|_| depth < self.count)
    }

    /// From here on [`LocationStack::exchange_since`] tells what became of the stack.
    pub(super) fn watch(&mut self) {
        self.used = Use::default();
    }

    /// What became of the stack, which was like `before` when it was [watched](LocationStack::watch); `None` where that
    /// depends on what lay in it, or is too much to say.
    pub(super) fn exchange_since(&self, before: &Self) -> Option<Exchange> {
        let Use { level, lowest, highest, exhausted } = self.used;
        if exhausted {
            return None;
        }
        if lowest == 0 && highest == 0 {
            // Most windows do nothing to it.
            return Some(Exchange::default());
        }
        let taken = before.newest_few(usize::try_from(lowest.unsigned_abs()).ok()?)?;
        let given = self.newest_few(usize::try_from(level - lowest).ok()?)?;
        Some(Exchange { taken, given, rise: usize::try_from(highest).ok().filter(|rise| *rise <= MOST)? })
    }

    /// The newest `count` entries, if there are so many.
    fn newest_few(&self, count: usize) -> Option<Few> {
        let fits = count <= self.count.min(MOST);
        let mut few = fits.then_some(Few { count, ..Few::default() })?;
        for (index, entry) in few.entries.iter_mut().take(count).enumerate() {
            *entry = *self.entries.get((self.top + DEPTH - count + index) % DEPTH)?;
        }
        Some(few)
    }

    /// Whether the exchange takes the entries that this stack has. Nearly always that is one, or none.
    #[inline(always)]
    pub(super) fn allows(&self, exchange: &Exchange) -> bool {
        let Few { entries: [first, ..], count } = &exchange.taken;
        match count {
            0 => true,
            1 => self.count > 0 && self.entries.get((self.top + DEPTH - 1) % DEPTH) == Some(first),
            _ => self.has_newest(&exchange.taken),
        }
    }

    /// Whether these are the newest entries.
    #[inline(never)]
    fn has_newest(&self, Few { entries, count }: &Few) -> bool {
        let from_newest = entries.iter().take(*count).rev().zip(1..=self.count);
        *count <= self.count && { from_newest }
            .all(|(entry, back)| self.entries.get((self.top + DEPTH - back) % DEPTH) == Some(entry))
    }

    /// Does what the exchange says, which is [allowed](LocationStack::allows).
    #[inline(always)]
    pub(super) fn apply(&mut self, exchange: &Exchange) {
        // Of the two stacks of a program one is seldom used.
        if exchange.rise == 0 && exchange.taken.count == 0 {
            return;
        }
        self.rise_to(self.count + exchange.rise);
        // What was pushed and popped in between may have pushed the oldest ones out.
        self.count = self.count.min(DEPTH - exchange.rise) - exchange.taken.count;
        self.top = (self.top + DEPTH - exchange.taken.count) % DEPTH;
        let Few { entries: [first, more @ ..], count } = &exchange.given;
        if *count > 0 {
            self.place(*first);
            more.iter().take(*count - 1).for_each(|&location| self.place(location));
        }
        self.count += count;
    }

    /// An entry on top of the others, not yet counted.
    #[inline(always)]
    fn place(&mut self, location: Location) {
        if let Some(entry) = self.entries.get_mut(self.top % DEPTH) {
            *entry = location;
        }
        self.top = (self.top + 1) % DEPTH;
    }
}

impl Hash for Few {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.count.hash(state);
        self.entries.iter().take(self.count).for_each(|entry| entry.hash(state));
    }
}

impl Default for Few {
    fn default() -> Self {
        Self { entries: [NOWHERE; MOST], count: 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn at(index: u32) -> Location {
        Location::new(Address::from(index), Isa::T32)
    }

    fn contents(mut stack: LocationStack) -> Vec<Location> {
        core::iter::from_fn(|| stack.pop()).collect()
    }

    #[test]
    fn a_full_stack_forgets_the_oldest_entry() {
        let mut stack = LocationStack::new();
        (0..20).for_each(|index| stack.push(at(index)));
        assert!(contents(stack.clone()).into_iter().eq((4..20).rev().map(at)));
        stack.push(at(1));
        stack.clear();
        assert_eq!(stack.pop(), None);
    }

    /// A stack that got these entries.
    fn with(mut stack: LocationStack, entries: core::ops::Range<u32>) -> LocationStack {
        entries.for_each(|entry| stack.push(at(entry)));
        stack
    }

    #[test]
    fn a_stack_is_proven_by_its_newest_entries_and_what_it_may_not_know_of() {
        let known = |entries| with(LocationStack::new(), entries);
        let guessed = |entries| with(LocationStack::unknown(), entries);
        assert!(known(0..3).proves(&known(0..3)) && known(0..3).proves(&guessed(0..3)));
        assert!(known(0..3).proves(&guessed(1..3)) && known(0..3).proves(&LocationStack::unknown()));
        assert!(!known(0..3).proves(&known(1..3)), "there is one more below");
        assert!(!known(0..3).proves(&guessed(0..2)), "another one is the newest");
        assert!(!known(1..3).proves(&guessed(0..3)), "one is missing below");
        assert!(known(0..30).proves(&guessed(10..30)), "both have forgotten the same");
    }

    #[test]
    fn an_answer_from_below_is_uncertain_until_the_stack_was_full() {
        let mut guess = LocationStack::unknown();
        let before = guess.clone();
        let [nothing, something] = [0..0, 0..1].map(|entries| with(LocationStack::new(), entries));
        assert!(guess.is_certain(&something, &before));
        guess.push(at(1));
        assert_eq!((guess.pop(), guess.pop()), (Some(at(1)), None));
        assert!(!guess.is_certain(&something, &before), "the real one had an entry there");
        assert!(guess.is_certain(&nothing, &before), "nor had the real one");
        let depth = u32::try_from(DEPTH).expect("few");
        for (entries, certain) in [(depth - 1, false), (depth, true)] {
            let mut full = with(LocationStack::unknown(), 0..entries);
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
            let act = |stack: &mut LocationStack, step: &Option<u32>| match step {
                Some(entry) => stack.push(at(*entry)),
                None => _ = stack.pop(),
            };
            let mut real = LocationStack::new();
            first.iter().for_each(|&entry| real.push(at(entry)));
            let mut guess = LocationStack::unknown();
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
        fn an_exchange_does_to_any_stack_that_allows_it_what_was_done_to_the_first(
            first in proptest::collection::vec(0_u32..3, 0..20),
            second in proptest::collection::vec(0_u32..3, 0..20),
            // Push, pop, look.
            done in proptest::collection::vec(prop_oneof![(0_u32..3).prop_map(Some), Just(None), Just(Some(9))], 0..8),
        ) {
            let stack = |entries: &[u32]| {
                let mut stack = LocationStack::new();
                entries.iter().for_each(|&entry| stack.push(at(entry)));
                stack
            };
            let act = |stack: &mut LocationStack| {
                let what = |step: &Option<u32>| match step {
                    Some(9) => stack.newest(),
                    Some(entry) => { stack.push(at(*entry)); None }
                    None => stack.pop(),
                };
                done.iter().map(what).collect::<Vec<_>>()
            };
            let (before, mut worked) = (stack(&first), stack(&first));
            worked.watch();
            let answers = act(&mut worked);
            let Some(exchange) = worked.exchange_since(&before) else { return Ok(()) };
            let mut other = stack(&second);
            if other.allows(&exchange) {
                let mut expected = other.clone();
                prop_assert_eq!(act(&mut expected), answers);
                other.apply(&exchange);
                prop_assert_eq!(contents(other), contents(expected));
            } else {
                prop_assert_ne!(first, second);
            }
        }
    }
}
