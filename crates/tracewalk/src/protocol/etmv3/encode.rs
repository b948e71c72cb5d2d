//! ETMv3 packets → bytes.

use alloc::vec::Vec;
use core::fmt;

use crate::ids::{Address, Isa, Location};
use crate::protocol::branch_address::{self, After, Alignment, Target};
use crate::protocol::compression::Compression;
use crate::protocol::synchronisation::A_SYNC;

use super::compression::{after_branch, after_i_sync};
use super::config::Config;
use super::exception::{BranchException, ExceptionInformation};
use super::packet::{Branch, DataAddress, ISync, Packet, header, information, information_bytes};

/// The packet encoder: what a trace unit with this configuration would send.
///
/// Fields are made as short as the compression state allows.
#[derive(Clone, Debug)]
pub struct Encoder {
    config: Config,
    compression: Compression,
    /// The last data address sent.
    data_address: Address,
}

/// Why a packet cannot be sent with this configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The configuration excludes the packet or a field of it, or demands a field that is missing.
    Configuration {
        /// The packet's name.
        packet: &'static str,
    },
    /// A short branch address cannot express this target: the instruction set changes, or no address was sent
    /// before.
    Unaddressable,
    /// A field's value does not fit.
    OutOfRange {
        /// The field.
        field: &'static str,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration { packet } => {
                write!(f, "the configuration does not allow this {packet} packet")
            }
            Self::Unaddressable => {
                f.write_str("a branch packet without all five address bytes cannot express this target")
            }
            Self::OutOfRange { field } => write!(f, "the value does not fit the field {field}"),
        }
    }
}

impl core::error::Error for EncodeError {}

