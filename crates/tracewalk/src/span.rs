//! Offsets, each with the bytes that it counts as its type.
//!
//! A [`StreamOffset`] counts the bytes of one trace source, a [`CaptureOffset`] the bytes of the capture file. In a
//! formatted capture they differ, because frames carry several sources and bytes of their own. All offsets start at 0.
//!
//! ```
//! use tracewalk::span::{CaptureOffset, Span, StreamOffset};
//!
//! let packet = Span::new(StreamOffset(4), 2);
//! assert_eq!((packet.bytes(), packet.to_string()), (2, "stream bytes 4..6".to_owned()));
//! assert_eq!(CaptureOffset(12).to_string(), "offset 12");
//! ```

use core::fmt;

/// A position in the bytes of one trace source, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StreamOffset(pub u64);

/// A position in the capture file, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CaptureOffset(pub u64);

impl fmt::Display for StreamOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream byte {}", self.0)
    }
}

impl fmt::Display for CaptureOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}", self.0)
    }
}

/// A stretch of one source's bytes: `start` included, `end` not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Span {
    /// The first byte.
    pub start: StreamOffset,
    /// The byte after the last one.
    pub end: StreamOffset,
}

impl Span {
    /// The span of `bytes` bytes from `start`.
    #[must_use]
    pub const fn new(start: StreamOffset, bytes: u64) -> Self {
        Self { start, end: StreamOffset(start.0 + bytes) }
    }

    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.end.0 - self.start.0
    }

    /// The smallest span that covers both.
    #[must_use]
    pub fn to(self, later: Self) -> Self {
        Self { start: self.start.min(later.start), end: self.end.max(later.end) }
    }
}

impl Span {
    /// The span relative to `origin`. Offsets before `origin` wrap.
    #[inline]
    #[must_use]
    pub(crate) const fn relative_to(self, origin: StreamOffset) -> Self {
        Self {
            start: StreamOffset(self.start.0.wrapping_sub(origin.0)),
            end: StreamOffset(self.end.0.wrapping_sub(origin.0)),
        }
    }

    /// The inverse of [`Span::relative_to`].
    #[inline]
    #[must_use]
    pub(crate) const fn placed_after(self, origin: StreamOffset) -> Self {
        Self {
            start: StreamOffset(self.start.0.wrapping_add(origin.0)),
            end: StreamOffset(self.end.0.wrapping_add(origin.0)),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream bytes {}..{}", self.start.0, self.end.0)
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn offsets_say_what_they_count() {
        assert_eq!(StreamOffset(12).to_string(), "stream byte 12");
        assert_eq!(CaptureOffset(12).to_string(), "offset 12");
    }

    #[test]
    fn a_span_up_to_another_covers_both() {
        let span = |start, bytes| Span::new(StreamOffset(start), bytes);
        assert_eq!(span(4, 2).to(span(9, 3)), span(4, 8));
        assert_eq!(span(9, 3).to(span(4, 2)), span(4, 8));
        assert_eq!(span(4, 8).to(span(5, 0)), span(4, 8));
    }
}
