//! Motorola S-records, as `dump srec` of GDB writes them.
//!
//! Motorola, M68000 Family Programmer's Reference Manual (1992), appendix C. A record is `S`, its type, the number of
//! bytes that follow, an address of two to four bytes, data, and the complement of the sum of all bytes.
//!
//! This module has its own reader: the crate `srec` 0.2.0 panics on a header that is not UTF-8, which tools
//! do write, and on a truncated header.

use super::assembly::{Assembly, Located};
use super::flaws::Flaws;
use super::problem::MemoryProblem;
use crate::excerpt::excerpt;

/// The memory, and the damage in the file.
pub(crate) fn read(text: &str) -> Result<(Assembly, Flaws), Located> {
    let mut memory = Assembly::default();
    let (mut records, mut ended) = (0_u32, false);
    let mut flaws = Flaws::default();
    let lines = (1..).zip(text.lines()).map(|(line, text)| (line, text.trim()));
    let mut lines = lines.filter(|(_, text)| !text.is_empty()).peekable();
    while let Some((line, text)) = lines.next() {
        let line = Some(line);
        ended = false;
        let record = match Record::parse(text) {
            Ok(record) => record,
            // If a file is cut off, its last record has no end.
            Err(problem) if lines.peek().is_none() => {
                flaws.add(line, problem);
                break;
            }
            Err(problem) => return Err((line, problem)),
        };
        match record.kind {
            Kind::Header => {}
            Kind::Data => {
                memory.add(record.address.into(), &record.data, line)?;
                records = records.saturating_add(1);
            }
            Kind::Count => {
                let (found, expected) = (records, record.address);
                if found != expected {
                    flaws.add(line, MemoryProblem::RecordCount { found, expected });
                }
            }
            Kind::End => (records, ended) = (0, true),
        }
    }
    if !ended && flaws.is_empty() {
        flaws.add(None, MemoryProblem::CutOff { expected: "an end record S7, S8 or S9" });
    }
    Ok((memory, flaws))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Header,
    Data,
    Count,
    End,
}

struct Record {
    kind: Kind,
    /// The address of the data, or the number that the record states.
    address: u32,
    data: Vec<u8>,
}

impl Record {
    fn parse(text: &str) -> Result<Self, MemoryProblem> {
        let no_record = || MemoryProblem::NotARecord { expected: "an S-record", found: excerpt(text) };
        let mut characters = text.chars();
        if characters.next() != Some('S') {
            return Err(no_record());
        }
        let (kind, address_bytes) = match characters.next() {
            Some('0') => (Kind::Header, 2),
            Some('1') => (Kind::Data, 2),
            Some('2') => (Kind::Data, 3),
            Some('3') => (Kind::Data, 4),
            Some('5') => (Kind::Count, 2),
            Some('6') => (Kind::Count, 3),
            Some('7') => (Kind::End, 4),
            Some('8') => (Kind::End, 3),
            Some('9') => (Kind::End, 2),
            Some(other @ '4') => return Err(MemoryProblem::RecordType { found: format!("S{other}") }),
            _ => return Err(no_record()),
        };
        let bytes = hex_bytes(characters.as_str()).ok_or_else(no_record)?;
        let wrong_length = || MemoryProblem::RecordLength { found: excerpt(text) };
        let (count, rest) = bytes.split_first().ok_or_else(no_record)?;
        let (checksum, contents) = rest.split_last().ok_or_else(wrong_length)?;
        if rest.len() != usize::from(*count) {
            return Err(wrong_length());
        }
        let expected = !contents.iter().fold(*count, |sum, byte| sum.wrapping_add(*byte));
        if *checksum != expected {
            return Err(MemoryProblem::Checksum { found: *checksum, expected });
        }
        let (address, data) = contents.split_at_checked(address_bytes).ok_or_else(wrong_length)?;
        if matches!(kind, Kind::Count | Kind::End) && !data.is_empty() {
            return Err(wrong_length());
        }
        let address = address.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        Ok(Self { kind, address, data: data.to_vec() })
    }
}

/// The bytes of pairs of hexadecimal digits.
fn hex_bytes(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |&[high, low]: &[u8; 2]| Some(digit(high)? << 4 | digit(low)?);
    rest.is_empty().then(|| pairs.iter().map(byte).collect())?
}
