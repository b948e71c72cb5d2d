//! Invented paths: a walk through any program on which every turn is a choice.
//!
//! An emulator's record shows what a program does. A wandered path goes where the program never would: every
//! condition both ways, indirect branches to anywhere, exceptions between any two instructions. It keeps to
//! the architecture, however: direct branches lead to their targets, only conditional instructions fail, and
//! returns from exceptions resume what was interrupted.
//!
//! ```
//! use tracewalk::ids::{Address, Isa, Location};
//! use tracewalk::program::Program;
//! use tracewalk_generate::record::Profile;
//! use tracewalk_generate::wander::Wander;
//!
//! let mut program = Program::new();
//! program.add(Address::new(0x100), &[0x01, 0x38, 0xfd, 0xd1, 0xfc, 0xe7])?; // 1: subs r0, #1; bne 1b; b 1b
//! let start = Location::new(Address::new(0x100), Isa::T32);
//! let wander = Wander { program: &program, profile: Profile::M, start, handlers: Vec::new(), steps: 100 };
//! let mut number = 0;
//! let path = wander.path(&mut || {
//!     number += 1;
//!     number
//! });
//! assert_eq!(path.steps.len(), 100);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use tracewalk::ids::{Address, Exception, Isa, Location};
use tracewalk::isa::{self, Class, Instruction, Raises, Return};
use tracewalk::program::Program;

use crate::path::{Executed, Path, Step, Taken};
use crate::record::Profile;

/// The program to walk through, and the limits of the walk.
#[derive(Clone, Debug)]
pub struct Wander<'a> {
    /// The code.
    pub program: &'a Program,
    /// The profile, which determines the exceptions.
    pub profile: Profile,
    /// Where the path starts.
    pub start: Location,
    /// Where each exception's handler starts.
    pub handlers: Vec<(Exception, Address)>,
    /// How many steps the path has at most.
    pub steps: usize,
}

/// ETMv4's and ETE's types for a supervisor call and an undefined instruction.
const TYPE_CALL: Exception = Exception::ArType(2);
const TYPE_TRAP: Exception = Exception::ArType(3);
/// The codes and numbers that the other protocols have for the same exceptions.
const M_SUPERVISOR_CALL: Exception = Exception::M(11);
const AR_SUPERVISOR_CALL: Exception = Exception::Ar(10);
const AR_UNDEFINED: Exception = Exception::Ar(9);

impl Wander<'_> {
    /// A path; `choose` supplies a number for each turn.
    pub fn path(&self, choose: &mut dyn FnMut() -> u32) -> Path {
        let mut walker = Walker {
            wander: self,
            choose,
            at: self.start,
            in_it_block: 0,
            active: Vec::new(),
            calls: Vec::new(),
            steps: Vec::new(),
        };
        while walker.steps.len() < self.steps && walker.step() {}
        Path { steps: walker.steps }
    }
}

struct Walker<'a> {
    wander: &'a Wander<'a>,
    choose: &'a mut dyn FnMut() -> u32,
    at: Location,
    /// How many more instructions an IT instruction makes conditional.
    in_it_block: u8,
    /// The active exceptions, and what each interrupted.
    active: Vec<(Exception, Location)>,
    /// Where calls return to, newest last.
    calls: Vec<Location>,
    steps: Vec<Step>,
}

/// The most calls that are remembered.
const MOST_CALLS: usize = 64;

