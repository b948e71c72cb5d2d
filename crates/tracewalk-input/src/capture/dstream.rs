//! Files of a DSTREAM unit: blocks of 512 bytes, with 504 bytes from a trace port and a footer of 8 bytes.
//!
//! ```text
//! 0 ..  504  trace: words of 32 bits
//! 504 .. 508 flags of the page (four blocks) that contains the block
//! 508        the number of words of the block that are filled, 0 to 126
//! 509        bits 5:4  the block's number in its page
//! 510 .. 512 bits 11:0 a counter that decreases by one with each block
//! ```
//!
//! Arm does not publish the meaning of the last 8 bytes. The fields above match all 96 blocks of a capture of
//! a Cortex-A55. In its last block with trace, the last filled word is the end of a synchronisation pattern.

use std::io::Write;

use tracewalk::span::CaptureOffset;

use crate::bytes::Bytes;
use crate::file::FileProblem;
use crate::spool::Spool;

const BLOCK: usize = 512;
const PAYLOAD: usize = 504;
const WORD: usize = 4;
const WORDS: u8 = 126;

/// The footer that the unit adds to a block.
#[derive(Clone, Copy)]
struct Footer {
    filled_words: u8,
    place_in_page: u8,
    countdown: u16,
}

impl Footer {
    /// The footer of a whole block; `None` if its bytes cannot be a footer.
    fn of(block: &[u8]) -> Option<Self> {
        let &[page, 0, 0, end, filled_words, place, low, high] = block.get(PAYLOAD..BLOCK)? else {
            return None;
        };
        let is_possible = page < 4 && end & 0x7f == 0 && filled_words <= WORDS && place & !0x30 == 0;
        let countdown = u16::from_le_bytes([low, high]) & 0xfff;
        is_possible.then_some(Self { filled_words, place_in_page: place >> 4, countdown })
    }

    /// Whether this footer's block can directly follow the block of `before`.
    const fn follows(self, before: Self) -> bool {
        self.place_in_page == (before.place_in_page + 1) % 4
            && self.countdown == before.countdown.wrapping_sub(1) & 0xfff
    }
}

/// Whether a file that begins with `head` has a unit's footers: at least two, and each follows the previous
/// one.
pub(super) fn is_one(head: &[u8]) -> bool {
    let footers = head.chunks_exact(BLOCK).map(Footer::of).collect::<Vec<_>>();
    footers.len() >= 2
        && footers.windows(2).all(|pair| match pair {
            [Some(before), Some(next)] => next.follows(*before),
            _ => false,
        })
}

/// The length of a file up to the last word with trace: the unit writes whole pages, and counts the filled
/// words.
fn filled(file: &[u8]) -> usize {
    let (mut end, mut after) = (file.len(), None::<Footer>);
    if !end.is_multiple_of(BLOCK) {
        return end;
    }
    for block in file.chunks_exact(BLOCK).rev() {
        let Some(footer) = Footer::of(block) else { break };
        let before = file[..end - BLOCK].rchunks_exact(BLOCK).next().and_then(Footer::of);
        let is_one = before.is_some_and(|before| footer.follows(before))
            || after.is_some_and(|after| after.follows(footer));
        let filled = usize::from(footer.filled_words) * WORD;
        // A block with a wrong count is kept whole.
        if !is_one || block[filled..PAYLOAD].iter().any(|byte| *byte != 0) {
            break;
        }
        end -= BLOCK;
        if filled > 0 {
            return end + filled;
        }
        after = Some(footer);
    }
    end
}

/// The bytes of trace in a file's bytes.
pub(super) fn payload(file: &[u8]) -> Result<Bytes, FileProblem> {
    let mut spool = Spool::default();
    for block in file[..filled(file)].chunks(BLOCK) {
        spool.write_all(block.get(..PAYLOAD).unwrap_or(block))?;
    }
    Ok(spool.finish()?)
}

/// The byte of trace at a place in the file, or the next one.
pub(super) const fn trace_offset(file: CaptureOffset) -> CaptureOffset {
    let (block, place) = (file.0 / BLOCK as u64, file.0 % BLOCK as u64);
    let place = if place < PAYLOAD as u64 { place } else { PAYLOAD as u64 };
    CaptureOffset(block * PAYLOAD as u64 + place)
}

/// The offset in the file of a byte of trace.
pub(super) const fn file_offset(offset: CaptureOffset) -> u64 {
    offset.0 / PAYLOAD as u64 * BLOCK as u64 + offset.0 % PAYLOAD as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks as the unit writes them: `words` words of trace, in whole pages.
    fn blocks(words: usize) -> Vec<u8> {
        let mut bytes = (1_u8..=200).cycle();
        let count = words.div_ceil(usize::from(WORDS)).next_multiple_of(4);
        let block = |index: usize| {
            let filled = words.saturating_sub(index * usize::from(WORDS)).min(usize::from(WORDS));
            let mut block = bytes.by_ref().take(filled * WORD).collect::<Vec<_>>();
            block.resize(PAYLOAD, 0);
            let place = u8::try_from(index % 4).unwrap() << 4;
            let [low, high] = u16::try_from(0xffe - index).unwrap().to_le_bytes();
            let filled = u8::try_from(filled).unwrap();
            block.extend([2, 0, 0, if index % 4 == 3 { 0x80 } else { 0 }, filled, place, low, high]);
            block
        };
        (0..count).flat_map(block).collect()
    }

    #[test]
    fn footers_are_left_out_and_offsets_lead_back_into_the_file() {
        let file = (0..1500_u32).map(|index| index.to_le_bytes()[0]).collect::<Vec<_>>();
        let payload = payload(&file).unwrap();
        assert_eq!(payload.len(), 504 + 504 + (1500 - 1024));
        for (offset, byte) in (0..).zip(payload.iter()) {
            let place = file_offset(CaptureOffset(offset));
            assert_eq!(trace_offset(CaptureOffset(place)), CaptureOffset(offset));
            let place = usize::try_from(place).unwrap();
            assert_eq!(file.get(place), Some(byte));
        }
        // The last block ends in its footer, which is not trace.
        assert_eq!(super::payload(&[0; 507]).unwrap().len(), 504);
    }

    #[test]
    fn what_the_unit_did_not_fill_is_no_trace() {
        for words in [1, 125, 126, 127, 75 + 3 * 126, 4 * 126, 4 * 126 + 1, 1000] {
            let file = blocks(words);
            assert!(is_one(&file), "{words}");
            let payload = payload(&file).unwrap();
            let expected = (1_u8..=200).cycle().take(words * WORD);
            assert!(payload.iter().copied().eq(expected), "{words}");
        }
    }

    #[test]
    fn what_is_counted_wrongly_is_kept() {
        let mut file = blocks(75);
        file[301] = 7;
        // The three blocks after the first are empty in any case.
        assert_eq!(payload(&file).unwrap().len(), PAYLOAD);
        let mut file = blocks(75);
        file[3 * BLOCK + 100] = 7;
        assert_eq!(payload(&file).unwrap().len(), 4 * PAYLOAD);
    }

    #[test]
    fn other_bytes_are_no_blocks() {
        let sound = blocks(500);
        for (place, byte) in [(505, 1), (506, 1), (507, 1), (508, 127), (509, 0x40), (1021, 0x20), (1022, 0)]
        {
            let mut file = sound.clone();
            file[place] = byte;
            assert!(!is_one(&file), "{place}");
        }
        assert!(!is_one(&sound[..1023]) && !is_one(&[0; 4096]) && !is_one(&[0xff; 4096]));
        assert!(is_one(&sound[..1024]));
    }
}
