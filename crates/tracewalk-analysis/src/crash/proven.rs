//! What the prover of [`values`](crate::values) proves of the newest pieces of flow.

use std::io;
use std::sync::Arc;

use tracewalk::flow::{Element, Event, EventKind, Gap, GapReason};
use tracewalk::ids::{Isa, Location};
use tracewalk::span::{CaptureOffset, Span};

use super::path::Registers;
use super::state::StackedFrame;
use super::trail::{Happened, Taken};
use crate::record::FlowRecord;
use crate::sink::Sink as _;
use crate::values::{End, Halt, Instruction, Proven, Proving, Step, ValueSetup, ValueSink, ValueSummary};
use crate::{Code, Section};

/// The pieces before the end whose registers are kept.
const KEPT: usize = 1 << 12;

/// What is proven of pieces of flow, by their indexes.
#[derive(Debug, Default)]
pub(super) struct Values {
    pieces: Vec<Vec<(Step, Proven)>>,
    /// The first piece whose registers are kept.
    kept: usize,
}

impl Values {
    /// What is proven of these pieces. Nothing is if the path contradicts the program.
    pub(super) fn of(pieces: &[&Happened], code: &Arc<Code>, setup: ValueSetup) -> Self {
        let kept = pieces.len().saturating_sub(KEPT);
        let mut values = Self { pieces: vec![Vec::new(); pieces.len()], kept };
        let mut proving = Proving::new(setup, &mut values).with_registers();
        let section = Section { id: None, protocol: "", number: 1, code: Arc::clone(code) };
        let record = |(index, element)| FlowRecord { element, at: CaptureOffset(index) };
        let elements = (0..).zip(pieces.iter().enumerate().map(|(index, piece)| {
            let next = pieces.get(index + 1).copied();
            element(piece, next)
        }));
        let elements = elements.filter_map(|(index, element)| Some((index, element?)));
        let proved = proving
            .section(&section)
            .and_then(|()| elements.map(record).try_for_each(|record| proving.record(record)))
            .and_then(|()| proving.end_section());
        drop(proving);
        // Nothing here writes anything.
        if proved.is_err() {
            return Self::default();
        }
        values
    }

    /// The number of pieces.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// What is proven of the steps of a piece.
    pub(super) fn piece(&self, piece: usize) -> &[(Step, Proven)] {
        self.pieces.get(piece).map_or(&[], Vec::as_slice)
    }

    /// What is proven of an instruction of a piece, by its number.
    pub(super) fn instruction(&self, piece: usize, number: usize) -> Option<(&Instruction, &Proven)> {
        let steps = self.pieces.get(piece)?.iter();
        let mut instructions = steps.filter_map(|(step, proven)| match step {
            Step::Instruction(instruction) => Some((instruction, proven)),
            _ => None,
        });
        instructions.nth(number)
    }
}

impl ValueSink for Values {
    fn section(&mut self, _: &Section) -> io::Result<()> {
        Ok(())
    }

    fn element(&mut self, _: &FlowRecord) -> io::Result<()> {
        Ok(())
    }

    fn pass(&mut self, _: &FlowRecord) {}

    fn step(&mut self, at: CaptureOffset, step: &Step, proven: &Proven) -> io::Result<()> {
        let piece = usize::try_from(at.0).unwrap_or(usize::MAX);
        if let Some(steps) = self.pieces.get_mut(piece) {
            let before = proven.before.clone().filter(|_| piece >= self.kept);
            steps.push((*step, Proven { before, ..proven.clone() }));
        }
        Ok(())
    }

    fn end_section(&mut self, _: &ValueSummary) -> io::Result<()> {
        Ok(())
    }
}

/// The element of flow that a piece was; `None` if nothing ran there.
fn element(piece: &Happened, next: Option<&Happened>) -> Option<Element> {
    let event = |kind| Element::Event(Event { kind, span: Span::default() });
    let gap = |reason| Element::Gap(Gap { reason, span: Span::default(), doubt: false });
    Some(match piece {
        Happened::Ran(block) => Element::Block(*block),
        Happened::Taken(taken) => event(EventKind::Exception {
            exception: taken.exception,
            preferred_return: taken.returns_to,
            handler: taken.handler.map(|handler| Location::new(handler, Isa::T32)),
        }),
        Happened::Returned => event(EventKind::ExceptionReturn),
        // No instruction could be fetched there, so that the exception was taken at once.
        Happened::NoCode(at)
            if matches!(next, Some(Happened::Taken(Taken { returns_to, .. }))
                if returns_to.is_none_or(|to| to == *at)) =>
        {
            return None;
        }
        Happened::NoCode(at) => gap(GapReason::NoCode(Location::new(*at, Isa::T32))),
        Happened::Lost(Some(reason)) => event(EventKind::TraceOn(*reason)),
        Happened::Lost(None) => gap(GapReason::TraceLost),
    })
}

/// A setup whose path ends when an exception was taken that stacked this frame, with what was saved of that moment. These `registers` are
/// those then.
pub(super) fn ending_at(setup: &ValueSetup, frame: StackedFrame, registers: &Registers) -> ValueSetup {
    let mut end = End::default();
    for (value, known) in end.registers.iter_mut().zip(registers.iter().take(15)) {
        *value = known.map(u64::from);
    }
    let stacked = frame.address.get()..registers[13].map_or(u64::MAX, u64::from);
    let halt = setup.halt.as_ref();
    let saved = halt.map_or(&[][..], |halt| &halt.end.memory);
    for (start, bytes) in saved {
        // The exception wrote its frame there.
        let part = |from: u64, to: u64| {
            let index =
                |at: u64| usize::try_from(at.saturating_sub(*start)).unwrap_or(usize::MAX).min(bytes.len());
            (from, bytes.get(index(from)..index(to)).unwrap_or_default().to_vec())
        };
        let (before, after) =
            (part(*start, stacked.start.max(*start)), part(stacked.end.max(*start), u64::MAX));
        end.memory.extend([before, after].into_iter().filter(|(_, bytes)| !bytes.is_empty()));
    }
    ValueSetup { halt: Some(Halt { at: None, end, is_straight: false }), ..setup.clone() }
}
