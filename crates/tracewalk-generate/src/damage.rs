//! Damage: what a decoder makes of a trace in which something is wrong, where the truth is known.
//!
//! One place of a generated trace is damaged. What is decoded has a part in front that is as it was told, a part at the
//! end that is, and something between: what is reported there and was never executed is *wrong*, what was executed and is
//! not reported is *lost*. A decoder cannot know more before the next synchronisation behind the damage; behind it, and in
//! front of the damage, nothing may be lost.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tracewalk::flow::Element;
use tracewalk::ids::Location;
use tracewalk::isa;
use tracewalk::program::Program;
use tracewalk::source::{FlowStream, PacketItem, PacketStream, SourceConfig};

/// A way to damage a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One bit is another one.
    Flipped,
    /// One to eight bytes are missing.
    Lost,
    /// A stretch of some hundred bytes is missing.
    LostLong,
    /// One to eight bytes come twice.
    Doubled,
    /// Two words of four bytes changed places.
    Swapped,
    /// The end is missing.
    Cut,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Flipped, Self::Lost, Self::LostLong, Self::Doubled, Self::Swapped, Self::Cut];

    /// What it is called in a table.
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

    /// Damages `bytes`; `number` gives any number below its argument. Returns which bytes of the sound trace are
    /// concerned.
    pub fn damage(self, bytes: &mut Vec<u8>, mut number: impl FnMut(usize) -> usize) -> Range<usize> {
        let length = bytes.len();
        let stretch = |at: usize, bytes: usize| at..(at + bytes).min(length);
        let at = number(length.max(1));
        match self {
            Self::Flipped => {
                let bit = number(8);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << bit;
                }
                stretch(at, 1)
            }
            Self::Lost | Self::LostLong => {
                let count = if self == Self::Lost { 1 + number(8) } else { 64 + number(256) };
                let range = stretch(at, count);
                bytes.drain(range.clone());
                range
            }
            Self::Doubled => {
                let range = stretch(at, 1 + number(8));
                let twice = bytes.get(range.clone()).unwrap_or_default().to_vec();
                bytes.splice(range.end..range.end, twice);
                range
            }
            Self::Swapped => {
                let at = at / 4 * 4;
                let range = stretch(at, 8);
                if let Some([a, b, c, d, e, f, g, h]) = bytes.get_mut(range.clone()) {
                    for (one, other) in [(a, e), (b, f), (c, g), (d, h)] {
                        std::mem::swap(one, other);
                    }
                }
                range
            }
            Self::Cut => {
                bytes.truncate(at);
                at..length
            }
        }
    }
}

/// An instruction that a decoder reported, and the trace that proved it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reported {
    at: Location,
    from: u64,
    until: u64,
}

/// A sound trace and what is in it.
#[derive(Debug)]
pub struct Sound<'a> {
    config: &'a SourceConfig,
    program: &'a Program,
    bytes: &'a [u8],
    reported: Vec<Reported>,
    /// Where synchronisations stand: their A-sync.
    synchronisations: Vec<u64>,
}

/// What damage did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// How many bytes behind the damage the decoder was in step again; `None` where the trace ended first.
    pub bytes_until_in_step: Option<u64>,
    /// How many instructions were reported that were not executed there.
    pub wrong: u64,
    /// How many instructions were executed and not reported.
    pub lost: u64,
    /// How many of these the trace in front of the damage proves, or the trace from the next synchronisation on.
    pub lost_outside: u64,
}

impl<'a> Sound<'a> {
    /// Decodes a sound trace.
    #[must_use]
    pub fn new(config: &'a SourceConfig, program: &'a Program, bytes: &'a [u8]) -> Self {
        let mut synchronisations = Vec::new();
        let mut note = |item: PacketItem<'_>, span: tracewalk::span::Span, _: &[u8]| {
            if let PacketItem::Packet(packet) = item
                && packet.name() == "a_sync"
            {
                synchronisations.push(span.start.0);
            }
        };
        let mut packets = PacketStream::new(config);
        packets.push(bytes, &mut note);
        packets.finish(&mut note);
        Self { config, program, bytes, reported: reported(config, program, bytes), synchronisations }
    }

    /// How many instructions it has.
    #[must_use]
    pub fn instructions(&self) -> usize {
        self.reported.len()
    }

    /// Damages it and looks at what that did.
    pub fn damage(&self, kind: Kind, number: impl FnMut(usize) -> usize) -> Effect {
        let mut bytes = self.bytes.to_vec();
        let damaged = kind.damage(&mut bytes, number);
        if bytes == self.bytes {
            return Effect { bytes_until_in_step: Some(0), ..Effect::default() };
        }
        let found = reported(self.config, self.program, &bytes);
        let (start, end) = (damaged.start as u64, damaged.end as u64);
        // Places behind the damage, as they were in the sound trace.
        let grown = bytes.len() as i64 - self.bytes.len() as i64;
        let sound = |at: u64| if at <= start { at } else { at.saturating_add_signed(-grown).max(start) };
        let found = groups(found.iter().map(|reported| (sound(reported.from), *reported)));
        let told = groups(self.reported.iter().map(|reported| (reported.from, *reported)));
        let next = self.synchronisations.iter().copied().find(|&at| at >= end);
        let mut effect = Effect::default();
        let mut last_difference = None;
        for place in told.keys().chain(found.keys()).copied().collect::<BTreeSet<_>>() {
            let [told, found] =
                [&told, &found].map(|groups| groups.get(&place).map_or(&[][..], Vec::as_slice));
            let same = in_common(told, found);
            let lost = told.len() - same;
            effect.wrong += (found.len() - same) as u64;
            effect.lost += lost as u64;
            let before = told.iter().filter(|told| told.until <= start).count();
            let behind = if next.is_some_and(|next| place > next) { lost } else { 0 };
            effect.lost_outside += lost.min(before).max(behind) as u64;
            if lost != 0 || found.len() != same {
                last_difference = Some(place);
            }
        }
        let after = |last: u64| self.reported.iter().map(|told| told.from).find(|&from| from > last);
        effect.bytes_until_in_step = match last_difference {
            None => Some(0),
            Some(last) => after(last).map(|from| from.saturating_sub(end)),
        };
        effect
    }
}

/// What each packet proves, by its place.
fn groups(reported: impl Iterator<Item = (u64, Reported)>) -> BTreeMap<u64, Vec<Reported>> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for (place, reported) in reported {
        groups.entry(place).or_default().push(reported);
    }
    groups
}

/// How many instructions two readings of the same packet have in common: from the front, or up to the end, where the
/// beginning of what the packet proves was lost.
fn in_common(told: &[Reported], found: &[Reported]) -> usize {
    let same = |(told, found): &(&Reported, &Reported)| told.at == found.at;
    let front = told.iter().zip(found).take_while(same).count();
    let back = told.iter().rev().zip(found.iter().rev()).take_while(same).count();
    front.max(back)
}

fn reported(config: &SourceConfig, program: &Program, bytes: &[u8]) -> Vec<Reported> {
    let mut all = Vec::new();
    let mut stream = FlowStream::new(config);
    let mut take = |element| {
        let Element::Block(block) = element else { return };
        let mut at = block.start;
        for _ in 0..block.instructions {
            let code = program.code(at).unwrap_or_default();
            let Ok(instruction) = isa::classify(code, at, block.isa) else { return };
            let (from, until) = (block.span.start.0, block.span.end.0);
            all.push(Reported { at: Location::new(at, block.isa), from, until });
            at = at.plus(u32::from(instruction.bytes));
        }
    };
    stream.push(bytes, program, &mut take);
    stream.finish(program, &mut take);
    all
}
