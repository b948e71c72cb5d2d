//! The packets of ETMv3, in the order of table 7.1 of IHI 0014Q.

use crate::ids::{Address, ContextId, Location, Vmid};
use crate::protocol::SecurityBits;
use crate::protocol::{Describe, Field, ISyncReason};

use super::exception::BranchException;

/// A packet, with compressed fields restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// `Cxxxxxx1`: the target of a branch, and an exception.
    Branch(Branch),
    /// `00000000` …: the next byte is a header.
    ASync,
    /// `00000100`: cycles before tracing began; 0 if the counter overflowed.
    CycleCount(u32),
    /// `00001000`, and `01110000` with a cycle count: the state of the processor.
    ISync(ISync),
    /// `00001100`: the trigger condition occurred.
    Trigger,
    /// `0TT0SS00`: the value for an earlier placeholder.
    OutOfOrderData {
        /// The placeholder's tag.
        tag: Tag,
        /// The value, high zero bytes restored; absent if values are not traced.
        value: Option<u32>,
    },
    /// `01010000`: a store-exclusive that did not store.
    StoreFailed,
    /// `01A1TT00`: a transfer whose value comes later.
    OutOfOrderPlaceholder {
        /// The tag of the packet with the value.
        tag: Tag,
        /// The address.
        address: Option<DataAddress>,
    },
    /// `00A0SS10`: a transfer.
    NormalData {
        /// The address.
        address: Option<DataAddress>,
        /// The value, high zero bytes restored; absent if values are not traced.
        value: Option<u32>,
    },
    /// `01100010`: data was dropped to keep the FIFO from overflowing.
    DataSuppressed,
    /// `011A1010`: a transfer of a load or store multiple that is not traced.
    ValueNotTraced {
        /// The address.
        address: Option<DataAddress>,
    },
    /// `00111100`: a new virtual machine.
    Vmid(Vmid),
    /// `01000R10`: the time.
    Timestamp {
        /// The value, Gray code resolved; 0 if the unit did not know it.
        value: u64,
        /// R: whether the processor's clock speed changed since the last timestamp.
        clock_changed: bool,
    },
    /// `01100110`: padding.
    Ignore,
    /// `01101110`: a new context ID.
    ContextId(ContextId),
    /// `01110110`: the last instruction returned from an exception.
    ExceptionExit,
    /// `01111110`: an exception was taken; the data packets after it are the automatic push (ARMv7-M).
    ExceptionEntry,
    /// `1xxxxxx0`: instructions that were passed.
    PHeader(PHeader),
}

/// A branch packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The target; `None` while the base of the compressed address is unknown.
    pub target: Option<Location>,
    /// Whether all five address bytes were sent, so that the packet itself states the instruction set.
    pub states_isa: bool,
    /// The exception information, if any.
    pub exception: Option<BranchException>,
}

/// An I-sync packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ISync {
    /// Why the packet was sent.
    pub reason: ISyncReason,
    /// The next instruction; `None` if only data is traced.
    pub location: Option<Location>,
    /// The load or store still in progress, which this packet reports as executed.
    pub in_progress: Option<Location>,
    /// NS and Hyp.
    pub security: SecurityBits,
    /// The context ID, if it is traced.
    pub context_id: Option<ContextId>,
    /// Cycles before tracing began, if the packet counts them.
    pub cycles: Option<u32>,
}

/// A P-header, as its byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PHeader {
    byte: u8,
    cycle_accurate: bool,
}

/// An atom of a P-header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Atom {
    /// An instruction that passed its condition.
    E,
    /// An instruction whose condition failed.
    N,
    /// A cycle.
    W,
}

/// The tag of an out-of-order transfer, 1 to 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag(u8);

/// The address of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataAddress {
    /// The address, restored from the last data address.
    pub address: Address,
    /// Whether the value is big-endian; `None` unless all five bytes were sent. IHI 0014Q is not clear on the
    /// bit; this reading is OpenCSD's.
    pub big_endian: Option<bool>,
}

impl Tag {
    /// The tag with this number; `None` for any but 1, 2 and 3.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        match number {
            1..=3 => Some(Self(number)),
            _ => None,
        }
    }

    /// The number, 1 to 3.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// The most atoms in a P-header: fifteen E and one N, or eight W and an E.
const MOST_ATOMS: usize = 16;

