//! Finding the packets in a dump without registers.
//!
//! ```text
//! judge each entry: empty, a packet, neither
//! judge each pair of neighbours: does the second packet begin where the first one went?
//! reading 1: the longest stretch of packets that fit                     (a buffer that has not wrapped)
//! reading 2: for each aligned block of a power of two that is full of packets: the packets from the pair that fits
//!            worst on, round to it again                                  (a buffer that has)
//! answer with the reading in which most fits, and the next best
//! ```

use std::fmt;
use std::ops::Range;

use tracewalk::ids::Address;
use tracewalk::protocol::mtb::order::{Dump, Layout, Piece};
use tracewalk::protocol::mtb::{Magic, PACKET_BYTES, Packet};

/// The smallest buffer, in packets.
const SMALLEST_BUFFER: usize = 2;
/// How far code runs without a taken branch, where no image tells. Long stretches are rare, and the shorter the limit,
/// the fewer pairs fit by chance.
const USUAL_REACH: u64 = 2048;

/// What a search without registers found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guess {
    /// The best reading.
    pub best: Reading,
    /// The second best; `None` where there is only one. Where it is nearly as good, the registers are needed.
    pub runner_up: Option<Reading>,
}

/// One way to read a dump, and what speaks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Where the packets stand.
    pub layout: Layout,
    /// What speaks for it and against it.
    pub evidence: Evidence,
}

/// What speaks for a reading and against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The bytes of the dump taken for packets, or for the buffer where it has wrapped.
    pub bytes: Range<usize>,
    /// Whether the buffer has wrapped.
    pub wrapped: bool,
    /// How many packets.
    pub packets: usize,
    /// Neighbours of which the second begins where the first went.
    pub fits: usize,
    /// Neighbours of which the second says that tracing started there (S).
    pub restarts: usize,
    /// Neighbours that do not go together, nor say why.
    pub breaks: usize,
    /// Whether the place where oldest and newest packet meet is such a break, as it is where a buffer has wrapped
    /// unless it is by chance.
    pub breaks_at_wrap: bool,
    /// Entries outside these bytes that were never written: zeros, or a pattern that is no packet.
    pub unwritten: usize,
}

impl Evidence {
    /// A number to compare readings by.
    #[must_use]
    pub fn score(&self) -> i64 {
        let count = |pairs: usize| i64::try_from(pairs).unwrap_or(i64::MAX);
        let entries = count(self.packets).saturating_mul(PACKET_SCORE);
        let fits = count(self.fits).saturating_mul(Pair::Fits.score());
        let breaks = count(self.breaks).saturating_mul(Pair::Breaks.score());
        entries.saturating_add(fits).saturating_add(breaks)
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, packets, fits, restarts, breaks, .. } = self;
        write!(f, "{packets} packets in bytes 0x{:x}..0x{:x}", bytes.start, bytes.end)?;
        f.write_str(match (self.wrapped, self.breaks_at_wrap) {
            (false, _) => ", not wrapped",
            (true, true) => ", wrapped, with a break where the newest meets the oldest",
            (true, false) => ", wrapped, without a break that shows where",
        })?;
        write!(f, "; {fits} continue the one before, {restarts} start anew, {breaks} do neither")
    }
}

/// Finds the packets by what they say, or `None` where nothing looks like a packet.
///
/// `reaches(from, to)` tells whether code that runs from `from` can come to `to` without a taken branch; with a program
/// at hand flow can tell, without one [`within_reach`] is a rule of thumb.
pub fn by_evidence(dump: Dump<'_>, reaches: impl Fn(Address, Address) -> bool) -> Option<Guess> {
    let entries = Entries::judge(dump, reaches);
    let mut ranking = Ranking::default();
    if let Some(reading) = entries.not_wrapped() {
        ranking.offer(reading);
    }
    for block in entries.blocks(dump.address) {
        for reading in entries.wrapped(block).into_iter().flatten() {
            ranking.offer(reading);
        }
    }
    let best = entries.reading(ranking.best?.1);
    Some(Guess { best, runner_up: ranking.runner_up.map(|(_, shape)| entries.reading(shape)) })
}

