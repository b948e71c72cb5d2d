//! Dumps: memory that debuggers saved.
//!
//! Each debugger that can read a Micro Trace Buffer has its own form for saving memory: Intel HEX, S-records,
//! ELF core files, and the text that people copy from a debugger's window. [`MemoryDump::read`] recognises
//! these by their content and returns the same result for all: pieces of memory, each with its address.
//!
//! No form is mistaken for another. Text is read only if the lines that look like memory match the exact
//! format of one of the known [`Tool`]s. The missing part of a damaged line is reported ([`Damage`]), and
//! other lines are counted. Bytes in none of these forms are not examined: they may be trace, or memory that
//! was saved as it is.
//!
//! Addresses may be anywhere in 32 bits. Only the file's bytes take memory, and overlapping pieces have to
//! agree.
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

pub(super) mod byte_table;
mod core_file;
mod decimal;
mod findings;
mod joined;
mod lines;
mod listing;
mod memory;
mod problem;
mod processor;
mod text;
mod tool;

use std::collections::BTreeSet;
use std::path::Path;

use tracewalk::ids::Address;

use self::memory::finished;
use self::problem::Located;
use super::error::{CaptureError, CaptureErrorKind};
use crate::bytes::Bytes;
use crate::file::LONGEST_CAPTURE;
use crate::records::{Assembly, Flaws, MemoryProblem, RecordForm};
use crate::text::decode;

pub use joined::JoinedMemory;
pub use memory::{Damage, Form, MemoryDump, MemoryPiece, OtherLines};
pub use problem::DumpProblem;
pub use processor::ProcessorRegisters;
pub use tool::Tool;

/// The longest text that is read as a dump: it takes twice its size in memory, and a proportional time. 9 MiB
/// of dumped memory fit.
const LONGEST_TEXT: usize = 24 << 20;

/// The beginning of a longer text that is examined for its form.
const BEGINNING: usize = 64 << 10;

/// Rejects a file that is too long to be read as text, if it begins like a dump.
fn too_long(file: &Path, bytes: &Bytes) -> Result<(), CaptureError> {
    let Some(text) = bytes.get(..BEGINNING).and_then(decode) else { return Ok(()) };
    // The beginning may end in the middle of a line.
    let whole = text.rfind('\n').and_then(|end| text.get(..=end)).unwrap_or_default();
    if RecordForm::of(whole.as_bytes()).is_none() && !matches!(text::read(file, whole), Ok(Some(_))) {
        return Ok(());
    }
    let problem = DumpProblem::TooLong { bytes: bytes.len() as u64, most: LONGEST_TEXT as u64 };
    Err(CaptureError { file: file.to_owned(), line: None, kind: CaptureErrorKind::Dump(problem) })
}

impl MemoryDump {
    /// Reads a file's bytes. `Ok(None)` if their form is unknown; `file` is used in messages.
    ///
    /// # Errors
    ///
    /// If the form is known, but the file is damaged or too long.
    pub fn read(file: &Path, bytes: &Bytes) -> Result<Option<Self>, CaptureError> {
        let error = |(line, problem): Located| CaptureError {
            file: file.to_owned(),
            line,
            kind: CaptureErrorKind::Dump(problem),
        };
        if core_file::is_core(bytes) {
            let (pieces, processor) = core_file::read(bytes).map_err(error)?;
            return Ok(Some(Self { processor, ..Self::of(Form::CoreFile, pieces) }));
        }
        if bytes.len() > LONGEST_TEXT {
            return too_long(file, bytes).map(|()| None);
        }
        let Some(text) = decode(bytes) else { return Ok(None) };
        let text = lines::cleaned(&text);
        match RecordForm::of(text.as_bytes()) {
            Some(form) => {
                let read = form.read(&text).map_err(|(line, problem)| error((line, problem.into())))?;
                Ok(Some(Self::of_records(form, read).map_err(error)?))
            }
            None => text::read(file, &text),
        }
    }

    /// The memory in records. If a damaged file has no memory, the damage is the error.
    fn of_records(form: RecordForm, (memory, flaws): (Assembly, Flaws)) -> Result<Self, Located> {
        let form = match form {
            RecordForm::IntelHex => Form::IntelHex,
            RecordForm::SRecords => Form::SRecords,
        };
        let mut damage = None;
        for (line, problem) in flaws.all() {
            Damage::add(&mut damage, line, problem.into());
        }
        match (finished(memory), damage) {
            (Ok(pieces), damage) => Ok(Self { damage, ..Self::of(form, pieces) }),
            (Err((None, DumpProblem::Memory(MemoryProblem::NoMemory))), Some(damage)) => {
                Err((damage.line, damage.problem))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Reads a file that may hold registers alone. `Ok(None)` if it holds neither memory nor registers.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or as [`MemoryDump::read`].
    pub fn open(file: &Path) -> Result<Option<Self>, CaptureError> {
        let bytes = crate::file::read(file, LONGEST_CAPTURE).map_err(|problem| CaptureError {
            file: file.to_owned(),
            line: None,
            kind: CaptureErrorKind::File(problem),
        })?;
        Self::read_all(file, &bytes)
    }

    /// As [`MemoryDump::open`], for a file's bytes.
    ///
    /// # Errors
    ///
    /// As [`MemoryDump::read`].
    pub fn read_all(file: &Path, bytes: &Bytes) -> Result<Option<Self>, CaptureError> {
        if let Some(dump) = Self::read(file, bytes)? {
            return Ok(Some(dump));
        }
        let Some(text) = decode(bytes) else { return Ok(None) };
        let processor = ProcessorRegisters::read(lines::lines(&lines::cleaned(&text)));
        let found = !processor.is_empty();
        Ok(found.then(|| Self { processor, ..Self::of(Form::Text(BTreeSet::new()), Vec::new()) }))
    }

    /// Plain memory from this address on.
    ///
    /// # Errors
    ///
    /// If the bytes extend past the last 32-bit address.
    pub fn binary(file: &Path, address: Address, bytes: &Bytes) -> Result<Self, CaptureError> {
        if address.get() + bytes.len() as u64 > 1 << 32 {
            let problem =
                MemoryProblem::PastEndOfMemory { address: address.get(), bytes: bytes.len() as u64 };
            let kind = CaptureErrorKind::Dump(problem.into());
            return Err(CaptureError { file: file.to_owned(), line: None, kind });
        }
        let piece = MemoryPiece { address: Some(address), bytes: bytes.clone() };
        Ok(Self::of(Form::Binary, vec![piece]))
    }
}

#[cfg(test)]
mod tests;
