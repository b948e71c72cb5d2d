//! The surroundings of a difference.

use std::collections::BTreeSet;

use tracewalk::ids::{Isa, Location};
use tracewalk::isa::{self, Class, Instruction};
use tracewalk::program::Program;
use tracewalk::source::SourceConfig;
use tracewalk_generate::etmcr::RETURN_STACK;

use super::listing::Listing;
use super::model::{Packet, Reading, Registers, Step, Value, What};
use super::subject::Subject;

/// The surroundings of a difference: everything from the last I-sync before it that both decoders read, up to
/// the next one.
#[derive(Debug)]
pub struct Place<'a> {
    /// The source.
    pub config: &'a SourceConfig,
    /// The registers that OpenCSD reads.
    pub registers: Registers,
    /// The first byte.
    pub from: u64,
    /// The byte after the last one.
    pub until: u64,
    program: &'a Program,
    ours: &'a Reading,
    theirs: &'a Reading,
    listing: &'a Listing,
}

impl<'a> Place<'a> {
    /// The surroundings of these bytes, the last one included.
    #[must_use]
    pub fn around(
        subject: &'a Subject<'_>,
        ours: &'a Reading,
        theirs: &'a Reading,
        listing: &'a Listing,
        (first, last): (u64, u64),
    ) -> Self {
        let theirs_at = theirs.packets.iter().filter(|packet| is_i_sync(packet)).map(|packet| packet.at);
        let both = &i_syncs_in_step(ours) & &theirs_at.collect();
        let from = both.range(..=first).next_back().copied().unwrap_or(0);
        let until = both.range(last.saturating_add(1)..).next().copied().unwrap_or(u64::MAX);
        let Subject { config, registers, program, .. } = subject;
        Self { config, registers: *registers, from, until, program, ours, theirs, listing }
    }

    const fn holds(&self, at: u64) -> bool {
        at >= self.from && at < self.until
    }

