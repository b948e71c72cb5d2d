//! A kernel module's file, which is not linked → the code that the kernel loaded from it: the address of each
//! section, and the targets of branches.
//!
//! The kernel puts sections with code one after the other, starting at the module's address, and applies
//! relocations. Relocations of data are not applied, because they do not affect flow. A branch to an unknown
//! address is left out: flow then finds no code there, instead of following a wrong path.
//!
//! The resulting file's tables have addresses from 0 on, independent of the module's address, so that counts
//! of several runs can be compared.
//!
//! Later changes by the kernel, when it patches alternatives or traces functions, are not in the file.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use object::LittleEndian;
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, Rel, Rela, SectionHeader, Sym};
use object::{SectionIndex, SymbolIndex};
use tracewalk::ids::Address;

use super::contents::{Image, Segment, Width};
use super::elf::{check_identity, read};
use super::relocation::{Kind, Patch};
use crate::bytes::Bytes;

const ENDIAN: LittleEndian = LittleEndian;

/// The place of a module in the kernel's memory.
pub(crate) struct Placing<'a> {
    /// The address of the module's code.
    pub(crate) start: u64,
    /// The length of the module's mapping.
    pub(crate) length: u64,
    /// The distance of `.text` from `start`, if it was recorded.
    pub(crate) text: Option<u64>,
    /// The address of a function of the module, by its name.
    pub(crate) function: &'a dyn Fn(&str) -> Option<u64>,
    /// The address of a symbol of the kernel or of another module.
    pub(crate) export: &'a dyn Fn(&str) -> Option<u64>,
}

/// A module in memory.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) image: Image,
    /// The number of branches that are left out because their targets are unknown.
    pub(crate) branches: u64,
}

/// Why a module's code is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unplaced {
    /// The file is damaged, or not a module for Arm.
    Damaged,
    /// The place of the module's code is unknown.
    Unknown,
}

/// Loads a module at its address in the kernel.
pub(crate) fn place(file: &Path, bytes: &Bytes, placing: &Placing<'_>) -> Result<Placed, Unplaced> {
    let width = check_identity(bytes).map_err(|_| Unplaced::Damaged)?;
    let (patched, holes) = match width {
        Width::Bits32 => place_class::<FileHeader32<LittleEndian>>(bytes, placing)?,
        Width::Bits64 => place_class::<FileHeader64<LittleEndian>>(bytes, placing)?,
    };
    let mut image = read(file, &Bytes::from(patched)).map_err(|_| Unplaced::Damaged)?;
    image.segments = without(image.segments, &holes);
    for segment in &mut image.segments {
        segment.address = Address::new(segment.address.get().wrapping_add(placing.start));
    }
    image.moved = placing.start;
    let branches = holes.len() as u64;
    Ok(Placed { image, branches })
}

/// The segments without these ranges of the file, which are sorted.
fn without(segments: Vec<Segment>, holes: &[Range<usize>]) -> Vec<Segment> {
    let pieces = segments.into_iter().flat_map(|segment| {
        let (mut pieces, mut from) = (Vec::new(), segment.range.start);
        let end = segment.range.end;
        let first = holes.partition_point(|hole| hole.start < segment.range.start);
        let inside = holes.iter().skip(first).take_while(|hole| hole.end <= end);
        for hole in inside.chain([&(end..end)]) {
            let skipped = (from - segment.range.start) as u64;
            let range = from..hole.start.max(from);
            if let (false, Some(address)) = (range.is_empty(), segment.address.checked_add(skipped)) {
                pieces.push(Segment { address, range, name: segment.name.clone(), ..segment });
            }
            from = from.max(hole.end);
        }
        pieces
    });
    pieces.collect()
}

