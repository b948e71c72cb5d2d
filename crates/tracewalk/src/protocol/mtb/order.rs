//! The places of packets in a dump of memory, oldest first.
//!
//! ```text
//! POSITION is the place of the next packet; in a buffer that has wrapped, the oldest packet is there.
//!
//!   not wrapped   | p0 p1 p2 ·  ·  ·  |      wrapped   | p4 p5 p6 p1 p2 p3 |
//!                            ↑ POINTER                            ↑ POINTER
//! ```
//!
//! [`by_registers`] reads this from the registers, wherever in the dump the buffer lies. Without registers,
//! packets must be inferred, as `tracewalk-session` does.
//!
//! ```
//! use tracewalk::protocol::mtb::{Config, Registers, order};
//!
//! // A buffer of 32 bytes that has wrapped: its oldest packet is at offset 16.
//! let registers = Registers { position: 0x14, master: 0x8000_0001, flow: None, base: None };
//! let dump = order::Dump::new(&[0; 32], None);
//! let layout = order::by_registers(dump, &Config::from_registers(registers))?;
//! let pieces = layout.pieces.iter().map(|piece| piece.bytes.clone()).collect::<Vec<_>>();
//! assert_eq!(pieces, [16..32, 0..16]);
//! # Ok::<(), order::LayoutError>(())
//! ```

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use super::config::Config;
use super::packet::PACKET_BYTES;
use crate::ids::Address;
use crate::span::StreamOffset;

/// A copy of memory that holds the buffer.
#[derive(Clone, Copy, Debug)]
pub struct Dump<'a> {
    /// The bytes.
    pub data: &'a [u8],
    /// The address of the first byte, if it is known.
    ///
    /// Without the address, a dump no larger than the buffer is assumed to start with the buffer, and a
    /// larger one with the MTB's memory.
    pub address: Option<Address>,
    /// Stretches of `data` that were not saved, in order: their bytes are meaningless.
    pub holes: &'a [Range<usize>],
}

/// The places of packets in a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The packets' bytes, in the order of writing. Each piece starts with a packet.
    pub pieces: Vec<Piece>,
    /// Bytes of written packets that the dump does not hold, oldest first: by their addresses, or by their
    /// places in the MTB's memory if no address was given.
    pub missing: Vec<Range<u64>>,
    /// Whether the newest packet is missing.
    pub lost_newest: bool,
}

/// A stretch of a dump that holds packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The bytes of the dump.
    pub bytes: Range<usize>,
    /// Whether the first packet was written directly after the last one of the previous piece. Never set in
    /// the first piece.
    pub continues: bool,
}

/// Why a dump does not match the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutError {
    /// The dump contains none of the written packets.
    OutsideDump {
        /// The start of the buffer by POSITION: an address, or an offset in the MTB's memory if the address
        /// of that memory is unknown.
        buffer: u64,
        /// The start of the dump, in the same terms.
        dump: u64,
        /// The length of the dump.
        dump_bytes: usize,
    },
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutsideDump { buffer, dump, dump_bytes } => write!(
                f,
                "found {dump_bytes} bytes from 0x{dump:08x}, expected the trace buffer, which POSITION places at 0x{buffer:08x}"
            ),
        }
    }
}

impl core::error::Error for LayoutError {}

impl<'a> Dump<'a> {
    /// A dump that holds all of its bytes.
    #[must_use]
    pub const fn new(data: &'a [u8], address: Option<Address>) -> Self {
        Self { data, address, holes: &[] }
    }
}

impl Layout {
    /// The number of packet bytes that are missing.
    #[must_use]
    pub fn missing_bytes(&self) -> u64 {
        self.missing.iter().map(|missing| missing.end - missing.start).sum()
    }

    /// The place in the dump of a byte of the packets, counted in the order of writing.
    #[must_use]
    pub fn place_in_dump(&self, offset: StreamOffset) -> Option<usize> {
        let mut before = 0_u64;
        for Piece { bytes, .. } in &self.pieces {
            let length = bytes.len() as u64;
            if let Some(inside) = offset.0.checked_sub(before).filter(|&inside| inside < length) {
                return bytes.start.checked_add(usize::try_from(inside).ok()?);
            }
            before += length;
        }
        None
    }
}

/// Finds the packets by the registers.
///
/// POSITION holds the low bits of an address on the bus. The number of bits, the MTB's parameter AWIDTH, is
/// in no register, but matters only if the dump holds more than the buffer and BASE is not a multiple of the
/// memory's size. Unless [`Config::pointer_bits`] states the number, it is assumed to be as small as pointer,
/// buffer and dump allow.
///
/// # Errors
///
/// If the dump contains none of the written packets.
pub fn by_registers(dump: Dump<'_>, config: &Config) -> Result<Layout, LayoutError> {
    let mut best = None::<(Memory, Layout)>;
    for memory in Memory::candidates(dump, config) {
        let Memory { size, offset, .. } = memory;
        let written = if config.wrapped { [offset..size, 0..offset] } else { [0..offset, 0..0] };
        let layout = memory.layout(&written, dump.holes);
        if best.as_ref().is_none_or(|(_, best)| layout.missing_bytes() < best.missing_bytes()) {
            best = Some((memory, layout));
        }
    }
    // There is always a candidate: the widest pointer.
    let Some((memory, layout)) = best else { return Ok(Layout::default()) };
    if layout.pieces.is_empty() && !layout.missing.is_empty() {
        let (buffer, dump_bytes) = (memory.address(0), dump.data.len());
        return Err(LayoutError::OutsideDump { buffer, dump: memory.dump, dump_bytes });
    }
    Ok(layout)
}

