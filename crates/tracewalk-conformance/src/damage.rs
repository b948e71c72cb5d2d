//! Measures what a decoder makes of a damaged trace whose truth is known.
//!
//! One place of a generated trace is damaged. The decoded path then has a beginning and an end as they were
//! traced. Between them, an instruction that is reported but was never executed is *wrong*, and one that was
//! executed but is not reported is *lost*. A decoder cannot recover before the first synchronisation after
//! the damage; before the damage and after that synchronisation, nothing may be lost.
//!
//! A wrong instruction is *in doubt* if the decoder reports doubt about it. It was *never noticed* if nothing
//! that the decoder reports up to the next synchronisation contradicts it: the damaged bytes are those of
//! another path. The remaining wrong instructions are reported as fact although the decoder noticed the
//! damage.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tracewalk::flow::Element;
use tracewalk::ids::{Address, Location};
use tracewalk::isa;
use tracewalk::program::Program;
use tracewalk::source::{FlowStream, PacketItem, PacketStream, SourceConfig};
use tracewalk::span::CaptureOffset;
use tracewalk::span::Span;
use tracewalk_analysis::{Doubt, DoubtChange};

/// The traces that are damaged: each protocol and encoding, plain and with more packet types, in frames, and
/// an MTB's buffer.
pub const CASES: [&str; 20] = [
    "m3 etmv3,cpu=cortex-m3,etmcr=0x0 cancel=multiple synchronise=1024",
    "m3 etmv3,cpu=cortex-m3,etmcr=0x100 cancel=multiple synchronise=1024",
    "m4 etmv3,cpu=cortex-m4,etmcr=0x0 cancel=always synchronise=256 timestamps=100",
    "a9 etmv3,cpu=cortex-a7,etmcr=0x0 cancel=multiple synchronise=1024",
    "a9 etmv3,cpu=cortex-a7,etmcr=0xd00c cancel=multiple synchronise=1024 timestamps=100",
    "a15 pft,cpu=cortex-a9,etmcr=0x0 depth=1 synchronise=256",
    "a9 pft,cpu=cortex-a15,etmcr=0x20000000 depth=4 synchronise=256",
    "a9 pft,cpu=cortex-a15,etmcr=0xd000 depth=1 synchronise=1024 timestamps=100",
    "rust-a9 pft,cpu=cortex-a15,etmcr=0x100 depth=1 synchronise=256",
    "a9 etmv3,cpu=cortex-a7,etmcr=0x0 cancel=multiple synchronise=1024 container=frames",
    "a9 pft,cpu=cortex-a15,etmcr=0x20000000 depth=4 synchronise=256 container=port",
    "m0 mtb size=14",
    "m3 etmv4,cpu=cortex-m33,trcconfigr=0x1001 synchronise=256",
    "a9 etmv4,cpu=cortex-a32,trcconfigr=0xd1 synchronise=256 timestamps=100",
    "a15 etmv4,cpu=cortex-a53,trcconfigr=0x9 synchronise=1024",
    "a64-0 etmv4,cpu=cortex-a53,trcconfigr=0x1011 depth=16 late-addresses synchronise=256",
    "a64-1 etmv4,cpu=cortex-a510,trcconfigr=0x1001 source-addresses=3 q=5 synchronise=256",
    "a64-2 etmv4,cpu=cortex-a53,trcconfigr=0x1 synchronise=256 container=frames",
    "a53 etmv4,cpu=cortex-a57,trcconfigr=0x1041 synchronise=256",
    "m33 etmv4,cpu=cortex-m33,trcconfigr=0x1011 synchronise=256 timestamps=100",
];

