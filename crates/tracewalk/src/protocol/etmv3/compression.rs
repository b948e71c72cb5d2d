//! The compression state after ETMv3's packets.

use crate::ids::Isa;
use crate::protocol::compression::Compression;

use super::exception::BranchException;
use super::packet::{Branch, ISync};

/// Updates the state after a branch packet.
pub(super) fn after_branch(compression: &mut Compression, branch: &Branch) {
    if let Some(BranchException::Information(information)) = branch.exception {
        compression.alternative_isa = information.alternative_isa;
        compression.security = information.security;
    }
    if branch.target.is_some() {
        compression.base = branch.target;
    }
}

/// Updates the state after an I-sync packet.
pub(super) fn after_i_sync(compression: &mut Compression, i_sync: &ISync) {
    compression.security = i_sync.security;
    if let Some(location) = i_sync.location {
        compression.base = Some(location);
        compression.alternative_isa = location.isa == Isa::T32EE;
    }
}