/// The file with relocations applied, and the ranges of branches with unknown targets.
fn place_class<E: FileHeader<Endian = LittleEndian>>(
    bytes: &[u8],
    placing: &Placing<'_>,
) -> Result<(Vec<u8>, Vec<Range<usize>>), Unplaced> {
    let damaged = |_| Unplaced::Damaged;
    let header = E::parse(bytes).map_err(damaged)?;
    if header.e_type(ENDIAN) != elf::ET_REL {
        return Err(Unplaced::Damaged);
    }
    let module = Module::<E> {
        header,
        bytes,
        sections: header.sections(ENDIAN, bytes).map_err(damaged)?,
        symbols: header
            .sections(ENDIAN, bytes)
            .and_then(|sections| sections.symbols(ENDIAN, bytes, elf::SHT_SYMTAB))
            .map_err(damaged)?,
    };
    let addresses = module.addresses(placing).ok_or(Unplaced::Unknown)?;
    let own = addresses.iter().map(|(section, address)| (*section, address.wrapping_sub(placing.start)));
    let own = own.collect::<Addresses>();
    let mut patched = Patched { bytes: bytes.to_vec(), holes: Vec::new() };
    module.relocate((&addresses, &own), placing, &mut patched);
    module.write_tables(&own, &mut patched).ok_or(Unplaced::Damaged)?;
    if patched.holes.len() > MOST_HOLES {
        return Err(Unplaced::Damaged);
    }
    patched.holes.sort_by_key(|hole| (hole.start, hole.end));
    Ok((patched.bytes, patched.holes))
}

/// The address of each section with code, by its number.
type Addresses = BTreeMap<usize, u64>;

struct Module<'data, E: FileHeader<Endian = LittleEndian>> {
    header: &'data E,
    bytes: &'data [u8],
    sections: object::read::elf::SectionTable<'data, E>,
    symbols: object::read::elf::SymbolTable<'data, E>,
}

struct Patched {
    bytes: Vec<u8>,
    holes: Vec<Range<usize>>,
}

impl Patched {
    fn put(&mut self, at: usize, bytes: &[u8]) -> Option<()> {
        self.bytes.get_mut(at..at.checked_add(bytes.len())?)?.copy_from_slice(bytes);
        Some(())
    }
}

