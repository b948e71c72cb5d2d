//! The known deviations of OpenCSD, each with OpenCSD's behaviour, the specification's rule, and a test that
//! recognises a difference as this deviation.
//!
//! A difference that no entry recognises is a failure. An entry that recognises nothing is also a failure,
//! because it is out of date. `examples.txt` has a case for each deviation, since most are rare.

mod etmv4;
mod executed;
mod packets;

use super::deviation::Deviation;

/// All deviations; the first that recognises a difference explains it.
pub fn deviations() -> impl Iterator<Item = &'static Deviation> {
    executed::EXECUTED.iter().chain(packets::PACKETS).chain(etmv4::ETMV4)
}
