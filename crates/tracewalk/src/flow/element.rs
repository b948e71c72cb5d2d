//! The elements of program flow.

use core::fmt;

use crate::directive::{BeginReason, Instrumentation, Transaction, TransferValue};
use crate::ids::{Address, ContextId, Exception, Isa, Location, Privilege, SecurityState, Vmid};
use crate::isa::{Return, Unclassified};
use crate::span::Span;

/// One piece of program flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Instructions that were executed one after the other.
    Block(Block),
    /// Something that happened between instructions.
    Event(Event),
    /// Execution that could not be followed.
    Gap(Gap),
    /// A known position, not an event: elements from here on do not depend on earlier trace.
    Proof(Proof),
}

impl Element {
    /// The trace that proves the element.
    #[inline]
    #[must_use]
    pub const fn span(&self) -> Span {
        match self {
            Self::Block(block) => block.span,
            Self::Event(event) => event.span,
            Self::Gap(gap) => gap.span,
            Self::Proof(proof) => proof.span,
        }
    }

    /// The span, to change it.
    #[inline]
    pub(crate) const fn span_mut(&mut self) -> &mut Span {
        match self {
            Self::Block(block) => &mut block.span,
            Self::Event(event) => &mut event.span,
            Self::Gap(gap) => &mut gap.span,
            Self::Proof(proof) => &mut proof.span,
        }
    }
}

/// Instructions that were executed one after the other, up to a branch or barrier, a failed condition, an event or a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The first instruction.
    pub start: Address,
    /// The address after the last instruction. Never equal to `start`.
    pub end: Address,
    /// The instruction set of all instructions.
    pub isa: Isa,
    /// The number of instructions, at least one.
    pub instructions: u32,
    /// The address of the last instruction.
    pub last: Address,
    /// How the block ends.
    pub ending: Ending,
    /// The trace that proves that the last instruction was executed.
    pub span: Span,
}

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With an instruction that is not a branch: something happened after it.
    Interrupted,
    /// With an instruction that is not a branch, and whose condition failed.
    ConditionFailed,
    /// With a branch or a barrier.
    Branch {
        /// The kind of instruction.
        kind: BranchKind,
        /// Whether it was taken (a barrier: executed).
        taken: bool,
        /// Whether it writes the link register.
        link: bool,
        /// The kind of return, by its form.
        returns: Option<Return>,
    },
}

/// The kinds of instructions that end blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BranchKind {
    /// A branch whose target is in the code.
    Direct,
    /// A branch whose target is computed at run time.
    Indirect,
    /// A barrier that the trace unit treats as a waypoint.
    Barrier,
}

/// Something that happened between instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The kind of event.
    pub kind: EventKind,
    /// The trace that reports the event.
    pub span: Span,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum EventKind {
    /// Tracing began, or began again: what ran before is unknown.
    TraceOn(BeginReason),
    /// An exception was taken.
    Exception {
        /// The exception; `None` if neither the trace nor the vector table states it.
        exception: Option<Exception>,
        /// The address at which the architecture would resume; `None` if unknown.
        preferred_return: Option<Address>,
        /// The handler's first instruction; `None` for the entry to Debug state, if the trace does not state
        /// the handler, and if the trace states it later: then the next block begins there.
        handler: Option<Location>,
    },
    /// The instruction before this returned from an exception.
    ExceptionReturn,
    /// A transaction began or ended.
    Transaction(Transaction),
    /// The context of the instructions from here on.
    Context {
        /// The context ID, if it was traced.
        context_id: Option<ContextId>,
        /// The virtual machine, if it was traced.
        vmid: Option<Vmid>,
        /// The exception level, if it was traced, and the security state.
        privilege: Privilege,
    },
    /// The processor's clock speed changed since the last timestamp; the next one follows.
    ClockChanged,
    /// The time of the last instruction, in ticks of the system's timestamp counter; 0 if the source did not know it. The trace
    /// does not state the counter's frequency.
    Timestamp(u64),
    /// Cycles spent on the instructions from the last count up to the end of the next block, or, before a
    /// [`EventKind::TraceOn`], on what was not traced.
    Cycles(u64),
    /// The trigger condition occurred.
    Trigger,
    /// Events that the trace unit was set up to report occurred: a bit for each, bit 0 for event 0.
    Events(u8),
    /// The program wrote a value into the trace.
    Instrumentation(Instrumentation),
    /// An access to memory.
    Data(DataTransfer),
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DataTransfer {
    /// The load or store; `None` if flow does not know the position.
    pub instruction: Option<Location>,
    /// The address; `None` if it was not traced and does not follow from the transfer before.
    pub address: Option<Address>,
    /// The value.
    pub value: TransferValue,
    /// The size in bytes, from the instruction; `None` if that is unknown.
    pub bytes: Option<u8>,
    /// Whether the access is a store; `None` if the instruction is unknown.
    pub store: Option<bool>,
    /// Whether the trace marks the value as big-endian.
    pub big_endian: bool,
}

/// Execution that could not be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Why execution could not be followed.
    pub reason: GapReason,
    /// The trace in which flow detected the gap. For lost trace: the bytes that could not be used.
    pub span: Span,
    /// Whether elements since the last [`Proof`] may be wrong, because only damage explains this gap.
    pub doubt: bool,
}

