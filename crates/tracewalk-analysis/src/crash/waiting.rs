//! A loop at the end of a trace that waits: what decides whether it goes on, and what wrote that last.
//!
//! ```text
//! the instructions at the end, without those of handlers that returned → the shortest body that repeats
//! each conditional branch and computed jump of the body → the registers, flags and memory at the body's start that decide it
//! a register that the body changes → what it is made of; if that is itself, the loop counts, and does not wait
//! memory that decides → no store since the loop began, by the loop or by a handler, went there
//! ```
//!
//! Devices change by themselves, so that a loop over them is reported, but is no cause.

mod iteration;

use tracewalk::ids::{Address, Isa};
use tracewalk::isa::{self, Class};

use super::evidence::{Cause, CauseKind, Evidence, Role};
use super::look::instruction;
use super::path::Step;
use super::proven::Values;
use super::trail::{self, Happened};
use crate::Code;
use crate::values::Image;
use iteration::Iteration;

/// The fewest iterations of a loop that waits, and of one that is all that the trace has.
const TIMES: usize = 64;
const TIMES_ALONE: usize = 16;
/// The most instructions of a body, and of all iterations.
const LONGEST_BODY: usize = 1 << 11;
const MOST: usize = 1 << 18;

/// A loop that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The branch that decides whether it goes on.
    pub at: Address,
    /// The first and the last instruction, by address.
    pub bounds: (Address, Address),
    /// The least number of times that it ran.
    pub times: u64,
    /// The memory that decides whether it goes on.
    pub on: Vec<Waited>,
}

/// Memory that a loop waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// The address.
    pub address: Address,
    /// The number of bytes.
    pub bytes: u8,
    /// What was loaded from there, if that is proven.
    pub value: Option<u32>,
    /// Whether it is no memory, but a device's register, which can change by itself.
    pub is_device: bool,
    /// The instruction that stored there last, if that is proven.
    pub stored_by: Option<Address>,
}

/// The place of an instruction: its piece, its number there, and its address.
#[derive(Clone, Copy, Debug)]
struct Place {
    piece: usize,
    number: usize,
    at: Address,
}

/// The loop at the end of some pieces.
pub(super) struct EndLoop {
    /// The places of the last two iterations, oldest first.
    newest: Vec<Place>,
    /// The number of instructions of an iteration.
    period: usize,
    /// The first instruction of the first iteration.
    first: Place,
    times: usize,
}

impl EndLoop {
    /// The loop that the pieces end in, if it ran often, or that a handler interrupted which has run for a short time since.
    pub(super) fn of(pieces: &[&Happened], code: &Code) -> Option<Self> {
        /// The most pieces of the handler.
        const SHORT: usize = 64;
        Self::at_end(pieces, code).or_else(|| {
            let start = pieces.len().saturating_sub(SHORT);
            let mut newest = pieces.get(start..)?.iter();
            let taken = newest.rposition(|piece| matches!(piece, Happened::Taken(_)))?;
            Self::at_end(pieces.get(..start + taken)?, code)
        })
    }

    fn at_end(pieces: &[&Happened], code: &Code) -> Option<Self> {
        let (places, is_whole) = newest(pieces, code);
        let last = places.first()?.at;
        let periods = (1..places.len().min(LONGEST_BODY)).filter(|period| places[*period].at == last);
        let mut loops = periods.filter_map(|period| {
            let repeats =
                places.iter().zip(places.get(period..)?).take_while(|(one, other)| one.at == other.at);
            let length = repeats.count() + period;
            let times = length / period;
            let is_all = length + period > places.len() && is_whole;
            (times >= TIMES || is_all && times >= TIMES_ALONE).then(|| {
                let newest = places.iter().take(2 * period).rev().copied().collect();
                Some(Self { newest, period, first: *places.get(times * period - 1)?, times })
            })?
        });
        loops.next()
    }

    /// The first and the last instruction, by address.
    fn bounds(&self) -> Option<(Address, Address)> {
        let places = self.newest.iter().map(|place| place.at);
        Some((places.clone().min()?, places.max()?))
    }

