//! Causes of crashes, and their evidence.

use tracewalk::ids::{Address, Exception};
use tracewalk::span::StreamOffset;

use super::waiting::Waiting;
use crate::call_stack::FunctionId;

/// Why a program crashed, and the proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The kind and the details.
    pub kind: CauseKind,
    /// All evidence for the cause.
    pub proof: Vec<Evidence>,
}

/// Why a program crashed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CauseKind {
    /// A branch went to an address without code.
    BadBranch {
        /// The branch.
        at: Address,
        /// The branch's target.
        to: Address,
        /// The content of the target.
        target: Target,
        /// The register that it branched to, with the Thumb bit; `None` if it was not saved.
        value: Option<u32>,
        /// The instruction that loaded the register, if it was loaded.
        loaded_by: Option<Address>,
        /// The address that the register was loaded from, if that can be derived.
        loaded_from: Option<Address>,
        /// The instruction that wrote the value there, if the trace shows that instruction.
        stored_by: Option<Address>,
    },
    /// A return went to an address without code.
    BadReturn {
        /// The return.
        at: Address,
        /// The return's target.
        to: Address,
        /// The content of the target.
        target: Target,
        /// The address of the return address in memory, if that can be derived.
        slot: Option<Address>,
        /// The instruction that saved the right return address there, if the trace shows it.
        saved_by: Option<Address>,
        /// The instruction that overwrote the return address, if the trace shows that instruction.
        overwritten_by: Option<Address>,
    },
    /// The stack grew into an object that was used afterwards.
    StackOverflow {
        /// The instruction that wrote over the object.
        pushed_by: Address,
        /// The stack pointer after that instruction.
        stack_pointer: Address,
        /// The object below the stack: its name, its first address, and the address after it.
        object: (String, Address, Address),
        /// The branch that went to the overwritten address.
        branch: Address,
        /// The branch's target.
        to: Address,
    },
    /// An instruction moved the stack pointer below the stack's limit (Armv8-M), by the processor's own report.
    StackLimit {
        /// The instruction, if it is known: the exception may have stacked nothing.
        at: Option<Address>,
    },
    /// An instruction could not be fetched: the processor was sent to an address that holds none, or that it must not execute.
    FetchAbort {
        /// The address.
        at: Address,
        /// Whether the bus refused it, or else memory protection.
        by_bus: bool,
    },
    /// An instruction that is permanently undefined, or that the processor reported as undefined.
    UndefinedInstruction {
        /// The instruction.
        at: Address,
        /// The instruction's bytes.
        bytes: Vec<u8>,
    },
    /// A division by zero.
    DivideByZero {
        /// The division, or the call of the function that divides.
        at: Address,
        /// The run-time library's function that is called for a division by zero, for a processor that cannot divide.
        trap: Option<Address>,
    },
    /// An access to an address that is not a multiple of the access size.
    Unaligned {
        /// The instruction.
        at: Address,
        /// The address, if it can be derived.
        address: Option<Address>,
    },
    /// An access to an address without memory.
    BusFault {
        /// The instruction.
        at: Address,
        /// The address.
        address: Address,
        /// Whether it was a store.
        store: bool,
    },
    /// An access that was not allowed.
    MemoryProtection {
        /// The instruction.
        at: Address,
        /// The address.
        address: Address,
    },
    /// An exception whose vector leads to the handler that all exceptions without one share, which never ends.
    NoHandler {
        /// The shared handler.
        handler: Address,
        /// How many vectors lead there.
        vectors: u16,
        /// The exception, if it is known.
        exception: Option<Exception>,
    },
    /// A watchdog's interrupt ended a loop, or its reset did.
    Watchdog {
        /// The watchdog's handler.
        handler: Address,
        /// Whether the processor was reset while the handler ran.
        reset: bool,
        /// The first and the last instruction of the loop.
        stuck: (Address, Address),
        /// The least number of times that the loop ran.
        times: u64,
    },
    /// The program stopped itself.
    Stopped {
        /// The instruction at which it goes on no more.
        at: Address,
        /// How it stopped.
        how: Stop,
        /// The function that stops the program.
        function: Option<FunctionId>,
        /// The call of that function, if the trace shows it.
        called_from: Option<Address>,
    },
    /// The program waits in a loop for memory that nothing wrote while it waited.
    Waiting(Waiting),
}

/// How a program stopped itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// In a loop that has no end.
    EndlessLoop,
    /// At a breakpoint in its code.
    Breakpoint,
    /// With a call of the debugger that ends the program.
    Semihosting,
}

/// The content of a branch's target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// No image covers the address.
    Nothing,
    /// Data, by this name if it has one.
    Data(Option<String>),
    /// Code, but the address had no Thumb bit.
    NoThumbBit,
}

/// A piece of evidence for a cause, with the place that verifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// An instruction in the image.
    Instruction {
        /// The instruction's role.
        role: Role,
        /// The address.
        at: Address,
        /// The bytes.
        bytes: Vec<u8>,
        /// The byte of the source's trace that shows that it was executed; `None` if none does.
        executed: Option<StreamOffset>,
    },
    /// The trace shows that execution went from this branch to this address.
    Went {
        /// The branch.
        from: Address,
        /// The target.
        to: Address,
        /// The byte of the source's trace that shows it.
        traced_at: StreamOffset,
    },
    /// The trace shows that an exception was taken.
    Taken {
        /// The exception; `None` if the trace does not state it.
        exception: Option<Exception>,
        /// The address at which it was taken.
        at: Address,
        /// The handler.
        handler: Address,
        /// The byte of the source's trace that shows it.
        traced_at: StreamOffset,
    },
    /// A word in memory.
    Word {
        /// The word's role.
        role: Role,
        /// The address.
        at: Address,
        /// The value.
        value: u32,
        /// The holder of the word.
        holder: Holder,
    },
    /// A core register that was saved.
    Register {
        /// The register's name: `r0` to `r12`, `sp`, `lr`, `pc` or `xpsr`.
        name: &'static str,
        /// The value.
        value: u32,
    },
    /// A core register that the path proves, when the exception was taken.
    Proven {
        /// The register's name.
        name: &'static str,
        /// The value.
        value: u32,
    },
    /// A symbol of the image.
    Symbol {
        /// The symbol's name.
        name: String,
        /// The first address.
        start: Address,
        /// The address after it.
        end: Address,
    },
    /// The trace shows that instructions ran over and over.
    Repeated {
        /// The first instruction.
        start: Address,
        /// The last instruction.
        last: Address,
        /// The least number of times.
        times: u64,
    },
}

/// The holder of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The program's image.
    Image,
    /// The saved memory.
    Dump,
}

/// The role of an instruction or word in a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The branch or return that went wrong.
    Branch,
    /// The instruction that loaded the address.
    Load,
    /// The instruction that wrote the address.
    Store,
    /// The instruction that saved the return address.
    Save,
    /// The instruction that was to be executed when the exception was taken.
    Faulting,
    /// The call of a function that is part of the proof.
    Call,
    /// A handler's endless loop.
    Handler,
    /// The instruction at which the program stopped itself.
    Stop,
    /// The word that the branch's target was loaded from.
    Pointer,
    /// A fault status register.
    Status,
    /// CPUID.
    Cpuid,
    /// A word of the stacked frame.
    Frame,
    /// A vector.
    Vector,
}
