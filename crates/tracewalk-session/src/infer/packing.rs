//! How a buffer's bytes are packed: the container, and the start of its frames.
//!
//! Frames at a wrong place name sources and reserved IDs at random. With a wrong container, no source synchronises and
//! continues without errors.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use tracewalk::frame::{FRAME_BYTES, FSYNC, FrameAlignment, Framing, HSYNC};
use tracewalk::ids::TraceId;
use tracewalk::program::Program;
use tracewalk::protocol::mtb::order;
use tracewalk_analysis::drive::Stretch;
use tracewalk_input::capture::Container;

use super::finding::{Answer, Certainty, Finding};
use super::itm;
use super::mtb_order;
use super::processor::Unit;
use super::source::recognise;
use crate::contents::Sample;
use crate::frames::Frames;

/// How much of a buffer is examined. Shorter heads are tried if nothing is recognised, because the scan does not find
/// frames again after lost bytes while their start is unknown.
const HEADS: [usize; 4] = [1 << 16, 1 << 13, 1 << 12, 1 << 11];

/// The number of sources that may be of unknown protocols.
pub(crate) const STRANGERS: usize = 2;

/// The largest Micro Trace Buffer of a chip, with the memory beside it.
const LARGEST_MTB: usize = 16 << 20;

/// A way in which bytes may be packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// CoreSight frames.
    Frames(Framing),
    /// One source's bytes.
    Raw,
    /// A Micro Trace Buffer's memory.
    Mtb,
}

/// The evidence for a packing.
#[derive(Clone, Debug)]
struct Evidence {
    packing: Packing,
    /// The number of sources that have bytes.
    sources: usize,
    /// The number of sources that are recognised.
    recognised: usize,
    packets: u64,
    /// The errors in those packets.
    cost: u64,
    /// The number of bytes of reserved IDs, and in no frame.
    disorder: u64,
    /// Whether an FSYNC falls inside the frames, which is impossible.
    contradicts_sync: bool,
    /// The first bytes of each source.
    samples: BTreeMap<TraceId, Sample>,
}

impl Packing {
    /// The container.
    pub(crate) const fn container(self) -> Container {
        match self {
            Self::Frames(Framing::Buffer) => Container::Frames,
            Self::Frames(Framing::Port | Framing::PortFrom(_)) => Container::TracePort,
            Self::Raw => Container::Raw,
            Self::Mtb => Container::Mtb,
        }
    }

    /// The framing, if there are frames.
    pub(crate) const fn framing(self) -> Option<Framing> {
        match self {
            Self::Frames(framing) => Some(framing),
            Self::Raw | Self::Mtb => None,
        }
    }
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frames(Framing::PortFrom(start)) => {
                write!(f, "{}, {start}", self.container())
            }
            _ => self.container().fmt(f),
        }
    }
}

impl Evidence {
    /// The key by which packings are compared: the smaller, the likelier.
    fn rank(&self) -> (bool, bool, u64, u64, Reverse<u64>) {
        (self.recognised == 0, self.contradicts_sync, self.errors(), self.disorder, Reverse(self.packets))
    }

    /// Errors in a hundred packets.
    fn errors(&self) -> u64 {
        self.against() * 100 / self.packets.max(1)
    }

    /// The errors, weighted.
    const fn against(&self) -> u64 {
        self.cost + self.disorder / 16
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.packing == Packing::Mtb {
            return write!(f, "{} packets", self.packets);
        }
        write!(f, "{} of {} sources recognised, {} packets", self.recognised, self.sources, self.packets)?;
        if self.disorder > 0 {
            write!(f, ", {} bytes out of order", self.disorder)?;
        }
        Ok(())
    }
}

