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
//!
//! What a dump does not hold is an entry too, of which nothing is known: inside of it, and around it up to where blocks of
//! about its size begin and end. The newest packet is only known if what stands behind it shows that it is the newest one.
//!
//! If one of the registers is known, readings that contradict it are none.

use std::fmt;
use std::ops::Range;

use tracewalk::ids::Address;
use tracewalk::protocol::mtb::order::{Dump, Layout, Piece};
use tracewalk::protocol::mtb::{Config, Magic, PACKET_BYTES, Packet};

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

/// What one of the registers says alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Narrowing {
    /// How many bytes the buffer has, a power of two (MASTER.MASK).
    pub(crate) size: Option<u64>,
    /// Where the next packet would be written: the low bits of its address (POSITION.POINTER), and whether the buffer has
    /// wrapped (POSITION.WRAP).
    pub(crate) next: Option<(u32, bool)>,
}

impl Narrowing {
    /// No chip has a larger trace buffer; a register that says so limits nothing.
    const LARGEST_BUFFER: u64 = 4 << 20;

    /// How many packets the buffer has.
    fn packets(self) -> Option<usize> {
        let size = self.size.filter(|size| *size <= Self::LARGEST_BUFFER)?;
        usize::try_from(size / PACKET).ok()
    }
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
    /// What shows that the newest packet is the newest one.
    pub end: Ending,
}

/// What stands behind the newest packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Something that shows that it is the newest one.
    Shown,
    /// Memory that the dump does not hold: newer packets may stand there. If the buffer is larger than what is held, the
    /// next larger one has these bytes as well: addresses, or places in a dump whose address nobody said.
    Unheld(Range<u64>),
    /// A packet that goes on from it, as in a loop.
    GoesOn,
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
    narrowed(dump, Narrowing::default(), reaches)
}

/// The same, if one of the registers is known.
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

/// Where the buffer starts in a dump whose address nobody said, by what the registers say of it: the one place where the
/// packets go on from each other. `None` where there is none, or several.
pub(crate) fn place_by_registers(
    data: &[u8],
    config: &Config,
    reaches: impl Fn(Address, Address) -> bool,
) -> Option<usize> {
    let size = usize::try_from(config.size().bytes()).ok()?;
    let (count, pointer) =
        (size / PACKET_BYTES, usize::try_from(config.pointer()).ok()? % size / PACKET_BYTES);
    let entries = Entries::judge(Dump::new(data, None), Narrowing::default(), reaches);
    // Sums up to each entry: its packets, and how pairs go together.
    let mut sums = vec![(0_i64, 0_i64)];
    for (entry, pair) in entries.entries.iter().zip(&entries.pairs) {
        let (packets, score) = sums.last().copied().unwrap_or_default();
        sums.push((packets + i64::from(entry.packet().is_some()), score + pair.score()));
    }
    // Entries that are all packets: what speaks for their going together.
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
    // Beyond doubt: as good as all of it fits, and anything else breaks once more.
    let packets = i64::try_from(if config.wrapped() { count } else { pointer }).ok()?;
    let (best, start) = best?;
    let [fits, breaks] = [Pair::Fits.score(), Pair::Breaks.score()];
    let is_certain = packets > 3 && best >= (packets - 1) * fits + breaks && second <= best + breaks;
    is_certain.then_some(start * PACKET_BYTES)
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
    /// The dump does not hold it.
    Missing,
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
const PACKET: u64 = PACKET_BYTES as u64;

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
            Self::Empty | Self::Other | Self::Missing => None,
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
    best: Option<(Rank, Shape)>,
    runner_up: Option<(Rank, Shape)>,
}

/// How good a reading is: its score, and whether it has an end that shows.
type Rank = (i64, bool);

