//! The packets that the memo may look up together, and the state that decoding them depends on.

use crate::protocol::compression::BranchCompression;
use crate::protocol::memoised::{self, Announces, MemoDecode, MemoState};
use crate::protocol::synchronisation::Synchronisation;
use crate::span::StreamOffset;

use super::super::packet::{Packet, header};
use super::Decoder;

impl MemoState for Decoder {
    type State = BranchCompression;

    fn state(&self, _at: StreamOffset) -> Option<BranchCompression> {
        (self.synchronisation == Synchronisation::InStep).then(|| self.compression.branches())
    }

    fn resume(&mut self, state: &BranchCompression, _at: StreamOffset) {
        self.synchronisation = Synchronisation::InStep;
        self.compression.resume_branches(*state);
    }
}

impl MemoDecode for Decoder {
    /// A waypoint update's address looks like a branch packet after the header.
    #[inline]
    fn window(&self, word: u64) -> u64 {
        const SINGLES: [u8; 2] = [header::WAYPOINT_UPDATE, header::EXCEPTION_RETURN];
        if self.config.cycle_accurate {
            cycle_accurate_window(word)
        } else {
            memoised::window(word, SINGLES, Announces::AfterTheFirst)
        }
    }

    #[inline]
    fn is_repeatable(packet: &Packet) -> bool {
        matches!(
            packet,
            Packet::Atom(_) | Packet::Branch(_) | Packet::WaypointUpdate(_) | Packet::ExceptionReturn
        )
    }
}

/// The window of repeatable packets in the next eight bytes of cycle-accurate trace: see
/// [`memoised::window`].
#[inline]
fn cycle_accurate_window(word: u64) -> u64 {
    /// The end of the run of bytes that starts at `from` and ends with a byte without bit 7, or after `most`
    /// bytes; and its last byte.
    const fn run(word: u64, from: u32, most: u32) -> Option<(u32, u8)> {
        let mut end = from;
        while end < 8 && end < from + most {
            let byte = byte(word, end);
            end += 1;
            if byte & 0b1000_0000 == 0 || end == from + most {
                return Some((end, byte));
            }
        }
        None
    }
    const fn byte(word: u64, index: u32) -> u8 {
        let [byte, ..] = (word >> (8 * index)).to_le_bytes();
        byte
    }
    /// The end of a cycle count whose first byte is at `at`.
    fn count(word: u64, at: u32) -> Option<u32> {
        if at >= 8 {
            None
        } else if byte(word, at) & 0b0100_0000 == 0 {
            Some(at + 1)
        } else {
            run(word, at + 1, 4).map(|(end, _)| end)
        }
    }
    /// The end of an address and its exception information.
    fn address(word: u64, from: u32) -> Option<u32> {
        let (end, last) = run(word, from, 5)?;
        let announces = end > from + 1 && last & 0b0100_0000 != 0;
        if announces { run(word, end, 2).map(|(end, _)| end) } else { Some(end) }
    }
    let mut end = 0;
    while end < 8 {
        let header = byte(word, end);
        let (next, is_last) = if header & header::BRANCH != 0 {
            (address(word, end).and_then(|end| count(word, end)), true)
        } else if header & header::ATOM != 0 {
            (count(word, end), false)
        } else if header == header::WAYPOINT_UPDATE {
            (address(word, end + 1), true)
        } else {
            (Some(end + 1).filter(|_| header == header::EXCEPTION_RETURN), false)
        };
        match next {
            Some(next) => end = next,
            None => break,
        }
        if is_last {
            break;
        }
    }
    match end {
        0 => 0,
        bytes => u64::MAX >> (64 - 8 * bytes),
    }
}
