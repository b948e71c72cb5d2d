//! The core's elements → C's.

use tracewalk::directive::{BeginReason, Transaction, TransferValue};
use tracewalk::flow::{Block, BranchKind, DataTransfer, Element, Ending, Event, EventKind, Gap, GapReason};
use tracewalk::ids::{Address, Exception, Isa, Location, SecurityState, TraceId};
use tracewalk::isa::Return;
use tracewalk::span::CaptureOffset;

/// `address` holds one.
pub const TRACEWALK_HAS_ADDRESS: u32 = 1;
/// `return_address` holds one.
pub const TRACEWALK_HAS_RETURN_ADDRESS: u32 = 2;
/// `exception` and `numbering` hold one.
pub const TRACEWALK_HAS_EXCEPTION: u32 = 4;
/// `context_id` holds one.
pub const TRACEWALK_HAS_CONTEXT_ID: u32 = 8;
/// `vmid` holds one.
pub const TRACEWALK_HAS_VMID: u32 = 16;
/// `level` holds an exception level.
pub const TRACEWALK_HAS_LEVEL: u32 = 32;
/// `value` holds one.
pub const TRACEWALK_HAS_VALUE: u32 = 64;
/// `capture_offset` holds one.
pub const TRACEWALK_HAS_CAPTURE_OFFSET: u32 = 128;
/// `data_bytes` and `store` say how memory was accessed.
pub const TRACEWALK_HAS_ACCESS: u32 = 256;

/// What an element is, and which of its fields say something.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum tracewalk_kind {
    /// Of a kind that this version of the ABI has no fields for.
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
    /// Execution could not be followed: `reason` is a `tracewalk_gap`, `doubt`; `address` and `isa` of where, if that is known.
    Gap = 14,
    /// A place that the trace names by itself: `address` and `isa`, if it is known.
    Proof = 15,
}

/// An instruction set.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum tracewalk_isa {
    /// The element is about no instruction.
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
    /// With an instruction that is no branch: something happened after it.
    #[default]
    Interrupted = 0,
    /// With an instruction that is no branch, and whose condition failed.
    ConditionFailed = 1,
    /// With a branch whose target stands in the code: see `taken`, `link`, `returns`.
    Direct = 2,
    /// With a branch whose target was computed.
    Indirect = 3,
    /// With a barrier that the trace unit treats as a waypoint.
    Barrier = 4,
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
    /// It is not stated.
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

/// Why tracing began: `reason` of `TRACEWALK_KIND_TRACE_ON`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tracewalk_begin {
    /// For another reason.
    Other = 0,
    /// It was enabled.
    Enabled = 1,
    /// The trace unit's FIFO had overflowed.
    Overflow = 2,
    /// The processor left Debug state.
    DebugExit = 3,
    /// The decoder found synchronisation.
    Synchronised = 4,
}

/// What became of a transaction: `reason` of `TRACEWALK_KIND_TRANSACTION`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tracewalk_transaction {
    /// Something else.
    Other = 0,
    /// It started.
    Started = 1,
    /// Execution is inside one.
    UnderWay = 2,
    /// It was committed.
    Committed = 3,
    /// It failed.
    Failed = 4,
}

/// Why execution could not be followed: `reason` of `TRACEWALK_KIND_GAP`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tracewalk_gap {
    /// For another reason.
    Other = 0,
    /// No image holds the code.
    NoCode = 1,
    /// The code cannot be decoded.
    Undecodable = 2,
    /// The trace does not say where execution went.
    AddressUnknown = 3,
    /// Trace and image disagree.
    Contradiction = 4,
    /// Trace was malformed or lost.
    TraceLost = 5,
    /// Instructions were executed, and the trace does not say which: `value` of them, if that is known.
    Unseen = 6,
}

/// One piece of what the program did. Fields that `kind` does not name are 0.
///
/// Fields are added at the end: `size` says which ones the library has filled in.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct tracewalk_element {
    /// How many bytes of this structure the library fills in.
    pub size: u32,
    /// What it is.
    pub kind: tracewalk_kind,
    /// Which optional fields hold something: `TRACEWALK_HAS_…`.
    pub has: u32,
    /// The source's trace ID; 0 for a source without one.
    pub trace_id: u32,
    /// The first byte of the source's own bytes that proves it.
    pub stream_start: u64,
    /// The byte after the last one.
    pub stream_end: u64,
    /// Where in the capture's file that begins.
    pub capture_offset: u64,
    /// The first instruction.
    pub start: u64,
    /// The address after the last instruction.
    pub end: u64,
    /// The last instruction.
    pub last: u64,
    /// A place in the program's memory.
    pub address: u64,
    /// Where an exception would return to.
    pub return_address: u64,
    /// A number: a time, cycles, a value.
    pub value: u64,
    /// How many instructions.
    pub instructions: u32,
    /// The instruction set.
    pub isa: tracewalk_isa,
    /// How a block ends.
    pub ending: tracewalk_ending,
    /// 1 if the branch was taken (a barrier: executed).
    pub taken: u32,
    /// 1 if the branch writes the link register.
    pub link: u32,
    /// By its form the branch returns: 1 from a function, 2 from an exception.
    pub returns: u32,
    /// Why: see `kind`.
    pub reason: u32,
    /// 1 if what came since the last proof may be wrong.
    pub doubt: u32,
    /// How `exception` is numbered.
    pub numbering: tracewalk_numbering,
    /// The exception.
    pub exception: u32,
    /// The context ID.
    pub context_id: u32,
    /// The virtual machine.
    pub vmid: u32,
    /// The exception level.
    pub level: u32,
    /// The security state.
    pub security: tracewalk_security,
    /// How many bytes of memory were accessed; 0 if that is unknown.
    pub data_bytes: u32,
    /// 1 for a store.
    pub store: u32,
}