/// A position that the trace states, independent of earlier trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The position; `None` after a jump whose target comes next.
    pub at: Option<Location>,
    /// The trace that proves the position. Elements of earlier trace are confirmed, unless a [`Gap`] has put
    /// them in doubt.
    pub span: Span,
}

/// Why execution could not be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GapReason {
    /// Execution reached code that no image holds.
    NoCode(Location),
    /// Execution reached code that cannot be decoded.
    Undecodable(Location, Unclassified),
    /// The trace does not state where execution went.
    AddressUnknown,
    /// Trace and image disagree: one of them is wrong, or the configuration is.
    Contradiction(Contradiction),
    /// Trace was malformed or lost.
    TraceLost,
    /// The trace unit reports that instructions were executed, but not which.
    Unseen {
        /// The first of them, if it is known.
        from: Option<Location>,
        /// The number of instructions, if the trace unit states it.
        instructions: Option<u64>,
        /// The place at which execution continued.
        then: Location,
    },
}

/// A way in which trace and image disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Contradiction {
    /// The trace reports that this instruction's condition failed, but the instruction has none.
    UnconditionalFailed(Location),
    /// According to the trace, execution jumped after an instruction that does not branch.
    NotABranch {
        /// The instruction.
        at: Location,
        /// The place at which execution continued, according to the trace.
        went_to: Location,
    },
    /// A direct branch went to another address than its target in the image.
    WrongTarget {
        /// The branch.
        at: Location,
        /// The branch's target in the image.
        expected: Location,
        /// The branch's target in the trace.
        found: Location,
    },
    /// A periodic synchronisation states another position than the one that flow had reached.
    WrongPosition {
        /// The position that flow had reached.
        expected: Location,
        /// The position in the trace.
        found: Location,
    },
    /// A run that should go straight to `until` meets a branch that is always taken.
    RunPassesBranch {
        /// The branch.
        at: Location,
        /// The expected end of the run.
        until: Address,
    },
    /// A run ends at an address at which no instruction starts, or before its own start.
    RunMissesEnd {
        /// The start of the run.
        from: Location,
        /// The expected end of the run.
        until: Address,
    },
    /// The code has no branch for so long that it cannot be the code that ran.
    NoBranchInReach(Location),
    /// The trace unit predicted a return, but no call is known.
    ReturnStackEmpty(Location),
}

impl Contradiction {
    /// The place in the program at which flow detected the contradiction.
    #[must_use]
    pub const fn location(self) -> Location {
        match self {
            Self::UnconditionalFailed(at)
            | Self::NotABranch { at, .. }
            | Self::WrongTarget { at, .. }
            | Self::WrongPosition { expected: at, .. }
            | Self::RunPassesBranch { at, .. }
            | Self::RunMissesEnd { from: at, .. }
            | Self::NoBranchInReach(at)
            | Self::ReturnStackEmpty(at) => at,
        }
    }
}

impl GapReason {
    /// Whether a sound trace of the right program never has this gap.
    pub(super) const fn casts_doubt(self) -> bool {
        match self {
            // Not every image holds all code that runs, and of Jazelle nothing is known.
            Self::NoCode(_) | Self::Undecodable(..) | Self::Unseen { .. } => false,
            Self::AddressUnknown | Self::Contradiction(_) | Self::TraceLost => true,
        }
    }

    /// A short name for line formats.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoCode(_) => "no_code",
            Self::Undecodable(..) => "undecodable",
            Self::AddressUnknown => "address_unknown",
            Self::Contradiction(_) => "contradiction",
            Self::TraceLost => "trace_lost",
            Self::Unseen { .. } => "unseen",
        }
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnconditionalFailed(at) => {
                write!(f, "found a failed condition at {at}, expected a conditional instruction")
            }
            Self::NotABranch { at, went_to } => {
                write!(f, "found a jump to {went_to} after {at}, expected a branch there")
            }
            Self::WrongTarget { at, expected, found } => {
                write!(f, "found {found} as the target of the branch at {at}, expected {expected}")
            }
            Self::WrongPosition { expected, found } => {
                write!(f, "found execution at {found}, expected it at {expected}")
            }
            Self::RunPassesBranch { at, until } => {
                write!(f, "found sequential execution to {until}, expected the branch at {at} to be taken")
            }
            Self::RunMissesEnd { from, until } => {
                write!(
                    f,
                    "found execution from {from} to {until}, expected an instruction to start at its end"
                )
            }
            Self::NoBranchInReach(at) => write!(f, "found no branch in the code after {at}, expected one"),
            Self::ReturnStackEmpty(at) => {
                write!(f, "found a predicted return at {at}, expected a call before it")
            }
        }
    }
}

