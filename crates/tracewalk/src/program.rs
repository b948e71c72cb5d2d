//! The program's code: regions of bytes by address.
//!
//! Regions are added once, then only read, and shared by everything that follows execution. Touching regions become
//! one, so that an instruction may lie across the border of two memory dumps. ELF files and symbols are not here.

mod vectors;

use alloc::vec::Vec;
use core::fmt;

use crate::ids::{Address, Exception};

/// The code that was executed, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Sorted by address, neither overlapping nor touching.
    regions: Vec<Region>,
    /// M profile's table of vectors, where it is known.
    vector_table: Option<Address>,
}

/// What M profile's table of vectors says of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// Nobody said where the table stands.
    Unknown,
    /// No handler starts there.
    None,
    /// The handler of one exception starts there.
    One(Exception),
    /// A handler starts there that several exceptions share.
    Several,
}

/// A stretch of memory and its bytes.
#[derive(Clone, Debug)]
pub struct Region {
    start: Address,
    bytes: Vec<u8>,
}

/// Why a region cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddRegionError {
    /// It ends behind the last address of 32 bits.
    PastEndOfMemory {
        /// Where it was to start.
        start: Address,
        /// How long it is.
        bytes: usize,
    },
    /// Memory there is already known and holds other bytes.
    Conflict {
        /// The first address where the two differ.
        at: Address,
    },
}

impl fmt::Display for AddRegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PastEndOfMemory { start, bytes } => {
                write!(f, "{bytes} bytes at {start} go past the end of the 32-bit address space")
            }
            Self::Conflict { at } => write!(f, "the byte at {at} is already known as another one"),
        }
    }
}

impl core::error::Error for AddRegionError {}

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

impl Program {
    /// A program of which nothing is known.
    #[must_use]
    pub const fn new() -> Self {
        Self { regions: Vec::new(), vector_table: None }
    }

    /// Adds the bytes at `start`. Where memory is already known the bytes have to be the same.
    pub fn add(&mut self, start: Address, bytes: &[u8]) -> Result<(), AddRegionError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let end = u64::from(start.0) + bytes.len() as u64;
        if end > 1 << 32 {
            return Err(AddRegionError::PastEndOfMemory { start, bytes: bytes.len() });
        }
        let first = self.regions.partition_point(|region| region.end() < u64::from(start.0));
        let last = self.regions.partition_point(|region| u64::from(region.start.0) <= end);
        for region in &self.regions[first..last] {
            if let Some(at) = first_difference(region, start, bytes) {
                return Err(AddRegionError::Conflict { at });
            }
        }
        let touched = self.regions.drain(first..last).collect::<Vec<_>>();
        let merged_start = touched.first().map_or(start, |region| region.start.min(start));
        let merged_end = touched.last().map_or(end, |region| region.end().max(end));
        let mut merged = alloc::vec![0; usize::try_from(merged_end - u64::from(merged_start.0)).unwrap_or(0)];
        let parts = touched.iter().map(|region| (region.start, region.bytes.as_slice()));
        for (at, part) in parts.chain([(start, bytes)]) {
            let from = at.bytes_since(merged_start) as usize;
            merged[from..from + part.len()].copy_from_slice(part);
        }
        self.regions.insert(first, Region { start: merged_start, bytes: merged });
        Ok(())
    }

    /// The known bytes from `address` on, to the end of their region; `None` where nothing is known.
    #[must_use]
    #[inline]
    pub fn code(&self, address: Address) -> Option<&[u8]> {
        let behind = self.regions.partition_point(|region| region.start <= address);
        let region = &self.regions[behind.checked_sub(1)?];
        region.bytes.get(address.bytes_since(region.start) as usize..).filter(|code| !code.is_empty())
    }

    /// The word at `address`, in the byte order of code.
    #[must_use]
    pub fn word(&self, address: Address) -> Option<u32> {
        self.code(address)?.first_chunk().copied().map(u32::from_le_bytes)
    }

    /// Says where M profile's table of vectors stands (VTOR).
    pub fn set_vector_table(&mut self, at: Address) {
        self.vector_table = Some(at);
    }

    /// Where M profile's table of vectors stands, if that was said.
    #[must_use]
    pub const fn vector_table(&self) -> Option<Address> {
        self.vector_table
    }

    /// M profile: what the table of vectors says of code that starts at `address`.
    #[must_use]
    pub fn vectors_to(&self, address: Address) -> Vectors {
        let Some(table) = self.vector_table else { return Vectors::Unknown };
        let mut found = vectors::handlers(self, table).filter(|&(_, handler)| handler == address);
        match (found.next(), found.next()) {
            (None, _) => Vectors::None,
            (Some((number, _)), None) => Vectors::One(Exception::M(number)),
            (Some(_), Some(_)) => Vectors::Several,
        }
    }

    /// The regions in the order of their addresses.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_regions_become_one() {
        let mut program = Program::new();
        program.add(Address(0x104), &[5, 6, 7, 8]).unwrap();
        program.add(Address(0x10c), &[9]).unwrap();
        program.add(Address(0x100), &[1, 2, 3, 4]).unwrap();
        assert_eq!(program.regions().len(), 2);
        assert_eq!(program.code(Address(0x102)), Some(&[3, 4, 5, 6, 7, 8][..]));
        assert_eq!(program.word(Address(0x102)), Some(0x0605_0403));
        program.add(Address(0x108), &[0; 4]).unwrap();
        assert_eq!(program.regions().len(), 1);
        assert_eq!(program.code(Address(0x10d)), None);
        assert_eq!(program.code(Address(0xff)), None);
    }

    #[test]
    fn overlapping_bytes_must_agree() {
        let mut program = Program::new();
        program.add(Address(0x100), &[1, 2, 3, 4]).unwrap();
        program.add(Address(0x102), &[3, 4, 5]).unwrap();
        assert_eq!(program.code(Address(0x100)), Some(&[1, 2, 3, 4, 5][..]));
        let conflict = program.add(Address(0xfe), &[0, 0, 1, 9]);
        assert_eq!(conflict, Err(AddRegionError::Conflict { at: Address(0x101) }));
    }

    #[test]
    fn the_last_byte_of_memory_can_be_known_and_nothing_behind_it() {
        let mut program = Program::new();
        program.add(Address(0xffff_ffff), &[1]).unwrap();
        assert_eq!(program.code(Address(0xffff_ffff)), Some(&[1][..]));
        assert!(matches!(
            program.add(Address(0xffff_ffff), &[1, 2]),
            Err(AddRegionError::PastEndOfMemory { .. })
        ));
    }
}
