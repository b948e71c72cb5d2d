//! Loads the debugging information of an image, without what the linker threw away.
//!
//! With `-ffunction-sections` and `--gc-sections` GNU ld removes functions but keeps their debugging information, and
//! sets their addresses to 0. In a Cortex-M program whose flash starts at 0 they would then lie over the vector table
//! and the first functions that are really there, and take their lines. So where no code starts at address 0, an address
//! 0 in the debugging information is read as DWARF's own mark for a removed function, which is all ones (DWARF 6
//! proposal 200609.1, and what lld writes).

use std::ops::Range;
use std::sync::Arc;

use addr2line::Context;
use gimli::{Dwarf, DwarfSections, EndianArcSlice, LittleEndian, Relocate, RelocateReader, SectionId};
use object::read::elf::ElfFile32;
use object::{Object, ObjectSection};

use crate::image::Image;

/// A section that knows which of its addresses were removed.
pub(super) type Reader = RelocateReader<Section, Removed>;

type Section = EndianArcSlice<LittleEndian>;

/// What an address 0 in a section means.
#[derive(Clone, Debug)]
pub(super) enum Removed {
    /// The address 0.
    Nothing,
    /// Code that was removed.
    Zero,
    /// Code that was removed, except in the head of each unit: there it is the base of the unit's other addresses.
    ZeroOutside(Arc<[Range<usize>]>),
}

impl Relocate for Removed {
    fn relocate_address(&self, offset: usize, value: u64) -> gimli::Result<u64> {
        const REMOVED: u64 = 0xffff_ffff;
        let removed = match self {
            Self::Nothing => false,
            Self::Zero => value == 0,
            Self::ZeroOutside(heads) => value == 0 && !contains(heads, offset),
        };
        Ok(if removed { REMOVED } else { value })
    }

    fn relocate_offset(&self, _: usize, value: usize) -> gimli::Result<usize> {
        Ok(value)
    }
}

/// Whether an offset is in one of the sorted ranges.
fn contains(ranges: &[Range<usize>], offset: usize) -> bool {
    let behind = ranges.partition_point(|range| range.start <= offset);
    behind.checked_sub(1).and_then(|index| ranges.get(index)).is_some_and(|range| range.contains(&offset))
}

/// A compressed section may claim any size. Real ones shrink to a third or so; a thousandth is what deflate can do.
const MOST_EXPANSION: u64 = 1024;

/// The debugging information of an image; `None` where it has none. `code_at_zero` says that there is code at address 0.
pub(super) fn load(image: &Image, code_at_zero: bool) -> Result<Option<Context<Reader>>, String> {
    let Some(bytes) = image.elf_bytes() else { return Ok(None) };
    let file = ElfFile32::<object::LittleEndian>::parse(&**bytes).map_err(|error| error.to_string())?;
    if file.section_by_name(".debug_info").is_none() {
        return Ok(None);
    }
    let sections = DwarfSections::load(|id| Ok::<_, String>((id, section(&file, id)?)))?;
    let heads =
        if code_at_zero { Vec::new() } else { unit_heads(&sections.borrow(|(_, bytes)| bytes.clone())) };
    let heads: Arc<[Range<usize>]> = Arc::from(heads);
    let dwarf = sections.borrow(|(id, bytes)| {
        let removed = match id {
            _ if code_at_zero => Removed::Nothing,
            SectionId::DebugInfo => Removed::ZeroOutside(Arc::clone(&heads)),
            SectionId::DebugLine | SectionId::DebugAddr => Removed::Zero,
            // In lists of ranges the linker takes care of it, and all ones would mean something else.
            _ => Removed::Nothing,
        };
        RelocateReader::new(bytes.clone(), removed)
    });
    Context::from_dwarf(dwarf).map(Some).map_err(|error| error.to_string())
}

/// The bytes of a debugging section, uncompressed; none where there is no such section.
fn section(file: &ElfFile32<'_, object::LittleEndian>, id: SectionId) -> Result<Section, String> {
    let reader = |bytes: &[u8]| EndianArcSlice::new(Arc::from(bytes), LittleEndian);
    // Where variables are is a large part of it, and nobody asks.
    let is_wanted = !matches!(id, SectionId::DebugLoc | SectionId::DebugLocLists);
    let section = file.section_by_name(id.name()).filter(|_| is_wanted);
    let Some(section) = section else { return Ok(reader(&[])) };
    let compressed = section.compressed_data().map_err(|error| error.to_string())?;
    let most = (compressed.data.len() as u64).saturating_mul(MOST_EXPANSION);
    if compressed.uncompressed_size > most {
        return Err(format!("section {} claims to be {} bytes", id.name(), compressed.uncompressed_size));
    }
    let bytes = compressed.decompress().map_err(|error| error.to_string())?;
    Ok(reader(&bytes))
}

/// Where in `.debug_info` the first entry of each unit is, in order. What is malformed ends the list; whoever reads the
/// unit will find out.
fn unit_heads(dwarf: &Dwarf<Section>) -> Vec<Range<usize>> {
    let mut heads = Vec::new();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(abbreviations) = dwarf.abbreviations(&header) else { continue };
        let Ok(mut entries) = header.entries_raw(&abbreviations, None) else { continue };
        let start = entries.next_offset();
        let skipped = match entries.read_abbreviation() {
            Ok(Some(abbreviation)) => entries.skip_attributes(abbreviation.attributes()),
            _ => continue,
        };
        let place = |offset: gimli::UnitOffset| offset.to_debug_info_offset(&header).map(|offset| offset.0);
        if let (Ok(()), Some(start), Some(end)) = (skipped, place(start), place(entries.next_offset())) {
            heads.push(start..end);
        }
    }
    heads
}
