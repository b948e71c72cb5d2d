//! Values near places of a recording, proven when they are asked for.
//!
//! ```text
//! the place is outside the last stretch: prove a stretch from BEFORE steps before the place to AFTER steps after it
//! registers: as they were before the step
//! a byte:    the access before the step that had it, unless a store to an unknown address came after;
//!            else the load after the step that has it, unless a store came before; else the end's
//! ```

use std::io;
use std::ops::Range;
use std::sync::Arc;

use tracewalk::flow::{Element, Event};
use tracewalk::span::CaptureOffset;

use super::{Proven, ProvenAccess, Proving, Register, Registers, Step, ValueSetup, ValueSink, ValueSummary};
use crate::drive::{Cursor, FlowIndex, steps};
use crate::record::FlowRecord;
use crate::sink::Sink as _;
use crate::values::{End, HaltUse};
use crate::{Code, Section};

/// The steps before a place from which its values are proven.
const BEFORE: u64 = 1 << 17;
/// The steps after a place from which its values are proven.
const AFTER: u64 = 1 << 16;
/// The steps before and after a place whose registers are kept.
const KEPT: u64 = 1 << 13;

/// Values near places of a source.
pub struct Near<'i> {
    setup: ValueSetup,
    code: Arc<Code>,
    cursor: Cursor<'i>,
    steps: u64,
    stretch: Stretch,
}

/// A stretch that was proven, by the numbers of its steps.
#[derive(Debug, Default)]
struct Stretch {
    /// The steps that were proven.
    covered: Range<u64>,
    /// Those whose registers are kept.
    kept: Range<u64>,
    /// The registers before each step of `kept` that is an instruction, and what it did.
    proven: Vec<(u64, Proven)>,
    accesses: Vec<Access>,
    end: Option<End>,
    /// The number of the element's first step, and of the next one's.
    element: u64,
    next: u64,
    /// The number of instructions of the element that were proven.
    within: u64,
}

/// An access at a step; all of memory may have been stored to if `of` is `None`.
#[derive(Clone, Copy, Debug)]
struct Access {
    step: u64,
    of: Option<ProvenAccess>,
}

impl ValueSink for Stretch {
    fn section(&mut self, _: &Section) -> io::Result<()> {
        Ok(())
    }

    fn element(&mut self, record: &FlowRecord) -> io::Result<()> {
        (self.element, self.within) = (self.next, 0);
        self.next += steps(&record.element);
        Ok(())
    }

    fn pass(&mut self, _: &FlowRecord) {}

    fn step(&mut self, _: CaptureOffset, step: &Step, proven: &Proven) -> io::Result<()> {
        let number = self.element + self.within;
        let accesses = proven.accesses.iter().map(|access| Access { step: number, of: Some(*access) });
        self.accesses.extend(accesses);
        if proven.may_store {
            self.accesses.push(Access { step: number, of: None });
        }
        if matches!(step, Step::Instruction(_)) {
            if self.kept.contains(&number) {
                self.proven.push((number, proven.clone()));
            }
            self.within += 1;
        }
        Ok(())
    }

    fn end_section(&mut self, summary: &ValueSummary) -> io::Result<()> {
        if summary.halt != Some(HaltUse::Used) {
            self.end = None;
        }
        Ok(())
    }
}

impl<'i> Near<'i> {
    /// Values of a source with this index, of this program.
    #[must_use]
    pub fn new(setup: ValueSetup, code: Arc<Code>, index: &'i FlowIndex<'_>) -> Self {
        Self { setup, code, cursor: index.cursor(), steps: index.totals().steps, stretch: Stretch::default() }
    }

    /// The registers before a step. Those that are not proven are `None`.
    pub fn registers(&mut self, step: u64) -> Registers {
        self.proven(step).and_then(|proven| proven.before.as_deref().copied()).unwrap_or([None; 32])
    }

    /// What an instruction did; `None` if the step is none.
    pub fn proven(&mut self, step: u64) -> Option<&Proven> {
        self.prove(step, |stretch| &stretch.kept);
        let index = self.stretch.proven.binary_search_by_key(&step, |(number, _)| *number).ok()?;
        self.stretch.proven.get(index).map(|(_, proven)| proven)
    }

    /// The byte at an address before a step, if it is proven.
    pub fn byte(&mut self, step: u64, address: u64) -> Option<u8> {
        self.prove(step, |stretch| &stretch.covered);
        let Stretch { accesses, end, .. } = &self.stretch;
        let (before, after) = accesses.split_at(accesses.partition_point(|access| access.step < step));
        for access in before.iter().rev() {
            match access.hits(address) {
                Hit::None => {}
                Hit::Byte(byte) => return Some(byte),
                Hit::Unknown => break,
            }
        }
        for access in after {
            match access.hits(address) {
                Hit::None => {}
                Hit::Byte(byte) if !access.is_store() => return Some(byte),
                Hit::Byte(_) | Hit::Unknown => return None,
            }
        }
        end.as_ref()?.byte(address)
    }