/// A way to damage a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One bit is inverted.
    Flipped,
    /// One to eight bytes are missing.
    Lost,
    /// A stretch of some hundred bytes is missing.
    LostLong,
    /// One to eight bytes are repeated.
    Doubled,
    /// Two words of four bytes are exchanged.
    Swapped,
    /// The end is missing.
    Cut,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Flipped, Self::Lost, Self::LostLong, Self::Doubled, Self::Swapped, Self::Cut];

    /// The kind's name in a table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flipped => "a bit flipped",
            Self::Lost => "1 to 8 bytes lost",
            Self::LostLong => "64 to 319 bytes lost",
            Self::Doubled => "1 to 8 bytes doubled",
            Self::Swapped => "two words swapped",
            Self::Cut => "the end cut off",
        }
    }

    /// Damages `bytes`; bytes are lost or repeated in units of `unit` bytes. `number` supplies any number
    /// below its argument.
    pub fn damage(self, bytes: &mut Vec<u8>, unit: usize, mut number: impl FnMut(usize) -> usize) {
        let length = bytes.len();
        let at = number(length.max(1));
        let stretch = |at: usize, count: usize| {
            let start = at / unit * unit;
            start..(start + count * unit).min(length)
        };
        match self {
            Self::Flipped => {
                let bit = number(8);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
            Self::Lost | Self::LostLong => {
                let count = if self == Self::Lost { 1 + number(8) } else { 64 + number(256) };
                bytes.drain(stretch(at, count));
            }
            Self::Doubled => {
                let range = stretch(at, 1 + number(8));
                let twice = bytes.get(range.clone()).unwrap_or_default().to_vec();
                bytes.splice(range.end..range.end, twice);
            }
            Self::Swapped => {
                let range = at / 4 * 4..(at / 4 * 4 + 8).min(length);
                if let Some([a, b, c, d, e, f, g, h]) = bytes.get_mut(range) {
                    for (one, other) in [(a, e), (b, f), (c, g), (d, h)] {
                        std::mem::swap(one, other);
                    }
                }
            }
            Self::Cut => bytes.truncate(at),
        }
    }
}

/// One source's bytes, as read from a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The indices of the bytes before which the capture reports that bytes are missing.
    pub losses: Vec<usize>,
}

/// An instruction that a decoder reported, and the trace that proved it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reported {
    at: Location,
    from: u64,
    until: u64,
    in_doubt: bool,
}

/// A decoder's reading of a trace.
#[derive(Debug, Default)]
struct Reading {
    reported: Vec<Reported>,
    /// Where the decoder noticed an error.
    noticed: Vec<u64>,
    /// Where the position was proven, and the index of the first instruction from there on.
    proofs: Vec<(u64, usize)>,
    /// The newest proof, if no instruction came after it, and its address.
    proven: Option<(u64, Option<Address>)>,
}

/// A sound trace and its reading.
#[derive(Debug)]
pub struct Sound<'a> {
    config: &'a SourceConfig,
    program: &'a Program,
    arrived: Arrived,
    reading: Reading,
    synchronisations: Vec<Synchronisation>,
}

/// A place where the decoder can find its position again: an A-sync and the first I-sync after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Synchronisation {
    start: u64,
    end: u64,
}

/// The effect of damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// How many bytes after the damage the decoder was in step again; `None` if the trace ended first.
    pub bytes_until_in_step: Option<u64>,
    /// The number of instructions that were reported but not executed there.
    pub wrong: u64,
    /// The number of wrong instructions that the decoder reports as in doubt.
    pub wrong_in_doubt: u64,
    /// The number of wrong instructions not in doubt for which the decoder noticed an error up to the next
    /// synchronisation.
    pub wrong_as_fact: u64,
    /// The number of executed instructions that the decoder reports as in doubt.
    pub right_in_doubt: u64,
    /// The number of instructions that were executed but not reported.
    pub lost: u64,
    /// The number of lost instructions that the trace before the damage proves, or the trace from the next
    /// undamaged synchronisation on.
    pub lost_outside: u64,
}

impl Effect {
    /// The number of wrong instructions that nothing contradicts.
    #[must_use]
    pub const fn never_noticed(&self) -> u64 {
        self.wrong - self.wrong_in_doubt - self.wrong_as_fact
    }
}

