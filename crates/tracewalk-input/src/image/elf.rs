//! ELF files → the segments of an image.

use std::ops::Range;
use std::path::Path;

use object::LittleEndian;
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable};
use object::{Object, ObjectSegment};
use tracewalk::ids::{Address, Isa, Location};
use tracewalk::plain::plain;

use super::attributes::Attributes;
use super::contents::{Image, ImageForm, Segment, Width};
use super::error::{ImageErrorKind, Looks};
use crate::bytes::Bytes;

/// The most segments: programs have a few. Without a limit, a small file could name the same bytes 65,535
/// times.
const MOST_SEGMENTS: usize = 1024;

/// The most bytes of all segments, as a multiple of the file's. Segments may share bytes (headers,
/// alignment), but not the whole file many times over.
pub(crate) const MOST_TIMES_THE_FILE: u64 = 4;

const ENDIAN: LittleEndian = LittleEndian;

/// Reads an ELF file.
pub(super) fn read(file: &Path, bytes: &Bytes) -> Result<Image, ImageErrorKind> {
    match check_identity(bytes)? {
        Width::Bits32 => read_class::<FileHeader32<LittleEndian>>(file, bytes),
        Width::Bits64 => read_class::<FileHeader64<LittleEndian>>(file, bytes),
    }
}

fn read_class<E: FileHeader<Endian = LittleEndian>>(
    file: &Path,
    bytes: &Bytes,
) -> Result<Image, ImageErrorKind> {
    let data: &[u8] = bytes;
    let header = E::parse(data).map_err(malformed)?;
    check_tables(header, data)?;
    let sections = header.sections(ENDIAN, data).map_err(malformed)?;
    let programs = header.program_headers(ENDIAN, data).map_err(malformed)?;
    let loadable = programs.iter().any(|program| program.p_type(ENDIAN) == elf::PT_LOAD);
    let segments = if loadable {
        from_program_headers::<E>(programs, &sections, data)?
    } else {
        from_sections::<E>(&sections, header.e_type(ENDIAN) == elf::ET_REL, data)?
    };
    check_size(&segments, data)?;
    if !segments.iter().any(|segment| segment.executable) {
        return Err(ImageErrorKind::NoCode);
    }
    Ok(Image {
        file: file.to_owned(),
        segments,
        build_id: build_id::<E>(&sections, data),
        attributes: attributes::<E>(&sections, data),
        entry: entry(header),
        bytes: bytes.clone(),
        moved: 0,
        form: if header.is_type_64() { ImageForm::Elf64 } else { ImageForm::Elf32 },
    })
}

/// The addresses of the program's variables, from the file's sections. The file only has their initial
/// values.
pub(super) fn variables(width: Width, data: &[u8]) -> Vec<Range<u64>> {
    match width {
        Width::Bits32 => variables_in::<FileHeader32<LittleEndian>>(data),
        Width::Bits64 => variables_in::<FileHeader64<LittleEndian>>(data),
    }
}

fn variables_in<E: FileHeader<Endian = LittleEndian>>(data: &[u8]) -> Vec<Range<u64>> {
    let sections = E::parse(data).and_then(|header| header.sections(ENDIAN, data));
    let Ok(sections) = sections else { return Vec::new() };
    let is_variable = |section: &&E::SectionHeader| {
        let flags = section.sh_flags(ENDIAN);
        flags.contains(elf::SHF_ALLOC) && flags.contains(elf::SHF_WRITE)
    };
    let range = |section: &E::SectionHeader| {
        let start: u64 = section.sh_addr(ENDIAN).into();
        start..start.saturating_add(section.sh_size(ENDIAN).into())
    };
    sections.iter().filter(is_variable).map(range).collect()
}

pub(crate) fn malformed(error: object::read::Error) -> ImageErrorKind {
    ImageErrorKind::Malformed(error.to_string())
}

