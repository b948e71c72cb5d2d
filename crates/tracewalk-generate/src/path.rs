//! The path that a program took: the instructions it executed, and what happened between them.
//!
//! ```
//! use tracewalk::ids::Address;
//! use tracewalk::program::Program;
//! use tracewalk_generate::path::Path;
//! use tracewalk_generate::record::Record;
//!
//! # let mut program = Program::new();
//! # program.add(Address::new(0x100), &[0x01, 0x38, 0xfd, 0xd1, 0x70, 0x47])?; // 1: subs r0, #1; bne 1b; bx lr
//! let record = "# tracewalk record 1\nP m\nR 100 104 t32\nR 100 104 t32 !102\n";
//! let path = Path::expand(&Record::parse(record)?, &program)?;
//! let last = path.instructions().last().expect("four of them");
//! assert_eq!((last.address, last.passed), (Address::new(0x102), false)); // bne failed its condition
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use tracewalk::ids::{Address, ContextId, Exception, Isa, Location};
use tracewalk::isa::{self, Instruction};
use tracewalk::program::Program;

/// The path of one processor, from its first instruction on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// The steps, in the order in which they happened.
    pub steps: Vec<Step>,
}

/// One thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An instruction was executed, or passed over because its condition failed.
    Instruction(Executed),
    /// The last instruction accessed memory.
    Access(Access),
    /// The last instruction set the Context ID register.
    ContextId(ContextId),
    /// An exception was taken.
    Exception(Taken),
    /// The last instruction returned from an exception.
    ExceptionReturn,
    /// The exception level or the security state changes here.
    State(State),
}

/// The processor's state, as far as a trace's contexts show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The exception level; 0 in M profile.
    pub level: u8,
    /// Non-secure state.
    pub non_secure: bool,
}

/// An executed instruction.
///
/// An instruction that raised an undefined instruction exception or made a supervisor call counts as executed, as
/// trace units count it. One that aborted does not: it is tried again later, or skipped by the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// The instruction's address.
    pub address: Address,
    /// The instruction set.
    pub isa: Isa,
    /// The instruction's size, 2 or 4.
    pub bytes: u8,
    /// Whether the instruction's condition held; false for a conditional branch that was not taken.
    pub passed: bool,
}

/// An exception that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The exception.
    pub exception: Exception,
    /// Where execution should resume; `None` if the exception took the place of a return from another one
    /// (tail-chaining), which has nothing to resume.
    pub preferred_return: Option<Address>,
    /// The first instruction of the handler.
    pub handler: Address,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The address.
    pub address: Address,
    /// The size in bytes: 1, 2, 4 or 8.
    pub bytes: u8,
    /// Set for a store.
    pub store: bool,
    /// The value that was loaded or stored; `None` if it is not known, as for device registers.
    pub value: Option<u64>,
}

impl Executed {
    /// The instruction's address and instruction set.
    #[must_use]
    pub const fn location(&self) -> Location {
        Location::new(self.address, self.isa)
    }

    /// The address after the instruction.
    #[must_use]
    pub const fn end(&self) -> Address {
        self.location().after(self.bytes as u64).address
    }

    /// The decoded instruction; `None` if the program has no code there.
    #[must_use]
    pub fn classify(&self, program: &Program) -> Option<Instruction> {
        isa::classify(program.code(self.address)?, self.address, self.isa).ok()
    }
}

impl Path {
    /// The executed instructions.
    pub fn instructions(&self) -> impl Iterator<Item = &Executed> {
        self.steps.iter().filter_map(|step| match step {
            Step::Instruction(executed) => Some(executed),
            _ => None,
        })
    }
}
