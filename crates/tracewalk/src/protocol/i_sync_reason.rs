//! The reason for an I-sync: the same two bits in ETMv3 and PFT.

use crate::directive::BeginReason;

/// Why an I-sync was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ISyncReason {
    /// Periodically.
    Periodic,
    /// Tracing was enabled.
    Enabled,
    /// Tracing restarted after an overflow.
    Overflow,
    /// The processor left Debug state.
    DebugExit,
}

impl ISyncReason {
    /// From the two reason bits.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::Periodic,
            0b01 => Self::Enabled,
            0b10 => Self::Overflow,
            _ => Self::DebugExit,
        }
    }

    /// The two reason bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::Periodic => 0b00,
            Self::Enabled => 0b01,
            Self::Overflow => 0b10,
            Self::DebugExit => 0b11,
        }
    }

    /// Why tracing begins with this I-sync; `None` if it only confirms a position that is known.
    pub(super) const fn begins(self, position_known: bool) -> Option<BeginReason> {
        match self {
            Self::Periodic if position_known => None,
            Self::Periodic => Some(BeginReason::Synchronised),
            Self::Enabled => Some(BeginReason::Enabled),
            Self::Overflow => Some(BeginReason::Overflow),
            Self::DebugExit => Some(BeginReason::DebugExit),
        }
    }
}
