//! The packets of PFT, in the order of section 4.3 of IHI 0035B.

use crate::ids::{ContextId, Exception, Location, Vmid};
use crate::protocol::SecurityBits;
use crate::protocol::{Describe, Field, ISyncReason};

/// A packet, with compressed fields restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// `00000000` …: the next byte is a header.
    ASync,
    /// `00001000`: the state of the processor, for the next instruction.
    ISync(ISync),
    /// `1xxxxxx0`: waypoints that were passed.
    Atom(Atom),
    /// `xxxxxxx1`: a waypoint that was passed, with its target, or an exception.
    Branch(Branch),
    /// `01110010`: how far execution came without passing a waypoint.
    WaypointUpdate(WaypointUpdate),
    /// `01101110`: a new context ID.
    ContextId(ContextId),
    /// `00001100`: the trigger condition occurred.
    Trigger,
    /// `01100110`: padding.
    Ignore,
    /// `01110110`: the last waypoint returned from an exception.
    ExceptionReturn,
    /// `01000R10`: the time.
    Timestamp(Timestamp),
    /// `00111100`: a new virtual machine.
    Vmid(Vmid),
}

/// The headers. Branches and atoms take all bytes that match their patterns.
pub(super) mod header {
    pub(in super::super) const A_SYNC: u8 = 0b0000_0000;
    pub(in super::super) const I_SYNC: u8 = 0b0000_1000;
    pub(in super::super) const TRIGGER: u8 = 0b0000_1100;
    pub(in super::super) const VMID: u8 = 0b0011_1100;
    pub(in super::super) const TIMESTAMP: u8 = 0b0100_0010;
    pub(in super::super) const TIMESTAMP_CLOCK_CHANGED: u8 = 0b0100_0110;
    pub(in super::super) const IGNORE: u8 = 0b0110_0110;
    pub(in super::super) const CONTEXT_ID: u8 = 0b0110_1110;
    pub(in super::super) const WAYPOINT_UPDATE: u8 = 0b0111_0010;
    pub(in super::super) const EXCEPTION_RETURN: u8 = 0b0111_0110;

    /// Set in the first byte of a branch packet, and in no other header.
    pub(in super::super) const BRANCH: u8 = 0b0000_0001;
    /// Set in the header of an atom packet, and in no other header but branches'.
    pub(in super::super) const ATOM: u8 = 0b1000_0000;
}

/// I-sync: the information byte.
pub(super) mod i_sync_information {
    pub(in super::super) const REASON_SHIFT: u32 = 5;
    pub(in super::super) const NON_SECURE: u8 = 0b0000_1000;
    pub(in super::super) const ALTERNATIVE_ISA: u8 = 0b0000_0100;
    pub(in super::super) const HYPERVISOR: u8 = 0b0000_0010;
    /// Bits 7, 4 and 0, and their fixed values.
    pub(in super::super) const FIXED_MASK: u8 = 0b1001_0001;
    pub(in super::super) const FIXED: u8 = 0b0000_0001;
    /// Set in the first address byte: Thumb or ThumbEE.
    pub(in super::super) const THUMB: u8 = 0b0000_0001;
    /// Zero in the first address byte where THUMB is zero: A32 instructions are words.
    pub(in super::super) const HALFWORD: u8 = 0b0000_0010;
}

/// Branch: exception information byte 0.
pub(super) mod exception_byte_0 {
    pub(in super::super) const CONTINUES: u8 = 0b1000_0000;
    pub(in super::super) const ALTERNATIVE_ISA: u8 = 0b0100_0000;
    pub(in super::super) const RESERVED: u8 = 0b0010_0000;
    pub(in super::super) const NUMBER: u8 = 0b0001_1110;
    pub(in super::super) const NUMBER_SHIFT: u32 = 1;
    pub(in super::super) const NON_SECURE: u8 = 0b0000_0001;
}

/// Branch: exception information byte 1.
pub(super) mod exception_byte_1 {
    pub(in super::super) const RESERVED: u8 = 0b1100_0000;
    pub(in super::super) const HYPERVISOR: u8 = 0b0010_0000;
    /// Exception[8:4].
    pub(in super::super) const NUMBER: u8 = 0b0001_1111;
    pub(in super::super) const NUMBER_SHIFT: u32 = 4;
}

