//! An ELF file's symbol table in the form that the sibling modules need.

use std::borrow::Cow;

use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{LittleEndian, SectionIndex};
use tracewalk::plain::plain;

use super::kallsyms::lines;
use crate::image::Image;
use crate::image::Width;

const ENDIAN: LittleEndian = LittleEndian;

/// The most symbols that are read. Large programs and kernels have some hundred thousand. A function's symbol
/// takes some hundred bytes.
const MOST_SYMBOLS: u64 = 1 << 21;

/// The approximate memory that a symbol takes until all functions are built, without its name; measured with
/// two million functions.
const SYMBOL_BYTES: u64 = 400;

/// The limit on the total length of names, for each byte of the file. A linker lets names share only their
/// ends.
const MOST_NAMES: u64 = 4;

/// The additional allowance for the names of short files.
const LEAST_NAMES: u64 = 1 << 16;

/// The symbols and code sections of an image. Empty for raw bytes.
#[derive(Debug)]
pub(super) struct Table<'data> {
    /// The width of the image's addresses.
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
    /// The index of the symbol's section; `None` for an absolute symbol.
    pub(super) section: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Function,
    Object,
    /// Labels of assembly code, mapping symbols, the linker script's own.
    Untyped,
}

/// The symbol bindings, from most to least preferred.
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
    /// The address after the last byte, at most [`Table::end_of_memory`].
    pub(super) end: u64,
    /// Whether the section is part of the running program.
    pub(super) memory: bool,
    /// Whether the section holds code.
    pub(super) code: bool,
    /// Whether the program may write to it.
    pub(super) writable: bool,
}

impl<'data> Table<'data> {
    /// Reads the symbols with wanted names from an image, or returns the problem. `room` limits the memory
    /// for symbols, in bytes.
    pub(super) fn read(
        image: &'data Image,
        room: Option<u64>,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Self, String> {
        if let Some(list) = image.names() {
            let most = room.map_or(MOST_SYMBOLS, |room| MOST_SYMBOLS.min(room / SYMBOL_BYTES));
            return of_names(list, most, is_wanted)
                .map_err(|problem| format!("its names cannot be read: {problem}"));
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

    /// The address after the last one, or the last one if no larger number exists.
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
                writable: flags.contains(elf::SHF_WRITE) && flags.contains(elf::SHF_ALLOC),
            });
        }
        for symbol in symbols.iter() {
            let Ok(name) = symbols.symbol_name(ENDIAN, symbol) else { continue };
            names = names
                .checked_sub(name.len() as u64)
                .ok_or("their names are too long for a file of this size")?;
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

    /// The section of a symbol; `None` for an absolute symbol.
    pub(super) fn section_of(&self, symbol: &Symbol<'_>) -> Option<&Section<'data>> {
        self.sections.get(symbol.section?)
    }
}

/// The functions of a list of names, as far as they are wanted and fit, or the reason why there are none.
fn of_names(bytes: &[u8], most: u64, is_wanted: impl Fn(&[u8]) -> bool) -> Result<Table<'_>, String> {
    let (mut symbols, mut highest, mut count) = (Vec::new(), 0, 0);
    for line in lines(bytes) {
        highest = highest.max(line.address);
        count += 1;
        if count > most {
            return Err(format!("found more symbols than the limit of {most}"));
        }
        // Some kernels list mapping symbols.
        if !line.is_code() || line.name.starts_with('$') || !is_wanted(line.name.as_bytes()) {
            continue;
        }
        symbols.push(Symbol {
            name: plain(Cow::Borrowed(line.name)),
            value: line.address,
            size: 0,
            kind: Kind::Function,
            binding: match line.kind {
                b'T' => Binding::Global,
                b'W' | b'w' => Binding::Weak,
                _ => Binding::Local,
            },
            section: None,
        });
    }
    match (count, highest) {
        (0, _) => Err("found no line `ADDRESS KIND NAME`, the format of /proc/kallsyms".to_owned()),
        (_, 0) => Err(
            "all its addresses are 0: the kernel hid them (kernel.kptr_restrict) from the user who copied it"
                .to_owned(),
        ),
        _ => {
            let width = if u32::try_from(highest).is_ok() { Width::Bits32 } else { Width::Bits64 };
            Ok(Table { width, symbols, sections: Vec::new() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] = b"ffffffc008000000 T _text\nffffffc008000040 t local\nffffffc008000080 D data\n\
        ffffffc008000048 t $x\nffffffb000000000 t helper\t[some_module]\n";

    #[test]
    fn functions_are_those_of_the_kernel_and_of_modules() {
        let table = of_names(LIST, 100, |_| true).unwrap();
        let names = table.symbols.iter().map(|symbol| (&*symbol.name, symbol.value)).collect::<Vec<_>>();
        let [text, local, helper] = [0xffff_ffc0_0800_0000, 0xffff_ffc0_0800_0040, 0xffff_ffb0_0000_0000];
        assert_eq!(names, [("_text", text), ("local", local), ("helper", helper)]);
    }

    #[test]
    fn lists_without_addresses_or_of_other_text_say_why_they_have_no_names() {
        for list in
            [&b"0000000000000000 T _text\n0000000000000000 t local\n"[..], b"", b"\x7fELF", b"hello world\n"]
        {
            assert!(of_names(list, 100, |_| true).is_err());
        }
        assert!(of_names(LIST, 2, |_| true).is_err());
    }
}
