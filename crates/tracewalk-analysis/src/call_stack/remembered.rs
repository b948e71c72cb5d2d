//! Caches the effect of repeated elements on a call stack, to apply it at once.
//!
//! ```text
//! (state of the stack, number of the elements) → state after them, frames left and entered, the observer's effect
//! ```
//!
//! Several effects in a row are cached as a group, so that their elements are not followed again.
//!
//! The effect of elements depends only on the [state](super::shape) of the stack, as long as no task is switched and no frame is
//! lost or found again. If one of these may happen, [`CallStack`] reports it, and nothing is cached. An effect is learned by
//! following the elements one by one, once.

mod unobserved;

use std::ops::Range;

use super::CallStack;
use super::frame::Frame;
use super::shape::{ShapeId, Shapes};
use super::worth::Worth;
use crate::quick::{CameOnce, mix, within};

/// The effects of repeated elements on a stack. The observer gives each frame a mark, `M`, and computes an effect, `E`, for the
/// elements.
#[derive(Debug)]
pub struct Remembered<M, E> {
    shapes: Shapes,
    /// The state of the stack, if known. The stack's own `next` then still has the value of the last state that was looked up.
    here: Option<ShapeId>,
    /// The set of the numbers.
    set: u32,
    /// A power of two long, at most half full; empty before the first.
    slots: Vec<Slot>,
    used: usize,
    steps: Vec<Step<E>>,
    /// The frames that all steps enter, in one allocation; they are forgotten together.
    entered: Vec<Frame<M>>,
    /// The members of all groups.
    members: Vec<u32>,
    /// The place of each number's last effect, which is often the next one's as well.
    recent: Vec<u32>,
    /// Whether passages, and groups, are worth learning.
    passages: Worth,
    groups: Worth,
    /// Elements that came once in a state.
    passed: CameOnce,
    /// The steps of the group that is being learned.
    group: Option<Vec<u32>>,
    /// Groups that were looked up once.
    asked: CameOnce,
    group_weight: usize,
}

/// The effect of some elements in a state: a place in the table.
#[derive(Clone, Copy, Debug)]
pub struct Known(usize);

/// Elements that are being followed one by one, and the state of the stack before them.
#[derive(Clone, Copy, Debug)]
pub struct Learning {
    before: Option<ShapeId>,
    number: u32,
    depth: usize,
}

/// A group whose members are taken one by one, and the state of the stack before them.
#[derive(Clone, Copy, Debug)]
pub struct LearningGroup {
    before: ShapeId,
    number: u32,
    depth: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    key: u64,
    next: ShapeId,
    /// The step's number, with [`Slot::SIMPLE`] and [`Slot::GROUP`].
    step: u32,
    /// How often the step was applied.
    count: u64,
}

/// The effect of elements on a stack.
#[derive(Debug)]
struct Step<E> {
    /// The number of frames that are left.
    left: u32,
    /// Whether anything but the frames changes.
    changes_more: bool,
    /// The frames that are entered: a range of those of all steps.
    entered: Range<u32>,
    /// For a group: its steps, and theirs, which are counted with it. A range of the members of all groups.
    members: Range<u32>,
    effect: E,
}

impl Slot {
    const FREE: Self = Self { key: u64::MAX, next: ShapeId(0), step: 0, count: 0 };

    /// The step only has to be counted.
    const SIMPLE: u32 = 1 << 31;
    /// The step is a group's.
    const GROUP: u32 = 1 << 30;
    const NUMBER: u32 = Self::GROUP - 1;
}

/// The most steps that are cached, and the most frames that they enter.
const MOST_STEPS: usize = 1 << 16;
const MOST_ENTERED: usize = 1 << 17;
const FIRST_SLOTS: usize = 1 << 10;
/// The limit of the weight of all groups: their members and effects.
const MOST_GROUP_WEIGHT: usize = 1 << 20;

/// Whether learning pays is decided each time that this many effects were learned, and how often each has to be applied. A group
/// is learned in addition to its members, and every part of the trace is searched for groups.
const PASSAGES: Worth = Worth::of(1 << 12, 8);
const GROUPS: Worth = Worth::of(1 << 9, 32);

