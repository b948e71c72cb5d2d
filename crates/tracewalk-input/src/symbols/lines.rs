//! Source lines and inlined functions, from the debugging information (DWARF).

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use addr2line::Context;
use gimli::{EndianArcSlice, LittleEndian, SectionId};
use object::read::elf::ElfFile32;
use object::{Object, ObjectSection};
use tracewalk::ids::Address;

use super::SymbolNote;
use super::functions::demangle;
use crate::image::Image;

/// Where an instruction comes from: a function and a place in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function, demangled.
    pub function: Option<Arc<str>>,
    /// The source file, as the compiler was given it, behind its directory.
    pub file: Option<Arc<str>>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
}

/// Addresses that come from one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineRow {
    /// The first address.
    pub start: Address,
    /// How many bytes.
    pub bytes: u32,
    /// The source file.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: Option<u32>,
}

/// Finds source lines, and keeps what it found. Each thread has its own.
pub struct SourceLines {
    images: Vec<ImageLines>,
    frames: HashMap<Address, Arc<[Frame]>>,
    names: BTreeSet<Arc<str>>,
    notes: Vec<SymbolNote>,
}

type Reader = EndianArcSlice<LittleEndian>;

struct ImageLines {
    image: Arc<Image>,
    context: Context<Reader>,
}

/// A compressed section may claim any size. Real ones shrink to a third or so; a thousandth is what deflate can do.
const MOST_EXPANSION: u64 = 1024;

impl SourceLines {
    pub(super) fn new(images: &[Arc<Image>]) -> Self {
        let mut finder =
            Self { images: Vec::new(), frames: HashMap::new(), names: BTreeSet::new(), notes: Vec::new() };
        for image in images {
            match context(image) {
                Ok(None) => {}
                Ok(Some(context)) => finder.images.push(ImageLines { image: Arc::clone(image), context }),
                Err(problem) => {
                    let problem = format!("its source lines cannot be read: {problem}");
                    finder.notes.push(SymbolNote { file: image.file.clone(), problem });
                }
            }
        }
        finder
    }

    /// Whether any image has source lines.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    /// Where the instruction at `address` comes from, the innermost inlined function first and the function that it was
    /// compiled into last. Empty where nothing says it.
    pub fn lines_for(&mut self, address: Address) -> Arc<[Frame]> {
        if let Some(frames) = self.frames.get(&address) {
            return Arc::clone(frames);
        }
        // Only addresses in the images are kept, so that the memory has a bound.
        let Some(frames) = self.find_frames(address) else { return Arc::default() };
        self.frames.insert(address, Arc::clone(&frames));
        frames
    }

    /// The line of each stretch of `addresses` that has one, in order.
    pub fn rows(&mut self, addresses: Range<Address>) -> Vec<LineRow> {
        let mut rows = Vec::new();
        for lines in &self.images {
            let found = lines.context.find_location_range(addresses.start.0.into(), addresses.end.0.into());
            let Ok(found) = found else { continue };
            for (start, bytes, location) in found {
                if let (Ok(start), Ok(bytes), Some(file), Some(line)) =
                    (u32::try_from(start), u32::try_from(bytes), location.file, location.line)
                {
                    let file = intern(&mut self.names, file);
                    let column = location.column.filter(|&column| column != 0);
                    rows.push(LineRow { start: Address(start), bytes, file, line, column });
                }
            }
        }
        rows.sort_by_key(|row| (row.start, row.bytes));
        rows.dedup();
        rows
    }

    /// What keeps lines from being found.
    #[must_use]
    pub fn notes(&self) -> &[SymbolNote] {
        &self.notes
    }

    fn find_frames(&mut self, address: Address) -> Option<Arc<[Frame]>> {
        let lines = self.images.iter().find(|lines| lines.image.segment_at(address).is_some())?;
        let mut found = lines.context.find_frames(u64::from(address.0)).skip_all_loads().ok()?;
        let mut frames = Vec::new();
        while let Ok(Some(frame)) = found.next() {
            let location = frame.location.as_ref();
            let function =
                frame.function.as_ref().and_then(|function| Some(demangle(&function.raw_name().ok()?)));
            frames.push(Frame {
                function: function.map(|name| intern(&mut self.names, &name)),
                file: location.and_then(|location| location.file).map(|file| intern(&mut self.names, file)),
                line: location.and_then(|location| location.line),
                column: location.and_then(|location| location.column).filter(|&column| column != 0),
            });
        }
        Some(Arc::from(frames))
    }
}

impl fmt::Debug for SourceLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceLines").field("images", &self.images.len()).finish_non_exhaustive()
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.function.as_deref().unwrap_or("?"))?;
        if let Some(file) = &self.file {
            write!(f, " at {file}")?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
        }
        Ok(())
    }
}

/// One copy of each name.
fn intern(names: &mut BTreeSet<Arc<str>>, name: &str) -> Arc<str> {
    if let Some(known) = names.get(name) {
        return Arc::clone(known);
    }
    let name: Arc<str> = Arc::from(name);
    names.insert(Arc::clone(&name));
    name
}

/// The debugging information of an image; `None` where it has none.
fn context(image: &Image) -> Result<Option<Context<Reader>>, String> {
    let Some(bytes) = image.elf_bytes() else { return Ok(None) };
    let file = ElfFile32::<object::LittleEndian>::parse(&**bytes).map_err(|error| error.to_string())?;
    if file.section_by_name(".debug_info").is_none() {
        return Ok(None);
    }
    let dwarf = gimli::Dwarf::load(|id| section(&file, id))?;
    Context::from_dwarf(dwarf).map(Some).map_err(|error| error.to_string())
}

/// The bytes of a debugging section, uncompressed; none where there is no such section.
fn section(file: &ElfFile32<'_, object::LittleEndian>, id: SectionId) -> Result<Reader, String> {
    let reader = |bytes: &[u8]| EndianArcSlice::new(Arc::from(bytes), LittleEndian);
    let Some(section) = file.section_by_name(id.name()) else { return Ok(reader(&[])) };
    let compressed = section.compressed_data().map_err(|error| error.to_string())?;
    let most = (compressed.data.len() as u64).saturating_mul(MOST_EXPANSION);
    if compressed.uncompressed_size > most {
        return Err(format!("section {} claims to be {} bytes", id.name(), compressed.uncompressed_size));
    }
    let bytes = compressed.decompress().map_err(|error| error.to_string())?;
    Ok(reader(&bytes))
}
