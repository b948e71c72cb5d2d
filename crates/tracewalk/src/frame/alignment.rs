//! The start of a capture's frames.

use core::fmt;

use super::layout::FRAME_BYTES;

/// The alignment of a capture's frames: the number of bytes before the first whole one, 0 to 15.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(try_from = "u8"))]
pub struct FrameAlignment(u8);

impl FrameAlignment {
    /// The alignment with `bytes` bytes before the first frame, if they are fewer than a frame has.
    #[must_use]
    pub const fn new(bytes: u8) -> Option<Self> {
        if (bytes as usize) < FRAME_BYTES { Some(Self(bytes)) } else { None }
    }

    /// The number of bytes before the first frame.
    #[must_use]
    pub const fn bytes(self) -> u8 {
        self.0
    }

    /// All 16, ascending.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).map_while(Self::new)
    }
}

#[cfg(feature = "serde")]
impl TryFrom<u8> for FrameAlignment {
    type Error = &'static str;

    fn try_from(bytes: u8) -> Result<Self, Self::Error> {
        Self::new(bytes).ok_or("found 16 bytes or more before the first frame, expected 0 to 15")
    }
}

impl fmt::Display for FrameAlignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frames from byte {} on", self.0)
    }
}
