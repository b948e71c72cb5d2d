//! Source lines and inlined functions, from the debugging information (DWARF).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use tracewalk::ids::Address;
use tracewalk::plain::plain;
use tracewalk::program::Scope;

use super::dwarf::{self, Debugging};
use super::functions::{Functions, demangle};
use super::note::SymbolNote;
use super::recent::Recent;
use crate::image::{Image, VisibleImage};
use crate::limit::MemoryLimit;

/// The source of an instruction: a function and a place in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function, demangled.
    pub function: Option<Arc<str>>,
    /// The source file's path, as given to the compiler, with its directory prepended, with slashes and without `.` and
    /// redundant `..`: compilers write the same path in several ways, and each answer has it in one.
    pub file: Option<Arc<str>>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
}

/// A range of addresses that belong to one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineRow {
    /// The first address.
    pub start: Address,
    /// The number of bytes.
    pub bytes: u32,
    /// The source file.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: Option<u32>,
}

/// Finds source lines, and caches the results. Each thread has its own instance.
pub struct SourceLines {
    images: Vec<ImageLines>,
    functions: Arc<Functions>,
    /// The frames of addresses that were looked up recently.
    frames: Recent<Address, Arc<[Frame]>, 0x4000>,
    /// The frames that were found last: the next instruction mostly has the same.
    last: Arc<[Frame]>,
    /// Room to collect frames in.
    found: Vec<Frame>,
    names: Names,
    notes: Vec<SymbolNote>,
}

struct ImageLines {
    image: Arc<Image>,
    scope: Scope,
    /// The debugging information, if the image has any.
    debugging: Option<Debugging>,
}

impl SourceLines {
    pub(super) fn new(
        images: &[VisibleImage],
        functions: Arc<Functions>,
        code_at_zero: bool,
        limit: MemoryLimit,
    ) -> Self {
        let room = limit.shared_by(images.len()).share();
        let mut notes = Vec::new();
        let mut all = Vec::new();
        for VisibleImage { image, scope } in images {
            let debugging = dwarf::load(image, code_at_zero, room).unwrap_or_else(|problem| {
                let problem = format!("its source lines cannot be read: {problem}");
                notes.push(SymbolNote { file: image.file.clone(), problem });
                None
            });
            all.push(ImageLines { image: Arc::clone(image), scope: *scope, debugging });
        }
        Self {
            images: all,
            functions,
            frames: Recent::default(),
            last: Arc::default(),
            found: Vec::new(),
            names: Names::default(),
            notes,
        }
    }

    /// The debugging information of the images that have some.
    pub(super) fn debugging(&self) -> impl Iterator<Item = &Debugging> {
        self.images.iter().filter_map(|lines| lines.debugging.as_ref())
    }