/// Whether straight code from `from` may come to `to`, judged by the distance alone.
#[must_use]
pub fn within_reach(from: Address, to: Address) -> bool {
    to.offset_from(from).is_some_and(|bytes| bytes <= USUAL_REACH)
}

/// What an entry of eight bytes holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// Never written: zeros, or the same word twice where no code can be.
    Empty,
    /// Both addresses may hold code.
    Packet(Packet),
    /// Only one of the two may: the way to a crash, or its consequence.
    Stray(Packet),
    /// Neither may.
    Other,
}

/// How two neighbours go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pair {
    Fits,
    /// The second packet starts anew.
    Restarts,
    Breaks,
    /// One of them is no packet.
    None,
}

const PACKET_SCORE: i64 = 1;

impl Pair {
    const fn score(self) -> i64 {
        match self {
            Self::Fits => 2,
            Self::Restarts | Self::None => 0,
            // One break among packets that fit must not end a stretch, one among packets that do not should.
            Self::Breaks => -3,
        }
    }
}

impl Entry {
    fn at(bytes: [u8; PACKET_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        let [first, second] = [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])];
        let packet = Packet::from_words(first, second);
        let commanded = |address, allowed| allowed && Magic::at(address).is_some();
        let source = may_hold_code(packet.source()) || commanded(packet.source(), packet.atomic());
        let destination =
            may_hold_code(packet.destination()) || commanded(packet.destination(), !packet.atomic());
        // A branch may go anywhere, but it stands in code; an exception may come anywhere, but it goes to code.
        let possible = if packet.atomic() { destination } else { source };
        match (first == second, source && destination) {
            (true, _) if first == 0 => Self::Empty,
            (_, true) => Self::Packet(packet),
            (false, false) if possible => Self::Stray(packet),
            (true, false) => Self::Empty,
            (false, false) => Self::Other,
        }
    }

    const fn packet(self) -> Option<Packet> {
        match self {
            Self::Packet(packet) | Self::Stray(packet) => Some(packet),
            Self::Empty | Self::Other => None,
        }
    }
}

/// Whether the M profile's memory map lets code be executed at an address: not in the peripherals, the devices and the
/// system (ARMv6-M Architecture Reference Manual, DDI 0419E, B3.1).
fn may_hold_code(address: Address) -> bool {
    matches!(address.get(), 0x0000_0000..=0x3fff_ffff | 0x6000_0000..=0x9fff_ffff)
}

/// Where the packets stand, before it is written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// The first entry.
    start: usize,
    /// The entry behind the last one.
    end: usize,
    /// The oldest entry; `None` where the buffer has not wrapped and it is the first one.
    oldest: Option<usize>,
}

impl Shape {
    fn order(self) -> [usize; 3] {
        [self.start, self.end, self.oldest.unwrap_or(self.start)]
    }
}

/// The best two readings so far.
#[derive(Debug, Default)]
struct Ranking {
    best: Option<(i64, Shape)>,
    runner_up: Option<(i64, Shape)>,
}

impl Ranking {
    /// Takes a reading in. Of equals the first one stays.
    fn offer(&mut self, (score, shape): (i64, Shape)) {
        // A buffer that wrapped exactly at its start reads like one that has not.
        if self.best.is_some_and(|(_, best)| best.order() == shape.order()) {
            return;
        }
        if self.best.is_none_or(|(best, _)| score > best) {
            self.runner_up = self.best.replace((score, shape));
        } else if self.runner_up.is_none_or(|(second, _)| score > second) {
            self.runner_up = Some((score, shape));
        }
    }
}

/// The judged dump.
struct Entries<F> {
    entries: Vec<Entry>,
    /// How each entry goes with the one before it; the first one with none.
    pairs: Vec<Pair>,
    reaches: F,
}

impl<F: Fn(Address, Address) -> bool> Entries<F> {
    fn judge(dump: Dump<'_>, reaches: F) -> Self {
        let (chunks, _tail) = dump.data.as_chunks::<PACKET_BYTES>();
        let entries = chunks.iter().map(|&chunk| Entry::at(chunk)).collect::<Vec<_>>();
        let mut judged = Self { pairs: vec![Pair::None; entries.len()], entries, reaches };
        for second in 1..judged.entries.len() {
            judged.pairs[second] = judged.pair(second - 1, second);
        }
        judged
    }

