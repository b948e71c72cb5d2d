//! The path: instructions and what happened between them, in order.

use tracewalk::ids::{Address, Isa, Location};

/// A step of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An instruction.
    Instruction(Instruction),
    /// An exception was taken.
    Exception {
        /// The address at which the program goes on after it; `None` if unknown.
        returns_to: Option<Address>,
        /// The handler began where the handler before it ended: nothing was stacked.
        is_tail_chained: bool,
    },
    /// The instruction before this one returned from an exception.
    ExceptionReturn {
        /// The instruction that follows, unless another exception does.
        next: Option<Address>,
    },
    /// What ran here is unknown.
    Gap,
}

/// An instruction of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its address and instruction set.
    pub at: Location,
    /// Its code: a word, a halfword, or two halfwords with the first one above.
    pub code: u32,
    /// Its size in bytes.
    pub bytes: u8,
    /// Whether its condition held, or, for a branch, whether it was taken; `None` if the trace does not state that.
    pub executed: Option<bool>,
    /// The instruction that follows, if no gap and no return from an exception comes between.
    pub next: Option<Location>,
}

impl Instruction {
    /// Whether it is Thumb.
    pub(crate) const fn is_thumb(&self) -> bool {
        matches!(self.at.isa, Isa::T32 | Isa::T32EE)
    }
}

/// The conditions of an IT block that are still to come (DDI 0406C, A2.5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ItBlock(u8);

impl ItBlock {
    /// The block that an instruction begins.
    pub(crate) const fn begun_by(code: u32) -> Option<Self> {
        if code & 0xff00 == 0xbf00 && code & 0xf != 0 { Some(Self((code & 0xff) as u8)) } else { None }
    }

    /// The condition of the next instruction, if there is a block.
    pub(crate) const fn condition(self) -> Option<u8> {
        if self.0 & 0xf == 0 { None } else { Some(self.0 >> 4) }
    }

    /// The block after the next instruction.
    pub(crate) const fn advanced(self) -> Self {
        if self.0 & 7 == 0 { Self(0) } else { Self(self.0 & 0xe0 | self.0 << 1 & 0x1f) }
    }
}