impl Encoder {
    /// An encoder that has sent nothing yet.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self { config: *config, compression: Compression::default(), data_address: Address::new(0) }
    }

    /// The last address sent in a branch or I-sync packet. The next branch is compressed against it.
    #[must_use]
    pub fn last_address(&self) -> Option<Location> {
        self.compression.base
    }

    /// Appends the packet's bytes.
    ///
    /// # Errors
    ///
    /// If the configuration excludes the packet, or its fields cannot be encoded. Bytes and state are unchanged.
    pub fn encode(&mut self, packet: &Packet, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let before = (bytes.len(), self.compression, self.data_address);
        let result = self.packet(packet, bytes);
        if result.is_err() {
            bytes.truncate(before.0);
            (self.compression, self.data_address) = (before.1, before.2);
        }
        result
    }

    fn packet(&mut self, packet: &Packet, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let config = self.config;
        match packet {
            Packet::Branch(branch) => self.branch(branch, bytes)?,
            Packet::ASync => bytes.extend_from_slice(A_SYNC.shortest()),
            Packet::CycleCount(cycles) => {
                allow(config.cycle_accurate, "cycle_count")?;
                bytes.push(header::CYCLE_COUNT);
                cycle_count(*cycles, bytes);
            }
            Packet::ISync(i_sync) => self.i_sync(i_sync, bytes)?,
            Packet::Trigger => bytes.push(header::TRIGGER),
            Packet::OutOfOrderData { tag, value } => {
                allow(config.data.any() && value.is_some() == config.data.values, "ooo_data")?;
                let size = value.map_or(0, size_code);
                bytes.push(tag.get() << 5 | size << 2);
                value_bytes(*value, bytes);
            }
            Packet::StoreFailed => {
                allow(config.data.any(), "store_failed")?;
                bytes.push(header::STORE_FAILED);
            }
            Packet::OutOfOrderPlaceholder { tag, address } => {
                self.allow_data_address(*address, "ooo_placeholder")?;
                let present = u8::from(address.is_some()) << 5;
                bytes.push(0b0101_0000 | present | tag.get() << 2);
                self.data_address(*address, bytes)?;
            }
            Packet::NormalData { address, value } => {
                self.allow_data_address(*address, "normal_data")?;
                allow(value.is_some() == config.data.values, "normal_data")?;
                let present = u8::from(address.is_some()) << 5;
                bytes.push(0b0000_0010 | present | value.map_or(0, size_code) << 2);
                self.data_address(*address, bytes)?;
                value_bytes(*value, bytes);
            }
            Packet::DataSuppressed => {
                allow(config.data.any(), "data_suppressed")?;
                bytes.push(header::DATA_SUPPRESSED);
            }
            Packet::ValueNotTraced { address } => {
                self.allow_data_address(*address, "value_not_traced")?;
                let with_address = header::VALUE_NOT_TRACED_WITH_ADDRESS;
                bytes.push(if address.is_some() { with_address } else { header::VALUE_NOT_TRACED });
                self.data_address(*address, bytes)?;
            }
            Packet::Vmid(vmid) => {
                allow(config.minor_version >= 5, "vmid")?;
                let vmid = u8::try_from(vmid.0).map_err(|_| EncodeError::OutOfRange { field: "vmid" })?;
                bytes.extend_from_slice(&[header::VMID, vmid]);
            }
            Packet::Timestamp { value, clock_changed } => {
                allow(config.minor_version >= 5, "timestamp")?;
                bytes.push(if *clock_changed { header::TIMESTAMP_CLOCK_CHANGED } else { header::TIMESTAMP });
                let raw = config.timestamp.raw(*value);
                fits(config.timestamp.value(raw) == *value, "timestamp")?;
                config.timestamp.write(self.compression.timestamp, raw, bytes);
                self.compression.timestamp = raw;
            }
            Packet::Ignore => bytes.push(header::IGNORE),
            Packet::ContextId(context_id) => {
                allow(config.context_id_size.bytes() != 0, "context_id")?;
                bytes.push(header::CONTEXT_ID);
                little_endian(context_id.0, config.context_id_size.bytes(), "context_id", bytes)?;
            }
            Packet::ExceptionExit => {
                allow(config.minor_version >= config.exception_exit_since(), "exception_return")?;
                bytes.push(header::EXCEPTION_EXIT);
            }
            Packet::ExceptionEntry => {
                allow(config.has_exception_entry(), "exception_entry")?;
                bytes.push(header::EXCEPTION_ENTRY);
            }
            Packet::PHeader(p_header) => bytes.push(p_header.byte()),
        }
        Ok(())
    }

    fn i_sync(&mut self, i_sync: &ISync, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let with_context_id = i_sync.context_id.is_some() == (self.config.context_id_size.bytes() != 0);
        allow(with_context_id && i_sync.location.is_some() == self.config.instructions, "i_sync")?;
        allow(i_sync.cycles.is_none() || self.config.cycle_accurate, "i_sync")?;
        allow(i_sync.in_progress.is_none() || self.config.instructions, "i_sync")?;
        match i_sync.cycles {
            Some(cycles) => {
                bytes.push(header::I_SYNC_WITH_CYCLES);
                cycle_count(cycles, bytes);
            }
            None => bytes.push(header::I_SYNC),
        }
        if let Some(context_id) = i_sync.context_id {
            little_endian(context_id.0, self.config.context_id_size.bytes(), "context_id", bytes)?;
        }
        let first = i_sync.in_progress.or(i_sync.location);
        bytes.push(information_byte(i_sync, first.map(|first| first.isa)));
        if let Some(first) = first {
            let thumb = first.isa.is_thumb();
            fits(first.is_possible(), "address")?;
            bytes.extend_from_slice(&(first.address.low_word() | u32::from(thumb)).to_le_bytes());
        }
        if let (Some(first), Some(next)) = (i_sync.in_progress, i_sync.location) {
            let encoding = self.config.address_encoding;
            // The information byte gives the instruction set of both, apart from the alignment.
            let alternative = first.isa == Isa::T32EE;
            let alignment = alignment_of(next)?;
            fits(alignment.isa(alternative) == next.isa, "instruction set")?;
            let target = Target { address: next.address, alignment, all_bytes: false, after: After::Nothing };
            branch_address::write(bytes, encoding, first.address, alignment_of(first)?, target);
        }
        after_i_sync(&mut self.compression, i_sync);
        Ok(())
    }

    fn branch(&mut self, branch: &Branch, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let target = branch.target.ok_or(EncodeError::Unaddressable)?;
        fits(target.is_possible(), "address")?;
        let alignment = alignment_of(target)?;
        let alternative = match branch.exception {
            Some(BranchException::Information(information)) => information.alternative_isa,
            _ => self.compression.alternative_isa,
        };
        if alignment.isa(alternative) != target.isa {
            return Err(EncodeError::Unaddressable);
        }
        let after = match branch.exception {
            None => After::Nothing,
            Some(BranchException::Information(_)) => After::ExceptionInformation,
            Some(BranchException::Deprecated { code, cancel }) => {
                allow(self.config.address_encoding == branch_address::AddressEncoding::Original, "branch")?;
                fits(code < 8, "exception")?;
                if alignment != Alignment::Word {
                    return Err(EncodeError::Unaddressable);
                }
                After::Deprecated { code, cancel }
            }
        };
        let (base, base_alignment) = branch_address::base(self.compression.base);
        let start = bytes.len();
        let field = Target { address: target.address, alignment, all_bytes: branch.states_isa, after };
        let encoding = self.config.address_encoding;
        branch_address::write(bytes, encoding, base, base_alignment, field);
        let sent_all = bytes.len() - start == 5;
        if sent_all != branch.states_isa || self.compression.base.is_none() && !sent_all {
            return Err(EncodeError::Unaddressable);
        }
        if let Some(BranchException::Information(information)) = branch.exception {
            self.exception_information(&information, bytes)?;
        }
        after_branch(&mut self.compression, branch);
        Ok(())
    }

    /// Appends the exception information bytes that are needed (table 7.10).
    fn exception_information(
        &self,
        information: &ExceptionInformation,
        bytes: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        use information_bytes as bits;
        fits(information.code < 1 << 9, "exception")?;
        fits(information.resume < 1 << 4, "resume")?;
        let high = u8::try_from(information.code >> 4).unwrap_or_default();
        let byte_1 = high != 0 || information.security.hypervisor != self.compression.security.hypervisor;
        let byte_2 = information.resume != 0;
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        bytes.push(
            u8::try_from(information.code & 0b1111).unwrap_or_default() << 1
                | flag(byte_1 || byte_2, bits::CONTINUES)
                | flag(information.alternative_isa, bits::ALTERNATIVE_ISA)
                | flag(information.cancel, bits::CANCEL)
                | flag(information.security.non_secure, bits::NON_SECURE),
        );
        if byte_1 {
            let hypervisor = flag(information.security.hypervisor, bits::HYPERVISOR);
            bytes.push(high | hypervisor | flag(byte_2, bits::CONTINUES));
        }
        if byte_2 {
            bytes.push(information.resume | bits::IS_BYTE_2);
        }
        Ok(())
    }

    fn allow_data_address(
        &self,
        address: Option<DataAddress>,
        packet: &'static str,
    ) -> Result<(), EncodeError> {
        allow(self.config.data.any() && (address.is_none() || self.config.data.addresses), packet)
    }

    fn data_address(&mut self, address: Option<DataAddress>, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let Some(DataAddress { address, big_endian }) = address else { return Ok(()) };
        let address =
            u32::try_from(address.get()).map_err(|_| EncodeError::OutOfRange { field: "address" })?;
        let changed = address ^ self.data_address.low_word();
        let group = |index: u32| u8::try_from(address >> (7 * index) & 0b0111_1111).unwrap_or_default();
        // The byte that holds A[31:28] holds the byte order as well.
        let all = big_endian.is_some();
        fits(all || changed >> 28 == 0, "address")?;
        let count = if all { 4 } else { (1..4).find(|&count| changed >> (7 * count) == 0).unwrap_or(4) };
        for index in 0..count {
            bytes.push(group(index) | u8::from(all || index + 1 < count) << 7);
        }
        if all {
            let top = u8::try_from(address >> 28).unwrap_or_default();
            bytes.push(top | u8::from(big_endian == Some(true)) << 4);
        }
        self.data_address = Address::from(address);
        Ok(())
    }
}

