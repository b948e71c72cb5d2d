//! What became of every byte of a capture.

use super::Owner;

/// Every capture byte, counted once under what it was.
///
/// The sum ([`Account::total`]) is the number of bytes that were pushed, once the deframer is finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Data of trace sources.
    pub data: u64,
    /// Data before the first ID byte, or before the first one after a loss.
    pub unowned: u64,
    /// Data of ID 0.
    pub padding: u64,
    /// Data of the trigger ID.
    pub trigger: u64,
    /// Data of reserved IDs.
    pub reserved: u64,
    /// ID bytes, auxiliary bytes and synchronisation.
    pub overhead: u64,
    /// Bytes that discontinuities skipped.
    pub lost: u64,
    /// The incomplete frame at the end. 0 until the deframer is finished.
    pub tail: u64,
}

impl Account {
    /// The number of bytes accounted for.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.data
            + self.unowned
            + self.padding
            + self.trigger
            + self.reserved
            + self.overhead
            + self.lost
            + self.tail
    }

    #[inline]
    pub(super) const fn add(&mut self, owner: Owner, bytes: u64) {
        *match owner {
            Owner::Source(_) => &mut self.data,
            Owner::Unknown => &mut self.unowned,
            Owner::Padding => &mut self.padding,
            Owner::Trigger => &mut self.trigger,
            Owner::Reserved(_) => &mut self.reserved,
        } += bytes;
    }
}
