//! Recording a profile, element by element.

use std::sync::Arc;

use tracewalk::flow::{Element, EventKind, GapReason};
use tracewalk::ids::Exception;
use tracewalk::span::CaptureOffset;

use super::time::{Interval, Owner};
use super::{Measures, NodeId, NodeKind, Profile};
use crate::call_stack::{
    CallStack, Entry, Evidence, Frame, FrameKind, FunctionId, Interruption, Left, Observer, Piece, Task,
};
use crate::clock::{Cost, CycleMeter, Spent};
use crate::{Code, Phase, Window, Windowed};

/// Records what one source's functions cost.
#[derive(Debug)]
pub struct Profiler {
    calls: CallStack<NodeId>,
    meter: CycleMeter,
    windowed: Windowed,
    recorder: Recorder,
}

#[derive(Debug)]
struct Recorder {
    profile: Profile,
    interval: Interval,
    task: Task,
    /// Where what runs is; what is not in the window is followed and not counted.
    phase: Phase,
    /// What the block that runs costs, and how many of its instructions were charged already.
    block: Cost,
    charged: u64,
}

impl Profiler {
    /// Nothing has run yet; what runs in the window will be recorded.
    #[must_use]
    pub fn new(code: Arc<Code>, window: Window) -> Self {
        let calls = CallStack::new(code);
        let task = calls.task();
        Self {
            calls,
            meter: CycleMeter::default(),
            windowed: window.begin(),
            recorder: Recorder {
                profile: Profile::default(),
                interval: Interval::default(),
                task,
                phase: Phase::Before,
                block: Cost::default(),
                charged: 0,
            },
        }
    }

    /// Takes the next element, whose proof begins at `at`.
    pub fn element(&mut self, element: &Element, at: CaptureOffset) {
        self.recorder.phase = self.windowed.element(element, at);
        let spent = self.meter.element(element);
        self.recorder.block = match (element, spent) {
            (Element::Block(block), spent) => Cost {
                instructions: block.instructions.into(),
                cycles: spent.map_or(0, Spent::cycles),
                time: 0,
            },
            _ => Cost::default(),
        };
        self.recorder.charged = 0;
        self.spend(spent);
        match element {
            Element::Gap(gap) => {
                // Code that no image holds was traced; how long it ran is known where cycles are.
                if !matches!(gap.reason, GapReason::Contradiction(_)) {
                    self.recorder.interval.gap();
                }
            }
            Element::Event(event) => match event.kind {
                EventKind::TraceOn(_) => self.recorder.interval.gap(),
                EventKind::Cycles(_) if self.recorder.phase == Phase::Inside => {
                    self.recorder.profile.measures.cycle_counts += 1;
                }
                EventKind::Timestamp(time) => self.recorder.timestamp(Some(time).filter(|time| *time != 0)),
                _ => {}
            },
            Element::Block(_) | Element::Proof(_) => {}
        }
        self.calls.element(element, &mut self.recorder);
    }

    /// The trace ends here. What was recorded.
    #[must_use]
    pub fn finish(mut self) -> Profile {
        let spent = self.meter.finish();
        self.spend(spent);
        let mut profile = self.recorder.profile;
        let instructions = profile.total().instructions;
        let Measures { cycle_counts, timed_instructions, without_cycles, without_time, .. } =
            &mut profile.measures;
        *without_cycles = if *cycle_counts == 0 { instructions } else { 0 };
        *without_time = if *timed_instructions == 0 { instructions } else { 0 };
        profile
    }

