//! The properties of one instruction that program flow needs, as types.

use core::fmt;

use crate::ids::Location;

/// The properties of one instruction that program flow needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The size: 2 or 4 bytes.
    pub bytes: u8,
    /// The instruction's part in program flow.
    pub class: Class,
    /// Whether the encoding itself makes the instruction conditional. An IT block also makes its instructions
    /// conditional, which only the code before them shows.
    pub conditional: bool,
    /// Whether the instruction writes the return address to the link register.
    pub link: bool,
    /// The kind of return, by the instruction's form.
    pub returns: Option<Return>,
    /// The exception that the instruction raises by itself.
    pub raises: Option<Raises>,
    /// The number of instructions that an IT instruction makes conditional, 1 to 4; 0 for every other
    /// instruction.
    pub it_block: u8,
    /// The instruction's memory accesses; `None` if there are none.
    pub access: Option<Access>,
}

/// The part of an instruction in program flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Execution continues after the instruction.
    Other,
    /// A branch with its target in the instruction.
    Direct(Location),
    /// A branch whose target is computed at run time.
    Indirect,
    /// A barrier: a waypoint that continues after itself.
    Barrier(Barrier),
    /// A wait for an interrupt or an event (WFI, WFE, WFIT, WFET): a waypoint if
    /// [`Rules`](crate::directive::Rules) make it one.
    Wait,
    /// The start of a transaction (TSTART): a waypoint if [`Rules`](crate::directive::Rules) make it one. If
    /// the transaction fails, execution continues at the instruction after this one.
    TransactionStart,
}

/// The barriers, also in their CP15 forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Barrier {
    /// Instruction synchronisation: always a waypoint.
    Isb,
    /// Data synchronisation: a waypoint if [`Rules`](crate::directive::Rules) make it one.
    Dsb,
    /// Data memory: a waypoint if [`Rules`](crate::directive::Rules) make it one.
    Dmb,
}

/// The kinds of return, by the form of the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Return {
    /// A function: `BX LR`, `MOV PC, LR`, `POP {.., PC}`, `LDR PC, [SP], #n`, `RET`, `RETAA`.
    Function,
    /// An exception: `ERET`, `ERETAA`, `RFE`, `SUBS PC, LR`, `LDM` with PC and `^`.
    Exception,
}

/// The exceptions that an instruction raises by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raises {
    /// SVC.
    SupervisorCall,
    /// HVC.
    HypervisorCall,
    /// SMC.
    SecureMonitorCall,
    /// BKPT, BRK, HLT.
    Breakpoint,
    /// UDF: permanently undefined.
    Undefined,
}

/// The memory accesses of one instruction, counted as the manual's pseudocode makes them: by element for structure
/// loads and stores, by word for LDM, LDRD and the extension registers, by doubleword for LDREXD alone. For A64 the direction alone is
/// given, with 0 in the other fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The direction of the data.
    pub direction: Direction,
    /// The size of each transfer in bytes, 1, 2, 4 or 8; 0 for A64.
    pub bytes: u8,
    /// The number of transfers, at least 1; for [`Direction::Swap`] in each direction. 0 for A64.
    pub transfers: u8,
}

/// The direction of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From memory.
    Load,
    /// To memory.
    Store,
    /// Both: SWP, and A64's atomic operations and copies of memory.
    Swap,
}

/// Why bytes are not an instruction that can be classified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unclassified {
    /// The bytes end inside the instruction.
    Truncated,
    /// Jazelle bytecodes are not decoded.
    Jazelle,
}

impl fmt::Display for Unclassified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the code ends inside the instruction",
            Self::Jazelle => "Jazelle bytecodes are not decoded",
        })
    }
}

impl core::error::Error for Unclassified {}

impl Instruction {
    /// An instruction of this size without effect on flow.
    #[must_use]
    pub const fn other(bytes: u8) -> Self {
        Self {
            bytes,
            class: Class::Other,
            conditional: false,
            link: false,
            returns: None,
            raises: None,
            it_block: 0,
            access: None,
        }
    }

    pub(super) const fn direct(bytes: u8, target: Location) -> Self {
        Self { class: Class::Direct(target), ..Self::other(bytes) }
    }

    pub(super) const fn indirect(bytes: u8) -> Self {
        Self { class: Class::Indirect, ..Self::other(bytes) }
    }

    pub(super) const fn barrier(bytes: u8, barrier: Barrier) -> Self {
        Self { class: Class::Barrier(barrier), ..Self::other(bytes) }
    }

    pub(super) const fn wait(bytes: u8) -> Self {
        Self { class: Class::Wait, ..Self::other(bytes) }
    }

    pub(super) const fn exception(bytes: u8, raises: Raises) -> Self {
        Self { raises: Some(raises), ..Self::other(bytes) }
    }

    pub(super) const fn linking(self) -> Self {
        Self { link: true, ..self }
    }

    pub(super) const fn conditional(self) -> Self {
        Self { conditional: true, ..self }
    }

    pub(super) const fn returning(self, returns: Return) -> Self {
        Self { returns: Some(returns), ..self }
    }

    pub(super) const fn accessing(self, access: Option<Access>) -> Self {
        Self { access, ..self }
    }

    /// Whether the instruction is a branch, direct or indirect.
    #[must_use]
    pub const fn is_branch(&self) -> bool {
        matches!(self.class, Class::Direct(_) | Class::Indirect)
    }
}

impl Access {
    pub(super) const fn of(direction: Direction, bytes: u8) -> Self {
        Self { direction, bytes, transfers: 1 }
    }

    pub(super) const fn of_any_size(direction: Direction) -> Self {
        Self { direction, bytes: 0, transfers: 0 }
    }

    /// This access, repeated; `None` for 0 transfers.
    pub(super) const fn times(self, transfers: u8) -> Option<Self> {
        if transfers == 0 { None } else { Some(Self { transfers, ..self }) }
    }
}

impl Direction {
    /// The direction of an encoding with this L bit.
    pub(super) const fn from_load_bit(load: bool) -> Self {
        if load { Self::Load } else { Self::Store }
    }
}
