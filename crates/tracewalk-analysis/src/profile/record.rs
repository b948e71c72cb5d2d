//! Recording a profile, element by element.

use std::sync::Arc;

use tracewalk::flow::{Block, Element, EventKind, GapReason};
use tracewalk::ids::Exception;
use tracewalk::span::CaptureOffset;

use super::runs::{RecentLinks, RunCounts};
use super::time::{Interval, Owner};
use super::{Measures, NodeId, NodeKind, Profile};
use crate::analysis::Repeated;
use crate::call_stack::{
    CallStack, Entry, Evidence, Frame, FrameKind, FunctionId, Interruption, Left, Observer, Piece, Run, Runs,
    Task,
};
use crate::clock::{Cost, CycleMeter, Spent};
use crate::{Code, Phase, Window, Windowed};

/// Records the cost of one source's functions.
#[derive(Debug)]
pub struct Profiler {
    calls: CallStack<NodeId>,
    meter: CycleMeter,
    windowed: Windowed,
    /// Whether the window is the whole trace, so that no check is needed.
    is_whole: bool,
    recorder: Recorder,
}

#[derive(Debug)]
struct Recorder {
    profile: Profile,
    interval: Interval,
    task: Task,
    /// The phase of the current element. Elements outside of the window are followed but not counted.
    phase: Phase,
    /// The cost of the current block, and the number of its instructions that were charged already.
    block: Cost,
    charged: u64,
    /// How often each run ran in each chain, without those that were charged already.
    runs: RunCounts,
    links: RecentLinks,
}

impl Profiler {
    /// A profiler before the first element, for this window.
    #[must_use]
    pub fn new(code: Arc<Code>, window: &Window) -> Self {
        let windowed = window.begin(&code);
        let calls = CallStack::new(code);
        let task = calls.task();
        Self {
            calls,
            meter: CycleMeter::default(),
            windowed,
            is_whole: *window == Window::default(),
            recorder: Recorder {
                profile: Profile::default(),
                interval: Interval::default(),
                task,
                phase: Phase::Before,
                block: Cost::default(),
                charged: 0,
                runs: RunCounts::default(),
                links: RecentLinks::default(),
            },
        }
    }

    /// Takes a passage: by its outline, if no cycles are counted for it.
    #[inline]
    pub fn passage(&mut self, repeated: &Repeated<'_>) {
        let is_inside = self.is_whole || self.is_inside(repeated);
        let is_plain = is_inside && self.meter.counts_nothing(repeated);
        let outlined = if is_plain { self.calls.outline(repeated, &mut self.recorder) } else { None };
        let Some(outlined) = outlined else {
            return repeated.elements().for_each(|element| self.element(&element, CaptureOffset(0)));
        };
        self.recorder.phase = Phase::Inside;
        self.calls.follow(outlined, &mut self.recorder);
        if !self.is_whole {
            self.windowed.pass(repeated);
        }
        self.meter.pass(outlined.is_lost());
    }

    /// Whether a passage is in the window, like the elements before it.
    #[inline(never)]
    fn is_inside(&mut self, repeated: &Repeated<'_>) -> bool {
        self.recorder.phase == Phase::Inside && self.windowed.ahead(repeated) == Some(Phase::Inside)
    }

    /// Takes the next element, whose proof begins at `at`.
    pub fn element(&mut self, element: &Element, at: CaptureOffset) {
        self.recorder.phase = if self.is_whole { Phase::Inside } else { self.windowed.element(element, at) };
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
                // Code that no image holds was traced; its cycles are known if the trace counts them.
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

    /// The trace ends here; returns the profile.
    #[must_use]
    pub fn finish(mut self) -> Profile {
        self.recorder.forget_runs(self.calls.runs());
        let spent = self.meter.finish();
        self.spend(spent);
        let mut profile = self.recorder.profile;
        profile.sort_entries();
        let instructions = profile.total().instructions;
        let Measures { cycle_counts, timed_instructions, without_cycles, without_time, .. } =
            &mut profile.measures;
        *without_cycles = if *cycle_counts == 0 { instructions } else { 0 };
        *without_time = if *timed_instructions == 0 { instructions } else { 0 };
        profile
    }

    /// The number of cached items.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        let profile = &self.recorder.profile;
        profile.nodes.len() + profile.entries.len() + self.recorder.interval.size()
    }

    fn spend(&mut self, spent: Option<Spent>) {
        let recorder = &mut self.recorder;
        let counts = recorder.phase == Phase::Inside;
        match spent {
            // Such cycles go with the block's instructions.
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
                // An interrupt's work is not charged to the interrupted function.
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
        let node = self.links.node(&mut self.profile, chain, NodeKind::Function { function, site });
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

    #[inline]
    fn run_all(&mut self, top: &mut Frame<NodeId>, run: &Run<'_>) {
        if self.interval.measures() {
            for piece in run.pieces {
                let entry = self.profile.entry(top.mark, *piece);
                let instructions = piece.instructions.into();
                self.profile.spend(entry, Cost { instructions, ..Cost::default() });
                self.interval.ran(Owner::Entry(entry), 0, instructions);
            }
        } else if !self.runs.count(top.mark, run.number) {
            self.profile.run(top.mark, run, 1);
        }
    }

    fn begin_block(&mut self, block: &Block) {
        self.block = Cost { instructions: block.instructions.into(), ..Cost::default() };
        self.charged = 0;
    }

    fn forget_runs(&mut self, runs: &Runs) {
        self.runs.take(|node, number, times| {
            runs.get(number).into_iter().for_each(|run| self.profile.run(node, &run, times));
        });
    }

    fn leave(&mut self, _: &mut Frame<NodeId>, _: Option<&mut Frame<NodeId>>, _: Left) {}

    fn switch(&mut self, _: Task, to: Task, evidence: Evidence) {
        if self.phase == Phase::Inside {
            *self.profile.switches.entry(evidence).or_default() += 1;
        }
        self.task = to;
    }
}
