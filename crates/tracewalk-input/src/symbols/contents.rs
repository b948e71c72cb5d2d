//! Mapping symbols, which mark ARM code, Thumb code, A64 code and data in a code section.
//!
//! ELF for the Arm Architecture (IHI 0044), "Mapping symbols": `$a`, `$t` and `$d`, each up to the next one
//! in its section; ELF for the Arm 64-bit Architecture (IHI 0056) has `$x` and `$d`. A dot and any suffix may
//! follow the letter.

use tracewalk::ids::{Address, Isa};

use super::table::{Kind, Table};
use crate::image::Width;

/// The kind of content at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// Instructions of this set.
    Code(Isa),
    /// Data: constants between the code, a vector table.
    Data,
}

/// Stretches of addresses with the same content.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    /// Sorted by start, not overlapping.
    stretches: Vec<Stretch>,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    start: u64,
    end: u64,
    content: Content,
}

impl Contents {
    pub(super) fn of(tables: &[Table<'_>]) -> Self {
        let mut stretches = Vec::new();
        for table in tables {
            let mut marks = Vec::new();
            for symbol in &table.symbols {
                // Mapping symbols also occur in debugging sections, which have no addresses.
                let in_memory = table.section_of(symbol).is_some_and(|section| section.memory);
                if let (true, Kind::Untyped, Some(content)) =
                    (in_memory, symbol.kind, content_of(&symbol.name, table.width))
                {
                    marks.push((symbol.section, symbol.value, content));
                }
            }
            // If two symbols share an address, the first one's stretch is empty: it ends an object file's
            // part of the section, and symbols are in the order of the object files' parts. The sort must
            // therefore be stable.
            marks.sort_by_key(|&(section, value, _)| (section, value));
            for (index, &(section, start, content)) in marks.iter().enumerate() {
                let next = marks.get(index + 1).filter(|next| next.0 == section).map(|next| next.1);
                let end = next.or_else(|| Some(table.sections.get(section?)?.end)).unwrap_or(0);
                if start < end {
                    stretches.push(Stretch { start, end, content });
                }
            }
        }
        stretches.sort_by_key(|stretch| stretch.start);
        let mut known_to = 0;
        stretches.retain_mut(|stretch| {
            // Two images may describe the same code; the stretch that starts first wins.
            let overlaps = stretch.start < known_to;
            known_to = known_to.max(stretch.end);
            !overlaps
        });
        stretches.dedup_by(|later, earlier| {
            let joins = earlier.content == later.content && earlier.end == later.start;
            if joins {
                earlier.end = later.end;
            }
            joins
        });
        Self { stretches }
    }

    pub(super) fn at(&self, address: Address) -> Option<Content> {
        let after = self.stretches.partition_point(|stretch| stretch.start <= address.get());
        let stretch = self.stretches.get(after.checked_sub(1)?)?;
        (address.get() < stretch.end).then_some(stretch.content)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (Address, u64, Content)> {
        self.stretches.iter().map(|stretch| (Address::new(stretch.start), stretch.end, stretch.content))
    }
}

/// The meaning of a mapping symbol with this name in a file of this width; `None` for other symbols.
fn content_of(name: &str, width: Width) -> Option<Content> {
    let (letter, rest) = name.strip_prefix('$')?.split_at_checked(1)?;
    if !rest.is_empty() && !rest.starts_with('.') {
        return None;
    }
    match (letter, width) {
        ("a", Width::Bits32) => Some(Content::Code(Isa::A32)),
        ("t", Width::Bits32) => Some(Content::Code(Isa::T32)),
        ("x", Width::Bits64) => Some(Content::Code(Isa::A64)),
        ("d", _) => Some(Content::Data),
        _ => None,
    }
}

/// Whether the symbol is a mapping symbol of any kind, including kinds that are not distinguished here.
pub(super) fn is_mapping_symbol(name: &str) -> bool {
    name.starts_with('$')
}