/// The packing of bytes without any statement.
pub(crate) fn packing(bytes: &[u8], units: &[Unit]) -> (Packing, Finding) {
    // Memory that was not written says nothing. Frames keep their places in whole frames.
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let written = bytes.get(zeros.saturating_sub(FRAME_BYTES) / FRAME_BYTES * FRAME_BYTES..).unwrap_or(bytes);
    let starts = || {
        FrameAlignment::all().map(|start| match start {
            start if start == FrameAlignment::default() => Framing::Buffer,
            start => Framing::PortFrom(start),
        })
    };
    let mut found = first_recognised(written, |head| {
        let mut found = framings(head, starts());
        for evidence in &mut found {
            evidence.recognise_in_frames(head, units);
        }
        found.push(raw(head, units));
        // A Micro Trace Buffer's packets are spread over the whole file.
        let may_be_mtb = head.len() >= written.len().min(HEADS[0]) && bytes.len() <= LARGEST_MTB;
        found.extend(may_be_mtb.then(|| mtb(bytes)).flatten());
        found
    });
    if itm::is_surely_itm(written.get(..HEADS[0]).unwrap_or(written)) {
        found.retain(|evidence| evidence.packing != Packing::Raw);
        let is_any = !found.is_empty();
        let (_, Finding { about, best: next, .. }) = choose("container", found, Packing::Raw);
        let best = Answer::new(Packing::Raw.to_string(), "the beginning is an ITM's packets");
        let runner_up = is_any.then_some(next);
        return (Packing::Raw, Finding { about, best, runner_up, certainty: Certainty::Certain });
    }
    recognise_itms(&mut found, written);
    choose("container", found, Packing::Raw)
}

/// The findings of the longest head in which something is recognised.
fn first_recognised(bytes: &[u8], mut look: impl FnMut(&[u8]) -> Vec<Evidence>) -> Vec<Evidence> {
    let mut all = None;
    for (index, head) in HEADS.into_iter().enumerate() {
        if index > 0 && head >= bytes.len() {
            continue;
        }
        let found = look(bytes.get(..head).unwrap_or(bytes));
        if found.iter().any(|evidence| evidence.recognised > 0) {
            return found;
        }
        all.get_or_insert(found);
    }
    all.unwrap_or_default()
}

/// The start of the frames in the bytes of a trace port.
pub(crate) fn port(bytes: &[u8], units: &[Unit]) -> (Packing, Finding) {
    let mut found = first_recognised(bytes, |head| {
        let mut found = framings(head, FrameAlignment::all().map(Framing::PortFrom));
        for evidence in &mut found {
            evidence.recognise_in_frames(head, units);
        }
        found
    });
    recognise_itms(&mut found, bytes);
    choose("alignment", found, Packing::Frames(Framing::Port))
}

fn choose(about: &'static str, mut found: Vec<Evidence>, otherwise: Packing) -> (Packing, Finding) {
    found.sort_by_key(Evidence::rank);
    let answer = |evidence: &Evidence| Answer::new(evidence.packing.to_string(), evidence);
    let best = found.first();
    let is_another =
        |best: &Evidence, other: &Evidence| other.packets > best.packets || !other.goes_on_as(best);
    let runner_up = best.and_then(|best| found.iter().skip(1).find(|other| is_another(best, other)));
    let certainty = match (best, runner_up) {
        (Some(best), Some(next)) if next.recognised > 0 && best.errors() >= next.errors() => {
            let is_less = next.contradicts_sync && !best.contradicts_sync
                || next.finds_less_than(best)
                || next.finds_hardly_anything_beside(best)
                || next.begins_later_than(best)
                || next.reads_worse_than(best);
            if is_less { Certainty::Certain } else { Certainty::Doubtful }
        }
        (Some(best), _) if best.recognised == 0 => Certainty::Doubtful,
        (None, _) => Certainty::Doubtful,
        _ => Certainty::Certain,
    };
    let packing = best.map_or(otherwise, |best| best.packing);
    let best = best.map_or_else(|| Answer::new(packing.to_string(), "nothing was recognised"), answer);
    (packing, Finding { about, best, runner_up: runner_up.map(answer), certainty })
}