    /// How two entries go together.
    fn pair(&self, first: usize, second: usize) -> Pair {
        let packet = |index: usize| self.entries.get(index).copied().and_then(Entry::packet);
        let (Some(first), Some(second)) = (packet(first), packet(second)) else { return Pair::None };
        let fits = match (Magic::at(first.destination()), Magic::at(second.source())) {
            _ if second.start() => return Pair::Restarts,
            // The two halves of a return.
            (Some(command), Some(done)) => command == done,
            // A second half, behind one that was overtaken by a more urgent exception.
            (None, Some(_)) => first.atomic() && first.source() == second.source(),
            (Some(_), None) => false,
            (None, None) => {
                let overtaken = first.atomic() && second.atomic() && first.source() == second.source();
                // Where nothing ran in between, no code needs to be there either.
                let at_once = second.atomic() && first.destination() == second.source();
                overtaken || at_once || (self.reaches)(first.destination(), second.source())
            }
        };
        if fits { Pair::Fits } else { Pair::Breaks }
    }

    /// The best stretch of a buffer that has not wrapped.
    fn not_wrapped(&self) -> Option<(i64, Shape)> {
        let mut best = None::<(i64, Shape)>;
        let (mut start, mut sum) = (0, 0_i64);
        for (index, (entry, pair)) in self.entries.iter().zip(&self.pairs).enumerate() {
            match entry {
                Entry::Empty | Entry::Other => sum = 0,
                Entry::Packet(_) | Entry::Stray(_) if sum <= 0 => (start, sum) = (index, PACKET_SCORE),
                Entry::Packet(_) | Entry::Stray(_) => sum += pair.score() + PACKET_SCORE,
            }
            if sum > best.map_or(0, |(best, _)| best) {
                best = Some((sum, Shape { start, end: index + 1, oldest: None }));
            }
        }
        let (score, mut shape) = best?;
        // Packets that go together badly at the very start of the dump are the oldest ones all the same.
        if self.entries.iter().take(shape.start).all(|entry| entry.packet().is_some()) {
            shape.start = 0;
        }
        Some((score, shape))
    }

    /// The places where a buffer may lie: blocks of a power of two, aligned to their size.
    fn blocks(&self, address: Option<Address>) -> impl Iterator<Item = Range<usize>> + use<F> {
        let count = self.entries.len();
        // An unaligned dump is rare enough to be taken as aligned to packets.
        let before = address.map_or(0, |address| address.get() / PACKET_BYTES as u64);
        let sizes = std::iter::successors(Some(SMALLEST_BUFFER), |size| size.checked_mul(2));
        sizes.take_while(move |&size| size <= count).flat_map(move |size| {
            let first = usize::try_from(before.wrapping_neg() & (size as u64 - 1)).unwrap_or(count);
            (first..count).step_by(size).map(move |start| start..start + size).filter(move |b| b.end <= count)
        })
    }

    /// The two best readings of a block as a buffer that has wrapped.
    fn wrapped(&self, block: Range<usize>) -> [Option<(i64, Shape)>; 2] {
        let full = self
            .entries
            .get(block.clone())
            .filter(|entries| entries.iter().all(|entry| entry.packet().is_some()));
        if full.is_none() {
            return [None; 2];
        }
        let seam = self.pair(block.end - 1, block.start);
        let pairs = self.pairs.get(block.start + 1..block.end).unwrap_or_default();
        let round = std::iter::once(&seam).chain(pairs);
        let total = round.clone().map(|pair| pair.score() + PACKET_SCORE).sum::<i64>();
        let [mut worst, mut second] = [None::<(i64, usize)>; 2];
        for (index, pair) in round.enumerate() {
            let this = Some((pair.score(), block.start + index));
            if worst.is_none_or(|(worst, _)| pair.score() < worst) {
                (worst, second) = (this, worst);
            } else if second.is_none_or(|(second, _)| pair.score() < second) {
                second = this;
            }
        }
        [worst, second].map(|cut| {
            let (score, oldest) = cut?;
            Some((total - score, Shape { start: block.start, end: block.end, oldest: Some(oldest) }))
        })
    }

