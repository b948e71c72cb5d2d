//! One source's recording, and the debugger's place in it.

mod accesses;
mod contexts;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use tracewalk::flow::{Block, Element, Ending, Event, EventKind, Gap, GapReason};
use tracewalk::ids::{Address, Isa, Location};
use tracewalk_analysis::call_stack::{Arrival, CallStack, CallStacks, Task};
use tracewalk_analysis::drive::{Cursor, FlowIndex, Here, steps};
use tracewalk_analysis::values::Near;
use tracewalk_analysis::{Code, Position};

use crate::machine::{Level, Machine, levels};
use crate::registers::Place;
use crate::stacks::{Kept, NEAR};
use crate::unwind::{Mark, Unwinder};
use crate::walk::{self, Direction, Search};

pub(crate) use accesses::Access;
pub(crate) use contexts::Who;

/// A source's recording, and the debugger's place in it.
pub(crate) struct Core<'i> {
    /// The source's name.
    pub(crate) name: String,
    pub(crate) code: Arc<Code>,
    pub(crate) unwinder: &'i Unwinder,
    index: &'i FlowIndex<'i>,
    kept: &'i Kept,
    pub(crate) cursor: Cursor<'i>,
    /// Whether the place is after the last step, at the handler of the exception that the recording ends with.
    is_after: bool,
    /// The handler of the exception that the recording ends with.
    handler: Option<Location>,
    /// Follows calls up to the place.
    follower: Cursor<'i>,
    calls: CallStack<Mark>,
    /// Call stacks close to the place.
    near: CallStacks<Mark>,
    /// The calls of the steps before this one have been followed.
    followed: u64,
    /// The addresses of the program's variables.
    variables: Vec<Range<u64>>,
    /// The state that a debugger saved of the halted processor.
    halted: Halted,
    /// What the path proves of registers and memory.
    values: Near<'i>,
    /// The distance to add to the addresses of artificial frames; 0 unless the real stack pointer is known.
    moved: u64,
    /// The place at which a search ended with [`Search::Entered`].
    entered: Option<u64>,
    state: Option<State>,
    /// The known states of waiting contexts, each with the step at which the context ran last.
    waiting: BTreeMap<usize, (u64, State)>,
}

/// The known state at a place.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The number of the step.
    pub(crate) step: u64,
    /// The frames, outermost first.
    pub(crate) levels: Vec<Level>,
    pub(crate) task: Task,
    pub(crate) machine: Machine,
    /// Whether registers and memory are the processor's own.
    pub(crate) is_halted: bool,
    /// Whether the stack is where the processor's is.
    pub(crate) has_real_stack: bool,
}

/// Registers and memory of the halted processor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Halted {
    pub(crate) registers: BTreeMap<u16, u64>,
    pub(crate) memory: BTreeMap<u64, Vec<u8>>,
}

