//! The trace protocols: bytes → packets (what the trace unit said) → directives (what it means).
//!
//! Each protocol is a folder with the same files: `config` (registers → named fields), `packet` (the packet table),
//! `decode`, `encode`, `lower`, `tests`. This module holds what they share: the shape of a decoder, the reasons why
//! bytes are malformed, fields that several protocols lay out alike, and [`Packets`], which feeds a decoder piece by
//! piece and keeps account of every byte.

mod a_sync;
pub mod branch_address;
mod compression;
mod contract;
mod decode;
mod describe;
pub mod etmv3;
pub mod etmv4;
mod i_sync_reason;
mod item;
pub mod itm;
mod lower;
mod malformation;
pub(crate) mod memoised;
pub mod mtb;
mod packets;
pub mod pft;
mod registers;
mod security_bits;
mod step;
mod synchronisation;
pub mod timestamp;

pub use a_sync::ASync;
pub use contract::Protocol;
pub use decode::Decode;
pub use describe::{Describe, Field};
pub use i_sync_reason::ISyncReason;
pub use item::{Item, TakeItem};
pub use lower::{Emit, Loss, Lower};
pub use malformation::{Fault, Malformation};
pub use packets::Packets;
pub use registers::{ContextIdSize, Registers};
pub use security_bits::SecurityBits;
pub use step::Step;
