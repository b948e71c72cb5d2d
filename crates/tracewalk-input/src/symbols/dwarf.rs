//! Loads the debugging information of an image, without that of removed code.
//!
//! With `-ffunction-sections` and `--gc-sections`, GNU ld removes functions but keeps their debugging
//! information and sets their addresses to 0. In a Cortex-M program whose flash starts at 0, the removed
//! functions would then cover the vector table and the first functions, and take their lines. So if no code
//! starts at address 0, an address 0 in the debugging information is read as DWARF's own mark for a removed
//! function, which is all ones (DWARF 6 proposal 200609.1, and what lld writes).

mod abbreviations;
mod checksums;
mod reader;
pub(super) mod types;

use std::ops::Range;
use std::sync::Arc;

use addr2line::Context;
use gimli::{
    Abbreviations, AbbreviationsCache, AbbreviationsCacheStrategy, DebugAbbrevOffset, DebugInfo, Dwarf,
    DwarfSections, EndianSlice, LittleEndian, Section as _, SectionId,
};
use object::elf::{FileHeader32, FileHeader64};
use object::read::elf::{ElfFile, FileHeader};
use object::{Object, ObjectSection};

use crate::image::Image;
use crate::image::Width;

use reader::Removed;
pub(super) use reader::{Budget, Reader};

/// The debugging information of an image.
pub(super) struct Debugging {
    pub(super) context: Context<Reader>,
    dwarf: Arc<Dwarf<Reader>>,
    /// The number of bytes that may still be read.
    pub(super) budget: Arc<Budget>,
    /// The displacement of the program in memory from the file's addresses, modulo 2^64.
    pub(super) moved: u64,
}

/// The note for debugging information that is unusable because it refers to itself too often.
pub(super) const REPEATS: &str = "its debugging information refers to the same parts too often";

/// The limit on the total size of a file's compressed sections after expansion, for each byte of the file.
/// Sections typically shrink to a third; deflate can reach a thousandth.
const MOST_EXPANSION: u64 = 32;

/// The additional allowance for short files.
const LEAST_ROOM: u64 = 64 << 20;

/// The deepest nesting of entries, because their reader recurses. Programs have a few dozen levels.
const DEEPEST: isize = 500;

/// The debugging information of an image; `None` if it has none. `code_at_zero` states that there is code at
/// address 0; `most` limits the memory.
pub(super) fn load(
    image: &Image,
    code_at_zero: bool,
    most: Option<u64>,
) -> Result<Option<Debugging>, String> {
    let Some((width, bytes, moved)) = image.named_file() else { return Ok(None) };
    let sections = match width {
        Width::Bits32 => sections::<FileHeader32<object::LittleEndian>>(bytes, most),
        Width::Bits64 => sections::<FileHeader64<object::LittleEndian>>(bytes, most),
    };
    let Some((sections, mut left)) = sections? else { return Ok(None) };
    let budget = Arc::new(Budget::of(room(bytes, most) - left));
    let reported = |problem: String| if budget.is_spent() { REPEATS.to_owned() } else { problem };
    let reader = |(_, bytes): &(SectionId, Arc<[u8]>)| Reader::new(bytes, Removed::Nothing, &budget);
    let debug_abbrev = sections.debug_abbrev.borrow(reader);
    let mut cache = AbbreviationsCache::new();
    let units = sections.debug_info.borrow(reader).units();
    abbreviations::check(debug_abbrev.reader(), units.clone(), &mut left)?;
    cache.populate(AbbreviationsCacheStrategy::All, &debug_abbrev, units);
    let entries = sections.debug_info.borrow(|(_, bytes)| EndianSlice::new(bytes, LittleEndian));
    let heads = unit_heads(&entries, |offset| cache.get(&debug_abbrev, offset));
    let heads: Arc<[Range<usize>]> = Arc::from(heads.map_err(reported)?);
    let mut dwarf = sections.borrow(|(id, bytes)| {
        let removed = match id {
            _ if code_at_zero => Removed::Nothing,
            SectionId::DebugInfo => Removed::ZeroOutside(Arc::clone(&heads)),
            SectionId::DebugLine | SectionId::DebugAddr => Removed::Zero,
            // The linker marks removed functions in lists of ranges itself, and all ones would mean something
            // else there.
            _ => Removed::Nothing,
        };
        Reader::new(bytes, removed, &budget)
    });
    dwarf.abbreviations_cache = cache;
    let dwarf = Arc::new(dwarf);
    let context = Context::from_arc_dwarf(Arc::clone(&dwarf)).map_err(|error| reported(error.to_string()))?;
    if budget.is_spent() {
        return Err(REPEATS.to_owned());
    }
    Ok(Some(Debugging { context, dwarf, budget, moved }))
}

