//! Call stacks at any place of a source: kept at regular distances, in one pass over the source.
//!
//! If there are too many, every other one is dropped and the distance doubles, as with `FlowIndex`.

use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracewalk::flow::Element;
use tracewalk_analysis::analysis::FlowSink;
use tracewalk_analysis::call_stack::{CallStack, CallStackCheckpoint};
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, Section};

use crate::transfers::{Collecting, Transfers};
use crate::turns::Turns;
use crate::unwind::{Mark, Unwinder};

/// Call stacks by step.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Stacks {
    /// Each with the step before which it is valid; ascending.
    kept: Vec<(u64, CallStackCheckpoint<Mark>)>,
    /// The number of frames in all of them.
    frames: usize,
    limits: Limits,
    /// The current distance between two, in steps. It doubles when stacks are dropped.
    distance: u64,
}

/// How finely call stacks are kept.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Limits {
    /// The least distance between two, in steps.
    pub(crate) distance: u64,
    /// The most stacks.
    pub(crate) stacks: usize,
    /// The most frames in all of them.
    pub(crate) frames: usize,
}

/// The result of one pass over a source.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Kept {
    pub(crate) stacks: Stacks,
    pub(crate) transfers: Transfers,
    pub(crate) turns: Turns,
    /// The number of steps.
    pub(crate) steps: u64,
}

/// Makes a [`Kept`] from a source's elements.
#[derive(Debug)]
pub(crate) struct Keeping<'u> {
    unwinder: &'u Unwinder,
    calls: CallStack<Mark>,
    stacks: Stacks,
    transfers: Collecting,
    turns: Turns,
    /// The number of steps so far.
    steps: u64,
}

impl Limits {
    /// For a whole source.
    pub(crate) const WHOLE: Self = Self { distance: 1 << 16, stacks: 1 << 13, frames: 1 << 20 };
    /// Around a place.
    pub(crate) const NEAR: Self = Self { distance: 1 << 9, stacks: 1 << 8, frames: 1 << 18 };
}

impl Stacks {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self { kept: Vec::new(), frames: 0, limits, distance: limits.distance }
    }

    /// The last stack that is kept at or before a step.
    pub(crate) fn before(&self, step: u64) -> Option<&(u64, CallStackCheckpoint<Mark>)> {
        let after = self.kept.partition_point(|(at, _)| *at <= step);
        self.kept.get(after.checked_sub(1)?)
    }

    /// Keeps the stack before a step, if it is far enough from the last one that is kept.
    pub(crate) fn keep(&mut self, step: u64, calls: &CallStack<Mark>) {
        if self.kept.last().is_some_and(|(last, _)| step < last.saturating_add(self.distance)) {
            return;
        }
        let checkpoint = calls.checkpoint();
        self.frames += checkpoint.size();
        self.kept.push((step, checkpoint));
        while self.kept.len() > 1
            && (self.kept.len() > self.limits.stacks || self.frames > self.limits.frames)
        {
            let mut number = 0_usize;
            self.kept.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.frames = self.kept.iter().map(|(_, checkpoint)| checkpoint.size()).sum();
            self.distance = self.distance.saturating_mul(2);
        }
    }

    /// Drops all stacks.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.limits);
    }
}

impl<'u> Keeping<'u> {
    pub(crate) fn new(unwinder: &'u Unwinder, code: Arc<Code>, limits: Limits) -> Self {
        Self {
            unwinder,
            calls: CallStack::new(code),
            stacks: Stacks::new(limits),
            transfers: Collecting::default(),
            turns: Turns::default(),
            steps: 0,
        }
    }

    pub(crate) fn finish(self) -> Kept {
        Kept {
            stacks: self.stacks,
            transfers: self.transfers.finish(),
            turns: self.turns.finish(self.steps),
            steps: self.steps,
        }
    }

    fn element(&mut self, element: &Element) {
        let steps = steps(element);
        if steps > 0 {
            self.stacks.keep(self.steps, &self.calls);
        }
        self.calls.element(element, &mut self.unwinder.placing(self.steps));
        let task = self.calls.task();
        if matches!(element, Element::Block(_)) {
            self.turns.runs(task, self.steps);
        }
        self.transfers.element(element, self.steps, task);
        self.steps += steps;
    }
}

impl Sink<FlowRecord> for Keeping<'_> {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        // The code is empty if the image is not the traced program.
        self.calls = CallStack::new(Arc::clone(&section.code));
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        self.element(&record.element);
        Ok(())
    }
}

impl FlowSink for Keeping<'_> {
    fn needs_places(&self) -> bool {
        false
    }
}

/// The number of a cursor's steps in an element.
pub(crate) fn steps(element: &Element) -> u64 {
    match element {
        Element::Block(block) => block.instructions.into(),
        Element::Event(_) | Element::Gap(_) => 1,
        Element::Proof(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of the steps over which calls are followed for jumps to a thousand places in a recording of `steps`
    /// steps.
    fn followed(steps: u64) -> u64 {
        let calls = CallStack::new(Arc::new(Code::unknown()));
        let mut stacks = Stacks::new(Limits::WHOLE);
        for step in (0..steps).step_by(1000) {
            stacks.keep(step, &calls);
        }
        let places = (1..=1000).map(|place| place * (steps / 1001));
        places.map(|place| place - stacks.before(place).expect("the first step is kept").0).sum()
    }

    #[test]
    fn a_jump_in_a_recording_a_hundred_times_longer_follows_calls_no_further() {
        let (short, long) = (followed(5_000_000), followed(500_000_000));
        assert!(long * 2 < short * 3, "{short} {long}");
    }
}
