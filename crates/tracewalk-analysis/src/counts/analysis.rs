//! Counting as an analysis of a source.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use tracewalk::flow::{Element, Event, EventKind};
use tracewalk::program::Program;

use super::Counts;
use super::counter::Counter;
use crate::analysis::{Analysis, End, FlowSink, Repeated};
use crate::record::FlowRecord;
use crate::sink::Sink;
use crate::transactions::Turn;
use crate::{Context, Section};

/// Counts execution, for each context separately if contexts see different programs. Transactions without a commit do not count.
#[derive(Debug, Default)]
pub struct Counting {
    settled: Counters,
    /// The execution in the open transaction.
    open: Option<Box<Counters>>,
    program: Arc<Program>,
    /// Whether the visible code depends on the context.
    has_scopes: bool,
    left_out: u64,
    uncommitted: u64,
}

/// The counts of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The counts of each context. Without scopes there is one context.
    pub counts: BTreeMap<Context, Counts>,
    /// The number of instructions that were left out because they are in doubt.
    pub left_out: u64,
    /// The number of instructions of transactions that failed, or whose commit is not in the trace; they are left out.
    pub uncommitted: u64,
}

/// The counters of each context.
#[derive(Debug, Default)]
struct Counters {
    /// Those of the other contexts.
    waiting: BTreeMap<Context, Counter>,
    /// The current context.
    context: Context,
    running: Counter,
}

impl Counting {
    fn element(&mut self, element: &Element) {
        if let Element::Event(Event { kind: EventKind::Context { context_id, vmid, .. }, .. }) = element
            && self.has_scopes
        {
            self.counters().change_to((*context_id, *vmid));
        }
        self.counters().running.element(element);
        if let Some(turn) = Turn::of(element) {
            self.turn(turn);
        }
    }

    fn counters(&mut self) -> &mut Counters {
        self.open.as_deref_mut().unwrap_or(&mut self.settled)
    }

    /// The fate of the open transaction is decided, if there is one, and another may begin.
    #[cold]
    fn turn(&mut self, turn: Turn) {
        self.decide(turn.commits());
        if turn == Turn::Begins {
            // The instruction that starts a transaction is no branch: a branch before the start has lost its target.
            self.settled.running.cut();
            let context = self.settled.context;
            self.open = Some(Box::new(Counters { context, ..Counters::default() }));
        }
    }

    /// Counts the execution in the open transaction if it `commits`.
    fn decide(&mut self, commits: bool) {
        let Some(open) = self.open.take() else { return };
        let Counters { waiting, context, running } = *open;
        for (of, counter) in waiting.into_iter().chain([(context, running)]) {
            if commits {
                self.settled.change_to(of);
                self.settled.running.join(counter);
            } else {
                self.uncommitted += counter.finish().instructions;
            }
        }
        self.settled.change_to(context);
    }
}

impl Counters {
    fn change_to(&mut self, context: Context) {
        if context != self.context {
            self.running.cut();
            let next = self.waiting.remove(&context).unwrap_or_default();
            let before = std::mem::replace(&mut self.running, next);
            self.waiting.insert(std::mem::replace(&mut self.context, context), before);
        }
    }
}

impl Sink<FlowRecord> for Counting {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.program = Arc::clone(&section.code.program);
        self.has_scopes = self.program.scopes().next().is_some();
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        self.element(&record.element);
        Ok(())
    }

    fn left_out(&mut self, instructions: u64) {
        self.left_out += instructions;
    }
}

impl FlowSink for Counting {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        // Few passages come again in one transaction.
        if repeated.totals().blocks == 0 || self.open.is_some() {
            repeated.elements().for_each(|element| self.element(&element));
        } else {
            self.settled.running.passage(repeated);
        }
        Ok(())
    }

    fn needs_places(&self) -> bool {
        false
    }
}

impl Analysis for Counting {
    type Found = Counted;

    fn answer(mut self, _: &End) -> Self::Found {
        // No commit of the open transaction is known.
        self.decide(false);
        let Self { settled: Counters { waiting, context, running }, left_out, uncommitted, .. } = self;
        let counters = waiting.into_iter().chain([(context, running)]);
        let counts = counters.map(|(context, counter)| (context, counter.finish())).collect();
        Counted { counts, left_out, uncommitted }
    }
}
