//! Assembles bytes at addresses, in any order, into pieces of memory.

use tracewalk::ids::Address;

use super::problem::MemoryProblem;

/// A problem, and the line on which it appears, if known.
pub(crate) type Located = (Option<u32>, MemoryProblem);

/// Parts of memory, in the order of the file. Takes memory for the file's bytes only, whatever their
/// addresses.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    bytes: Vec<u8>,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    address: Address,
    /// The start of the part's bytes in `Assembly::bytes`.
    start: usize,
    length: usize,
    line: Option<u32>,
}

impl Assembly {
    /// Adds the bytes at `address`, from this line.
    pub(crate) fn add(&mut self, address: u64, bytes: &[u8], line: Option<u32>) -> Result<(), Located> {
        let past_end = || (line, MemoryProblem::PastEndOfMemory { address, bytes: bytes.len() as u64 });
        if address.checked_add(bytes.len() as u64).is_none_or(|end| end > 1 << 32) {
            return Err(past_end());
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let address = Address::from(u32::try_from(address).map_err(|_| past_end())?);
        self.parts.push(Part { address, start: self.bytes.len(), length: bytes.len(), line });
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The pieces in address order; at least one. Adjacent parts are joined. Overlapping parts have to agree.
    pub(crate) fn finish(mut self) -> Result<Vec<(Address, Vec<u8>)>, Located> {
        // A stable sort keeps parts at the same address in the order of the file.
        self.parts.sort_by_key(|part| part.address);
        let mut pieces = Vec::<(Address, Vec<u8>)>::new();
        for (index, part) in self.parts.iter().enumerate() {
            let bytes = self.bytes_of(part);
            let Some((start, piece)) = pieces.last_mut() else {
                pieces.push((part.address, bytes.to_vec()));
                continue;
            };
            // Parts are in address order, so the offset is always known.
            let offset = part.address.offset_from(*start).and_then(|offset| usize::try_from(offset).ok());
            let Some(known) = offset.and_then(|offset| piece.get(offset..)) else {
                pieces.push((part.address, bytes.to_vec()));
                continue;
            };
            if let Some(difference) = known.iter().zip(bytes).position(|(known, new)| known != new) {
                return Err(self.conflict(index, difference));
            }
            let new = bytes.get(known.len()..).unwrap_or_default();
            piece.extend_from_slice(new);
        }
        if pieces.is_empty() {
            return Err((None, MemoryProblem::NoMemory));
        }
        Ok(pieces)
    }

    fn bytes_of(&self, part: &Part) -> &[u8] {
        self.bytes.get(part.start..).and_then(|bytes| bytes.get(..part.length)).unwrap_or_default()
    }

    /// The part at `index` contradicts an earlier one, `offset` bytes from its start.
    fn conflict(&self, index: usize, offset: usize) -> Located {
        let (earlier, rest) = self.parts.split_at(index);
        let Some(part) = rest.first() else { return (None, MemoryProblem::NoMemory) };
        let at = part.address.checked_add(offset as u64).unwrap_or(part.address);
        let byte = |part: &Part| {
            let offset = usize::try_from(at.offset_from(part.address)?).ok()?;
            self.bytes_of(part).get(offset).copied()
        };
        let found = byte(part).unwrap_or(0);
        let other = earlier.iter().find_map(|other| Some((byte(other)?, other.line)));
        let (other, other_line) = other.unwrap_or((0, None));
        // Report the later line of the file.
        if part.line < other_line {
            let problem = MemoryProblem::Conflict { at, found: other, other: found, other_line: part.line };
            return (other_line, problem);
        }
        (part.line, MemoryProblem::Conflict { at, found, other, other_line })
    }
}