impl<'i> Core<'i> {
    /// A recording, at its first place; `None` if nothing executes in it.
    pub(crate) fn new(
        name: String,
        code: Arc<Code>,
        (index, kept, unwinder): (&'i FlowIndex<'i>, &'i Kept, &'i Unwinder),
        variables: Vec<Range<u64>>,
        (halted, values): (Halted, Near<'i>),
    ) -> Option<Self> {
        let mut core = Self {
            name,
            calls: CallStack::new(Arc::clone(&code)),
            code,
            unwinder,
            index,
            kept,
            cursor: index.cursor(),
            is_after: false,
            handler: None,
            follower: index.cursor(),
            near: CallStacks::new(NEAR),
            followed: 0,
            variables,
            halted,
            values,
            moved: 0,
            entered: None,
            state: None,
            waiting: BTreeMap::new(),
        };
        core.handler = core.last_handler();
        if !core.go_to_end(Direction::Forward) {
            return None;
        }
        core.moved = core.real_distance();
        core.state = None;
        core.go_to_end(Direction::Backward);
        Some(core)
    }

    /// The number of steps.
    pub(crate) fn steps(&self) -> u64 {
        self.index.totals().steps + u64::from(self.handler.is_some())
    }

    /// The index of the recording.
    pub(crate) const fn index(&self) -> &'i FlowIndex<'i> {
        self.index
    }

    /// The handler of the exception that the recording ends with.
    fn last_handler(&mut self) -> Option<Location> {
        let last = self.index.totals().steps.checked_sub(1)?;
        let here = self.cursor.seek_step(last).then(|| self.cursor.current()).flatten()?;
        match here.element {
            Element::Event(Event { kind: EventKind::Exception { handler, .. }, .. }) => *handler,
            _ => None,
        }
    }

    /// The distance of the artificial stack from the real one, which is known if the processor was halted.
    fn real_distance(&mut self) -> u64 {
        let pointer = self.unwinder.architecture.stack_pointer();
        let Some(real) = self.halted.registers.get(&pointer).copied() else { return 0 };
        if !self.is_halted_here() {
            return 0;
        }
        let made = self.made_state().and_then(|state| state.machine.registers.get(&pointer).copied());
        made.map_or(0, |made| real.wrapping_sub(made))
    }

    /// The number of the step at the place.
    pub(crate) fn step_number(&self) -> u64 {
        let here = self.cursor.current();
        if self.is_after { self.index.totals().steps } else { here.map_or(0, |here| here.step) }
    }

    /// The location of the place.
    pub(crate) fn location(&self) -> Option<Location> {
        if self.is_after {
            return self.handler;
        }
        self.cursor.current().and_then(|here| walk::location(&here, &self.code))
    }

    /// The program as it is seen at the place.
    pub(crate) fn seen(&self) -> &Code {
        self.cursor.current().map_or(&*self.code, |here| walk::seen(&self.code, &here))
    }

    /// The cursor's element; at the handler that the recording ends with, the element before.
    pub(crate) fn here(&self) -> Option<Here<'_>> {
        self.cursor.current()
    }

    /// Goes to the next place, or the one before. Returns whether there is one.
    pub(crate) fn step(&mut self, direction: Direction) -> bool {
        match direction {
            Direction::Forward if self.is_after => false,
            Direction::Forward => {
                let moved = walk::step(&mut self.cursor, &self.code, direction);
                self.is_after = !moved && self.handler.is_some();
                moved || self.is_after
            }
            Direction::Backward if self.is_after => {
                self.is_after = false;
                true
            }
            Direction::Backward => walk::step(&mut self.cursor, &self.code, direction),
        }
    }

    /// Goes on to the next place at one of these addresses, or back to the last one before.
    pub(crate) fn search(&mut self, addresses: &BTreeSet<Address>, direction: Direction) -> Search {
        let is_there = |at: Option<Location>| at.is_some_and(|at| addresses.contains(&at.address));
        let place = self.step_number();
        // A search stopped here before, and now leaves.
        let leaves = self.entered.take() == Some(place);
        if self.is_after {
            if direction == Direction::Forward {
                return Search::End;
            }
            let handler = self.handler.map(|at| at.address);
            if !leaves && handler.is_some_and(|at| walk::is_within(self.seen(), at, addresses)) {
                self.entered = Some(place);
                return Search::Entered;
            }
            self.is_after = false;
            if is_there(self.location()) {
                return Search::Found;
            }
        }
        match walk::search(&mut self.cursor, &self.code, addresses, direction, leaves) {
            Search::Entered => {
                self.entered = Some(self.step_number());
                Search::Entered
            }
            Search::End if direction == Direction::Forward && self.handler.is_some() => {
                self.is_after = true;
                if is_there(self.handler) { Search::Found } else { Search::End }
            }
            search => search,
        }
    }

    /// Goes to the first or last place. Returns whether there is one.
    pub(crate) fn go_to_end(&mut self, direction: Direction) -> bool {
        self.is_after = false;
        let found = walk::go_to_end(&mut self.cursor, &self.code, direction, self.index.totals().steps);
        self.is_after = direction == Direction::Forward && self.handler.is_some();
        found || self.is_after
    }

    /// Goes to the place of a step, or the next one. Returns whether there is one.
    pub(crate) fn seek_step(&mut self, step: u64) -> bool {
        if step == self.index.totals().steps && self.handler.is_some() {
            return self.go_to_end(Direction::Forward);
        }
        let found = walk::seek_step(&mut self.cursor, &self.code, step);
        self.is_after &= !found;
        found
    }