impl Ranking {
    /// Takes a reading in. Of equals the first one stays.
    fn offer(&mut self, rank: Rank, shape: Shape) {
        // A buffer that wrapped exactly at its start reads like one that has not.
        if self.best.is_some_and(|(_, best)| best.order() == shape.order()) {
            return;
        }
        if self.best.is_none_or(|(best, _)| rank > best) {
            self.runner_up = self.best.replace((rank, shape));
        } else if self.runner_up.is_none_or(|(second, _)| rank > second) {
            self.runner_up = Some((rank, shape));
        }
    }
}

/// The judged dump.
struct Entries<F> {
    /// What the dump holds, and as much around it as a block of about its size may have.
    entries: Vec<Entry>,
    /// How each entry goes with the one before it; the first one with none.
    pairs: Vec<Pair>,
    /// Where the first entry stands, in packets: from address 0, or from the start of a dump whose address nobody said.
    origin: u64,
    /// How many bytes of the dump stand in front of the first whole packet's place.
    skipped: usize,
    /// How many entries stand in front of what the dump holds.
    before: usize,
    /// How many bytes the dump has up to the end of its last whole packet.
    bytes: usize,
    /// The bytes that the dump holds, in the terms of `origin`.
    held: Vec<Range<u64>>,
    known: Narrowing,
    reaches: F,
}

impl<F: Fn(Address, Address) -> bool> Entries<F> {
    fn judge(dump: Dump<'_>, known: Narrowing, reaches: F) -> Self {
        let address = dump.address.map_or(0, Address::get);
        let first = address.div_ceil(PACKET);
        let skipped = usize::try_from(first * PACKET - address).unwrap_or(0);
        let (chunks, tail) = dump.data.get(skipped..).unwrap_or_default().as_chunks::<PACKET_BYTES>();
        let mut entries = chunks.iter().map(|&chunk| Entry::at(chunk)).collect::<Vec<_>>();
        for hole in dump.holes {
            let from = hole.start.saturating_sub(skipped) / PACKET_BYTES;
            let to = hole.end.saturating_sub(skipped).div_ceil(PACKET_BYTES).min(entries.len());
            entries.get_mut(from..to).unwrap_or_default().fill(Entry::Missing);
        }
        let block = entries.len().next_power_of_two().max(known.packets().unwrap_or(0));
        let before = usize::try_from(first % block as u64).unwrap_or(0);
        entries.splice(..0, std::iter::repeat_n(Entry::Missing, before));
        entries.resize(entries.len().next_multiple_of(block), Entry::Missing);
        let mut judged = Self {
            pairs: vec![Pair::None; entries.len()],
            entries,
            origin: first - before as u64,
            skipped,
            before,
            bytes: dump.data.len() - tail.len(),
            held: held(dump),
            known,
            reaches,
        };
        for second in 1..judged.entries.len() {
            judged.pairs[second] = judged.pair(second - 1, second);
        }
        judged
    }

    /// Where an entry starts, in the terms of `origin`.
    const fn place(&self, entry: usize) -> u64 {
        (self.origin + entry as u64) * PACKET
    }

    /// Which bytes of the dump these entries are.
    fn in_dump(&self, entries: Range<usize>) -> Range<usize> {
        let byte =
            |entry: usize| (entry.saturating_sub(self.before) * PACKET_BYTES + self.skipped).min(self.bytes);
        byte(entries.start)..byte(entries.end)
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
        if self.known.next.is_some_and(|(_, wrapped)| wrapped) {
            return None;
        }
        let mut best = None::<(i64, Shape)>;
        let (mut start, mut sum) = (0, 0_i64);
        for (index, (entry, pair)) in self.entries.iter().zip(&self.pairs).enumerate() {
            // A buffer ends where its block does.
            if self.begins_block(index) {
                sum = 0;
            }
            match entry {
                Entry::Empty | Entry::Other => sum = 0,
                // What stood there may have gone on. A hole counts as one break.
                Entry::Missing if index > 0 && self.entries[index - 1] != Entry::Missing => {
                    sum = (sum + Pair::Breaks.score()).max(0);
                }
                Entry::Missing => {}
                Entry::Packet(_) | Entry::Stray(_) if sum <= 0 => (start, sum) = (index, PACKET_SCORE),
                Entry::Packet(_) | Entry::Stray(_) => sum += pair.score() + PACKET_SCORE,
            }
            if sum > best.map_or(0, |(best, _)| best) && self.may_end(index + 1) {
                best = Some((sum, Shape { start, end: index + 1, oldest: None }));
            }
        }
        let (score, mut shape) = best?;
        // Packets that go together badly at the very start of the dump are the oldest ones all the same.
        let first = (self.before..=shape.start).rev().find(|index| self.begins_block(*index));
        let first = first.unwrap_or(self.before);
        let in_front = self.entries.get(first..shape.start).unwrap_or_default();
        if in_front.iter().all(|entry| entry.packet().is_some()) {
            shape.start = shape.start.min(first);
        }
        Some((score, shape))
    }

