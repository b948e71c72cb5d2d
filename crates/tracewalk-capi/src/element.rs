//! The core's elements → C's.

use std::ffi::{c_int, c_void};

use tracewalk::directive::TransferValue;
use tracewalk::flow::{Block, BranchKind, DataTransfer, Element, Ending, Event, EventKind, Gap, GapReason};
use tracewalk::ids::{Address, ContextId, Location, TraceId, Vmid};
use tracewalk::span::CaptureOffset;

use crate::boundary::size_field;
use crate::vocabulary::{
    begin, isa, numbering, of_transaction, returns, security, tracewalk_ending, tracewalk_gap, tracewalk_isa,
    tracewalk_kind, tracewalk_numbering, tracewalk_returns, tracewalk_security,
};

/// `address` is valid.
pub const TRACEWALK_HAS_ADDRESS: u32 = 1;
/// `return_address` is valid.
pub const TRACEWALK_HAS_RETURN_ADDRESS: u32 = 2;
/// `exception` and `numbering` are valid.
pub const TRACEWALK_HAS_EXCEPTION: u32 = 4;
/// `context_id` is valid.
pub const TRACEWALK_HAS_CONTEXT_ID: u32 = 8;
/// `vmid` is valid.
pub const TRACEWALK_HAS_VMID: u32 = 16;
/// `level` is valid.
pub const TRACEWALK_HAS_LEVEL: u32 = 32;
/// `value` is valid.
pub const TRACEWALK_HAS_VALUE: u32 = 64;
/// `capture_offset` is valid.
pub const TRACEWALK_HAS_CAPTURE_OFFSET: u32 = 128;
/// `data_bytes` and `store` are valid.
pub const TRACEWALK_HAS_ACCESS: u32 = 256;

/// One piece of program flow. Fields that `kind` does not name are 0.
///
/// Later versions add fields at the end: the library fills in the first `size` bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct tracewalk_element {
    /// The number of bytes of this structure that the library fills in.
    pub size: u32,
    /// The kind.
    pub kind: tracewalk_kind,
    /// The optional fields that are valid: `TRACEWALK_HAS_…`.
    pub has: u32,
    /// The source's trace ID; 0 for a source without one.
    pub trace_id: u32,
    /// The first byte that proves the element, counted in the source's own bytes.
    pub stream_start: u64,
    /// The byte after the last one that proves the element.
    pub stream_end: u64,
    /// The offset of the first byte in the capture's file.
    pub capture_offset: u64,
    /// The first instruction.
    pub start: u64,
    /// The address after the last instruction.
    pub end: u64,
    /// The last instruction.
    pub last: u64,
    /// An address in the program's memory.
    pub address: u64,
    /// The address that the exception would return to.
    pub return_address: u64,
    /// A number: a time, cycles, a value.
    pub value: u64,
    /// The number of instructions.
    pub instructions: u32,
    /// The instruction set.
    pub isa: tracewalk_isa,
    /// How a block ends.
    pub ending: tracewalk_ending,
    /// 1 if the branch was taken (a barrier: executed).
    pub taken: u32,
    /// 1 if the branch writes the link register.
    pub link: u32,
    /// The kind of return, judged by the branch's form.
    pub returns: tracewalk_returns,
    /// The reason: see `kind`.
    pub reason: u32,
    /// 1 if elements since the last proof may be wrong.
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
    /// The number of accessed bytes of memory; 0 if unknown.
    pub data_bytes: u32,
    /// 1 for a store.
    pub store: u32,
}

/// Receives an element, which is valid only during the call. A result other than 0 ends the work. The callback must not
/// use the handle that calls it, and must not leave by an exception or `longjmp`.
pub type tracewalk_on_element =
    Option<unsafe extern "C" fn(user: *mut c_void, element: *const tracewalk_element) -> c_int>;

/// The size of the structure in the first version of the ABI.
pub(crate) const FIRST_SIZE: usize = 152;
const _: () = assert!(
    size_of::<tracewalk_element>() == FIRST_SIZE,
    "fields are added at the end, and no other changes"
);

impl tracewalk_element {
    /// The element of a source, and its place in the capture.
    pub(crate) fn of(element: &Element, id: Option<TraceId>, at: Option<CaptureOffset>) -> Self {
        let span = element.span();
        let mut made = Self {
            size: size_field::<Self>(),
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

    /// The context ID and the VMID of an element from the program; a null pointer has none. Other fields are not read,
    /// so that the program may set these alone.
    ///
    /// # Safety
    ///
    /// `element` is null, or an element can be read there.
    pub(crate) unsafe fn context(element: *const Self) -> (Option<ContextId>, Option<Vmid>) {
        if element.is_null() || !element.is_aligned() {
            return (None, None);
        }
        // SAFETY: `element` is neither null nor misaligned, and the caller promises the rest; any bytes are numbers.
        let (has, context_id, vmid) = unsafe {
            (
                (&raw const (*element).has).read(),
                (&raw const (*element).context_id).read(),
                (&raw const (*element).vmid).read(),
            )
        };
        let stated = |flag, value| (has & flag != 0).then_some(value);
        (
            stated(TRACEWALK_HAS_CONTEXT_ID, context_id).map(ContextId),
            stated(TRACEWALK_HAS_VMID, vmid).map(Vmid),
        )
    }

    fn block(&mut self, block: &Block) {
        self.kind = tracewalk_kind::Block;
        (self.start, self.end, self.last) = (block.start.get(), block.end.get(), block.last.get());
        (self.isa, self.instructions) = (isa(block.isa), block.instructions);
        self.ending = match block.ending {
            Ending::Interrupted => tracewalk_ending::Interrupted,
            Ending::ConditionFailed => tracewalk_ending::ConditionFailed,
            Ending::Branch { kind, taken, link, returns: from } => {
                (self.taken, self.link, self.returns) = (taken.into(), link.into(), returns(from));
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
