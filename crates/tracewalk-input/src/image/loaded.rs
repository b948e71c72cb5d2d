//! What a loader puts into memory: all loaded segments of an ELF file, also those with variables.

use object::LittleEndian;
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

use super::contents::{Image, Width};

const ENDIAN: LittleEndian = LittleEndian;

/// A segment that a loader puts into memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedSegment<'a> {
    /// The address at which the program uses it.
    pub address: u64,
    /// The address at which the file puts its bytes; start-up code copies them from there if the addresses differ.
    pub physical_address: u64,
    /// Its size in memory. The file may have only the beginning.
    pub memory_size: u64,
    /// Whether the program may write to it.
    pub is_writable: bool,
    /// Its bytes in the file.
    pub bytes: &'a [u8],
}

impl Image {
    /// All segments of an ELF file that a loader puts into memory; empty for other images.
    #[must_use]
    pub fn loaded_segments(&self) -> Vec<LoadedSegment<'_>> {
        match self.elf_file() {
            Some((Width::Bits32, bytes)) => loaded::<FileHeader32<LittleEndian>>(bytes),
            Some((Width::Bits64, bytes)) => loaded::<FileHeader64<LittleEndian>>(bytes),
            None => Vec::new(),
        }
    }
}

fn loaded<E: FileHeader<Endian = LittleEndian>>(data: &[u8]) -> Vec<LoadedSegment<'_>> {
    let programs = E::parse(data).and_then(|header| header.program_headers(ENDIAN, data));
    let Ok(programs) = programs else { return Vec::new() };
    let loaded = programs.iter().filter(|program| program.p_type(ENDIAN) == elf::PT_LOAD);
    let segment = |program: &E::ProgramHeader| {
        Some(LoadedSegment {
            address: program.p_vaddr(ENDIAN).into(),
            physical_address: program.p_paddr(ENDIAN).into(),
            memory_size: program.p_memsz(ENDIAN).into(),
            is_writable: program.p_flags(ENDIAN).contains(elf::PF_W),
            bytes: program.data(ENDIAN, data).ok()?,
        })
    };
    loaded.filter_map(segment).collect()
}
