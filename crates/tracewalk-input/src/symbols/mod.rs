//! Symbols of a program: functions, source lines, data objects and the vector table, by address.
//!
//! A [`SymbolTable`] is built once from a core's [`Memory`] and can then be read by any number of threads:
//! functions by address, the instruction set at an address. [`VectorTable`] is the vector table of an
//! M-profile program. [`SourceLines`] finds files, lines and inlined functions in the debugging information;
//! it caches the results, so each thread has its own.
//!
//! Symbols never affect how execution is followed, because a symbol table may be wrong or absent.
//!
//! ```no_run
//! use tracewalk::ids::Address;
//! use tracewalk_input::image::ImageLoader;
//! use tracewalk_input::symbols::SymbolTable;
//!
//! let memory = ImageLoader::new().memory(&["app.elf".parse()?])?;
//! let symbols = SymbolTable::of(&memory);
//! let main = symbols.function_at(Address::new(0x0800_02b4));
//! println!("{:?}", main.map(|function| &function.name));
//!
//! let mut lines = symbols.source_lines();
//! for frame in lines.lines_for(Address::new(0x0800_02b4)).iter() {
//!     println!("{frame}"); // innermost first
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod contents;
mod dwarf;
mod functions;
pub(crate) mod kallsyms;
mod lines;
mod note;
mod objects;
mod recent;
mod table;
mod tasks;
mod unwind;
mod vectors;

use std::sync::Arc;

use tracewalk::ids::{Address, Isa};
use tracewalk::program::Scope;

use crate::cpu::Profile;
use crate::image::{Image, Memory, VisibleImage};
use crate::limit::MemoryLimit;

pub use contents::Content;
pub use functions::{Function, FunctionKind};
pub use lines::{Frame, LineRow, SourceLines};
pub use note::SymbolNote;
pub use objects::Object;
pub use tasks::{CurrentTask, TaskName};
pub use unwind::{CallFrames, FrameRow};
pub use vectors::{VectorTable, VectorTableFrom};

/// The names of a program's addresses.
#[derive(Clone, Debug)]
pub struct SymbolTable {
    images: Vec<VisibleImage>,
    functions: Arc<functions::Functions>,
    contents: contents::Contents,
    objects: objects::Objects,
    profile: Option<Profile>,
    limit: MemoryLimit,
    notes: Vec<SymbolNote>,
}

impl SymbolTable {
    /// The symbols of the images that a core's memory was assembled from, all of them visible at once: see
    /// [`Memory::seen_in`]. Symbols of memory that another image covers are left out. If an image's symbols
    /// exceed their share of the memory limit, all of them are left out.
    #[must_use]
    pub fn of(memory: &Memory) -> Self {
        let mut notes = Vec::new();
        let tables = tables(memory, |_| true, &mut notes);
        let contents = contents::Contents::of(&tables);
        Self {
            functions: Arc::new(functions::Functions::of(&tables, &contents)),
            contents,
            objects: objects::Objects::of(&tables),
            profile: memory.images.iter().find_map(|visible| visible.image.attributes.profile),
            images: memory.images.clone(),
            limit: memory.limit,
            notes,
        }
    }

    /// The function that has an instruction at `address`; the innermost one, if functions are nested.
    #[must_use]
    pub fn function_at(&self, address: Address) -> Option<&Function> {
        self.functions.at(address)
    }

    /// The functions in the order of their addresses.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        self.functions.all()
    }

    /// The function with this name, in the program's spelling or the linker's.
    #[must_use]
    pub fn function_named(&self, name: &str) -> Option<&Function> {
        self.functions().iter().find(|function| function.is_called(name))
    }

    /// The data object that holds `address`; the smallest one, if objects are nested.
    #[must_use]
    pub fn object_at(&self, address: Address) -> Option<&Object> {
        self.objects.at(address)
    }

    /// The data objects in the order of their addresses.
    #[must_use]
    pub fn objects(&self) -> &[Object] {
        self.objects.all()
    }

    /// The address of variables with these low 16 bits; `None` if there is none, or more than one.
    #[must_use]
    pub fn data_with_low_half(&self, low_half: u16) -> Option<Address> {
        self.objects.with_low_half(low_half)
    }

    /// The image that has a byte at `address`; if several do, the one that covers the others.
    #[must_use]
    pub fn image_at(&self, address: Address) -> Option<&Image> {
        let image = self.images.iter().find(|visible| visible.image.segment_at(address).is_some())?;
        Some(&image.image)
    }

    /// The kind of content at `address` by the mapping symbols: code of an instruction set, or data between the code.
    #[must_use]
    pub fn content_at(&self, address: Address) -> Option<Content> {
        self.contents.at(address)
    }

    /// The stretches of addresses that the mapping symbols distinguish, in order: start, end (as a number that may be
    /// 2^32) and content.
    pub fn contents(&self) -> impl Iterator<Item = (Address, u64, Content)> {
        self.contents.all()
    }

    /// The instruction set of the code at `address`. `None` for data, or if unknown.
    #[must_use]
    pub fn isa_at(&self, address: Address) -> Option<Isa> {
        match self.content_at(address) {
            Some(Content::Code(isa)) => Some(isa),
            Some(Content::Data) => None,
            None if self.profile == Some(Profile::M) => Some(Isa::T32),
            None => self.function_at(address).and_then(|function| function.isa),
        }
    }

    /// The profile of the processor that the images were built for.
    #[must_use]
    pub const fn profile(&self) -> Option<Profile> {
        self.profile
    }

    /// A finder of source lines, for one thread.
    #[must_use]
    pub fn source_lines(&self) -> SourceLines {
        let zero = Address::new(0);
        let starts_at_zero = self.function_at(zero).is_some();
        let code_at_zero = starts_at_zero || matches!(self.content_at(zero), Some(Content::Code(_)));
        SourceLines::new(&self.images, Arc::clone(&self.functions), code_at_zero, self.limit)
    }

    /// The problems that keep symbols from being found.
    #[must_use]
    pub fn notes(&self) -> &[SymbolNote] {
        &self.notes
    }
}

/// The images' symbols with the wanted names, without those that another image covers.
fn tables<'memory>(
    memory: &'memory Memory,
    is_wanted: impl Fn(&[u8]) -> bool,
    notes: &mut Vec<SymbolNote>,
) -> Vec<table::Table<'memory>> {
    let room = memory.limit.shared_by(memory.images.len()).share();
    let mut tables = Vec::new();
    for VisibleImage { image, scope } in &memory.images {
        match table::Table::read(image, room, &is_wanted) {
            Ok(mut table) => {
                table.symbols.retain(|symbol| !is_covered(memory, Address::new(symbol.value & !1), *scope));
                tables.push(table);
            }
            Err(problem) => notes.push(SymbolNote { file: image.file.clone(), problem }),
        }
    }
    tables
}

/// Whether an image of another scope is visible at `address` instead of those of `scope`.
fn is_covered(memory: &Memory, address: Address, scope: Scope) -> bool {
    memory.images.iter().any(|other| other.scope.covers(scope) && other.image.segment_at(address).is_some())
}

#[cfg(test)]
mod tests;
