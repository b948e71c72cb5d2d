//! Recording a profile, element by element.

use std::sync::Arc;

use tracewalk::flow::{Block, Element, EventKind, GapReason};
use tracewalk::ids::Exception;
use tracewalk::span::CaptureOffset;

use super::charges::{Before, Charge, Charges, Lists, Takers};
use super::runs::{RecentLinks, RunCounts};
use super::time::{Interval, Owner};
use super::{EntryId, Measures, NodeId, NodeKind, Profile};
use crate::analysis::Repeated;
use crate::call_stack::{
    CallStack, Entry, Evidence, Frame, FrameKind, FunctionId, Interruption, Left, Observer, Outlined, Piece,
    Remembered, Run, Runs, Task,
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
    remembered: Remembered<NodeId, Charges>,
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
    lists: Lists,
    /// Set while a group is learned: the charges of its passages for cycles that were counted before them.
    extras: Option<Vec<(EntryId, Cost)>>,
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
            remembered: Remembered::default(),
            recorder: Recorder {
                profile: Profile::default(),
                interval: Interval::default(),
                task,
                phase: Phase::Before,
                block: Cost::default(),
                charged: 0,
                lists: Lists::default(),
                extras: None,
                runs: RunCounts::default(),
                links: RecentLinks::default(),
            },
        }
    }

    /// Takes the next element, whose proof begins at `at`.
    pub fn element(&mut self, element: &Element, at: CaptureOffset) {
        self.remembered.disturb(&mut self.calls);
        self.follow(element, at);
    }

    /// Takes repeated elements.
    #[inline]
    pub fn passage(&mut self, repeated: &Repeated<'_>) {
        let is_inside = self.is_whole || self.is_inside(repeated);
        let pending = self.meter.waiting_before(repeated.totals().blocks).filter(|_| is_inside);
        let before = pending.map(|pending| Before { pending, waited: repeated.waited_cycles() });
        let Some(before) = before else { return self.follow_all(repeated) };
        let Some(known) = self.remembered.find(&mut self.calls, key(repeated), NodeId::number) else {
            if repeated.members().is_some() {
                return self.learn_group(repeated, before);
            }
            return self.unknown(repeated, before);
        };
        if before == Before::NOTHING && self.remembered.is_simple(known) && !self.recorder.interval.measures()
        {
            self.pass_window(repeated);
            self.meter.pass(0, false);
            return self.remembered.go(known, &mut self.calls);
        }
        let measures = self.recorder.interval.measures();
        let charges = self.remembered.effect(known);
        let charges = charges.filter(|charges| charges.take(before) && !(charges.is_group && measures));
        let Some(charges) = charges else { return self.follow_all(repeated) };
        self.recorder.repeat(charges, before);
        self.meter.pass(charges.waiting, charges.lost);
        self.pass_window(repeated);
        self.remembered.go(known, &mut self.calls);
    }

    /// Whether groups pay.
    #[must_use]
    pub const fn takes_groups(&self) -> bool {
        self.remembered.takes_groups()
    }

    /// Whether a passage is in the window, like the elements before it.
    #[inline(never)]
    fn is_inside(&mut self, repeated: &Repeated<'_>) -> bool {
        self.recorder.phase == Phase::Inside && self.windowed.ahead(repeated) == Some(Phase::Inside)
    }

    #[inline]
    fn pass_window(&mut self, repeated: &Repeated<'_>) {
        if !self.is_whole {
            self.windowed.pass(repeated);
        }
    }

    /// Takes a passage whose cost is not known.
    #[inline]
    fn unknown(&mut self, repeated: &Repeated<'_>, before: Before) {
        let is_timed = before != Before::NOTHING || self.recorder.interval.measures();
        let outlined = if is_timed { None } else { self.calls.outline(repeated, &mut self.recorder) };
        match outlined {
            Some(outlined) if !self.remembered.is_worth_learning(key(repeated)) => {
                self.remembered.disturb(&mut self.calls);
                self.follow_outline(repeated, outlined);
            }
            outlined => self.learn(repeated, outlined.filter(|outlined| outlined.is_plain()), before),
        }
    }

    /// Takes a passage of blocks for which neither cycles nor time are counted.
    #[inline]
    fn follow_outline(&mut self, repeated: &Repeated<'_>, outlined: Outlined) {
        self.recorder.phase = Phase::Inside;
        self.calls.follow(repeated, outlined, &mut self.recorder);
        self.pass_window(repeated);
        self.meter.pass(0, false);
    }

    /// Takes the elements of a passage, or the members of a group, one by one.
    #[cold]
    fn follow_all(&mut self, repeated: &Repeated<'_>) {
        match repeated.members() {
            Some(members) => members.for_each(|member| self.passage(&member)),
            None => repeated.elements().for_each(|element| self.element(&element, CaptureOffset(0))),
        }
    }

    /// Takes the members of an unknown group one by one, and caches the group.
    #[inline(never)]
    fn learn_group(&mut self, repeated: &Repeated<'_>, before: Before) {
        let is_plain = before == Before::NOTHING && !self.recorder.interval.measures();
        let learning = is_plain.then(|| self.remembered.begin_group(&self.calls, key(repeated))).flatten();
        let Some(learning) = learning else { return self.follow_all(repeated) };
        self.recorder.extras = Some(Vec::new());
        self.follow_all(repeated);
        let extras = self.recorder.extras.take().unwrap_or_default();
        let lists = &mut self.recorder.lists;
        let ends = lists.ends();
        lists.overflows = false;
        let charges = self.meter.waiting().map(|waiting| {
            let weight = extras.len() * size_of::<Charge>() / 8;
            extras.iter().for_each(|(entry, cost)| lists.spend(*entry, *cost));
            let pieces = ends.0..lists.ends().0;
            let lost = self.meter.is_lost();
            let charges = Charges { pieces, is_group: true, waiting, lost, ..Charges::default() };
            (charges, waiting == 0 && !lost, weight)
        });
        let charges = charges.filter(|_| !lists.overflows);
        let members = repeated.members().map_or(0, Iterator::count);
        if !self.remembered.end_group(&self.calls, learning, members, charges) {
            lists.truncate(ends);
        }
    }

    /// Follows an unknown passage, by its outline if it has one, and caches its cost.
    #[inline(never)]
    fn learn(&mut self, repeated: &Repeated<'_>, outlined: Option<Outlined>, before: Before) {
        if self.remembered.is_full(repeated.set()) {
            self.charge();
            self.remembered.forget(repeated.set(), &mut self.calls);
            self.recorder.lists.truncate((0, 0));
        }
        let learning = self.remembered.begin_learning(&mut self.calls, key(repeated));
        let was_lost = self.meter.is_lost();
        let counts = |profile: &Profile| (profile.folded_calls, profile.measures.cycle_counts);
        let counted = counts(&self.recorder.profile);
        let ends = self.recorder.lists.ends();
        (self.recorder.lists.notes, self.recorder.lists.overflows) = (true, false);
        let mut takers = Takers::default();
        if let Some(outlined) = outlined {
            self.follow_outline(repeated, outlined);
            takers.pending = Some(Some(0));
        } else {
            repeated.elements().for_each(|element| {
                let first = self.recorder.lists.ends().0;
                self.follow(&element, CaptureOffset(0));
                takers.element(&element, first - ends.0..self.recorder.lists.ends().0 - ends.0);
            });
        }
        let lists = &mut self.recorder.lists;
        lists.notes = false;
        let (pending, waited) = (takers.pending.flatten(), takers.waited.flatten());
        let now = counts(&self.recorder.profile);
        let cycle_counts = u32::try_from(now.1 - counted.1);
        let is_known = now.0 == counted.0 && !(was_lost && self.meter.has_counted()) && !lists.overflows;
        let (waiting, lost) = (self.meter.waiting().filter(|_| is_known), self.meter.is_lost());
        let charges = waiting.and_then(|waiting| {
            let (now, cycle_counts) = (lists.ends(), cycle_counts.ok()?);
            let (pieces, calls) = (ends.0..now.0, ends.1..now.1);
            let is_group = false;
            let charges = Charges { pieces, calls, pending, waited, cycle_counts, waiting, lost, is_group };
            let is_simple = cycle_counts == 0 && waiting == 0 && !lost;
            charges.leave_out(before, lists).then_some((charges, is_simple))
        });
        if !self.remembered.end_learning(&mut self.calls, learning, charges, NodeId::number) {
            lists.truncate(ends);
        }
    }

    /// Charges the costs of the passages that were only counted.
    fn charge(&mut self) {
        let Recorder { profile, lists, .. } = &mut self.recorder;
        self.remembered.take_counts(|times, charges| {
            let pieces = lists.pieces(&charges.pieces);
            pieces.iter().for_each(|charge| profile.spend(charge.entry, charge.cost().times(times)));
            lists.calls(&charges.calls).iter().for_each(|node| profile.count_calls(*node, times));
            profile.measures.cycle_counts += u64::from(charges.cycle_counts) * times;
        });
    }

    fn follow(&mut self, element: &Element, at: CaptureOffset) {
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
        self.charge();
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
                recorder.spend(entry, Cost { cycles, ..Cost::default() });
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

/// The key that identifies a passage.
const fn key(repeated: &Repeated<'_>) -> (u32, u32) {
    (repeated.set(), repeated.number())
}

impl Recorder {
    /// Does what a known passage needs beyond counting.
    fn repeat(&mut self, charges: &Charges, before: Before) {
        let measures = self.interval.measures();
        if before == Before::NOTHING && !measures {
            return;
        }
        for (index, charge) in self.lists.pieces(&charges.pieces).iter().enumerate() {
            let (entry, cost) = (charge.entry, charge.cost());
            let extra = charges.extra(index, before);
            if extra > 0 {
                let cost = Cost { cycles: extra, ..Cost::default() };
                self.profile.spend(entry, cost);
                if let Some(extras) = &mut self.extras {
                    extras.push((entry, cost));
                }
            }
            if measures {
                self.interval.ran(Owner::Entry(entry), cost.cycles + extra, cost.instructions);
            }
        }
    }

    fn spend(&mut self, entry: EntryId, cost: Cost) {
        self.profile.spend(entry, cost);
        if self.lists.notes {
            self.lists.spend(entry, cost);
        }
    }

    /// A chain is called.
    fn called(&mut self, node: NodeId) {
        self.profile.count_calls(node, 1);
        if self.lists.notes {
            self.lists.call(node);
        }
    }

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
                self.called(node);
            }
            if entry == Entry::Interrupting {
                self.called(chain);
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
                self.spend(entry, cost);
                Owner::Entry(entry)
            }
            Phase::Before | Phase::After => Owner::Outside,
        };
        self.interval.ran(owner, cost.cycles, cost.instructions);
    }

    #[inline]
    fn run_all(&mut self, top: &mut Frame<NodeId>, run: &Run<'_>) {
        if self.lists.notes {
            for piece in run.pieces {
                let entry = self.profile.entry(top.mark, *piece);
                let instructions = piece.instructions.into();
                self.spend(entry, Cost { instructions, ..Cost::default() });
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
        // Repeated elements that switch tasks are never cached.
        if self.phase == Phase::Inside {
            *self.profile.switches.entry(evidence).or_default() += 1;
        }
        self.task = to;
    }
}
