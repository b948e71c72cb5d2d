//! Intel HEX, as `dump ihex` of GDB and `probe-rs read --format ihex` write it.
//!
//! Intel, Hexadecimal Object File Format Specification, revision A (1988).

use ihex::{ReaderError, Record};

use super::assembly::{Assembly, Located};
use super::flaws::Flaws;
use super::problem::MemoryProblem;
use crate::excerpt::excerpt;

/// The base of the addresses in data records.
#[derive(Clone, Copy)]
enum Base {
    /// Paragraphs of 16 bytes; addresses wrap at the end of the segment's 64 KiB.
    Segment(u16),
    /// The upper half of the address.
    Linear(u16),
}

/// The memory, and the damage in the file.
pub(crate) fn read(text: &str) -> Result<(Assembly, Flaws), Located> {
    let mut memory = Assembly::default();
    let mut base = Base::Linear(0);
    let mut ended = false;
    let mut flaws = Flaws::default();
    let mut records = (1..).zip(text.lines()).map(|(line, record)| (line, record.trim()));
    let mut records = records.by_ref().filter(|(_, record)| !record.is_empty()).peekable();
    while let Some((line, record)) = records.next() {
        let line = Some(line);
        ended = false;
        let record = match Record::from_record_string(record) {
            Ok(record) => record,
            // If a file is cut off, its last record has no end. After any other damaged record, the base of
            // the addresses is unknown.
            Err(error) if records.peek().is_none() => {
                flaws.add(line, problem(error, record));
                break;
            }
            Err(error) => return Err((line, problem(error, record))),
        };
        match record {
            Record::Data { offset, value } => add(&mut memory, base, offset, &value, line)?,
            Record::ExtendedSegmentAddress(segment) => base = Base::Segment(segment),
            Record::ExtendedLinearAddress(upper) => base = Base::Linear(upper),
            // Files may be concatenated; each one starts at address 0 again.
            Record::EndOfFile => (base, ended) = (Base::Linear(0), true),
            Record::StartSegmentAddress { .. } | Record::StartLinearAddress(_) => {}
        }
    }
    if !ended && flaws.is_empty() {
        flaws.add(None, MemoryProblem::CutOff { expected: "the end record `:00000001FF`" });
    }
    Ok((memory, flaws))
}

fn add(
    memory: &mut Assembly,
    base: Base,
    offset: u16,
    bytes: &[u8],
    line: Option<u32>,
) -> Result<(), Located> {
    match base {
        Base::Linear(upper) => memory.add(u64::from(upper) << 16 | u64::from(offset), bytes, line),
        Base::Segment(segment) => {
            let start = u64::from(segment) << 4;
            let before_wrap = usize::from(u16::MAX - offset) + 1;
            let (here, wrapped) = bytes.split_at(before_wrap.min(bytes.len()));
            memory.add(start + u64::from(offset), here, line)?;
            memory.add(start, wrapped, line)
        }
    }
}

fn problem(error: ReaderError, record: &str) -> MemoryProblem {
    let found = || excerpt(record);
    match error {
        ReaderError::MissingStartCode
        | ReaderError::RecordTooShort
        | ReaderError::RecordTooLong
        | ReaderError::RecordNotEvenLength
        | ReaderError::ContainsInvalidCharacters => {
            MemoryProblem::NotARecord { expected: "an Intel HEX record", found: found() }
        }
        // The library swaps the two.
        ReaderError::ChecksumMismatch(expected, found) => MemoryProblem::Checksum { found, expected },
        ReaderError::PayloadLengthMismatch | ReaderError::InvalidLengthForType => {
            MemoryProblem::RecordLength { found: found() }
        }
        ReaderError::UnsupportedRecordType(kind) => {
            MemoryProblem::RecordType { found: format!("{kind:02X}") }
        }
    }
}
