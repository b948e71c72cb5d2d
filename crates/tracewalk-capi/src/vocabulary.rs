//! The values in elements and instructions: kinds, instruction sets, reasons. A value that a program does not know is
//! from a later version of the library.

use tracewalk::directive::{BeginReason, Transaction};
use tracewalk::ids::{Exception, Isa, SecurityState};
use tracewalk::isa::Return;

/// The kind of an element, and the fields that are valid.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum tracewalk_kind {
    /// A kind that this version of the ABI has no fields for.
    #[default]
    Other = 0,
    /// Instructions that were executed one after the other: `start` to `end`, `last`, `isa`, `instructions`, `ending`.
    Block = 1,
    /// Tracing began, or began again: `reason` is a `tracewalk_begin`.
    TraceOn = 2,
    /// An exception was taken: `exception`, `return_address`; `address` and `isa` of the handler.
    Exception = 3,
    /// The instruction before returned from an exception.
    ExceptionReturn = 4,
    /// A transaction: `reason` is a `tracewalk_transaction`.
    Transaction = 5,
    /// The context from here on: `context_id`, `vmid`, `level`, `security`.
    Context = 6,
    /// The clock's speed changed.
    ClockChanged = 7,
    /// `value` is the time; 0 if the source did not know it.
    Timestamp = 8,
    /// `value` cycles were spent since the last count, up to the end of the next block.
    Cycles = 9,
    /// The trigger condition occurred.
    Trigger = 10,
    /// `value` has a bit for each event of the trace unit that occurred.
    Events = 11,
    /// The program wrote `value` into the trace, at `level`.
    Instrumentation = 12,
    /// An access to memory: `address`, `value`, `data_bytes`, `store`; `start` and `isa` of the instruction if `instructions` is 1.
    Data = 13,
    /// Execution could not be followed: `reason` is a `tracewalk_gap`, `doubt`; `address` and `isa` of the place, if
    /// known.
    Gap = 14,
    /// A place that the trace states explicitly: `address` and `isa`, if known.
    Proof = 15,
}

/// An instruction set.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum tracewalk_isa {
    /// The element is not about an instruction.
    #[default]
    None = 0,
    /// ARM.
    A32 = 1,
    /// Thumb.
    T32 = 2,
    /// ThumbEE.
    T32ee = 3,
    /// Jazelle.
    Jazelle = 4,
    /// The 64-bit instruction set.
    A64 = 5,
}

/// How a block ends.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum tracewalk_ending {
    /// With an instruction that is not a branch: something happened after it.
    #[default]
    Interrupted = 0,
    /// With an instruction that is not a branch, and whose condition failed.
    ConditionFailed = 1,
    /// With a branch whose target is in the code: see `taken`, `link`, `returns`.
    Direct = 2,
    /// With a branch whose target was computed.
    Indirect = 3,
    /// With a barrier that the trace unit treats as a waypoint.
    Barrier = 4,
}

/// The kind of return, judged by the branch's form.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum tracewalk_returns {
    /// Not a return.
    #[default]
    No = 0,
    /// From a function.
    Function = 1,
    /// From an exception.
    Exception = 2,
}

/// How exceptions are numbered.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum tracewalk_numbering {
    /// No exception is known.
    #[default]
    None = 0,
    /// M profile: the architecture's exception number (IPSR).
    M = 1,
    /// A and R profile: the code of ETMv3 and PFT.
    Ar = 2,
    /// A and R profile: TYPE of ETMv4 and ETE.
    ArType = 3,
    /// M profile: a TYPE of ETMv4 without a number of the architecture.
    MType = 4,
}

/// A security state.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum tracewalk_security {
    /// Not stated.
    #[default]
    Unknown = 0,
    /// Secure.
    Secure = 1,
    /// Non-secure.
    NonSecure = 2,
    /// Root.
    Root = 3,
    /// Realm.
    Realm = 4,
}

