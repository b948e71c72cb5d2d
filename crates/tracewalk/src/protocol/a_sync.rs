//! A-sync: five or more zero bytes and 0x80, in ETMv3 and PFT alike.

use super::{Malformation, Step};

/// An A-sync as trace units send it.
pub(super) const SHORTEST: [u8; FEWEST_ZEROS + 1] = [0, 0, 0, 0, 0, END];

/// The fewest zero bytes of an A-sync.
const FEWEST_ZEROS: usize = 5;
/// The most zero bytes that are taken as part of one A-sync. Trace units send five; a bound keeps what a decoder has
/// to carry from one piece of input to the next small, whatever the input holds.
const MOST_ZEROS: usize = 64;
/// The last byte of an A-sync.
const END: u8 = 0b1000_0000;

/// What a run of zero bytes at the start of the input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZeroRun {
    /// An A-sync.
    ASync {
        /// Its length, 0x80 included.
        bytes: usize,
    },
    /// Something else.
    Other {
        /// How many zero bytes.
        zeros: u32,
        /// The byte behind them.
        found: u8,
    },
    /// The input ends before that is certain.
    Unfinished,
}

/// Looks at the zero bytes at the start of `input`, where a packet is expected.
pub(super) fn zero_run(input: &[u8]) -> ZeroRun {
    let bounded = input.get(..=MOST_ZEROS).unwrap_or(input);
    let zeros = bounded.iter().take_while(|&&byte| byte == 0).count();
    match bounded.get(zeros) {
        Some(&END) if zeros >= FEWEST_ZEROS => ZeroRun::ASync { bytes: zeros + 1 },
        Some(&found) => ZeroRun::Other { zeros: u32::try_from(zeros).unwrap_or(u32::MAX), found },
        None if zeros > MOST_ZEROS => {
            ZeroRun::Other { zeros: u32::try_from(zeros).unwrap_or(u32::MAX), found: 0 }
        }
        None => ZeroRun::Unfinished,
    }
}

/// Where an A-sync ends that was too short for one, where `in_front` zero bytes stand in front of it: a packet that was read
/// out of step took its first zeros for its own last bytes. It counts from the first of the zeros that are left.
///
/// In step a packet that ends in zeros has five more behind it where an A-sync comes.
pub(super) fn completed(reason: Malformation, in_front: usize) -> Option<usize> {
    match reason {
        Malformation::NotASync { zeros, found: END } => {
            let zeros = zeros as usize;
            (in_front + zeros >= FEWEST_ZEROS).then_some(zeros + 1)
        }
        _ => None,
    }
}

/// How many zero bytes stand at the end of `bytes`, in front of which there are `in_front`; counted up to what [`completed`]
/// has to know.
pub(super) fn zeros_behind(in_front: usize, bytes: &[u8]) -> usize {
    let zeros = bytes.iter().rev().take(FEWEST_ZEROS).take_while(|&&byte| byte == 0).count();
    if zeros == bytes.len() { (in_front + zeros).min(FEWEST_ZEROS) } else { zeros }
}

/// Searches for an A-sync: [`Step::Searched`] for what stands before it, [`Step::Packet`] where it is at the start.
pub(super) fn search(input: &[u8]) -> Step<()> {
    for end in memchr::memchr_iter(END, input) {
        let zeros = trailing_zeros(input.get(..end).unwrap_or_default());
        if zeros >= FEWEST_ZEROS {
            let start = end - zeros;
            return if start == 0 {
                Step::Packet { packet: (), bytes: end + 1 }
            } else {
                Step::Searched { bytes: start }
            };
        }
    }
    match input.len() - trailing_zeros(input) {
        0 => Step::NeedInput,
        bytes => Step::Searched { bytes },
    }
}

/// Where an A-sync may hide in a packet that is not certain to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overlap {
    /// None begins inside the packet.
    None,
    /// One begins here, behind the packet's first byte.
    At(usize),
    /// The input ends before that is certain.
    Unfinished,
}

/// Looks for an A-sync that begins inside the packet of `bytes` bytes at the start of `input`.
///
/// In step this is never asked: a field of zeros is no A-sync. Behind a reserved header packets are read on trial, and
/// an A-sync is better evidence than they are.
pub(super) fn overlap(input: &[u8], bytes: usize) -> Overlap {
    let mut start = 1;
    while start < bytes {
        match zero_run(input.get(start..).unwrap_or_default()) {
            ZeroRun::ASync { .. } => return Overlap::At(start),
            ZeroRun::Other { zeros, .. } => start += zeros as usize + 1,
            ZeroRun::Unfinished => return Overlap::Unfinished,
        }
    }
    Overlap::None
}

/// How many zero bytes end `bytes`, counted up to what an A-sync can hold.
fn trailing_zeros(bytes: &[u8]) -> usize {
    bytes.iter().rev().take(MOST_ZEROS).take_while(|&&byte| byte == 0).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surplus_zeros_belong_to_the_a_sync() {
        assert_eq!(zero_run(&[0, 0, 0, 0, 0, 0x80]), ZeroRun::ASync { bytes: 6 });
        assert_eq!(zero_run(&[0, 0, 0, 0, 0, 0, 0, 0x80, 1]), ZeroRun::ASync { bytes: 8 });
        assert_eq!(zero_run(&[0, 0, 0, 0, 0x80]), ZeroRun::Other { zeros: 4, found: 0x80 });
        assert_eq!(zero_run(&[0, 0, 0, 0, 0, 0]), ZeroRun::Unfinished);
        assert_eq!(zero_run(&[0; 100]), ZeroRun::Other { zeros: 65, found: 0 });
    }

    #[test]
    fn an_a_sync_that_begins_in_a_packet_is_found_there() {
        assert_eq!(overlap(&[0x6e, 1, 0, 0, 0, 0, 0, 0x80], 5), Overlap::At(2));
        assert_eq!(overlap(&[0x6e, 1, 0, 0, 0, 0, 0, 7], 5), Overlap::None);
        assert_eq!(overlap(&[0x6e, 1, 0, 0, 0], 5), Overlap::Unfinished);
        assert_eq!(overlap(&[0x6e, 0, 0, 0, 1], 5), Overlap::None);
        assert_eq!(overlap(&[0x84, 0, 0, 0, 0, 0, 0x80], 1), Overlap::None);
    }

    #[test]
    fn a_search_stops_before_the_zeros_that_may_begin_an_a_sync() {
        assert_eq!(search(&[1, 2, 0x80, 0, 0]), Step::Searched { bytes: 3 });
        assert_eq!(search(&[0, 0]), Step::NeedInput);
        assert_eq!(search(&[1, 0, 0, 0, 0, 0, 0, 0x80]), Step::Searched { bytes: 1 });
        assert_eq!(search(&[0, 0, 0, 0, 0, 0, 0x80]), Step::Packet { packet: (), bytes: 7 });
        assert_eq!(search(&[0; 100]), Step::Searched { bytes: 36 });
    }
}
