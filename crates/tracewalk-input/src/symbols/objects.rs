//! Data objects by address.

use tracewalk::ids::Address;

use super::table::{Kind, Table};

/// A data object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The object's symbol name.
    pub name: String,
    /// The object's first address.
    pub start: Address,
    /// The address after the object, as a number that may be 2^32 if addresses have 32 bits.
    pub end: u64,
    /// Whether the program may write to it.
    pub is_variable: bool,
}

/// The data objects of a program.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    /// The objects by their first addresses; the longest first among those with the same one.
    all: Vec<Object>,
    /// The length of the longest object.
    longest: u64,
}

impl Objects {
    pub(super) fn of(tables: &[Table<'_>]) -> Self {
        let symbols = tables.iter().flat_map(|table| table.symbols.iter().map(move |symbol| (table, symbol)));
        let mut all = symbols
            .filter(|(_, symbol)| symbol.kind == Kind::Object && symbol.size > 0)
            .map(|(table, symbol)| Object {
                is_variable: symbol
                    .section
                    .and_then(|section| table.sections.get(section))
                    .is_some_and(|section| section.writable),
                name: symbol.name.to_string(),
                start: Address::new(symbol.value),
                end: symbol.value.saturating_add(symbol.size),
            })
            .collect::<Vec<_>>();
        all.sort_by(|a, b| (a.start, b.end, &a.name).cmp(&(b.start, a.end, &b.name)));
        let longest = all.iter().map(|object| object.end - object.start.get()).max().unwrap_or(0);
        Self { all, longest }
    }

    pub(super) fn all(&self) -> &[Object] {
        &self.all
    }

    pub(super) fn at(&self, address: Address) -> Option<&Object> {
        let after = self.all.partition_point(|object| object.start <= address);
        let near = self.all.get(..after)?.iter().rev();
        let near = near.take_while(|object| address.get() - object.start.get() < self.longest);
        near.filter(|object| address.get() < object.end).min_by_key(|object| object.end - object.start.get())
    }

    /// The only address in variables with these low 16 bits.
    pub(super) fn with_low_half(&self, low_half: u16) -> Option<Address> {
        let first = |object: &Object| {
            let start = object.start.get();
            let after = u64::from(low_half).wrapping_sub(start) & 0xffff;
            let at = start.checked_add(after)?;
            // A larger object has several.
            (at < object.end).then_some((at, at.saturating_add(0x1_0000) < object.end))
        };
        let mut found = self.all.iter().filter(|object| object.is_variable).filter_map(first);
        let (at, is_repeated) = found.next()?;
        (!is_repeated && found.all(|other| other == (at, false))).then_some(Address::new(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_object_holds_an_address() {
        let object = |name: &str, start: u32, end: u64| Object {
            name: name.to_owned(),
            start: Address::from(start),
            end,
            is_variable: false,
        };
        let objects = Objects {
            all: vec![object("all", 0, 100), object("part", 8, 16), object("next", 200, 204)],
            longest: 100,
        };
        let at = |address: u32| objects.at(Address::from(address)).map(|object| object.name.as_str());
        assert_eq!(
            [at(4), at(8), at(16), at(100), at(203), at(204)].map(Option::unwrap_or_default),
            ["all", "part", "all", "", "next", ""]
        );
    }

    #[test]
    fn the_low_half_of_an_address_finds_the_only_data() {
        let object = |start: u32, size: u32| Object {
            name: String::new(),
            start: Address::from(start),
            end: u64::from(start) + u64::from(size),
            is_variable: start != 0x4000_0000,
        };
        let all = [
            object(0x0800_fff0, 0x40),
            object(0x2000_0000, 0x10),
            object(0x2000_0100, 4),
            object(0x3000_0000, 0x2_0000),
            object(0x4000_0000, 0x200),
        ];
        let objects = |all: &[Object]| Objects { all: all.to_vec(), longest: 0x2_0000 };
        let found = |all: &[Object], low_half| objects(all).with_low_half(low_half).map(Address::get);
        // An object may cross from one 64 KiB to the next.
        assert_eq!(found(&all[..3], 0x0010), Some(0x0801_0010));
        assert_eq!(found(&all[..3], 0x0102), Some(0x2000_0102));
        // Constants are not watched.
        assert_eq!(found(&[all[2].clone(), all[4].clone()], 0x0102), Some(0x2000_0102));
        assert_eq!(found(&all[..3], 0x0004), None);
        assert_eq!(found(&all[..3], 0x8000), None);
        assert_eq!(found(&all[3..4], 0x8000), None);
    }
}