/// The possible framings of the bytes, the best first.
fn framings(head: &[u8], starts: impl Iterator<Item = Framing>) -> Vec<Evidence> {
    let sync = head.windows(FSYNC.len()).position(|bytes| bytes == FSYNC);
    let mut framings = sync.map(|_| Framing::Port).into_iter().chain(starts).collect::<Vec<_>>();
    // A buffer's barrier is four FSYNCs, at which trace was cut. If nothing else distinguishes a buffer from a port, it
    // is a buffer.
    framings.sort_by_key(|framing| *framing != Framing::Buffer);
    let scanned = framings.into_iter().map(|framing| Frames::scan_as_they_come(head, framing));
    let mut ranked = scanned
        .filter_map(|frames| {
            let (disorder, sources) = (disorder(&frames)?, frames.sources.len());
            let packing = Packing::Frames(frames.framing);
            let contradicts_sync = sync.is_some_and(|sync| !comes_to_sync(frames.framing, head, sync));
            let samples = BTreeMap::new();
            Some(Evidence {
                packing,
                sources,
                recognised: 0,
                packets: 0,
                cost: 0,
                disorder,
                contradicts_sync,
                samples,
            })
        })
        .collect::<Vec<_>>();
    ranked.sort_by_key(|evidence| evidence.disorder * 16 + evidence.sources as u64);
    ranked
}

/// Whether the framing has an FSYNC at `sync`, the place of the first FSYNC in the bytes. An FSYNC cannot be data: in
/// frames of any alignment it would be the ID that is never used.
fn comes_to_sync(framing: Framing, head: &[u8], sync: usize) -> bool {
    match framing {
        Framing::Port => true,
        Framing::PortFrom(start) => {
            let start = usize::from(start.bytes());
            let whole_frames = |before: &[u8]| {
                let (pairs, rest) = before.as_chunks::<2>();
                let of_frames = pairs.iter().filter(|pair| **pair != HSYNC).count();
                rest.is_empty() && of_frames.is_multiple_of(FRAME_BYTES / 2)
            };
            // An FSYNC before the start contradicts nothing.
            start >= sync + FSYNC.len() || head.get(start..sync).is_some_and(whole_frames)
        }
        Framing::Buffer => {
            let barrier = head.get(sync..).and_then(|rest| rest.first_chunk::<FRAME_BYTES>());
            let is_barrier =
                barrier.is_some_and(|bytes| bytes.as_chunks().0.iter().all(|word| *word == FSYNC));
            sync.is_multiple_of(FRAME_BYTES) && is_barrier
        }
    }
}

/// The number of bytes in the frames that no formatter writes; `None` if these are not frames.
fn disorder(frames: &Frames) -> Option<u64> {
    let account = &frames.account;
    let wrong = account.reserved + frames.lost();
    // Read at the wrong place, data look like the IDs of more and more sources.
    let are_frames = account.data > 0 && wrong * 32 <= account.total() && frames.sources.len() <= 16;
    are_frames.then_some(wrong)
}

impl Evidence {
    fn recognise_in_frames(&mut self, head: &[u8], units: &[Unit]) {
        let Some(framing) = self.packing.framing() else { return };
        let samples = Frames::scan_as_they_come(head, framing).samples;
        for sample in samples.values() {
            self.recognise(sample, units);
        }
        self.samples = samples;
    }

    /// Whether its frames give no more packets and no fewer errors: they are right in one stretch only.
    fn finds_less_than(&self, other: &Self) -> bool {
        let wrong = |evidence: &Self| (evidence.cost, evidence.disorder);
        let [(cost, disorder), (others_cost, others_disorder)] = [wrong(self), wrong(other)];
        self.are_both_frames(other)
            && self.packets <= other.packets
            && cost >= others_cost
            && disorder >= others_disorder
            && (self.packets, disorder) != (other.packets, others_disorder)
    }

    /// Whether its frames are right only after a barrier, and everything before is out of order.
    fn begins_later_than(&self, other: &Self) -> bool {
        // Cut trace causes a few errors.
        let reads_well = other.against() * 100 <= other.packets;
        self.are_both_frames(other)
            && self.packets * 4 <= other.packets * 3
            && self.disorder > other.disorder
            && reads_well
    }

    /// Whether it recognises so little, compared with the other, that this may be chance.
    const fn finds_hardly_anything_beside(&self, other: &Self) -> bool {
        const TIMES: u64 = 32;
        self.packets * TIMES < other.packets
    }

