//! Numbers and names of the mapping.

use std::io::Read as _;

use flate2::read::ZlibDecoder;

use super::{Fault, FaultKind};

/// Reads a part of a file from its start to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    /// The offset of the rest in the file.
    at: u64,
}

/// The most bytes of names in one piece.
const LONGEST_NAMES: u64 = 64 << 20;

impl<'a> Cursor<'a> {
    pub(super) const fn new(rest: &'a [u8], at: u64) -> Self {
        Self { rest, at }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// A fault here.
    pub(super) const fn fault(&self, kind: FaultKind) -> Fault {
        Fault { at: self.at, kind }
    }

    /// Whether nothing but zeros follows, which are padding.
    pub(super) fn is_padding(&self) -> bool {
        self.rest.iter().all(|byte| *byte == 0)
    }

    pub(super) fn take(&mut self, bytes: u64) -> Result<Self, Fault> {
        let split = usize::try_from(bytes).ok().and_then(|bytes| self.rest.split_at_checked(bytes));
        let (taken, rest) = split.ok_or(self.fault(FaultKind::Truncated))?;
        let taken = Self { rest: taken, at: self.at };
        self.rest = rest;
        self.at += bytes;
        Ok(taken)
    }

    pub(super) const fn bytes(&self) -> &'a [u8] {
        self.rest
    }

    /// A little-endian number of up to eight bytes.
    pub(super) fn fixed(&mut self, bytes: u64) -> Result<u64, Fault> {
        let taken = self.take(bytes)?.rest;
        Ok(taken.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    pub(super) fn uleb(&mut self) -> Result<u64, Fault> {
        let start = *self;
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let byte = self.fixed(1)?;
            let bits = byte & 0b0111_1111;
            if shift > 63 || bits << shift >> shift != bits {
                return Err(start.fault(FaultKind::TooLarge(u64::MAX)));
            }
            number |= bits << shift;
            if byte == bits {
                return Ok(number);
            }
            shift += 7;
        }
    }

    /// A number that fits in 32 bits.
    pub(super) fn small(&mut self) -> Result<u32, Fault> {
        let start = *self;
        let number = self.uleb()?;
        u32::try_from(number).map_err(|_| start.fault(FaultKind::TooLarge(number)))
    }

    /// The padding up to a multiple of eight bytes, from the `start` of the section on.
    pub(super) fn align(&mut self, start: &Self) {
        let padding = (self.at - start.at).next_multiple_of(8) - (self.at - start.at);
        // The last record may end without padding.
        *self = match self.take(padding) {
            Ok(_) => *self,
            Err(_) => Self { rest: &[], at: self.at },
        };
    }

    /// Bytes that may be compressed.
    pub(super) fn packed(&mut self) -> Result<Vec<u8>, Fault> {
        let start = *self;
        let (bytes, compressed) = (self.uleb()?, self.uleb()?);
        if compressed == 0 {
            return Ok(self.take(bytes)?.rest.to_vec());
        }
        if bytes > LONGEST_NAMES {
            return Err(start.fault(FaultKind::TooLarge(bytes)));
        }
        let mut unpacked = Vec::new();
        let mut decoder = ZlibDecoder::new(self.take(compressed)?.rest).take(bytes + 1);
        let read = decoder.read_to_end(&mut unpacked);
        if read.is_err() || unpacked.len() as u64 != bytes {
            return Err(start.fault(FaultKind::Compressed));
        }
        Ok(unpacked)
    }
}
