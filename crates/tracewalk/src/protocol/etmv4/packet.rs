//! The packets of ETMv4 and ETE, in the order of their headers.

use crate::ids::{ContextId, Vmid};

use super::address::SentAddress;
use super::atoms::Atoms;

/// A packet, with compressed fields restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Packet {
    /// `00` eleven times and `80`: the next byte is a header.
    ASync,
    /// `00 03`: P0 elements that are not committed did not happen.
    Discard,
    /// `00 05`: trace was lost in the trace unit.
    Overflow,
    /// `00 07`: cached branch futures are void (ARMv8.1-M).
    BranchFutureFlush,
    /// `01`: the traced features, and the base for the compression of the next packets.
    TraceInfo(TraceInfo),
    /// `02`, `03`: the time.
    Timestamp(Timestamp),
    /// `04`: tracing begins after untraced execution.
    TraceOn,
    /// `05`: ARMv8-M returned to Secure code.
    FunctionReturn,
    /// `06`: an exception.
    Exception(Exception),
    /// `06` in ETE: the processor was reset.
    PeReset,
    /// `06` in ETE: a transaction failed.
    TransactionFailure,
    /// `07`: the last P0 instruction returned from an exception. ETE has no such packet.
    ExceptionReturn,
    /// `09`: a value that software wrote into the trace.
    Instrumentation(Instrumentation),
    /// `0A`: a transaction begins.
    TransactionStart,
    /// `0B`: the outermost transaction ended.
    TransactionCommit,
    /// `0C` to `1F`: cycles.
    CycleCount(CycleCount),
    /// `20` to `2C`: joins instruction trace to data trace.
    DataSynchronisation(DataSynchronisation),
    /// `2D`: this number of the oldest P0 elements is final.
    Commit(u64),
    /// `2E`, `2F`, `34` to `3F`: this number of the newest P0 elements did not happen.
    Cancel(Cancel),
    /// `30` to `33`: these atoms; then the newest atom is inverted.
    Mispredict(Option<Atoms>),
    /// `40` to `42`, `6C`, `6D`: conditional instructions.
    ConditionalInstruction(ConditionalInstruction),
    /// `43`: no outstanding results will come.
    ConditionalFlush,
    /// `44` to `5F`, `68` to `6B`, `6E`, `6F`: the results of conditional instructions.
    ConditionalResult(ConditionalResult),
    /// `70`: padding.
    Ignore,
    /// `71` to `7F`: the events that occurred, one bit for each of four.
    Event(u8),
    /// `80`, `81`: the context of the next elements; `None` if unchanged.
    Context(Option<Context>),
    /// `82` to `86`, `90` to `9E`: the place where execution continues.
    Address(AddressPacket),
    /// `88`: the next timestamp belongs here.
    TimestampMarker,
    /// `A0` to `AF`: instructions were executed on an unknown path.
    Q(Q),
    /// `B0` to `B9`: execution went straight to this instruction, which was executed or taken.
    SourceAddress(SentAddress),
    /// `C0` to `FF`: P0 instructions that were passed.
    Atom(Atoms),
}

/// A trace info packet. Sections that are not sent are 0 or `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceInfo {
    /// INFO: the traced features.
    pub info: u64,
    /// KEY: the next P0 key, of data trace.
    pub key: Option<u64>,
    /// SPEC: the number of P0 elements before this packet that are not committed.
    pub speculation: u64,
    /// CYCT: the base that is added to every cycle count.
    pub threshold: u64,
    /// ETE: the commit window.
    pub commit_window: Option<u64>,
}

impl TraceInfo {
    /// ETE: whether a transaction is under way.
    #[must_use]
    pub const fn is_in_transaction(&self) -> bool {
        const IN_TRANSACTION: u64 = 0b0100_0000;
        self.info & IN_TRANSACTION != 0
    }
}

/// A timestamp packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    /// The time; 0 if the unit did not know it.
    pub value: u64,
    /// Cycles from the last cycle count to the timestamp.
    pub cycles: Option<u64>,
}

/// An exception packet. An address follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Exception {
    /// TYPE, in the numbering of the processor's profile.
    pub number: u16,
    /// The meaning of the address.
    pub address: AddressInterpretation,
    /// P: a fault is pending (M profile).
    pub fault_pending: bool,
}

/// E1 and E0 of an exception packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum AddressInterpretation {
    /// 00, which is reserved.
    Reserved0,
    /// 01: the preferred return address; instructions up to there were executed.
    Return,
    /// 10: the target of the branch before, which is also the preferred return address.
    TargetAndReturn,
    /// 11, which is reserved.
    Reserved3,
}

/// An instrumentation packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instrumentation {
    /// The exception level that wrote the value.
    pub exception_level: u8,
    /// The value.
    pub value: u64,
}

