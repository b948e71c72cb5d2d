//! Packets → bytes.

use alloc::vec::Vec;
use core::fmt;

use crate::ids::{Address, Isa, Location};
use crate::protocol::SecurityBits;
use crate::protocol::branch_address::{self, AddressEncoding, After, Alignment, Target};

use crate::protocol::ISyncReason;
use crate::protocol::compression::Compression;
use crate::protocol::synchronisation::A_SYNC;

use super::config::{Config, Version};
use super::cycle_count;
use super::decode::CYCLE_ACCURATE_N;
use super::packet::{
    Atom, Branch, ExceptionInformation, ISync, Packet, Timestamp, WaypointUpdate, exception_byte_0,
    exception_byte_1, header, i_sync_information, waypoint_information,
};

/// The packet encoder: writes each packet in its shortest form, compressed against the packets before it.
///
/// A [`Decoder`](super::Decoder) of the same configuration reads back the same packets. If that is impossible
/// for a packet, the result is an [`EncodeError`], and bytes and state are unchanged.
#[derive(Clone, Debug)]
pub struct Encoder {
    config: Config,
    compression: Compression,
}

/// Why a packet cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The configuration excludes the packet, or a field of it.
    NotEnabled {
        /// The excluded feature.
        what: &'static str,
    },
    /// The configuration demands a field that the packet lacks.
    FieldMissing {
        /// The field.
        field: &'static str,
    },
    /// A value is too large for its field, or not aligned as the field demands.
    ValueOutOfRange {
        /// The field.
        field: &'static str,
        /// The value.
        value: u64,
    },
    /// The packet claims a compressed address, but the address takes all five bytes: set `states_isa`.
    NotCompressible {
        /// The location.
        location: Location,
    },
    /// The packet has no address, which only a compressed address without a base may lack.
    UnknownAddress,
    /// The location or the state differs from the last one in a way that only exception information can
    /// state.
    NeedsExceptionInformation {
        /// The location.
        location: Location,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEnabled { what } => write!(f, "found {what}, which the configuration excludes"),
            Self::FieldMissing { field } => write!(f, "found no {field}, which the configuration requires"),
            Self::ValueOutOfRange { field, value } => {
                write!(f, "found {field} 0x{value:x}, which its field cannot hold")
            }
            Self::NotCompressible { location } => {
                write!(f, "found {location} in compressed form, expected all five address bytes")
            }
            Self::UnknownAddress => {
                f.write_str("found no address, expected one because the last address is known")
            }
            Self::NeedsExceptionInformation { location } => {
                write!(f, "found {location} without exception information, expected it to state AltISA")
            }
        }
    }
}

impl core::error::Error for EncodeError {}