impl<'a> Sound<'a> {
    /// Decodes a sound trace.
    #[must_use]
    pub fn new(config: &'a SourceConfig, program: &'a Program, arrived: Arrived) -> Self {
        let reading = Reading::of(config, program, &arrived);
        let synchronisations = synchronisations(config, &arrived.bytes);
        Self { config, program, arrived, reading, synchronisations }
    }

    /// The settings of the trace unit, and the program.
    #[must_use]
    pub const fn of(&self) -> (&'a SourceConfig, &'a Program) {
        (self.config, self.program)
    }

    /// The trace's bytes.
    #[must_use]
    pub const fn arrived(&self) -> &Arrived {
        &self.arrived
    }

    /// The number of instructions in the trace.
    #[must_use]
    pub fn instructions(&self) -> usize {
        self.reading.reported.len()
    }

    /// The effect on a decoder that receives these bytes instead.
    #[must_use]
    pub fn damaged(&self, arrived: &Arrived) -> Effect {
        if *arrived == self.arrived {
            return Effect { bytes_until_in_step: Some(0), ..Effect::default() };
        }
        let damage = Damage::between(&self.arrived, arrived);
        let end = damage.end;
        let found = Reading::of(self.config, self.program, arrived);
        let groups_found = groups(found.reported.iter().map(|found| (damage.in_sound(found.from), *found)));
        let expected = groups(self.reading.reported.iter().map(|reported| (reported.from, *reported)));
        let noticed = found.noticed.iter().copied().collect::<BTreeSet<_>>();
        let mut effect =
            Effect { lost_outside: self.lost_outside(&damage, &found.reported), ..Effect::default() };
        let mut last_difference = None;
        for place in expected.keys().chain(groups_found.keys()).copied().collect::<BTreeSet<_>>() {
            let [expected, found] =
                [&expected, &groups_found].map(|groups| groups.get(&place).map_or(&[][..], Vec::as_slice));
            let common = in_common(expected, found);
            let same = common.len();
            let lost = expected.len() - same;
            for (index, found) in found.iter().enumerate() {
                let as_fact = || noticed.range(self.around(&damage, found.from)).next().is_some();
                match (common.contains(&index), found.in_doubt) {
                    (true, doubt) => effect.right_in_doubt += u64::from(doubt),
                    (false, true) => effect.wrong_in_doubt += 1,
                    (false, false) => effect.wrong_as_fact += u64::from(as_fact()),
                }
            }
            effect.wrong += (found.len() - same) as u64;
            effect.lost += lost as u64;
            if lost != 0 || found.len() != same {
                last_difference = Some(place);
            }
        }
        let after =
            |last: u64| self.reading.reported.iter().map(|reported| reported.from).find(|&from| from > last);
        effect.bytes_until_in_step = match last_difference {
            None => Some(0),
            Some(last) => after(last).map(|from| from.saturating_sub(end)),
        };
        effect
    }

    /// The number of instructions that are not reported although the trace before the damage or far enough
    /// after it proves them.
    fn lost_outside(&self, damage: &Damage, found: &[Reported]) -> u64 {
        let same = |(expected, found): &(&Reported, &Reported)| expected.at == found.at;
        let expected = &self.reading.reported;
        let mut before = expected.iter().take_while(|expected| expected.until <= damage.start).count();
        if matches!(self.config, SourceConfig::Etmv3(_)) {
            // The next packet may state that the last instruction did not complete.
            before = before.saturating_sub(1);
        }
        let front = expected.iter().zip(found).take_while(same).count();
        let next = self.reading.proofs.iter().find(|(at, _)| *at >= self.next_proof(damage));
        let after = next.map_or(0, |(_, index)| expected.len() - index);
        let back = expected.iter().rev().zip(found.iter().rev()).take_while(same).count();
        (before.saturating_sub(front) + after.saturating_sub(back)) as u64
    }

