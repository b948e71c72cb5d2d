//! Walks a stretch of the path, names all values, and works out what is known of them.

mod exceptions;
mod flags;
mod machine;
pub(crate) mod stacks;

use crate::bits::{Bits, Width};
use crate::image::Image;
use crate::machine::{Condition, Machine, Register};
use crate::memory::{Access, Kind, Memory};
use crate::path::{Instruction, ItBlock, Step};
use crate::profile::{Processor, Profile};
use crate::relation::Operation;
use crate::terms::{Term, Terms};
use crate::{a32, a64, t32};
use exceptions::Frame;
use flags::FlagState;
use std::collections::BTreeMap;
use tracewalk::ids::{Address, Isa};

/// The number of registers. A32 and T32 use the first 15; M profile has [its stacks](stacks) after them.
pub(crate) const REGISTERS: usize = 32;

/// The program's state between two steps, as far as it is known.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) registers: [Bits; REGISTERS],
    pub(crate) it_block: ItBlock,
    /// An IT block before the path may still make instructions conditional.
    pub(crate) maybe_in_it_block: u8,
    /// The IT blocks, or their absence, at places where exceptions were taken. No jump goes into a block (DDI 0406C, A8.8.55).
    pub(crate) it_blocks: BTreeMap<Address, ItBlock>,
}

/// The registers at a step, by name.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    registers: [Term; REGISTERS],
    it_block: ItBlock,
    maybe_in_it_block: u8,
}

/// What an instruction did, by name.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    /// Whether it was executed: a constant, or a bit whose value may become known.
    pub(crate) executed: Term,
    /// A branch whose condition is its own was executed even if it was not taken.
    pub(crate) is_own_condition: bool,
    pub(crate) writes: (u32, u32),
    pub(crate) accesses: (u32, u32),
}

/// A stretch of the path in the making.
#[derive(Debug)]
pub(crate) struct Prover<'a> {
    pub(crate) image: &'a Image,
    pub(crate) processor: Processor,
    pub(crate) terms: Terms,
    pub(crate) memory: Memory,
    registers: [Term; REGISTERS],
    flags: FlagState,
    it_block: ItBlock,
    maybe_in_it_block: u8,
    it_blocks: BTreeMap<Address, ItBlock>,
    /// Whether an exception returned to code outside of IT blocks: a bit that may become known.
    is_outside_it_block: Option<Term>,
    /// The condition of the instruction in the making, if it is not known to hold.
    guard: Option<Term>,
    /// The instruction in the making.
    now: Option<Instruction>,
    /// Frames on the stack that an exception made.
    frames: Vec<Frame>,
    /// The load in the making is of a constant that is part of the code.
    is_literal: bool,
    /// The target of the last instruction, if it jumped.
    last_target: Option<Term>,
    /// How often all may still be worked out before the end of the path.
    solves_left: u8,
    /// What each step of the path did.
    pub(crate) done: Vec<Done>,
    pub(crate) writes: Vec<(Register, Term)>,
    pub(crate) accesses: Vec<Access>,
}

/// The term of what is certain.
const TRUE: Term = Term::constant(1, Width::Word);
const FALSE: Term = Term::constant(0, Width::Word);

impl<'a> Prover<'a> {
    /// A stretch that begins in a state.
    pub(crate) fn new(image: &'a Image, processor: Processor, state: &State) -> Self {
        let mut terms = Terms::new();
        let width = if processor.profile == Profile::A64 { Width::Double } else { Width::Word };
        let registers = state.registers.map(|bits| terms.known(bits, width));
        let mut prover = Self {
            image,
            processor,
            terms,
            memory: Memory::new(),
            registers,
            flags: FlagState::default(),
            it_block: state.it_block,
            maybe_in_it_block: state.maybe_in_it_block,
            it_blocks: state.it_blocks.clone(),
            is_outside_it_block: None,
            guard: None,
            now: None,
            frames: Vec::new(),
            is_literal: false,
            last_target: None,
            solves_left: MOST_SOLVES,
            done: Vec::new(),
            writes: Vec::new(),
            accesses: Vec::new(),
        };
        prover.note_stack_pointer();
        prover
    }