    /// How many things are remembered.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        let profile = &self.recorder.profile;
        profile.nodes.len() + profile.entries.len() + self.recorder.interval.size()
    }

    fn spend(&mut self, spent: Option<Spent>) {
        let recorder = &mut self.recorder;
        let counts = recorder.phase == Phase::Inside;
        match spent {
            // It goes with the block's instructions.
            None | Some(Spent::OnBlock(_)) => {}
            Some(Spent::OnCancelled(cycles)) => {
                let Some(top) = self.calls.innermost_mut() else { return };
                if !counts {
                    return recorder.interval.ran(Owner::Outside, cycles, 0);
                }
                let node = top.mark;
                let entry = recorder.profile.entry(node, recorder.profile.anywhere_in(node));
                recorder.profile.spend(entry, Cost { cycles, ..Cost::default() });
                recorder.interval.ran(Owner::Entry(entry), cycles, 0);
            }
            Some(Spent::OnUnfollowed(cycles) | Spent::Untraced(cycles)) if !counts => {
                recorder.interval.ran(Owner::Outside, cycles, 0);
            }
            Some(Spent::OnUnfollowed(cycles)) => {
                recorder.profile.unfollowed.cycles += cycles;
                recorder.interval.ran(Owner::Unfollowed, cycles, 0);
            }
            Some(Spent::Untraced(cycles)) => {
                recorder.profile.untraced.cycles += cycles;
                recorder.interval.ran(Owner::Untraced, cycles, 0);
            }
        }
    }
}

impl Recorder {
    fn timestamp(&mut self, time: Option<u64>) {
        let profile = &mut self.profile;
        profile.measures.timestamps += u64::from(time.is_some() && self.phase == Phase::Inside);
        let timed = self.interval.timestamp(time, |owner, ticks| match owner {
            Owner::Entry(entry) => profile.spend(entry, Cost { time: ticks, ..Cost::default() }),
            Owner::Unfollowed => profile.unfollowed.time += ticks,
            Owner::Untraced => profile.untraced.time += ticks,
            Owner::Outside => {}
        });
        profile.measures.timed_instructions += timed;
    }

    /// The chain of calls that a frame's function adds its link to.
    fn chain(&mut self, below: Option<NodeId>, kind: FrameKind) -> NodeId {
        match kind {
            FrameKind::Exception(Interruption { exception, .. }) => {
                // What an interrupt does is not the interrupted function's doing.
                let cause = below.filter(|_| exception.is_some_and(Exception::is_synchronous));
                self.profile.node(cause, NodeKind::Exception(exception))
            }
            FrameKind::Root | FrameKind::Call { .. } => {
                below.unwrap_or_else(|| self.profile.node(None, NodeKind::Task(self.task)))
            }
        }
    }
}

impl Observer for Recorder {
    type Mark = NodeId;

    fn enter(
        &mut self,
        below: Option<&mut Frame<NodeId>>,
        kind: FrameKind,
        function: FunctionId,
        entry: Entry,
    ) -> NodeId {
        let chain = self.chain(below.map(|below| below.mark), kind);
        let site = match kind {
            FrameKind::Call { site, .. } => site,
            FrameKind::Root | FrameKind::Exception(_) => None,
        };
        let node = self.profile.node(Some(chain), NodeKind::Function { function, site });
        if self.phase == Phase::Inside {
            if matches!(entry, Entry::Called | Entry::TailCalled | Entry::Interrupting) {
                self.profile.count_calls(node, 1);
            }
            if entry == Entry::Interrupting {
                self.profile.count_calls(chain, 1);
            }
        }
        node
    }

    fn run(&mut self, top: &mut Frame<NodeId>, piece: &Piece) {
        let instructions = u64::from(piece.instructions);
        let cost = self.block.share(self.charged, instructions, self.block.instructions);
        self.charged += instructions;
        let owner = match self.phase {
            Phase::Inside => {
                let entry = self.profile.entry(top.mark, *piece);
                self.profile.spend(entry, cost);
                Owner::Entry(entry)
            }
            Phase::Before | Phase::After => Owner::Outside,
        };
        self.interval.ran(owner, cost.cycles, cost.instructions);
    }

    fn leave(&mut self, _: &mut Frame<NodeId>, _: Option<&mut Frame<NodeId>>, _: Left) {}

    fn switch(&mut self, _: Task, to: Task, evidence: Evidence) {
        if self.phase == Phase::Inside {
            *self.profile.switches.entry(evidence).or_default() += 1;
        }
        self.task = to;
    }
}
