//! What elements do to a stack by the frames that they look at, whatever is under those.
//!
//! ```text
//! (number of the elements, what happens next, places to jump to and the like, innermost frames) → step
//! ```
//!
//! Most elements look at one or two frames. A program that calls the same function by many chains of calls has as many states,
//! and elements would be followed once in each; here they are followed once for all.

use std::collections::VecDeque;

use super::frame::{Faces, Frame, FrameKind, FunctionId};
use super::stack::Next;
use crate::quick::QuickMap;

/// What is known by frames.
#[derive(Debug, Default)]
pub(super) struct Locals {
    rules: Vec<Rule>,
    /// The first rule of each number.
    first: Vec<u32>,
    /// The faces that rules expect beyond the first two.
    deeper: Vec<u32>,
    nexts: Vec<Next>,
    next_ids: QuickMap<Next, NextId>,
    functions: QuickMap<FunctionId, u32>,
    wholes: QuickMap<(FrameKind, FunctionId, bool), u32>,
    /// How many surprises there were when the rules were made.
    surprises: u32,
}

/// What has to happen next, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NextId(u32);

/// A state of a stack apart from its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beside {
    pub(super) next: NextId,
    pub(super) rest: u32,
    /// With fewer frames than these it would be another one.
    pub(super) floor: u32,
}

/// What happens in elements of a number where the innermost frames are as expected.
#[derive(Clone, Copy, Debug)]
struct Rule {
    before: NextId,
    rest: u32,
    /// The innermost frames: how many are expected, of how many of these more than the function, and their faces.
    reach: u16,
    whole: u16,
    faces: [u32; 2],
    deeper: u32,
    /// How many frames go.
    left: u16,
    /// The step that is done, with the mark of simple ones.
    step: u32,
    after: NextId,
    /// Another rule of this number.
    other: u32,
}

/// How a step looks at a stack, for as long as there is no [surprise](super::looks::Returns::surprises).
#[derive(Clone, Copy, Debug)]
pub(super) struct Looked {
    /// How many of the innermost frames: their functions, and more of them.
    pub(super) reach: usize,
    pub(super) whole: usize,
    pub(super) left: usize,
    pub(super) rise: usize,
    pub(super) surprises: u32,
}

const NONE: u32 = u32::MAX;
/// Rules that expect more frames than these are not made.
const FARTHEST: usize = 32;
/// More frames than this never come in between.
const HIGHEST: usize = 1 << 12;
/// More rules than this of one number are not made.
const MOST_OF_ONE: usize = 24;
const MOST_FACES: usize = 1 << 16;
const MOST_NEXTS: usize = 1 << 16;

impl Locals {
    /// Forgets the rules, but not what frames look like.
    pub(super) fn forget(&mut self) {
        self.rules.clear();
        self.first.clear();
        self.deeper.clear();
        self.nexts.clear();
        self.next_ids.clear();
    }

    /// The number of what has to happen next; `None` if there are too many.
    pub(super) fn next_id(&mut self, next: Next) -> Option<NextId> {
        let Self { nexts, next_ids, .. } = self;
        if let Some(known) = next_ids.get(&next) {
            return Some(*known);
        }
        let id = NextId(u32::try_from(nexts.len()).ok().filter(|_| nexts.len() < MOST_NEXTS)?);
        nexts.push(next);
        next_ids.insert(next, id);
        Some(id)
    }

    pub(super) fn next(&self, id: NextId) -> Option<Next> {
        self.nexts.get(id.0 as usize).copied()
    }

    /// The rule for these elements.
    #[inline]
    pub(super) fn find<M>(
        &mut self,
        frames: &mut VecDeque<Frame<M>>,
        number: u32,
        (beside, surprises): (Beside, u32),
    ) -> Option<usize> {
        if surprises != self.surprises {
            self.rules.clear();
            self.first.clear();
            self.deeper.clear();
            self.surprises = surprises;
        }
        let mut at = *self.first.get(number as usize)?;
        let depth = frames.len();
        while let Some(rule) = self.rules.get(at as usize).copied() {
            let left = usize::from(rule.left);
            let fits = rule.before == beside.next
                && rule.rest == beside.rest
                && depth >= usize::from(rule.reach)
                && depth > left
                && depth - left >= beside.floor as usize;
            if fits && self.expects(&rule, frames) {
                return Some(at as usize);
            }
            at = rule.other;
        }
        None
    }

