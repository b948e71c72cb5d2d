//! An ELF file's symbol table, as the other files here need it.

use std::borrow::Cow;

use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{LittleEndian, SectionIndex};
use tracewalk::plain::plain;

use crate::image::Image;
use crate::image::Width;

const ENDIAN: LittleEndian = LittleEndian;

/// How many symbols are read. Large programs and kernels have some hundred thousand; each takes some hundred
/// bytes, where it is a function.
const MOST_SYMBOLS: u64 = 1 << 21;

/// About how much memory a symbol takes until all functions are made of them, without its name; measured with two million
/// functions.
const SYMBOL_BYTES: u64 = 400;

/// How many bytes names may have together for each byte of the file. A linker lets names share their ends only.
const MOST_NAMES: u64 = 4;

/// What the names of a short file may have beyond that.
const LEAST_NAMES: u64 = 1 << 16;

/// The symbols and code sections of an image. Empty for raw bytes.
#[derive(Debug)]
pub(super) struct Table<'data> {
    /// How wide its addresses are.
    pub(super) width: Width,
    pub(super) symbols: Vec<Symbol<'data>>,
    pub(super) sections: Vec<Section<'data>>,
}

/// A symbol that is defined in the image.
#[derive(Debug)]
pub(super) struct Symbol<'data> {
    pub(super) name: Cow<'data, str>,
    /// The address with the Thumb bit that functions have.
    pub(super) value: u64,
    pub(super) size: u64,
    pub(super) kind: Kind,
    pub(super) binding: Binding,
    /// The section that it is in; `None` for an absolute one.
    pub(super) section: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Function,
    Object,
    /// Labels of assembly code, mapping symbols, the linker script's own.
    Untyped,
}

/// Best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Binding {
    Global,
    Weak,
    Local,
}

/// A section.
#[derive(Debug)]
pub(super) struct Section<'data> {
    pub(super) name: Cow<'data, str>,
    pub(super) start: u64,
    /// After the last byte, at most [`Table::end_of_memory`].
    pub(super) end: u64,
    /// Whether it is part of the running program.
    pub(super) memory: bool,
    /// Whether it holds code.
    pub(super) code: bool,
}

impl<'data> Table<'data> {
    /// Reads the symbol table of an image, as far as its names are wanted, or says what is wrong with it. Symbols may take so
    /// many bytes of memory.
    pub(super) fn read(
        image: &'data Image,
        room: Option<u64>,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Self, String> {
        if let Some(list) = image.names() {
            let most = room.map_or(MOST_SYMBOLS, |room| MOST_SYMBOLS.min(room / SYMBOL_BYTES));
            let table = super::kallsyms::table(list, most, is_wanted);
            return table.map_err(|problem| format!("its names cannot be read: {problem}"));
        }
        let Some((width, bytes, moved)) = image.named_file() else { return Ok(Self::empty(Width::Bits32)) };
        let mut table = match width {
            Width::Bits32 => Self::parse::<FileHeader32<LittleEndian>>(width, bytes, room, is_wanted),
            Width::Bits64 => Self::parse::<FileHeader64<LittleEndian>>(width, bytes, room, is_wanted),
        };
        if let (Ok(table), 1..) = (&mut table, moved) {
            table.symbols.iter_mut().filter(|symbol| symbol.section.is_some()).for_each(|symbol| {
                symbol.value = symbol.value.wrapping_add(moved);
            });
            for section in table.sections.iter_mut().filter(|section| section.memory) {
                section.start = section.start.wrapping_add(moved);
                section.end = section.end.wrapping_add(moved);
            }
        }
        table.map_err(|problem| format!("its symbols cannot be read: {problem}"))
    }

    const fn empty(width: Width) -> Self {
        Self { width, symbols: Vec::new(), sections: Vec::new() }
    }

    /// The address after the last one, or the last one where there is no number after it.
    pub(super) const fn end_of_memory(&self) -> u64 {
        match self.width {
            Width::Bits32 => 1 << 32,
            Width::Bits64 => u64::MAX,
        }
    }

    fn parse<E: FileHeader<Endian = LittleEndian>>(
        width: Width,
        data: &'data [u8],
        room: Option<u64>,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Self, String> {
        let malformed = |error: object::read::Error| error.to_string();
        let header = E::parse(data).map_err(malformed)?;
        let sections = header.sections(ENDIAN, data).map_err(malformed)?;
        let mut symbols = sections.symbols(ENDIAN, data, elf::SHT_SYMTAB).map_err(malformed)?;
        if symbols.is_empty() {
            symbols = sections.symbols(ENDIAN, data, elf::SHT_DYNSYM).map_err(malformed)?;
        }
        let count = symbols.len() as u64;
        let most = room.map_or(MOST_SYMBOLS, |room| MOST_SYMBOLS.min(room / SYMBOL_BYTES));
        if count > most {
            return Err(format!("found {count} symbols, expected at most {most}"));
        }
        let most_names = (data.len() as u64).saturating_mul(MOST_NAMES).saturating_add(LEAST_NAMES);
        let room = room.map_or(u64::MAX, |room| room - count * SYMBOL_BYTES);
        let mut names = most_names.min(room);
        let mut table = Self::empty(width);
        let end_of_memory = table.end_of_memory();
        for section in sections.iter() {
            let start: u64 = section.sh_addr(ENDIAN).into();
            let name = sections.section_name(ENDIAN, section).unwrap_or_default();
            let flags = section.sh_flags(ENDIAN);
            table.sections.push(Section {
                name: plain(String::from_utf8_lossy(name)),
                start,
                end: start.saturating_add(section.sh_size(ENDIAN).into()).min(end_of_memory),
                memory: flags.contains(elf::SHF_ALLOC),
                code: flags.contains(elf::SHF_EXECINSTR) && flags.contains(elf::SHF_ALLOC),
            });
        }
        for symbol in symbols.iter() {
            let Ok(name) = symbols.symbol_name(ENDIAN, symbol) else { continue };
            names =
                names.checked_sub(name.len() as u64).ok_or("their names have more bytes than the file")?;
            let kind = match symbol.st_type() {
                elf::STT_FUNC | elf::STT_GNU_IFUNC => Kind::Function,
                elf::STT_OBJECT => Kind::Object,
                elf::STT_NOTYPE => Kind::Untyped,
                _ => continue,
            };
            if symbol.is_undefined(ENDIAN) || name.is_empty() || !is_wanted(name) {
                continue;
            }
            let index = symbol.st_shndx(ENDIAN);
            let section = index.index().map(|index| SectionIndex(usize::from(index)).0);
            table.symbols.push(Symbol {
                name: plain(String::from_utf8_lossy(name)),
                value: symbol.st_value(ENDIAN).into(),
                size: symbol.st_size(ENDIAN).into(),
                kind,
                binding: match symbol.st_bind() {
                    elf::STB_LOCAL => Binding::Local,
                    elf::STB_WEAK => Binding::Weak,
                    _ => Binding::Global,
                },
                section: section.filter(|&index| index < table.sections.len()),
            });
        }
        Ok(table)
    }

    /// The section of a symbol; `None` for an absolute one.
    pub(super) fn section_of(&self, symbol: &Symbol<'_>) -> Option<&Section<'data>> {
        self.sections.get(symbol.section?)
    }
}