/// A cycle count packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleCount {
    /// The format, 1 to 3.
    pub format: u8,
    /// The number of P0 elements that are final, if cycle counts commit.
    pub commit: Option<u64>,
    /// Cycles since the last count, with the threshold; `None` if the unit did not know them.
    pub cycles: Option<u64>,
}

/// A data synchronisation marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataSynchronisation {
    /// `20` to `27`.
    Numbered(u8),
    /// `28` to `2C`.
    Unnumbered(u8),
}

/// A cancel packet: first its atoms, then the cancellation, then the newest atom is inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// The format, 1 to 3.
    pub format: u8,
    /// Atoms before the cancellation.
    pub atoms: Option<Atoms>,
    /// The number of P0 elements that did not happen.
    pub count: u64,
    /// Whether the newest remaining atom is inverted.
    pub mispredict: bool,
}

/// A packet of conditional instructions. The consumer counts the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionalInstruction {
    /// Format 1: an instruction with this key.
    Key(u64),
    /// Format 2, `40`: an instruction with the next key.
    Next,
    /// Format 2, `41`: an instruction with the same key again.
    Same,
    /// Format 2, `42`: an instruction with the next key, and another with the same.
    NextAndSame,
    /// Format 3: instructions with successive keys, and one more with the last key if `and_same`.
    Successive {
        /// The number of keys, at most 63.
        count: u8,
        /// Whether there is one more.
        and_same: bool,
    },
}

/// A packet of conditional results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionalResult {
    /// Format 1: one result by its key, or two.
    Keys(KeyedResult, Option<KeyedResult>),
    /// Format 2: a result for the next key, or the one after it.
    Token {
        /// The advance of the key: 1 or 2.
        advance: u8,
        /// The result, 0 to 2.
        token: u8,
    },
    /// Format 3: results for the next keys, in 12 bits.
    Tokens(u16),
    /// Format 4: a result for the previous key again, 0 to 2.
    Previous(u8),
}

/// A conditional result with its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyedResult {
    /// The key.
    pub key: u64,
    /// Pass or fail, or the flags.
    pub result: u8,
    /// CI.
    pub ci: bool,
}

/// The context of instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Context {
    /// EL, 0 to 3.
    pub exception_level: u8,
    /// SF: words are A64, not A32.
    pub is_64_bit: bool,
    /// NS.
    pub non_secure: bool,
    /// NSE: with NS Realm, else Root.
    pub non_secure_extension: bool,
    /// The virtual machine, if it was sent.
    pub vmid: Option<Vmid>,
    /// The context ID, if it was sent.
    pub context_id: Option<ContextId>,
}

/// An address packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPacket {
    /// The address.
    pub sent: SentAddress,
    /// The context there, if it was sent.
    pub context: Option<Context>,
}

/// A Q packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Q {
    /// The place where execution continues; if `None`, an address packet follows.
    pub sent: Option<SentAddress>,
    /// The number of instructions executed, if the unit states it.
    pub count: Option<u64>,
}

impl AddressInterpretation {
    pub(super) const fn from_bits(e1: bool, e0: bool) -> Self {
        match (e1, e0) {
            (false, false) => Self::Reserved0,
            (false, true) => Self::Return,
            (true, false) => Self::TargetAndReturn,
            (true, true) => Self::Reserved3,
        }
    }

    /// E1:E0.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::Reserved0 => 0b00,
            Self::Return => 0b01,
            Self::TargetAndReturn => 0b10,
            Self::Reserved3 => 0b11,
        }
    }
}