    /// Whether the innermost frames are as a rule expects.
    #[inline]
    fn expects<M>(&mut self, rule: &Rule, frames: &mut VecDeque<Frame<M>>) -> bool {
        let whole = usize::from(rule.whole);
        for (index, frame) in frames.iter_mut().rev().take(rule.reach.into()).enumerate() {
            let expected = match rule.faces.get(index) {
                Some(face) => *face,
                None => match self.deeper.get(rule.deeper as usize + index - rule.faces.len()) {
                    Some(face) => *face,
                    None => return false,
                },
            };
            if self.face(frame, index < whole) != Some(expected) {
                return false;
            }
        }
        true
    }

    /// What a frame looks like; `None` if there are too many that look different.
    #[inline]
    fn face<M>(&mut self, frame: &mut Frame<M>, whole: bool) -> Option<u32> {
        if frame.faces == Faces::UNKNOWN {
            frame.faces = self.faces(frame)?;
        }
        Some(if whole { frame.faces.whole } else { frame.faces.function })
    }

    #[inline(never)]
    fn faces<M>(&mut self, frame: &Frame<M>) -> Option<Faces> {
        let number = |length: usize| u32::try_from(length + 1).unwrap_or(NONE);
        let function = match self.functions.get(&frame.function) {
            Some(known) => *known,
            None if self.functions.len() >= MOST_FACES => return None,
            None => {
                let new = number(self.functions.len());
                self.functions.insert(frame.function, new);
                new
            }
        };
        let key = (frame.kind, frame.function, frame.schedules);
        let whole = match self.wholes.get(&key) {
            Some(known) => *known,
            None if self.wholes.len() >= MOST_FACES => return None,
            None => {
                let new = number(self.wholes.len());
                self.wholes.insert(key, new);
                new
            }
        };
        Some(Faces { function, whole })
    }

    /// What the innermost frames look like, to make a rule of it. Before the elements that look at them are followed.
    pub(super) fn look<M>(&mut self, frames: &mut VecDeque<Frame<M>>, faces: &mut Vec<Faces>) {
        faces.clear();
        for frame in frames.iter_mut().rev().take(FARTHEST) {
            if self.face(frame, true).is_none() {
                return;
            }
            faces.push(frame.faces);
        }
    }

    /// The frames that were entered will be looked at.
    pub(super) fn show<M>(&mut self, frames: &mut VecDeque<Frame<M>>, count: usize) {
        frames.iter_mut().rev().take(count).for_each(|frame| {
            let _ = self.face(frame, true);
        });
    }

    /// Makes a rule; answers whether it could be made.
    pub(super) fn add(
        &mut self,
        number: u32,
        (before, after): (Beside, NextId),
        (looked, faces): (Looked, &[Faces]),
        step: u32,
    ) -> bool {
        let Looked { reach, whole, left, rise, surprises } = looked;
        if reach > faces.len() || reach > FARTHEST || rise > HIGHEST || surprises != self.surprises {
            return false;
        }
        let (Ok(own), Ok(deeper)) = (u32::try_from(self.rules.len()), u32::try_from(self.deeper.len()))
        else {
            return false;
        };
        let length = number as usize + 1;
        if self.first.len() < length {
            self.first.resize(length, NONE);
        }
        let Some(first) = self.first.get_mut(number as usize) else { return false };
        let mut others = 0;
        let mut at = *first;
        while let Some(rule) = self.rules.get(at as usize) {
            (at, others) = (rule.other, others + 1);
        }
        if others >= MOST_OF_ONE {
            return false;
        }
        let short = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        let expected = faces.iter().take(reach).enumerate();
        let mut expected =
            expected.map(|(index, faces)| if index < whole { faces.whole } else { faces.function });
        let faces = [expected.next().unwrap_or(0), expected.next().unwrap_or(0)];
        self.deeper.extend(expected);
        self.rules.push(Rule {
            before: before.next,
            rest: before.rest,
            reach: short(reach),
            whole: short(whole),
            faces,
            deeper,
            left: short(left),
            step,
            after,
            other: std::mem::replace(first, own),
        });
        true
    }

    /// A rule's step, and what has to happen next behind it.
    #[inline]
    pub(super) fn step(&self, rule: usize) -> Option<(u32, NextId)> {
        self.rules.get(rule).map(|rule| (rule.step, rule.after))
    }
}

impl Looked {
    /// The same for one after the other: how the first steps look, and the frames that come in them, and the next.
    pub(super) fn then(self, entered: usize, next: Self) -> Self {
        // Relative to the first frame: how many frames there are more, or fewer, before the next.
        let (left, whole, reach) = (self.left, self.whole, self.reach);
        let under = |depth: usize| (depth + left).saturating_sub(entered);
        Self {
            reach: reach.max(under(next.reach)),
            whole: whole.max(under(next.whole)),
            left: left.max(under(next.left)),
            rise: self.rise.max(entered + next.rise),
            surprises: self.surprises,
        }
    }
}