    /// Whether any image has source lines.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.images.iter().all(|lines| lines.debugging.is_none())
    }

    /// The source of the instruction at `address`: the innermost inlined function first, and the function
    /// that contains it in the compiled code last. Without debugging information, the function that the
    /// symbols name, without a place. Empty if unknown.
    pub fn lines_for(&mut self, address: Address) -> Arc<[Frame]> {
        if let Some(frames) = self.frames.get(address.get(), &address) {
            return frames;
        }
        if !self.find_frames(address) {
            return Arc::default();
        }
        if *self.last != *self.found {
            self.last = self.found.drain(..).collect();
        }
        self.frames.put(address.get(), address, Arc::clone(&self.last));
        Arc::clone(&self.last)
    }

    /// The line of each stretch of `addresses` that has one, in order.
    pub fn rows(&mut self, addresses: Range<Address>) -> Vec<LineRow> {
        self.wanted_rows(addresses, &mut |_, _| true)
    }

    /// As [`SourceLines::rows`], for the lines that `is_wanted` accepts by file and number.
    pub fn wanted_rows(
        &mut self,
        addresses: Range<Address>,
        is_wanted: &mut dyn FnMut(&str, u32) -> bool,
    ) -> Vec<LineRow> {
        let mut rows = Vec::new();
        for debugging in self.images.iter().filter_map(|lines| lines.debugging.as_ref()) {
            let own = |address: Address| address.get().wrapping_sub(debugging.moved);
            let (from, to) = (own(addresses.start), own(addresses.end));
            // The range may begin before the program.
            let found = debugging.context.find_location_range(if from > to { 0 } else { from }, to);
            let Ok(found) = found else { continue };
            for (start, bytes, location) in found {
                let file = location.file.and_then(|file| self.names.of_file(file));
                let named = file.zip(location.line).filter(|(file, line)| is_wanted(file, *line));
                if let (Ok(bytes), Some((file, line))) = (u32::try_from(bytes), named) {
                    let column = location.column.filter(|&column| column != 0);
                    rows.push(LineRow {
                        start: Address::new(start.wrapping_add(debugging.moved)),
                        bytes,
                        file,
                        line,
                        column,
                    });
                }
            }
        }
        rows.sort_by_key(|row| (row.start, row.bytes));
        rows.dedup();
        rows
    }

    /// The source files of all instructions, by their names in frames. Reads all lines.
    pub fn files(&mut self) -> BTreeSet<Arc<str>> {
        let mut files = BTreeSet::new();
        for debugging in self.images.iter().filter_map(|lines| lines.debugging.as_ref()) {
            let Ok(found) = debugging.context.find_location_range(0, u64::MAX) else { continue };
            let names = found.filter_map(|(_, _, location)| location.file);
            files.extend(names.filter_map(|name| self.names.of_file(name)));
        }
        files
    }

    /// The MD5 of the text that each source file was compiled from, by the files' names in frames, if the
    /// debugging information has it (DWARF 5, 6.2.4.1). A file has several if units were compiled from
    /// different texts.
    pub fn checksums(&mut self) -> BTreeSet<(Arc<str>, [u8; 16])> {
        let mut checksums = BTreeSet::new();
        for debugging in self.images.iter().filter_map(|lines| lines.debugging.as_ref()) {
            debugging.checksums(&mut |file, md5| {
                checksums.extend(self.names.of(&source_path(file)).map(|file| (file, md5)));
            });
        }
        checksums
    }

    /// The number of the [notes](SourceLines::notes).
    #[must_use]
    pub fn count_notes(&self) -> usize {
        self.notes.len() + self.spent().count()
    }

    /// The images whose debugging information turned out to be unusable.
    fn spent(&self) -> impl Iterator<Item = &ImageLines> {
        let is_spent = |lines: &&ImageLines| {
            lines.debugging.as_ref().is_some_and(|debugging| debugging.budget.is_spent())
        };
        self.images.iter().filter(is_spent)
    }

    /// The known problems with finding lines. Some problems show only when lines are searched.
    #[must_use]
    pub fn notes(&self) -> Vec<SymbolNote> {
        let spent = self.spent().map(|lines| SymbolNote {
            file: lines.image.file.clone(),
            problem: format!("its source lines cannot be read: {}", dwarf::REPEATS),
        });
        self.notes.iter().cloned().chain(spent).collect()
    }

    /// Collects the frames of an address in `found`. Returns whether any image holds the address.
    fn find_frames(&mut self, address: Address) -> bool {
        // A memory dump may overlay the ELF file that has the lines; an image of another scope is another
        // program.
        let all = || self.images.iter().filter(|lines| lines.image.segment_at(address).is_some());
        let Some(first) = all().next() else { return false };
        let holders = || all().filter(|lines| lines.scope == first.scope);
        let lines = holders().find(|lines| lines.debugging.is_some()).unwrap_or(first);
        let frames = &mut self.found;
        frames.clear();
        if let Some(debugging) = &lines.debugging
            && let Ok(mut found) =
                debugging.context.find_frames(address.get().wrapping_sub(debugging.moved)).skip_all_loads()
        {
            while let Ok(Some(frame)) = found.next() {
                let location = frame.location.as_ref();
                let name = frame.function.as_ref().and_then(|name| name.raw_name().ok());
                frames.push(Frame {
                    function: name.and_then(|name| self.names.of_function(name)),
                    file: location
                        .and_then(|location| location.file)
                        .and_then(|file| self.names.of_file(file)),
                    line: location.and_then(|location| location.line),
                    column: location.and_then(|location| location.column).filter(|&column| column != 0),
                });
            }
        }
        // Assembly code has lines but no functions in its debugging information.
        if let Some(function) = self.functions.at(address) {
            if frames.is_empty() {
                frames.push(Frame::default());
            }
            if let Some(Frame { function: outermost @ None, .. }) = frames.last_mut() {
                *outermost = self.names.of(&function.name);
            }
        }
        true
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

/// Shared copies of names in printable form.
#[derive(Default)]
struct Names {
    all: BTreeSet<Arc<str>>,
    /// The copies of names that the debugging information holds, by the place of each in memory, where it stays. Most
    /// instructions have names of the instruction before.
    held: Recent<Held, Option<Arc<str>>, 0x1000>,
}

/// The address of a name in memory, and its length.
type Held = (usize, usize);

impl Names {
    /// The shared copy of a name; `None` for an empty name.
    fn of(&mut self, name: &str) -> Option<Arc<str>> {
        let name = plain(name.into());
        if name.is_empty() {
            return None;
        }
        if let Some(known) = self.all.get(&*name) {
            return Some(Arc::clone(known));
        }
        let name: Arc<str> = Arc::from(name);
        self.all.insert(Arc::clone(&name));
        Some(name)
    }

    /// The shared copy of a file's name, which the debugging information holds.
    fn of_file(&mut self, name: &str) -> Option<Arc<str>> {
        self.held(name, |names, name| names.of(&source_path(name)))
    }

    /// The shared copy of a function's name, demangled.
    fn of_function(&mut self, name: Cow<'_, str>) -> Option<Arc<str>> {
        match name {
            Cow::Borrowed(name) => self.held(name, |names, name| names.of(&demangle(name))),
            // Made for this call, because the name is not UTF-8.
            Cow::Owned(name) => self.of(&demangle(&name)),
        }
    }

    fn held(&mut self, name: &str, make: impl Fn(&mut Self, &str) -> Option<Arc<str>>) -> Option<Arc<str>> {
        let held = (name.as_ptr().addr(), name.len());
        if let Some(known) = self.held.get(held.0 as u64, &held) {
            return known;
        }
        let made = make(self, name);
        self.held.put(held.0 as u64, held, made.clone());
        made
    }
}

/// A source file's path in the one spelling that all answers have.
fn source_path(file: &str) -> String {
    let file = file.replace('\\', "/");
    let mut parts = Vec::new();
    for part in file.split('/').skip(usize::from(file.starts_with('/'))) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let root = if file.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}
