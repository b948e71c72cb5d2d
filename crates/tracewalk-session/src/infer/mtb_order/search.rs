//! The readings of a dump whose entries were judged, and the best of them.

use std::ops::Range;

use tracewalk::ids::Address;
use tracewalk::protocol::mtb::order::{Dump, Layout, Piece};
use tracewalk::protocol::mtb::{Magic, PACKET_BYTES};

use super::entry::{Entry, PACKET, PACKET_SCORE, Pair};
use super::evidence::{Ending, Evidence};
use super::model::{Narrowing, Reading};

/// The smallest buffer, in packets.
pub(super) const SMALLEST_BUFFER: usize = 2;

/// The places of the packets, in entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// The first entry.
    pub(super) start: usize,
    /// The entry after the last one.
    pub(super) end: usize,
    /// The oldest entry; `None` if the buffer has not wrapped and the first entry is the oldest.
    pub(super) oldest: Option<usize>,
}

impl Shape {
    pub(super) fn order(self) -> [usize; 3] {
        [self.start, self.end, self.oldest.unwrap_or(self.start)]
    }
}

/// The best two readings so far.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    pub(super) best: Option<(Rank, Shape)>,
    pub(super) runner_up: Option<(Rank, Shape)>,
}

/// The rank of a reading: its score, and whether its oldest packet is evident.
pub(super) type Rank = (i64, bool);

