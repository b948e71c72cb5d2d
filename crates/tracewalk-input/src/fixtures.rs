//! Shared test fixtures: temporary directories, small ELF files built by code, the corpus.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed with its contents on drop.
pub(crate) struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tracewalk-input-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file and returns its path.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file or directory of the corpus, which is beside the project and not part of it.
pub(crate) fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus").join(name)
}

/// An ELF file that is written field by field, so that a test can also write what no linker would.
pub(crate) struct Elf {
    pub(crate) class: u8,
    pub(crate) order: u8,
    pub(crate) kind: u16,
    pub(crate) machine: u16,
    pub(crate) entry: u32,
    pub(crate) sections: Vec<ElfSection>,
    pub(crate) symbols: Vec<ElfSymbol>,
    /// Whether each section in memory gets a segment.
    pub(crate) segments: bool,
}

pub(crate) struct ElfSection {
    pub(crate) name: &'static str,
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) address: u32,
    pub(crate) bytes: Vec<u8>,
    /// The segment's flags, if they do not follow from the section's.
    pub(crate) segment_flags: Option<u32>,
    /// The size that the headers claim, if it is not the true one.
    pub(crate) claimed: Option<u32>,
}

pub(crate) struct ElfSymbol {
    pub(crate) name: &'static str,
    pub(crate) value: u32,
    pub(crate) size: u32,
    pub(crate) info: u8,
    pub(crate) section: u16,
}

pub(crate) const PROGBITS: u32 = 1;
pub(crate) const ARM_ATTRIBUTES: u32 = 0x7000_0003;
pub(crate) const WRITE: u32 = 1;
pub(crate) const ALLOC: u32 = 2;
pub(crate) const EXECUTE: u32 = 4;
/// `st_info` of local and global symbols without a type, and of functions.
pub(crate) const LABEL: u8 = 0x00;
pub(crate) const GLOBAL_LABEL: u8 = 0x10;
pub(crate) const FUNCTION: u8 = 0x02;
pub(crate) const GLOBAL_FUNCTION: u8 = 0x12;
pub(crate) const WEAK_FUNCTION: u8 = 0x22;

impl Elf {
    pub(crate) fn new() -> Self {
        Self {
            class: 1,
            order: 1,
            kind: 2,
            machine: 40,
            entry: 0,
            sections: Vec::new(),
            symbols: Vec::new(),
            segments: true,
        }
    }

    /// Adds a section; the first one has the index 1.
    pub(crate) fn section(
        &mut self,
        name: &'static str,
        flags: u32,
        address: u32,
        bytes: &[u8],
    ) -> &mut ElfSection {
        self.sections.push(ElfSection {
            name,
            kind: PROGBITS,
            flags,
            address,
            bytes: bytes.to_vec(),
            segment_flags: None,
            claimed: None,
        });
        self.sections.last_mut().unwrap()
    }

    pub(crate) fn symbol(&mut self, name: &'static str, value: u32, size: u32, info: u8, section: u16) {
        self.symbols.push(ElfSymbol { name, value, size, info, section });
    }

    pub(crate) fn build(&self) -> Vec<u8> {
        let mut strings = vec![0];
        let mut string = |text: &str| {
            let offset = word(strings.len());
            strings.extend_from_slice(text.as_bytes());
            strings.push(0);
            offset
        };
        let loaded = || self.sections.iter().filter(|section| self.segments && section.flags & ALLOC != 0);
        let segments = loaded().count();
        let mut offset = 52 + 32 * segments;
        let mut contents = Vec::new();
        let mut programs = Vec::new();
        let mut headers = vec![[0; 10]];
        for section in &self.sections {
            let size = section.claimed.unwrap_or(word(section.bytes.len()));
            let (kind, flags, address) = (section.kind, section.flags, section.address);
            headers.push([string(section.name), kind, flags, address, word(offset), size, 0, 0, 1, 0]);
            if self.segments && flags & ALLOC != 0 {
                let usual = 4 | (flags & WRITE) << 1 | (flags & EXECUTE) >> 2;
                let physical = address.wrapping_add(0x1000_0000);
                let flags = section.segment_flags.unwrap_or(usual);
                programs.extend([1, word(offset), address, physical, size, size, flags, 1]);
            }
            contents.extend_from_slice(&section.bytes);
            offset += section.bytes.len();
        }
        let mut symbols = vec![0; 16];
        for symbol in &self.symbols {
            let words = [string(symbol.name), symbol.value, symbol.size];
            symbols.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            symbols.extend([symbol.info, 0]);
            symbols.extend(symbol.section.to_le_bytes());
        }
        let (symbols_name, strings_name) = (string(".symtab"), string(".strtab"));
        let strings_index = word(headers.len() + 1);
        headers.push([symbols_name, 2, 0, 0, word(offset), word(symbols.len()), strings_index, 1, 4, 16]);
        offset += symbols.len();
        headers.push([strings_name, 3, 0, 0, word(offset), word(strings.len()), 0, 0, 1, 0]);
        offset += strings.len();

        let half = |number: usize| u16::try_from(number).unwrap();
        let mut file = vec![0x7f, b'E', b'L', b'F', self.class, self.order, 1];
        file.resize(16, 0);
        file.extend([self.kind, self.machine].iter().flat_map(|half| half.to_le_bytes()));
        let program_offset = if segments == 0 { 0 } else { 52 };
        let words = [1, self.entry, program_offset, word(offset), 0x0500_0000];
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        let halves = [52, 32, half(segments), 40, half(headers.len()), half(headers.len() - 1)];
        file.extend(halves.iter().flat_map(|half| half.to_le_bytes()));
        file.extend(programs.iter().flat_map(|word| word.to_le_bytes()));
        file.extend([contents, symbols, strings].concat());
        file.extend(headers.iter().flatten().flat_map(|word| word.to_le_bytes()));
        file
    }
}

fn word(number: usize) -> u32 {
    u32::try_from(number).unwrap()
}