/// Waypoint update: the information byte.
pub(super) mod waypoint_information {
    pub(in super::super) const RESERVED: u8 = 0b1000_0000;
    pub(in super::super) const ALTERNATIVE_ISA: u8 = 0b0100_0000;
}

/// An I-sync packet, which does not report an executed instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ISync {
    /// Why the packet was sent.
    pub reason: ISyncReason,
    /// The next instruction to be executed.
    pub location: Location,
    /// NS and Hyp.
    pub security: SecurityBits,
    /// Cycles since the last count. In cycle-accurate trace, unless the packet is periodic.
    pub cycles: Option<u32>,
    /// The context ID, if it is traced.
    pub context_id: Option<ContextId>,
}

/// An atom packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atom {
    /// The atoms; one in cycle-accurate trace.
    pub atoms: Atoms,
    /// Cycles since the last count, in cycle-accurate trace.
    pub cycles: Option<u32>,
}

/// One to five E and N atoms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Atoms {
    /// Invariant: 1 to 5.
    count: u8,
    /// Bit `count - 1` is the oldest atom; set for N. Invariant: no bit above.
    failed: u8,
}

/// A branch packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The target or the exception's vector. `None` while the base of the compressed address is unknown.
    pub target: Option<Location>,
    /// Whether all five address bytes were sent, so that the packet itself states the instruction set.
    pub states_isa: bool,
    /// The exception information, if any.
    pub exception: Option<ExceptionInformation>,
    /// Cycles since the last count, in cycle-accurate trace.
    pub cycles: Option<u32>,
}

/// A branch packet's exception information. AltISA is part of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceptionInformation {
    /// Exception bits 8 to 0; 0 if there was none: a branch that changes the security state or AltISA.
    pub number: u16,
    /// NS and Hyp; a bit that was not sent keeps its last value.
    pub security: SecurityBits,
}

/// A waypoint update packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaypointUpdate {
    /// The last instruction executed. `None` while the base of the compressed address is unknown.
    pub reached: Option<Location>,
    /// Whether all five address bytes were sent, so that the packet itself states the instruction set.
    pub states_isa: bool,
}

/// A timestamp packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    /// The value, Gray code resolved; 0 if the unit did not know it.
    pub value: u64,
    /// R: whether the processor's clock speed changed since the last timestamp.
    pub clock_changed: bool,
    /// Cycles since the last count, in cycle-accurate trace.
    pub cycles: Option<u32>,
}

impl Atoms {
    /// The most atoms in a packet.
    pub const MOST: u8 = 5;

    /// One atom: E if the waypoint was `executed`, else N.
    #[must_use]
    pub const fn one(executed: bool) -> Self {
        Self { count: 1, failed: !executed as u8 }
    }

    /// The same atoms and one more; `None` if there are five already.
    #[must_use]
    pub const fn and(self, executed: bool) -> Option<Self> {
        if self.count == Self::MOST {
            return None;
        }
        Some(Self { count: self.count + 1, failed: self.failed << 1 | !executed as u8 })
    }

    /// The atoms of a header without cycle accuracy; `None` for the reserved `1000000x`.
    #[must_use]
    pub(super) const fn from_header(header: u8) -> Option<Self> {
        let count = match header {
            0b1000_0100..=0b1000_0111 => 1,
            0b1000_1000..=0b1000_1111 => 2,
            0b1001_0000..=0b1001_1111 => 3,
            0b1010_0000..=0b1011_1111 => 4,
            0b1100_0000..=0b1111_1111 => 5,
            0b0000_0000..=0b1000_0011 => return None,
        };
        Some(Self { count, failed: header >> 1 & ((1 << count) - 1) })
    }

    /// The header without cycle accuracy.
    #[must_use]
    pub(super) const fn header(self) -> u8 {
        // The bit above the oldest atom marks the number of atoms. A header with bit 6 set has five, without
        // a marker.
        let marker = match self.count {
            1 => 0b1000_0100,
            2 => 0b1000_1000,
            3 => 0b1001_0000,
            4 => 0b1010_0000,
            _ => 0b1100_0000,
        };
        marker | self.failed << 1
    }

