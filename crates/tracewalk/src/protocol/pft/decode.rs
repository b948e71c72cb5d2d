//! Bytes → packets.

mod memo;

use crate::cursor::{Cursor, NeedInput};
use crate::ids::{Address, ContextId, Isa, Location, Vmid};
use crate::protocol::SecurityBits;
use crate::protocol::branch_address::{self, AddressEncoding, After, Alignment, ReadError};
use crate::protocol::compression::Compression;
use crate::protocol::synchronisation::{A_SYNC, Synchronisation, Unread, read_a_sync};
use crate::protocol::{ASync, Decode, ISyncReason, Malformation, Step, TakeItem};
use crate::span::StreamOffset;

use super::config::{Config, Version};
use super::cycle_count;
use super::packet::{
    Atom, Atoms, Branch, ExceptionInformation, ISync, Packet, Timestamp, WaypointUpdate, exception_byte_0,
    exception_byte_1, header, i_sync_information, waypoint_information,
};

/// The packet decoder.
///
/// Before the first A-sync, and after malformed bytes, the decoder searches for the next A-sync; after a
/// reserved header, it reads packets on trial up to there. Packets between an A-sync and the next I-sync are
/// decoded, but [`Lowering`](super::Lowering) ignores those that need a position.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Decoder {
    config: Config,
    synchronisation: Synchronisation,
    compression: Compression,
}