    /// Our packets in these surroundings.
    pub fn packets(&self) -> impl Iterator<Item = &'a Packet> {
        self.ours.packets.iter().filter(|packet| self.holds(packet.at))
    }

    /// OpenCSD's packets in these surroundings.
    pub fn their_packets(&self) -> impl Iterator<Item = &'a Packet> {
        self.theirs.packets.iter().filter(|packet| self.holds(packet.at))
    }

    /// Whether the program changed the instruction set, last before our steps of byte `step`, and no packet
    /// before `packet` states the change.
    #[must_use]
    pub fn changed_isa_unsaid(&self, step: u64, packet: u64) -> bool {
        let before = self.ours.steps.iter().filter(|known| known.from <= step);
        let instructions = before.filter_map(|step| match step.what {
            What::Instruction { at, .. } => Some((step.from, at.isa)),
            _ => None,
        });
        let instructions = instructions.collect::<Vec<_>>();
        let change = instructions.windows(2).rev().find_map(|pair| match pair {
            [(place, before), (_, after)] if before != after => Some(*place),
            _ => None,
        });
        let Some(change) = change else { return false };
        let said = |known: &Packet| ["branch", "i_sync"].contains(&known.kind);
        change >= self.from
            && !self.packets().any(|known| said(known) && known.at > change && known.at < packet)
    }

    /// The packet, or unreadable bytes, before `at` in our reading.
    #[must_use]
    pub fn item_before(&self, at: u64) -> Option<&'a Packet> {
        self.ours.packets.iter().rfind(|packet| packet.at < at)
    }

    /// The Hyp bit of the I-sync packet at `at`, or of the last one before.
    #[must_use]
    pub fn hyp_of_i_sync(&self, at: u64) -> Option<u64> {
        let before = self.ours.packets.iter().take_while(|packet| packet.at <= at);
        before.filter(|packet| packet.kind == "i_sync").last()?.number("hyp")
    }

    /// Whether our reading ignores the packets at `at` because an A-sync, or the I-sync after it, is missing.
    #[must_use]
    pub fn is_out_of_step(&self, at: u64) -> bool {
        let before = self.ours.packets.iter().take_while(|packet| packet.at <= at);
        let mut step = Standing::Nothing;
        for packet in before {
            step = step.then(packet);
        }
        step != Standing::Known
    }

    /// Whether a timestamp before `at` has another length in OpenCSD's reading.
    #[must_use]
    pub fn has_other_timestamp_before(&self, at: u64) -> bool {
        let lengths = |reading: &'a Reading| {
            // OpenCSD does not list a packet that the end of the trace cuts off.
            let ends = reading.packets.iter().skip(1).map(|next| next.at).chain([u64::MAX]);
            let all = reading.packets.iter().zip(ends);
            let timestamps = all.filter(|(packet, _)| packet.kind == "timestamp" && packet.at < at);
            timestamps.map(|(packet, end)| (packet.at, end)).collect::<BTreeSet<_>>()
        };
        let (ours, theirs) = (lengths(self.ours), lengths(self.theirs));
        ours.difference(&theirs).any(|(start, _)| theirs.range((*start, 0)..(*start + 1, 0)).next().is_some())
    }

    /// Whether OpenCSD gave up, and printed nothing after `at` before it did.
    #[must_use]
    pub fn gave_up_before(&self, at: u64) -> bool {
        self.listing.gave_up && self.theirs.steps.last().is_none_or(|last| last.from <= at)
    }

    /// Whether OpenCSD reads, in these bytes, what no processor executes: an instruction that fails but has
    /// no condition, one that the instruction before does not lead to, or one at an address without code; or
    /// whether it continues elsewhere than its own packet states.
    ///
    /// With a return stack, a wrong address comes back with each return, so all bytes since the last I-sync
    /// count.
    #[must_use]
    pub fn is_impossible(&self, (from, until): (u64, u64)) -> bool {
        let from = if self.registers.etmcr & RETURN_STACK == 0 { from } else { self.from };
        let mut before = None;
        if self.ignores_an_address((from, until)) {
            return true;
        }
        self.their_steps().take_while(|step| step.from <= until).any(|step| {
            let follows = before.replace(step);
            step.from >= from
                && (self.cannot_be(step) || follows.is_some_and(|follows| self.cannot_follow(follows, step)))
        })
    }

    /// Whether OpenCSD continues elsewhere than one of its PFT branch packets states.
    fn ignores_an_address(&self, (from, until): (u64, u64)) -> bool {
        let addressed = |packet: &&Packet| {
            packet.kind == "branch"
                && (from..=until).contains(&packet.at)
                && packet.number("exception").is_none()
        };
        matches!(self.config, SourceConfig::Pft(_))
            && self.their_packets().filter(addressed).any(|packet| {
                let mut steps = self.their_steps().skip_while(|step| step.from < packet.at);
                let mut after = steps.by_ref().skip_while(|step| step.from == packet.at);
                match after.next().map(|step| step.what) {
                    Some(What::Instruction { at, .. }) => packet.number("addr") != Some(at.address.get()),
                    _ => false,
                }
            })
    }

    fn cannot_be(&self, step: &Step) -> bool {
        match step.what {
            What::Unknown => true,
            What::Instruction { at, passed: false } => {
                self.classified(at).is_some_and(|known| !known.conditional) && !self.may_be_in_it_block(at)
            }
            _ => false,
        }
    }

    fn cannot_follow(&self, before: &Step, step: &Step) -> bool {
        let (What::Instruction { at, passed }, What::Instruction { at: next, .. }) = (before.what, step.what)
        else {
            return false;
        };
        let Some(known) = self.classified(at) else { return true };
        let end = at.after(known.bytes.into()).address;
        match known.class {
            Class::Indirect if passed => false,
            Class::Direct(target) if passed => next.address != target.address,
            _ => next.address != end,
        }
    }

    /// Whether an IT instruction is close enough before. A match may also be half of another instruction.
    fn may_be_in_it_block(&self, at: Location) -> bool {
        at.isa.is_thumb()
            && (1..=7).any(|halfwords| {
                let from = at.moved(-2 * halfwords);
                self.classified(from).is_some_and(|known| known.it_block > 0)
            })
    }

    fn classified(&self, at: Location) -> Option<Instruction> {
        isa::classify(self.program.code(at.address)?, at.address, at.isa).ok()
    }

    /// The next branch packet after `at` with an exception, if no atoms are between. Consecutive branch
    /// packets show where a return went and which exception replaced it.
    #[must_use]
    pub fn next_exception(&self, at: u64) -> Option<&'a Packet> {
        let atoms = |packet: &Packet| match packet.fields.get("atoms") {
            Some(Value::Text(atoms)) => atoms.contains(['E', 'N']),
            _ => false,
        };
        let exception = |packet: &Packet| {
            packet.number("exception").is_some_and(|number| number != 0) || packet.number("eee").is_some()
        };
        let mut after = self.ours.packets.iter().filter(|packet| packet.at > at);
        after.find(|packet| exception(packet) || atoms(packet)).filter(|packet| exception(packet))
    }

    /// Whether a step is an instruction of 16 bits after which the image ends.
    #[must_use]
    pub fn ends_region(&self, step: &Step) -> bool {
        match step.what {
            What::Instruction { at, .. } => self.program.code(at.address).is_some_and(|code| code.len() == 2),
            _ => false,
        }
    }

    /// Whether a waypoint update in `from..=until` names the second half of an instruction.
    #[must_use]
    pub fn updates_within_an_instruction(&self, (from, until): (u64, u64)) -> bool {
        let updates = self.packets().filter(|packet| packet.kind == "waypoint_update");
        let mut updates = updates.filter(|update| (from..=until).contains(&update.at));
        updates.any(|update| {
            let last = self.steps().filter(|step| step.from == update.at).last();
            let last = last.and_then(|step| match step.what {
                What::Instruction { at, .. } => Some(at.address.get()),
                _ => None,
            });
            last.is_some_and(|last| update.number("addr") == Some(last + 2))
        })
    }

    /// Whether the program executed a 32-bit Thumb instruction in these surroundings.
    #[must_use]
    pub fn has_wide_thumb(&self) -> bool {
        self.steps().chain(self.their_steps()).any(|step| {
            let What::Instruction { at, .. } = step.what else { return false };
            let code = self.program.code(at.address).unwrap_or_default();
            at.isa == Isa::T32
                && isa::classify(code, at.address, at.isa).is_ok_and(|instruction| instruction.bytes == 4)
        })
    }

    /// Our steps in these surroundings.
    pub fn steps(&self) -> impl Iterator<Item = &'a Step> {
        self.ours.steps.iter().filter(|step| self.holds(step.from))
    }

    /// Our packet that starts at `at`.
    pub fn packet(&self, at: u64) -> Option<&'a Packet> {
        self.packets().find(|packet| packet.at == at)
    }

    /// OpenCSD's steps in these surroundings.
    pub fn their_steps(&self) -> impl Iterator<Item = &'a Step> {
        self.theirs.steps.iter().filter(|step| self.holds(step.from))
    }
}

/// What is still missing before packets have a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// An A-sync.
    Nothing,
    /// An I-sync.
    Aligned,
    /// Nothing.
    Known,
}

impl Standing {
    fn then(self, packet: &Packet) -> Self {
        match (self, packet.kind) {
            _ if !packet.is_packet() => Self::Nothing,
            (Self::Nothing, "a_sync") => Self::Aligned,
            (Self::Aligned, "i_sync" | "trace_info") => Self::Known,
            _ => self,
        }
    }
}

/// Whether a packet begins a synchronisation; in ETMv4 the trace info packet does.
fn is_i_sync(packet: &Packet) -> bool {
    ["i_sync", "trace_info"].contains(&packet.kind)
}

/// The I-syncs that our reading uses.
fn i_syncs_in_step(ours: &Reading) -> BTreeSet<u64> {
    let mut step = Standing::Nothing;
    let mut all = BTreeSet::new();
    for packet in &ours.packets {
        step = step.then(packet);
        if step == Standing::Known && is_i_sync(packet) {
            all.insert(packet.at);
        }
    }
    all
}