impl<M, E> Default for Remembered<M, E> {
    fn default() -> Self {
        Self {
            shapes: Shapes::default(),
            here: None,
            set: 0,
            slots: Vec::new(),
            used: 0,
            steps: Vec::new(),
            entered: Vec::new(),
            members: Vec::new(),
            recent: Vec::new(),
            passages: PASSAGES,
            groups: GROUPS,
            passed: CameOnce::default(),
            group: None,
            asked: CameOnce::default(),
            group_weight: 0,
        }
    }
}

impl<M: Copy, E> Remembered<M, E> {
    /// The effect of these elements on the stack, if it is cached. `key` separates frames that have the same mark.
    #[inline]
    pub fn find(
        &mut self,
        calls: &mut CallStack<M>,
        (set, number): (u32, u32),
        key: impl Fn(&M) -> u32,
    ) -> Option<Known> {
        let _ = self.groups.skips();
        if set != self.set {
            return None;
        }
        let here = match self.here {
            Some(here) => here,
            None => self.look(calls, key)?,
        };
        let key = key_of(here, number);
        // Nothing has to wait for the state to be hashed if the guess is right.
        let guess = self.recent.get(number as usize).map_or(usize::MAX, |at| *at as usize);
        if self.slots.get(guess).is_some_and(|slot| slot.key == key) {
            return Some(Known(guess));
        }
        self.search(key, number)
    }

    #[inline(never)]
    fn search(&mut self, key: u64, number: u32) -> Option<Known> {
        let last = self.slots.len().wrapping_sub(1);
        let mut at = slot_of(key) & last;
        loop {
            match self.slots.get(at)?.key {
                known if known == key => break,
                u64::MAX => return None,
                _ => at = (at + 1) & last,
            }
        }
        self.note_recent(number, at);
        Some(Known(at))
    }

    #[inline]
    fn note_recent(&mut self, number: u32, at: usize) {
        let number = number as usize;
        if self.recent.len() <= number {
            self.recent.resize(number + 1, u32::MAX);
        }
        if let (Some(recent), Ok(at)) = (self.recent.get_mut(number), u32::try_from(at)) {
            *recent = at;
        }
    }

    #[inline(never)]
    fn look(&mut self, calls: &mut CallStack<M>, key: impl Fn(&M) -> u32) -> Option<ShapeId> {
        if self.passages.skips() {
            return None;
        }
        self.here = self.shapes.of(calls, key);
        self.here
    }

    /// Whether these elements only have to be counted.
    #[inline]
    pub fn is_simple(&self, known: Known) -> bool {
        self.slots.get(known.0).is_some_and(|slot| slot.step & Slot::SIMPLE != 0)
    }

    /// The number of frames that are left, whether or not others are entered in their place.
    #[must_use]
    pub fn left(&self, known: Known) -> usize {
        self.step(known).map_or(0, |step| step.left as usize)
    }

    /// The observer's effect.
    #[inline]
    pub fn effect(&self, known: Known) -> Option<&E> {
        self.step(known).map(|step| &step.effect)
    }

    #[inline]
    fn step(&self, known: Known) -> Option<&Step<E>> {
        let slot = self.slots.get(known.0)?;
        self.steps.get((slot.step & Slot::NUMBER) as usize)
    }

    /// Applies the effect to the stack, and counts it.
    #[inline]
    pub fn go(&mut self, known: Known, calls: &mut CallStack<M>) {
        let Some(slot) = self.slots.get_mut(known.0) else { return };
        slot.count += 1;
        self.here = Some(slot.next);
        let worth = if slot.step & Slot::GROUP == 0 { &mut self.passages } else { &mut self.groups };
        worth.found += 1;
        if let Some(steps) = &mut self.group {
            steps.push(slot.step & Slot::NUMBER);
        }
        if slot.step & Slot::SIMPLE == 0
            && let Some(step) = self.steps.get((slot.step & Slot::NUMBER) as usize)
        {
            let entered = self.entered.get(within(&step.entered)).unwrap_or_default();
            let frames = &mut calls.stack.frames;
            frames.truncate(frames.len().saturating_sub(step.left as usize));
            frames.extend(entered.iter().copied());
            if step.changes_more {
                self.shapes.resume(slot.next, calls);
            }
        }
    }

    /// Whether to learn the effect of elements that [`Remembered::find`] did not find: they came before in this state, and
    /// effects are applied often enough. Something that is due to be forgotten is reason enough as well.
    pub fn is_worth_learning(&mut self, (set, number): (u32, u32)) -> bool {
        self.is_full(set) || self.here.is_some_and(|here| self.passed.note(mix(key_of(here, number))))
    }