impl Decoder {
    /// A decoder for the start of a source's trace.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            config: *config,
            synchronisation: Synchronisation::Searching,
            compression: Compression::default(),
        }
    }

    /// Reads the packet at the start of `input`.
    fn packet(&mut self, input: &[u8], cursor: &mut Cursor<'_>) -> Result<Packet, Unread> {
        let start = *cursor;
        // IHI 0035B, table 4-1.
        Ok(match cursor.byte()? {
            byte if byte & header::BRANCH != 0 => {
                *cursor = start;
                Packet::Branch(self.branch(cursor)?)
            }
            header::A_SYNC => {
                read_a_sync(A_SYNC, input, cursor)?;
                Packet::ASync
            }
            header::I_SYNC => Packet::ISync(self.i_sync(cursor)?),
            header::TRIGGER => Packet::Trigger,
            header::VMID if self.config.version >= Version::V1_1 => Packet::Vmid(Vmid(cursor.byte()?.into())),
            found @ header::VMID => return Err(Malformation::ReservedHeader { found }.into()),
            header @ (header::TIMESTAMP | header::TIMESTAMP_CLOCK_CHANGED) => {
                Packet::Timestamp(self.timestamp(header, cursor)?)
            }
            header::IGNORE => Packet::Ignore,
            header::CONTEXT_ID => Packet::ContextId(self.context_id(cursor)?.ok_or(CONTEXT_ID_NOT_ENABLED)?),
            header::WAYPOINT_UPDATE => Packet::WaypointUpdate(self.waypoint_update(cursor)?),
            header::EXCEPTION_RETURN => Packet::ExceptionReturn,
            header @ header::ATOM..=0xff => Packet::Atom(self.atom(header, cursor)?),
            // Reserved: every even byte below 0x80 that is not above. The first row takes odd bytes.
            found @ (0x01..=0x07
            | 0x09..=0x0b
            | 0x0d..=0x3b
            | 0x3d..=0x41
            | 0x43..=0x45
            | 0x47..=0x65
            | 0x67..=0x6d
            | 0x6f..=0x71
            | 0x73..=0x75
            | 0x77..=0x7f) => return Err(Malformation::ReservedHeader { found }.into()),
        })
    }

    /// 4.5.2: address, information, cycle count unless periodic, context ID.
    fn i_sync(&mut self, cursor: &mut Cursor<'_>) -> Result<ISync, Unread> {
        use i_sync_information as bits;
        let address = cursor.little_endian_word(4)?;
        let information = cursor.byte()?;
        let reserved = |field, found, expected| {
            Unread::Malformed(Malformation::ReservedValue { packet: "i_sync", field, found, expected })
        };
        if information & bits::FIXED_MASK != bits::FIXED {
            return Err(reserved("information", u64::from(information), "bits 7 and 4 clear and bit 0 set"));
        }
        let thumb = address & u32::from(bits::THUMB) != 0;
        let alternative_isa = information & bits::ALTERNATIVE_ISA != 0;
        let isa = match (thumb, alternative_isa) {
            (true, true) => Isa::T32EE,
            (true, false) => Isa::T32,
            (false, false) => Isa::A32,
            (false, true) => {
                return Err(reserved("information", u64::from(information), "AltISA only with Thumb"));
            }
        };
        if !thumb && address & u32::from(bits::HALFWORD) != 0 {
            return Err(reserved("address", u64::from(address), "a multiple of 4 in A32 state"));
        }
        let location = Location::new(Address::from(address & !u32::from(bits::THUMB)), isa);
        let security = SecurityBits {
            non_secure: information & bits::NON_SECURE != 0,
            hypervisor: information & bits::HYPERVISOR != 0,
        };
        let reason = ISyncReason::from_bits(information >> bits::REASON_SHIFT);
        let cycles = if reason == ISyncReason::Periodic { None } else { self.cycle_count("i_sync", cursor)? };
        let context_id = self.context_id(cursor)?;
        let timestamp = self.compression.timestamp;
        self.compression = Compression { base: Some(location), alternative_isa, security, timestamp };
        Ok(ISync { reason, location, security, cycles, context_id })
    }

    /// 4.5.3: a header with atoms; in cycle-accurate trace with one atom and the start of a cycle count.
    fn atom(&self, header: u8, cursor: &mut Cursor<'_>) -> Result<Atom, Unread> {
        if self.config.cycle_accurate {
            let atoms = Atoms::one(header & CYCLE_ACCURATE_N == 0);
            return Ok(Atom { atoms, cycles: Some(cycle_count::read(cursor, header)?) });
        }
        let atoms = Atoms::from_header(header).ok_or(Malformation::ReservedHeader { found: header })?;
        Ok(Atom { atoms, cycles: None })
    }

    /// 4.5.4: address bytes (the header is the first), exception information, cycle count.
    fn branch(&mut self, cursor: &mut Cursor<'_>) -> Result<Branch, Unread> {
        let mut next = self.compression;
        let field = next
            .read_address(cursor, AddressEncoding::Alternative)
            .map_err(|error| address_error("branch", error))?;
        let exception = match field.after {
            After::ExceptionInformation => Some(exception_information(cursor, &mut next)?),
            After::Nothing | After::Deprecated { .. } => None,
        };
        let target = next.locate(field);
        let cycles = self.cycle_count("branch", cursor)?;
        next.base = target;
        self.compression = next;
        Ok(Branch { target, states_isa: field.alignment.is_some(), exception, cycles })
    }

    /// 4.5.5: address bytes as a branch's, after a header of their own.
    fn waypoint_update(&mut self, cursor: &mut Cursor<'_>) -> Result<WaypointUpdate, Unread> {
        let reserved = |field, found, expected| {
            Unread::Malformed(Malformation::ReservedValue {
                packet: "waypoint_update",
                field,
                found,
                expected,
            })
        };
        let mut next = self.compression;
        let field = next
            .read_address(cursor, AddressEncoding::Alternative)
            .map_err(|error| address_error("waypoint_update", error))?;
        if field.after == After::ExceptionInformation {
            // After fewer than five bytes the meaning of bit 6 is unclear: an information byte follows as in
            // a branch packet, a seventh address bit (ptm2human), or nothing (OpenCSD). A wrong guess could
            // go unnoticed.
            if field.alignment.is_none() {
                let expected = "bit 6 clear in the last of fewer than five bytes";
                return Err(reserved("address", field.address.get(), expected));
            }
            let information = cursor.byte()?;
            if information & waypoint_information::RESERVED != 0 {
                return Err(reserved("information", u64::from(information), "bit 7 clear"));
            }
            next.alternative_isa = information & waypoint_information::ALTERNATIVE_ISA != 0;
        }
        let reached = next.locate(field);
        next.base = reached;
        if self.config.waypoint_updates_are_bases {
            self.compression = next;
        }
        Ok(WaypointUpdate { reached, states_isa: field.alignment.is_some() })
    }

    /// 4.5.9: the value, and in cycle-accurate trace a cycle count.
    fn timestamp(&mut self, header: u8, cursor: &mut Cursor<'_>) -> Result<Timestamp, Unread> {
        let format = self.config.timestamp;
        let raw = format.read(cursor, self.compression.timestamp)?;
        let cycles = self.cycle_count("timestamp", cursor)?;
        self.compression.timestamp = raw;
        let clock_changed = header == header::TIMESTAMP_CLOCK_CHANGED;
        Ok(Timestamp { value: format.value(raw), clock_changed, cycles })
    }

    /// A context ID of the configured size; `None` if that is 0 bytes.
    fn context_id(&self, cursor: &mut Cursor<'_>) -> Result<Option<ContextId>, NeedInput> {
        let bytes = self.config.context_id_size.bytes();
        if bytes == 0 {
            Ok(None)
        } else {
            cursor.little_endian_word(bytes).map(|value| Some(ContextId(value)))
        }
    }

    /// A cycle count field outside of atom packets; `None` without cycle accuracy.
    fn cycle_count(&self, packet: &'static str, cursor: &mut Cursor<'_>) -> Result<Option<u32>, Unread> {
        if !self.config.cycle_accurate {
            return Ok(None);
        }
        let first = cursor.byte()?;
        if first & cycle_count::FIRST_RESERVED != 0 {
            return Err(Unread::Malformed(Malformation::ReservedValue {
                packet,
                field: "cycle count",
                found: u64::from(first),
                expected: "bits 1 and 0 clear in its first byte",
            }));
        }
        Ok(Some(cycle_count::read(cursor, first)?))
    }
}

impl Decode for Decoder {
    type Packet = Packet;

    const A_SYNC: Option<ASync> = Some(A_SYNC);

