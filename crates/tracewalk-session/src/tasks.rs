//! Which tasks a source ran, by all evidence: call stacks, reports of a DWT, and values that the path proves. Other analyses can
//! receive these tasks as if the trace had context IDs.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;

use tracewalk::flow::{Element, Event, EventKind};
use tracewalk::ids::{ContextId, Privilege};
use tracewalk::program::Scope;
use tracewalk::source::Instrumentation;
use tracewalk_analysis::analysis::{Analysis, End, FlowSink, Repeated};
use tracewalk_analysis::call_stack::Task;
use tracewalk_analysis::record::{FlowRecord, ItmRecord};
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::tasks::{Stacks, Tasking, Tasks};
use tracewalk_analysis::values::Proving;
use tracewalk_analysis::{Doubt, InDoubt, Section};

use crate::error::RunError;
use crate::model::Source;
use crate::observer::{Notices, Observer};
use crate::outcome::{Follow, Outcome};
use crate::session::Session;

impl Session {
    /// The tasks of a source. Values are proven if call stacks do not identify each task, or if the operating system has names in its
    /// memory; that costs far more than call stacks do. `dump` is as for [`Session::snapshot`].
    ///
    /// # Errors
    ///
    /// As for [`Session::run_observed`] and [`Session::value_setup`].
    pub fn tasks(
        &mut self,
        source: &Source,
        how: &Follow,
        dump: Option<&Path>,
        observer: &dyn Observer,
    ) -> Result<Outcome<Tasks>, RunError> {
        let code = self.code(source, how.names.as_deref(), observer)?;
        let variable = code.symbols.current_task();
        let itms = self.itms_beside(source);
        let itm = itms.iter().find(|itm| itm.protocol() == Instrumentation::Itm);
        let watched = itm.map(|itm| self.watched(itm, &code));
        let tasking = || Tasking::default().reported(variable, watched.clone());
        let outcome = self.run_in(source, how, &code, tasking(), observer)?;
        if outcome.found.certain && variable.is_none_or(|variable| variable.name.is_none()) {
            return Ok(outcome);
        }
        let setup = self.value_setup(source, &outcome.code, dump)?;
        let mut stacks = Stacks::new(&setup, variable);
        self.run(source, how, &mut Proving::new(setup, &mut stacks))?;
        Ok(Outcome { found: self.run(source, how, tasking().with(stacks))?.found, ..outcome })
    }
}

impl Session {
    /// The names of tasks that the capture or the caller states, and those of proven tasks.
    pub(crate) fn threads(&self) -> BTreeMap<Task, String> {
        let recorded = self.capture.recorded.as_ref().map(|recorded| recorded.thread_names());
        let recorded = recorded.into_iter().flatten().map(|(scope, name)| (Task::Context(scope), name));
        let stated = self.request.stated.tasks.iter().flat_map(|(id, name)| {
            let context = Scope { context_id: Some(ContextId(*id)), vmid: None };
            [Task::Number(*id), Task::Context(context)].map(|task| (task, name.clone()))
        });
        let proven = self.task_names.iter().map(|(task, name)| (*task, name.clone()));
        recorded.chain(stated).chain(proven).collect()
    }

    /// The turns of a source's tasks; none unless the caller wants them from all evidence. Programs that are loaded from now on name
    /// the tasks.
    pub(crate) fn turns(&mut self, source: &Source, how: &Follow) -> Result<Turns, RunError> {
        if !self.request.stated.proves_tasks || self.is_live() {
            return Ok(Turns::default());
        }
        let found = self.tasks(source, how, None, &Notices::default())?.found;
        let Some(first) = found.switches.first() else { return Ok(Turns::default()) };
        let is_same = |other: &Source| (other.buffer, other.id) == (source.buffer, source.id);
        let of_source = self.sources.iter().position(is_same).unwrap_or(0);
        let context = |task: Task| match task {
            Task::Number(number) => Some(context_of(of_source, number)),
            Task::Context(_) | Task::Unresolved => None,
        };
        for row in &found.rows {
            let (Some(id), stated) = (context(row.task), self.threads().remove(&row.task)) else { continue };
            let name = stated.or_else(|| row.name.as_deref().map(str::to_owned));
            let scope = Scope { context_id: Some(id), vmid: None };
            self.task_names.insert(Task::Context(scope), name.unwrap_or_else(|| row.task.to_string()));
        }
        self.programs.clear();
        let later = found.switches.iter().map(|switch| (switch.at, switch.to));
        let turns = std::iter::once((0, first.from)).chain(later);
        let turns = turns.map(|(at, task)| (at, task.and_then(context).unwrap_or(UNRESOLVED)));
        Ok(Turns { turns: turns.collect(), ..Turns::default() })
    }
}

