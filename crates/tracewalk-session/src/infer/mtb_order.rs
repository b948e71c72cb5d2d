//! Finding the packets in a dump without registers.
//!
//! ```text
//! judge each entry: empty, a packet, neither
//! judge each pair of neighbours: does the second packet begin at the destination of the first?
//! reading 1: the longest stretch of packets that fit                     (a buffer that has not wrapped)
//! reading 2: for each aligned power-of-two block that is full of packets: the packets from the worst pair on,
//!            around to the worst pair again                              (a buffer that has)
//! the answer is the reading in which most pairs fit, and the next best
//! ```
//!
//! Memory that the dump does not hold has entries too, of unknown content: inside the dump, and around it up to where
//! blocks of about its size begin and end. The newest packet is certain only if the memory after it proves that it is
//! the newest.
//!
//! If one of the registers is known, readings that contradict it are excluded.
//!
//! ```
//! use tracewalk::protocol::mtb::order::Dump;
//! use tracewalk_session::mtb_order::{by_evidence, within_reach};
//!
//! // A buffer of eight packets, each the address that jumped and the one that it went to. Three were written: straight code
//! // leads from each destination to the next source.
//! let packets = [(0x0110, 0x0200), (0x0208, 0x0100), (0x0110, 0x0300)];
//! let mut memory = [0; 64];
//! for (entry, (source, destination)) in memory.chunks_mut(8).zip(packets) {
//!     entry[..4].copy_from_slice(&u32::to_le_bytes(source));
//!     entry[4..].copy_from_slice(&u32::to_le_bytes(destination));
//! }
//! let guess = by_evidence(Dump::new(&memory, None), within_reach).expect("there are packets");
//! let found = guess.best.evidence;
//! assert_eq!((found.bytes, found.packets, found.wrapped), (0..24, 3, false));
//! assert_eq!((found.fits, found.breaks), (2, 0));
//! ```

mod entry;
mod evidence;
mod model;
mod search;

use std::ops::Range;

use tracewalk::ids::Address;
use tracewalk::protocol::mtb::order::Dump;
use tracewalk::protocol::mtb::{Config, PACKET_BYTES};

use entry::Pair;
use search::{Entries, Ranking};

pub use entry::within_reach;
pub use evidence::{Ending, Evidence};
pub(crate) use model::Narrowing;
pub use model::{Guess, Reading};

/// Finds the packets by their contents; `None` if nothing looks like a packet.
///
/// `reaches(from, to)` returns whether code can run from `from` to `to` without a taken branch. With a program, flow
/// decides this; without one, [`within_reach`] is a rule of thumb.
pub fn by_evidence(dump: Dump<'_>, reaches: impl Fn(Address, Address) -> bool) -> Option<Guess> {
    narrowed(dump, Narrowing::default(), reaches)
}

/// As [`by_evidence`], if one of the registers is known.
pub(crate) fn narrowed(
    dump: Dump<'_>,
    known: Narrowing,
    reaches: impl Fn(Address, Address) -> bool,
) -> Option<Guess> {
    let entries = Entries::judge(dump, known, reaches);
    let mut ranking = Ranking::default();
    let mut offer = |(score, shape)| ranking.offer((score, entries.shows_oldest(shape)), shape);
    entries.not_wrapped().into_iter().for_each(&mut offer);
    for block in entries.blocks() {
        entries.wrapped(block).into_iter().flatten().for_each(&mut offer);
    }
    let best = entries.reading(ranking.best?.1);
    Some(Guess { best, runner_up: ranking.runner_up.map(|(_, shape)| entries.reading(shape)) })
}

/// Whether the packet at this place begins at the destination of the one before.
pub(crate) fn continues(data: &[u8], at: usize, reaches: impl Fn(Address, Address) -> bool) -> bool {
    let both = at.checked_sub(PACKET_BYTES).and_then(|before| data.get(before..at + PACKET_BYTES));
    both.is_some_and(|both| {
        let entries = Entries::judge(Dump::new(both, None), Narrowing::default(), reaches);
        entries.pair(0, 1) == Pair::Fits
    })
}