/// How many bytes the structure had in the first version of the ABI.
pub(crate) const FIRST_SIZE: usize = 152;
const _: () = assert!(
    size_of::<tracewalk_element>() == FIRST_SIZE,
    "fields are added at the end, and no other changes"
);

impl tracewalk_element {
    /// The element of a source, and where in the capture it stands.
    pub(crate) fn of(element: &Element, id: Option<TraceId>, at: Option<CaptureOffset>) -> Self {
        let span = element.span();
        let mut made = Self {
            size: u32::try_from(size_of::<Self>()).unwrap_or(0),
            trace_id: id.map_or(0, |id| id.get().into()),
            stream_start: span.start.0,
            stream_end: span.end.0,
            ..Self::default()
        };
        if let Some(at) = at {
            made.capture_offset = at.0;
            made.has |= TRACEWALK_HAS_CAPTURE_OFFSET;
        }
        match element {
            Element::Block(block) => made.block(block),
            Element::Event(Event { kind, .. }) => made.event(kind),
            Element::Gap(gap) => made.gap(gap),
            Element::Proof(proof) => {
                made.kind = tracewalk_kind::Proof;
                made.place(proof.at);
            }
        }
        made
    }

    fn block(&mut self, block: &Block) {
        self.kind = tracewalk_kind::Block;
        (self.start, self.end, self.last) = (block.start.get(), block.end.get(), block.last.get());
        (self.isa, self.instructions) = (isa(block.isa), block.instructions);
        self.ending = match block.ending {
            Ending::Interrupted => tracewalk_ending::Interrupted,
            Ending::ConditionFailed => tracewalk_ending::ConditionFailed,
            Ending::Branch { kind, taken, link, returns } => {
                (self.taken, self.link) = (taken.into(), link.into());
                self.returns = match returns {
                    None => 0,
                    Some(Return::Function) => 1,
                    Some(Return::Exception) => 2,
                };
                match kind {
                    BranchKind::Direct => tracewalk_ending::Direct,
                    BranchKind::Indirect => tracewalk_ending::Indirect,
                    BranchKind::Barrier => tracewalk_ending::Barrier,
                }
            }
        };
    }

    fn event(&mut self, kind: &EventKind) {
        self.kind = match *kind {
            EventKind::TraceOn(why) => {
                self.reason = begin(why) as u32;
                tracewalk_kind::TraceOn
            }
            EventKind::Exception { exception, preferred_return, handler } => {
                if let Some(exception) = exception {
                    (self.numbering, self.exception) = (numbering(exception), exception.number().into());
                    self.has |= TRACEWALK_HAS_EXCEPTION;
                }
                if let Some(address) = preferred_return {
                    self.return_address = address.get();
                    self.has |= TRACEWALK_HAS_RETURN_ADDRESS;
                }
                self.place(handler);
                tracewalk_kind::Exception
            }
            EventKind::ExceptionReturn => tracewalk_kind::ExceptionReturn,
            EventKind::Transaction(transaction) => {
                self.reason = of_transaction(transaction) as u32;
                tracewalk_kind::Transaction
            }
            EventKind::Context { context_id, vmid, privilege } => {
                if let Some(id) = context_id {
                    self.context_id = id.0;
                    self.has |= TRACEWALK_HAS_CONTEXT_ID;
                }
                if let Some(vmid) = vmid {
                    self.vmid = vmid.0;
                    self.has |= TRACEWALK_HAS_VMID;
                }
                if let Some(level) = privilege.level {
                    self.level = level.number().into();
                    self.has |= TRACEWALK_HAS_LEVEL;
                }
                self.security = security(privilege.security);
                tracewalk_kind::Context
            }
            EventKind::ClockChanged => tracewalk_kind::ClockChanged,
            EventKind::Timestamp(time) => self.number(tracewalk_kind::Timestamp, time),
            EventKind::Cycles(cycles) => self.number(tracewalk_kind::Cycles, cycles),
            EventKind::Trigger => tracewalk_kind::Trigger,
            EventKind::Events(events) => self.number(tracewalk_kind::Events, events.into()),
            EventKind::Instrumentation(written) => {
                self.level = written.level.number().into();
                self.has |= TRACEWALK_HAS_LEVEL;
                self.number(tracewalk_kind::Instrumentation, written.value)
            }
            EventKind::Data(transfer) => self.data(&transfer),
            _ => tracewalk_kind::Other,
        };
    }