/// The relation between the pointer's values, addresses and places in the dump.
#[derive(Clone, Copy, Debug)]
struct Memory {
    /// The start of the MTB's memory.
    base: u64,
    /// The start of the dump, in the same terms.
    dump: u64,
    /// The length of the dump.
    dump_bytes: u64,
    /// The start of the buffer, in the pointer's terms.
    buffer_start: u64,
    /// The size of the buffer: the size in MASK, or all of the memory.
    size: u64,
    /// The offset of the pointer from the start of the buffer; less than `size`.
    offset: u64,
    /// The number of bytes after which the pointer repeats: two to the power of AWIDTH.
    modulus: u64,
}

impl Memory {
    /// The candidates, most likely first.
    fn candidates(dump: Dump<'_>, config: &Config) -> impl Iterator<Item = Self> {
        let dump_end = dump.address.map(|address| address.get() + dump.data.len() as u64);
        let base = config.base.map(Address::get);
        // The memory reaches at least as far as the dump, and the pointer at least through the buffer.
        let after_base = match (dump_end, base) {
            (Some(end), Some(base)) => end.saturating_sub(base),
            _ => dump.data.len() as u64,
        };
        let reached = (u64::from(config.pointer) + 1).max(config.size.bytes()).max(after_base);
        let least = reached.next_power_of_two().trailing_zeros();
        let widths = match config.pointer_bits {
            Some(bits) => u32::from(bits)..=u32::from(bits),
            None => least..=least.max(32),
        };
        // A dump with an address may extend beyond the MTB's memory; the pointer then repeats within the
        // dump.
        let within =
            (u64::from(config.pointer) + 1).max(config.size.bytes()).next_power_of_two().trailing_zeros();
        let is_part = config.pointer_bits.is_none() && dump.address.is_some() && base.is_some();
        let narrower = (within..least).filter(move |_| is_part);
        widths.chain(narrower).map(move |bits| Self::new(dump, config, 1 << bits))
    }

    fn new(dump: Dump<'_>, config: &Config, modulus: u64) -> Self {
        let size = config.size.bytes().min(modulus);
        let pointer = u64::from(config.pointer) % modulus;
        let (offset, buffer_start) = (pointer % size, pointer - pointer % size);
        let dump_bytes = dump.data.len() as u64;
        let base = config.base.map(Address::get);
        let (base, dump) = match dump.address.map(Address::get) {
            Some(dump) => (base.unwrap_or(dump), dump),
            None if dump_bytes <= config.size.bytes() => {
                let buffer =
                    base.map_or(buffer_start, |base| base + buffer_start.wrapping_sub(base) % modulus);
                (buffer, buffer)
            }
            None => (base.unwrap_or(0), base.unwrap_or(0)),
        };
        Self { base, dump, dump_bytes, buffer_start, size, offset, modulus }
    }

    /// The address of the byte `offset` bytes after the start of the buffer: the first address, from the base
    /// on, with the pointer's low bits.
    fn address(&self, offset: u64) -> u64 {
        self.base + (self.buffer_start + offset).wrapping_sub(self.base) % self.modulus
    }

    /// The places in the dump of these parts of the buffer.
    fn layout(&self, written: &[Range<u64>], holes: &[Range<usize>]) -> Layout {
        const PACKET: u64 = PACKET_BYTES as u64;
        let mut layout = Layout::default();
        // Whether the last piece reaches the end of its part.
        let mut unbroken = false;
        for part in written.iter().flat_map(|part| self.contiguous(part.clone())) {
            if part.is_empty() {
                continue;
            }
            let start = self.address(part.start);
            let end = start + (part.end - part.start);
            let mut known = start;
            // The address that the packet after the last piece must have.
            let mut next = unbroken.then_some(start);
            for held in self.held(start..end, holes) {
                if known < held.start {
                    layout.missing.push(known..held.start);
                }
                known = held.end;
                // Half a packet is of no use.
                let first = start + (held.start - start).next_multiple_of(PACKET);
                let bytes = held.end.saturating_sub(first) / PACKET * PACKET;
                let Some(bytes_in_dump) = self.range_in_dump(first, bytes) else { continue };
                layout.pieces.push(Piece { bytes: bytes_in_dump, continues: next == Some(first) });
                next = Some(first + bytes);
            }
            if known < end {
                layout.missing.push(known..end);
            }
            unbroken = next == Some(end);
            layout.lost_newest = !unbroken;
        }
        layout
    }

    /// The part of these addresses that the dump contains.
    fn held(&self, wanted: Range<u64>, holes: &[Range<usize>]) -> impl Iterator<Item = Range<u64>> {
        let dump_end = self.dump + self.dump_bytes;
        let hole = |hole: &Range<usize>| self.dump + hole.start as u64..self.dump + hole.end as u64;
        let ends = holes.iter().map(hole).chain(core::iter::once(dump_end..dump_end));
        let mut from = self.dump;
        ends.filter_map(move |hole| {
            let held = from.max(wanted.start)..hole.start.min(wanted.end);
            from = from.max(hole.end);
            (held.start < held.end).then_some(held)
        })
    }

    /// The place in the dump of these bytes; `None` if there are none.
    fn range_in_dump(&self, from: u64, bytes: u64) -> Option<Range<usize>> {
        let start = usize::try_from(from.checked_sub(self.dump)?).ok()?;
        let end = start.checked_add(usize::try_from(bytes).ok()?)?;
        (start < end).then_some(start..end)
    }

    /// Splits a part of the buffer where its addresses wrap to the base.
    fn contiguous(&self, part: Range<u64>) -> [Range<u64>; 2] {
        let seam = self.base.wrapping_sub(self.buffer_start) % self.modulus;
        let seam = seam.clamp(part.start, part.end.max(part.start));
        [part.start..seam, seam..part.end]
    }
}