    #[inline]
    fn decode(&mut self, input: &[u8]) -> Step<Packet> {
        Synchronisation::step(
            self,
            |decoder| &mut decoder.synchronisation,
            input,
            Packet::ASync,
            |decoder, input| {
                let mut cursor = Cursor::new(input);
                let packet = decoder.packet(input, &mut cursor)?;
                Ok((packet, cursor.position()))
            },
            |decoder| decoder.compression.forget_base(),
        )
    }

    /// Atoms, and branch packets of one to four address bytes and nothing else: nearly all of a trace without cycle counts.
    #[inline]
    fn decode_frequent(
        &mut self,
        input: &[u8],
        start: StreamOffset,
        taker: &mut impl TakeItem<Packet>,
    ) -> usize {
        if self.synchronisation != Synchronisation::InStep || self.config.cycle_accurate {
            return 0;
        }
        let Some(mut base) = self.compression.base else { return 0 };
        let Some(alignment) = Alignment::of(base.isa) else { return 0 };
        let mut at = 0;
        while let Some(bytes) = input.get(at..).and_then(<[u8]>::first_chunk::<8>) {
            let byte = bytes[0];
            if byte & (header::ATOM | header::BRANCH) == header::ATOM {
                let Some(atoms) = Atoms::from_header(byte) else { break };
                let atom = Atom { atoms, cycles: None };
                taker.take_packet(Packet::Atom(atom), input, start, at..at + 1);
                at += 1;
            } else if byte & header::BRANCH != 0 {
                let encoding = AddressEncoding::Alternative;
                let short = branch_address::read_short(*bytes, encoding, base.address, alignment);
                let Some((address, length)) = short else { break };
                base.address = address;
                let branch = Branch { target: Some(base), states_isa: false, exception: None, cycles: None };
                taker.take_packet(Packet::Branch(branch), input, start, at..at + length);
                at += length;
            } else {
                break;
            }
        }
        self.compression.base = Some(base);
        at
    }

    fn truncated(&self, input: &[u8]) -> Malformation {
        if self.synchronisation == Synchronisation::Searching {
            return Malformation::Truncated { packet: "a_sync" };
        }
        let packet = match input.first() {
            Some(byte) if byte & header::BRANCH != 0 => "branch",
            Some(byte) if byte & header::ATOM != 0 => "atom",
            Some(&header::I_SYNC) => "i_sync",
            Some(&header::VMID) => "vmid",
            Some(&(header::TIMESTAMP | header::TIMESTAMP_CLOCK_CHANGED)) => "timestamp",
            Some(&header::CONTEXT_ID) => "context_id",
            Some(&header::WAYPOINT_UPDATE) => "waypoint_update",
            // Every other packet is one byte.
            _ => "a_sync",
        };
        Malformation::Truncated { packet }
    }

    fn desynchronise(&mut self) {
        self.synchronisation = Synchronisation::Searching;
        self.compression.forget_base();
    }
}

/// F of a cycle-accurate atom: set for N.
pub(super) const CYCLE_ACCURATE_N: u8 = 0b0000_0010;

const CONTEXT_ID_NOT_ENABLED: Malformation =
    Malformation::NotEnabled { packet: "context_id", setting: "ETMCR[15:14]" };

/// 4.5.4: exception information bytes 0 and 1. Fields that the bytes omit keep their values.
fn exception_information(
    cursor: &mut Cursor<'_>,
    next: &mut Compression,
) -> Result<ExceptionInformation, Unread> {
    let reserved = |field, byte: u8, expected| {
        let found = u64::from(byte);
        Unread::Malformed(Malformation::ReservedValue { packet: "branch", field, found, expected })
    };
    let byte_0 = cursor.byte()?;
    if byte_0 & exception_byte_0::RESERVED != 0 {
        return Err(reserved("exception information byte 0", byte_0, "bit 5 clear"));
    }
    let mut number = u16::from((byte_0 & exception_byte_0::NUMBER) >> exception_byte_0::NUMBER_SHIFT);
    next.alternative_isa = byte_0 & exception_byte_0::ALTERNATIVE_ISA != 0;
    next.security.non_secure = byte_0 & exception_byte_0::NON_SECURE != 0;
    if byte_0 & exception_byte_0::CONTINUES != 0 {
        let byte_1 = cursor.byte()?;
        if byte_1 & exception_byte_1::RESERVED != 0 {
            return Err(reserved("exception information byte 1", byte_1, "bits 7 and 6 clear"));
        }
        number |= u16::from(byte_1 & exception_byte_1::NUMBER) << exception_byte_1::NUMBER_SHIFT;
        next.security.hypervisor = byte_1 & exception_byte_1::HYPERVISOR != 0;
    }
    Ok(ExceptionInformation { number, security: next.security })
}

fn address_error(packet: &'static str, error: ReadError) -> Unread {
    match error {
        ReadError::NeedInput => Unread::NeedInput,
        ReadError::Reserved { found } => Unread::Malformed(Malformation::ReservedValue {
            packet,
            field: "address byte 5",
            found: u64::from(found),
            expected: "bit 7 clear and a valid instruction set",
        }),
    }
}