/// The context of tasks that could not be distinguished.
const UNRESOLVED: ContextId = ContextId(u32::MAX);

/// A context ID for a task of a source. It is never shown: each has a name.
fn context_of(source: usize, number: u32) -> ContextId {
    ContextId(u32::try_from(source).unwrap_or(u32::MAX) << 20 | number)
}

/// When tasks begin to run.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// For each turn, the number of instructions before it.
    turns: VecDeque<(u64, ContextId)>,
    instructions: u64,
    now: Option<ContextId>,
}

/// Hands a source's flow on with its tasks as context IDs.
pub(crate) struct Stating<A> {
    pub(crate) analysis: A,
    pub(crate) turns: Turns,
}

impl<A: Analysis> Stating<A> {
    /// States the task before a record in which it begins to run.
    fn state(&mut self, record: &mut FlowRecord) -> io::Result<()> {
        let turns = &mut self.turns;
        match &mut record.element {
            Element::Block(block) => {
                let turn = turns.turns.pop_front_if(|(at, _)| *at <= turns.instructions);
                turns.instructions += u64::from(block.instructions);
                if let Some((_, task)) = turn {
                    turns.now = Some(task);
                    let privilege = Privilege::default();
                    let kind = EventKind::Context { context_id: Some(task), vmid: None, privilege };
                    let span = block.span;
                    let element = Element::Event(Event { kind, span });
                    self.analysis.record(FlowRecord { element, ..*record })?;
                }
            }
            Element::Event(Event { kind: EventKind::Context { context_id, .. }, .. }) => {
                *context_id = context_id.or(turns.now);
            }
            Element::Event(_) | Element::Gap(_) | Element::Proof(_) => {}
        }
        Ok(())
    }
}

impl<A: Analysis> Sink<FlowRecord> for Stating<A> {
    fn begin(&mut self) -> io::Result<()> {
        self.analysis.begin()
    }

    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.analysis.section(section)
    }

    fn record(&mut self, mut record: FlowRecord) -> io::Result<()> {
        self.state(&mut record)?;
        self.analysis.record(record)
    }

    fn shows_itm(&self) -> bool {
        self.analysis.shows_itm()
    }

    fn itm(&mut self, record: &ItmRecord) -> io::Result<()> {
        self.analysis.itm(record)
    }

    fn go_on(&mut self, doubt: Doubt) {
        self.analysis.go_on(doubt);
    }

    fn left_out(&mut self, instructions: u64) {
        self.analysis.left_out(instructions);
    }

    fn cut(&mut self, at: tracewalk::span::CaptureOffset) -> io::Result<()> {
        self.analysis.cut(at)
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.analysis.end_section()
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        self.analysis.finish(complete)
    }
}

impl<A: Analysis> FlowSink for Stating<A> {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        let turns = &mut self.turns;
        let end = turns.instructions + u64::from(repeated.totals().instructions);
        if turns.turns.front().is_some_and(|(at, _)| *at < end) {
            return repeated.records().try_for_each(|record| self.record(record));
        }
        turns.instructions = end;
        self.analysis.passage(repeated)
    }

    fn needs_places(&self) -> bool {
        self.analysis.needs_places()
    }

    fn weighs_doubt(&self) -> bool {
        self.analysis.weighs_doubt()
    }

    fn doubtful(&mut self, mut record: FlowRecord) -> io::Result<()> {
        self.state(&mut record)?;
        self.analysis.doubtful(record)
    }
}

impl<A: Analysis> Analysis for Stating<A> {
    type Found = A::Found;

    fn answer(self, end: &End) -> A::Found {
        self.analysis.answer(end)
    }

    fn in_doubt(found: &A::Found) -> Option<InDoubt> {
        A::in_doubt(found)
    }
}