impl Walker<'_> {
    /// Goes one step; false if the path cannot continue.
    fn step(&mut self) -> bool {
        let Location { address, isa } = self.at;
        let code = self.wander.program.code(address).unwrap_or_default();
        let Ok(instruction) = isa::classify(code, address, isa) else { return false };
        if !matches!(isa, Isa::A32 | Isa::T32 | Isa::A64) {
            return false;
        }
        // BLX with an immediate address is undefined in M profile (DDI 0403E, A5.3.4), which has no A32 to go to.
        let leaves_t32 = matches!(instruction.class, Class::Direct(target) if target.isa != Isa::T32);
        if self.wander.profile == Profile::M && leaves_t32 {
            return false;
        }
        let choice = (self.choose)();
        if choice.is_multiple_of(32)
            && let Some(exception) = self.interrupt(choice / 32)
        {
            self.enter(exception, Some(self.at.address), self.at);
            return true;
        }
        let conditional = instruction.conditional || self.in_it_block > 0;
        let passed = !conditional || choice & 0b10 != 0;
        self.in_it_block = self.in_it_block.saturating_sub(1).max(instruction.it_block);
        let executed = Executed { address, isa, bytes: instruction.bytes, passed };
        self.steps.push(Step::Instruction(executed));
        let next = Location::new(executed.end(), isa);
        self.at = next;
        if passed {
            self.go(&instruction, next, choice >> 2);
        }
        true
    }

    /// An exception that may come between any two instructions and is not active.
    fn interrupt(&self, choice: u32) -> Option<Exception> {
        let handlers = &self.wander.handlers;
        let &(exception, _) = handlers.get(choice as usize % handlers.len().max(1))?;
        let by_instruction =
            [M_SUPERVISOR_CALL, AR_SUPERVISOR_CALL, AR_UNDEFINED, TYPE_CALL, TYPE_TRAP].contains(&exception);
        let active = self.active.iter().any(|&(active, _)| active == exception);
        (!by_instruction && !active && self.active.len() < 8).then_some(exception)
    }

    fn enter(&mut self, exception: Exception, preferred_return: Option<Address>, interrupted: Location) {
        let handler = self.wander.handlers.iter().find(|(handled, _)| *handled == exception);
        let Some(&(_, handler)) = handler else { return };
        self.steps.push(Step::Exception(Taken { exception, preferred_return, handler }));
        self.active.push((exception, interrupted));
        self.at = Location::new(handler, self.handlers_isa());
        self.in_it_block = 0;
    }

    /// The instruction set of handlers. A64 programs have A64 handlers.
    fn handlers_isa(&self) -> Isa {
        match (self.wander.profile, self.wander.start.isa) {
            (Profile::M, _) => Isa::T32,
            (Profile::Ar, Isa::A64) => Isa::A64,
            (Profile::Ar, _) => Isa::A32,
        }
    }

    /// Applies the effect of an executed instruction.
    fn go(&mut self, instruction: &Instruction, next: Location, choice: u32) {
        if let Some(raises) = instruction.raises {
            return self.raise(raises, instruction, next);
        }
        let target = match instruction.class {
            Class::Other | Class::Barrier(_) | Class::Wait | Class::TransactionStart => return,
            Class::Direct(target) => target,
            Class::Indirect if self.returns(instruction, choice) => return,
            Class::Indirect => match self.calls.pop().filter(|_| choice & 0b11 != 0) {
                Some(called) => called,
                None => self.anywhere(),
            },
        };
        if instruction.link && self.calls.len() < MOST_CALLS {
            self.calls.push(next);
        }
        self.at = target;
        self.in_it_block = 0;
    }

    fn raise(&mut self, raises: Raises, instruction: &Instruction, next: Location) {
        let own = next.moved(-i64::from(instruction.bytes)).address;
        let is_a64 = next.isa == Isa::A64;
        let (exception, resumes) = match (raises, self.wander.profile) {
            (Raises::SupervisorCall, Profile::Ar) if is_a64 => (TYPE_CALL, next.address),
            (Raises::Undefined, Profile::Ar) if is_a64 => (TYPE_TRAP, own),
            (Raises::SupervisorCall, Profile::M) => (M_SUPERVISOR_CALL, next.address),
            (Raises::SupervisorCall, Profile::Ar) => (AR_SUPERVISOR_CALL, next.address),
            (Raises::Undefined, Profile::Ar) => (AR_UNDEFINED, own),
            _ => return,
        };
        let handled = self.wander.handlers.iter().any(|(handled, _)| *handled == exception);
        if handled && !self.active.iter().any(|&(active, _)| active == exception) {
            self.enter(exception, Some(resumes), Location::new(resumes, next.isa));
        }
    }

    /// Performs a return from an exception if the branch is one; false if it is not.
    fn returns(&mut self, instruction: &Instruction, choice: u32) -> bool {
        let can = match self.wander.profile {
            Profile::M => instruction.returns == Some(Return::Function),
            Profile::Ar => instruction.returns == Some(Return::Exception),
        };
        if !can || self.active.is_empty() {
            // If no exception is active, an instruction that only returns from exceptions goes anywhere, and
            // still counts as a return.
            if can && self.wander.profile == Profile::Ar {
                self.steps.push(Step::ExceptionReturn);
            }
            return false;
        }
        if self.wander.profile == Profile::M && choice & 0b100 == 0 {
            return false;
        }
        let Some((_, interrupted)) = self.active.pop() else { return false };
        self.steps.push(Step::ExceptionReturn);
        let chained = self.interrupt(choice >> 4).filter(|_| choice & 0b1000 == 0);
        match chained.filter(|_| self.wander.profile == Profile::M) {
            Some(exception) => self.enter(exception, None, interrupted),
            // The return may be in an IT block, which ends with it.
            None => (self.at, self.in_it_block) = (interrupted, 0),
        }
        true
    }

    /// A place in the code.
    fn anywhere(&mut self) -> Location {
        let choice = (self.choose)();
        let regions = self.wander.program.regions();
        let Some(region) = regions.get((choice >> 24) as usize % regions.len().max(1)) else {
            return self.at;
        };
        let bytes = region.bytes().len() as u64;
        let thumb = self.wander.profile == Profile::M || choice & 1 == 0;
        let isa = match self.wander.start.isa {
            Isa::A64 => Isa::A64,
            _ if thumb => Isa::T32,
            _ => Isa::A32,
        };
        let at = Location::new(region.start(), isa).after(u64::from(choice >> 1 & 0x7f_ffff) % bytes.max(1));
        Location::new(at.address.aligned_for(isa), isa)
    }
}
