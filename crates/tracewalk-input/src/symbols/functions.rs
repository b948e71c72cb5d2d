//! Functions by address.

use std::collections::BTreeMap;

use tracewalk::ids::{Address, Isa};
use tracewalk::plain::plain;

use super::contents::{Content, Contents, is_mapping_symbol};
use super::table::{Binding, Kind, Symbol, Table};
use crate::image::Width;

/// A function, or a label of assembly code outside any function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The function's demangled name.
    pub name: String,
    /// The function's symbol name.
    pub symbol: String,
    /// Other symbols at the same address. Startup code gives a default handler the names of all interrupts.
    pub aliases: Vec<String>,
    /// The address of the function's first instruction.
    pub start: Address,
    /// The size in bytes; inferred from the next symbol if the symbol states none.
    pub size: u64,
    /// The instruction set of the first instruction, if the symbols state it.
    pub isa: Option<Isa>,
    /// Whether the symbol is a function or a label.
    pub kind: FunctionKind,
    /// Whether other object files can refer to the symbol.
    pub global: bool,
}

/// The kind of a symbol that marks code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FunctionKind {
    /// A function (`STT_FUNC`).
    Function,
    /// A label in a code section, without a type.
    Label,
}

impl Function {
    /// The address after the last byte, as a number that may be 2^32 if addresses have 32 bits.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.get().saturating_add(self.size)
    }

    /// Whether this is one of the function's names.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.symbol == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// The functions of a program.
#[derive(Clone, Debug, Default)]
pub(super) struct Functions {
    /// Functions in address order, with distinct start addresses.
    all: Vec<Function>,
    /// The function of each address: sorted, not overlapping.
    extents: Vec<Extent>,
}

#[derive(Clone, Copy, Debug)]
struct Extent {
    start: u64,
    end: u64,
    function: usize,
}

/// The assumed size of a function with unknown end: a symbol for code that is not in the file, such as ROM.
const LONGEST_GUESS: u64 = 0x1_0000;

impl Functions {
    pub(super) fn of(tables: &[Table<'_>], contents: &Contents) -> Self {
        let mut starts = BTreeMap::new();
        for table in tables {
            for symbol in &table.symbols {
                collect(&mut starts, table, symbol, contents);
            }
        }
        remove_labels_in_functions(&mut starts);
        let ends = starts.keys().skip(1).copied().chain([u64::MAX]).collect::<Vec<_>>();
        let all =
            starts.into_iter().zip(ends).map(|((start, found), next)| found.finish(start, next, contents));
        let all = all.collect::<Vec<_>>();
        let extents = flatten(&all);
        Self { all, extents }
    }

    pub(super) fn all(&self) -> &[Function] {
        &self.all
    }

    pub(super) fn at(&self, address: Address) -> Option<&Function> {
        let address = address.get();
        let after = self.extents.partition_point(|extent| extent.start <= address);
        let extent = self.extents.get(after.checked_sub(1)?).filter(|extent| address < extent.end)?;
        self.all.get(extent.function)
    }
}

/// The symbols at one address.
struct Found<'a> {
    kind: FunctionKind,
    /// The greatest size that any of the symbols states; 0 if none does.
    size: u64,
    /// The end of the section.
    limit: u64,
    /// The end of memory, according to the width of the image's addresses.
    memory: u64,
    /// The instruction set that the symbols state.
    isa: Isa,
    symbols: Vec<&'a Symbol<'a>>,
}

/// Adds a symbol that may be a function to the others at its address.
fn collect<'a>(
    starts: &mut BTreeMap<u64, Found<'a>>,
    table: &Table<'_>,
    symbol: &'a Symbol<'a>,
    contents: &Contents,
) {
    let section = table.section_of(symbol);
    let kind = match symbol.kind {
        Kind::Function => FunctionKind::Function,
        // A label for data, or for the end of a section, is not a function.
        Kind::Untyped
            if section.is_some_and(|section| section.code && symbol.value < section.end)
                && !is_mapping_symbol(&symbol.name)
                && contents.at(Address::new(symbol.value & !1)) != Some(Content::Data) =>
        {
            FunctionKind::Label
        }
        Kind::Untyped | Kind::Object => return,
    };
    let start = symbol.value & !1;
    let limit = section.map_or(start.saturating_add(LONGEST_GUESS), |section| section.end);
    let found = starts.entry(start).or_insert_with(|| Found {
        kind,
        size: 0,
        limit,
        memory: table.end_of_memory(),
        isa: Isa::A32,
        symbols: Vec::new(),
    });
    if kind < found.kind {
        // A function takes precedence over labels at its address, which the linker script puts at borders.
        found.symbols.clear();
        found.kind = kind;
    }
    if kind == found.kind {
        found.size = found.size.max(symbol.size);
        found.limit = found.limit.max(limit);
        match table.width {
            Width::Bits64 => found.isa = Isa::A64,
            Width::Bits32 if symbol.value & 1 == 1 => found.isa = Isa::T32,
            Width::Bits32 => {}
        }
        found.symbols.push(symbol);
    }
}