impl PHeader {
    /// The P-header with this byte; `None` if the byte is no P-header, or a reserved one.
    #[must_use]
    pub const fn new(byte: u8, cycle_accurate: bool) -> Option<Self> {
        let defined = if cycle_accurate {
            // Formats 0 and 1, 2, 3, 4.
            byte & 0b1010_0011 == 0b1000_0000
                || byte & 0b1111_0011 == 0b1000_0010
                || byte & 0b1010_0011 == 0b1010_0000
                || byte & 0b1111_1011 == 0b1001_0010
        } else {
            // Formats 1 and 2.
            byte & 0b1000_0011 == 0b1000_0000 || byte & 0b1111_0011 == 0b1000_0010
        };
        if defined { Some(Self { byte, cycle_accurate }) } else { None }
    }

    /// The byte.
    #[must_use]
    pub const fn byte(self) -> u8 {
        self.byte
    }

    /// With cycle accuracy, format 1: the number of E atoms, each after a cycle, and whether a cycle and an N
    /// follow.
    pub(super) const fn steps(self) -> Option<(u8, bool)> {
        // A header with neither is format 0.
        let is_format_1 = self.byte & 0b1010_0011 == 0b1000_0000 && self.byte != 0b1000_0000;
        if !self.cycle_accurate || !is_format_1 {
            return None;
        }
        Some((self.byte >> 2 & 0b111, self.byte & 0b0100_0000 != 0))
    }

    /// With cycle accuracy, format 3: the number of cycles, and whether an E follows.
    pub(super) const fn wait(self) -> Option<(u8, bool)> {
        if !self.cycle_accurate || self.byte & 0b1010_0011 != 0b1010_0000 {
            return None;
        }
        Some(((self.byte >> 2 & 0b111) + 1, self.byte & 0b0100_0000 != 0))
    }

    /// Without cycle accuracy: the number of E atoms, and whether an N follows. `None` for format 2, whose
    /// atoms may come in another order, and with cycle accuracy.
    #[must_use]
    pub const fn run(self) -> Option<(u8, bool)> {
        if self.cycle_accurate || self.byte & 0b10 != 0 {
            return None;
        }
        Some((self.byte >> 2 & 0b1111, self.byte & 0b0100_0000 != 0))
    }

    /// The atoms, in execution order.
    pub fn atoms(self) -> impl Iterator<Item = Atom> {
        let mut atoms = [Atom::W; MOST_ATOMS];
        let mut count = 0;
        let mut add = |atom| {
            if let Some(place) = atoms.get_mut(count) {
                *place = atom;
                count += 1;
            }
        };
        let format_2 = [en(self.byte & 0b1000 != 0), en(self.byte & 0b0100 != 0)];
        match (self.cycle_accurate, self.byte & 0b0010_0011, self.byte & 0b0001_0000) {
            (false, bits, _) if bits & 0b10 == 0 => {
                (0..self.byte >> 2 & 0b1111).for_each(|_| add(Atom::E));
                (0..self.byte >> 6 & 1).for_each(|_| add(Atom::N));
            }
            (false, ..) => format_2.into_iter().for_each(add),
            // Format 0, deprecated: one cycle.
            (true, 0b00, _) if self.byte == 0b1000_0000 => add(Atom::W),
            (true, 0b00, _) => {
                (0..self.byte >> 2 & 0b111).for_each(|_| [Atom::W, Atom::E].into_iter().for_each(&mut add));
                (0..self.byte >> 6 & 1).for_each(|_| [Atom::W, Atom::N].into_iter().for_each(&mut add));
            }
            (true, 0b0010_0000, _) => {
                (0..=self.byte >> 2 & 0b111).for_each(|_| add(Atom::W));
                (0..self.byte >> 6 & 1).for_each(|_| add(Atom::E));
            }
            (true, _, 0) => [Atom::W, format_2[0], format_2[1]].into_iter().for_each(add),
            (true, ..) => add(en(self.byte & 0b0100 != 0)),
        }
        atoms.into_iter().take(count)
    }
}

const fn en(failed: bool) -> Atom {
    if failed { Atom::N } else { Atom::E }
}

