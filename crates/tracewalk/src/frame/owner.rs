//! The owners of bytes in a capture.

use core::fmt;

use crate::ids::TraceId;

/// The owner of bytes in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Owner {
    /// Not known: no ID byte came yet, or none since bytes were lost.
    Unknown,
    /// A trace source.
    Source(TraceId),
    /// No source: ID 0, with which a formatter fills up a frame. The bytes are zero in a healthy capture.
    Padding,
    /// The trigger, ID `0x7d`: normally one zero byte for each.
    Trigger,
    /// An ID that the architecture reserves.
    Reserved(ReservedId),
}

impl Owner {
    /// The owner that an ID byte names: its bits 7..1.
    #[must_use]
    #[inline]
    pub const fn from_id_byte(byte: u8) -> Self {
        let number = byte >> 1;
        match (number, TraceId::new(number)) {
            (_, Some(id)) => Self::Source(id),
            (0x00, None) => Self::Padding,
            (0x7d, None) => Self::Trigger,
            (_, None) => Self::Reserved(ReservedId(number)),
        }
    }

    /// The trace source, if the owner is one.
    #[must_use]
    #[inline]
    pub const fn trace_id(self) -> Option<TraceId> {
        match self {
            Self::Source(id) => Some(id),
            _ => None,
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("an unknown source"),
            Self::Source(id) => write!(f, "trace ID {id}"),
            Self::Padding => f.write_str("padding"),
            Self::Trigger => f.write_str("trigger"),
            Self::Reserved(id) => write!(f, "reserved ID {id}"),
        }
    }
}

/// An ID that names neither a source nor padding nor the trigger: `0x70..=0x7c`, `0x7e` and `0x7f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReservedId(u8);

impl ReservedId {
    /// The ID that no formatter may use, because it would look like synchronisation.
    pub const NEVER_USED: Self = Self(0x7f);

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for ReservedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:02x}", self.0)
    }
}

/// A set of trace IDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IdSet(pub(super) u128);

impl IdSet {
    /// The set without members.
    pub const EMPTY: Self = Self(0);

    /// Adds an ID.
    pub const fn insert(&mut self, id: TraceId) {
        self.0 |= 1 << id.get();
    }

    /// Whether `id` is a member.
    #[must_use]
    #[inline]
    pub const fn contains(self, id: TraceId) -> bool {
        self.0 >> id.get() & 1 == 1
    }

    /// The members of both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether there are no members.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The number of members.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The members, ascending.
    pub fn iter(self) -> impl Iterator<Item = TraceId> {
        (0..=u8::MAX).filter_map(TraceId::new).filter(move |&id| self.contains(id))
    }
}

impl FromIterator<TraceId> for IdSet {
    fn from_iter<T: IntoIterator<Item = TraceId>>(ids: T) -> Self {
        let mut set = Self::EMPTY;
        ids.into_iter().for_each(|id| set.insert(id));
        set
    }
}