    /// What the loop waits for; `None` if it does something, counts, or goes on in any case.
    pub(super) fn waiting(
        &self,
        pieces: &[&Happened],
        code: &Code,
        values: &Values,
        image: &Image,
    ) -> Option<Waiting> {
        /// The most instructions that are read.
        const MOST: usize = 1 << 16;
        // An iteration that begins in the middle of a function would depend on what the one before saved on the stack.
        let starts = (0..self.period).rev().take(MOST / self.period + 1);
        let bodies = starts.filter_map(|start| self.newest.get(start..start + self.period));
        bodies.filter_map(|body| self.waiting_by(body, (pieces, code), values, image)).next()
    }

    /// The same by an iteration that begins at any of its instructions.
    fn waiting_by(
        &self,
        body: &[Place],
        (pieces, code): (&[&Happened], &Code),
        values: &Values,
        image: &Image,
    ) -> Option<Waiting> {
        let mut iteration = Iteration::new(image);
        let mut conditional = 0;
        // The body may begin in an IT block.
        let begins = body.iter().map(|place| (place, false));
        for (place, is_in_iteration) in begins.chain(body.iter().map(|place| (place, true))) {
            let bytes = code.program.code(place.at)?;
            let classified = isa::classify(bytes, place.at, Isa::T32).ok()?;
            // An idle loop waits for an interrupt, whichever comes.
            if classified.class == Class::Wait || classified.raises.is_some() {
                return None;
            }
            if is_in_iteration {
                let step = Step::read(place.at, code, conditional > 0, &[None; 16])?;
                let (_, proven) = values.instruction(place.piece, place.number)?;
                let step = Step { proven: proven.clone(), ..step };
                let branches = matches!(classified.class, Class::Direct(_) | Class::Indirect);
                iteration.step(&step, conditional > 0, branches)?;
            }
            conditional = match classified.it_block {
                0 => u8::saturating_sub(conditional, 1),
                begins => begins,
            };
        }
        // A loop that looks at something and goes on in any case does not wait for it.
        (0..body.len()).any(|index| leaves(body, index, code)).then_some(())?;
        let memory = iteration.resolved()?;
        let at = iteration.decided_at.filter(|_| !memory.is_empty())?;
        let waited = memory.into_iter().map(|(address, bytes)| {
            let value = iteration.loaded.iter().rfind(|(at, ..)| *at == (address, bytes));
            Waited {
                address: Address::new(address),
                bytes,
                value: value.and_then(|(_, value)| u32::try_from((*value)?).ok()),
                is_device: !image.is_memory(address),
                stored_by: None,
            }
        });
        let mut on = waited.collect::<Vec<_>>();
        for waited in on.iter_mut().filter(|waited| !waited.is_device) {
            self.is_unchanged(values, waited).then_some(())?;
            let (stored_by, by_handler) = self.stores(pieces, values, waited);
            // What a handler wrote may be written again.
            (!by_handler).then_some(())?;
            waited.stored_by = stored_by;
        }
        // A variable rather than the place of a pointer to it.
        on.sort_by_key(|waited| code.symbols.object(waited.address).is_none());
        let times = u64::try_from(self.times).ok()?;
        Some(Waiting { at, bounds: self.bounds()?, times, on })
    }

    /// Whether no step since the loop began stored to this memory, nor may have.
    fn is_unchanged(&self, values: &Values, waited: &Waited) -> bool {
        (self.first.piece..values.len()).all(|piece| {
            let before = if piece == self.first.piece { self.first.number } else { 0 };
            values.piece(piece).iter().skip(before).all(|(_, proven)| {
                let mut stores = proven.accesses.iter().filter(|access| access.is_store);
                !proven.may_store
                    && stores.all(|store| store.address.is_some_and(|at| !waited.overlaps(at, store.bytes)))
            })
        })
    }