/// The start of the buffer in a dump of unknown address: the one place, consistent with the registers, at which the
/// packets continue each other. `None` if there is no such place, or several.
pub(crate) fn place_by_registers(
    data: &[u8],
    config: &Config,
    reaches: impl Fn(Address, Address) -> bool,
) -> Option<usize> {
    let size = usize::try_from(config.size().bytes()).ok()?;
    let (count, pointer) =
        (size / PACKET_BYTES, usize::try_from(config.pointer()).ok()? % size / PACKET_BYTES);
    let entries = Entries::judge(Dump::new(data, None), Narrowing::default(), reaches);
    // For each entry, the sums up to it: of its packets, and of the scores of its pairs.
    let mut sums = vec![(0_i64, 0_i64)];
    for (entry, pair) in entries.entries.iter().zip(&entries.pairs) {
        let (packets, score) = sums.last().copied().unwrap_or_default();
        sums.push((packets + i64::from(entry.packet().is_some()), score + pair.score()));
    }
    // The score of the pairs inside a range, if all its entries are packets.
    let score = |range: Range<usize>| {
        if range.is_empty() {
            return Some(0);
        }
        let (from, inside, to) = (sums.get(range.start)?, sums.get(range.start + 1)?, sums.get(range.end)?);
        let is_full = to.0 - from.0 == i64::try_from(range.len()).ok()?;
        is_full.then_some(to.1 - inside.1)
    };
    let reading = |start: usize| {
        let newest = score(start..start + pointer)?;
        if !config.wrapped() {
            return Some(newest);
        }
        let round = if pointer == 0 { 0 } else { entries.pair(start + count - 1, start).score() };
        Some(score(start + pointer..start + count)? + newest + round)
    };
    let last = entries.entries.len().checked_sub(count)?;
    let readings = (0..=last).filter_map(|start| Some((reading(start)?, start)));
    let mut best = None::<(i64, usize)>;
    let mut second = i64::MIN;
    for (score, start) in readings {
        if best.is_none_or(|(best, _)| score > best) {
            second = best.map_or(second, |(best, _)| best);
            best = Some((score, start));
        } else {
            second = second.max(score);
        }
    }
    // Certain: nearly all pairs fit, and every other place has at least one more break.
    let packets = i64::try_from(if config.wrapped() { count } else { pointer }).ok()?;
    let (best, start) = best?;
    let [fits, breaks] = [Pair::Fits.score(), Pair::Breaks.score()];
    let is_certain = packets > 3 && best >= (packets - 1) * fits + breaks && second <= best + breaks;
    is_certain.then_some(start * PACKET_BYTES)
}

#[cfg(test)]
mod tests {
    use super::entry::Entry;
    use super::search::Shape;
    use super::*;

    /// A packet from one address to another.
    fn bytes_of((source, destination): (u32, u32)) -> [u8; PACKET_BYTES] {
        let [a, b, c, d] = source.to_le_bytes();
        let [e, f, g, h] = destination.to_le_bytes();
        [a, b, c, d, e, f, g, h]
    }

    /// A loop of four packets over and over, with a buffer of 8 in 32 entries of them.
    #[test]
    fn one_register_alone_narrows_what_is_found() {
        let lap = [(0x10, 0x20), (0x20, 0x30), (0x30, 0x40), (0x40, 0x10)];
        let data = lap.iter().cycle().take(32).flat_map(|&entry| bytes_of(entry)).collect::<Vec<_>>();
        let dump = Dump::new(&data, Some(Address::new(0x2000_0000)));
        let found = |known| narrowed(dump, known, |from, to| from == to).expect("there are packets").best;
        let by_size = found(Narrowing { size: Some(64), next: None }).evidence;
        assert_eq!(by_size.bytes.len(), 64);
        // The packet before the pointer is the newest one, in a loop too.
        let next = |pointer, wrapped| found(Narrowing { size: None, next: Some((pointer, wrapped)) });
        let reading = next(0x28, true);
        assert_eq!((reading.evidence.bytes.clone(), reading.evidence.end), (0..256, Ending::Shown));
        assert_eq!(reading.layout.pieces.first().map(|piece| piece.bytes.start), Some(0x28));
        let reading = next(0x68, false);
        assert_eq!((reading.evidence.wrapped, reading.evidence.bytes.end % 0x80), (false, 0x68));
        assert_eq!(reading.evidence.end, Ending::Shown);
        // No packet ends at this address.
        let nothing = Narrowing { size: None, next: Some((0x1000, false)) };
        assert_eq!(narrowed(dump, nothing, |from, to| from == to), None);
    }