    /// Begins to learn: elements with this number are followed one by one next. Call it after [`Remembered::find`] returned
    /// nothing.
    pub fn begin_learning(&mut self, calls: &mut CallStack<M>, (set, number): (u32, u32)) -> Learning {
        let before = self.here.filter(|_| set == self.set);
        self.disturb(calls);
        let depth = calls.stack.frames.len();
        calls.stack.fewest = depth;
        calls.did_more = false;
        Learning { before, number, depth }
    }

    /// The elements were followed. Caches their effect on the stack and the observer's `effect` (`None` if that does not depend
    /// on the state alone). A simple effect that leaves the stack as it was only has to be counted later. Returns whether the
    /// effect was cached.
    pub fn end_learning(
        &mut self,
        calls: &mut CallStack<M>,
        learning: Learning,
        effect: Option<(E, bool)>,
        key: impl Fn(&M) -> u32,
    ) -> bool {
        let Learning { before, number, depth } = learning;
        let (Some(before), Some((effect, is_simple)), false) = (before, effect, calls.did_more) else {
            return false;
        };
        let (Some(next), Ok(step)) = (self.shapes.of(calls, key), u32::try_from(self.steps.len())) else {
            return false;
        };
        self.here = Some(next);
        let fewest = calls.stack.fewest.min(depth);
        let Some((left, entered)) = self.keep_frames(calls, depth, fewest) else { return false };
        let changes_more = !self.shapes.differ_in_frames(before, next);
        let is_simple = is_simple && left == 0 && entered.is_empty() && !changes_more;
        self.steps.push(Step { left, changes_more, entered, members: 0..0, effect });
        let step = if is_simple { step | Slot::SIMPLE } else { step };
        self.insert(number, Slot { key: key_of(before, number), next, step, count: 0 });
        self.passages.learn();
        true
    }

    /// Whether groups are learned and applied often enough to pay.
    pub const fn takes_groups(&self) -> bool {
        self.groups.pays()
    }

    /// Of this number of frames, only the `fewest` outermost ones were there all the time. Keeps those that are inside of them
    /// now. Returns the number of frames that were left, and the range of the kept ones.
    fn keep_frames(
        &mut self,
        calls: &CallStack<M>,
        depth: usize,
        fewest: usize,
    ) -> Option<(u32, Range<u32>)> {
        let frames = &calls.stack.frames;
        let from = fewest.min(frames.len());
        let start = u32::try_from(self.entered.len()).ok()?;
        let end = u32::try_from(self.entered.len() + frames.len() - from).ok()?;
        let left = u32::try_from(depth - fewest).ok()?;
        self.entered.extend(frames.range(from..).copied());
        Some((left, start..end))
    }

    /// Begins a group that [`Remembered::find`] did not find; its members come next. `None` if the group is not to be cached.
    pub fn begin_group(&mut self, calls: &CallStack<M>, (set, number): (u32, u32)) -> Option<LearningGroup> {
        let has_room = set == self.set && self.group_weight < MOST_GROUP_WEIGHT;
        let before = self.here.filter(|_| has_room && self.takes_groups())?;
        // The first occurrence of a group may be its last.
        if !self.asked.note(mix(key_of(before, number))) {
            return None;
        }
        self.group = Some(Vec::new());
        Some(LearningGroup { before, number, depth: calls.stack.frames.len() })
    }

