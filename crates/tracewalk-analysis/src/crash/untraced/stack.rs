//! The call stack by call frame information, from the stacked registers outwards, through exceptions.
//!
//! Nothing is searched: a return address has to be where the information places it, and a call has to be before it.

use tracewalk::ids::{Address, Exception, Isa};
use tracewalk::isa::{self, Class};
use tracewalk::program::Scope;

use super::Halted;
use super::frame::{ExceptionReturn, Frame};
use crate::call_stack::FunctionId;
use crate::crash::path::{LR, PC, SP};
use crate::crash::trail::Running;
use crate::symbols::Extent;

/// The most functions of a stack.
const DEEPEST: usize = 256;

/// The core registers of a function, as far as they are known.
type Registers = [Option<u32>; 16];

/// The callers of functions, by a program's call frame information.
pub trait Callers {
    /// The caller of the function at `at`, whose registers are these, in memory that `word` reads.
    fn caller(&self, at: Address, registers: &Registers, word: &dyn Fn(u32) -> Option<u32>) -> Caller;
}

/// The caller of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Its registers; the program counter is the return address, with the Thumb bit.
    Known([Option<u32>; 16]),
    /// The memory that holds the return address is not known.
    NotSaved,
    /// The function has none, or there is no information.
    None,
}

impl Halted<'_> {
    /// The functions that were running, innermost first, and whether the stack goes on in memory that was not saved.
    pub(super) fn call_stack(&self, frame: Frame) -> (Vec<Running>, bool) {
        let functions = self.code.symbols.functions();
        let mut stack = Vec::new();
        let mut level = frame;
        let mut registers = self.interrupted(frame, &self.snapshot.registers);
        // Where the call frame information is looked up, and the instruction that was reached.
        let Some((mut at, mut reached)) = self.entered(frame) else { return (stack, false) };
        while stack.len() < DEEPEST {
            let Some(function) = self.code.symbols.function(at) else { break };
            let function = function.start;
            let id = FunctionId::Named(function, Scope::EVERYWHERE);
            stack.push(Running { function: id, at: Some(reached), handles: None });
            let caller = match self.callers.caller(at, &registers, &|at| self.snapshot.word(at)) {
                Caller::Known(caller) => caller,
                Caller::NotSaved => return (stack, true),
                Caller::None => break,
            };
            let [.., pointer, _, returns_to] = caller;
            // A stack that does not become shorter is none.
            if pointer < registers[usize::from(SP)] {
                break;
            }
            let Some(returns_to) = returns_to else { break };
            if let Some(link) = ExceptionReturn::new(returns_to) {
                let Ok(number @ 1..) = u16::try_from(level.interrupted()) else { break };
                if let Some(handler) = stack.last_mut() {
                    handler.handles = Some(Some(Exception::M(number)));
                }
                let Some(interrupted) = self.stacked(link, pointer) else { return (stack, true) };
                let Some(entered) = self.entered(interrupted) else { break };
                registers = self.interrupted(interrupted, &caller);
                (level, (at, reached)) = (interrupted, entered);
                continue;
            }
            let leads = |called| self.leads(called, function, &functions);
            let Some(call) = self.call(returns_to, &leads) else { break };
            registers = caller;
            (at, reached) = (Address::from((returns_to & !1).wrapping_sub(1)), call);
        }
        (stack, false)
    }

    /// The instruction that was interrupted, twice; `None` if it is not of a function.
    fn entered(&self, frame: Frame) -> Option<(Address, Address)> {
        let at = frame.stacked.returns_to();
        self.is_code(frame).then_some((at, at))
    }

    /// The registers of what was interrupted; `now` are those of the handler, which keeps the others.
    fn interrupted(&self, frame: Frame, now: &Registers) -> Registers {
        let [r0, r1, r2, r3, r12, link, counter, _] = frame.stacked.words;
        let mut registers = *now;
        let stacked = [(0, r0), (1, r1), (2, r2), (3, r3), (12, r12), (LR, link), (PC, counter)];
        for (register, word) in stacked.into_iter().chain([(SP, frame.stack_pointer())]) {
            registers[usize::from(register)] = Some(word);
        }
        registers
    }

    /// The call in the link register, if the exception was not taken at an instruction. The call may be older than what led there.
    pub(super) fn newest_call(&self, frame: Frame) -> Option<Address> {
        let [.., link, _, _] = frame.stacked.words;
        self.call(link, &|_| true).filter(|_| !self.is_code(frame))
    }

    /// The call after which execution returns to this address, if `leads` says so of its target.
    fn call(&self, returns_to: u32, leads: &dyn Fn(Address) -> bool) -> Option<Address> {
        let end = returns_to.checked_sub(1).filter(|end| end % 2 == 0)?;
        [4, 2].into_iter().find_map(|bytes| {
            let at = Address::from(end.checked_sub(bytes)?);
            let known = isa::classify(self.code.program.code(at)?, at, Isa::T32).ok()?;
            let is_call = known.link && u32::from(known.bytes) == bytes;
            let leads = match known.class {
                Class::Direct(to) => leads(to.address),
                class => class == Class::Indirect,
            };
            (is_call && leads).then_some(at)
        })
    }

    /// Whether a call of this address is one of `callee`, or of a function that may go on in `callee` by a branch.
    fn leads(&self, called: Address, callee: Address, functions: &[Extent]) -> bool {
        let start = |at: Address| self.code.symbols.function(at).map(|function| function.start);
        let Some(first) = start(called) else { return false };
        let Some(function) = functions.iter().find(|function| function.start == first) else { return false };
        if first == callee {
            return true;
        }
        let mut at = first;
        while at.get() < function.end {
            let known = self.code.program.code(at).and_then(|code| isa::classify(code, at, Isa::T32).ok());
            let branches = known.is_some_and(|known| match known.class {
                Class::Direct(to) => !known.link && start(to.address) == Some(callee),
                class => class == Class::Indirect && !known.link && known.returns.is_none(),
            });
            if branches {
                return true;
            }
            let Some(next) = at.checked_add(known.map_or(2, |known| known.bytes.into())) else { break };
            at = next;
        }
        false
    }
}
