//! Takes passages by their outlines.

use tracewalk::flow::Element;

use super::frame::{Entry, FrameKind, Left};
use super::observer::{Observer, Runs};
use super::outline::{Entered, Outlined, Step};
use super::stack::{Next, Stack};
use super::{CallStack, DEEPEST};
use crate::analysis::Repeated;

impl<M: Clone> CallStack<M> {
    /// Takes a passage, as [`CallStack::element`] takes its elements one by one.
    pub fn passage<O: Observer<Mark = M>>(&mut self, repeated: &Repeated<'_>, observer: &mut O) {
        match self.outline(repeated, observer) {
            Some(outlined) => self.follow(outlined, observer),
            None => repeated.elements().for_each(|element| {
                let _ = self.element(&element, observer);
            }),
        }
    }

    /// The outline of a passage, if the passage counts no cycles.
    #[inline]
    pub fn outline<O: Observer<Mark = M>>(
        &mut self,
        repeated: &Repeated<'_>,
        observer: &mut O,
    ) -> Option<Outlined> {
        self.outline_of((repeated.set(), repeated.number()), || repeated.elements(), observer)
    }

    #[inline]
    fn outline_of<E, O>(
        &mut self,
        (set, number): (u32, u32),
        elements: impl Fn() -> E,
        observer: &mut O,
    ) -> Option<Outlined>
    where
        E: Iterator<Item = Element>,
        O: Observer<Mark = M>,
    {
        if self.outlines.is_full(set) {
            observer.forget_runs(self.outlines.runs());
            self.outlines.forget(set);
        }
        self.outlines.get(number, elements, &mut self.functions)
    }

    /// Takes a passage by its outline.
    #[inline]
    pub fn follow<O: Observer<Mark = M>>(&mut self, outlined: Outlined, observer: &mut O) {
        for number in outlined.steps() {
            let Self { outlines, stack, next, next_task, .. } = self;
            let entered = match outlines.step(number) {
                Some(Step::Run(entered)) => entered,
                Some(Step::Alone(element)) => {
                    let element = *element;
                    self.alone(&element, observer);
                    continue;
                }
                None => return,
            };
            let after = entered.next;
            if next_task.is_some() || !stack.arrive_simply(*next, entered, observer) {
                let at = entered.at;
                let _ = self.arrive(at, observer);
            }
            if let Some((top, run)) = self.stack.frames.back_mut().zip(self.outlines.runs().get(number)) {
                observer.run_all(top, &run);
            }
            self.next = after;
        }
    }

    /// The runs whose numbers an observer may still hold.
    #[must_use]
    pub const fn runs(&self) -> &Runs {
        self.outlines.runs()
    }

    #[inline(never)]
    fn alone<O: Observer<Mark = M>>(&mut self, element: &Element, observer: &mut O) {
        if let Element::Block(block) = element {
            observer.begin_block(block);
            let _ = self.element(element, observer);
            observer.end_block();
        } else {
            let _ = self.element(element, observer);
        }
    }
}

impl<M> Stack<M> {
    /// Execution comes to a run in a simple way: without leaving the function, by a call, by a return from the innermost
    /// function, or by another function taking over its frame. Does what [`CallStack::arrive`] would, or nothing. Returns whether
    /// it did.
    #[inline]
    fn arrive_simply<O>(&mut self, next: Next, run: &Entered, observer: &mut O) -> bool
    where
        O: Observer<Mark = M>,
    {
        let at = run.at;
        let Some(top) = self.frames.back() else { return false };
        let stays = top.function.goes_on_in(run.function);
        match next {
            Next::Straight | Next::Jump | Next::Exception => stays || self.replace_simply(run, observer),
            // Position-independent code calls the next instruction to get its own address.
            Next::Call { returns_to, .. } if returns_to == at => stays,
            Next::Call { site, returns_to } => {
                let kind = FrameKind::Call { site: Some(site), returns_to: Some(returns_to) };
                let enters = run.is_usual && self.frames.len() < DEEPEST;
                if enters {
                    self.enter((kind, run.function, Entry::Called), true, observer);
                }
                enters
            }
            Next::Return => top.is_usual && self.return_simply(run, observer),
            Next::IndirectJump => match self.returning_to(at) {
                None => stays && self.jump_to(at).is_none(),
                Some(_) => self.return_simply(run, observer),
            },
            _ => false,
        }
    }

    /// Returns from the innermost function, if that leads to the run.
    #[inline]
    fn return_simply<O: Observer<Mark = M>>(&mut self, run: &Entered, observer: &mut O) -> bool {
        let Some(depth) = self.frames.len().checked_sub(1) else { return false };
        let returns = self.frames.get(depth).is_some_and(|top| top.kind.returns_to() == Some(run.at));
        let below = depth.checked_sub(1).and_then(|below| self.frames.get(below));
        if !returns || !below.is_some_and(|below| below.function.goes_on_in(run.function)) {
            return false;
        }
        if let Some(mut frame) = self.frames.pop_back() {
            observer.leave(&mut frame, self.frames.back_mut(), Left::Returned);
        }
        self.has_left(depth);
        true
    }

    /// The run's function takes over the innermost frame, if it only calls and returns.
    #[inline(never)]
    fn replace_simply<O: Observer<Mark = M>>(&mut self, run: &Entered, observer: &mut O) -> bool {
        if !run.is_usual {
            return false;
        }
        let Some(mut top) = self.frames.pop_back() else { return false };
        observer.leave(&mut top, self.frames.back_mut(), Left::Replaced);
        let starts = run.function.address() == Some(run.at);
        let entry = if starts { Entry::TailCalled } else { Entry::Joined };
        self.enter((top.kind, run.function, entry), true, observer);
        if let Some(new) = self.frames.back_mut() {
            new.schedules |= top.schedules;
        }
        true
    }
}

#[cfg(test)]
mod tests;