    /// The first of these steps, or with `is_backward` the last, that is proven to access any of these bytes in a wanted way, with the first
    /// byte that it accesses.
    pub fn access(
        &mut self,
        within: Range<u64>,
        bytes: &Range<u64>,
        is_backward: bool,
        is_wanted: impl Fn(&ProvenAccess) -> bool,
    ) -> Option<(u64, u64)> {
        let hit = |access: &Access| {
            let of = access.of.filter(&is_wanted)?;
            let address = of.address?;
            let is_hit = address < bytes.end && bytes.start < address.saturating_add(of.bytes.into());
            is_hit.then(|| (access.step, address.max(bytes.start)))
        };
        let Range { mut start, mut end } = within;
        while start < end {
            self.prove(if is_backward { end - 1 } else { start }, |stretch| &stretch.covered);
            let Stretch { accesses, covered, .. } = &self.stretch;
            let index = |step| accesses.partition_point(|access| access.step < step);
            let accesses = accesses.get(index(start)..index(end))?;
            let found =
                if is_backward { accesses.iter().rev().find_map(hit) } else { accesses.iter().find_map(hit) };
            if found.is_some() {
                return found;
            }
            (start, end) = if is_backward {
                (start, covered.start.min(end - 1))
            } else {
                (covered.end.max(start + 1), end)
            };
        }
        None
    }

    /// The last instruction before a step that wrote a register, if it is near.
    pub fn last_write(&mut self, step: u64, register: Register) -> Option<u64> {
        self.prove(step, |stretch| &stretch.kept);
        let before = self.stretch.proven.iter().rev().skip_while(|(number, _)| *number >= step);
        let wrote =
            |(_, proven): &&(u64, Proven)| proven.writes.iter().any(|(written, _)| *written == register);
        before.clone().find(wrote).map(|(number, _)| *number)
    }

    /// The last step before this one that is proven to store to any of these bytes, if it is near, and whether no later store may have.
    pub fn last_store(&mut self, step: u64, bytes: &Range<u64>) -> Option<(u64, bool)> {
        self.prove(step, |stretch| &stretch.covered);
        let first = self.stretch.covered.start;
        let (found, _) = self.access(first..step, bytes, true, |access| access.is_store)?;
        let may_store = |access: &&Access| access.of.is_none_or(|of| of.is_store && of.address.is_none());
        let later = self.stretch.accesses.iter().filter(|access| found < access.step && access.step < step);
        Some((found, !later.into_iter().any(|access| may_store(&access))))
    }

    /// Proves the values near a step, unless it is among these steps of the last stretch.
    fn prove(&mut self, step: u64, among: impl Fn(&Stretch) -> &Range<u64>) {
        if among(&self.stretch).contains(&step) {
            return;
        }
        let kept = step.saturating_sub(KEPT)..step.saturating_add(KEPT);
        self.stretch = Stretch { kept, ..Stretch::default() };
        // A source whose trace cannot be decoded here has no values.
        let _ = self.prove_stretch(step);
    }

    fn prove_stretch(&mut self, step: u64) -> io::Result<()> {
        let Self { setup, code, cursor, steps: all, stretch } = self;
        let first = step.saturating_sub(BEFORE);
        if !cursor.seek_step(first) {
            return Ok(());
        }
        cursor.to_first_of_element();
        let Some(here) = cursor.current() else { return Ok(()) };
        let after = step.saturating_add(AFTER);
        (stretch.next, stretch.covered) = (here.step, here.step..after);
        let is_whole = after >= *all;
        let mut setup = setup.clone();
        stretch.end = setup.halt.as_ref().filter(|_| is_whole).map(|halt| halt.end.clone());
        if !is_whole {
            setup.halt = None;
        }
        let context = here.context.filter(|_| here.step > 0).map(|kind| FlowRecord {
            element: Element::Event(Event { kind, span: here.element.span() }),
            at: here.at,
        });
        // The context is no step here.
        stretch.next -= u64::from(context.is_some());
        let mut proving = Proving::new(setup, &mut *stretch).with_registers();
        proving.section(&Section { id: None, protocol: "", number: 1, code: Arc::clone(code) })?;
        context.map_or(Ok(()), |context| proving.record(context))?;
        let mut is_there = true;
        while is_there && let Some(here) = cursor.current().filter(|here| here.step < after) {
            proving.record(FlowRecord { element: *here.element, at: here.at })?;
            is_there = cursor.next_element();
        }
        proving.end_section()
    }
}

/// What an access states of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hit {
    /// Nothing: it is elsewhere.
    None,
    Byte(u8),
    /// The byte is what nothing states.
    Unknown,
}

impl Access {
    fn is_store(&self) -> bool {
        self.of.is_none_or(|of| of.is_store)
    }

    fn hits(&self, address: u64) -> Hit {
        let Some(of) = self.of else { return Hit::Unknown };
        match of.address {
            None if of.is_store => Hit::Unknown,
            None => Hit::None,
            Some(at) => match address.checked_sub(at).filter(|offset| *offset < of.bytes.into()) {
                None => Hit::None,
                Some(offset) => match of
                    .value
                    .and_then(|value| value.to_le_bytes().get(usize::try_from(offset).ok()?).copied())
                {
                    Some(byte) => Hit::Byte(byte),
                    None => Hit::Unknown,
                },
            },
        }
    }
}
