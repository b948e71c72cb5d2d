//! Members of structures: their offsets and types.

use gimli::{AttributeValue, DebugInfoOffset, DwTag, UnitOffset, constants as dw};

use super::{Debugging, Reader};

type Unit = gimli::Unit<Reader>;
type Entry = gimli::DebuggingInformationEntry<Reader>;

/// The types of a program's variables.
pub(in crate::symbols) struct Types<'a> {
    debugging: &'a Debugging,
    units: Vec<Unit>,
}

/// The type of a variable or a member.
#[derive(Clone, Copy, Debug)]
pub(in crate::symbols) struct Type {
    unit: usize,
    offset: UnitOffset,
}

/// The longest chain of names for one type; a hostile file may refer to itself.
const MOST_NAMES: usize = 32;

impl Debugging {
    /// The types. Malformed units have none.
    pub(in crate::symbols) fn types(&self) -> Types<'_> {
        let mut units = Vec::new();
        let mut headers = self.dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            units.extend(self.dwarf.unit(header));
        }
        Types { debugging: self, units }
    }
}

impl Types<'_> {
    /// The type of a variable that is visible in all functions, by its name in C.
    pub(in crate::symbols) fn variable(&self, name: &str) -> Option<Type> {
        let of = |found: Type| self.follow(found.unit, &self.entry(found)?);
        self.named(&[dw::DW_TAG_variable], name).find_map(|variable| {
            let found = of(variable)?;
            self.is_whole(found).then_some(found)
        })
    }

    /// The type that a path of members leads to, and the sum of their offsets. Of an array, the first element counts.
    pub(in crate::symbols) fn member(&self, of: Type, path: &[&str]) -> Option<(u64, Type)> {
        path.iter().try_fold((0_u64, of), |(offset, of), name| {
            let (structure, _) = self.plain(self.element(of))?;
            let (within, found) = self.children(structure, |child| {
                let is_member = child.tag() == dw::DW_TAG_member && self.is_called(structure, child, name);
                let within = child.attr_value(dw::DW_AT_data_member_location);
                let within = within.map_or(Some(0), |within| within.udata_value());
                Some((within?, self.follow(structure.unit, child)?)).filter(|_| is_member)
            })?;
            Some((offset.checked_add(within)?, found))
        })
    }

    /// The type that a pointer points to; the whole structure if another unit has it.
    pub(in crate::symbols) fn target(&self, of: Type) -> Option<Type> {
        let (pointer, entry) = self.plain(of)?;
        if entry.tag() != dw::DW_TAG_pointer_type {
            return None;
        }
        let target = self.follow(pointer.unit, &entry)?;
        let (named, entry) = self.plain(target)?;
        if self.is_whole(target) {
            return Some(target);
        }
        self.structure(&self.name(named, &entry)?)
    }

    /// The structure of this name.
    pub(in crate::symbols) fn structure(&self, name: &str) -> Option<Type> {
        self.named(&[dw::DW_TAG_structure_type, dw::DW_TAG_class_type], name)
            .find(|found| self.is_whole(*found))
    }

    /// The number of elements of an array; `None` for another type.
    pub(in crate::symbols) fn count(&self, of: Type) -> Option<u64> {
        let (array, entry) = self.plain(of)?;
        let range = |child: &Entry| {
            let count = child.attr_value(dw::DW_AT_count).and_then(|count| count.udata_value());
            let last = child.attr_value(dw::DW_AT_upper_bound).and_then(|last| last.udata_value());
            count.or_else(|| last?.checked_add(1)).filter(|_| child.tag() == dw::DW_TAG_subrange_type)
        };
        (entry.tag() == dw::DW_TAG_array_type).then(|| self.children(array, range))?
    }

    /// Whether it is a pointer.
    pub(in crate::symbols) fn is_pointer(&self, of: Type) -> bool {
        self.plain(of).is_some_and(|(_, entry)| entry.tag() == dw::DW_TAG_pointer_type)
    }

    /// The type of an array's elements, or the type itself.
    pub(in crate::symbols) fn element(&self, mut of: Type) -> Type {
        while let Some((array, entry)) = self.plain(of)
            && entry.tag() == dw::DW_TAG_array_type
            && let Some(element) = self.follow(array.unit, &entry)
        {
            of = element;
        }
        of
    }

    /// The type without other names and qualifiers.
    fn plain(&self, mut of: Type) -> Option<(Type, Entry)> {
        for _ in 0..MOST_NAMES {
            let entry = self.entry(of)?;
            match entry.tag() {
                dw::DW_TAG_typedef
                | dw::DW_TAG_const_type
                | dw::DW_TAG_volatile_type
                | dw::DW_TAG_restrict_type
                | dw::DW_TAG_atomic_type => of = self.follow(of.unit, &entry)?,
                _ => return Some((of, entry)),
            }
        }
        None
    }

    fn is_whole(&self, of: Type) -> bool {
        self.plain(of).is_some_and(|(_, entry)| !entry.has_attr(dw::DW_AT_declaration))
    }

    fn entry(&self, of: Type) -> Option<Entry> {
        self.units[of.unit].entry(of.offset).ok()
    }

    /// The type of an entry.
    fn follow(&self, unit: usize, entry: &Entry) -> Option<Type> {
        match entry.attr_value(dw::DW_AT_type)? {
            AttributeValue::UnitRef(offset) => Some(Type { unit, offset }),
            AttributeValue::DebugInfoRef(offset) => self.somewhere(offset),
            _ => None,
        }
    }

    fn somewhere(&self, at: DebugInfoOffset) -> Option<Type> {
        let mut units = self.units.iter().enumerate();
        units.find_map(|(unit, found)| Some(Type { unit, offset: at.to_unit_offset(&found.header)? }))
    }

    fn name(&self, of: Type, entry: &Entry) -> Option<String> {
        let name = entry.attr_value(dw::DW_AT_name)?;
        let name = self.debugging.dwarf.attr_string(&self.units[of.unit], name).ok()?;
        gimli::Reader::to_string(&name).ok().map(std::borrow::Cow::into_owned)
    }

    fn is_called(&self, of: Type, entry: &Entry, name: &str) -> bool {
        self.name(of, entry).is_some_and(|found| found == name)
    }

    /// The entries of these kinds with this name, outside of functions.
    fn named<'a>(&'a self, tags: &'a [DwTag], name: &'a str) -> impl Iterator<Item = Type> + 'a {
        (0..self.units.len()).flat_map(move |unit| {
            let mut found = Vec::new();
            let root = Type { unit, offset: self.units[unit].header.root_offset() };
            self.children(root, |child| {
                if tags.contains(&child.tag()) && self.is_called(root, child, name) {
                    found.push(Type { unit, offset: child.offset() });
                }
                None::<()>
            });
            found
        })
    }

    /// The first answer about a child of an entry.
    fn children<T>(&self, of: Type, mut ask: impl FnMut(&Entry) -> Option<T>) -> Option<T> {
        let unit = &self.units[of.unit];
        let mut tree = unit.entries_tree(Some(of.offset)).ok()?;
        let mut children = tree.root().ok()?.children();
        while let Ok(Some(child)) = children.next() {
            if let Some(answer) = ask(child.entry()) {
                return Some(answer);
            }
        }
        None
    }
}