    /// The members came, or theirs in their place. Caches them as a group if the effect of each was known. The group's effect is
    /// what applying or counting its members does not do; `weight` is its memory in words. Returns whether the effect is cached.
    pub fn end_group(
        &mut self,
        calls: &CallStack<M>,
        learning: LearningGroup,
        members: usize,
        effect: Option<(E, bool, usize)>,
    ) -> bool {
        let LearningGroup { before, number, depth } = learning;
        let steps = self.group.take().filter(|steps| steps.len() >= members);
        let (Some(steps), Some(next), Some((effect, is_simple, weight))) = (steps, self.here, effect) else {
            return false;
        };
        let Ok(step) = u32::try_from(self.steps.len()) else { return false };
        let (mut now, mut fewest) = (depth, depth);
        for step in steps.iter().filter_map(|step| self.steps.get(*step as usize)) {
            now = now.saturating_sub(step.left as usize);
            fewest = fewest.min(now);
            now += step.entered.len();
        }
        let Some((left, entered)) = self.keep_frames(calls, depth, fewest) else { return false };
        let changes_more = !self.shapes.differ_in_frames(before, next);
        let is_simple = is_simple && left == 0 && entered.is_empty() && !changes_more;
        // The members of a nested group are counted with both groups.
        let Ok(start) = u32::try_from(self.members.len()) else { return false };
        for step in steps {
            let members = self.steps.get(step as usize).map_or(0..0, |step| within(&step.members));
            self.members.push(step);
            self.members.extend_from_within(members);
        }
        let Ok(end) = u32::try_from(self.members.len()) else { return false };
        let members = start..end;
        self.group_weight += members.len() / 2 + entered.len() * size_of::<Frame<M>>() / 8 + weight;
        self.steps.push(Step { left, changes_more, entered, members, effect });
        let step = Slot::GROUP | if is_simple { step | Slot::SIMPLE } else { step };
        self.insert(number, Slot { key: key_of(before, number), next, step, count: 0 });
        self.groups.learn();
        true
    }

    /// Something else happens to the stack next.
    #[inline]
    pub fn disturb(&mut self, calls: &mut CallStack<M>) {
        self.group = None;
        if let Some(next) = self.here.take().and_then(|here| self.shapes.next(here)) {
            calls.next = next;
        }
    }

    /// Whether something has to be [forgotten](Remembered::forget) before elements of this set can be learned.
    pub fn is_full(&self, set: u32) -> bool {
        set != self.set
            || self.steps.len() >= MOST_STEPS
            || self.entered.len() >= MOST_ENTERED
            || self.shapes.is_full()
    }

    /// Forgets all effects, and begins with a set of numbers.
    pub fn forget(&mut self, set: u32, calls: &mut CallStack<M>) {
        self.disturb(calls);
        self.shapes.forget();
        self.slots.fill(Slot::FREE);
        self.recent.clear();
        (self.used, self.set) = (0, set);
        self.steps.clear();
        self.entered.clear();
        self.members.clear();
        self.group_weight = 0;
        self.asked = CameOnce::default();
        self.passed = CameOnce::default();
    }

    /// How often each effect was applied since the last call, with the observer's effect.
    pub fn take_counts(&mut self, mut take: impl FnMut(u64, &E)) {
        let mut counts = vec![0; self.steps.len()];
        let mut add = |step: u32, count: u64| {
            if let Some(sum) = counts.get_mut(step as usize) {
                *sum += count;
            }
        };
        for slot in self.slots.iter_mut().filter(|slot| slot.count > 0) {
            let (step, count) = (slot.step & Slot::NUMBER, std::mem::take(&mut slot.count));
            add(step, count);
            let members = self.steps.get(step as usize).map_or(0..0, |step| within(&step.members));
            let members = self.members.get(members).unwrap_or_default();
            members.iter().for_each(|member| add(*member, count));
        }
        for (count, step) in counts.into_iter().zip(&self.steps).filter(|(count, _)| *count > 0) {
            take(count, &step.effect);
        }
    }

    fn insert(&mut self, number: u32, slot: Slot) {
        if self.used * 2 >= self.slots.len() {
            self.recent.clear();
            let length = (self.slots.len() * 2).max(FIRST_SLOTS);
            let old = std::mem::replace(&mut self.slots, vec![Slot::FREE; length]);
            self.used = 0;
            let taken = old.into_iter().filter(|slot| slot.key != u64::MAX);
            taken.for_each(|slot| {
                self.place(slot);
            });
        }
        if let Some(at) = self.place(slot) {
            self.note_recent(number, at);
        }
    }

    fn place(&mut self, slot: Slot) -> Option<usize> {
        let last = self.slots.len().wrapping_sub(1);
        let mut at = slot_of(slot.key) & last;
        while let Some(place) = self.slots.get_mut(at) {
            if place.key == u64::MAX {
                *place = slot;
                self.used += 1;
                return Some(at);
            }
            at = (at + 1) & last;
        }
        None
    }
}

const fn key_of(shape: ShapeId, number: u32) -> u64 {
    (shape.0 as u64) << 32 | number as u64
}

#[inline]
const fn slot_of(key: u64) -> usize {
    (mix(key) >> 16) as usize
}

#[cfg(test)]
pub(super) mod tests;