    /// The instruction that stored to this memory last before the loop, if that is proven, and whether a handler that returned ever did.
    fn stores(&self, pieces: &[&Happened], values: &Values, waited: &Waited) -> (Option<Address>, bool) {
        let (mut last, mut is_known, mut by_handler) = (None, true, false);
        let mut depth = 0_usize;
        for (piece, happened) in pieces.iter().enumerate().take(self.first.piece + 1).rev() {
            match happened {
                Happened::Returned => depth += 1,
                Happened::Taken(_) => depth = depth.saturating_sub(1),
                _ => {}
            }
            let count = if piece == self.first.piece { self.first.number } else { usize::MAX };
            for (step, proven) in values.piece(piece).iter().take(count).rev() {
                is_known &= !proven.may_store;
                for store in proven.accesses.iter().rev().filter(|access| access.is_store) {
                    is_known &= store.address.is_some();
                    if store.address.is_some_and(|at| waited.overlaps(at, store.bytes)) {
                        by_handler |= depth > 0;
                        if let crate::values::Step::Instruction(instruction) = step
                            && is_known
                        {
                            last = Some(instruction.at.address);
                        }
                        is_known = false;
                    }
                }
            }
        }
        (last, by_handler)
    }
}

impl Waited {
    fn overlaps(&self, address: u64, bytes: u8) -> bool {
        let (start, end) = (self.address.get(), self.address.get() + u64::from(self.bytes));
        start < address.saturating_add(bytes.into()) && address < end
    }
}

impl Waiting {
    /// Whether it waits for something that can change by itself.
    #[must_use]
    pub fn is_on_device(&self) -> bool {
        self.on.iter().any(|waited| waited.is_device)
    }

    /// The cause of a program that goes on no more.
    pub(super) fn cause(self, pieces: &[&Happened], code: &Code) -> Option<Cause> {
        let (start, last) = self.bounds;
        let mut proof = vec![Evidence::Repeated { start, last, times: self.times }];
        let at = |at: Address| Step::ran(at, pieces, code);
        proof.push(instruction(Role::Branch, &at(self.at)?));
        for waited in &self.on {
            proof.extend(code.symbols.object(waited.address).map(super::look::symbol));
            if let Some(by) = waited.stored_by {
                proof.push(instruction(Role::Store, &at(by)?));
            }
        }
        Some(Cause { kind: CauseKind::Waiting(self), proof })
    }
}

/// The instructions at the end that ran at one level: without the handlers that returned. Newest first; and whether that is all that the trace
/// has.
fn newest(pieces: &[&Happened], code: &Code) -> (Vec<Place>, bool) {
    let mut places: Vec<Place> = Vec::new();
    let mut depth = 0_usize;
    for (piece, happened) in pieces.iter().enumerate().rev() {
        match happened {
            Happened::Ran(block) if depth == 0 => {
                let instructions = trail::instructions(block, code);
                if instructions.is_empty() || places.len() > MOST {
                    return (places, false);
                }
                let of_block = instructions.into_iter().enumerate().rev();
                places.extend(of_block.map(|(number, at)| Place { piece, number, at }));
            }
            Happened::Ran(_) => {}
            Happened::Returned => depth += 1,
            Happened::Taken(taken) if depth > 0 => {
                depth -= 1;
                // Another thread may have gone on.
                if depth == 0 && taken.returns_to != places.last().map(|place| place.at) {
                    return (places, false);
                }
            }
            Happened::Taken(_) | Happened::NoCode(_) | Happened::Lost(_) => return (places, piece == 0),
        }
    }
    (places, true)
}

/// Whether the other way of a conditional branch of a body leads out of that part of its function which the body covers.
fn leaves(body: &[Place], index: usize, code: &Code) -> bool {
    let function = |at: Address| code.symbols.function(at).map(|function| function.start);
    let other_way = || {
        let at = body.get(index)?.at;
        let next = body.get((index + 1) % body.len())?.at;
        let known = isa::classify(code.program.code(at)?, at, Isa::T32).ok()?;
        let after = at.checked_add(known.bytes.into())?;
        let target = match known.class {
            Class::Direct(target) if !known.link => target.address,
            _ => return None,
        };
        let other = if next == after { target } else { after };
        let is_conditional = known.conditional || next == after;
        let same = body.iter().map(|place| place.at).filter(|place| function(*place) == function(at));
        let (first, last) = (same.clone().min()?, same.max()?);
        Some(is_conditional && !(first..=last).contains(&other))
    };
    other_way().unwrap_or_default()
}