    /// The first place from which a proof counts. An ETMv4 unit may send P0 elements between the trace info
    /// packet and its address, so that the address of a damaged A-sync may be anywhere after it. Without the
    /// A-sync that address is no proof.
    fn next_proof(&self, damage: &Damage) -> u64 {
        let end = damage.end + LONGEST_PACKET;
        if !matches!(self.config, SourceConfig::Etmv4(_)) {
            return end;
        }
        let sync = self.synchronisations.iter().find(|sync| sync.start >= damage.end);
        sync.map_or(u64::MAX, |sync| sync.start.max(end))
    }

    /// Where evidence against an instruction reported at `place` of the damaged trace may lie: from the last
    /// sound synchronisation before the damage up to the first one after both the damage and `place`.
    fn around(&self, damage: &Damage, place: u64) -> Range<u64> {
        if matches!(self.config, SourceConfig::Mtb(_)) {
            // Each packet is independent, apart from the runs to it and from it.
            let packet = MTB_PACKET as u64;
            return place.saturating_sub(packet)..place + packet + 1;
        }
        let after = damage.end.max(damage.in_sound(place));
        let before = self.synchronisations.iter().rev().find(|sync| sync.end <= damage.start);
        let after = self.synchronisations.iter().find(|sync| sync.start >= after);
        let end = after.map_or(u64::MAX, |sync| sync.end.saturating_add_signed(damage.grown));
        before.map_or(0, |sync| sync.start)..end
    }
}

/// How far the damage may affect sound bytes after it: the beginning of an A-sync there may be read as the
/// end of a packet that began in the damaged bytes.
const LONGEST_PACKET: u64 = 16;

/// The number of bytes in an MTB packet. Memory is lost by words, and nothing else in a buffer shows where
/// packets begin.
pub const MTB_PACKET: usize = 8;

/// Where a source's bytes differ from those of a sound trace.
#[derive(Clone, Copy, Debug)]
struct Damage {
    /// The start, in the sound trace.
    start: u64,
    /// The end, in the sound trace.
    end: u64,
    /// How much longer the damaged trace is.
    grown: i64,
}

impl Damage {
    fn between(sound: &Arrived, damaged: &Arrived) -> Self {
        let same = |(one, other): &(&u8, &u8)| one == other;
        let (one, other) = (&sound.bytes, &damaged.bytes);
        let front = one.iter().zip(other).take_while(same).count();
        let back = one.iter().rev().zip(other.iter().rev()).take_while(same).count();
        let shorter = one.len().min(other.len());
        let start = damaged.losses.iter().fold(front, |start, &loss| start.min(loss));
        let lost = damaged.losses.iter().max().map_or(0, |loss| other.len() - loss);
        let back = back.min(shorter - start.min(shorter)).min(if lost == 0 { back } else { lost });
        Self {
            start: start as u64,
            end: (one.len() - back) as u64,
            grown: other.len() as i64 - one.len() as i64,
        }
    }

    /// The place in the sound trace of a place in the damaged one.
    fn in_sound(self, at: u64) -> u64 {
        if at <= self.start { at } else { at.saturating_add_signed(-self.grown).max(self.start) }
    }
}

/// The bytes of a damaged trace that need not match the traced path: from the packet in which the damage
/// begins to the end of the first I-sync after an A-sync that the damage does not reach.
#[must_use]
pub fn broken(config: &SourceConfig, sound: &[u8], damaged: &[u8]) -> Range<u64> {
    let arrived = |bytes: &[u8]| Arrived { bytes: bytes.to_vec(), losses: Vec::new() };
    let damage = Damage::between(&arrived(sound), &arrived(damaged));
    let synchronisations = synchronisations(config, sound);
    let after = synchronisations.iter().find(|sync| sync.start >= damage.end + LONGEST_PACKET);
    let end = after.map_or(u64::MAX, |sync| sync.end.saturating_add_signed(damage.grown));
    damage.start.saturating_sub(LONGEST_PACKET)..end
}

