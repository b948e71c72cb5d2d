//! Where OpenCSD is known to be wrong, or to read less: each with what it does, what the specification says, and how a
//! difference is recognised as this one.
//!
//! A difference that no entry recognises is a failure. An entry that recognises nothing is one, too: it is out of date.
//! `examples.txt` has a case for each, since most are rare.

mod etmv4;
mod executed;
mod packets;

use super::deviation::Deviation;

/// All of them; the first that recognises a difference explains it.
pub fn deviations() -> impl Iterator<Item = &'static Deviation> {
    executed::EXECUTED.iter().chain(packets::PACKETS).chain(etmv4::ETMV4)
}
