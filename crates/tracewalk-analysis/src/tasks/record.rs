//! Recording tasks, element by element.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use tracewalk::flow::{Element, EventKind};
use tracewalk::ids::Exception;

use super::blocks::{Block, Reported};
use super::stacks::{Ends, Names, Stacks};
use super::{Run, Stretch, Tasks};
use crate::analysis::{Analysis, End, FlowSink, Repeated};
use crate::call_stack::{
    self, CallStack, Entry, Evidence, Frame, FrameKind, FunctionId, Left, Observer, Piece, Task,
};
use crate::clock::{Cost, CycleMeter, Spent};
use crate::itm::Watched;
use crate::record::{FlowRecord, ItmRecord};
use crate::sink::Sink;
use crate::symbols::CurrentTask;
use crate::{InDoubt, Section};

/// Works out which of a source's tasks ran.
#[derive(Debug, Default)]
pub struct Tasking {
    running: Option<CallStack<Nesting>>,
    meter: CycleMeter,
    recorder: Recorder,
    reported: Option<Reported>,
    left_out: u64,
}

/// How many exceptions are around a frame.
type Nesting = u32;

#[derive(Debug)]
struct Recorder {
    task: Task,
    /// All that ran so far.
    now: Cost,
    /// The cost of the current block, and the number of its instructions that ran.
    block: Cost,
    charged: u64,
    stretches: Vec<Stretch>,
    /// The first exception since the last instruction of thread mode, and its place.
    cause: Option<(Option<Exception>, Cost)>,
    /// The outermost known function of each task.
    entries: BTreeMap<Task, FunctionId>,
    /// The task's outermost known function returned: its caller comes next.
    returned: bool,
    /// Numbers that unresolved tasks had, and the tasks that they turned out to be.
    unresolved: BTreeSet<Task>,
    identified: BTreeMap<Task, Task>,
    from_reset: bool,
    counts_cycles: bool,
    /// A task was taken for a new one because no waiting one fits.
    guessed: bool,
    stacks: Option<Stacks>,
    /// The stack on which thread mode goes on, and the task in the last instruction of thread mode.
    resumed: Option<u64>,
    has_left: bool,
    /// The frames of tasks that were interrupted before their first instruction, and where they went on.
    moved: BTreeMap<u64, u64>,
    current: Task,
    /// The running task's control block: what values prove, and what was reported since the last switch may have begun.
    proven_block: Option<Block>,
    reported_block: Option<u64>,
    /// Whether stores to the system's variable are reported.
    reports_switches: bool,
    /// PendSV or a supervisor call ran since the last instruction of thread mode.
    may_switch: bool,
}

impl Default for Recorder {
    fn default() -> Self {
        Self {
            task: Task::Number(1),
            now: Cost::default(),
            block: Cost::default(),
            charged: 0,
            stretches: Vec::new(),
            cause: None,
            entries: BTreeMap::new(),
            returned: false,
            unresolved: BTreeSet::new(),
            identified: BTreeMap::new(),
            from_reset: false,
            counts_cycles: false,
            guessed: false,
            stacks: None,
            resumed: None,
            has_left: false,
            moved: BTreeMap::new(),
            current: Task::Number(1),
            proven_block: None,
            reported_block: None,
            reports_switches: false,
            may_switch: false,
        }
    }
}

impl Tasking {
    /// The same with the stacks that an earlier pass over the source has proven.
    #[must_use]
    pub fn with(mut self, stacks: Stacks) -> Self {
        self.recorder.stacks = Some(stacks);
        self
    }

    /// The same with the reports of the comparator of a DWT, if one watches the operating system's variable.
    #[must_use]
    pub fn reported(mut self, variable: Option<CurrentTask>, watched: Option<Watched>) -> Self {
        let reported = variable.zip(watched);
        self.reported = reported.map(|(variable, watched)| Reported { variable, watched });
        self.recorder.reports_switches = self.reported.is_some();
        self
    }

    fn element(&mut self, element: &Element) {
        let Self { running: Some(calls), meter, recorder, .. } = self else { return };
        let cycles = meter.element(element).map_or(0, Spent::cycles);
        match element {
            Element::Block(block) => {
                recorder.begin(Cost { instructions: block.instructions.into(), cycles, time: 0 });
            }
            Element::Event(event) => {
                recorder.now.cycles += cycles;
                recorder.counts_cycles |= matches!(event.kind, EventKind::Cycles(_));
                recorder.frame(&event.kind);
            }
            Element::Gap(_) | Element::Proof(_) => recorder.now.cycles += cycles,
        }
        calls.element(element, recorder);
    }

    /// The tasks, now that the trace has ended.
    pub(super) fn finish(self) -> Tasks {
        Tasks { in_doubt: InDoubt { left_out: self.left_out, counted: 0 }, ..self.recorder.finish() }
    }
}

impl Recorder {
    fn begin(&mut self, block: Cost) {
        (self.block, self.charged) = (block, 0);
    }

