//! Captures of hardware with damage: everything outside the damaged stretch reads as before, and the loss is
//! reported.
//!
//! `TRACEWALK_DAMAGES=100 cargo test -p tracewalk-conformance --test all captures:: -- --nocapture` damages each
//! capture in 100 places in each way, and prints the results. Without the variable it damages fewer places,
//! always the same.
//!
//! A source that reads differently without any report must be a [possible](possible) trace of the program: no
//! decoder could detect the damage.

mod cases;
mod possible;
mod reading;

use std::collections::BTreeSet;

use cases::{Case, Damage, Random, Source, cases, places};
use reading::{FrameLosses, Reading, Reported};
use tracewalk::flow::{Block, GapReason};
use tracewalk::frame::{Cause, FRAME_BYTES, Framing};

/// How far before the damage, in bytes of the capture, the reading may change: frames are given up from the
/// place where the lost alignment was last certain.
const BEFORE: u64 = 128;

/// How far after the damage frames may take to be found again. From there on each source waits for its next
/// A-sync, and ETMv3 for the I-sync after it.
const FRAMES_FOUND: u64 = 1024;

/// Just before and after damage, a packet may be cut, or joined with other bytes. No packet is longer.
const PACKET: u64 = 16;

/// The results over all damages of one kind.
#[derive(Default)]
struct Summary {
    damages: usize,
    /// Sources that read differently somewhere.
    changed: usize,
    /// Of these, the sources that report it in frames, in packets, and only in the program's flow.
    by_frames: usize,
    by_packets: usize,
    by_flow: usize,
    /// Sources that report nothing, because the damaged trace is a possible one.
    possible: usize,
    /// The distance from the damage to the last packet that reads differently, in bytes of the capture.
    distances: Vec<u64>,
    /// Damage that should have been reported and was not.
    silent: Vec<String>,
}

impl Case {
    /// Compares all sources of a damaged capture with the undamaged ones. Fails if something outside the
    /// damage differs.
    fn check(&self, framing: Framing, damage: &Damage, what: &str, summary: &mut Summary) {
        let framing = self.is_in_frames().then_some(framing);
        let frames =
            framing.map_or_else(FrameLosses::default, |framing| FrameLosses::of(framing, &damage.bytes));
        summary.damages += 1;
        for source in &self.sources {
            let damaged = Reading::of(framing, (source.id, &source.config), &damage.bytes, &self.program);
            let context = format!("{}, {:?}: {what} at {}", self.name, source.id, damage.at);
            self.check_source(source, &frames, &damaged, damage, &context, summary);
        }
    }

    fn check_source(
        &self,
        Source { config, whole, .. }: &Source,
        frames: &FrameLosses,
        damaged: &Reading,
        damage: &Damage,
        context: &str,
        summary: &mut Summary,
    ) {
        let (slack, found) = if self.is_in_frames() { (BEFORE, FRAMES_FOUND) } else { (PACKET, PACKET) };
        // Before the damage, all packets that end there are unchanged.
        let front = damage.at.saturating_sub(slack);
        let starts = whole.packets.keys().copied();
        let front = starts.take_while(|start| *start <= front).last().unwrap_or(0);
        for (at, packet) in whole.packets.range(..front) {
            assert_eq!(damaged.packets.get(at), Some(packet), "{context}, packet at {at}");
        }
        check_flow_in_front(whole, damaged, front, context);
        // Packets after the next synchronisation are unchanged as well.
        let resumes = whole.synchronisation(damage.end() + found);
        if let Some(resumes) = resumes {
            check_flow_after(whole, damaged, resumes, damage, context);
        }
        let resumes = resumes.unwrap_or(self.bytes.len() as u64);
        for (at, packet) in whole.packets.range(resumes..) {
            let found = damaged.packets.get(&damage.place(*at));
            assert_eq!(found, Some(packet), "{context}, packet at {at}, after {resumes}");
        }
        // In between, packets are missing or wrong, and the place is reported.
        let is_changed = |at: u64| damaged.packets.get(&damage.place(at)) != whole.packets.get(&at);
        let Some(last) = whole.packets.range(front..resumes).map(|(at, _)| *at).rfind(|at| is_changed(*at))
        else {
            return;
        };
        summary.changed += 1;
        summary.distances.push(last.saturating_sub(damage.end()));
        let reported = front..damage.place(resumes).max(damage.at + damage.inserted + 1);
        let is_reported = |(at, bytes): &(u64, u64)| *bytes > 0 && reported.contains(at);
        let known = whole.gaps.iter().map(|at| damage.place(*at)).collect::<BTreeSet<_>>();
        let new_gaps =
            damaged.gaps.range(reported.clone()).filter(|at| !known.contains(at)).collect::<BTreeSet<_>>();
        let end = damage.place(resumes);
        let impossible = damaged.first_impossible(config, &self.program, &known, end);
        if frames.is_reported(&reported, &self.frames, damage) {
            summary.by_frames += 1;
        } else if damaged.malformed.iter().chain(&damaged.unsynchronised).any(is_reported) {
            summary.by_packets += 1;
        } else if !new_gaps.is_empty() {
            summary.by_flow += 1;
            let leaves_image = |(at, reported): &(u64, Reported)| {
                matches!(reported, Reported::Gap(GapReason::NoCode(_) | GapReason::Undecodable(..)))
                    && new_gaps.contains(at)
            };
            let is_right = impossible.is_some() || damaged.flow.iter().any(leaves_image);
            assert!(is_right, "{context}: flow tells of {new_gaps:?}, where everything is possible");
        } else if let Some((at, why)) = impossible {
            let difference = difference(whole, damaged, damage, front..last + 1);
            summary.silent.push(format!("{context}: at {at}: {why}\n{difference}"));
        } else {
            summary.possible += 1;
        }
    }