    /// The registers now, to ask for their values later.
    pub(crate) const fn mark(&self) -> Mark {
        Mark { registers: self.registers, it_block: self.it_block, maybe_in_it_block: self.maybe_in_it_block }
    }

    /// The state at a mark, as far as it is known.
    pub(crate) fn state_at(&self, mark: &Mark) -> State {
        State {
            registers: mark.registers.map(|term| self.terms.bits(term)),
            it_block: mark.it_block,
            maybe_in_it_block: mark.maybe_in_it_block,
            it_blocks: self.it_blocks.clone(),
        }
    }

    /// The state now, as far as it is known.
    pub(crate) fn state(&self) -> State {
        self.state_at(&self.mark())
    }

    /// States the registers at the end.
    pub(crate) fn end_with(&mut self, registers: &[Option<u64>; REGISTERS]) {
        for (term, value) in self.registers.into_iter().zip(registers) {
            if let Some(value) = value {
                self.terms.learn(term, Bits::constant(*value));
            }
        }
    }

    /// Appends a step.
    pub(crate) fn step(&mut self, step: &Step) {
        let (writes, accesses) = (self.writes.len(), self.accesses.len());
        let mut executed = TRUE;
        let mut is_own_condition = false;
        match step {
            Step::Instruction(instruction) => {
                self.now = Some(*instruction);
                self.last_target = None;
                (executed, is_own_condition) = self.instruction(instruction);
                self.now = None;
            }
            Step::Exception { returns_to, is_tail_chained } => {
                self.enter_exception(*returns_to, *is_tail_chained);
            }
            Step::ExceptionReturn { next } => {
                self.return_from_exception(*next);
            }
            Step::Gap => self.forget_everything(),
        }
        self.terms.settle();
        let range = |from: usize, to: usize| {
            (u32::try_from(from).expect("a stretch is short"), u32::try_from(to).expect("a stretch is short"))
        };
        self.done.push(Done {
            executed,
            is_own_condition,
            writes: range(writes, self.writes.len()),
            accesses: range(accesses, self.accesses.len()),
        });
    }

    /// Whether the instruction was executed, and whether only its own condition decided that.
    fn instruction(&mut self, instruction: &Instruction) -> (Term, bool) {
        let code = instruction.code;
        if (instruction.at.isa == Isa::A64) != (self.processor.profile == Profile::A64) {
            self.forget_everything();
            return (TRUE, false);
        }
        match instruction.at.isa {
            Isa::T32 | Isa::T32EE => {
                let condition = self.it_block.condition();
                if condition.is_none()
                    && instruction.bytes == 2
                    && let Some(block) = ItBlock::begun_by(code)
                {
                    self.it_block = block;
                    return (TRUE, false);
                }
                self.it_block = self.it_block.advanced();
                let address = instruction.at.address.low_word();
                let thumb = t32::Thumb::of(code, instruction.bytes, address, condition.is_some());
                if self.maybe_in_it_block > 0 {
                    self.maybe_in_it_block -= 1;
                    return (self.in_unknown_block(instruction, thumb), false);
                }
                let condition = condition.map_or(Condition::ALWAYS, Condition);
                let is_direct = thumb.is_direct_branch();
                let executed =
                    self.conditionally(condition, instruction.executed, |prover| thumb.execute(prover));
                (executed, is_direct)
            }
            Isa::A32 => {
                let a32 = a32::Arm { code, address: instruction.at.address.low_word() };
                let condition = a32.condition();
                let executed =
                    self.conditionally(condition, instruction.executed, |prover| a32.execute(prover));
                (executed, a32.is_direct_branch())
            }
            Isa::A64 => {
                a64::execute(self, code, instruction.at.address.get());
                (TRUE, false)
            }
            Isa::Jazelle => {
                self.forget_everything();
                (TRUE, false)
            }
        }
    }

