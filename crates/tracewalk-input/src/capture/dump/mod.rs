//! Dumps: what debuggers write when they are asked for memory.
//!
//! A Micro Trace Buffer is read out by whatever is at hand, and each tool has its own way to write memory down: Intel HEX,
//! S-records, ELF core files, and the text that people copy from a debugger's window. [`MemoryDump::read`] recognises these
//! by their content and answers with the same thing for all: pieces of memory, each with its address.
//!
//! No form is taken for another. Text is read only where lines that look like memory are written exactly as one of the
//! known [`Tool`]s writes it; what a damaged line lacks is missing ([`Damage`]), and other lines are counted. Bytes that are
//! of none of these forms are not looked at: they may be trace, or memory that was saved as it is.
//!
//! Addresses may be anywhere in 32 bits. Only bytes that the file holds take room, and pieces that overlap have to agree.
//!
//! ```
//! use tracewalk_input::capture::dump::MemoryDump;
//!
//! let text = "0x20000000 <buffer>:\t0x0000010c\t0x00000116\n0xf0000000:\t0x00000008\n";
//! let dump = MemoryDump::read("gdb.txt".as_ref(), &text.as_bytes().to_vec().into())?.expect("it is what GDB prints");
//! assert_eq!(dump.pieces.len(), 2);
//! assert_eq!(dump.pieces[0].bytes[..], [0x0c, 0x01, 0, 0, 0x16, 0x01, 0, 0]);
//! # Ok::<(), tracewalk_input::capture::CaptureError>(())
//! ```

mod assembly;
mod core_file;
mod findings;
mod intel_hex;
mod joined;
mod listing;
mod memory;
mod problem;
mod processor;
mod s_record;
mod text;
mod tool;

use std::collections::BTreeSet;
use std::path::Path;

use tracewalk::ids::Address;

use self::assembly::{Assembly, Located};
use super::error::{CaptureError, CaptureErrorKind};
use crate::bytes::Bytes;
use crate::file::LONGEST_CAPTURE;
use crate::text::letters;

pub use joined::JoinedMemory;
pub use memory::{Damage, Form, MemoryDump, MemoryPiece, OtherLines};
pub use problem::DumpProblem;
pub use processor::ProcessorRegisters;
pub use tool::Tool;

impl MemoryDump {
    /// Reads a file's bytes. `Ok(None)` where they are of no form that is known here; `file` is used in messages.
    pub fn read(file: &Path, bytes: &Bytes) -> Result<Option<Self>, CaptureError> {
        let error = |(line, problem): (Option<u32>, DumpProblem)| CaptureError {
            file: file.to_owned(),
            line,
            kind: CaptureErrorKind::Dump(problem),
        };
        if core_file::is_core(bytes) {
            let pieces = core_file::read(bytes).map_err(error)?;
            return Ok(Some(Self::of(Form::CoreFile, pieces)));
        }
        let Some(text) = decode(bytes) else { return Ok(None) };
        match text.trim_start().as_bytes() {
            [b':', b'0'..=b'9' | b'A'..=b'F' | b'a'..=b'f', ..] => {
                Ok(Some(Self::of_records(Form::IntelHex, intel_hex::read(&text)).map_err(error)?))
            }
            [b'S', b'0'..=b'9', b'0'..=b'9' | b'A'..=b'F' | b'a'..=b'f', ..] => {
                Ok(Some(Self::of_records(Form::SRecords, s_record::read(&text)).map_err(error)?))
            }
            _ => text::read(file, &text),
        }
    }

    /// What records say. Of a damaged file that holds no memory the damage is the problem.
    fn of_records(form: Form, read: Result<(Assembly, Option<Damage>), Located>) -> Result<Self, Located> {
        let (memory, damage) = read?;
        match (memory.finish(), damage) {
            (Ok(pieces), damage) => Ok(Self { damage, ..Self::of(form, pieces) }),
            (Err((None, DumpProblem::NoMemory)), Some(Damage { line, problem, .. })) => Err((line, problem)),
            (Err(error), _) => Err(error),
        }
    }

    /// Reads a file that may hold registers alone. `Ok(None)` where it holds neither these nor memory.
    pub fn open(file: &Path) -> Result<Option<Self>, CaptureError> {
        let bytes = crate::file::read(file, LONGEST_CAPTURE).map_err(|problem| CaptureError {
            file: file.to_owned(),
            line: None,
            kind: CaptureErrorKind::File(problem),
        })?;
        if let Some(dump) = Self::read(file, &bytes)? {
            return Ok(Some(dump));
        }
        let Some(text) = decode(&bytes) else { return Ok(None) };
        let processor = ProcessorRegisters::read(text::lines(&text));
        let found = !processor.is_empty();
        Ok(found.then(|| Self { processor, ..Self::of(Form::Text(BTreeSet::new()), Vec::new()) }))
    }

    /// Memory as it is, from this address on.
    pub fn binary(file: &Path, address: Address, bytes: &Bytes) -> Result<Self, CaptureError> {
        if address.get() + bytes.len() as u64 > 1 << 32 {
            let problem = DumpProblem::PastEndOfMemory { address: address.get(), bytes: bytes.len() as u64 };
            let kind = CaptureErrorKind::Dump(problem);
            return Err(CaptureError { file: file.to_owned(), line: None, kind });
        }
        let piece = MemoryPiece { address: Some(address), bytes: bytes.clone() };
        Ok(Self::of(Form::Binary, vec![piece]))
    }
}

/// The file's text; `None` where it is none.
fn decode(bytes: &[u8]) -> Option<String> {
    // What Windows PowerShell writes when a tool's output is redirected into a file.
    if let Some(wide) = bytes.strip_prefix(b"\xff\xfe") {
        let units = wide.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        let text = char::decode_utf16(units).collect::<Result<String, _>>().ok()?;
        return letters(text.as_bytes()).map(|_| text);
    }
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    // The copy is checked, not the file, which somebody may be writing.
    let lossy = |bytes: Vec<u8>| match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    letters(bytes).map(|_| lossy(bytes.to_vec()))
}

#[cfg(test)]
mod tests;