    /// Bytes before a capture are reported as not part of it.
    fn check_front(&self, damage: &Damage) {
        if self.is_in_frames() {
            let frames = FrameLosses::of(Framing::Port, &damage.bytes);
            let first = frames.discontinuities.first().map(|first| (first.at.0, first.bytes, first.cause));
            assert_eq!(first, Some((0, damage.inserted, Cause::Start)), "{}", self.name);
        } else {
            for Source { config, whole, .. } in &self.sources {
                let damaged = Reading::of(None, (None, config), &damage.bytes, &self.program);
                let passed_over =
                    |reading: &Reading| reading.unsynchronised.first().copied().unwrap_or_default();
                let expected = passed_over(whole).1 + damage.inserted;
                assert_eq!(passed_over(&damaged), (0, expected), "{}", self.name);
            }
        }
    }

    /// A capture that ends within a frame or a source's packet is reported, with the place and the number of
    /// bytes present. An end between two packets is undetectable.
    fn check_end(&self, damage: &Damage) {
        let frames = self.is_in_frames().then(|| FrameLosses::of(Framing::Buffer, &damage.bytes));
        let tail = frames.and_then(|frames| frames.tail).filter(|tail| tail.bytes > 0);
        let of_frame = damage.at % FRAME_BYTES as u64;
        let expected = (self.is_in_frames() && of_frame > 0).then_some((damage.at - of_frame, of_frame));
        assert_eq!(tail.map(|tail| (tail.at.0, tail.bytes)), expected, "{}, cut at {}", self.name, damage.at);
        for Source { id, config, whole } in &self.sources {
            let framing = id.map(|_| Framing::Buffer);
            let damaged = Reading::of(framing, (*id, config), &damage.bytes, &self.program);
            let mut left = damaged.items.values().sum::<u64>();
            // The item of the undamaged source in which the bytes end, and how many of its bytes are there.
            let cut = whole.items.iter().find_map(|(at, bytes)| {
                let cut = (left < *bytes).then_some((*at, left));
                left = left.saturating_sub(*bytes);
                cut
            });
            let reported = damaged.malformed.iter().chain(&damaged.unsynchronised);
            let reported =
                reported.copied().filter(|item| !whole.malformed.contains(item)).collect::<BTreeSet<_>>();
            let (at, there) = cut.unwrap_or((damage.at, 0));
            let expected = (there > 0).then_some((at, there));
            let new = reported.into_iter().filter(|item| !whole.unsynchronised.contains(item));
            assert_eq!(
                new.collect::<Vec<_>>(),
                expected.into_iter().collect::<Vec<_>>(),
                "{}, {id:?}, cut at {}",
                self.name,
                damage.at
            );
        }
    }
}