    fn data(&mut self, transfer: &DataTransfer) -> tracewalk_kind {
        if let Some(at) = transfer.instruction {
            (self.start, self.isa, self.instructions) = (at.address.get(), isa(at.isa), 1);
        }
        self.at(transfer.address);
        if let TransferValue::Value(value) = transfer.value {
            self.number(tracewalk_kind::Data, value.into());
        }
        if let Some(store) = transfer.store {
            (self.store, self.data_bytes) = (store.into(), transfer.bytes.unwrap_or(0).into());
            self.has |= TRACEWALK_HAS_ACCESS;
        }
        tracewalk_kind::Data
    }

    fn gap(&mut self, gap: &Gap) {
        (self.kind, self.doubt) = (tracewalk_kind::Gap, gap.doubt.into());
        let (reason, at) = match gap.reason {
            GapReason::NoCode(at) => (tracewalk_gap::NoCode, Some(at)),
            GapReason::Undecodable(at, _) => (tracewalk_gap::Undecodable, Some(at)),
            GapReason::AddressUnknown => (tracewalk_gap::AddressUnknown, None),
            GapReason::Contradiction(contradiction) => {
                (tracewalk_gap::Contradiction, Some(contradiction.location()))
            }
            GapReason::TraceLost => (tracewalk_gap::TraceLost, None),
            GapReason::Unseen { from, instructions, .. } => {
                if let Some(instructions) = instructions {
                    self.number(tracewalk_kind::Gap, instructions);
                }
                (tracewalk_gap::Unseen, from)
            }
            _ => (tracewalk_gap::Other, None),
        };
        self.reason = reason as u32;
        self.place(at);
    }

    fn number(&mut self, kind: tracewalk_kind, value: u64) -> tracewalk_kind {
        self.value = value;
        self.has |= TRACEWALK_HAS_VALUE;
        kind
    }

    fn place(&mut self, at: Option<Location>) {
        if let Some(at) = at {
            self.isa = isa(at.isa);
        }
        self.at(at.map(|at| at.address));
    }

    fn at(&mut self, address: Option<Address>) {
        if let Some(address) = address {
            self.address = address.get();
            self.has |= TRACEWALK_HAS_ADDRESS;
        }
    }
}

const fn isa(isa: Isa) -> tracewalk_isa {
    match isa {
        Isa::A32 => tracewalk_isa::A32,
        Isa::T32 => tracewalk_isa::T32,
        Isa::T32EE => tracewalk_isa::T32ee,
        Isa::Jazelle => tracewalk_isa::Jazelle,
        Isa::A64 => tracewalk_isa::A64,
    }
}

const fn begin(why: BeginReason) -> tracewalk_begin {
    match why {
        BeginReason::Enabled => tracewalk_begin::Enabled,
        BeginReason::Overflow => tracewalk_begin::Overflow,
        BeginReason::DebugExit => tracewalk_begin::DebugExit,
        BeginReason::Synchronised => tracewalk_begin::Synchronised,
        _ => tracewalk_begin::Other,
    }
}

const fn of_transaction(transaction: Transaction) -> tracewalk_transaction {
    match transaction {
        Transaction::Started => tracewalk_transaction::Started,
        Transaction::UnderWay => tracewalk_transaction::UnderWay,
        Transaction::Committed => tracewalk_transaction::Committed,
        Transaction::Failed => tracewalk_transaction::Failed,
        _ => tracewalk_transaction::Other,
    }
}

const fn numbering(exception: Exception) -> tracewalk_numbering {
    match exception {
        Exception::M(_) => tracewalk_numbering::M,
        Exception::Ar(_) => tracewalk_numbering::Ar,
        Exception::ArType(_) => tracewalk_numbering::ArType,
        Exception::MType(_) => tracewalk_numbering::MType,
        _ => tracewalk_numbering::None,
    }
}

const fn security(state: SecurityState) -> tracewalk_security {
    match state {
        SecurityState::Secure => tracewalk_security::Secure,
        SecurityState::NonSecure => tracewalk_security::NonSecure,
        SecurityState::Root => tracewalk_security::Root,
        SecurityState::Realm => tracewalk_security::Realm,
        _ => tracewalk_security::Unknown,
    }
}
