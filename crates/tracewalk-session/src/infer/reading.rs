//! One way to read a source's bytes, and the evidence for and against it.

use std::fmt;
use std::io;

use tracewalk::flow::{Element, Gap, GapReason};
use tracewalk::program::Program;
use tracewalk::protocol::Malformation;
use tracewalk::source::{PacketItem, SourceConfig};
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::drive::{Input, Spread};

use super::check::Check;
use super::story::{Story, StoryBuilder};
use super::traced::Traced;
use crate::contents::Sample;

/// The counts of a sample, read with one configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    packets: u64,
    /// Stretches that are not packets.
    malformed: u64,
    /// Bytes that could not be read after the first synchronisation.
    unread: u64,
    /// Impossible statements: packet contents that no trace unit with this configuration sends.
    impossible: u64,
    i_syncs: u64,
    /// I-syncs whose address is in the program.
    in_program: u64,
    /// Places where trace and program cannot both be right.
    contradictions: u64,
    /// Places where the trace lacks the address that execution went to.
    lost: u64,
    /// Ranges that were followed to their end.
    ranges: u64,
    /// The spread of the addresses, coarsely.
    spread: u32,
    /// Whether there was a program to follow.
    followed: bool,
    /// Whether packets are compared before execution: a malformed packet loses everything up to the next
    /// synchronisation, so that a wrong reading follows little, and little can contradict it.
    packets_first: bool,
    /// Whether the reading was given up because it had too many errors: the counts are incomplete.
    given_up: bool,
    /// A hash of the resulting execution, to compare readings.
    story: Story,
}

impl Reading {
    /// Reads a sample, and follows it through the program. Gives up a reading with a [cost](Self::cost) greater than
    /// `most`.
    pub(super) fn of(sample: &Sample, config: &SourceConfig, traced: Traced<'_>, most: u64) -> Self {
        let mut reading = Self::of_packets(sample, config, traced.program, most);
        if !reading.given_up && reading.is_plausible() {
            reading.follow(sample, config, traced, most);
        }
        reading
    }

    /// As [`Reading::of`], but without a story; `None` if the reading is not good.
    pub(super) fn good(
        sample: &Sample,
        config: &SourceConfig,
        traced: Traced<'_>,
        most: u64,
    ) -> Option<Self> {
        let mut reading = Self::of_packets(sample, config, traced.program, most);
        if reading.given_up || !reading.is_plausible() {
            return None;
        }
        reading.followed = !traced.program.is_empty();
        let alone = Spread::over(1).for_counts();
        let read = traced.follow(config, |follower| {
            follower.flow_parts(&sample.input(), alone, &(), |part| {
                reading.ranges += part.statistics.ranges;
                reading.contradictions += part.gaps.contradictions.count;
                reading.lost += part.gaps.address_unknown.count;
                reading.go_on(most)
            })
        });
        (read.is_ok() && reading.is_good()).then_some(reading)
    }

    /// Reads a sample's packets.
    pub(super) fn of_packets(sample: &Sample, config: &SourceConfig, program: &Program, most: u64) -> Self {
        let mut reading = Self { packets_first: matches!(config, SourceConfig::Etmv4(_)), ..Self::default() };
        let mut check = Check::new(config, program);
        sample.packets(config, &mut |item, bytes| {
            if reading.given_up {
                return;
            }
            match item {
                PacketItem::Packet(packet) => {
                    reading.packets += 1;
                    reading.impossible += check.packet(packet, bytes);
                }
                // A sample may end inside a packet.
                PacketItem::Malformed(Malformation::Truncated { .. }) => {}
                PacketItem::Malformed(_) => {
                    reading.malformed += 1;
                    reading.unread += bytes.len() as u64;
                    check.lose();
                }
                PacketItem::Unsynchronised => {
                    reading.unread += if reading.packets > 0 { bytes.len() as u64 } else { 0 };
                    check.lose();
                }
            }
            reading.given_up = reading.cost() > most;
        });
        reading.impossible += check.impossible();
        reading.i_syncs = check.i_syncs;
        reading.in_program = check.in_program;
        reading.spread = check.spread();
        reading
    }

