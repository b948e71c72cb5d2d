//! Contents of a dump besides the trace: registers, and code.

use std::path::Path;

use tracewalk::ids::Address;
use tracewalk::protocol::mtb::order;
use tracewalk::protocol::mtb::{Config, Registers};

use super::{JoinedMemory, MemoryDump, MemoryPiece};
use crate::capture::error::{CaptureError, CaptureErrorKind};
use crate::capture::registers::{self as register_values, mtb_values};
use crate::origin::Origin;

/// VTOR, which holds the address of the vector table (ARMv6-M Architecture Reference Manual, DDI 0419E,
/// B3.2.5).
const VTOR: Address = Address::new(0xe000_ed08);

/// MASTER bits 29:10 are reserved and read as 0 (CoreSight MTB-M0+ TRM, DDI 0486B, 3.2.2; bit 30 is NSEN in Cortex-M33);
/// so are POSITION bits 1:0 and FLOW bit 2.
const MASTER_RESERVED: u32 = 0x3fff_fc00;
const POSITION_RESERVED: u32 = 0b11;
const FLOW_RESERVED: u32 = 0b100;

/// Each CoreSight component has 4 KiB of addresses.
const COMPONENT_BYTES: u64 = 4096;

impl MemoryDump {
    /// The registers of the Micro Trace Buffer and their address, if the dump identifies them unambiguously:
    /// at exactly one possible device address, the first four words have the registers' form and describe a
    /// trace buffer that the rest of the dump holds. If the dump holds no whole buffer, a part of one
    /// suffices.
    #[must_use]
    pub fn mtb_registers(&self) -> Option<(Address, Registers)> {
        /// With more candidates, the result would be ambiguous.
        const MOST_DEVICES: usize = 16;
        let devices = self.pieces.iter().filter_map(|piece| {
            let registers = registers(piece).filter(|registers| registers.base.is_some())?;
            Some((piece.address?, registers))
        });
        let devices = devices.take(MOST_DEVICES + 1).collect::<Vec<_>>();
        if devices.len() > MOST_DEVICES {
            return None;
        }
        let found = devices
            .into_iter()
            .filter_map(|(address, registers)| Some((self.holds(registers)?, address, registers)));
        let found = found.collect::<Vec<_>>();
        let most = found.iter().map(|(held, ..)| *held).max()?;
        let mut best = found.into_iter().filter(|(held, ..)| *held == most);
        let (_, address, registers) = best.next()?;
        best.next().is_none().then_some((address, registers))
    }

    /// Reads the registers of a Micro Trace Buffer from a register file: lines that name them, like
    /// `MTB_POSITION=0x1bc`, or memory as printed by a debugger in which only one device's words have the
    /// registers' form.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is neither of these.
    pub fn registers_of(file: &Path) -> Result<register_values::Registers, CaptureError> {
        let Some(Self { pieces, registers: mut found, .. }) = Self::open(file)? else {
            return register_values::Registers::read_mtb(file);
        };
        let mut devices = pieces.iter().filter_map(registers);
        let (Some(device), None) = (devices.next(), devices.next()) else {
            return if found.is_empty() { Err(none(file)) } else { Ok(found) };
        };
        for (name, value) in mtb_values(device) {
            if found.get(name).is_none() {
                found.set(name, value, Origin::file(file));
            }
        }
        Ok(found)
    }

    /// How much the dump holds of the buffer that the registers describe; `None` for nothing.
    fn holds(&self, registers: Registers) -> Option<Held> {
        let config = Config::from_registers(registers);
        let alone = (0..self.pieces.len()).map(|index| index..index + 1);
        let joined = alone.chain(self.in_blocks(config.size().bytes())).filter_map(|run| self.join(run));
        joined.filter_map(|joined| holds_buffer(&joined, &config)).max()
    }

    /// The address of the vector table, if the dump has the register VTOR.
    #[must_use]
    pub fn vector_table(&self) -> Option<Address> {
        let word = self.pieces.iter().find_map(|piece| piece.word(VTOR))?;
        // Bits 6:0 are reserved in every M profile architecture.
        (word & 0x7f == 0).then_some(Address::from(word))
    }
}

impl MemoryPiece {
    /// Whether the piece is in M profile's address range for flash and ROM, or for external memory, so that
    /// it may be code that does not change while it runs (ARMv6-M Architecture Reference Manual, DDI 0419E,
    /// B3.1).
    #[must_use]
    pub fn may_be_code(&self) -> bool {
        self.address
            .is_some_and(|address| matches!(address.get(), 0..=0x1fff_ffff | 0x6000_0000..=0x9fff_ffff))
    }
}

/// How much of a trace buffer the dump holds, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Held {
    /// The buffer's memory, to which nothing was written.
    Unwritten,
    Part,
    Whole,
}

/// The error of a debugger's log without an MTB's registers.
fn none(file: &Path) -> CaptureError {
    CaptureError { file: file.to_owned(), line: None, kind: CaptureErrorKind::NoMtbRegisters }
}

/// This piece interpreted as the registers. If it has only the first two, the others are unknown.
fn registers(piece: &MemoryPiece) -> Option<Registers> {
    let start = piece.address?;
    let is_device = matches!(start.get(), 0x4000_0000..=0x5fff_ffff | 0xa000_0000..=0xffff_ffff);
    if !is_device || start.get() % COMPONENT_BYTES != 0 || piece.bytes.len() as u64 > COMPONENT_BYTES {
        return None;
    }
    let word = |offset| piece.word(start.checked_add(offset)?);
    let (position, master, flow, base) = (word(0)?, word(4)?, word(8), word(12));
    let reserved =
        position & POSITION_RESERVED | master & MASTER_RESERVED | flow.unwrap_or(0) & FLOW_RESERVED;
    // If BASE is not implemented, it reads as 0, and only the other registers' form would identify the
    // device.
    let base = base.filter(|base| *base != 0);
    (reserved == 0 && base.unwrap_or(0) % 8 == 0).then_some(Registers { position, master, flow, base })
}

/// How much this memory holds of the trace that the registers describe.
fn holds_buffer(memory: &JoinedMemory, config: &Config) -> Option<Held> {
    let layout = order::by_registers(memory.dump(), config).ok()?;
    if !layout.pieces.is_empty() {
        return Some(if layout.missing.is_empty() { Held::Whole } else { Held::Part });
    }
    // Nothing was written to the buffer. If all bits of MASTER are 0, the registers describe no buffer.
    let full = config.with_wrapped(true);
    let is_held = order::by_registers(memory.dump(), &full).is_ok_and(|layout| layout.missing.is_empty());
    (is_held && config.to_registers().master != 0).then_some(Held::Unwritten)
}