    /// The number of atoms, 1 to 5.
    #[must_use]
    pub const fn count(self) -> u8 {
        self.count
    }

    /// For each atom, oldest first, whether it is E: its waypoint was executed.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = bool> + ExactSizeIterator {
        (0..self.count).rev().map(move |bit| self.failed >> bit & 1 == 0)
    }
}

impl ExceptionInformation {
    /// The exception; `None` if there was none, or if the number is not one of A and R profile.
    #[must_use]
    pub fn exception(self) -> Option<Exception> {
        match u8::try_from(self.number) {
            Ok(0) | Err(_) => None,
            Ok(number) => Some(Exception::Ar(number)),
        }
    }

    /// Whether an exception was taken.
    #[must_use]
    pub const fn was_taken(self) -> bool {
        self.number != 0
    }
}

impl Describe for Packet {
    fn name(&self) -> &'static str {
        match self {
            Self::ASync => "a_sync",
            Self::ISync(_) => "i_sync",
            Self::Atom(_) => "atom",
            Self::Branch(_) => "branch",
            Self::WaypointUpdate(_) => "waypoint_update",
            Self::ContextId(_) => "context_id",
            Self::Trigger => "trigger",
            Self::Ignore => "ignore",
            Self::ExceptionReturn => "exception_return",
            Self::Timestamp(_) => "timestamp",
            Self::Vmid(_) => "vmid",
        }
    }

    fn fields(&self, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
        match self {
            Self::ISync(i_sync) => i_sync.fields(visit),
            Self::Atom(Atom { atoms, cycles }) => {
                let mut letters = [0; Atoms::MOST as usize];
                let text = atoms.letters(&mut letters);
                visit("atoms", Field::Text(text));
                cycles_field(*cycles, visit);
            }
            Self::Branch(branch) => branch.fields(visit),
            Self::WaypointUpdate(WaypointUpdate { reached, states_isa }) => {
                location_fields(*reached, *states_isa, visit);
            }
            Self::ContextId(context_id) => visit("context_id", Field::Number(u64::from(context_id.0))),
            Self::Timestamp(Timestamp { value, clock_changed, cycles }) => {
                visit("timestamp", Field::Number(*value));
                if *clock_changed {
                    visit("clock_changed", Field::Number(1));
                }
                cycles_field(*cycles, visit);
            }
            Self::Vmid(vmid) => visit("vmid", Field::Number(u64::from(vmid.0))),
            Self::ASync | Self::Trigger | Self::Ignore | Self::ExceptionReturn => {}
        }
    }
}

impl ISync {
    fn fields(&self, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
        visit("reason", Field::Number(u64::from(self.reason.bits())));
        location_fields(Some(self.location), true, visit);
        security_fields(self.security, visit);
        if let Some(context_id) = self.context_id {
            visit("context_id", Field::Number(u64::from(context_id.0)));
        }
        cycles_field(self.cycles, visit);
    }
}

impl Atoms {
    fn letters(self, letters: &mut [u8; Self::MOST as usize]) -> &str {
        for (letter, executed) in letters.iter_mut().zip(self.iter()) {
            *letter = if executed { b'E' } else { b'N' };
        }
        let letters = letters.get(..usize::from(self.count)).unwrap_or_default();
        core::str::from_utf8(letters).unwrap_or_default()
    }
}

impl Branch {
    fn fields(&self, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
        location_fields(self.target, self.states_isa, visit);
        if let Some(exception) = self.exception {
            visit("exception", Field::Number(u64::from(exception.number)));
            security_fields(exception.security, visit);
        }
        cycles_field(self.cycles, visit);
    }
}

fn location_fields(
    location: Option<Location>,
    states_isa: bool,
    visit: &mut dyn FnMut(&'static str, Field<'_>),
) {
    if let Some(location) = location {
        visit("addr", Field::Address(location.address));
        if states_isa {
            visit("isa", Field::Text(location.isa.name()));
        }
    }
}

fn security_fields(security: SecurityBits, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
    visit("ns", Field::Number(u64::from(security.non_secure)));
    visit("hyp", Field::Number(u64::from(security.hypervisor)));
}

fn cycles_field(cycles: Option<u32>, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
    if let Some(cycles) = cycles {
        visit("cycles", Field::Number(u64::from(cycles)));
    }
}