impl FrameLosses {
    /// Whether frames have a report there that the undamaged capture does not have.
    fn is_reported(&self, there: &std::ops::Range<u64>, whole: &Self, damage: &Damage) -> bool {
        let known = whole.places().map(|at| damage.place(at)).collect::<BTreeSet<_>>();
        let others = self.sources.iter().filter(|(id, _)| !whole.sources.contains_key(id)).map(|(_, at)| *at);
        self.places().filter(|at| !known.contains(at)).chain(others).any(|at| there.contains(&at))
    }

    /// The places of all reports.
    fn places(&self) -> impl Iterator<Item = u64> {
        let discontinuities = self.discontinuities.iter().map(|loss| loss.at.0);
        let tail = self.tail.filter(|tail| tail.bytes > 0).map(|tail| tail.at.0);
        discontinuities.chain(self.odd.iter().copied()).chain(tail)
    }
}

/// Flow before the damage is reported as before.
fn check_flow_in_front(whole: &Reading, damaged: &Reading, front: u64, context: &str) {
    // Later packets may still cancel the last instruction.
    let is_atoms = |name: &str| matches!(name, "p_header" | "atom" | "branch");
    let mut atoms = whole.packets.range(..front).rev().filter(|(_, packet)| is_atoms(packet.name));
    let Some((certain, _)) = atoms.nth(1) else { return };
    for (index, expected) in whole.flow.iter().take_while(|(at, _)| at < certain).enumerate() {
        assert_eq!(damaged.flow.get(index), Some(expected), "{context}, flow in front of {certain}");
    }
}

/// Flow after the next synchronisation is reported as before, from the end of the first proven block on.
fn check_flow_after(whole: &Reading, damaged: &Reading, resumes: u64, damage: &Damage, context: &str) {
    let after = |reading: &Reading, place: &dyn Fn(u64) -> u64| {
        let start = place(resumes);
        let reported = reading.flow.iter().skip_while(|(at, _)| *at <= start);
        reported
            .skip_while(|(_, reported)| !matches!(reported, Reported::Block(_)))
            .cloned()
            .collect::<Vec<_>>()
    };
    let expected = after(whole, &|at| at);
    let found = after(damaged, &|at| damage.place(at));
    for (index, (at, expected)) in expected.iter().enumerate() {
        let (found_at, found) = found.get(index).unwrap_or_else(|| panic!("{context}, no flow for {at}"));
        let same = match (expected, found) {
            // The first block may have begun before the synchronisation.
            (Reported::Block(expected), Reported::Block(found)) if index == 0 => {
                let end = |block: &Block| (block.end, block.isa, block.last, block.ending);
                end(expected) == end(found)
            }
            (expected, found) => expected == found,
        };
        assert!(
            same && damage.place(*at) == *found_at,
            "{context}, flow after {resumes}: {expected:?} at {at}, but {found:?} at {found_at}"
        );
    }
    assert_eq!(expected.len(), found.len(), "{context}, flow after {resumes}");
}

/// The packets of each reading that the other one does not have.
fn difference(whole: &Reading, damaged: &Reading, damage: &Damage, part: std::ops::Range<u64>) -> String {
    let mut lines = Vec::new();
    for (at, packet) in whole.packets.range(part.clone()) {
        let at = damage.place(*at);
        if damaged.packets.get(&at) != Some(packet) {
            lines.push((at, '-', &packet.text));
        }
    }
    let known = whole.packets.iter().map(|(at, packet)| (damage.place(*at), packet)).collect::<Vec<_>>();
    for (at, packet) in damaged.packets.range(part.start..damage.place(part.end)) {
        if !known.contains(&(*at, packet)) {
            lines.push((*at, '+', &packet.text));
        }
    }
    lines.sort_unstable();
    lines.iter().map(|(at, sign, text)| format!("  {sign} {at} {text}\n")).collect()
}

