//! What both ends of the wire remember from packet to packet, so that the next one can be short.

use crate::ids::{Address, Location, SecurityState};
use crate::protocol::branch_address::{self, Alignment};
use crate::protocol::timestamp::RawTimestamp;

use super::exception::BranchException;
use super::packet::{Branch, ISync};

/// The values that fields missing from a packet keep (table 7.5 of IHI 0014Q).
///
/// The instruction set here is that of the last address that was sent, which a direct branch changes for the flow but
/// not for compression (table 7.15).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Compression {
    /// The last address sent, in a branch or I-sync packet, and its instruction set; `None` before the first one that
    /// was sent whole.
    pub(super) base: Option<Location>,
    /// AltISA, which a five-byte Thumb address without exception information keeps.
    pub(super) alternative_isa: bool,
    /// NS and Hyp.
    pub(super) security: SecurityState,
    /// The last timestamp's bits.
    pub(super) timestamp: RawTimestamp,
    /// The last data address; compressed apart from instruction addresses.
    pub(super) data_address: Address,
}

impl Compression {
    /// The address and alignment that a branch packet is compressed against. Before the first address their values do
    /// not matter: they are only asked for how long a field is.
    pub(super) fn branch_base(&self) -> (Address, Alignment) {
        branch_address::base(self.base)
    }

    /// What a branch packet leaves behind.
    pub(super) fn after_branch(&mut self, branch: &Branch) {
        if let Some(BranchException::Information(information)) = branch.exception {
            self.alternative_isa = information.alternative_isa;
            self.security = information.security;
        }
        if branch.target.is_some() {
            self.base = branch.target;
        }
    }

    /// What an I-sync packet leaves behind.
    pub(super) fn after_i_sync(&mut self, i_sync: &ISync) {
        self.security = i_sync.security;
        if let Some(location) = i_sync.location {
            self.base = Some(location);
            self.alternative_isa = location.isa == crate::ids::Isa::T32EE;
        }
    }

    /// Packets were lost: what they sent is unknown. The last timestamp's high bits are still the best guess for the
    /// next one's, until the unit sends a whole one.
    pub(super) fn forget_addresses(&mut self) {
        self.base = None;
        self.data_address = Address::new(0);
    }
}