    /// Whether it has more errors, and not enough more packets to make up for them.
    const fn reads_worse_than(&self, other: &Self) -> bool {
        /// The errors that a beginning or lost bytes may cause.
        const CHANCE: u64 = 8;
        let has_more_against = self.against() > other.against() + CHANCE;
        let names_more = self.strangers() > other.strangers() + STRANGERS;
        (has_more_against || names_more) && self.packets <= 2 * other.packets
    }

    /// The number of sources that are not recognised.
    const fn strangers(&self) -> usize {
        self.sources.saturating_sub(self.recognised)
    }

    fn are_both_frames(&self, other: &Self) -> bool {
        self.packing.framing().is_some() && other.packing.framing().is_some()
    }

    /// Whether both find the same except at the beginning: after synchronisation, FSYNCs determine the frames.
    fn goes_on_as(&self, other: &Self) -> bool {
        self.are_both_frames(other) && (self.holds(other) || other.holds(self))
    }

    /// Whether each source's bytes end with all bytes that the other packing finds of this source.
    fn holds(&self, other: &Self) -> bool {
        let ends = |(id, sample): (&TraceId, &Sample)| {
            self.samples.get(id).is_some_and(|longer| longer.bytes().ends_with(sample.bytes()))
        };
        !other.samples.is_empty() && other.samples.iter().all(ends)
    }

    fn recognise(&mut self, sample: &Sample, units: &[Unit]) {
        if let Some(reading) = recognise(sample, units) {
            self.recognised += 1;
            self.packets += reading.packets();
            self.cost += reading.cost();
        }
    }
}

/// Recognises ITMs, which may be alone if no source traces instructions.
fn recognise_itms(found: &mut [Evidence], bytes: &[u8]) {
    let head = bytes.get(..HEADS[0]).unwrap_or(bytes);
    if found.iter().any(|evidence| evidence.recognised > 0) {
        return;
    }
    for evidence in found {
        let samples = match evidence.packing {
            Packing::Frames(framing) => {
                Frames::scan_as_they_come(head, framing).samples.into_values().collect()
            }
            Packing::Raw => vec![Sample::of_stretches(head, &[Stretch::all(head.len())])],
            Packing::Mtb => continue,
        };
        for reading in samples.iter().map(|sample| itm::read(sample, &Program::new())) {
            if reading.is_itm() {
                evidence.recognised += 1;
                evidence.packets += reading.packets;
                evidence.cost += reading.malformed;
            }
        }
        // Among many sources, some bytes look like an ITM's by chance.
        if evidence.strangers() > STRANGERS {
            (evidence.recognised, evidence.packets, evidence.cost) = (0, 0, 0);
        }
    }
}

fn raw(head: &[u8], units: &[Unit]) -> Evidence {
    let sample = Sample::of_stretches(head, &[Stretch::all(head.len())]);
    let mut evidence = Evidence {
        packing: Packing::Raw,
        sources: 1,
        recognised: 0,
        packets: 0,
        cost: 0,
        disorder: 0,
        contradicts_sync: false,
        samples: BTreeMap::new(),
    };
    evidence.recognise(&sample, units);
    evidence
}