    /// Goes to a position. Returns whether there is one.
    pub(crate) fn seek(&mut self, position: Position) -> bool {
        let found = walk::seek(&mut self.cursor, &self.code, position);
        self.is_after &= !found;
        found
    }

    /// Goes to the first place of the handler of the exception with this number, from 0.
    pub(crate) fn seek_exception(&mut self, number: u64) -> bool {
        let mark = self.step_number();
        if !self.cursor.seek_exception(number) {
            return false;
        }
        self.is_after = false;
        let is_last = self.cursor.current().is_some_and(|here| here.step + 1 == self.index.totals().steps);
        if is_last && self.handler.is_some() {
            return self.go_to_end(Direction::Forward);
        }
        // The exception itself is a place if it interrupted code that no image holds.
        self.cursor.step();
        if walk::settle(&mut self.cursor, &self.code, Direction::Forward) {
            return true;
        }
        self.seek_step(mark);
        false
    }

    /// The known state at the place.
    pub(crate) fn state(&mut self) -> Option<&State> {
        let step = self.step_number();
        if self.state.as_ref().is_none_or(|state| state.step != step) {
            let mut state = self.made_state()?;
            if self.is_halted_here() {
                state.machine = Machine { registers: self.halted.registers.clone(), ..Machine::default() };
                state.machine.registers.extend(self.place_registers(step));
                state.is_halted = true;
            } else {
                state = self.with_proven(state)?;
            }
            self.state = Some(state);
        }
        self.state.as_ref()
    }

    /// The state with the registers that are proven. If the stack pointer is, this state's artificial stack is where the real one is: other
    /// states may be of other tasks.
    fn with_proven(&mut self, mut state: State) -> Option<State> {
        // GDB numbers them alike.
        let proven = (0_u16..).zip(self.values.registers(state.step));
        let proven = proven.filter_map(|(number, value)| Some((number, value?))).collect::<BTreeMap<_, _>>();
        let pointer = self.unwinder.architecture.stack_pointer();
        if let (Some(real), Some(made)) = (proven.get(&pointer), state.machine.registers.get(&pointer)) {
            let usual = self.moved;
            self.moved = usual.wrapping_add(real.wrapping_sub(*made));
            let moved = self.made_state();
            self.moved = usual;
            state = State { has_real_stack: true, ..moved? };
        }
        state.machine.registers.extend(proven);
        Some(state)
    }

    /// Whether no address of the artificial stack at the place can be one of the program's memory.
    pub(crate) fn has_apart_stack(&mut self) -> bool {
        self.moved == 0 || self.state().is_some_and(|state| state.has_real_stack)
    }

    /// Whether the processor was halted at this place, and its registers are known.
    fn is_halted_here(&self) -> bool {
        let counter = self.unwinder.architecture.program_counter();
        let (Some(at), Some(halted)) = (self.location(), self.halted.registers.get(&counter)) else {
            return false;
        };
        let is_last = self.is_after
            || (self.handler.is_none()
                && self.cursor.current().is_some_and(|here| here.step + 1 == self.index.totals().steps));
        is_last && at.address.get() == *halted & !1
    }

    /// A byte of the memory of the halted processor, if it is halted here.
    pub(crate) fn halted_byte(&mut self, at: u64) -> Option<u8> {
        if !self.state()?.is_halted {
            return None;
        }
        let (start, bytes) = self.halted.memory.range(..=at).next_back()?;
        bytes.get(usize::try_from(at - start).ok()?).copied()
    }

    /// The state that flow and the program give.
    fn made_state(&mut self) -> Option<State> {
        let location = self.location()?;
        let (step, end) = (self.step_number(), self.index.totals().steps);
        let (until, last) = match self.is_after {
            true => (end, instruction(location, 1, &self.code)),
            false => {
                let here = self.cursor.current()?;
                (here.before.steps, beginning(&here, location, self.seen()))
            }
        };
        self.follow(until)?;
        let before = self.calls.checkpoint();
        self.calls.element(&last, &mut self.unwinder.placing(until));
        let levels = levels(self.calls.frames(), location.address, self.moved).collect::<Vec<_>>();
        let task = self.calls.task();
        self.calls.go_on_from(&before);
        let mut machine = Machine::of(self.unwinder, &levels, location);
        machine.registers.extend(self.place_registers(step));
        Some(State { step, levels, task, machine, is_halted: false, has_real_stack: false })
    }

