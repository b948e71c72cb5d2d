//! The choices that ETMv3 leaves to the implementation or to the user.

use tracewalk::protocol::SecurityBits;

use crate::trace::Pauses;

/// The choices that the specification leaves to the implementation or to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many bytes lie between two periodic synchronisations; `None` for only the one at the start.
    pub synchronise_every: Option<usize>,
    /// How many instructions lie between two timestamps; `None` for no timestamps.
    pub timestamp_every: Option<u64>,
    /// Which instructions are traced and cancelled, rather than not traced at all, if an interrupt comes
    /// before them.
    pub cancel: Cancel,
    /// Whether an M-profile exception that replaces another one's return cancels the return, as the
    /// specification has it, or follows it.
    pub tail_chaining_cancels: bool,
    /// Whether exceptions are named by the deprecated code in the address, if the encoding has one.
    pub deprecated_exceptions: bool,
    /// The security state, which does not change.
    pub security: SecurityBits,
    /// When tracing is switched off.
    pub pauses: Option<Pauses>,
    /// How many instructions lie between two triggers, each with an ignore packet; `None` for none.
    pub trigger_every: Option<u64>,
}

/// Which instructions are traced and cancelled when an interrupt comes before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// None.
    Never,
    /// Instructions that load or store several registers; processors abandon them for an interrupt and
    /// restart them later.
    Multiple,
    /// All.
    Always,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            synchronise_every: Some(1024),
            timestamp_every: None,
            cancel: Cancel::Multiple,
            tail_chaining_cancels: true,
            deprecated_exceptions: false,
            security: SecurityBits::default(),
            pauses: None,
            trigger_every: None,
        }
    }
}