/// Checks that this is a little-endian ELF file for Arm, and returns the width of its addresses. Examines
/// single bytes, because the layout of the header depends on them.
pub(crate) fn check_identity(data: &[u8]) -> Result<Width, ImageErrorKind> {
    const HEADER: usize = size_of::<FileHeader32<LittleEndian>>();
    if !data.starts_with(&elf::ELFMAG) {
        return Err(ImageErrorKind::NotElf(Looks::like(data)));
    }
    let (Some(class), Some(order), Some(machine)) = (data.get(4), data.get(5), data.get(18..20)) else {
        return Err(cut_off("the header", HEADER as u64, data));
    };
    let big_endian = elf::DataEncoding(*order) == elf::ELFDATA2MSB;
    let machine = machine.iter().rev().fold(0, |number, byte| number << 8 | u16::from(*byte));
    let machine = if big_endian { machine.swap_bytes() } else { machine };
    let bits = match elf::FileClass(*class) {
        elf::ELFCLASS32 => Some(32),
        elf::ELFCLASS64 => Some(64),
        _ => None,
    };
    let (width, header) = match (elf::Machine(machine), bits) {
        (elf::EM_ARM, Some(32)) => (Width::Bits32, HEADER),
        (elf::EM_AARCH64, Some(64)) => (Width::Bits64, size_of::<FileHeader64<LittleEndian>>()),
        _ => return Err(ImageErrorKind::Machine { bits, machine }),
    };
    if big_endian {
        return Err(ImageErrorKind::BigEndian);
    }
    if data.len() < header {
        return Err(cut_off("the header", header as u64, data));
    }
    Ok(width)
}

/// Checks that the tables of segments and sections are in the file. The section headers come last in most
/// files, so this check detects a file that was not copied completely.
pub(crate) fn check_tables<E: FileHeader<Endian = LittleEndian>>(
    header: &E,
    data: &[u8],
) -> Result<(), ImageErrorKind> {
    let (segments, sections) = (header.e_phoff(ENDIAN).into(), header.e_shoff(ENDIAN).into());
    let tables = [
        ("the table of segments", segments, header.e_phnum(ENDIAN), header.e_phentsize(ENDIAN)),
        ("the table of sections", sections, header.e_shnum(ENDIAN), header.e_shentsize(ENDIAN)),
    ];
    for (what, offset, entries, size) in tables {
        let end = offset.saturating_add(u64::from(entries) * u64::from(size));
        if offset != 0 && end > data.len() as u64 {
            return Err(cut_off(what, end, data));
        }
    }
    Ok(())
}

fn cut_off(what: &'static str, end: u64, data: &[u8]) -> ImageErrorKind {
    ImageErrorKind::Truncated { what, end, bytes: data.len() as u64 }
}

/// The segments that a loader would load and that can hold code or constants.
fn from_program_headers<E: FileHeader<Endian = LittleEndian>>(
    programs: &[E::ProgramHeader],
    sections: &SectionTable<'_, E>,
    data: &[u8],
) -> Result<Vec<Segment>, ImageErrorKind> {
    let mut segments = Vec::new();
    for (index, program) in programs.iter().enumerate() {
        if program.p_type(ENDIAN) != elf::PT_LOAD || program.p_filesz(ENDIAN).into() == 0 {
            continue;
        }
        let flags = program.p_flags(ENDIAN);
        // Some linkers mark only sections as executable, not the segments that contain them.
        let executable = flags.contains(elf::PF_X)
            || sections_in::<E>(program, sections)
                .any(|section| section.sh_flags(ENDIAN).contains(elf::SHF_EXECINSTR));
        if !executable && flags.contains(elf::PF_W) {
            continue;
        }
        let size = program.p_filesz(ENDIAN).into();
        let all = file_range("a segment", program.p_offset(ENDIAN).into(), size, data)?;
        let (skipped, range) = without_headers::<E>(program, sections, all);
        let address = Address::new(program.p_vaddr(ENDIAN).into());
        check_address::<E>(address, size)?;
        // At most `size` is skipped, so the sum is a checked address.
        let address = Address::new(address.get().saturating_add(skipped));
        segments.push(Segment { name: format!("segment {index}"), address, executable, range });
        check_count(segments.len())?;
    }
    Ok(segments)
}

