//! Values along a path of any length, in windows of bounded memory.
//!
//! Each window is solved as a whole. What is known where its last part begins is what the next window starts with, so that
//! facts reach forward without limit and backward at least as far as the windows overlap.

use std::collections::BTreeMap;

use crate::bits::{Bits, Width};
use crate::image::{Byte, Image};
use crate::machine::Register;
use crate::memory::Kind;
use crate::path::{ItBlock, Step};
use crate::profile::{Processor, Profile};
use crate::prover::{Prover, REGISTERS, State, stacks};

/// The steps that are solved together.
const WINDOW: usize = 64 << 10;
/// The steps at the end of a window with which the next one begins.
const OVERLAP: usize = 16 << 10;

/// The registers by their numbers: 0 to 14, or in A64 0 to 31.
pub type Registers = [Option<u64>; REGISTERS];

/// Registers and memory at the end of the path.
#[derive(Clone, Debug, Default)]
pub struct End {
    /// The registers.
    pub registers: Registers,
    /// Pieces of memory, by address.
    pub memory: Vec<(u64, Vec<u8>)>,
}

impl End {
    /// The byte at an address, if it is known.
    #[must_use]
    pub fn byte(&self, address: u64) -> Option<u8> {
        self.memory.iter().find_map(|(start, bytes)| {
            bytes.get(usize::try_from(address.checked_sub(*start)?).ok()?).copied()
        })
    }
}

/// What is proven of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proven {
    /// Whether the instruction's condition held; `None` if that is unknown.
    pub executed: Option<bool>,
    /// The registers that it wrote, in order, with the values that are known.
    pub writes: Vec<(Register, Option<u64>)>,
    /// The accesses that it made, in order.
    pub accesses: Vec<ProvenAccess>,
    /// It may have stored anything, anywhere.
    pub may_store: bool,
    /// The registers before it, if they are noted.
    pub before: Option<Box<Registers>>,
}

/// What is proven of an access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvenAccess {
    /// Whether it is a store.
    pub is_store: bool,
    /// The address.
    pub address: Option<u64>,
    /// The number of bytes.
    pub bytes: u8,
    /// The value in memory, little-endian.
    pub value: Option<u64>,
}

/// How much was proven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The registers that were written.
    pub writes: u64,
    /// Those of them whose value is known.
    pub known_writes: u64,
    /// The end contradicts the path: nothing of it was used.
    pub end_contradicts: bool,
    /// The windows in which the path contradicts the image, so that nothing is stated.
    pub contradictions: u64,
}

/// Receives what is proven of each step.
pub trait Sink {
    /// The next step, and what is proven of it.
    fn step(&mut self, step: &Step, proven: &Proven);
}

impl<F: FnMut(&Step, &Proven)> Sink for F {
    fn step(&mut self, step: &Step, proven: &Proven) {
        self(step, proven);
    }
}

/// Proves values along a path.
#[derive(Debug)]
pub struct Values {
    image: Image,
    processor: Processor,
    state: State,
    steps: Vec<Step>,
    window: usize,
    overlap: usize,
    notes_registers: bool,
    summary: Summary,
}

impl Values {
    /// Values along a path that begins with these registers.
    #[must_use]
    pub fn new(image: Image, profile: Profile, registers: &Registers) -> Self {
        let processor = Processor::new(profile, &image);
        let width = width(profile);
        let mut registers = registers.map(|value| value.map_or(Bits::unknown(width), Bits::constant));
        if profile == Profile::M && registers[13].value().is_some() {
            // The path begins with a reset: in thread mode on the main stack, with privilege (DDI 0403E, B1.5.5).
            for flag in [stacks::SELECTED, stacks::IN_HANDLER, stacks::UNPRIVILEGED] {
                registers[flag] = Bits::constant(0);
            }
        }
        let state = State {
            registers,
            it_block: ItBlock::default(),
            maybe_in_it_block: 0,
            it_blocks: BTreeMap::new(),
        };
        Self {
            image,
            processor,
            state,
            steps: Vec::new(),
            window: WINDOW,
            overlap: OVERLAP,
            notes_registers: false,
            summary: Summary::default(),
        }
    }

    /// The same on an ARMv7-M, whose EXC_RETURN has few values.
    #[must_use]
    pub fn on_armv7m(mut self) -> Self {
        self.processor.is_armv7m = self.processor.profile == Profile::M;
        self
    }

    /// The same with this number of steps in a window, and of steps that are solved again with the next: smaller windows need less memory,
    /// and prove less. The overlap is less than the window.
    #[must_use]
    pub fn in_windows(self, window: usize, overlap: usize) -> Self {
        let window = window.max(1);
        Self { window, overlap: overlap.min(window - 1), ..self }
    }

    /// The same with the registers before each step.
    #[must_use]
    pub fn with_registers(self) -> Self {
        Self { notes_registers: true, ..self }
    }

    /// Appends a step.
    pub fn push(&mut self, step: Step, sink: &mut impl Sink) {
        if let (Step::Instruction(first), true) =
            (&step, self.steps.is_empty() && self.summary == Summary::default())
            && first.is_thumb()
            && self.state.registers[13].value().is_none()
        {
            self.state.maybe_in_it_block = self.image.instructions_maybe_in_it_block(first.at.address.get());
        }
        self.steps.push(step);
        if self.steps.len() == self.window {
            self.solve_window(self.window - self.overlap, None, sink);
        }
    }