    /// Writes a reading out.
    fn reading(&self, shape: Shape) -> Reading {
        let Shape { start, end, oldest } = shape;
        let oldest = oldest.unwrap_or(start);
        let pieces = [oldest..end, start..oldest].into_iter().filter(|piece| !piece.is_empty());
        let pieces = pieces.enumerate().map(|(index, piece)| Piece {
            bytes: piece.start * PACKET_BYTES..piece.end * PACKET_BYTES,
            continues: index > 0,
        });
        let neighbours = (start + 1..end).filter(|&second| second != oldest);
        let mut found = neighbours.map(|second| self.pairs[second]).collect::<Vec<_>>();
        if oldest > start {
            found.push(self.pair(end - 1, start));
        }
        let count = |kind| found.iter().filter(|&&pair| pair == kind).count();
        let at_wrap = if oldest > start { self.pairs[oldest] } else { self.pair(end - 1, start) };
        let outside = self.entries.iter().enumerate().filter(|&(index, _)| !(start..end).contains(&index));
        let evidence = Evidence {
            bytes: start * PACKET_BYTES..end * PACKET_BYTES,
            wrapped: shape.oldest.is_some(),
            packets: self.entries[start..end].iter().filter(|entry| entry.packet().is_some()).count(),
            fits: count(Pair::Fits),
            restarts: count(Pair::Restarts),
            breaks: count(Pair::Breaks),
            breaks_at_wrap: at_wrap == Pair::Breaks,
            unwritten: outside.filter(|(_, entry)| **entry == Entry::Empty).count(),
        };
        Reading { layout: Layout { pieces: pieces.collect(), missing: 0 }, evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet from one address to another.
    fn bytes_of((source, destination): (u32, u32)) -> [u8; PACKET_BYTES] {
        let [a, b, c, d] = source.to_le_bytes();
        let [e, f, g, h] = destination.to_le_bytes();
        [a, b, c, d, e, f, g, h]
    }

    /// What is found where code runs nowhere by itself.
    fn found(entries: &[(u32, u32)]) -> Guess {
        let data = entries.iter().flat_map(|&entry| bytes_of(entry)).collect::<Vec<_>>();
        by_evidence(Dump { data: &data, address: None }, |from, to| from == to).expect("there are packets")
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
    };

    #[test]
    fn packets_and_what_fits_speak_for_a_reading_and_breaks_against_it() {
        assert_eq!(SEEN.score(), 10 + 6 * 2 - 2 * 3);
    }

    #[test]
    fn evidence_is_told_with_how_the_buffer_lies() {
        let told = |wrapped, breaks_at_wrap| Evidence { wrapped, breaks_at_wrap, ..SEEN }.to_string();
        let rest = "; 6 continue the one before, 1 start anew, 2 do neither";
        let start = "10 packets in bytes 0x10..0x60";
        assert_eq!(told(false, false), format!("{start}, not wrapped{rest}"));
        let with = ", wrapped, with a break where the newest meets the oldest";
        assert_eq!(told(true, true), format!("{start}{with}{rest}"));
        let without = ", wrapped, without a break that shows where";
        assert_eq!(told(true, false), format!("{start}{without}{rest}"));
    }

    #[test]
    fn one_reading_is_offered_once_and_the_first_of_equals_stays() {
        let mut ranking = Ranking::default();
        let from = |start, oldest| Shape { start, end: 8, oldest };
        ranking.offer((5, from(0, None)));
        // The same, as a buffer that wrapped at its start.
        ranking.offer((9, from(0, Some(0))));
        assert_eq!((ranking.best, ranking.runner_up), (Some((5, from(0, None))), None));
        ranking.offer((5, from(1, None)));
        ranking.offer((5, from(2, None)));
        assert_eq!(ranking.runner_up, Some((5, from(1, None))));
        ranking.offer((6, from(3, None)));
        assert_eq!((ranking.best, ranking.runner_up), (Some((6, from(3, None))), Some((5, from(0, None)))));
    }

    #[test]
    fn a_stretch_begins_behind_the_packets_that_do_not_go_together() {
        // Nothing, packets that break three times, and five that go on.
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
        // Where there is nothing in front, they are older than the others.
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