    /// Whether the buffer, whose size is known, may begin here and not continue from before.
    fn begins_block(&self, index: usize) -> bool {
        let is_start = |size: usize| (self.origin + index as u64).is_multiple_of(size as u64);
        self.known.packets().is_some_and(is_start)
    }

    /// Whether the next packet of a buffer that has not wrapped may be written here.
    fn may_end(&self, entry: usize) -> bool {
        let is_next = |(pointer, _): (u32, bool)| {
            let pointer = u64::from(pointer) / PACKET;
            // How many of the address' bits the register has is in no register.
            let bits = (pointer + 1).next_power_of_two();
            (self.origin + entry as u64) % bits == pointer
        };
        self.known.next.is_none_or(is_next)
    }

    /// The places where a buffer may lie: blocks of a power of two, aligned to their size.
    fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<F> {
        let (count, origin) = (self.entries.len(), self.origin);
        let sizes = std::iter::successors(Some(SMALLEST_BUFFER), |size| size.checked_mul(2));
        let known = self.known.packets();
        let sizes = sizes.take_while(move |&size| size <= count);
        sizes.filter(move |size| known.is_none_or(|known| known == *size)).flat_map(move |size| {
            let first = usize::try_from(origin.wrapping_neg() & (size as u64 - 1)).unwrap_or(count);
            (first..count).step_by(size).map(move |start| start..start + size).filter(move |b| b.end <= count)
        })
    }