/// The instructions that each packet proves, by the packet's place.
fn groups(reported: impl Iterator<Item = (u64, Reported)>) -> BTreeMap<u64, Vec<Reported>> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for (place, reported) in reported {
        groups.entry(place).or_default().push(reported);
    }
    groups
}

/// The reported instructions that two readings of the same packet have in common: from the start, or up to
/// the end if the start of the packet's instructions was lost.
fn in_common(expected: &[Reported], found: &[Reported]) -> Range<usize> {
    let same = |(expected, found): &(&Reported, &Reported)| expected.at == found.at;
    let front = expected.iter().zip(found).take_while(same).count();
    let back = expected.iter().rev().zip(found.iter().rev()).take_while(same).count();
    if front >= back { 0..front } else { found.len() - back..found.len() }
}

/// The places of A-syncs, each up to the end of the I-sync after it.
fn synchronisations(config: &SourceConfig, bytes: &[u8]) -> Vec<Synchronisation> {
    let (mut found, mut start) = (Vec::new(), None);
    // ETMv4 has no I-sync; a trace info packet and an address take its place.
    let i_sync = if matches!(config, SourceConfig::Etmv4(_)) { "address" } else { "i_sync" };
    let mut note = |item: PacketItem<'_>, span: Span, _: &[u8]| match item {
        PacketItem::Packet(packet) if packet.name() == "a_sync" => start = Some(span.start.0),
        PacketItem::Packet(packet) if packet.name() == i_sync => {
            found.extend(start.take().map(|start| Synchronisation { start, end: span.end.0 }));
        }
        _ => {}
    };
    let mut packets = PacketStream::new(config);
    packets.push(bytes, &mut note);
    packets.finish(&mut note);
    found
}

impl Reading {
    fn of(config: &SourceConfig, program: &Program, arrived: &Arrived) -> Self {
        let mut reading = Self::default();
        let mut doubt = Doubt::default();
        let mut stream = FlowStream::new(config);
        let mut take = |element| reading.take(&mut doubt, program, &element);
        let mut from = 0;
        for &loss in &arrived.losses {
            stream.push(arrived.bytes.get(from..loss).unwrap_or_default(), program, &mut take);
            stream.lose_sync(program, &mut take);
            from = loss;
        }
        stream.push(arrived.bytes.get(from..).unwrap_or_default(), program, &mut take);
        stream.finish(program, &mut take);
        reading
    }

    fn take(&mut self, doubt: &mut Doubt, program: &Program, element: &Element) {
        if let Some(DoubtChange::Begins { since, .. }) = doubt.element(element, CaptureOffset::default) {
            let reported = self.reported.iter_mut().rev();
            reported
                .take_while(|reported| reported.from >= since.0)
                .for_each(|reported| reported.in_doubt = true);
        }
        match element {
            Element::Gap(gap) if gap.doubt => self.noticed.push(gap.span.start.0),
            Element::Proof(proof) => {
                self.proven = Some((proof.span.start.0, proof.at.map(|at| at.address)));
            }
            Element::Block(block) => {
                let mut at = Location::new(block.start, block.isa);
                let first = self.reported.len();
                for _ in 0..block.instructions {
                    let code = program.code(at.address).unwrap_or_default();
                    let Ok(instruction) = isa::classify(code, at.address, at.isa) else { return };
                    let (from, until) = (block.span.start.0, block.span.end.0);
                    self.reported.push(Reported { at, from, until, in_doubt: doubt.is_open() });
                    at = at.after(instruction.bytes.into());
                }
                if let Some((place, address)) = self.proven.take() {
                    let here = self.reported.iter().skip(first);
                    let passed = here.take_while(|reported| Some(reported.at.address) != address).count();
                    // A run may continue after the proof, or end there.
                    let is_in = passed < self.reported.len() - first || address == Some(block.end);
                    self.proofs.push((place, if is_in { first + passed } else { first }));
                }
            }
            _ => {}
        }
    }
}