    /// Executes under a condition. Whether it held.
    fn conditionally(
        &mut self,
        condition: Condition,
        stated: Option<bool>,
        execute: impl FnOnce(&mut Self),
    ) -> Term {
        if condition.0 >= Condition::ALWAYS.0 {
            execute(self);
            return TRUE;
        }
        let holds = self.holds(condition);
        if let Some(stated) = stated {
            self.terms.learn(holds, Bits::constant(stated.into()));
            if stated {
                execute(self);
            }
            return if stated { TRUE } else { FALSE };
        }
        match self.terms.value(holds) {
            Some(0) => FALSE,
            Some(_) => {
                execute(self);
                TRUE
            }
            None => {
                self.guard = Some(holds);
                execute(self);
                self.guard = None;
                holds
            }
        }
    }

    /// An instruction that may be one of an IT block that began before the path.
    fn in_unknown_block(&mut self, instruction: &Instruction, thumb: t32::Thumb) -> Term {
        if instruction.executed == Some(false) {
            return self.unknown_bit();
        }
        let mut may_be = self.unknown_bit();
        if let Some(is_outside) = self.is_outside_it_block {
            may_be = self.binary(Operation::Or, Width::Word, may_be, is_outside);
        }
        self.flags = FlagState::default();
        self.guard = Some(may_be);
        let now = self.now.take();
        thumb.execute(self);
        (self.now, self.guard) = (now, None);
        self.flags = FlagState::default();
        may_be
    }

    /// An unknown bit.
    fn unknown_bit(&mut self) -> Term {
        self.terms.known(Bits::of_low(1), Width::Word)
    }

    fn width(&self) -> Width {
        if self.processor.profile == Profile::A64 { Width::Double } else { Width::Word }
    }

    /// The stack pointer's number.
    pub(crate) fn stack_pointer(&self) -> usize {
        if self.processor.profile == Profile::A64 { 31 } else { 13 }
    }

    fn note_stack_pointer(&mut self) {
        let pointer = self.registers[self.stack_pointer()];
        self.terms.is_stack_pointer(pointer);
    }

    fn forget_registers(&mut self) {
        let width = self.width();
        self.registers = core::array::from_fn(|_| self.terms.unknown(width));
        self.note_stack_pointer();
        self.flags = FlagState::default();
    }

    fn forget_memory(&mut self) {
        let address = FALSE;
        let access = Access {
            address,
            value: address,
            bytes: 0,
            kind: Kind::Anything,
            guard: None,
            is_of_stack: false,
            is_literal: false,
        };
        self.accesses.push(access);
        self.memory.push(access, &mut self.terms, self.image);
    }

    fn forget_everything(&mut self) {
        self.forget_registers();
        self.forget_memory();
        self.it_block = ItBlock::default();
        self.frames.clear();
    }

    /// Whether an address is the stack pointer plus or minus something.
    fn is_of_stack(&self, address: Term) -> bool {
        let pointer = self.terms.place(self.registers[self.stack_pointer()]);
        let place = self.terms.place(address);
        place.root != crate::terms::ZERO && (place.root == pointer.root || self.terms.is_stack(place.root))
    }

    /// Works out everything that follows, with memory at the end if it is known.
    pub(crate) fn solve(&mut self, end: Option<&dyn Fn(u64) -> Option<u8>>) -> u32 {
        let mut rounds = 0;
        loop {
            self.terms.settle();
            if self.terms.has_conflict || rounds > 0 && !self.terms.concerns_memory || rounds >= MOST_ROUNDS {
                return rounds;
            }
            rounds += 1;
            self.terms.concerns_memory = false;
            self.memory.walk(&mut self.terms, self.image);
            if let Some(byte) = end {
                self.memory.end(&mut self.terms, self.image, byte);
            }
        }
    }
}

/// The most solutions of parts of a path.
const MOST_SOLVES: u8 = 16;

/// The most walks of memory; each one only adds what is known.
const MOST_ROUNDS: u32 = 60;