/// The headers of single packets, and the first headers of ranges.
pub(super) mod header {
    pub(in super::super) const EXTENSION: u8 = 0x00;
    pub(in super::super) const TRACE_INFO: u8 = 0x01;
    pub(in super::super) const TIMESTAMP: u8 = 0x02;
    pub(in super::super) const TIMESTAMP_WITH_CYCLES: u8 = 0x03;
    pub(in super::super) const TRACE_ON: u8 = 0x04;
    pub(in super::super) const FUNCTION_RETURN: u8 = 0x05;
    pub(in super::super) const EXCEPTION: u8 = 0x06;
    pub(in super::super) const EXCEPTION_RETURN: u8 = 0x07;
    pub(in super::super) const INSTRUMENTATION: u8 = 0x09;
    pub(in super::super) const TRANSACTION_START: u8 = 0x0a;
    pub(in super::super) const TRANSACTION_COMMIT: u8 = 0x0b;
    /// Format 2; bit 0 is F.
    pub(in super::super) const CYCLE_COUNT_2: u8 = 0x0c;
    /// Format 1; bit 0 is U.
    pub(in super::super) const CYCLE_COUNT_1: u8 = 0x0e;
    /// Format 3; bits 3:2 are the commit count, bits 1:0 the cycles.
    pub(in super::super) const CYCLE_COUNT_3: u8 = 0x10;
    pub(in super::super) const DATA_SYNCHRONISATION: u8 = 0x20;
    pub(in super::super) const UNNUMBERED: u8 = 0x28;
    pub(in super::super) const COMMIT: u8 = 0x2d;
    /// Format 1; bit 0 mispredicts as well.
    pub(in super::super) const CANCEL_1: u8 = 0x2e;
    /// Bits 1:0 are the atoms before.
    pub(in super::super) const MISPREDICT: u8 = 0x30;
    pub(in super::super) const CANCEL_2: u8 = 0x34;
    /// Format 3; bits 2:1 and 2 are the count, bit 0 is an E atom before.
    pub(in super::super) const CANCEL_3: u8 = 0x38;
    pub(in super::super) const CONDITIONAL_INSTRUCTION_2: u8 = 0x40;
    pub(in super::super) const CONDITIONAL_FLUSH: u8 = 0x43;
    pub(in super::super) const CONDITIONAL_RESULT_4: u8 = 0x44;
    /// Format 2; bit 2 advances the key by 2, bits 1:0 are the result.
    pub(in super::super) const CONDITIONAL_RESULT_2: u8 = 0x48;
    /// Format 3; bits 3:0 are the highest of 12.
    pub(in super::super) const CONDITIONAL_RESULT_3: u8 = 0x50;
    /// Format 1 with two results; bits 1 and 0 are CI of the second and the first.
    pub(in super::super) const CONDITIONAL_RESULT_1_TWO: u8 = 0x68;
    pub(in super::super) const CONDITIONAL_INSTRUCTION_1: u8 = 0x6c;
    pub(in super::super) const CONDITIONAL_INSTRUCTION_3: u8 = 0x6d;
    /// Format 1 with one result; bit 0 is CI.
    pub(in super::super) const CONDITIONAL_RESULT_1_ONE: u8 = 0x6e;
    /// With any of the lowest four bits set, an event packet.
    pub(in super::super) const IGNORE: u8 = 0x70;
    pub(in super::super) const SAME_CONTEXT: u8 = 0x80;
    pub(in super::super) const CONTEXT: u8 = 0x81;
    pub(in super::super) const TIMESTAMP_MARKER: u8 = 0x88;
    /// The kinds of address packets: the base of their headers, to which each form adds its number.
    pub(in super::super) const ADDRESS_WITH_CONTEXT: u8 = 0x80;
    pub(in super::super) const ADDRESS_EXACT: u8 = 0x90;
    pub(in super::super) const Q: u8 = 0xa0;
    pub(in super::super) const SOURCE_ADDRESS: u8 = 0xb0;
}

/// The second byte of an extension packet; 00 there begins an A-sync.
pub(super) mod extension {
    pub(in super::super) const A_SYNC: u8 = 0x00;
    pub(in super::super) const DISCARD: u8 = 0x03;
    pub(in super::super) const OVERFLOW: u8 = 0x05;
    pub(in super::super) const BRANCH_FUTURE_FLUSH: u8 = 0x07;
}

/// Exception packets: the byte after the header, and the one after that.
pub(super) mod exception_byte {
    pub(in super::super) const CONTINUES: u8 = 0b1000_0000;
    pub(in super::super) const E1: u8 = 0b0100_0000;
    pub(in super::super) const TYPE: u8 = 0b0011_1110;
    pub(in super::super) const TYPE_SHIFT: u32 = 1;
    pub(in super::super) const E0: u8 = 0b0000_0001;
    pub(in super::super) const SECOND_RESERVED: u8 = 0b1100_0000;
    pub(in super::super) const FAULT_PENDING: u8 = 0b0010_0000;
    pub(in super::super) const SECOND_TYPE: u8 = 0b0001_1111;
    pub(in super::super) const SECOND_TYPE_SHIFT: u32 = 5;
    /// ETE: TYPE of a reset and of a failed transaction.
    pub(in super::super) const RESET: u8 = 0;
    pub(in super::super) const FAILURE: u8 = 0x18;
}

/// The context byte.
pub(super) mod context_byte {
    pub(in super::super) const EXCEPTION_LEVEL: u8 = 0b0000_0011;
    pub(in super::super) const NON_SECURE_EXTENSION: u8 = 0b0000_1000;
    pub(in super::super) const IS_64_BIT: u8 = 0b0001_0000;
    pub(in super::super) const NON_SECURE: u8 = 0b0010_0000;
    pub(in super::super) const HAS_VMID: u8 = 0b0100_0000;
    pub(in super::super) const HAS_CONTEXT_ID: u8 = 0b1000_0000;
}

/// Trace info: the control byte.
pub(super) mod control {
    pub(in super::super) const INFO: u8 = 1 << 0;
    pub(in super::super) const KEY: u8 = 1 << 1;
    pub(in super::super) const SPECULATION: u8 = 1 << 2;
    pub(in super::super) const THRESHOLD: u8 = 1 << 3;
    pub(in super::super) const COMMIT_WINDOW: u8 = 1 << 4;
    pub(in super::super) const CONTINUES: u8 = 1 << 7;
}
