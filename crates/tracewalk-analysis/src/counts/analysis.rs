//! Counting as an analysis of a source.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use tracewalk::flow::{Element, Event, EventKind};
use tracewalk::program::Program;

use super::Counts;
use super::counter::Counter;
use crate::analysis::{Analysis, End, Growth, NoPart, Repeated};
use crate::record::FlowRecord;
use crate::sink::Sink;
use crate::{Context, Section};

/// Counts execution, for each context separately if contexts see different programs.
#[derive(Debug, Default)]
pub struct Counting {
    counters: BTreeMap<Context, Counter>,
    /// The current context.
    context: Context,
    running: Counter,
    program: Arc<Program>,
    /// Whether the visible code depends on the context.
    has_scopes: bool,
    left_out: u64,
}

impl Counting {
    fn element(&mut self, element: &Element) {
        if let Element::Event(Event { kind: EventKind::Context { context_id, vmid, .. }, .. }) = element
            && self.has_scopes
        {
            self.change_to((*context_id, *vmid));
        }
        self.running.element(element);
    }

    fn change_to(&mut self, context: Context) {
        if context != self.context {
            self.running.cut();
            let next = self.counters.remove(&context).unwrap_or_default();
            let before = std::mem::replace(&mut self.running, next);
            self.counters.insert(std::mem::replace(&mut self.context, context), before);
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

impl Analysis for Counting {
    type Part = NoPart;
    /// The counts of each context, and the number of instructions that were left out because they are in doubt. Without scopes
    /// there is one context.
    type Found = (BTreeMap<Context, Counts>, u64);

    fn sink(&mut self) -> &mut dyn Sink<FlowRecord> {
        self
    }

    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        if repeated.totals().blocks == 0 {
            repeated.elements().for_each(|element| self.element(&element));
        } else {
            self.running.passage(repeated);
        }
        Ok(())
    }

    fn needs_places(&self) -> bool {
        false
    }

    fn takes_groups(&self) -> bool {
        true
    }

    fn part(&self) -> Option<(NoPart, Growth)> {
        None
    }

    fn join(&mut self, part: NoPart) -> io::Result<()> {
        match part {}
    }

    fn finish(mut self, _: &End) -> Self::Found {
        self.counters.insert(self.context, self.running);
        let counts = self.counters.into_iter().map(|(context, counter)| (context, counter.finish()));
        (counts.collect(), self.left_out)
    }
}
