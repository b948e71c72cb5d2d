//! Fields that several packets have, and errors for headers that begin no packet.

use alloc::vec::Vec;

use crate::cursor::Cursor;
use crate::ids::{ContextId, Vmid};
use crate::protocol::Malformation;
use crate::protocol::synchronisation::Unread;

use super::config::Config;
use super::packet::{Context, context_byte};

/// Set if another byte of the same field follows.
const CONTINUES: u8 = 0b1000_0000;

/// The most bytes of a count or a key: enough for 32 bits.
pub(super) const LONGEST_NUMBER: u32 = 5;

/// The most bytes of a count of cycles, and its number of bits.
pub(super) const LONGEST_CYCLES: u32 = 3;
pub(super) const CYCLE_BITS: u32 = 20;

/// The error for a header that the protocol does not define. The next byte may be a header.
pub(super) const fn reserved(found: u8) -> Unread {
    Unread::Reserved(Malformation::ReservedHeader { found }, 1)
}

/// The error for a header that the configuration excludes. The next byte may be a header.
pub(super) const fn not_enabled(packet: &'static str, setting: &'static str) -> Unread {
    Unread::Reserved(Malformation::NotEnabled { packet, setting }, 1)
}

/// Reads a number of seven bits a byte, lowest bits first, and at most this number of bytes.
pub(super) fn read_number(
    cursor: &mut Cursor<'_>,
    packet: &'static str,
    longest: u32,
) -> Result<u64, Unread> {
    let mut value = 0;
    for index in 0..longest {
        let byte = cursor.byte()?;
        value |= u64::from(byte & !CONTINUES) << (7 * index);
        if byte & CONTINUES == 0 {
            return Ok(value);
        }
        if index + 1 == longest {
            let (field, found) = ("the last byte of a number", u64::from(byte));
            let expected = "bit 7 clear";
            return Err(Malformation::ReservedValue { packet, field, found, expected }.into());
        }
    }
    Ok(value)
}

/// Reads a count of cycles.
pub(super) fn read_cycles(cursor: &mut Cursor<'_>, packet: &'static str) -> Result<u64, Unread> {
    Ok(read_number(cursor, packet, LONGEST_CYCLES)? & ((1 << CYCLE_BITS) - 1))
}

/// Appends a number as [`read_number`] reads it; `false` if the number takes more bytes.
pub(super) fn write_number(value: u64, longest: u32, bytes: &mut Vec<u8>) -> bool {
    let mut rest = value;
    for _ in 0..longest {
        let [low, ..] = rest.to_le_bytes();
        rest >>= 7;
        bytes.push(low & !CONTINUES | if rest == 0 { 0 } else { CONTINUES });
        if rest == 0 {
            return true;
        }
    }
    false
}

/// Reads the bits that a timestamp changes: seven a byte, and eight in the ninth.
pub(super) fn read_timestamp(cursor: &mut Cursor<'_>, last: u64) -> Result<u64, Unread> {
    let mut value = last;
    for index in 0..TIMESTAMP_BYTES {
        let byte = cursor.byte()?;
        let is_last = index + 1 == TIMESTAMP_BYTES;
        let mask = if is_last { 0xff } else { 0x7f };
        value = value & !(mask << (7 * index)) | (u64::from(byte) & mask) << (7 * index);
        if byte & CONTINUES == 0 {
            break;
        }
    }
    Ok(value)
}

const TIMESTAMP_BYTES: u32 = 9;

/// Appends the shortest field that turns the timestamp `last` into `value`.
pub(super) fn write_timestamp(value: u64, last: u64, bytes: &mut Vec<u8>) {
    for index in 0..TIMESTAMP_BYTES {
        let [byte, ..] = (value >> (7 * index)).to_le_bytes();
        if index + 1 == TIMESTAMP_BYTES {
            bytes.push(byte);
            break;
        }
        let more = (value ^ last) >> (7 * (index + 1)) != 0;
        bytes.push(byte & !CONTINUES | if more { CONTINUES } else { 0 });
        if !more {
            break;
        }
    }
}

/// Reads a context byte, and the VMID and context ID that it announces.
pub(super) fn read_context(cursor: &mut Cursor<'_>, config: &Config) -> Result<Context, Unread> {
    let byte = cursor.byte()?;
    let is_set = |bit| byte & bit != 0;
    let vmid = if is_set(context_byte::HAS_VMID) {
        Some(Vmid(read_plain(cursor, config.vmid_bytes)?))
    } else {
        None
    };
    let context_id = if is_set(context_byte::HAS_CONTEXT_ID) {
        Some(ContextId(read_plain(cursor, config.context_id_bytes)?))
    } else {
        None
    };
    Ok(Context {
        exception_level: byte & context_byte::EXCEPTION_LEVEL,
        is_64_bit: is_set(context_byte::IS_64_BIT),
        non_secure: is_set(context_byte::NON_SECURE),
        non_secure_extension: is_set(context_byte::NON_SECURE_EXTENSION),
        vmid,
        context_id,
    })
}

fn read_plain(cursor: &mut Cursor<'_>, bytes: u8) -> Result<u32, Unread> {
    let mut value = 0;
    for index in 0..u32::from(bytes) {
        value |= u32::from(cursor.byte()?) << (8 * index);
    }
    Ok(value)
}

/// Appends a context; `false` if its fields cannot hold it.
pub(super) fn write_context(context: Context, config: &Config, bytes: &mut Vec<u8>) -> bool {
    let Context { exception_level, is_64_bit, non_secure, non_secure_extension, vmid, context_id } = context;
    let flag = |set, bit| if set { bit } else { 0 };
    bytes.push(
        exception_level & context_byte::EXCEPTION_LEVEL
            | flag(is_64_bit, context_byte::IS_64_BIT)
            | flag(non_secure, context_byte::NON_SECURE)
            | flag(non_secure_extension, context_byte::NON_SECURE_EXTENSION)
            | flag(vmid.is_some(), context_byte::HAS_VMID)
            | flag(context_id.is_some(), context_byte::HAS_CONTEXT_ID),
    );
    let mut plain = |value: u32, length: u8| {
        bytes.extend(value.to_le_bytes().iter().take(usize::from(length)));
        u64::from(value) >> (8 * u32::from(length)) == 0
    };
    exception_level <= context_byte::EXCEPTION_LEVEL
        && vmid.is_none_or(|vmid| plain(vmid.0, config.vmid_bytes))
        && context_id.is_none_or(|context_id| plain(context_id.0, config.context_id_bytes))
}