/// The sections in a segment that have bytes in the file.
fn sections_in<'a, E: FileHeader<Endian = LittleEndian>>(
    program: &E::ProgramHeader,
    sections: &'a SectionTable<'_, E>,
) -> impl Iterator<Item = &'a E::SectionHeader> {
    let start: u64 = program.p_vaddr(ENDIAN).into();
    let end = start.saturating_add(program.p_filesz(ENDIAN).into());
    sections.iter().filter(move |section| {
        let from: u64 = section.sh_addr(ENDIAN).into();
        let to = from.saturating_add(section.sh_size(ENDIAN).into());
        has_memory(*section) && from >= start && to <= end && from < to
    })
}

/// Cuts a segment to the sections in it; returns the number of bytes left out before them.
///
/// GNU ld lets the first segment of a bare-metal program start with the ELF header if the addresses allow it.
/// The processor has other bytes at the header's address, perhaps another image.
fn without_headers<E: FileHeader<Endian = LittleEndian>>(
    program: &E::ProgramHeader,
    sections: &SectionTable<'_, E>,
    range: Range<usize>,
) -> (u64, Range<usize>) {
    let base: u64 = program.p_vaddr(ENDIAN).into();
    let bounds = sections_in::<E>(program, sections).fold(None, |bounds: Option<(u64, u64)>, section| {
        let from = section.sh_addr(ENDIAN).into().wrapping_sub(base);
        let to = from.saturating_add(section.sh_size(ENDIAN).into());
        Some(bounds.map_or((from, to), |(first, last)| (first.min(from), last.max(to))))
    });
    let Some((from, to)) = bounds else { return (0, range) };
    let index = |offset: u64| range.start.saturating_add(usize::try_from(offset).unwrap_or(usize::MAX));
    let end = index(to).min(range.end);
    let start = index(from).min(end);
    (from, start..end)
}

/// The sections with code, for a file without segments. In an object file that is not linked, all sections
/// are at 0, so only one can be used.
fn from_sections<E: FileHeader<Endian = LittleEndian>>(
    sections: &SectionTable<'_, E>,
    relocatable: bool,
    data: &[u8],
) -> Result<Vec<Segment>, ImageErrorKind> {
    let mut segments = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        let flags = section.sh_flags(ENDIAN);
        let executable = flags.contains(elf::SHF_EXECINSTR);
        let wanted = executable || !(relocatable || flags.contains(elf::SHF_WRITE));
        let size = section.sh_size(ENDIAN).into();
        if !has_memory(section) || !wanted || size == 0 {
            continue;
        }
        let range = file_range("a section", section.sh_offset(ENDIAN).into(), size, data)?;
        let address = Address::new(section.sh_addr(ENDIAN).into());
        check_address::<E>(address, size)?;
        let name = sections.section_name(ENDIAN, section).ok().filter(|name| !name.is_empty());
        let name = match name {
            Some(name) => plain(String::from_utf8_lossy(name)).into_owned(),
            None => format!("section {index}"),
        };
        segments.push(Segment { name, address, executable, range });
        check_count(segments.len())?;
    }
    if relocatable && segments.len() > 1 {
        return Err(ImageErrorKind::Unlinked);
    }
    Ok(segments)
}

/// Whether a section is part of the running program and has bytes in the file.
fn has_memory<S: SectionHeader<Endian = LittleEndian>>(section: &S) -> bool {
    section.sh_flags(ENDIAN).contains(elf::SHF_ALLOC) && section.sh_type(ENDIAN) != elf::SHT_NOBITS
}

