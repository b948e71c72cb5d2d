//! What compressed fields are restored from. Decoder and encoder hold the same.

use crate::cursor::Cursor;
use crate::ids::{Location, SecurityState};
use crate::protocol::branch_address::{self, AddressEncoding, Alignment, BranchAddress, ReadError};
use crate::protocol::timestamp::RawTimestamp;

/// The state that packets leave behind for the packets after them.
///
/// This is what was sent, not where execution is: flow has its own address and instruction set. A packet changes the
/// state as a whole, once it is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Compression {
    /// The last address sent, and the instruction set there. `None` before the first whole address.
    pub(super) base: Option<Location>,
    /// AltISA: whether Thumb means ThumbEE.
    pub(super) alternative_isa: bool,
    /// NS and Hyp.
    pub(super) security: SecurityState,
    /// The last timestamp. Zero before the first one: a trace unit starts from there.
    pub(super) timestamp: RawTimestamp,
}

impl Compression {
    /// Reads an address field.
    pub(super) fn read_address(self, cursor: &mut Cursor<'_>) -> Result<BranchAddress, ReadError> {
        let (address, alignment) = branch_address::base(self.base);
        branch_address::read(cursor, AddressEncoding::Alternative, address, alignment)
    }

    /// Where the field points; `None` where that takes a base and there is none.
    pub(super) fn locate(self, field: BranchAddress) -> Option<Location> {
        let alignment = field.alignment.or_else(|| self.base.and_then(|base| Alignment::of(base.isa)))?;
        Some(Location::new(field.address, alignment.isa(self.alternative_isa)))
    }

    /// Forgets what damaged trace may have changed unnoticed. Timestamps keep their high bits, which hardly ever change.
    pub(super) fn forget_base(&mut self) {
        self.base = None;
    }
}