    /// Ends the path, whose registers and memory at the end may be known.
    pub fn finish(mut self, end: Option<&End>, sink: &mut impl Sink) -> Summary {
        self.solve_window(self.steps.len(), end, sink);
        self.summary
    }

    /// Solves a window, and hands on what is proven of its first steps.
    fn solve_window(&mut self, count: usize, end: Option<&End>, sink: &mut impl Sink) {
        let steps = core::mem::take(&mut self.steps);
        let (state, known) = match self.solve(&steps, count, end, sink) {
            Some(after) => after,
            None => self.solve_without_end(&steps, count, end.is_some(), sink),
        };
        self.state = state;
        self.image.replace_initial(known);
        self.steps = steps;
        self.steps.drain(..count);
    }

    fn solve_without_end(
        &mut self,
        steps: &[Step],
        count: usize,
        had_end: bool,
        sink: &mut impl Sink,
    ) -> (State, Vec<(u64, Byte)>) {
        if had_end && let Some(after) = self.solve(steps, count, None, sink) {
            self.summary.end_contradicts = true;
            return after;
        }
        // The path itself contradicts the image or the state at the start: nothing can be stated.
        self.summary.contradictions += 1;
        let unknown = Bits::unknown(width(self.processor.profile));
        let nothing = State {
            registers: [unknown; REGISTERS],
            it_block: ItBlock::default(),
            maybe_in_it_block: 4,
            it_blocks: BTreeMap::new(),
        };
        let mut prover = Prover::new(&self.image, self.processor, &nothing);
        for step in &steps[..count] {
            prover.step(step);
        }
        let mut proven = Proven::default();
        for (index, step) in steps[..count].iter().enumerate() {
            fill(&prover, index, &mut proven);
            proven.executed = None;
            proven.writes.iter_mut().for_each(|(_, value)| *value = None);
            for access in &mut proven.accesses {
                (access.address, access.value) = (None, None);
            }
            self.summary.writes += proven.writes.len() as u64;
            sink.step(step, &proven);
        }
        (State { it_block: prover.state().it_block, maybe_in_it_block: 0, ..nothing }, Vec::new())
    }

    /// Solves a window; `None` if it has a contradiction.
    fn solve(
        &mut self,
        steps: &[Step],
        count: usize,
        end: Option<&End>,
        sink: &mut impl Sink,
    ) -> Option<(State, Vec<(u64, Byte)>)> {
        let mut prover = Prover::new(&self.image, self.processor, &self.state);
        let mut marks = Vec::new();
        for step in &steps[..count] {
            if self.notes_registers {
                marks.push(prover.mark());
            }
            prover.step(step);
        }
        let (at_boundary, accesses) = (prover.mark(), prover.memory.len());
        for step in &steps[count..] {
            prover.step(step);
        }
        if let Some(end) = end {
            prover.end_with(&end.registers);
        }
        let byte = end.map(|end| move |address| end.byte(address));
        prover.solve(byte.as_ref().map(|byte| byte as &dyn Fn(u64) -> Option<u8>));
        if prover.terms.has_conflict {
            return None;
        }
        let mut proven = Proven::default();
        for (index, step) in steps[..count].iter().enumerate() {
            fill(&prover, index, &mut proven);
            let before = marks.get(index).map(|mark| prover.state_at(mark).registers.map(Bits::value));
            proven.before = before.map(Box::new);
            self.summary.writes += proven.writes.len() as u64;
            self.summary.known_writes +=
                proven.writes.iter().filter(|(_, value)| value.is_some()).count() as u64;
            sink.step(step, &proven);
        }
        let state = prover.state_at(&at_boundary);
        if count == steps.len() {
            return Some((state, Vec::new()));
        }
        prover.memory.walk_to(accesses, &mut prover.terms, &self.image);
        let mut known = prover.memory.known_bytes(&prover.terms, &self.image);
        known.extend(
            self.image
                .initial()
                .filter(|&(address, byte)| prover.memory.is_as_at_start(address, byte, &prover.terms)),
        );
        known.sort_unstable_by_key(|(address, _)| *address);
        Some((state, known))
    }
}

fn width(profile: Profile) -> Width {
    if profile == Profile::A64 { Width::Double } else { Width::Word }
}

/// What is proven of a step.
fn fill(prover: &Prover<'_>, index: usize, proven: &mut Proven) {
    let done = &prover.done[index];
    proven.writes.clear();
    proven.accesses.clear();
    proven.may_store = false;
    let held = prover.terms.value(done.executed).map(|executed| executed == 1);
    proven.executed = if done.is_own_condition { Some(true) } else { held };
    if held == Some(false) {
        return;
    }
    let (from, to) = done.writes;
    for &(register, term) in &prover.writes[from as usize..to as usize] {
        let value = prover.terms.value(term).filter(|_| held == Some(true));
        match proven.writes.iter_mut().find(|(other, _)| *other == register) {
            // The last write counts.
            Some((_, before)) => *before = value,
            None => proven.writes.push((register, value)),
        }
    }
    let (from, to) = done.accesses;
    for access in &prover.accesses[from as usize..to as usize] {
        if access.kind == Kind::Anything {
            proven.may_store = true;
            continue;
        }
        let is_certain = held == Some(true);
        let value = prover.terms.bits(access.value).field(0, 8 * u32::from(access.bytes)).value();
        proven.accesses.push(ProvenAccess {
            is_store: access.kind != Kind::Load,
            address: prover.terms.value(access.address).filter(|_| is_certain),
            bytes: access.bytes,
            value: value.filter(|_| is_certain && access.kind != Kind::StoreOrNot),
        });
    }
}