/// The evidence for a dump in which a Micro Trace Buffer's packets continue each other.
fn mtb(dump: &[u8]) -> Option<Evidence> {
    let guess = mtb_order::by_evidence(order::Dump::new(dump, None), mtb_order::within_reach)?;
    let evidence = guess.best.evidence;
    super::mtb::speaks_for_trace(&evidence).then_some(Evidence {
        packing: Packing::Mtb,
        sources: 1,
        recognised: 1,
        packets: evidence.packets as u64,
        cost: evidence.breaks as u64,
        disorder: 0,
        contradicts_sync: false,
        samples: BTreeMap::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(packing: Packing, sources: usize, packets: u64, disorder: u64) -> Evidence {
        Evidence {
            packing,
            sources,
            recognised: 1,
            packets,
            cost: 0,
            disorder,
            contradicts_sync: false,
            samples: BTreeMap::new(),
        }
    }

    fn certainty(found: &[Evidence; 2]) -> Certainty {
        choose("container", found.to_vec(), Packing::Raw).1.certainty
    }

    #[test]
    fn an_fsync_outweighs_packets_that_parse() {
        let port = Evidence { cost: 900, ..evidence(Packing::Frames(Framing::Port), 1, 10_000, 0) };
        let start = FrameAlignment::new(3).unwrap_or_default();
        let inside = evidence(Packing::Frames(Framing::PortFrom(start)), 1, 10_000, 0);
        let inside = Evidence { contradicts_sync: true, ..inside };
        let (packing, finding) = choose("alignment", vec![inside, port], Packing::Raw);
        assert_eq!((packing, finding.certainty), (Packing::Frames(Framing::Port), Certainty::Certain));
    }

    #[test]
    fn frames_that_an_fsync_cuts_contradict_it() {
        // Frames of zeros, from byte 5 on, with an FSYNC between the second and the third.
        let zeros = |count: usize| vec![0_u8; count * FRAME_BYTES];
        let bytes = [vec![0; 5], zeros(2), FSYNC.to_vec(), zeros(3)].concat();
        let sync = 5 + 2 * FRAME_BYTES;
        let agrees = |framing| comes_to_sync(framing, &bytes, sync);
        let starts = FrameAlignment::all().filter(|start| agrees(Framing::PortFrom(*start)));
        assert_eq!(starts.map(FrameAlignment::bytes).collect::<Vec<_>>(), [5]);
        assert!(agrees(Framing::Port) && !agrees(Framing::Buffer));
        let barrier = [zeros(2), FSYNC.repeat(4), zeros(1)].concat();
        assert!(comes_to_sync(Framing::Buffer, &barrier, 2 * FRAME_BYTES));
        // HSYNCs are between frames, and no frame starts inside an FSYNC.
        let half = [HSYNC.to_vec(), zeros(1), FSYNC.to_vec(), zeros(1)].concat();
        let starts =
            FrameAlignment::all().filter(|start| comes_to_sync(Framing::PortFrom(*start), &half, 18));
        assert_eq!(starts.map(FrameAlignment::bytes).collect::<Vec<_>>(), [0, 2]);
        let first = [FSYNC.to_vec(), zeros(2)].concat();
        let starts =
            FrameAlignment::all().filter(|start| !comes_to_sync(Framing::PortFrom(*start), &first, 0));
        assert_eq!(starts.map(FrameAlignment::bytes).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn an_answer_that_reads_much_worse_is_no_doubt() {
        let port = evidence(Packing::Frames(Framing::Port), 1, 10_872, 0);
        let elsewhere = Packing::Frames(Framing::PortFrom(FrameAlignment::default()));
        assert_eq!(certainty(&[port.clone(), evidence(elsewhere, 4, 11_045, 737)]), Certainty::Certain);
        assert_eq!(certainty(&[port.clone(), evidence(elsewhere, 9, 10_000, 1)]), Certainty::Certain);
        assert_eq!(certainty(&[port, evidence(elsewhere, 2, 11_045, 64)]), Certainty::Doubtful);
        // Two buffers with a barrier between them, and frames at another place that are right only in the second.
        let buffer = Evidence { cost: 12, ..evidence(Packing::Frames(Framing::Buffer), 1, 5324, 0) };
        let second = evidence(Packing::Frames(Framing::PortFrom(FrameAlignment::default())), 1, 2662, 8);
        assert_eq!(certainty(&[buffer.clone(), second.clone()]), Certainty::Certain);
        assert_eq!(certainty(&[buffer, Evidence { packets: 5000, ..second }]), Certainty::Doubtful);
        let raw = evidence(Packing::Raw, 1, 5290, 0);
        assert_eq!(certainty(&[raw.clone(), evidence(Packing::Mtb, 1, 9, 0)]), Certainty::Certain);
        assert_eq!(certainty(&[raw, evidence(Packing::Mtb, 1, 900, 0)]), Certainty::Doubtful);
    }
}