/// The reason why tracing began: `reason` of `TRACEWALK_KIND_TRACE_ON`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tracewalk_begin {
    /// Another reason.
    Other = 0,
    /// Tracing was enabled.
    Enabled = 1,
    /// The trace unit's FIFO had overflowed.
    Overflow = 2,
    /// The processor left Debug state.
    DebugExit = 3,
    /// The decoder found synchronisation.
    Synchronised = 4,
}

/// The state of a transaction: `reason` of `TRACEWALK_KIND_TRANSACTION`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tracewalk_transaction {
    /// Another state.
    Other = 0,
    /// The transaction started.
    Started = 1,
    /// Execution is inside a transaction.
    UnderWay = 2,
    /// The transaction was committed.
    Committed = 3,
    /// The transaction failed.
    Failed = 4,
}

/// The reason why execution could not be followed: `reason` of `TRACEWALK_KIND_GAP`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tracewalk_gap {
    /// Another reason.
    Other = 0,
    /// No image holds the code.
    NoCode = 1,
    /// The code cannot be decoded.
    Undecodable = 2,
    /// The trace lacks the address that execution went to.
    AddressUnknown = 3,
    /// Trace and image disagree.
    Contradiction = 4,
    /// Trace was malformed or lost.
    TraceLost = 5,
    /// The trace does not name the executed instructions: `value` of them, if their number is known.
    Unseen = 6,
}

pub(crate) const fn isa(isa: Isa) -> tracewalk_isa {
    match isa {
        Isa::A32 => tracewalk_isa::A32,
        Isa::T32 => tracewalk_isa::T32,
        Isa::T32EE => tracewalk_isa::T32ee,
        Isa::Jazelle => tracewalk_isa::Jazelle,
        Isa::A64 => tracewalk_isa::A64,
    }
}

pub(crate) const fn begin(why: BeginReason) -> tracewalk_begin {
    match why {
        BeginReason::Enabled => tracewalk_begin::Enabled,
        BeginReason::Overflow => tracewalk_begin::Overflow,
        BeginReason::DebugExit => tracewalk_begin::DebugExit,
        BeginReason::Synchronised => tracewalk_begin::Synchronised,
        _ => tracewalk_begin::Other,
    }
}

pub(crate) const fn of_transaction(transaction: Transaction) -> tracewalk_transaction {
    match transaction {
        Transaction::Started => tracewalk_transaction::Started,
        Transaction::UnderWay => tracewalk_transaction::UnderWay,
        Transaction::Committed => tracewalk_transaction::Committed,
        Transaction::Failed => tracewalk_transaction::Failed,
        _ => tracewalk_transaction::Other,
    }
}

pub(crate) const fn numbering(exception: Exception) -> tracewalk_numbering {
    match exception {
        Exception::M(_) => tracewalk_numbering::M,
        Exception::Ar(_) => tracewalk_numbering::Ar,
        Exception::ArType(_) => tracewalk_numbering::ArType,
        Exception::MType(_) => tracewalk_numbering::MType,
        _ => tracewalk_numbering::None,
    }
}

pub(crate) const fn security(state: SecurityState) -> tracewalk_security {
    match state {
        SecurityState::Secure => tracewalk_security::Secure,
        SecurityState::NonSecure => tracewalk_security::NonSecure,
        SecurityState::Root => tracewalk_security::Root,
        SecurityState::Realm => tracewalk_security::Realm,
        _ => tracewalk_security::Unknown,
    }
}

/// The kind of return, judged by the branch's form.
pub(crate) const fn returns(returns: Option<Return>) -> tracewalk_returns {
    match returns {
        None => tracewalk_returns::No,
        Some(Return::Function) => tracewalk_returns::Function,
        Some(Return::Exception) => tracewalk_returns::Exception,
    }
}

impl tracewalk_isa {
    /// The instruction set, if the value names one.
    pub(crate) const fn to_isa(number: u32) -> Option<Isa> {
        Some(match number {
            1 => Isa::A32,
            2 => Isa::T32,
            3 => Isa::T32EE,
            4 => Isa::Jazelle,
            5 => Isa::A64,
            _ => return None,
        })
    }
}
