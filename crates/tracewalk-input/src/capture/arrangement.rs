//! The order of a buffer's bytes in its file, if not from the oldest to the newest.

use std::fmt;

use tracewalk::span::CaptureOffset;

use crate::origin::Stated;

/// How a buffer's memory was written to its file.
///
/// If a buffer wrapped and was read from its first address on, its oldest byte is in the middle. A program
/// that read the buffer word by word may have written each word's bytes in the wrong order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrangement {
    /// The offset of the oldest byte in the file; the newest byte is just before it.
    pub read_pointer: Option<Stated<u64>>,
    /// Whether each 32-bit word has its highest byte first.
    pub swapped_words: Option<Stated<bool>>,
}

/// A read pointer beyond the end of its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPointerOutside {
    /// The read pointer.
    pub found: u64,
    /// The buffer's length in bytes.
    pub bytes: u64,
}

impl fmt::Display for ReadPointerOutside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, bytes } = self;
        write!(f, "the read pointer is {found:#x}, expected an offset within the buffer of {bytes} bytes")
    }
}

const WORD: u64 = 4;

impl Arrangement {
    /// Whether the bytes are already in the order of the trace.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        self.pointer() == 0 && !self.is_swapped()
    }

    fn pointer(&self) -> u64 {
        self.read_pointer.as_ref().map_or(0, |pointer| pointer.value)
    }

    fn is_swapped(&self) -> bool {
        self.swapped_words.as_ref().is_some_and(|swapped| swapped.value)
    }

    /// The bytes in the order in which they were traced.
    #[must_use]
    pub fn arranged(&self, file: &[u8]) -> Vec<u8> {
        let mut bytes = file.to_vec();
        if self.is_swapped() {
            bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
        }
        if let Ok(pointer) = usize::try_from(self.pointer())
            && pointer <= bytes.len()
        {
            bytes.rotate_left(pointer);
        }
        bytes
    }

    /// The place of an arranged byte in a file of `bytes` bytes.
    pub(super) fn file_offset(&self, offset: CaptureOffset, bytes: u64) -> CaptureOffset {
        let pointer = self.pointer();
        let rest = bytes.saturating_sub(pointer);
        let turned = if offset.0 < rest {
            offset.0 + pointer
        } else if offset.0 < bytes {
            offset.0 - rest
        } else {
            offset.0
        };
        CaptureOffset(self.swapped(turned, bytes))
    }

    /// The place among the arranged bytes of a byte in the file.
    pub(super) fn trace_offset(&self, file: CaptureOffset, bytes: u64) -> CaptureOffset {
        let place = self.swapped(file.0, bytes);
        let pointer = self.pointer();
        CaptureOffset(match place.checked_sub(pointer) {
            _ if place >= bytes => place,
            Some(after) => after,
            None => place + bytes.saturating_sub(pointer),
        })
    }

    fn swapped(&self, place: u64, bytes: u64) -> u64 {
        let in_whole_word = place / WORD < bytes / WORD;
        if self.is_swapped() && in_whole_word { place ^ (WORD - 1) } else { place }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Origin;

    #[test]
    fn bytes_are_put_in_order_and_lead_back_to_their_places() {
        let stated = |value| Some(Stated::new(value, Origin::Detected));
        for bytes in [16_u8, 18] {
            let file = (0..bytes).collect::<Vec<_>>();
            for read_pointer in [None, stated(0), stated(5), stated(u64::from(bytes) - 1)] {
                for swapped_words in [None, Some(Stated::new(true, Origin::Detected))] {
                    let arrangement = Arrangement {
                        read_pointer: read_pointer.clone(),
                        swapped_words: swapped_words.clone(),
                    };
                    let arranged = arrangement.arranged(&file);
                    for (offset, byte) in (0..).zip(&arranged) {
                        let place = arrangement.file_offset(CaptureOffset(offset), u64::from(bytes));
                        assert_eq!(place.0, u64::from(*byte), "{arrangement:?}");
                        let back = arrangement.trace_offset(place, u64::from(bytes));
                        assert_eq!(back.0, offset, "{arrangement:?}");
                    }
                }
            }
        }
        let words =
            Arrangement { swapped_words: Some(Stated::new(true, Origin::Detected)), ..Default::default() };
        assert_eq!(words.arranged(&[1, 2, 3, 4, 5]), [4, 3, 2, 1, 5]);
        let turned = Arrangement { read_pointer: stated(3), ..Default::default() };
        assert_eq!(turned.arranged(&[1, 2, 3, 4, 5]), [4, 5, 1, 2, 3]);
    }
}