    /// An exception or a return from one changes the stack.
    fn frame(&mut self, kind: &EventKind) {
        let is_return = matches!(kind, EventKind::ExceptionReturn);
        if !is_return && !matches!(kind, EventKind::Exception { .. }) {
            return;
        }
        self.exchange();
        let frame = self.stacks.as_mut().and_then(Stacks::frame);
        match (is_return, self.resumed.take()) {
            (true, _) => self.resumed = frame.map(|frame| self.moved.remove(&frame).unwrap_or(frame)),
            // The task that goes on is interrupted before its first instruction.
            (false, Some(resumed)) => drop(frame.and_then(|frame| self.moved.insert(frame, resumed))),
            (false, None) => self.leave(frame),
        }
    }

    /// A comparator reported a store to the system's variable. The report belongs to the switch that is being made, or to the last one.
    fn report(&mut self, block: u64) {
        if self.may_switch {
            self.reported_block = Some(block);
        } else if let [before @ .., last] = &mut *self.stretches
            // The start-up code prepares the variable.
            && !(before.is_empty() && self.from_reset)
        {
            last.block.get_or_insert(Block { address: block, name: None }).address = block;
        }
    }

    /// Instructions exchanged the stack pointer.
    fn exchange(&mut self) {
        let stacks = self.stacks.as_mut();
        if let Some([left, resumed]) = stacks.and_then(|stacks| stacks.exchange(self.now.instructions)) {
            self.leave(left);
            self.resumed = resumed;
        }
    }

    /// The task of the last stretch stops here, unless it has stopped already.
    fn leave(&mut self, at: Option<u64>) {
        if let Some(last) = self.stretches.last_mut().filter(|_| !std::mem::replace(&mut self.has_left, true))
        {
            last.ends.left = at;
        }
    }

    /// Instructions of thread mode run.
    fn thread(&mut self, cost: Cost, piece: &Piece, function: FunctionId) {
        let cause = self.cause.take();
        self.exchange();
        if let Some(block) = self.stacks.as_mut().and_then(|stacks| stacks.block(self.now.instructions)) {
            self.proven_block = block;
        }
        let resumed = self.resumed.take();
        self.has_left = false;
        let has_changed = std::mem::replace(&mut self.current, self.task) != self.task;
        let left = self.stretches.last().and_then(|last| last.ends.left);
        let is_other = resumed.zip(left).map_or(has_changed, |(resumed, left)| resumed != left);
        let may_switch = std::mem::take(&mut self.may_switch);
        let reported = self.reported_block.take().map(|address| Block { address, name: None });
        let block = self.proven_block.clone().or(reported);
        let last = self.stretches.last().and_then(|last| last.block.as_ref());
        let has_other_block = last.zip(block.as_ref()).is_some_and(|(last, now)| last.address != now.address);
        // Reports may come later than the instructions after the switch.
        let is_other = is_other || cause.is_some() && has_other_block || self.reports_switches && may_switch;
        if let Some(last) = self.stretches.last_mut().filter(|_| !is_other) {
            last.run.cost += cost;
            last.ends.left = None;
            return;
        }
        let begins = function.address() == Some(piece.start);
        self.from_reset |= self.stretches.is_empty() && begins;
        let run = Run { at: self.now.instructions, cost };
        let ends = Ends { resumed, left: None };
        self.stretches.push(Stretch { task: self.task, run, cause, since: self.now, ends, block, begins });
    }

    /// The last stretch was another task's.
    fn name_last(&mut self, task: Task) {
        if let Some(last) = self.stretches.last_mut() {
            last.task = task;
        }
    }

    fn finish(mut self) -> Tasks {
        let is_known = |stretch: &Stretch| stretch.task != Task::Unresolved;
        let certain = !self.guessed && self.unresolved.is_empty() && self.stretches.iter().all(is_known);
        let mut names = Names::of(&self.stretches);
        let (mut entries, mut named) = (BTreeMap::new(), BTreeMap::new());
        let mut stretches: Vec<Stretch> = Vec::with_capacity(self.stretches.len());
        for stretch in std::mem::take(&mut self.stretches) {
            let mut task = stretch.task;
            while let Some(identified) = self.identified.get(&task) {
                task = *identified;
            }
            if self.unresolved.contains(&task) {
                task = Task::Unresolved;
            }
            let entry = self.entries.get(&task).copied();
            let stretch = Stretch { task, ..stretch };
            let task = names.next(&stretch);
            if let Some(entry) = entry {
                entries.entry(task).or_insert(entry);
            }
            if let Some(name) = stretch.block.as_ref().and_then(|block| block.name.as_ref()) {
                named.entry(task).or_insert_with(|| Arc::clone(name));
            }
            stretches.push(Stretch { task, ..stretch });
            join(&mut stretches);
        }
        // A task from before the trace may be among those that are seen later.
        if let [first, later @ ..] = &mut *stretches
            && let Task::Number(_) = first.task
            && !self.from_reset
            && !later.is_empty()
            && later.iter().all(|stretch| stretch.task != first.task)
        {
            first.task = Task::Unresolved;
        }
        let mut tasks = Tasks::of(&stretches, &entries, self.from_reset);
        for row in &mut tasks.rows {
            let block = names.blocks.iter().find(|(_, task)| **task == row.task).map(|(block, _)| *block);
            let at_end = || self.stacks.as_ref()?.name_at_end(block?);
            row.name = named.remove(&row.task).or_else(at_end);
        }
        let thread = tasks.rows.iter().map(|row| row.cost).fold(tasks.unresolved, |mut sum, cost| {
            sum += cost;
            sum
        });
        tasks.handlers = Cost {
            instructions: self.now.instructions - thread.instructions,
            cycles: self.now.cycles - thread.cycles,
            time: 0,
        };
        let contradictions = names.contradictions;
        Tasks { counts_cycles: self.counts_cycles, certain, contradictions, ..tasks }
    }
}

