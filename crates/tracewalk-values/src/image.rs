//! What is known of memory without the path: constants, and where memory is.

use std::ops::Range;

use crate::bits::Bits;

/// What is known of memory without the path.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// Bytes that nothing changes, by address: code, literals, segments that cannot be written, initial values where they are loaded.
    constants: Vec<(u64, Vec<u8>)>,
    /// Code in memory that can be written, with its literals.
    code: Vec<(u64, Vec<u8>)>,
    /// Bytes of memory at the start of the path.
    initial: Vec<(u64, Vec<Byte>)>,
    /// Addresses that are memory: what was stored there is loaded later.
    memory: Vec<Range<u64>>,
    /// Addresses whose content is known: Thumb instructions, or anything else.
    stretches: Vec<(Range<u64>, bool)>,
}

/// A byte whose bits may be known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Byte {
    pub(crate) known: u8,
    /// The known bits that are set.
    pub(crate) ones: u8,
}

impl Byte {
    /// The lowest byte of a value.
    pub(crate) fn of(bits: Bits) -> Self {
        let low = |bits: u64| u8::try_from(bits & 0xff).unwrap_or(0);
        Self { known: low(bits.known), ones: low(bits.ones) }
    }

    /// As a value with zeros above.
    pub(crate) fn bits(self) -> Bits {
        Bits { known: !0xff | u64::from(self.known), ones: self.ones.into() }
    }
}

/// The contents of an address without the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// A byte that nothing changes.
    Constant(u8),
    /// Memory, with the byte that it has at the start.
    Memory(Byte),
    /// Maybe no memory: a device's registers.
    Other,
}

impl Image {
    /// An empty image: no byte is known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes that nothing changes while the path runs.
    pub fn add_constants(&mut self, address: u64, bytes: &[u8]) {
        insert(&mut self.constants, address, bytes);
    }

    /// Adds code in memory that can be written: its literals do not change, other data there may.
    pub fn add_code(&mut self, address: u64, bytes: &[u8]) {
        insert(&mut self.code, address, bytes);
    }

    /// The byte at an address, if nothing changes it.
    #[must_use]
    pub fn constant(&self, address: u64) -> Option<u8> {
        match self.at(address) {
            Contents::Constant(byte) => Some(byte),
            Contents::Memory(_) | Contents::Other => None,
        }
    }

    /// The byte of code at an address.
    pub(crate) fn code_byte(&self, address: u64) -> Option<u8> {
        byte(&self.code, address)
    }

    /// Adds bytes that memory has at the start of the path.
    pub fn add_initial(&mut self, address: u64, bytes: &[u8]) {
        let bytes = bytes.iter().map(|ones| Byte { known: 0xff, ones: *ones }).collect::<Vec<_>>();
        insert(&mut self.initial, address, &bytes);
    }

    /// Adds addresses that are memory, where nothing else stores while the path runs.
    pub fn add_memory(&mut self, range: Range<u64>) {
        self.memory.push(range);
    }

    /// The bytes of memory at the start.
    pub(crate) fn initial(&self) -> impl Iterator<Item = (u64, Byte)> {
        self.initial.iter().flat_map(|(start, bytes)| {
            bytes.iter().enumerate().map(move |(index, byte)| (start + index as u64, *byte))
        })
    }

    /// Replaces the bytes of memory at the start, by address in ascending order.
    pub(crate) fn replace_initial(&mut self, bytes: Vec<(u64, Byte)>) {
        self.initial.clear();
        for (address, byte) in bytes {
            match self.initial.last_mut() {
                Some((start, piece)) if *start + piece.len() as u64 == address => piece.push(byte),
                _ => self.initial.push((address, vec![byte])),
            }
        }
    }

    /// Whether an address is memory that can be written.
    #[must_use]
    pub fn is_memory(&self, address: u64) -> bool {
        matches!(self.at(address), Contents::Memory(_))
    }

    /// Whether nothing changes the byte at an address.
    #[must_use]
    pub fn is_constant(&self, address: u64) -> bool {
        matches!(self.at(address), Contents::Constant(_))
    }

    /// The contents of an address.
    pub(crate) fn at(&self, address: u64) -> Contents {
        if let Some(byte) = byte(&self.constants, address) {
            return Contents::Constant(byte);
        }
        if self.memory.iter().any(|range| range.contains(&address)) {
            return Contents::Memory(byte(&self.initial, address).unwrap_or_default());
        }
        Contents::Other
    }

    /// Adds a stretch of addresses, after those that were added before, that holds Thumb instructions only, or none at all.
    pub fn add_stretch(&mut self, range: Range<u64>, is_thumb: bool) {
        self.stretches.push((range, is_thumb));
    }

    /// The first two halfwords of what may be a Thumb instruction: of each instruction where code and data are known apart, else of each
    /// halfword.
    pub(crate) fn instructions(&self) -> impl Iterator<Item = (u16, u16)> {
        let pieces = self.constants.iter().chain(&self.code);
        pieces.flat_map(move |(start, bytes)| {
            let mut offset = 0_usize;
            core::iter::from_fn(move || {
                loop {
                    let [a, b, c, d] = *bytes.get(offset..)?.first_chunk()?;
                    let pair = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
                    let at = start.saturating_add(offset as u64);
                    let after = self.stretches.partition_point(|(range, _)| range.start <= at);
                    let stretch = self.stretches.get(..after).and_then(<[_]>::last);
                    let stretch = stretch.filter(|(range, _)| range.contains(&at));
                    offset += match stretch {
                        Some((_, true)) if pair.0 >> 11 >= 0b11101 => 4,
                        _ => 2,
                    };
                    if stretch.is_none_or(|(_, is_thumb)| *is_thumb) {
                        return Some(pair);
                    }
                }
            })
        })
    }

    /// The number of instructions from an address on that an IT block before it could make conditional.
    pub(crate) fn instructions_maybe_in_it_block(&self, address: u64) -> u8 {
        // A block has four instructions of at most four bytes.
        let may_begin = (1..=7).any(|halfwords| {
            let at = address.wrapping_sub(2 * halfwords);
            let byte = |address| byte(&self.constants, address).or_else(|| byte(&self.code, address));
            let (Some(low), Some(high)) = (byte(at), byte(at + 1)) else { return false };
            high == 0xbf && low & 0xf != 0
        });
        if may_begin { 4 } else { 0 }
    }
}

fn insert<T: Clone>(pieces: &mut Vec<(u64, Vec<T>)>, address: u64, bytes: &[T]) {
    if !bytes.is_empty() {
        let at = pieces.partition_point(|(start, _)| *start <= address);
        pieces.insert(at, (address, bytes.to_vec()));
    }
}

fn byte<T: Copy>(pieces: &[(u64, Vec<T>)], address: u64) -> Option<T> {
    let at = pieces.partition_point(|(start, _)| *start <= address);
    // Pieces may overlap, but seldom do.
    pieces[..at]
        .iter()
        .rev()
        .take(4)
        .find_map(|(start, bytes)| bytes.get(usize::try_from(address - start).ok()?).copied())
}
