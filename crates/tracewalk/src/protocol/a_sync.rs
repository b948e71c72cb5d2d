//! A-sync: a run of zero bytes and 0x80. ETMv3, PFT and ITM send at least five zero bytes, ETMv4 and ETE always eleven.

use super::malformation::Malformation;
use super::step::Step;

/// A protocol's A-sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ASync {
    /// The fewest zero bytes.
    fewest_zeros: usize,
    /// The most zero bytes taken as part of an A-sync; at most [`MOST_ZEROS`]. Any zero bytes before them
    /// belong to what comes before.
    most_zeros: usize,
}

/// The most zero bytes taken as part of one A-sync. Trace units send the fewest; the bound keeps small what a
/// decoder carries from one piece of input to the next, whatever the input holds.
const MOST_ZEROS: usize = 64;
/// The last byte of an A-sync.
const END: u8 = 0b1000_0000;

/// The meaning of a run of zero bytes at the start of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZeroRun {
    /// An A-sync.
    ASync {
        /// The length, 0x80 included.
        bytes: usize,
    },
    /// Something else.
    Other {
        /// How many zero bytes.
        zeros: u32,
        /// The byte after them.
        found: u8,
    },
    /// The input ends before this is certain.
    Unfinished,
}

/// Where an A-sync begins inside a packet that may have been misread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overlap {
    /// No A-sync begins inside the packet.
    None,
    /// An A-sync begins at this byte, which is not the packet's first.
    At(usize),
    /// The input ends before this is certain.
    Unfinished,
}

impl ASync {
    /// Five zero bytes or more.
    pub(super) const FIVE_ZEROS: Self = Self { fewest_zeros: 5, most_zeros: MOST_ZEROS };

    /// Exactly eleven zero bytes.
    pub(super) const ELEVEN_ZEROS: Self = Self { fewest_zeros: 11, most_zeros: 11 };