/// Joins the last stretch with the one before, if both are the same task's: there was no switch.
fn join(stretches: &mut Vec<Stretch>) {
    if let [.., before, last] = &mut **stretches
        && before.task == last.task
    {
        before.run.cost += last.run.cost;
        before.ends.left = last.ends.left;
        before.block = last.block.take().or(before.block.take());
        stretches.pop();
    }
}

impl Observer for Recorder {
    type Mark = Nesting;

    fn enter(
        &mut self,
        below: Option<&mut Frame<Nesting>>,
        kind: FrameKind,
        function: FunctionId,
        _: Entry,
    ) -> Nesting {
        let nesting = below.as_ref().map_or(0, |below| below.mark);
        if below.is_none() && kind == FrameKind::Root {
            let is_new = !self.entries.contains_key(&self.task);
            let entry = self.entries.entry(self.task).or_insert(function);
            if !is_new && std::mem::take(&mut self.returned) {
                *entry = function;
            }
        }
        let FrameKind::Exception(interruption) = kind else { return nesting };
        self.cause.get_or_insert((interruption.exception, self.now));
        self.may_switch |=
            interruption.exception.is_none_or(|exception| matches!(exception, Exception::M(11 | 14)));
        nesting + 1
    }

    fn run(&mut self, top: &mut Frame<Nesting>, piece: &Piece) {
        let instructions = piece.instructions.into();
        let cost = self.block.share(self.charged, instructions, self.block.instructions);
        self.charged += instructions;
        if top.mark == 0 {
            self.thread(cost, piece, top.function);
        }
        self.now += cost;
    }

    fn run_all(&mut self, top: &mut Frame<Nesting>, run: &call_stack::Run<'_>) {
        let cost = Cost { instructions: run.instructions.into(), ..Cost::default() };
        if let Some(first) = run.pieces.first().filter(|_| top.mark == 0) {
            self.thread(cost, first, top.function);
        }
        self.now += cost;
    }

    fn begin_block(&mut self, block: &tracewalk::flow::Block) {
        self.begin(Cost { instructions: block.instructions.into(), ..Cost::default() });
    }

    fn leave(&mut self, _: &mut Frame<Nesting>, below: Option<&mut Frame<Nesting>>, how: Left) {
        self.returned = below.is_none() && how == Left::Returned;
    }

    fn switch(&mut self, from: Task, to: Task, _: Evidence) {
        if self.task == Task::Unresolved && from != Task::Unresolved {
            self.unresolved.insert(from);
            if self.stretches.last().is_some_and(|last| last.task == Task::Unresolved) {
                self.name_last(from);
            }
        }
        self.task = to;
        self.returned = false;
    }

    fn identify(&mut self, from: Task, to: Task) {
        if self.unresolved.contains(&from) {
            self.identified.insert(from, to);
        } else if self.stretches.last().is_some_and(|last| last.task == from) {
            self.guessed |= !self.entries.contains_key(&to);
            self.name_last(to);
            self.current = to;
        }
        self.task = to;
    }
}

impl Sink<FlowRecord> for Tasking {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.running = Some(CallStack::new(Arc::clone(&section.code)));
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        self.element(&record.element);
        Ok(())
    }

    fn shows_itm(&self) -> bool {
        self.reported.is_some()
    }

    fn itm(&mut self, record: &ItmRecord) -> io::Result<()> {
        let block = self.reported.as_mut().and_then(|reported| reported.event(&record.event));
        block.into_iter().for_each(|block| self.recorder.report(block));
        Ok(())
    }

    fn left_out(&mut self, instructions: u64) {
        self.left_out += instructions;
    }
}

impl FlowSink for Tasking {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        let Self { running: Some(calls), meter, recorder, .. } = self else { return Ok(()) };
        let outlined = if meter.counts_nothing(repeated) { calls.outline(repeated, recorder) } else { None };
        let Some(outlined) = outlined else {
            repeated.elements().for_each(|element| self.element(&element));
            return Ok(());
        };
        calls.follow(outlined, recorder);
        meter.pass(outlined.is_lost());
        Ok(())
    }

    fn needs_places(&self) -> bool {
        false
    }
}

impl Analysis for Tasking {
    type Found = Tasks;

    fn answer(self, _: &End) -> Tasks {
        self.finish()
    }
}