impl Describe for Packet {
    fn name(&self) -> &'static str {
        match self {
            Self::Branch(_) => "branch",
            Self::ASync => "a_sync",
            Self::CycleCount(_) => "cycle_count",
            Self::ISync(_) => "i_sync",
            Self::Trigger => "trigger",
            Self::OutOfOrderData { .. } => "ooo_data",
            Self::StoreFailed => "store_failed",
            Self::OutOfOrderPlaceholder { .. } => "ooo_placeholder",
            Self::NormalData { .. } => "normal_data",
            Self::DataSuppressed => "data_suppressed",
            Self::ValueNotTraced { .. } => "value_not_traced",
            Self::Vmid(_) => "vmid",
            Self::Timestamp { .. } => "timestamp",
            Self::Ignore => "ignore",
            Self::ContextId(_) => "context_id",
            Self::ExceptionExit => "exception_return",
            Self::ExceptionEntry => "exception_entry",
            Self::PHeader(_) => "p_header",
        }
    }

    fn fields(&self, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
        match self {
            Self::Branch(branch) => branch.fields(visit),
            Self::ISync(i_sync) => i_sync.fields(visit),
            Self::CycleCount(cycles) => visit("cycles", Field::Number(u64::from(*cycles))),
            Self::OutOfOrderData { tag, value } => {
                visit("tag", Field::Number(u64::from(tag.0)));
                value_field(*value, visit);
            }
            Self::OutOfOrderPlaceholder { tag, address } => {
                visit("tag", Field::Number(u64::from(tag.0)));
                data_address_fields(*address, visit);
            }
            Self::NormalData { address, value } => {
                data_address_fields(*address, visit);
                value_field(*value, visit);
            }
            Self::ValueNotTraced { address } => data_address_fields(*address, visit),
            Self::Vmid(vmid) => visit("vmid", Field::Number(u64::from(vmid.0))),
            Self::Timestamp { value, clock_changed } => {
                visit("timestamp", Field::Number(*value));
                if *clock_changed {
                    visit("clock_changed", Field::Number(1));
                }
            }
            Self::ContextId(context_id) => visit("context_id", Field::Number(u64::from(context_id.0))),
            Self::PHeader(p_header) => {
                let mut letters = [0; MOST_ATOMS];
                let mut count = 0;
                for (place, atom) in letters.iter_mut().zip(p_header.atoms()) {
                    *place = atom.letter();
                    count += 1;
                }
                visit("atoms", Field::Text(core::str::from_utf8(&letters[..count]).unwrap_or_default()));
            }
            Self::ASync
            | Self::Trigger
            | Self::StoreFailed
            | Self::DataSuppressed
            | Self::Ignore
            | Self::ExceptionExit
            | Self::ExceptionEntry => {}
        }
    }
}

impl Atom {
    const fn letter(self) -> u8 {
        match self {
            Self::E => b'E',
            Self::N => b'N',
            Self::W => b'W',
        }
    }
}

impl Branch {
    fn fields(&self, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
        if let Some(target) = self.target {
            visit("addr", Field::Address(target.address));
            if self.states_isa {
                visit("isa", Field::Text(target.isa.name()));
            }
        }
        match self.exception {
            Some(BranchException::Information(information)) => {
                visit("exception", Field::Number(u64::from(information.code)));
                visit("cancel", Field::Number(u64::from(information.cancel)));
                if information.resume != 0 {
                    visit("resume", Field::Number(u64::from(information.resume)));
                }
                visit("ns", Field::Number(u64::from(information.security.non_secure)));
                visit("hyp", Field::Number(u64::from(information.security.hypervisor)));
            }
            Some(BranchException::Deprecated { code, cancel }) => {
                visit("eee", Field::Number(u64::from(code)));
                visit("cancel", Field::Number(u64::from(cancel)));
            }
            None => {}
        }
    }
}

impl ISync {
    fn fields(&self, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
        visit("reason", Field::Number(u64::from(self.reason.bits())));
        if let Some(location) = self.location {
            visit("addr", Field::Address(location.address));
            visit("isa", Field::Text(location.isa.name()));
        }
        visit("ns", Field::Number(u64::from(self.security.non_secure)));
        visit("hyp", Field::Number(u64::from(self.security.hypervisor)));
        if let Some(context_id) = self.context_id {
            visit("context_id", Field::Number(u64::from(context_id.0)));
        }
        if let Some(cycles) = self.cycles {
            visit("cycles", Field::Number(u64::from(cycles)));
        }
        if let Some(in_progress) = self.in_progress {
            visit("lsip_addr", Field::Address(in_progress.address));
        }
    }
}