/// A label in a function whose size is known is a position in the function, not a function.
fn remove_labels_in_functions(starts: &mut BTreeMap<u64, Found<'_>>) {
    let mut known_to = 0;
    starts.retain(|&start, found| {
        if found.kind == FunctionKind::Label {
            return start >= known_to;
        }
        known_to = known_to.max(start.saturating_add(found.size));
        true
    });
}

impl Found<'_> {
    fn finish(mut self, from: u64, next: u64, contents: &Contents) -> Function {
        // Names that other files can refer to come first; among equals, the order has to be deterministic.
        self.symbols.sort_by(|a, b| {
            let rank = |symbol: &Symbol<'_>| (symbol.binding, symbol.size == 0);
            rank(a).cmp(&rank(b)).then_with(|| a.name.cmp(&b.name))
        });
        self.symbols.dedup_by(|a, b| a.name == b.name);
        let end = match self.size {
            0 => next.min(self.limit).min(self.memory).max(from),
            size => from.saturating_add(size).min(self.memory),
        };
        let mut names = self.symbols.iter().map(|symbol| symbol.name.clone().into_owned());
        let symbol = names.next().unwrap_or_default();
        let isa = match contents.at(Address::new(from)) {
            Some(Content::Code(isa)) => Some(isa),
            _ if self.kind == FunctionKind::Function => Some(self.isa),
            _ => None,
        };
        Function {
            name: demangle(&symbol),
            aliases: names.collect(),
            symbol,
            start: Address::new(from),
            size: end - from,
            isa,
            kind: self.kind,
            global: self.symbols.first().is_some_and(|symbol| symbol.binding != Binding::Local),
        }
    }
}

/// Assigns every address to the innermost function around it. `functions` are sorted by their starts.
fn flatten(functions: &[Function]) -> Vec<Extent> {
    let mut extents = Vec::new();
    let mut open: Vec<(usize, u64)> = Vec::new();
    let mut from = 0;
    let mut give = |from: &mut u64, to: u64, function| {
        if *from < to {
            extents.push(Extent { start: *from, end: to, function });
            *from = to;
        }
    };
    for (index, function) in functions.iter().enumerate() {
        let start = function.start.get();
        while let Some(&(outer, end)) = open.last() {
            give(&mut from, end.min(start), outer);
            if end > start {
                break;
            }
            open.pop();
        }
        from = start;
        open.push((index, function.end()));
    }
    while let Some((outer, end)) = open.pop() {
        give(&mut from, end, outer);
    }
    extents
}

/// The longest name that is demangled. A short mangled name can stand for an enormous one.
const LONGEST_MANGLED: usize = 4096;
const LONGEST_DEMANGLED: usize = 16 * 1024;

/// The name as written in the source: Rust and C++ names are demangled.
pub(super) fn demangle(symbol: &str) -> String {
    if symbol.len() > LONGEST_MANGLED {
        return symbol.to_owned();
    }
    // Most names are plain, and two demanglers take time to reject them.
    if !symbol.trim_start_matches('_').starts_with(['Z', 'R']) {
        return symbol.to_owned();
    }
    let demangled = if let Ok(rust) = rustc_demangle::try_demangle(symbol) {
        Some(format!("{rust:#}"))
    } else if symbol.starts_with("_Z") {
        let cpp = cpp_demangle::Symbol::new(symbol).ok();
        cpp.and_then(|cpp| cpp.demangle().ok())
    } else {
        None
    };
    let name = demangled.filter(|name| name.len() <= LONGEST_DEMANGLED);
    plain(name.map_or(symbol.into(), Into::into)).into_owned()
}
