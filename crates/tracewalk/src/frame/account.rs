//! Accounts for every byte of a capture.

use core::ops::AddAssign;

use super::owner::Owner;

/// Every byte of the capture, counted once by its role.
///
/// The sum ([`Account::total`]) is the number of bytes that were pushed, once the deframer is finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
}

impl AddAssign for Account {
    fn add_assign(&mut self, more: Self) {
        let Self { data, unowned, padding, trigger, reserved, overhead, lost, tail } = more;
        self.data += data;
        self.unowned += unowned;
        self.padding += padding;
        self.trigger += trigger;
        self.reserved += reserved;
        self.overhead += overhead;
        self.lost += lost;
        self.tail += tail;
    }
}

/// An owner as the index of a table: its ID, or a number that no ID has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct OwnerKey(u8);

impl OwnerKey {
    /// Unknown.
    pub(super) const UNKNOWN: Self = Self(0x80);

    #[inline]
    pub(super) const fn from_id_byte(byte: u8) -> Self {
        Self(byte >> 1)
    }

    #[inline]
    pub(super) fn owner(self) -> Owner {
        OWNERS.get(usize::from(self.0)).copied().unwrap_or(Owner::Unknown)
    }
}

impl From<Owner> for OwnerKey {
    fn from(owner: Owner) -> Self {
        match owner {
            Owner::Unknown => Self::UNKNOWN,
            Owner::Source(id) => Self(id.get()),
            Owner::Padding => Self(0),
            Owner::Trigger => Self(0x7d),
            Owner::Reserved(id) => Self(id.get()),
        }
    }
}

/// The owners by key. A table, because working out the owner takes more time than anything else for short
/// pieces.
const OWNERS: [Owner; 0x81] = {
    let mut owners = [Owner::Unknown; 0x81];
    let mut number = 0_u8;
    while number < 0x80 {
        owners[number as usize] = Owner::from_id_byte(number << 1);
        number += 1;
    }
    owners
};

/// The counts that make up an [`Account`].
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Tally {
    /// Data bytes by owner.
    #[cfg_attr(feature = "serde", serde(with = "crate::arrays"))]
    owners: [u64; 0x81],
    pub(super) overhead: u64,
    pub(super) lost: u64,
    pub(super) tail: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self { owners: [0; 0x81], overhead: 0, lost: 0, tail: 0 }
    }
}

impl Tally {
    #[inline]
    pub(super) fn add(&mut self, owner: OwnerKey, bytes: u64) {
        if let Some(count) = self.owners.get_mut(usize::from(owner.0)) {
            *count += bytes;
        }
    }

    /// The owners that have bytes, and how many.
    pub(super) fn owners(&self) -> impl Iterator<Item = (Owner, u64)> {
        OWNERS.into_iter().zip(self.owners).filter(|(_, bytes)| *bytes > 0)
    }

    pub(super) fn account(&self) -> Account {
        let &Self { overhead, lost, tail, .. } = self;
        let mut account = Account { overhead, lost, tail, ..Account::default() };
        for (owner, bytes) in self.owners() {
            *match owner {
                Owner::Source(_) => &mut account.data,
                Owner::Unknown => &mut account.unowned,
                Owner::Padding => &mut account.padding,
                Owner::Trigger => &mut account.trigger,
                Owner::Reserved(_) => &mut account.reserved,
            } += bytes;
        }
        account
    }
}