fn data_address_fields(address: Option<DataAddress>, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
    if let Some(DataAddress { address, big_endian }) = address {
        visit("addr", Field::Address(address));
        if let Some(big_endian) = big_endian {
            visit("big_endian", Field::Number(u64::from(big_endian)));
        }
    }
}

fn value_field(value: Option<u32>, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
    if let Some(value) = value {
        visit("value", Field::Number(u64::from(value)));
    }
}

/// Header bytes (table 7.1).
pub(super) mod header {
    /// Any odd header is a branch packet's first address byte.
    pub(crate) const BRANCH: u8 = 0b0000_0001;
    /// Any even header with this bit is a P-header.
    pub(crate) const P_HEADER: u8 = 0b1000_0000;
    pub(crate) const A_SYNC: u8 = 0b0000_0000;
    pub(crate) const CYCLE_COUNT: u8 = 0b0000_0100;
    pub(crate) const I_SYNC: u8 = 0b0000_1000;
    pub(crate) const I_SYNC_WITH_CYCLES: u8 = 0b0111_0000;
    pub(crate) const TRIGGER: u8 = 0b0000_1100;
    pub(crate) const STORE_FAILED: u8 = 0b0101_0000;
    pub(crate) const DATA_SUPPRESSED: u8 = 0b0110_0010;
    pub(crate) const VALUE_NOT_TRACED: u8 = 0b0110_1010;
    pub(crate) const VALUE_NOT_TRACED_WITH_ADDRESS: u8 = 0b0111_1010;
    pub(crate) const VMID: u8 = 0b0011_1100;
    pub(crate) const TIMESTAMP: u8 = 0b0100_0010;
    pub(crate) const TIMESTAMP_CLOCK_CHANGED: u8 = 0b0100_0110;
    pub(crate) const IGNORE: u8 = 0b0110_0110;
    pub(crate) const CONTEXT_ID: u8 = 0b0110_1110;
    pub(crate) const EXCEPTION_EXIT: u8 = 0b0111_0110;
    pub(crate) const EXCEPTION_ENTRY: u8 = 0b0111_1110;

    /// The name of the packet that begins with `byte`, among those of more than one byte.
    pub(crate) const fn packet_name(byte: u8) -> &'static str {
        match byte {
            _ if byte & BRANCH != 0 => "branch",
            A_SYNC => "a_sync",
            CYCLE_COUNT => "cycle_count",
            I_SYNC | I_SYNC_WITH_CYCLES => "i_sync",
            VMID => "vmid",
            TIMESTAMP | TIMESTAMP_CLOCK_CHANGED => "timestamp",
            CONTEXT_ID => "context_id",
            _ => "data",
        }
    }
}

/// The I-sync packet's information byte.
pub(super) mod information {
    pub(crate) const ALWAYS_SET: u8 = 0b0000_0001;
    pub(crate) const HYPERVISOR: u8 = 0b0000_0010;
    pub(crate) const ALTERNATIVE_ISA: u8 = 0b0000_0100;
    pub(crate) const NON_SECURE: u8 = 0b0000_1000;
    pub(crate) const JAZELLE: u8 = 0b0001_0000;
    /// The reason is in bits 6:5.
    pub(crate) const REASON_SHIFT: u32 = 5;
    pub(crate) const LOAD_STORE_IN_PROGRESS: u8 = 0b1000_0000;
}

/// Exception information bytes (figure 7.3 and table 7.9).
pub(super) mod information_bytes {
    /// Another exception information byte follows: in bytes 0 and 1.
    pub(crate) const CONTINUES: u8 = 0b1000_0000;
    /// Set in byte 2, clear in byte 1.
    pub(crate) const IS_BYTE_2: u8 = 0b0100_0000;
    /// Byte 0.
    pub(crate) const ALTERNATIVE_ISA: u8 = 0b0100_0000;
    /// Byte 0.
    pub(crate) const CANCEL: u8 = 0b0010_0000;
    /// Byte 0.
    pub(crate) const NON_SECURE: u8 = 0b0000_0001;
    /// Byte 1.
    pub(crate) const HYPERVISOR: u8 = 0b0010_0000;
}