    /// The two best readings of a block as a buffer that has wrapped.
    fn wrapped(&self, block: Range<usize>) -> [Option<(i64, Shape)>; 2] {
        if self.known.next.is_some_and(|(_, wrapped)| !wrapped) {
            return [None; 2];
        }
        let entries = self.entries.get(block.clone()).unwrap_or_default();
        let is_full = entries.iter().all(|entry| entry.packet().is_some() || *entry == Entry::Missing);
        // A block of which one half is missing is no better than the other half.
        let has_packets = |half: &[Entry]| half.iter().any(|entry| entry.packet().is_some());
        if !is_full || !entries.chunks(block.len() / 2).all(has_packets) {
            return [None; 2];
        }
        let packets = entries.iter().filter(|entry| entry.packet().is_some()).count();
        let packets = i64::try_from(packets).unwrap_or(i64::MAX).saturating_mul(PACKET_SCORE);
        let seam = self.pair(block.end - 1, block.start);
        let pairs = self.pairs.get(block.start + 1..block.end).unwrap_or_default();
        let round = std::iter::once(&seam).chain(pairs);
        let total = packets.saturating_add(round.clone().map(|pair| pair.score()).sum::<i64>());
        if let Some((pointer, _)) = self.known.next {
            let index = usize::try_from(u64::from(pointer) / PACKET).unwrap_or(0) % block.len();
            let score = round.clone().nth(index).map_or(0, |pair| pair.score());
            let shape = Shape { start: block.start, end: block.end, oldest: Some(block.start + index) };
            return [Some((total - score, shape)), None];
        }
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

    /// What stands behind the newest packet of a reading.
    fn end(&self, shape: Shape) -> Ending {
        let Shape { start, end, oldest } = shape;
        let at = |entry: usize| self.entries.get(entry).copied().unwrap_or(Entry::Missing);
        let oldest = oldest.filter(|oldest| *oldest != start);
        let is_known = self.known.next.is_some();
        let is_unheld = match oldest {
            // Where the next packet would be written is known: whether the one before is there, too.
            None if is_known || self.begins_block(end) => at(end - 1) == Entry::Missing,
            // It ends where what was looked at ends: at the end of a buffer, or in the midst of a larger one.
            None => at(end) == Entry::Missing || at(end).packet().is_some() && self.pairs[end] == Pair::Fits,
            Some(oldest) => {
                at(oldest) == Entry::Missing || at(oldest - 1) == Entry::Missing || self.is_part(start..end)
            }
        };
        let goes_on = match oldest {
            _ if is_unheld => return Ending::Unheld(self.unheld(start..end)),
            None => false,
            Some(oldest) => !is_known && self.pairs[oldest] != Pair::Breaks,
        };
        if goes_on { Ending::GoesOn } else { Ending::Shown }
    }

    /// Whether packets do not go round from the end of a block to its start, so that it may be a part of a larger buffer.
    fn is_part(&self, block: Range<usize>) -> bool {
        let behind = self.entries.get(block.end).copied().unwrap_or(Entry::Missing);
        // It is all of a buffer of the size that is known.
        if self.known.packets() == Some(block.len()) {
            return false;
        }
        self.pair(block.end - 1, block.start) == Pair::Breaks && behind == Entry::Missing
    }

    /// Whether something shows where the oldest packet is: it does not go on from the newest one.
    fn shows_oldest(&self, shape: Shape) -> bool {
        let breaks = |oldest: usize| oldest > shape.start && self.pairs[oldest] == Pair::Breaks;
        shape.oldest.map_or_else(|| self.end(shape) == Ending::Shown, breaks)
    }

    /// What the dump does not hold of the smallest block around these entries, from their end on; or else the other half
    /// of a block that is twice as large.
    fn unheld(&self, entries: Range<usize>) -> Range<u64> {
        let (first, last) = (self.origin + entries.start as u64, self.origin + entries.end as u64 - 1);
        let bits = u64::BITS - (first ^ last).leading_zeros();
        let size = 1_u64.checked_shl(bits).unwrap_or(1 << 63);
        let start = first & !(size - 1);
        let other = start ^ size;
        let bytes = |range: Range<u64>| range.start.saturating_mul(PACKET)..range.end.saturating_mul(PACKET);
        let behind = self.missing(bytes(last + 1..start.saturating_add(size)));
        let in_front = || self.missing(bytes(start..first));
        let inside = behind.into_iter().next().or_else(|| in_front().pop());
        inside.unwrap_or_else(|| bytes(other..other.saturating_add(size)))
    }

    /// Writes a reading out.
    fn reading(&self, shape: Shape) -> Reading {
        let Shape { start, end, oldest } = shape;
        let from = oldest.unwrap_or(start);
        let mut layout = Layout::default();
        for part in [from..end, start..from] {
            layout.missing.extend(self.missing(self.place(part.start)..self.place(part.end)));
            let mut next = part.start;
            for run in self.entries[part]
                .chunk_by(|one, other| (*one == Entry::Missing) == (*other == Entry::Missing))
            {
                let entries = next..next + run.len();
                next = entries.end;
                if run.first() == Some(&Entry::Missing) {
                    continue;
                }
                let before = if entries.start == start { end } else { entries.start } - 1;
                let goes_on = entries.start != start || !self.is_part(start..end);
                let continues = entries.start != from && self.entries[before] != Entry::Missing && goes_on;
                layout.pieces.push(Piece { bytes: self.in_dump(entries), continues });
            }
        }
        let neighbours = (start + 1..end).filter(|&second| second != from);
        let mut found = neighbours.map(|second| self.pairs[second]).collect::<Vec<_>>();
        if from > start {
            found.push(self.pair(end - 1, start));
        }
        let count = |kind| found.iter().filter(|&&pair| pair == kind).count();
        let at_wrap = if from > start { self.pairs[from] } else { self.pair(end - 1, start) };
        let outside = self.entries.iter().enumerate().filter(|&(index, _)| !(start..end).contains(&index));
        let mut packets = self.entries[start..end].iter().filter_map(|entry| entry.packet());
        let first = packets.next();
        // Of packets that are all the same any is the newest one.
        let is_one_packet = first.is_some() && packets.clone().all(|packet| Some(packet) == first);
        let evidence = Evidence {
            bytes: self.in_dump(start..end),
            wrapped: shape.oldest.is_some(),
            packets: packets.count() + usize::from(first.is_some()),
            fits: count(Pair::Fits),
            restarts: count(Pair::Restarts),
            breaks: count(Pair::Breaks),
            breaks_at_wrap: at_wrap == Pair::Breaks,
            unwritten: outside.filter(|(_, entry)| **entry == Entry::Empty).count(),
            end: if is_one_packet { Ending::Shown } else { self.end(shape) },
        };
        layout.lost_newest = matches!(evidence.end, Ending::Unheld(_));
        Reading { layout, evidence }
    }

    /// What the dump does not hold of these bytes, in the terms of `origin`.
    fn missing(&self, Range { start: mut from, end }: Range<u64>) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        for held in self.held.iter().filter(|held| held.start < end) {
            if held.end <= from {
                continue;
            }
            if from < held.start {
                missing.push(from..held.start);
            }
            from = held.end;
        }
        if from < end {
            missing.push(from..end);
        }
        missing
    }
}