    /// The guess for a program without straight code: each packet begins at the destination of the one before.
    fn found(entries: &[(u32, u32)]) -> Guess {
        let data = entries.iter().flat_map(|&entry| bytes_of(entry)).collect::<Vec<_>>();
        by_evidence(Dump::new(&data, None), |from, to| from == to).expect("there are packets")
    }

    const SEEN: Evidence = Evidence {
        bytes: 0x10..0x60,
        wrapped: false,
        packets: 10,
        fits: 6,
        restarts: 1,
        breaks: 2,
        breaks_at_wrap: false,
        unwritten: 3,
        end: Ending::Shown,
    };

    #[test]
    fn packets_and_what_fits_speak_for_a_reading_and_breaks_against_it() {
        assert_eq!(SEEN.score(), 10 + 6 * 2 - 2 * 3);
    }

    #[test]
    fn evidence_is_reported_with_how_the_buffer_lies() {
        let text = |wrapped, breaks_at_wrap| Evidence { wrapped, breaks_at_wrap, ..SEEN }.to_string();
        let rest = "; 6 continue the previous packet, 1 restart, 2 are unexplained";
        let start = "10 packets in bytes 0x10..0x60";
        assert_eq!(text(false, false), format!("{start}, not wrapped{rest}"));
        let with = ", wrapped, with a break where the newest meets the oldest";
        assert_eq!(text(true, true), format!("{start}{with}{rest}"));
        let without = ", wrapped, without a break that shows where";
        assert_eq!(text(true, false), format!("{start}{without}{rest}"));
    }

    #[test]
    fn one_reading_is_offered_once_and_the_first_of_equals_stays() {
        let mut ranking = Ranking::default();
        let from = |start, oldest| Shape { start, end: 8, oldest };
        let rank = |score| (score, false);
        ranking.offer(rank(5), from(0, None));
        // The same, as a buffer that wrapped at its start.
        ranking.offer(rank(9), from(0, Some(0)));
        assert_eq!((ranking.best, ranking.runner_up), (Some((rank(5), from(0, None))), None));
        ranking.offer(rank(5), from(1, None));
        ranking.offer(rank(5), from(2, None));
        assert_eq!(ranking.runner_up, Some((rank(5), from(1, None))));
        ranking.offer((5, true), from(3, None));
        let best = (Some(((5, true), from(3, None))), Some((rank(5), from(0, None))));
        assert_eq!((ranking.best, ranking.runner_up), best);
        ranking.offer(rank(6), from(4, None));
        assert_eq!(ranking.best, Some((rank(6), from(4, None))));
    }

    #[test]
    fn a_stretch_begins_after_the_packets_that_do_not_go_together() {
        // An empty entry, packets that break three times, and five that continue each other.
        let entries = [
            (0, 0),
            (0x100, 0x200),
            (0x300, 0x400),
            (0x500, 0x600),
            (0x600, 0x700),
            (0x700, 0x800),
            (0x800, 0x900),
            (0x900, 0xa00),
            (0, 0),
        ];
        let evidence = found(&entries).best.evidence;
        assert_eq!((evidence.bytes, evidence.packets, evidence.fits), (24..64, 5, 4));
        assert_eq!((evidence.wrapped, evidence.breaks, evidence.unwritten), (false, 0, 2));
        // Without an empty entry before them, the packets that break are older than the others.
        let evidence = found(&entries[1..]).best.evidence;
        assert_eq!((evidence.bytes, evidence.fits, evidence.breaks), (0..56, 4, 2));
    }

    #[test]
    fn a_branch_stands_in_code_and_goes_to_code_or_to_what_commands_something() {
        let entry = |source, destination| Entry::at(bytes_of((source, destination)));
        assert!(matches!(entry(0x100, 0x2000_0000), Entry::Packet(_)));
        // EXC_RETURN; the same from a peripheral; to one; neither.
        assert!(matches!(entry(0x100, 0xffff_fff8), Entry::Packet(_)));
        assert!(matches!(entry(0x4000_0000, 0xffff_fff8), Entry::Other));
        assert!(matches!(entry(0x100, 0x4000_0000), Entry::Stray(_)));
        assert!(matches!(entry(0x4000_0000, 0x5000_0000), Entry::Other));
        assert!(matches!(
            (entry(0, 0), entry(0x5555_5555, 0x5555_5555)),
            (Entry::Empty, Entry::Empty | Entry::Stray(_) | Entry::Packet(_))
        ));
        assert_eq!(entry(0xaaaa_aaaa, 0xaaaa_aaaa), Entry::Empty);
    }
}