    /// An A-sync as trace units send it.
    pub(super) fn shortest(self) -> &'static [u8] {
        const LONGEST: [u8; MOST_ZEROS + 1] = {
            let mut bytes = [0; MOST_ZEROS + 1];
            bytes[MOST_ZEROS] = END;
            bytes
        };
        LONGEST.get(MOST_ZEROS - self.fewest_zeros..).unwrap_or(&LONGEST)
    }

    /// Examines the zero bytes at the start of `input`, where a packet is expected.
    pub(super) fn zero_run(self, input: &[u8]) -> ZeroRun {
        let bounded = input.get(..=self.most_zeros).unwrap_or(input);
        let zeros = bounded.iter().take_while(|&&byte| byte == 0).count();
        match bounded.get(zeros) {
            Some(&END) if zeros >= self.fewest_zeros => ZeroRun::ASync { bytes: zeros + 1 },
            Some(&found) => ZeroRun::Other { zeros: u32::try_from(zeros).unwrap_or(u32::MAX), found },
            None if zeros > self.most_zeros => {
                ZeroRun::Other { zeros: u32::try_from(zeros).unwrap_or(u32::MAX), found: 0 }
            }
            None => ZeroRun::Unfinished,
        }
    }

    /// Why a run of zero bytes is malformed.
    pub(super) fn not_a_sync(self, zeros: u32, found: u8) -> Malformation {
        let fewest = u32::try_from(self.fewest_zeros).unwrap_or(u32::MAX);
        Malformation::NotASync { zeros, found, fewest }
    }

    /// The length of an A-sync counted from its first remaining zero, if the short run of `reason` is an
    /// A-sync together with the `zeros_before` zero bytes before it: a packet read out of step took the first
    /// zeros for its own last bytes.
    ///
    /// In step, an A-sync after a packet that ends in zeros still has all of its own zeros.
    pub(super) fn completed(self, reason: Malformation, zeros_before: usize) -> Option<usize> {
        match reason {
            Malformation::NotASync { zeros, found: END, .. } => {
                let zeros = zeros as usize;
                (zeros_before + zeros >= self.fewest_zeros).then_some(zeros + 1)
            }
            _ => None,
        }
    }

    /// The number of zero bytes at the end of `bytes`, which follow `zeros_before` zero bytes; counted up to
    /// the number that [`ASync::completed`] needs.
    pub(super) fn zeros_after(self, zeros_before: usize, bytes: &[u8]) -> usize {
        let zeros = bytes.iter().rev().take(self.fewest_zeros).take_while(|&&byte| byte == 0).count();
        if zeros == bytes.len() { (zeros_before + zeros).min(self.fewest_zeros) } else { zeros }
    }

    /// Searches for an A-sync: [`Step::Searched`] for the bytes before it, [`Step::Packet`] if it is at the
    /// start.
    pub(super) fn search(self, input: &[u8]) -> Step<()> {
        for end in memchr::memchr_iter(END, input) {
            let zeros = self.trailing_zeros(input.get(..end).unwrap_or_default());
            if zeros >= self.fewest_zeros {
                let start = end - zeros;
                return if start == 0 {
                    Step::Packet { packet: (), bytes: end + 1 }
                } else {
                    Step::Searched { bytes: start }
                };
            }
        }
        match input.len() - self.trailing_zeros(input) {
            0 => Step::NeedInput,
            bytes => Step::Searched { bytes },
        }
    }

    /// Looks for an A-sync that begins inside the packet of `bytes` bytes at the start of `input`.
    ///
    /// Only for packets read on trial after a reserved header: an A-sync is better evidence than they are. In
    /// step, a field of zeros is not an A-sync.
    pub(super) fn overlap(self, input: &[u8], bytes: usize) -> Overlap {
        let mut start = 1;
        while start < bytes {
            match self.zero_run(input.get(start..).unwrap_or_default()) {
                ZeroRun::ASync { .. } => return Overlap::At(start),
                // Of too many zeros, a later one may begin the A-sync.
                ZeroRun::Other { zeros, .. } if zeros as usize > self.most_zeros => start += 1,
                ZeroRun::Other { zeros, .. } => start += zeros as usize + 1,
                ZeroRun::Unfinished => return Overlap::Unfinished,
            }
        }
        Overlap::None
    }

    /// The number of zero bytes at the end of `bytes`, counted up to the most that an A-sync can hold.
    fn trailing_zeros(self, bytes: &[u8]) -> usize {
        bytes.iter().rev().take(self.most_zeros).take_while(|&&byte| byte == 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE: ASync = ASync::FIVE_ZEROS;

    #[test]
    fn surplus_zeros_belong_to_the_a_sync() {
        assert_eq!(FIVE.zero_run(&[0, 0, 0, 0, 0, 0x80]), ZeroRun::ASync { bytes: 6 });
        assert_eq!(FIVE.zero_run(&[0, 0, 0, 0, 0, 0, 0, 0x80, 1]), ZeroRun::ASync { bytes: 8 });
        assert_eq!(FIVE.zero_run(&[0, 0, 0, 0, 0x80]), ZeroRun::Other { zeros: 4, found: 0x80 });
        assert_eq!(FIVE.zero_run(&[0, 0, 0, 0, 0, 0]), ZeroRun::Unfinished);
        assert_eq!(FIVE.zero_run(&[0; 100]), ZeroRun::Other { zeros: 65, found: 0 });
    }

    #[test]
    fn an_a_sync_that_begins_in_a_packet_is_found_there() {
        assert_eq!(FIVE.overlap(&[0x6e, 1, 0, 0, 0, 0, 0, 0x80], 5), Overlap::At(2));
        assert_eq!(FIVE.overlap(&[0x6e, 1, 0, 0, 0, 0, 0, 7], 5), Overlap::None);
        assert_eq!(FIVE.overlap(&[0x6e, 1, 0, 0, 0], 5), Overlap::Unfinished);
        assert_eq!(FIVE.overlap(&[0x6e, 0, 0, 0, 1], 5), Overlap::None);
        assert_eq!(FIVE.overlap(&[0x84, 0, 0, 0, 0, 0, 0x80], 1), Overlap::None);
    }

    #[test]
    fn a_search_stops_before_the_zeros_that_may_begin_an_a_sync() {
        assert_eq!(FIVE.search(&[1, 2, 0x80, 0, 0]), Step::Searched { bytes: 3 });
        assert_eq!(FIVE.search(&[0, 0]), Step::NeedInput);
        assert_eq!(FIVE.search(&[1, 0, 0, 0, 0, 0, 0, 0x80]), Step::Searched { bytes: 1 });
        assert_eq!(FIVE.search(&[0, 0, 0, 0, 0, 0, 0x80]), Step::Packet { packet: (), bytes: 7 });
        assert_eq!(FIVE.search(&[0; 100]), Step::Searched { bytes: 36 });
    }

    #[test]
    fn a_protocol_says_how_many_zeros_its_a_sync_has() {
        let eleven = ASync::ELEVEN_ZEROS;
        let zeros_and_end = |zeros: usize| [&[0; 20][..zeros], &[END]].concat();
        assert_eq!(FIVE.shortest(), zeros_and_end(5));
        assert_eq!(eleven.shortest(), zeros_and_end(11));
        assert_eq!(eleven.zero_run(&zeros_and_end(11)), ZeroRun::ASync { bytes: 12 });
        assert_eq!(eleven.zero_run(&zeros_and_end(10)), ZeroRun::Other { zeros: 10, found: END });
        assert_eq!(eleven.search(&zeros_and_end(10)), Step::Searched { bytes: 11 });
        assert_eq!(eleven.search(&zeros_and_end(11)), Step::Packet { packet: (), bytes: 12 });
        let reason = eleven.not_a_sync(8, END);
        assert_eq!(reason, Malformation::NotASync { zeros: 8, found: END, fewest: 11 });
        assert_eq!((eleven.completed(reason, 2), eleven.completed(reason, 3)), (None, Some(9)));
        assert_eq!(eleven.zeros_after(9, &[0, 0, 0]), 11);
        // A twelfth zero belongs to what comes before.
        assert_eq!(eleven.zero_run(&zeros_and_end(12)), ZeroRun::Other { zeros: 12, found: 0 });
        assert_eq!(eleven.search(&zeros_and_end(12)), Step::Searched { bytes: 1 });
        assert_eq!(eleven.overlap(&[&[1, 0][..], &zeros_and_end(11)].concat(), 2), Overlap::None);
        assert_eq!(eleven.overlap(&[&[1, 0][..], &zeros_and_end(11)].concat(), 3), Overlap::At(2));
    }
}