fn information_byte(i_sync: &ISync, isa: Option<Isa>) -> u8 {
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    information::ALWAYS_SET
        | i_sync.reason.bits() << information::REASON_SHIFT
        | flag(i_sync.security.hypervisor, information::HYPERVISOR)
        | flag(i_sync.security.non_secure, information::NON_SECURE)
        | flag(isa == Some(Isa::T32EE), information::ALTERNATIVE_ISA)
        | flag(isa == Some(Isa::Jazelle), information::JAZELLE)
        | flag(i_sync.in_progress.is_some(), information::LOAD_STORE_IN_PROGRESS)
}

/// One to five bytes of seven bits, least significant first.
fn cycle_count(cycles: u32, bytes: &mut Vec<u8>) {
    let mut rest = cycles;
    loop {
        let group = u8::try_from(rest & 0b0111_1111).unwrap_or_default();
        rest >>= 7;
        bytes.push(group | u8::from(rest != 0) << 7);
        if rest == 0 {
            break;
        }
    }
}

/// SS: the fewest bytes that hold the value.
const fn size_code(value: u32) -> u8 {
    match value {
        0 => 0b00,
        1..=0xff => 0b01,
        0x100..=0xffff => 0b10,
        _ => 0b11,
    }
}

fn value_bytes(value: Option<u32>, bytes: &mut Vec<u8>) {
    if let Some(value) = value {
        let count = [0, 1, 2, 4][usize::from(size_code(value))];
        bytes.extend(value.to_le_bytes().into_iter().take(count));
    }
}

fn little_endian(value: u32, size: u8, field: &'static str, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    fits(size >= 4 || value >> (8 * size) == 0, field)?;
    bytes.extend(value.to_le_bytes().into_iter().take(usize::from(size)));
    Ok(())
}

fn allow(allowed: bool, packet: &'static str) -> Result<(), EncodeError> {
    if allowed { Ok(()) } else { Err(EncodeError::Configuration { packet }) }
}

/// The alignment that address bytes state; A64 has none.
fn alignment_of(location: Location) -> Result<Alignment, EncodeError> {
    Alignment::of(location.isa).ok_or(EncodeError::OutOfRange { field: "instruction set" })
}

fn fits(fits: bool, field: &'static str) -> Result<(), EncodeError> {
    if fits { Ok(()) } else { Err(EncodeError::OutOfRange { field }) }
}