/// The bytes that a dump holds, by their addresses, or by their places in it.
fn held(dump: Dump<'_>) -> Vec<Range<u64>> {
    let start = dump.address.map_or(0, Address::get);
    let mut from = start;
    let mut held = Vec::new();
    for hole in dump.holes {
        held.push(from..start + hole.start as u64);
        from = start + hole.end as u64;
    }
    held.push(from..start + dump.data.len() as u64);
    held
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

    /// A loop of four packets over and over, with a buffer of 8 in 32 entries of them.
    #[test]
    fn one_register_alone_narrows_what_is_found() {
        let lap = [(0x10, 0x20), (0x20, 0x30), (0x30, 0x40), (0x40, 0x10)];
        let data = lap.iter().cycle().take(32).flat_map(|&entry| bytes_of(entry)).collect::<Vec<_>>();
        let dump = Dump::new(&data, Some(Address::new(0x2000_0000)));
        let found = |known| narrowed(dump, known, |from, to| from == to).expect("there are packets").best;
        let by_size = found(Narrowing { size: Some(64), next: None }).evidence;
        assert_eq!(by_size.bytes.len(), 64);
        // The newest packet is the one before the pointer, in a loop too.
        let next = |pointer, wrapped| found(Narrowing { size: None, next: Some((pointer, wrapped)) });
        let reading = next(0x28, true);
        assert_eq!((reading.evidence.bytes.clone(), reading.evidence.end), (0..256, Ending::Shown));
        assert_eq!(reading.layout.pieces.first().map(|piece| piece.bytes.start), Some(0x28));
        let reading = next(0x68, false);
        assert_eq!((reading.evidence.wrapped, reading.evidence.bytes.end % 0x80), (false, 0x68));
        assert_eq!(reading.evidence.end, Ending::Shown);
        // No packet ends there.
        let nothing = Narrowing { size: None, next: Some((0x1000, false)) };
        assert_eq!(narrowed(dump, nothing, |from, to| from == to), None);
    }

    /// What is found where code runs nowhere by itself.
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