impl<E: FileHeader<Endian = LittleEndian>> Module<'_, E> {
    /// The sections' addresses: by the names that the kernel lists, else by the order in which the kernel
    /// places them.
    fn addresses(&self, placing: &Placing<'_>) -> Option<Addresses> {
        let mut addresses = self.by_names(placing)?;
        for (section, address) in self.by_order(placing) {
            addresses.entry(section).or_insert(address);
        }
        let fits = |(section, address): (&usize, &u64)| {
            let size = self
                .sections
                .section(SectionIndex(*section))
                .map_or(0, |section| section.sh_size(ENDIAN).into());
            let end = address.checked_add(size);
            *address >= placing.start
                && end.is_some_and(|end| end <= placing.start.saturating_add(placing.length))
        };
        // At least one section with code must have an address.
        let has_code = addresses.keys().any(|section| self.size(*section) > 0);
        (has_code && addresses.iter().all(fits)).then_some(addresses)
    }

    fn size(&self, section: usize) -> u64 {
        self.sections.section(SectionIndex(section)).map_or(0, |section| section.sh_size(ENDIAN).into())
    }

    /// The sections with code that stay in memory, in the order of the file.
    fn code(&self) -> impl Iterator<Item = (usize, &E::SectionHeader, &[u8])> {
        self.sections.enumerate().filter_map(|(index, section)| {
            let name = self.sections.section_name(ENDIAN, section).unwrap_or_default();
            let flags = section.sh_flags(ENDIAN);
            let is_code = flags.contains(elf::SHF_ALLOC) && flags.contains(elf::SHF_EXECINSTR);
            // Code that only runs when the module is loaded is elsewhere, and freed afterwards.
            (is_code && !name.starts_with(b".init")).then_some((index.0, section, name))
        })
    }

    /// The sections' addresses by functions that the kernel lists under the same names; `None` if these
    /// contradict one another.
    fn by_names(&self, placing: &Placing<'_>) -> Option<Addresses> {
        let code = self.code().map(|(index, ..)| index).collect::<Vec<_>>();
        let mut addresses = Addresses::new();
        for symbol in self.symbols.iter().filter(|symbol| symbol.st_type() == elf::STT_FUNC) {
            let section = symbol.st_shndx(ENDIAN).index().map(usize::from);
            let Some(section) = section.filter(|section| code.contains(section)) else { continue };
            let name =
                self.symbols.symbol_name(ENDIAN, symbol).ok().and_then(|name| std::str::from_utf8(name).ok());
            let Some(at) = name.and_then(placing.function) else { continue };
            // A list has no Thumb bits.
            let value: u64 = symbol.st_value(ENDIAN).into() & !1;
            let start = (at & !1).wrapping_sub(value);
            if *addresses.entry(section).or_insert(start) != start {
                return None;
            }
        }
        Some(addresses)
    }

    /// The addresses of sections that are certain from the order in which the kernel places them.
    fn by_order(&self, placing: &Placing<'_>) -> Vec<(usize, u64)> {
        let branches = self.branches();
        // The least and the greatest possible offset of the next section.
        let (mut least, mut most) = (0_u64, 0_u64);
        let mut found = Vec::new();
        for (index, section, name) in self.code() {
            let align = section.sh_addralign(ENDIAN).into().max(1);
            let up = |offset: u64| offset.checked_next_multiple_of(align).unwrap_or(u64::MAX);
            (least, most) = (up(least), up(most));
            if let (b".text", Some(text)) = (name, placing.text) {
                (least, most) = (text, text);
            }
            let size = section.sh_size(ENDIAN).into();
            // The kernel makes stubs for branches out of reach when it loads the module. Their sections have
            // one byte in the file.
            if matches!(name, b".plt" | b".text.ftrace_trampoline") {
                least = least.saturating_add(size);
                most = most.saturating_add(STUB.saturating_mul(branches + SPARE_STUBS).max(size));
                continue;
            }
            if least == most {
                found.push((index, placing.start.saturating_add(least)));
            }
            (least, most) = (least.saturating_add(size), most.saturating_add(size));
        }
        found
    }

    /// The most branches that may need a stub.
    fn branches(&self) -> u64 {
        let code = self.code().map(|(index, ..)| index).collect::<Vec<_>>();
        let of_code = self.sections.iter().filter(|section| {
            usize::try_from(section.sh_info(ENDIAN)).is_ok_and(|index| code.contains(&index))
        });
        let count = |section: &E::SectionHeader| {
            let entry = section.sh_entsize(ENDIAN).into().max(1);
            section.sh_size(ENDIAN).into() / entry
        };
        of_code.map(count).sum()
    }

    /// Applies the relocations of branches in code, and of addresses in debug information.
    fn relocate(
        &self,
        (addresses, own): (&Addresses, &Addresses),
        placing: &Placing<'_>,
        patched: &mut Patched,
    ) {
        for section in self.sections.iter() {
            let Ok(target) = usize::try_from(section.sh_info(ENDIAN)) else { continue };
            let Ok(to) = self.sections.section(SectionIndex(target)) else { continue };
            let name = self.sections.section_name(ENDIAN, to).unwrap_or_default();
            let flags = to.sh_flags(ENDIAN);
            let is_debug = name.starts_with(b".debug_") && !flags.contains(elf::SHF_COMPRESSED);
            let address = addresses.get(&target).copied();
            if address.is_none() && !is_debug {
                continue;
            }
            let file: u64 = to.sh_offset(ENDIAN).into();
            let size = to.sh_size(ENDIAN).into();
            let entries = self.entries(section);
            for Entry { offset, kind, symbol, addend } in entries.filter(|entry| entry.offset < size) {
                let Some(at) = file.checked_add(offset).and_then(|at| usize::try_from(at).ok()) else {
                    continue;
                };
                // Debug information has the file's own addresses.
                let target = self.value(symbol, if address.is_some() { addresses } else { own }, placing);
                let place = address.unwrap_or(0).wrapping_add(offset);
                let kind = Kind::of(self.header.e_machine(ENDIAN), kind);
                match kind.patch(&patched.bytes, at, (place, target, addend)) {
                    Patch::Nothing => {}
                    Patch::Bytes(bytes) => drop(patched.put(at, &bytes)),
                    // Debug information with an unknown target is left as it is.
                    Patch::Unknown(_) if address.is_none() => {}
                    Patch::Unknown(length) => patched.holes.push(at..at.saturating_add(length)),
                }
            }
        }
    }

    fn entries(&self, section: &E::SectionHeader) -> impl Iterator<Item = Entry> {
        let is_mips = false;
        let with = section.rela(ENDIAN, self.bytes).ok().flatten().map_or(&[][..], |(entries, _)| entries);
        let without = section.rel(ENDIAN, self.bytes).ok().flatten().map_or(&[][..], |(entries, _)| entries);
        let with = with.iter().map(move |entry| Entry {
            offset: entry.r_offset(ENDIAN).into(),
            kind: entry.r_type(ENDIAN, is_mips).0,
            symbol: entry.r_sym(ENDIAN, is_mips),
            addend: Some(entry.r_addend(ENDIAN).into()),
        });
        let without = without.iter().map(|entry| Entry {
            offset: entry.r_offset(ENDIAN).into(),
            kind: entry.r_type(ENDIAN).0,
            symbol: entry.r_sym(ENDIAN),
            addend: None,
        });
        with.chain(without)
    }

    /// A symbol's value; `None` if it is unknown.
    fn value(&self, symbol: u32, addresses: &Addresses, placing: &Placing<'_>) -> Option<u64> {
        let symbol = self.symbols.symbol(SymbolIndex(usize::try_from(symbol).ok()?)).ok()?;
        let value: u64 = symbol.st_value(ENDIAN).into();
        if symbol.is_undefined(ENDIAN) {
            let name = self.symbols.symbol_name(ENDIAN, symbol).ok()?;
            return (placing.export)(std::str::from_utf8(name).ok()?);
        }
        let section = usize::from(symbol.st_shndx(ENDIAN).index()?);
        match addresses.get(&section) {
            Some(address) => Some(address.wrapping_add(value)),
            None => {
                // Debug sections refer to one another by offsets.
                let of = self.sections.section(SectionIndex(section)).ok()?;
                (!of.sh_flags(ENDIAN).contains(elf::SHF_ALLOC)).then_some(value)
            }
        }
    }

    /// Writes the addresses of sections and symbols, so that the file reads like a linked one. Sections
    /// without an address are removed from the program.
    fn write_tables(&self, addresses: &Addresses, patched: &mut Patched) -> Option<()> {
        const TYPE: usize = 16;
        patched.put(TYPE, &elf::ET_DYN.0.to_le_bytes())?;
        let is_64 = self.header.is_type_64();
        let table = usize::try_from(self.header.e_shoff(ENDIAN).into()).ok()?;
        let entry = usize::from(self.header.e_shentsize(ENDIAN));
        for (index, section) in self.sections.enumerate() {
            let at = table.checked_add(entry.checked_mul(index.0)?)?;
            let flags = section.sh_flags(ENDIAN);
            match addresses.get(&index.0) {
                Some(address) if is_64 => patched.put(at + 0x10, &address.to_le_bytes())?,
                Some(address) => patched.put(at + 0xc, &u32::try_from(*address).ok()?.to_le_bytes())?,
                None if flags.contains(elf::SHF_ALLOC) => {
                    // The flag is in the lowest byte.
                    let alloc = u8::try_from(elf::SHF_ALLOC.0).ok()?;
                    let lowest = *patched.bytes.get(at + 8)?;
                    patched.put(at + 8, &[lowest & !alloc])?;
                }
                None => {}
            }
        }
        let symbols = self.sections.iter().find(|section| section.sh_type(ENDIAN) == elf::SHT_SYMTAB);
        let Some(symbols) = symbols else { return Some(()) };
        let table = usize::try_from(symbols.sh_offset(ENDIAN).into()).ok()?;
        let (entry, section_at, value_at) = if is_64 { (24, 6, 8) } else { (16, 14, 4) };
        for (index, symbol) in self.symbols.iter().enumerate() {
            let Some(section) = symbol.st_shndx(ENDIAN).index().map(usize::from) else {
                continue;
            };
            let at = table.checked_add(index.checked_mul(entry)?)?;
            let value: u64 = symbol.st_value(ENDIAN).into();
            match addresses.get(&section) {
                Some(address) if is_64 => {
                    patched.put(at + value_at, &address.wrapping_add(value).to_le_bytes())?;
                }
                Some(address) => {
                    let value = u32::try_from(address.wrapping_add(value)).ok()?;
                    patched.put(at + value_at, &value.to_le_bytes())?;
                }
                None => patched.put(at + section_at, &[0, 0])?,
            }
        }
        Some(())
    }
}