impl Ranking {
    /// Adds a reading. Among equals the first one stays.
    pub(super) fn offer(&mut self, rank: Rank, shape: Shape) {
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
pub(super) struct Entries<F> {
    /// The entries of the dump, and of the memory around it up to a block of about its size.
    pub(super) entries: Vec<Entry>,
    /// How each entry fits the one before it; `None` for the first.
    pub(super) pairs: Vec<Pair>,
    /// The place of the first entry, in packets: from address 0, or from the start of a dump of unknown address.
    pub(super) origin: u64,
    /// How many bytes of the dump precede the first whole packet.
    pub(super) skipped: usize,
    /// How many entries precede the dump's first.
    pub(super) before: usize,
    /// The size of the dump in bytes, up to the end of its last whole packet.
    pub(super) bytes: usize,
    /// The bytes that the dump holds: addresses, or places in a dump of unknown address.
    pub(super) held: Vec<Range<u64>>,
    pub(super) known: Narrowing,
    pub(super) reaches: F,
}

impl<F: Fn(Address, Address) -> bool> Entries<F> {
    pub(super) fn judge(dump: Dump<'_>, known: Narrowing, reaches: F) -> Self {
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

    /// The address of an entry, or its place in a dump of unknown address.
    pub(super) const fn place(&self, entry: usize) -> u64 {
        (self.origin + entry as u64) * PACKET
    }

    /// The bytes of these entries in the dump.
    pub(super) fn in_dump(&self, entries: Range<usize>) -> Range<usize> {
        let byte =
            |entry: usize| (entry.saturating_sub(self.before) * PACKET_BYTES + self.skipped).min(self.bytes);
        byte(entries.start)..byte(entries.end)
    }

    /// How two entries fit together.
    pub(super) fn pair(&self, first: usize, second: usize) -> Pair {
        let packet = |index: usize| self.entries.get(index).copied().and_then(Entry::packet);
        let (Some(first), Some(second)) = (packet(first), packet(second)) else { return Pair::None };
        let fits = match (Magic::at(first.destination()), Magic::at(second.source())) {
            _ if second.start() => return Pair::Restarts,
            // The two halves of a return.
            (Some(command), Some(done)) => command == done,
            // A second half, after one that was overtaken by a more urgent exception.
            (None, Some(_)) => first.atomic() && first.source() == second.source(),
            (Some(_), None) => false,
            (None, None) => {
                let overtaken = first.atomic() && second.atomic() && first.source() == second.source();
                // If nothing ran in between, no code needs to be there either.
                let at_once = second.atomic() && first.destination() == second.source();
                overtaken || at_once || (self.reaches)(first.destination(), second.source())
            }
        };
        if fits { Pair::Fits } else { Pair::Breaks }
    }

    /// The best stretch of a buffer that has not wrapped.
    pub(super) fn not_wrapped(&self) -> Option<(i64, Shape)> {
        if self.known.next.is_some_and(|(_, wrapped)| wrapped) {
            return None;
        }
        let mut best = None::<(i64, Shape)>;
        let (mut start, mut sum) = (0, 0_i64);
        for (index, (entry, pair)) in self.entries.iter().zip(&self.pairs).enumerate() {
            // A buffer ends at the end of its block.
            if self.begins_block(index) {
                sum = 0;
            }
            match entry {
                Entry::Empty | Entry::Other => sum = 0,
                // A missing entry may have continued the stretch. A hole counts as one break.
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
        // Packets before the stretch, from the start of its block or of the dump, are the oldest ones, however badly
        // they fit.
        let first = (self.before..=shape.start).rev().find(|index| self.begins_block(*index));
        let first = first.unwrap_or(self.before);
        let in_front = self.entries.get(first..shape.start).unwrap_or_default();
        if in_front.iter().all(|entry| entry.packet().is_some()) {
            shape.start = shape.start.min(first);
        }
        Some((score, shape))
    }

    /// Whether a buffer of the known size may begin here; false if the size is unknown.
    pub(super) fn begins_block(&self, index: usize) -> bool {
        let is_start = |size: usize| (self.origin + index as u64).is_multiple_of(size as u64);
        self.known.packets().is_some_and(is_start)
    }

    /// Whether the next packet of a buffer that has not wrapped may be written here.
    pub(super) fn may_end(&self, entry: usize) -> bool {
        let is_next = |(pointer, _): (u32, bool)| {
            let pointer = u64::from(pointer) / PACKET;
            // No register states how many address bits the pointer has.
            let bits = (pointer + 1).next_power_of_two();
            (self.origin + entry as u64) % bits == pointer
        };
        self.known.next.is_none_or(is_next)
    }

    /// The places where a buffer may lie: blocks of a power of two, aligned to their size.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<F> {
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
    pub(super) fn wrapped(&self, block: Range<usize>) -> [Option<(i64, Shape)>; 2] {
        if self.known.next.is_some_and(|(_, wrapped)| !wrapped) {
            return [None; 2];
        }
        let entries = self.entries.get(block.clone()).unwrap_or_default();
        let is_full = entries.iter().all(|entry| entry.packet().is_some() || *entry == Entry::Missing);
        // A block with an empty half is no better than its other half.
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

    /// The memory after the newest packet of a reading.
    pub(super) fn end(&self, shape: Shape) -> Ending {
        let Shape { start, end, oldest } = shape;
        let at = |entry: usize| self.entries.get(entry).copied().unwrap_or(Entry::Missing);
        let oldest = oldest.filter(|oldest| *oldest != start);
        let is_known = self.known.next.is_some();
        let is_unheld = match oldest {
            // The place of the next packet is known; the packet before it may be missing.
            None if is_known || self.begins_block(end) => at(end - 1) == Entry::Missing,
            // The stretch may end only because the search does: at the end of a buffer, or in the middle of a larger
            // one.
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

    /// Whether a block may be a part of a larger buffer: its last packet does not continue at its first one, and the
    /// dump does not hold the memory after it.
    pub(super) fn is_part(&self, block: Range<usize>) -> bool {
        let after = self.entries.get(block.end).copied().unwrap_or(Entry::Missing);
        // A block of the known size is the whole buffer.
        if self.known.packets() == Some(block.len()) {
            return false;
        }
        self.pair(block.end - 1, block.start) == Pair::Breaks && after == Entry::Missing
    }

    /// Whether the place of the oldest packet is evident, because it does not continue the newest one.
    pub(super) fn shows_oldest(&self, shape: Shape) -> bool {
        let breaks = |oldest: usize| oldest > shape.start && self.pairs[oldest] == Pair::Breaks;
        shape.oldest.map_or_else(|| self.end(shape) == Ending::Shown, breaks)
    }

    /// The bytes after these entries that the dump does not hold, in the smallest block around them; else those before
    /// them; else the other half of a block twice as large.
    pub(super) fn unheld(&self, entries: Range<usize>) -> Range<u64> {
        let (first, last) = (self.origin + entries.start as u64, self.origin + entries.end as u64 - 1);
        let bits = u64::BITS - (first ^ last).leading_zeros();
        let size = 1_u64.checked_shl(bits).unwrap_or(1 << 63);
        let start = first & !(size - 1);
        let other = start ^ size;
        let bytes = |range: Range<u64>| range.start.saturating_mul(PACKET)..range.end.saturating_mul(PACKET);
        let after = self.missing(bytes(last + 1..start.saturating_add(size)));
        let in_front = || self.missing(bytes(start..first));
        let inside = after.into_iter().next().or_else(|| in_front().pop());
        inside.unwrap_or_else(|| bytes(other..other.saturating_add(size)))
    }

    /// Converts a shape to a reading.
    pub(super) fn reading(&self, shape: Shape) -> Reading {
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
        // If all packets are equal, any of them is the newest.
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

    /// The bytes in this range that the dump does not hold, in the form of `held`.
    pub(super) fn missing(&self, Range { start: mut from, end }: Range<u64>) -> Vec<Range<u64>> {
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

/// The bytes that a dump holds, by their addresses, or by their places in the dump.
pub(super) fn held(dump: Dump<'_>) -> Vec<Range<u64>> {
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