pub(crate) fn file_range(
    what: &'static str,
    offset: u64,
    size: u64,
    data: &[u8],
) -> Result<Range<usize>, ImageErrorKind> {
    let end = offset.saturating_add(size);
    match (usize::try_from(offset), usize::try_from(end)) {
        (Ok(offset), Ok(end)) if end <= data.len() => Ok(offset..end),
        _ => Err(cut_off(what, end, data)),
    }
}

fn check_address<E: FileHeader>(start: Address, size: u64) -> Result<(), ImageErrorKind> {
    let isa = if E::is_type_64_sized() { Isa::A64 } else { Isa::A32 };
    // Check the last byte: the address after it may overflow 64 bits.
    let last = start.checked_add(size.saturating_sub(1));
    if last.is_none_or(|last| last > isa.last_address()) {
        return Err(ImageErrorKind::PastEndOfMemory { start, bytes: size });
    }
    Ok(())
}

pub(crate) fn check_count(found: usize) -> Result<(), ImageErrorKind> {
    if found > MOST_SEGMENTS {
        return Err(ImageErrorKind::TooManySegments { found, limit: MOST_SEGMENTS });
    }
    Ok(())
}

fn check_size(segments: &[Segment], data: &[u8]) -> Result<(), ImageErrorKind> {
    let claimed = segments.iter().map(|segment| segment.len() as u64).sum();
    let bytes = data.len() as u64;
    if claimed > bytes.saturating_mul(MOST_TIMES_THE_FILE) {
        return Err(ImageErrorKind::Oversized { claimed, bytes });
    }
    Ok(())
}

/// The program's entry; bit 0 of the header's field means Thumb. Files without an entry have 0.
fn entry<E: FileHeader<Endian = LittleEndian>>(header: &E) -> Option<Location> {
    let entry: u64 = header.e_entry(ENDIAN).into();
    let isa = match (header.is_type_64(), entry & 1) {
        (true, _) => Isa::A64,
        (false, 1) => Isa::T32,
        (false, _) => Isa::A32,
    };
    (entry != 0).then_some(Location::new(Address::new(entry & !1), isa))
}

/// The build-id of an ELF file for any machine.
#[must_use]
pub fn build_id_of(data: &[u8]) -> Option<Vec<u8>> {
    object::File::parse(data).ok()?.build_id().ok()?.map(<[u8]>::to_vec)
}

/// The build-id of the ELF file with this path. Little else of the file is read.
#[must_use]
pub fn build_id_of_file(file: &Path) -> Option<Vec<u8>> {
    let cache = object::ReadCache::new(std::fs::File::open(file).ok()?);
    object::File::parse(&cache).ok()?.build_id().ok()?.map(<[u8]>::to_vec)
}

/// The address of the first loaded segment.
pub(super) fn first_loaded(data: &[u8]) -> Option<u64> {
    object::File::parse(data).ok()?.segments().next().map(|segment| segment.address())
}

/// The contents of the note that identifies a build (`NT_GNU_BUILD_ID`).
fn build_id<E: FileHeader<Endian = LittleEndian>>(
    sections: &SectionTable<'_, E>,
    data: &[u8],
) -> Option<Vec<u8>> {
    for section in sections.iter() {
        let Ok(Some(mut notes)) = section.notes(ENDIAN, data) else { continue };
        while let Ok(Some(note)) = notes.next() {
            if note.name() == elf::ELF_NOTE_GNU && note.n_type(ENDIAN) == elf::NT_GNU_BUILD_ID {
                return Some(note.desc().to_vec());
            }
        }
    }
    None
}

fn attributes<E: FileHeader<Endian = LittleEndian>>(
    sections: &SectionTable<'_, E>,
    data: &[u8],
) -> Attributes {
    let section = sections.iter().find(|section| section.sh_type(ENDIAN) == elf::SHT_ARM_ATTRIBUTES);
    let contents = section.and_then(|section| section.data(ENDIAN, data).ok());
    contents.map(Attributes::parse).unwrap_or_default()
}