impl fmt::Display for GapReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCode(at) => write!(f, "no image holds {at}"),
            Self::Undecodable(at, Unclassified::Jazelle) => {
                write!(f, "Jazelle bytecode at {at} cannot be followed")
            }
            Self::Undecodable(at, Unclassified::Truncated) => {
                write!(f, "the image ends inside the instruction at {at}")
            }
            Self::AddressUnknown => f.write_str("the trace lacks the address that execution went to"),
            Self::Contradiction(contradiction) => {
                write!(f, "trace and image disagree: {contradiction}")
            }
            Self::TraceLost => f.write_str("trace was malformed or lost"),
            Self::Unseen { instructions: Some(instructions), then, .. } => {
                write!(f, "{instructions} instructions on an unknown path, then {then}")
            }
            Self::Unseen { instructions: None, then, .. } => {
                write!(f, "instructions on an unknown path, then {then}")
            }
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(block) => block.fmt(f),
            Self::Event(event) => event.kind.fmt(f),
            Self::Gap(gap) => write!(f, "gap: {}", gap.reason),
            Self::Proof(Proof { at: Some(at), .. }) => write!(f, "proven at {at}"),
            Self::Proof(Proof { at: None, .. }) => f.write_str("proven"),
        }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.instructions == 1 { "" } else { "s" };
        write!(f, "{}..{} ({}): {} instruction{plural}", self.start, self.end, self.isa, self.instructions)?;
        match self.ending {
            Ending::Interrupted | Ending::Branch { taken: true, .. } => Ok(()),
            Ending::ConditionFailed => f.write_str(", the last one not executed"),
            Ending::Branch { taken: false, .. } => f.write_str(", the branch not taken"),
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TraceOn(reason) => write!(f, "trace on: {}", reason.name()),
            Self::Exception { exception, preferred_return, handler } => {
                match exception {
                    Some(exception) => write!(f, "exception {exception}")?,
                    None => f.write_str("an exception")?,
                }
                if let Some(address) = preferred_return {
                    write!(f, ", returns to {address}")?;
                }
                handler.map_or(Ok(()), |handler| write!(f, ", handler {handler}"))
            }
            Self::ExceptionReturn => f.write_str("exception return"),
            Self::Transaction(Transaction::Started) => f.write_str("transaction started"),
            Self::Transaction(Transaction::UnderWay) => f.write_str("inside a transaction"),
            Self::Transaction(Transaction::Committed) => f.write_str("transaction committed"),
            Self::Transaction(Transaction::Failed) => f.write_str("transaction failed"),
            Self::Context { context_id, vmid, privilege } => {
                f.write_str("context")?;
                if let Some(context_id) = context_id {
                    write!(f, ", ID {context_id}")?;
                }
                if let Some(vmid) = vmid {
                    write!(f, ", VMID {vmid}")?;
                }
                match privilege {
                    Privilege { level: None, security: SecurityState::Secure } => Ok(()),
                    _ => write!(f, ", {privilege}"),
                }
            }
            Self::ClockChanged => f.write_str("clock speed changed"),
            Self::Timestamp(time) => write!(f, "timestamp {time}"),
            Self::Cycles(1) => f.write_str("1 cycle"),
            Self::Cycles(cycles) => write!(f, "{cycles} cycles"),
            Self::Trigger => f.write_str("trigger"),
            Self::Events(events) => {
                let numbers = (0..u8::BITS).filter(|number| events >> number & 1 != 0);
                f.write_str("event")?;
                numbers.enumerate().try_for_each(|(index, number)| {
                    write!(f, "{}{number}", if index == 0 { " " } else { ", " })
                })
            }
            Self::Instrumentation(Instrumentation { level, value }) => {
                write!(f, "instrumentation {value:#x} from {level}")
            }
            Self::Data(data) => data.fmt(f),
        }
    }
}

impl fmt::Display for DataTransfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.store {
            Some(true) => "store",
            Some(false) => "load",
            None => "access",
        })?;
        if let Some(address) = self.address {
            write!(f, " at {address}")?;
        }
        match self.value {
            TransferValue::Value(value) => write!(f, ": 0x{value:x}"),
            TransferValue::Pending(_) => f.write_str(", value not known yet"),
            TransferValue::NotTraced => Ok(()),
            TransferValue::StoreFailed => f.write_str(", failed"),
            TransferValue::Suppressed => f.write_str(", value suppressed"),
        }
    }
}
