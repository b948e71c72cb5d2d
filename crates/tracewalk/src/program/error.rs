//! Why code cannot be added to a program.

use core::fmt;

use super::scope::MOST_VIEWS;
use crate::ids::Address;

/// Why a region cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddRegionError {
    /// The region ends after the last 64-bit address.
    PastEndOfMemory {
        /// The start of the region.
        start: Address,
        /// The length of the region.
        bytes: usize,
    },
    /// Memory in the region is already known and holds other bytes.
    Conflict {
        /// The first address where the two differ.
        at: Address,
    },
    /// Memory would look different in more contexts than a program can distinguish.
    TooManyViews,
}

impl fmt::Display for AddRegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PastEndOfMemory { start, bytes } => {
                write!(f, "{bytes} bytes at {start} extend past the end of the 64-bit address space")
            }
            Self::Conflict { at } => write!(f, "the byte at {at} already has another value"),
            Self::TooManyViews => {
                write!(
                    f,
                    "the contents of memory differ in more than {MOST_VIEWS} combinations of context ID and VMID"
                )
            }
        }
    }
}

impl core::error::Error for AddRegionError {}
