//! ELF core files, as `generate-core-file` of GDB writes them. Each loadable segment is memory; a note has
//! the registers of the running thread.

use object::LittleEndian;
use object::elf::{self, FileHeader32};
use object::read::elf::{FileHeader, ProgramHeader};

use super::memory::{MemoryPiece, finished};
use super::problem::{DumpProblem, Located};
use super::processor::ProcessorRegisters;
use crate::image::elf::{
    MOST_TIMES_THE_FILE, check_count, check_identity, check_tables, file_range, malformed,
};
use crate::image::{ImageErrorKind, Width};
use crate::records::Assembly;

const ENDIAN: LittleEndian = LittleEndian;

/// Whether the file is an ELF core file, for any machine.
pub(super) fn is_core(bytes: &[u8]) -> bool {
    let big_endian = bytes.get(5).is_some_and(|&order| elf::DataEncoding(order) == elf::ELFDATA2MSB);
    let kind = bytes.get(16..).and_then(|rest| rest.first_chunk().copied());
    let kind = kind.map(if big_endian { u16::from_be_bytes } else { u16::from_le_bytes });
    bytes.starts_with(&elf::ELFMAG) && kind.is_some_and(|kind| elf::FileType(kind) == elf::ET_CORE)
}

/// The offset of the registers in the note NT_PRSTATUS of 32-bit Arm (Linux, `struct elf_prstatus`): r0 to
/// pc, and the status register, which GDB takes from xPSR for M profile.
const REGISTERS: usize = 72;

pub(super) fn read(bytes: &[u8]) -> Result<(Vec<MemoryPiece>, ProcessorRegisters), Located> {
    let pieces = finished(segments(bytes).map_err(|kind| (None, DumpProblem::Core(kind)))?)?;
    Ok((pieces, registers(bytes).unwrap_or_default()))
}

/// The registers of the first thread, which is the running one. `None` if the file has none, and for a
/// processor of another profile.
fn registers(bytes: &[u8]) -> Option<ProcessorRegisters> {
    /// The Thumb bit of xPSR (DDI 0403E, B1.4.2). M profile always has it set; in other profiles the bit
    /// shows Jazelle state.
    const THUMB: u32 = 1 << 24;
    let header = FileHeader32::<LittleEndian>::parse(bytes).ok()?;
    for program in header.program_headers(ENDIAN, bytes).ok()? {
        let Ok(Some(mut notes)) = program.notes(ENDIAN, bytes) else { continue };
        while let Ok(Some(note)) = notes.next() {
            if note.n_type(ENDIAN) != elf::NT_PRSTATUS || note.name() != b"CORE" {
                continue;
            }
            let (words, _) = note.desc().get(REGISTERS..)?.as_chunks::<4>();
            let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
            let mut core = [None; 16];
            core.iter_mut().for_each(|register| *register = words.next());
            let xpsr = words.next().filter(|status| status & THUMB != 0)?;
            return Some(ProcessorRegisters { core, xpsr: Some(xpsr), ..ProcessorRegisters::default() });
        }
    }
    None
}

fn segments(bytes: &[u8]) -> Result<Assembly, ImageErrorKind> {
    // Only 32-bit processors have a Micro Trace Buffer.
    if check_identity(bytes)? == Width::Bits64 {
        return Err(ImageErrorKind::Machine { bits: Some(64), machine: elf::EM_AARCH64.0 });
    }
    let header = FileHeader32::<LittleEndian>::parse(bytes).map_err(malformed)?;
    check_tables(header, bytes)?;
    let mut memory = Assembly::default();
    let (mut count, mut claimed) = (0, 0_u64);
    for program in header.program_headers(ENDIAN, bytes).map_err(malformed)? {
        let (address, size) = (program.p_vaddr(ENDIAN), program.p_filesz(ENDIAN));
        // A segment may have memory without bytes if its content was not saved.
        if program.p_type(ENDIAN) != elf::PT_LOAD || size == 0 {
            continue;
        }
        count += 1;
        check_count(count)?;
        // Checked before it is copied: many segments may name the same bytes of the file.
        claimed += u64::from(size);
        if claimed > (bytes.len() as u64).saturating_mul(MOST_TIMES_THE_FILE) {
            return Err(ImageErrorKind::Oversized { claimed, bytes: bytes.len() as u64 });
        }
        let range = file_range("a segment", program.p_offset(ENDIAN).into(), size.into(), bytes)?;
        let contents = bytes.get(range).unwrap_or_default();
        memory
            .add(address.into(), contents, None)
            .map_err(|_| ImageErrorKind::PastEndOfMemory { start: address.into(), bytes: size.into() })?;
    }
    Ok(memory)
}
