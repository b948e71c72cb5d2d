//! The bits NS and Hyp of ETMv3 and PFT.

use crate::ids::{Privilege, SecurityState};

/// The bits NS and Hyp (IHI 0014Q, 7.3.5; IHI 0035B, 4.5.4), as they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SecurityBits {
    /// NS: set in Non-secure state.
    pub non_secure: bool,
    /// Hyp: set in Hyp mode, which exists in Non-secure state only.
    pub hypervisor: bool,
}

impl SecurityBits {
    /// The privilege that the bits stand for.
    #[must_use]
    pub const fn privilege(self) -> Privilege {
        match (self.hypervisor, self.non_secure) {
            (true, _) => Privilege::HYPERVISOR,
            (false, true) => Privilege::of(SecurityState::NonSecure),
            (false, false) => Privilege::of(SecurityState::Secure),
        }
    }
}
