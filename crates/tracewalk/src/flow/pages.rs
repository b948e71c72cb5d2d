//! A large sparse table: most of a program's code is never executed.

use alloc::vec::Vec;

/// A table of numbers, 0 at first, that takes memory by pages, as they are used.
#[derive(Clone, Debug)]
pub(super) struct PagedTable {
    length: usize,
    /// The start of each page in `entries`, plus one; 0 for a page that was never used. Empty before the
    /// first use.
    pages: Vec<u32>,
    entries: Vec<u32>,
}

/// The number of entries on a page, a power of two.
const PAGE: usize = 1 << 10;

impl PagedTable {
    /// A table with `length` entries.
    pub(super) const fn new(length: usize) -> Self {
        Self { length, pages: Vec::new(), entries: Vec::new() }
    }

    /// The entry with this number; `None` past the end.
    #[inline]
    pub(super) fn entry(&mut self, index: usize) -> Option<&mut u32> {
        let page = match self.pages.get(index / PAGE) {
            Some(&page) if page != 0 => page,
            _ => self.add_page(index)?,
        };
        self.entries.get_mut(page as usize - 1 + index % PAGE)
    }

    /// The page of the entry with this number, which was not used before.
    #[cold]
    fn add_page(&mut self, index: usize) -> Option<u32> {
        if index >= self.length {
            return None;
        }
        if self.pages.is_empty() {
            self.pages.resize(self.length.div_ceil(PAGE), 0);
        }
        let first = self.entries.len();
        let page = u32::try_from(first + 1).ok()?;
        *self.pages.get_mut(index / PAGE)? = page;
        self.entries.resize(first + PAGE, 0);
        Some(page)
    }

    /// Makes all entries 0, and gives the memory back.
    pub(super) fn clear(&mut self) {
        (self.pages, self.entries) = (Vec::new(), Vec::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_what_was_written_and_only_pages_in_use_take_memory() {
        let mut table = PagedTable::new(1 << 20);
        let places = [0, 1, PAGE - 1, PAGE, 77 * PAGE + 5, (1 << 20) - 1];
        for (place, number) in places.into_iter().zip(1..) {
            assert_eq!(table.entry(place).copied(), Some(0));
            *table.entry(place).expect("inside") = number;
        }
        for (place, number) in places.into_iter().zip(1..) {
            assert_eq!(table.entry(place).copied(), Some(number));
        }
        assert_eq!(table.entries.len(), 4 * PAGE);
        assert_eq!(table.entry(1 << 20), None);
        assert_eq!(table.entry(usize::MAX), None);
        table.clear();
        assert_eq!(table.entry(1).copied(), Some(0));
    }
}
