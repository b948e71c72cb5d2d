//! What one pass over a source keeps: call stacks at regular distances, transfers, and turns of tasks.

use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracewalk::flow::Element;
use tracewalk_analysis::analysis::FlowSink;
use tracewalk_analysis::call_stack::{CallStack, CallStackLimits, CallStacks};
use tracewalk_analysis::drive::steps;
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, Section};

use crate::transfers::{Collecting, Transfers};
use crate::turns::Turns;
use crate::unwind::{Mark, Unwinder};

/// How finely call stacks of a whole source are kept.
pub(crate) const WHOLE: CallStackLimits =
    CallStackLimits { distance: 1 << 16, stacks: 1 << 13, frames: 1 << 20 };
/// How finely call stacks around a place are kept.
pub(crate) const NEAR: CallStackLimits =
    CallStackLimits { distance: 1 << 9, stacks: 1 << 8, frames: 1 << 18 };

/// The result of one pass over a source.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Kept {
    pub(crate) stacks: CallStacks<Mark>,
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
    stacks: CallStacks<Mark>,
    transfers: Collecting,
    turns: Turns,
    /// The number of steps so far.
    steps: u64,
}

impl<'u> Keeping<'u> {
    pub(crate) fn new(unwinder: &'u Unwinder, code: Arc<Code>, limits: CallStackLimits) -> Self {
        Self {
            unwinder,
            calls: CallStack::new(code),
            stacks: CallStacks::new(limits),
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
