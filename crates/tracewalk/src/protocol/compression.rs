//! The state that compressed fields of ETMv3 and PFT depend on, in decoder and encoder alike.

use crate::cursor::Cursor;
use crate::ids::Location;
use crate::protocol::SecurityBits;

use super::branch_address::{self, AddressEncoding, Alignment, BranchAddress, ReadError};
use super::timestamp::RawTimestamp;

/// The values that fields keep when a packet omits them (IHI 0014Q, table 7.5; IHI 0035B, 4.5.4).
///
/// The instruction set here is that of the last address that was sent, which a direct branch changes for flow
/// but not for compression (IHI 0014Q, table 7.15). A complete packet changes all values at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Compression {
    /// The last address sent, and the instruction set there. `None` before the first whole address.
    pub(super) base: Option<Location>,
    /// AltISA: whether Thumb means ThumbEE.
    pub(super) alternative_isa: bool,
    /// NS and Hyp.
    pub(super) security: SecurityBits,
    /// The last timestamp. Zero before the first one: a trace unit starts from there.
    pub(super) timestamp: RawTimestamp,
}

/// The part that atoms and branch packets depend on and change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BranchCompression {
    base: Option<Location>,
    alternative_isa: bool,
    security: SecurityBits,
}

impl Compression {
    /// Reads an address field.
    pub(super) fn read_address(
        self,
        cursor: &mut Cursor<'_>,
        encoding: AddressEncoding,
    ) -> Result<BranchAddress, ReadError> {
        let (address, alignment) = branch_address::base(self.base);
        branch_address::read(cursor, encoding, address, alignment)
    }

    /// The location that the field stands for; `None` if that depends on a base and there is none.
    pub(super) fn locate(self, field: BranchAddress) -> Option<Location> {
        let alignment = field.alignment.or_else(|| self.base.and_then(|base| Alignment::of(base.isa)))?;
        Some(Location::new(field.address, alignment.isa(self.alternative_isa)))
    }

    /// Forgets the base after lost packets, whose values are unknown. The last timestamp stays: its high bits
    /// are the best guess until the unit sends a whole timestamp.
    pub(super) const fn forget_base(&mut self) {
        self.base = None;
    }

    /// The part that atoms and branch packets depend on.
    pub(super) const fn branches(self) -> BranchCompression {
        let Self { base, alternative_isa, security, timestamp: _ } = self;
        BranchCompression { base, alternative_isa, security }
    }

    /// Restores the part that atoms and branch packets depend on.
    pub(super) const fn resume_branches(&mut self, state: BranchCompression) {
        let BranchCompression { base, alternative_isa, security } = state;
        *self = Self { base, alternative_isa, security, timestamp: self.timestamp };
    }
}
