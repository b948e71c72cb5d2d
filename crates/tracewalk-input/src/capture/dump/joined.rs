//! Joins adjacent pieces of memory, with holes between them.

use std::ops::Range;

use tracewalk::ids::Address;
use tracewalk::protocol::mtb::order::Dump;

use super::memory::{MemoryDump, MemoryPiece};
use crate::bytes::Bytes;

/// The most bytes that may be missing between joined pieces. No chip has a larger trace buffer.
const MOST_MISSING: u64 = 4 << 20;

/// Pieces of memory in address order, joined.
#[derive(Clone, Debug)]
pub struct JoinedMemory {
    /// The address of the first byte; `None` if unknown.
    pub address: Option<Address>,
    /// The bytes, and zeros in holes.
    pub bytes: Bytes,
    /// The ranges of the holes, in order.
    pub holes: Vec<Range<usize>>,
}

impl MemoryDump {
    /// Joins these pieces; `None` for an empty range, and for pieces that are too far apart.
    #[must_use]
    pub fn join(&self, pieces: Range<usize>) -> Option<JoinedMemory> {
        let pieces = self.pieces.get(pieces)?;
        let (first, rest) = pieces.split_first()?;
        // A file begins at offset 0, even if the listing begins later.
        let before = if self.is_file { first.address?.get() } else { 0 };
        if rest.is_empty() && before == 0 {
            let (address, bytes) = (first.address.filter(|_| !self.is_file), first.bytes.clone());
            return Some(JoinedMemory { address, bytes, holes: Vec::new() });
        }
        let missing = pieces.windows(2).map(|pair| gap(&pair[0], &pair[1])).sum::<Option<u64>>();
        missing.filter(|missing| missing.saturating_add(before) <= MOST_MISSING)?;
        let (mut bytes, mut holes) = (vec![0; usize::try_from(before).ok()?], Vec::new());
        if before > 0 {
            holes.push(0..bytes.len());
        }
        bytes.extend_from_slice(&first.bytes);
        for pair in pieces.windows(2) {
            let start = bytes.len();
            bytes.resize(start.checked_add(usize::try_from(gap(&pair[0], &pair[1])?).ok()?)?, 0);
            holes.push(start..bytes.len());
            bytes.extend_from_slice(&pair[1].bytes);
        }
        Some(JoinedMemory { address: first.address.filter(|_| !self.is_file), bytes: bytes.into(), holes })
    }

    /// The runs of several pieces that touch one block of this size, aligned to the size.
    pub fn in_blocks(&self, size: u64) -> impl Iterator<Item = Range<usize>> {
        let size = size.max(1);
        let block =
            move |piece: &MemoryPiece, offset: usize| Some((piece.address?.get() + offset as u64) / size);
        let first_of = move |piece: &MemoryPiece| block(piece, 0);
        let last_of = move |piece: &MemoryPiece| block(piece, piece.bytes.len().saturating_sub(1));
        let mut start = 0;
        std::iter::from_fn(move || {
            while start < self.pieces.len() {
                let wanted = self.pieces.get(start).and_then(last_of)?;
                let others = self.pieces.get(start + 1..).unwrap_or_default();
                let count = others.iter().take_while(|piece| first_of(piece) == Some(wanted)).count();
                let run = start..start + 1 + count;
                // The last piece may extend into the next block.
                start += count.max(1);
                if count > 0 {
                    return Some(run);
                }
            }
            None
        })
    }

    /// The runs of pieces between which at most `most_missing` bytes are missing, including runs of one
    /// piece.
    pub fn clusters(&self, most_missing: u64) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let rest = self.pieces.get(start..).filter(|rest| !rest.is_empty())?;
            let is_near =
                |pair: &[MemoryPiece]| gap(&pair[0], &pair[1]).is_some_and(|gap| gap <= most_missing);
            let run = start..start + 1 + rest.windows(2).take_while(|pair| is_near(pair)).count();
            start = run.end;
            Some(run)
        })
    }
}

impl JoinedMemory {
    /// The memory in the form that the core library uses.
    #[must_use]
    pub fn dump(&self) -> Dump<'_> {
        Dump { data: &self.bytes, address: self.address, holes: &self.holes }
    }
}

/// The number of bytes missing between two pieces.
fn gap(first: &MemoryPiece, second: &MemoryPiece) -> Option<u64> {
    let end = first.address?.checked_add(first.bytes.len() as u64)?;
    second.address?.offset_from(end)
}
