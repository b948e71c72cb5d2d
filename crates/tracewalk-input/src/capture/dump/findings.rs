//! What a dump says beside the trace: registers, and code.

use tracewalk::ids::Address;
use tracewalk::protocol::mtb::order::{self, Dump};
use tracewalk::protocol::mtb::{Config, Registers};

use super::{MemoryDump, MemoryPiece};

/// VTOR, the register that says where the table of vectors is (ARMv6-M Architecture Reference Manual, DDI 0419E, B3.2.5).
const VTOR: Address = Address::new(0xe000_ed08);

/// MASTER bits 29:10 are reserved and read as 0 (CoreSight MTB-M0+ TRM, DDI 0486B, 3.2.2; bit 30 is NSEN in Cortex-M33);
/// so are POSITION bits 1:0 and FLOW bit 2.
const MASTER_RESERVED: u32 = 0x3fff_fc00;
const POSITION_RESERVED: u32 = 0b11;
const FLOW_RESERVED: u32 = 0b100;

/// CoreSight components have 4 KiB of addresses each.
const COMPONENT_BYTES: u64 = 4096;

impl MemoryDump {
    /// The registers of the Micro Trace Buffer and where they were, if they are in the dump beyond doubt: there is just
    /// one place where a device can be whose first four words have the registers' form and describe a trace buffer that
    /// the rest of the dump holds.
    #[must_use]
    pub fn mtb_registers(&self) -> Option<(Address, Registers)> {
        let mut found = self.pieces.iter().enumerate().filter_map(|(index, piece)| {
            let registers = registers(piece)?;
            let mut others = self.pieces.iter().enumerate().filter(|(other, _)| *other != index);
            others.any(|(_, other)| holds_buffer(other, registers)).then_some((piece.address?, registers))
        });
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    /// Where the table of vectors is, if the dump holds the register that says it.
    #[must_use]
    pub fn vector_table(&self) -> Option<Address> {
        let word = self.pieces.iter().find_map(|piece| piece.word(VTOR))?;
        // Bits 6:0 are reserved in every M profile architecture.
        (word & 0x7f == 0).then_some(Address::from(word))
    }
}

impl MemoryPiece {
    /// Whether it is where M profile has flash and ROM, and external memory, so that it may be code that does not change
    /// while it runs (ARMv6-M Architecture Reference Manual, DDI 0419E, B3.1).
    #[must_use]
    pub fn may_be_code(&self) -> bool {
        self.address
            .is_some_and(|address| matches!(address.get(), 0..=0x1fff_ffff | 0x6000_0000..=0x9fff_ffff))
    }
}

/// What this piece would be as the registers.
fn registers(piece: &MemoryPiece) -> Option<Registers> {
    let start = piece.address?;
    let is_device = matches!(start.get(), 0x4000_0000..=0x5fff_ffff | 0xa000_0000..=0xffff_ffff);
    if !is_device || start.get() % COMPONENT_BYTES != 0 || piece.bytes.len() as u64 > COMPONENT_BYTES {
        return None;
    }
    let word = |offset| piece.word(start.checked_add(offset)?);
    let (position, master, flow, base) = (word(0)?, word(4)?, word(8)?, word(12)?);
    let reserved = position & POSITION_RESERVED | master & MASTER_RESERVED | flow & FLOW_RESERVED;
    // Where BASE is not implemented it reads as 0, and nothing but the other registers would speak for them.
    (reserved == 0 && base != 0 && base % 8 == 0).then_some(Registers {
        position,
        master,
        flow: Some(flow),
        base: Some(base),
    })
}

/// Whether all of the trace that the registers describe is in this piece, and there is some.
fn holds_buffer(piece: &MemoryPiece, registers: Registers) -> bool {
    let dump = Dump { data: &piece.bytes, address: piece.address };
    order::by_registers(dump, &Config::from_registers(registers))
        .is_ok_and(|layout| layout.missing == 0 && !layout.pieces.is_empty())
}