    /// The registers that give the place.
    fn place_registers(&self, step: u64) -> impl Iterator<Item = (u16, u64)> {
        let totals = self.index.totals();
        let before = match self.is_after {
            true => Some(totals),
            false => self.cursor.current().map(|here| here.before),
        };
        let time = before.map(|before| before.time).filter(|_| totals.time > 0);
        let exceptions = before.map(|before| before.exceptions);
        let architecture = self.unwinder.architecture;
        let places = [(Place::Step, Some(step)), (Place::Time, time), (Place::Exception, exceptions)];
        places.into_iter().filter_map(move |(place, value)| Some((architecture.place(place), value?)))
    }

    /// Calls `each` for the functions that the frame of this depth called between two steps, with the step at which
    /// each began, and its first instruction.
    pub(crate) fn each_call(&mut self, from: u64, to: u64, depth: usize, each: &mut dyn FnMut(u64, Address)) {
        let Some((start, checkpoint)) = self.kept.stacks.before(from) else { return };
        let mut calls = CallStack::new(Arc::clone(&self.code));
        calls.go_on_from(checkpoint);
        let mut cursor = self.index.cursor();
        let mut is_there = cursor.seek_step(*start);
        while is_there && let Some(here) = cursor.current().filter(|here| here.before.steps < to) {
            let at = here.before.steps;
            let arrival = calls.element(here.element, &mut self.unwinder.placing(at));
            if let (Some(Arrival::Call), Element::Block(block)) = (arrival, here.element)
                && at >= from
                && calls.depth() == depth
            {
                each(at, block.start);
            }
            is_there = cursor.next_element();
        }
    }

    /// Follows calls up to a step, which is the first one of its element, or after the last one of all.
    fn follow(&mut self, until: u64) -> Option<()> {
        let near = self.near.before(until);
        let whole = self.kept.stacks.before(until)?;
        let (start, checkpoint) = near.filter(|(step, _)| *step >= whole.0).unwrap_or(whole);
        if self.followed > until || self.followed < *start {
            self.calls.go_on_from(checkpoint);
            if !self.follower.seek_step(*start) {
                return None;
            }
            self.followed = *start;
            if near.is_none_or(|(step, _)| *step < whole.0) {
                self.near.clear();
            }
        }
        while self.followed < until {
            let here = self.follower.current()?;
            self.near.keep(self.followed, &self.calls);
            self.calls.element(here.element, &mut self.unwinder.placing(self.followed));
            self.followed += steps(here.element);
            // After the last element the follower stays there, and goes back for the next request.
            self.follower.next_element();
        }
        Some(())
    }
}

/// The beginning of an element, up to the instruction at `location`, which has not been executed.
fn beginning(here: &Here<'_>, location: Location, code: &Code) -> Element {
    match here.element {
        Element::Block(block) => {
            let within = here.step - here.before.steps;
            let instructions = u32::try_from(within + 1).unwrap_or(u32::MAX);
            let end = code.after(location);
            Element::Block(Block {
                end,
                instructions,
                last: location.address,
                ending: Ending::Interrupted,
                ..*block
            })
        }
        Element::Event(event) => no_code(location, event.span),
        Element::Gap(_) | Element::Proof(_) => *here.element,
    }
}

fn no_code(location: Location, span: tracewalk::span::Span) -> Element {
    Element::Gap(Gap { reason: GapReason::NoCode(location), span, doubt: false })
}

/// Instructions that are about to be executed.
fn instruction(location: Location, instructions: u32, code: &Code) -> Element {
    let span = tracewalk::span::Span::default();
    if !code.program.holds(location.address) {
        return no_code(location, span);
    }
    let (start, isa): (_, Isa) = (location.address, location.isa);
    let end = code.after(location);
    Element::Block(Block { start, end, isa, instructions, last: start, ending: Ending::Interrupted, span })
}