    fn follow(&mut self, sample: &Sample, config: &SourceConfig, traced: Traced<'_>, most: u64) {
        self.followed = !traced.program.is_empty();
        let mut story = StoryBuilder::default();
        let mut losses = 0_u64;
        let read = sample.input().flow(config, traced.program, |record| {
            match record.element {
                Element::Block(_) => self.ranges += 1,
                Element::Gap(gap) => match gap.reason {
                    GapReason::Contradiction(_) => self.contradictions += 1,
                    GapReason::AddressUnknown => self.lost += 1,
                    GapReason::NoCode(_) | GapReason::Undecodable(..) => {}
                    GapReason::TraceLost => losses += 1,
                    // Any other reason not to follow execution counts against the reading.
                    _ => self.lost += 1,
                },
                Element::Event(_) | Element::Proof(_) => {}
            }
            story.element(&record.element);
            self.go_on(most)
        });
        // Unreadable bytes and cuts of the sample cause losses. Other losses come from packets that commit or cancel
        // elements that were never sent: the unit speculates to another depth.
        if greatest_speculation(config) > 0 {
            self.lost += losses.saturating_sub(self.malformed + sample.cuts());
        }
        self.given_up = read.is_err();
        self.story = story.finish();
    }

    /// An error if the reading is to be given up.
    fn go_on(&self, most: u64) -> io::Result<()> {
        if self.cost() > most { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }

    /// Whether the bytes may be of this protocol. Bytes of another one have no I-sync after an A-sync, or many reserved
    /// headers.
    pub(super) const fn is_plausible(&self) -> bool {
        self.i_syncs > 0 && (self.malformed + self.impossible) * 20 <= self.packets
    }

    /// The number of errors, weighted.
    pub(crate) const fn cost(&self) -> u64 {
        /// The number of unreadable bytes that weigh as much as a contradiction.
        const BYTES: u64 = 32;
        self.malformed + self.impossible + self.contradictions + self.lost + self.unread / BYTES
    }

    /// The errors in packets alone.
    const fn packet_cost(&self) -> u64 {
        self.malformed + self.impossible
    }

    /// The key by which readings are compared: the smaller, the likelier.
    pub(crate) const fn rank(&self) -> (bool, u64, u64, bool, u32) {
        let spread = if self.followed { 0 } else { self.spread };
        let first = if self.packets_first { self.packet_cost() } else { 0 };
        (self.given_up, first, self.cost(), self.followed && self.in_program == 0, spread)
    }

    /// Whether any packet gives the position of execution.
    pub(super) const fn begins(&self) -> bool {
        self.i_syncs > 0
    }

    /// Whether packets contain statements that are impossible with these settings.
    pub(super) const fn contradicts_itself(&self) -> bool {
        self.impossible > 0
    }

    /// Whether the packets have plausible lengths, whatever their contents.
    pub(super) const fn has_packets(&self) -> bool {
        self.i_syncs > 0 && self.malformed * 20 <= self.packets
    }

    pub(super) const fn packets(&self) -> u64 {
        self.packets
    }

    pub(super) const fn gave_up(&self) -> bool {
        self.given_up
    }

    /// Whether this reading has more errors than another one.
    pub(super) fn is_worse_than(&self, other: &Self) -> bool {
        let is_misread = self.packets_first && self.packet_cost() > other.packet_cost();
        let has_more = self.given_up || is_misread || self.cost() > other.cost();
        !self.is_plausible() || self.rank() > other.rank() && has_more
    }

    /// Whether damage that also affects another reading may explain all errors of this one. Even in a right reading the
    /// packets after a damaged place are errors, and one reading has more of them than the other by chance.
    pub(super) const fn may_be_damaged_as(&self, other: &Self) -> bool {
        const CHANCE: u64 = 4;
        self.packets_first
            && !self.given_up
            && self.is_plausible()
            && self.packet_cost() <= CHANCE * other.packet_cost()
    }

    /// Whether this reading has so few errors more than another one that they may be chance.
    pub(super) const fn is_as_likely_as(&self, other: &Self) -> bool {
        const CHANCE: u64 = 1;
        self.is_plausible() && self.cost() <= other.cost() + CHANCE
    }

    /// The same counts with the execution of another reading.
    pub(super) const fn with_story_of(&self, other: &Self) -> Self {
        Self { story: other.story, ..*self }
    }

    /// Whether this reading has hardly any errors.
    pub(super) const fn is_good(&self) -> bool {
        let cost = if self.packets_first { self.packet_cost() } else { self.cost() };
        self.is_plausible()
            && cost * 100 <= self.packets
            && !self.contradicts_program()
            && !self.lacks_addresses()
    }

    /// Whether no reading can be much better, because packets decide and hardly any of them is wrong.
    pub(super) const fn reads_well(&self) -> bool {
        self.packets_first
            && self.is_plausible()
            && self.packet_cost() * 100 <= self.packets
            && !self.lacks_addresses()
    }

    /// Whether the trace lacks addresses so often that it must be read otherwise: the unit predicts returns.
    const fn lacks_addresses(&self) -> bool {
        /// Damage costs a few addresses.
        const FEW: u64 = 8;
        self.followed && self.lost > FEW && self.lost * 50 > self.ranges
    }

    /// Whether another reading is so much worse that the statements about the source must be wrong or missing.
    pub(super) fn is_much_better_than(&self, other: &Self) -> bool {
        // A program that contradicts both is not the traced one, and gives no evidence for the settings.
        let by_execution = self.followed && !self.packets_first;
        let cost = |reading: &Self| if by_execution { reading.cost() } else { reading.packet_cost() };
        let finds_addresses = other.lacks_addresses()
            && self.packet_cost() <= other.packet_cost()
            && self.ranges >= other.ranges
            && self.lost * 2 < other.lost;
        !other.is_plausible() || cost(self) * 2 < cost(other) || finds_addresses
    }

    /// Whether the program cannot be the traced one.
    pub(super) const fn contradicts_program(&self) -> bool {
        self.followed && (self.contradictions * 26 > self.ranges || self.in_program * 10 < self.i_syncs)
    }

    /// Whether most of the traced code is not in the program.
    pub(super) const fn misses_program(&self) -> bool {
        self.contradicts_program() || self.followed && self.in_program * 2 < self.i_syncs
    }

    /// Whether the source was followed in a program without a contradiction.
    pub(crate) const fn fits_program(&self) -> bool {
        self.followed && !self.given_up && self.contradictions == 0
    }

    /// Whether another reading gives the same execution and times.
    pub(super) fn gives_the_same(&self, other: &Self) -> bool {
        self.story == other.story && !self.given_up && !other.given_up
    }

    /// Whether another reading gives the same execution.
    pub(super) fn runs_the_same(&self, other: &Self) -> bool {
        self.story.runs == other.story.runs && !self.given_up && !other.given_up
    }
}

/// How many elements of the trace may be uncertain at a time.
fn greatest_speculation(config: &SourceConfig) -> u32 {
    if let SourceConfig::Etmv4(config) = config { config.greatest_speculation() } else { 0 }
}

/// The first place in the capture at which a source contradicts this configuration.
pub(crate) fn first_error(
    input: &Input<'_>,
    config: &SourceConfig,
    program: &Program,
) -> Option<CaptureOffset> {
    let mut first = None::<CaptureOffset>;
    let found = |first: &mut Option<CaptureOffset>, at: CaptureOffset| {
        *first = Some(first.map_or(at, |known| known.min(at)));
        Err(io::ErrorKind::Interrupted.into())
    };
    let mut check = Check::new(config, program);
    // The first error ends the work.
    let _ = input.packets(config, |record| match record.content {
        PacketItem::Packet(packet) if check.packet(packet, record.bytes) == 0 => Ok(()),
        PacketItem::Malformed(Malformation::Truncated { .. }) | PacketItem::Unsynchronised => {
            check.lose();
            Ok(())
        }
        PacketItem::Packet(_) | PacketItem::Malformed(_) => found(&mut first, record.at),
    });
    let _ = input.flow(config, program, |record| match record.element {
        Element::Gap(Gap { reason: GapReason::Contradiction(_) | GapReason::AddressUnknown, .. }) => {
            found(&mut first, record.at)
        }
        _ => Ok(()),
    });
    first
}

/// The counts that matter, for a message.
impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.given_up { "at least " } else { "" };
        let counts = [
            (self.malformed, "malformed"),
            (self.impossible, "impossible"),
            (self.contradictions, "contradicting the program"),
            (self.lost, "without address"),
        ];
        let mut said = false;
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "{}{more}{count} {what}", if said { ", " } else { "" })?;
            said = true;
        }
        if !said {
            f.write_str(if self.begins() { "0 errors" } else { "no I-sync" })?;
        }
        write!(f, " in {} packets", self.packets)?;
        if self.followed {
            write!(f, " and {} ranges", self.ranges)?;
        }
        if self.followed && self.in_program < self.i_syncs {
            write!(f, ", {} of {} I-syncs in the program", self.in_program, self.i_syncs)?;
        }
        Ok(())
    }
}
