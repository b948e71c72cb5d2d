//! Stretches of memory whose bytes are known.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::error::AddRegionError;
use crate::ids::Address;

/// A stretch of memory and its bytes.
#[derive(Clone, Debug)]
pub struct Region {
    start: Address,
    /// Shared by all views in which the region is the same.
    bytes: Arc<[u8]>,
}

/// Sorted by address, neither overlapping nor touching.
#[derive(Clone, Debug, Default)]
pub(super) struct Regions(Vec<Region>);

impl Region {
    /// The address of the first byte.
    #[must_use]
    pub const fn start(&self) -> Address {
        self.start
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The address after the last byte, as a number that may be 2^64.
    fn end(&self) -> u128 {
        number(self.start) + self.bytes.len() as u128
    }

    /// The bytes from `address` on; `None` outside the region.
    #[inline]
    fn code(&self, address: Address) -> Option<&[u8]> {
        let offset = usize::try_from(address.offset_from(self.start)?).ok()?;
        self.bytes.get(offset..).filter(|code| !code.is_empty())
    }
}

/// An address as a number, for arithmetic on the ends of regions.
fn number(address: Address) -> u128 {
    address.get().into()
}

impl Regions {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn all(&self) -> &[Region] {
        &self.0
    }

    /// The known bytes from `address` on, to the end of their region.
    #[inline]
    pub(super) fn code(&self, address: Address) -> Option<&[u8]> {
        let after = self.0.partition_point(|region| region.start <= address);
        self.0.get(after.checked_sub(1)?)?.code(address)
    }

    /// The word at `address`, in the byte order of code.
    pub(super) fn word(&self, address: Address) -> Option<u32> {
        self.code(address)?.first_chunk().copied().map(u32::from_le_bytes)
    }

    /// Adds bytes. If memory is already known, its bytes have to be the same.
    pub(super) fn add(&mut self, start: Address, bytes: &[u8]) -> Result<(), AddRegionError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let end = number(start) + bytes.len() as u128;
        if end > 1 << 64 {
            return Err(AddRegionError::PastEndOfMemory { start, bytes: bytes.len() });
        }
        for region in &self.0[self.touching(number(start), end)] {
            if let Some(at) = first_difference(region, start, bytes) {
                return Err(AddRegionError::Conflict { at });
            }
        }
        self.insert(start, bytes, end);
        Ok(())
    }

    /// Puts a region over the known bytes.
    pub(super) fn cover(&mut self, region: &Region) {
        let end = region.end();
        let touching = self.touching(number(region.start), end);
        if touching.is_empty() {
            self.0.insert(touching.start, region.clone());
        } else {
            self.insert(region.start, &region.bytes, end);
        }
    }

    /// The indices of the regions that touch the memory between two addresses.
    fn touching(&self, start: u128, end: u128) -> core::ops::Range<usize> {
        let first = self.0.partition_point(|region| region.end() < start);
        first..self.0.partition_point(|region| number(region.start) <= end)
    }

    /// Makes one region of the bytes from `start` to `end` and those that touch them.
    fn insert(&mut self, start: Address, bytes: &[u8], end: u128) {
        let touching = self.touching(number(start), end);
        let first = touching.start;
        if touching.is_empty() {
            self.0.insert(first, Region { start, bytes: bytes.into() });
            return;
        }
        let touched = self.0.drain(touching).collect::<Vec<_>>();
        let merged_start = touched.first().map_or(start, |region| region.start.min(start));
        let merged_end = touched.last().map_or(end, |region| region.end().max(end));
        let mut merged = alloc::vec![0; usize::try_from(merged_end - number(merged_start)).unwrap_or(0)];
        let parts = touched.iter().map(|region| (region.start, region.bytes()));
        for (at, part) in parts.chain([(start, bytes)]) {
            let from = usize::try_from(number(at) - number(merged_start)).unwrap_or(usize::MAX);
            merged[from..from + part.len()].copy_from_slice(part);
        }
        self.0.insert(first, Region { start: merged_start, bytes: merged.into() });
    }
}

/// The first address at which `region` and the `bytes` at `start` both have a byte, and the two differ.
fn first_difference(region: &Region, start: Address, bytes: &[u8]) -> Option<Address> {
    let from = region.start.max(start);
    let known = region.code(from)?;
    let new = bytes.get(usize::try_from(from.offset_from(start)?).ok()?..)?;
    let index = known.iter().zip(new).position(|(known, new)| known != new)?;
    from.checked_add(index as u64)
}
