//! A gimli reader that marks addresses of removed code and counts the bytes read.
//!
//! Debugging information refers to itself. In a few kilobytes, each of a thousand units can name the same
//! list of ranges, line program or table of abbreviations; following all references takes unbounded time and
//! memory. So the sections of a file may be read only a few times over. Each byte read produces a few dozen
//! bytes at most, so the limit bounds memory as well.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gimli::{Error, LittleEndian, ReaderOffsetId, Result};

/// The number of bytes that may still be read.
#[derive(Debug)]
pub(in crate::symbols) struct Budget(AtomicU64);

impl Budget {
    /// The number of times debugging information may be read: once to find the units, once each for lines,
    /// functions and inlined functions, and some for names.
    const TIMES: u64 = 8;

    /// The additional allowance for short files, in bytes.
    const LEAST: u64 = 1 << 20;

    /// The budget for debugging information of this number of bytes.
    pub(super) fn of(bytes: u64) -> Self {
        Self(AtomicU64::new(bytes.saturating_mul(Self::TIMES).saturating_add(Self::LEAST)))
    }

    /// Whether the budget is used up.
    pub(in crate::symbols) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Subtracts this number of bytes; `false` if the budget is too small. Concurrent reads may be counted
    /// inexactly, which is cheaper than exact counting.
    fn take(&self, bytes: usize) -> bool {
        let left = self.0.load(Ordering::Relaxed).checked_sub(bytes as u64);
        self.0.store(left.unwrap_or(0), Ordering::Relaxed);
        left.is_some_and(|left| left > 0)
    }
}

/// The meaning of an address 0 in a section.
#[derive(Clone, Debug)]
pub(super) enum Removed {
    /// The address 0.
    Nothing,
    /// Code that was removed.
    Zero,
    /// Code that was removed, except in the head of each unit: there, 0 is the base of the unit's other
    /// addresses.
    ZeroOutside(Arc<[Range<usize>]>),
}

impl Removed {
    fn mark(&self, offset: usize, value: u64, bytes: u8) -> u64 {
        let removed = match self {
            Self::Nothing => false,
            Self::Zero => value == 0,
            Self::ZeroOutside(heads) => value == 0 && !contains(heads, offset),
        };
        // All ones, as wide as addresses are: in a 64-bit file, 0xffff_ffff is a normal address.
        let ones = u64::MAX >> (64 - 8 * u32::from(bytes.clamp(1, 8)));
        if removed { ones } else { value }
    }
}

/// Whether an offset is in one of the sorted ranges.
fn contains(ranges: &[Range<usize>], offset: usize) -> bool {
    let after = ranges.partition_point(|range| range.start <= offset);
    after.checked_sub(1).and_then(|index| ranges.get(index)).is_some_and(|range| range.contains(&offset))
}

/// A part of a section.
#[derive(Clone)]
pub(in crate::symbols) struct Reader {
    section: Arc<Section>,
    /// The range within the section's bytes.
    range: Range<usize>,
}

struct Section {
    bytes: Arc<[u8]>,
    removed: Removed,
    budget: Arc<Budget>,
}

impl Reader {
    /// A whole section.
    pub(super) fn new(bytes: &Arc<[u8]>, removed: Removed, budget: &Arc<Budget>) -> Self {
        let range = 0..bytes.len();
        let (bytes, budget) = (Arc::clone(bytes), Arc::clone(budget));
        Self { section: Arc::new(Section { bytes, removed, budget }), range }
    }

    fn bytes(&self) -> &[u8] {
        self.section.bytes.get(self.range.clone()).unwrap_or_default()
    }

    /// The next bytes; subtracts them from the budget.
    fn next(&mut self, count: usize) -> Result<&[u8]> {
        let start = self.range.start;
        self.advance(count)?;
        if !self.section.budget.take(count) {
            return Err(self.end_of_input());
        }
        Ok(self.section.bytes.get(start..self.range.start).unwrap_or_default())
    }

    fn advance(&mut self, count: usize) -> Result<()> {
        if self.range.len() < count {
            return Err(self.end_of_input());
        }
        self.range.start += count;
        Ok(())
    }

    fn end_of_input(&self) -> Error {
        Error::UnexpectedEof(gimli::Reader::offset_id(self))
    }
}

impl gimli::Reader for Reader {
    type Endian = LittleEndian;
    type Offset = usize;

    #[inline]
    fn endian(&self) -> LittleEndian {
        LittleEndian
    }

    #[inline]
    fn len(&self) -> usize {
        self.range.len()
    }

    fn empty(&mut self) {
        self.range.end = self.range.start;
    }

    fn truncate(&mut self, len: usize) -> Result<()> {
        if self.range.len() < len {
            return Err(self.end_of_input());
        }
        self.range.end = self.range.start + len;
        Ok(())
    }

    fn offset_from(&self, base: &Self) -> usize {
        self.range.start.saturating_sub(base.range.start)
    }

    fn offset_id(&self) -> ReaderOffsetId {
        ReaderOffsetId(self.bytes().as_ptr().addr() as u64)
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        let offset = usize::try_from(id.0).ok()?.checked_sub(self.bytes().as_ptr().addr())?;
        (offset <= self.range.len()).then_some(offset)
    }

    fn find(&self, byte: u8) -> Result<usize> {
        let found = self.bytes().iter().position(|&other| other == byte);
        let looked_at = found.unwrap_or(self.range.len());
        found.filter(|_| self.section.budget.take(looked_at)).ok_or_else(|| self.end_of_input())
    }

    #[inline]
    fn skip(&mut self, len: usize) -> Result<()> {
        self.advance(len)
    }

    #[inline]
    fn split(&mut self, len: usize) -> Result<Self> {
        let mut part = self.clone();
        part.truncate(len)?;
        self.advance(len)?;
        Ok(part)
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        Ok(self.bytes().into())
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        std::str::from_utf8(self.bytes()).map(Cow::from).map_err(|_| Error::BadUtf8)
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        Ok(String::from_utf8_lossy(self.bytes()))
    }

    #[inline]
    fn read_slice(&mut self, buffer: &mut [u8]) -> Result<()> {
        buffer.copy_from_slice(self.next(buffer.len())?);
        Ok(())
    }

    fn read_address(&mut self, address_size: u8) -> Result<u64> {
        let offset = self.range.start;
        let value = match address_size {
            1 => u64::from(self.read_u8()?),
            2 => u64::from(self.read_u16()?),
            4 => u64::from(self.read_u32()?),
            8 => self.read_u64()?,
            other => return Err(Error::UnsupportedAddressSize(other)),
        };
        Ok(self.section.removed.mark(offset, value, address_size))
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("range", &self.range).finish_non_exhaustive()
    }
}