/// A relocation.
struct Entry {
    offset: u64,
    kind: u32,
    symbol: u32,
    /// `None` if the addend is at the relocated place itself.
    addend: Option<i64>,
}

/// The most branches left out: large modules have some thousands to the kernel.
const MOST_HOLES: usize = 1 << 16;

/// The most bytes of stubs for a branch: two stubs are needed if the first does not reach (`struct
/// plt_entry`, `struct mod_plt_sec`).
const STUB: u64 = 16;

/// Stubs in addition to those for branches: for tracing functions, and to fill a cache line.
const SPARE_STUBS: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const NOP: u32 = 0xd503_201f;
    const START: u64 = 0xffff_ffc0_0800_0000;

    /// A module for AArch64 with a function of two instructions. The second instruction calls a function of
    /// the kernel.
    fn module() -> Vec<u8> {
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        let halves = |halves: &[u32]| halves.iter().flat_map(|half| half.to_le_bytes()).collect::<Vec<_>>();
        let names = b"\0.text\0.rela.text\0.symtab\0.strtab\0own\0other\0".to_vec();
        let name = |name: &str| {
            let at = names.windows(name.len()).position(|window| window == name.as_bytes());
            u32::try_from(at.unwrap()).unwrap()
        };
        let symbol = |called: u32, info: u32, section: u32, size: u64| {
            [halves(&[called, section << 16 | info]), words(&[0, size])].concat()
        };
        let contents = [
            halves(&[NOP, 0x9400_0000]),
            words(&[4, 2 << 32 | 283, 0]),
            [symbol(0, 0, 0, 0), symbol(name("own"), 2, 1, 8), symbol(name("other"), 0x10, 0, 0)].concat(),
            names.clone(),
        ];
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        file.extend(halves(&[183 << 16 | 1, 1]));
        let table = 64 + contents.iter().map(Vec::len).sum::<usize>() as u64;
        file.extend(words(&[0, 0, table]));
        file.extend(halves(&[0, 64, 64 << 16, 4 << 16 | 5]));
        let mut offset = 64;
        // Name, type, flags, link, info, alignment, size of an entry.
        let of = [
            (name(".text"), 1, 6, 0, 0, 4, 0),
            (name(".rela.text"), 4, 0x40, 3, 1, 8, 24),
            (name(".symtab"), 2, 0, 4, 2, 8, 24),
            (name(".strtab"), 3, 0, 0, 0, 1, 0),
        ];
        let mut sections = vec![0; 64];
        for ((called, kind, flags, link, info, align, entry), bytes) in of.into_iter().zip(&contents) {
            sections.extend(halves(&[called, kind]));
            sections.extend(words(&[flags, 0, offset, bytes.len() as u64]));
            sections.extend(halves(&[link, info]));
            sections.extend(words(&[align, entry]));
            offset += bytes.len() as u64;
        }
        [file, contents.concat(), sections].concat()
    }

    fn placed(bytes: &[u8], other: Option<u64>) -> Result<Placed, Unplaced> {
        let export = |name: &str| other.filter(|_| name == "other");
        let placing =
            Placing { start: START, length: 0x1000, text: None, function: &|_| None, export: &export };
        place("own.ko".as_ref(), &bytes.to_vec().into(), &placing)
    }

    fn code(placed: &Placed) -> Vec<(u64, Vec<u8>)> {
        let segments = placed.image.segments.iter();
        segments
            .map(|segment| (segment.address.get(), placed.image.segment_bytes(segment).to_vec()))
            .collect()
    }

    #[test]
    fn a_call_is_filled_in_or_left_out() {
        let nop = NOP.to_le_bytes().to_vec();
        let unknown = placed(&module(), None).unwrap();
        assert_eq!((code(&unknown), unknown.branches), (vec![(START, nop.clone())], 1));
        let known = placed(&module(), Some(START + 0x104)).unwrap();
        let call = 0x9400_0040_u32.to_le_bytes().to_vec();
        assert_eq!((code(&known), known.branches), (vec![(START, [nop, call].concat())], 0));
        // The module's own addresses begin at 0, wherever it was loaded.
        let linked = known.image.linked().unwrap();
        assert_eq!(linked.segments[0].address, Address::new(0));
        assert_eq!(known.image.address_in(&linked, Address::new(START + 4)), Some(Address::new(4)));
        assert_eq!(known.image.named_file().map(|(_, _, moved)| moved), Some(START));
    }

    #[test]
    fn a_stub_of_unknown_size_before_the_code_hides_its_place_unless_it_is_recorded() {
        let mut module = module();
        // Rename `.text` to a section of stubs.
        let at = module.windows(5).position(|window| window == b".text").unwrap();
        module[at..at + 5].copy_from_slice(b".plt\0");
        assert_eq!(placed(&module, None).unwrap_err(), Unplaced::Unknown);
    }

    #[test]
    fn damaged_modules_are_refused_or_read() {
        let module = module();
        for end in 0..module.len() {
            let _ = placed(&module[..end], Some(START));
        }
        for at in 0..module.len() {
            for bits in [0xff, 0x80, 0x01] {
                let mut damaged = module.clone();
                damaged[at] ^= bits;
                if let Ok(placed) = placed(&damaged, Some(START)) {
                    assert!(placed.image.segments.iter().all(|segment| !segment.is_empty()), "byte {at}");
                }
            }
        }
    }
}
