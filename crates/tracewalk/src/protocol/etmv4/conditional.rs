//! Packets of conditional instructions other than branches, and their results.
//!
//! The header selects the packet and holds its short fields; keys and tokens follow.

use crate::cursor::Cursor;
use crate::protocol::synchronisation::Unread;

use super::fields::{LONGEST_NUMBER, not_enabled, read_number, reserved};
use super::packet::{ConditionalInstruction, ConditionalResult, KeyedResult, Packet, header};

/// Reads a packet whose header is 0x40 to 0x6f; `enabled` if the trace unit traces conditional instructions.
pub(super) fn read(enabled: bool, found: u8, cursor: &mut Cursor<'_>) -> Result<Packet, Unread> {
    use ConditionalInstruction as Instruction;
    use ConditionalResult as Result;
    if !enabled {
        return Err(match found {
            0x47 | 0x4b | 0x4f | 0x60..=0x67 => reserved(found),
            _ => not_enabled("conditional", "TRCIDR0.TRCCOND"),
        });
    }
    Ok(match found {
        0x40 => Packet::ConditionalInstruction(Instruction::Next),
        0x41 => Packet::ConditionalInstruction(Instruction::Same),
        0x42 => Packet::ConditionalInstruction(Instruction::NextAndSame),
        header::CONDITIONAL_FLUSH => Packet::ConditionalFlush,
        0x44..=0x46 => Packet::ConditionalResult(Result::Previous(found - header::CONDITIONAL_RESULT_4)),
        0x48..=0x4a | 0x4c..=0x4e => {
            let advance = if found & 0b100 == 0 { 1 } else { 2 };
            Packet::ConditionalResult(Result::Token { advance, token: found & 0b11 })
        }
        0x50..=0x5f => {
            let high = u16::from(found - header::CONDITIONAL_RESULT_3);
            Packet::ConditionalResult(Result::Tokens(high << 8 | u16::from(cursor.byte()?)))
        }
        0x68..=0x6b => {
            let first = keyed_result(cursor, found & 0b01 != 0)?;
            let second = keyed_result(cursor, found & 0b10 != 0)?;
            Packet::ConditionalResult(Result::Keys(first, Some(second)))
        }
        header::CONDITIONAL_INSTRUCTION_1 => {
            let key = read_number(cursor, "conditional_instruction", LONGEST_NUMBER)?;
            Packet::ConditionalInstruction(Instruction::Key(key))
        }
        header::CONDITIONAL_INSTRUCTION_3 => {
            let byte = cursor.byte()?;
            let (count, and_same) = (byte >> 1 & 0b11_1111, byte & 0b1 != 0);
            Packet::ConditionalInstruction(Instruction::Successive { count, and_same })
        }
        0x6e | 0x6f => Packet::ConditionalResult(Result::Keys(keyed_result(cursor, found & 0b1 != 0)?, None)),
        // 0x47, 0x4b, 0x4f, 0x60 to 0x67.
        _ => return Err(reserved(found)),
    })
}

/// Three bits of the key and the result, then seven bits of the key a byte.
fn keyed_result(cursor: &mut Cursor<'_>, ci: bool) -> Result<KeyedResult, Unread> {
    let first = cursor.byte()?;
    let low = u64::from(first >> 4 & 0b111);
    let high =
        if first & 0b1000_0000 == 0 { 0 } else { read_number(cursor, "conditional_result", LONGEST_NUMBER)? };
    Ok(KeyedResult { key: low | high << 3, result: first & 0b1111, ci })
}