impl Encoder {
    /// An encoder for the start of a source's trace.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self { config: *config, compression: Compression::default() }
    }

    /// The branch packet for a waypoint that went to `target` in the state `security`: with exception
    /// information if the state changes.
    #[must_use]
    pub fn branch_to(&self, target: Location, security: SecurityBits, cycles: Option<u32>) -> Branch {
        let state_changes = security != self.compression.security || self.changes_alternative_isa(target.isa);
        let exception = state_changes.then_some(ExceptionInformation { number: 0, security });
        self.with_isa_stated(Branch { target: Some(target), states_isa: false, exception, cycles })
    }

    /// The branch packet for exception `number`, taken to `handler` in the state `security`.
    #[must_use]
    pub fn exception(
        &self,
        number: u16,
        handler: Location,
        security: SecurityBits,
        cycles: Option<u32>,
    ) -> Branch {
        let exception = Some(ExceptionInformation { number, security });
        self.with_isa_stated(Branch { target: Some(handler), states_isa: false, exception, cycles })
    }

    /// The waypoint update for execution up to and including `reached`.
    #[must_use]
    pub fn waypoint_update(&self, reached: Location) -> WaypointUpdate {
        // Only after all five bytes may an information byte state AltISA.
        let states_isa = self.changes_alternative_isa(reached.isa) || self.takes_all_bytes(reached, false);
        WaypointUpdate { reached: Some(reached), states_isa }
    }

    /// Appends `packet` to `bytes`.
    ///
    /// # Errors
    ///
    /// If the configuration excludes the packet, or its fields cannot be encoded. Bytes and state are unchanged.
    pub fn encode(&mut self, packet: &Packet, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let before = bytes.len();
        let state = self.compression;
        let result = self.write(packet, bytes);
        if result.is_err() {
            bytes.truncate(before);
            self.compression = state;
        }
        result
    }

    fn write(&mut self, packet: &Packet, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        match packet {
            Packet::ASync => bytes.extend(A_SYNC.shortest()),
            Packet::ISync(i_sync) => self.i_sync(i_sync, bytes)?,
            Packet::Atom(atom) => self.atom(atom, bytes)?,
            Packet::Branch(branch) => self.branch(branch, bytes)?,
            Packet::WaypointUpdate(update) => self.write_waypoint_update(update, bytes)?,
            Packet::ContextId(context_id) => {
                bytes.push(header::CONTEXT_ID);
                self.context_id(context_id.0, bytes)?;
            }
            Packet::Trigger => bytes.push(header::TRIGGER),
            Packet::Ignore => bytes.push(header::IGNORE),
            Packet::ExceptionReturn => bytes.push(header::EXCEPTION_RETURN),
            Packet::Timestamp(timestamp) => self.timestamp(timestamp, bytes)?,
            Packet::Vmid(vmid) => {
                if self.config.version < Version::V1_1 {
                    return Err(EncodeError::NotEnabled { what: "a VMID packet" });
                }
                let out_of_range = |_| EncodeError::ValueOutOfRange { field: "VMID", value: vmid.0.into() };
                bytes.extend([header::VMID, u8::try_from(vmid.0).map_err(out_of_range)?]);
            }
        }
        Ok(())
    }

    fn i_sync(&mut self, packet: &ISync, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        use i_sync_information as bits;
        let ISync { reason, location, security, cycles, context_id } = *packet;
        let flag = |set, bit| if set { bit } else { 0 };
        let thumb = match location.isa {
            Isa::A32 => false,
            Isa::T32 | Isa::T32EE => true,
            Isa::Jazelle => {
                return Err(EncodeError::NotEnabled { what: "an I-sync packet in Jazelle state" });
            }
            Isa::A64 => return Err(A64_NOT_ENABLED),
        };
        let alternative_isa = location.isa == Isa::T32EE;
        aligned(location)?;
        bytes.push(header::I_SYNC);
        bytes.extend((location.address.low_word() | u32::from(flag(thumb, bits::THUMB))).to_le_bytes());
        bytes.push(
            bits::FIXED
                | reason.bits() << bits::REASON_SHIFT
                | flag(security.non_secure, bits::NON_SECURE)
                | flag(alternative_isa, bits::ALTERNATIVE_ISA)
                | flag(security.hypervisor, bits::HYPERVISOR),
        );
        match (reason, cycles) {
            (ISyncReason::Periodic, None) => {}
            (ISyncReason::Periodic, Some(_)) => {
                return Err(EncodeError::NotEnabled { what: "a cycle count in a periodic I-sync packet" });
            }
            (_, cycles) => self.cycle_count(cycles, cycle_count::I_SYNC_OTHERS, bytes)?,
        }
        match (self.config.context_id_size.bytes(), context_id) {
            (0, None) => {}
            (_, None) => return Err(EncodeError::FieldMissing { field: "context ID" }),
            (_, Some(context_id)) => self.context_id(context_id.0, bytes)?,
        }
        let timestamp = self.compression.timestamp;
        self.compression = Compression { base: Some(location), alternative_isa, security, timestamp };
        Ok(())
    }

    fn atom(&self, packet: &Atom, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let Atom { atoms, cycles } = *packet;
        match (self.config.cycle_accurate, cycles) {
            (false, None) => bytes.push(atoms.header()),
            (true, Some(cycles)) if atoms.count() == 1 => {
                let failed = if atoms.iter().all(|executed| executed) { 0 } else { CYCLE_ACCURATE_N };
                cycle_count::write(cycles, header::ATOM | failed, bytes);
            }
            (true, Some(_)) => {
                return Err(EncodeError::NotEnabled { what: "several atoms with one cycle count" });
            }
            (false, Some(_)) => return Err(CYCLES_NOT_ENABLED),
            (true, None) => return Err(CYCLES_MISSING),
        }
        Ok(())
    }

    fn branch(&mut self, packet: &Branch, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let Branch { target, states_isa, exception, cycles } = *packet;
        let mut next = self.compression;
        if let Some(target) = target.filter(|target| target.isa.is_thumb()) {
            next.alternative_isa = target.isa == Isa::T32EE;
        }
        if next.alternative_isa != self.compression.alternative_isa
            && exception.is_none()
            && let Some(location) = target
        {
            return Err(EncodeError::NeedsExceptionInformation { location });
        }
        self.address(target, states_isa, exception.is_some(), bytes)?;
        if let Some(information) = exception {
            self.exception_information(information, next.alternative_isa, bytes)?;
            next.security = information.security;
        }
        self.cycle_count(cycles, 0, bytes)?;
        next.base = target;
        self.compression = next;
        Ok(())
    }

    fn write_waypoint_update(
        &mut self,
        packet: &WaypointUpdate,
        bytes: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let WaypointUpdate { reached, states_isa } = *packet;
        bytes.push(header::WAYPOINT_UPDATE);
        let change = reached.filter(|reached| self.changes_alternative_isa(reached.isa));
        match change {
            Some(location) if !states_isa => return Err(EncodeError::NotCompressible { location }),
            _ => self.address(reached, states_isa, change.is_some(), bytes)?,
        }
        let mut next = self.compression;
        if let Some(location) = change {
            next.alternative_isa = location.isa == Isa::T32EE;
            bytes.push(if next.alternative_isa { waypoint_information::ALTERNATIVE_ISA } else { 0 });
        }
        next.base = reached;
        if self.config.waypoint_updates_are_bases {
            self.compression = next;
        }
        Ok(())
    }

    fn timestamp(&mut self, packet: &Timestamp, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let Timestamp { value, clock_changed, cycles } = *packet;
        let format = self.config.timestamp;
        let raw = format.raw(value);
        if format.value(raw) != value {
            return Err(EncodeError::ValueOutOfRange { field: "timestamp", value });
        }
        bytes.push(if clock_changed { header::TIMESTAMP_CLOCK_CHANGED } else { header::TIMESTAMP });
        format.write(self.compression.timestamp, raw, bytes);
        self.cycle_count(cycles, 0, bytes)?;
        self.compression.timestamp = raw;
        Ok(())
    }

    /// Appends an address field. For an unknown address, any other short one will do.
    fn address(
        &self,
        location: Option<Location>,
        all_bytes: bool,
        information_follows: bool,
        bytes: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let location = match (location, self.compression.base) {
            (Some(location), _) => {
                aligned(location)?;
                if !all_bytes && self.takes_all_bytes(location, information_follows) {
                    return Err(EncodeError::NotCompressible { location });
                }
                location
            }
            (None, None) if !all_bytes => Location::new(Address::new(0), Isa::A32),
            (None, _) => return Err(EncodeError::UnknownAddress),
        };
        self.write_address(location, all_bytes, information_follows, bytes)
    }

    fn write_address(
        &self,
        location: Location,
        all_bytes: bool,
        information_follows: bool,
        bytes: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let (base, base_alignment) = branch_address::base(self.compression.base);
        let target = Target {
            address: location.address,
            alignment: Alignment::of(location.isa).ok_or(A64_NOT_ENABLED)?,
            all_bytes,
            after: if information_follows { After::ExceptionInformation } else { After::Nothing },
        };
        branch_address::write(bytes, AddressEncoding::Alternative, base, base_alignment, target);
        Ok(())
    }

    /// 4.5.4: byte 1 only if byte 0 does not suffice.
    fn exception_information(
        &self,
        information: ExceptionInformation,
        alternative_isa: bool,
        bytes: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let ExceptionInformation { number, security } = information;
        let flag = |set, bit| if set { bit } else { 0 };
        let low = u8::try_from(number & 0b1111).unwrap_or_default();
        let high = u8::try_from(number >> exception_byte_1::NUMBER_SHIFT)
            .ok()
            .filter(|high| high & !exception_byte_1::NUMBER == 0)
            .ok_or(EncodeError::ValueOutOfRange { field: "exception number", value: u64::from(number) })?;
        let byte_1_follows = high != 0 || security.hypervisor != self.compression.security.hypervisor;
        bytes.push(
            flag(byte_1_follows, exception_byte_0::CONTINUES)
                | flag(alternative_isa, exception_byte_0::ALTERNATIVE_ISA)
                | low << exception_byte_0::NUMBER_SHIFT
                | flag(security.non_secure, exception_byte_0::NON_SECURE),
        );
        if byte_1_follows {
            bytes.push(flag(security.hypervisor, exception_byte_1::HYPERVISOR) | high);
        }
        Ok(())
    }

    /// Appends a cycle count field outside of atom packets; `others` are the packet's bits of the first byte.
    fn cycle_count(&self, cycles: Option<u32>, others: u8, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        match (self.config.cycle_accurate, cycles) {
            (false, None) => Ok(()),
            (true, Some(cycles)) => {
                cycle_count::write(cycles, others, bytes);
                Ok(())
            }
            (false, Some(_)) => Err(CYCLES_NOT_ENABLED),
            (true, None) => Err(CYCLES_MISSING),
        }
    }

    fn context_id(&self, value: u32, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let size = usize::from(self.config.context_id_size.bytes());
        if size == 0 {
            return Err(EncodeError::NotEnabled { what: "a context ID" });
        }
        let all = value.to_le_bytes();
        let (sent, rest) = all.split_at(size.min(all.len()));
        if rest.iter().any(|&byte| byte != 0) {
            return Err(EncodeError::ValueOutOfRange { field: "context ID", value: u64::from(value) });
        }
        bytes.extend_from_slice(sent);
        Ok(())
    }

    /// `branch`, with `states_isa` set if the address needs all five bytes.
    fn with_isa_stated(&self, branch: Branch) -> Branch {
        let needs = |target| self.takes_all_bytes(target, branch.exception.is_some());
        Branch { states_isa: branch.target.is_some_and(needs), ..branch }
    }

    /// Whether the address of `location` takes all five bytes, as every address does without a base.
    fn takes_all_bytes(&self, location: Location, information_follows: bool) -> bool {
        let mut bytes = Vec::new();
        let all_bytes = self.compression.base.is_none();
        self.write_address(location, all_bytes, information_follows, &mut bytes).is_ok()
            && bytes.len() == branch_address::MOST_BYTES
    }

    /// Whether `isa` is Thumb or ThumbEE and contradicts the last AltISA.
    fn changes_alternative_isa(&self, isa: Isa) -> bool {
        isa.is_thumb() && (isa == Isa::T32EE) != self.compression.alternative_isa
    }
}

const A64_NOT_ENABLED: EncodeError = EncodeError::NotEnabled { what: "an A64 address" };
const CYCLES_NOT_ENABLED: EncodeError = EncodeError::NotEnabled { what: "a cycle count" };
const CYCLES_MISSING: EncodeError = EncodeError::FieldMissing { field: "cycle count" };

fn aligned(location: Location) -> Result<(), EncodeError> {
    if location.is_possible() {
        Ok(())
    } else {
        Err(EncodeError::ValueOutOfRange { field: "address", value: location.address.get() })
    }
}