/// The debugging sections of a file, uncompressed, each with its name.
type Sections = DwarfSections<(SectionId, Arc<[u8]>)>;

/// The debugging sections of a file, and the rest of their room in bytes; `None` if there are none.
fn sections<E: FileHeader<Endian = object::LittleEndian>>(
    bytes: &[u8],
    most: Option<u64>,
) -> Result<Option<(Sections, u64)>, String> {
    let file = ElfFile::<E>::parse(bytes).map_err(|error| error.to_string())?;
    if file.section_by_name(".debug_info").is_none() {
        return Ok(None);
    }
    let mut left = room(bytes, most);
    let sections = DwarfSections::load(|id| Ok::<_, String>((id, section(&file, id, &mut left)?)))?;
    Ok(Some((sections, left)))
}

/// The limit on the total size of a file's debugging sections and their abbreviations in memory, in bytes.
pub(super) fn room(bytes: &[u8], most: Option<u64>) -> u64 {
    let room = (bytes.len() as u64).saturating_mul(MOST_EXPANSION).saturating_add(LEAST_ROOM);
    most.map_or(room, |most| room.min(most))
}

/// The uncompressed bytes of a debugging section, which have to fit into `room`; empty if the file has no
/// such section.
pub(super) fn section<E: FileHeader<Endian = object::LittleEndian>>(
    file: &ElfFile<'_, E>,
    id: SectionId,
    room: &mut u64,
) -> Result<Arc<[u8]>, String> {
    // Location lists of variables are large and not needed.
    let is_wanted = !matches!(id, SectionId::DebugLoc | SectionId::DebugLocLists);
    let section = file.section_by_name(id.name()).filter(|_| is_wanted);
    let Some(section) = section else { return Ok(Arc::from([])) };
    let compressed = section.compressed_data().map_err(|error| error.to_string())?;
    *room = room.checked_sub(compressed.uncompressed_size).ok_or_else(|| {
        let size = compressed.uncompressed_size;
        format!("section {} has {size} bytes uncompressed, expected at most {room}", id.name())
    })?;
    let bytes = compressed.decompress().map_err(|error| error.to_string())?;
    Ok(Arc::from(bytes))
}

/// The range of each unit's first entry in `.debug_info`, in order. Malformed units are skipped; the reader
/// of the unit will report them. Entries that are nested too deeply are an error.
///
/// Each entry is read only once, so its bytes are not counted; counting would take most of the time.
/// Abbreviations are counted, because units may share them.
fn unit_heads(
    entries: &DebugInfo<EndianSlice<'_, LittleEndian>>,
    abbreviations: impl Fn(DebugAbbrevOffset) -> gimli::Result<Arc<Abbreviations>>,
) -> Result<Vec<Range<usize>>, String> {
    let mut heads = Vec::new();
    let mut units = entries.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(abbreviations) = abbreviations(header.debug_abbrev_offset()) else { continue };
        let Ok(mut entries) = header.entries_raw(&abbreviations, None) else { continue };
        let start = entries.next_offset();
        let place = |offset: gimli::UnitOffset| offset.to_debug_info_offset(&header).map(|offset| offset.0);
        let mut is_head = true;
        while let Ok(abbreviation) = entries.read_abbreviation() {
            if let Some(abbreviation) = abbreviation
                && entries.skip_attributes(abbreviation.attributes()).is_err()
            {
                break;
            }
            if std::mem::take(&mut is_head)
                && let (Some(start), Some(end)) = (place(start), place(entries.next_offset()))
            {
                heads.push(start..end);
            }
            if entries.next_depth() > DEEPEST {
                return Err(format!("its entries are nested more than {DEEPEST} levels deep"));
            }
        }
    }
    Ok(heads)
}