/// Prints the results of one kind of damage.
fn report(case: &Case, kind: &str, mut summary: Summary) {
    summary.distances.sort_unstable();
    let middle = summary.distances.get(summary.distances.len() / 2).copied().unwrap_or(0);
    let most = summary.distances.last().copied().unwrap_or(0);
    let Summary { damages, changed, by_frames, by_packets, by_flow, possible, silent, .. } = &summary;
    println!(
        "{:28} {kind:24} {damages:4} damages, {changed:4} sources changed: reported by frames {by_frames:3}, packets {by_packets:3}, \
         flow {by_flow:3}; a possible trace {possible:3}; silent {:3}; to {middle} bytes after it, at most {most}",
        case.name,
        silent.len()
    );
    assert!(silent.is_empty(), "{} of {changed} are silent:\n{}", silent.len(), silent.join("\n"));
}

#[tracewalk_corpus::test]
fn the_captures_are_possible_traces() {
    for case in cases() {
        for Source { id, config, whole } in &case.sources {
            let impossible = whole.first_impossible(config, &case.program, &whole.gaps, u64::MAX);
            assert_eq!(impossible, None, "{}, {id:?}", case.name);
        }
    }
}

#[tracewalk_corpus::test]
fn a_capture_that_is_cut_off_is_read_up_to_there() {
    for case in cases() {
        let (mut random, mut summary) = (Random(1), Summary::default());
        for at in case.places(&mut random, places()) {
            let damage = Damage::new(&case.bytes, at, case.bytes.len() - at, &[]);
            case.check(Framing::Buffer, &damage, "cut off", &mut summary);
            case.check_end(&damage);
        }
        report(case, "cut off", summary);
    }
}

#[tracewalk_corpus::test]
fn a_capture_without_its_beginning_is_read_from_the_next_synchronisation_on() {
    for case in cases() {
        let (mut random, mut summary) = (Random(2), Summary::default());
        let near = 1..=15;
        let far = case.places(&mut random, places());
        for front in near.chain(far) {
            let damage = Damage::new(&case.bytes, 0, front, &[]);
            case.check(Framing::Port, &damage, "beginning missing", &mut summary);
        }
        report(case, "beginning missing", summary);
    }
}

#[tracewalk_corpus::test]
fn bytes_in_front_of_a_capture_are_passed_over() {
    for case in cases() {
        let (mut random, mut summary) = (Random(3), Summary::default());
        for front in 1..=15 {
            let noise = (0..front).map(|_| u8::try_from(random.below(256)).expect("below 256"));
            let damage = Damage::new(&case.bytes, 0, 0, &noise.collect::<Vec<_>>());
            case.check(Framing::Port, &damage, "shifted", &mut summary);
            case.check_front(&damage);
        }
        report(case, "shifted by 1 to 15 bytes", summary);
    }
}

#[tracewalk_corpus::test]
fn missing_bytes_are_reported_and_cost_what_is_up_to_the_next_synchronisation() {
    for case in cases() {
        let (mut random, mut summary) = (Random(4), Summary::default());
        for at in case.places(&mut random, places()) {
            let missing = 1 + random.below(40);
            let damage = Damage::new(&case.bytes, at, missing.min(63), &[]);
            case.check(Framing::Buffer, &damage, &format!("{missing} missing"), &mut summary);
        }
        report(case, "bytes missing", summary);
    }
}

#[tracewalk_corpus::test]
fn doubled_bytes_are_reported_and_cost_what_is_up_to_the_next_synchronisation() {
    for case in cases() {
        let (mut random, mut summary) = (Random(5), Summary::default());
        for at in case.places(&mut random, places()) {
            let count = 1 + random.below(40);
            let doubled = case.bytes[at..at + count.min(63)].to_vec();
            let damage = Damage::new(&case.bytes, at, 0, &doubled);
            case.check(Framing::Buffer, &damage, &format!("{count} doubled"), &mut summary);
        }
        report(case, "bytes doubled", summary);
    }
}

#[tracewalk_corpus::test]
fn words_with_swapped_bytes_cost_what_is_up_to_the_next_synchronisation() {
    for case in cases() {
        let (mut random, mut summary) = (Random(6), Summary::default());
        for at in case.places(&mut random, places()) {
            let at = at / 4 * 4;
            let mut words = case.bytes[at..at + 4 * (1 + random.below(8))].to_vec();
            words.chunks_exact_mut(4).for_each(<[u8]>::reverse);
            let damage = Damage::new(&case.bytes, at, words.len(), &words);
            case.check(Framing::Buffer, &damage, "swapped", &mut summary);
        }
        report(case, "swapped-words", summary);
    }
}
