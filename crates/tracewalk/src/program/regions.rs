//! Stretches of memory whose bytes are known.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::AddRegionError;
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

    /// The address behind the last byte, as a number that may be 2^32.
    fn end(&self) -> u64 {
        u64::from(self.start.0) + self.bytes.len() as u64
    }
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
        let behind = self.0.partition_point(|region| region.start <= address);
        let region = &self.0[behind.checked_sub(1)?];
        region.bytes.get(address.bytes_since(region.start) as usize..).filter(|code| !code.is_empty())
    }

    /// Adds bytes, which have to be the same where memory is already known.
    pub(super) fn add(&mut self, start: Address, bytes: &[u8]) -> Result<(), AddRegionError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let end = u64::from(start.0) + bytes.len() as u64;
        if end > 1 << 32 {
            return Err(AddRegionError::PastEndOfMemory { start, bytes: bytes.len() });
        }
        for region in &self.0[self.touching(u64::from(start.0), end)] {
            if let Some(at) = first_difference(region, start, bytes) {
                return Err(AddRegionError::Conflict { at });
            }
        }
        self.insert(start, bytes, end);
        Ok(())
    }

    /// Puts a region over what is already known.
    pub(super) fn cover(&mut self, region: &Region) {
        let end = region.end();
        let touching = self.touching(u64::from(region.start.0), end);
        if touching.is_empty() {
            self.0.insert(touching.start, region.clone());
        } else {
            self.insert(region.start, &region.bytes, end);
        }
    }

    /// Which regions touch the memory between two addresses.
    fn touching(&self, start: u64, end: u64) -> core::ops::Range<usize> {
        let first = self.0.partition_point(|region| region.end() < start);
        first..self.0.partition_point(|region| u64::from(region.start.0) <= end)
    }

    /// Makes one region of the bytes from `start` to `end` and those that touch them.
    fn insert(&mut self, start: Address, bytes: &[u8], end: u64) {
        let touching = self.touching(u64::from(start.0), end);
        let first = touching.start;
        let touched = self.0.drain(touching).collect::<Vec<_>>();
        let merged_start = touched.first().map_or(start, |region| region.start.min(start));
        let merged_end = touched.last().map_or(end, |region| region.end().max(end));
        let mut merged = alloc::vec![0; usize::try_from(merged_end - u64::from(merged_start.0)).unwrap_or(0)];
        let parts = touched.iter().map(|region| (region.start, region.bytes()));
        for (at, part) in parts.chain([(start, bytes)]) {
            let from = at.bytes_since(merged_start) as usize;
            merged[from..from + part.len()].copy_from_slice(part);
        }
        self.0.insert(first, Region { start: merged_start, bytes: merged.into() });
    }
}

/// The first address at which `region` and the `bytes` at `start` both say something, and not the same.
fn first_difference(region: &Region, start: Address, bytes: &[u8]) -> Option<Address> {
    let from = region.start.max(start);
    let known = region.bytes.get(from.bytes_since(region.start) as usize..)?;
    let new = bytes.get(from.bytes_since(start) as usize..)?;
    let index = known.iter().zip(new).position(|(known, new)| known != new)?;
    Some(from.plus(u32::try_from(index).ok()?))
}
