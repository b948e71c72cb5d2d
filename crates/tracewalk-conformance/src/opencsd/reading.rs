//! A trace → each decoder's reading of it.

use std::collections::BTreeMap;

use tracewalk::flow::{Block, BranchKind, Element, Ending, Event, EventKind};
use tracewalk::ids::{Address, Isa, Location};
use tracewalk::isa;
use tracewalk::program::Program;
use tracewalk::protocol::Field;
use tracewalk::source::{FlowStream, PacketItem, PacketStream, SourceConfig};
use tracewalk::span::Span;

use super::atoms::Atoms;
use super::model::{MALFORMED, Packet, Reading, Step, UNSYNCHRONISED, Value, WHY, What};

impl Reading {
    /// tracewalk's reading.
    #[must_use]
    pub fn ours(config: &SourceConfig, bytes: &[u8], program: &Program) -> Self {
        let mut reading = Self { packets: packets(config, bytes), ..Self::default() };
        let mut atoms = match config {
            SourceConfig::Etmv3(config) => {
                Some(Atoms::new(&reading.packets, config.two_atoms_per_thumb_pair()))
            }
            // In the other protocols, a single packet proves all of a block.
            _ => None,
        };
        let mut take = |element: Element| reading.take(element, program, atoms.as_mut());
        let mut stream = FlowStream::new(config);
        stream.push(bytes, program, &mut take);
        stream.finish(program, &mut take);
        reading
    }

    fn take(&mut self, element: Element, program: &Program, mut atoms: Option<&mut Atoms>) {
        let Span { start, end } = element.span();
        let (from, until) = (start.0, end.0.saturating_sub(1).max(start.0));
        let step = |what| Step { from, until, what };
        if let Some(atoms) = atoms.as_deref_mut()
            && is_after_all_atoms(&element)
        {
            atoms.skip_to(from);
            if matches!(element, Element::Gap(_)) {
                atoms.lose();
            }
        }
        match element {
            Element::Gap(gap) => self.gaps.push(gap),
            Element::Proof(_) => {}
            Element::Block(block) => {
                let all = instructions(program, block.start, block.end, block.isa);
                let places = atoms.map(|atoms| atoms.take(&all, block.end, from)).unwrap_or_default();
                let mut steps = steps(&block, &all, &places);
                if places.is_empty() {
                    self.place_before_waypoint(&mut steps);
                }
                self.steps.extend(steps);
            }
            Element::Event(event) => match event.kind {
                EventKind::Exception { exception: Some(exception), preferred_return, .. } => {
                    self.steps.push(step(What::Exception { number: exception.number(), preferred_return }));
                }
                EventKind::ExceptionReturn => self.steps.push(step(What::ExceptionReturn)),
                EventKind::TraceOn(_) => self.steps.push(step(What::TraceOn)),
                _ => {}
            },
        }
    }

    /// In PFT, a waypoint update reports instructions on its own, before the packet that ends their block.
    fn place_before_waypoint(&self, steps: &mut [Step]) {
        let Some(end) = steps.first().map(|step| step.from) else { return };
        let before = self.packets.partition_point(|packet| packet.at < end);
        let before = self.packets.get(..before).unwrap_or_default().iter().rev();
        let update = before
            .take_while(|packet| !["atom", "branch", "i_sync"].contains(&packet.kind))
            .find(|packet| packet.kind == "waypoint_update");
        let Some((at, Some(last))) = update.map(|update| (update.at, update.number("addr"))) else { return };
        for step in steps {
            match step.what {
                What::Instruction { at: place, .. } if place.address.get() <= last => {
                    (step.from, step.until) = (at, at);
                }
                _ => break,
            }
        }
    }

    /// OpenCSD's reading, with its ranges split into instructions.
    #[must_use]
    pub fn theirs(packets: Vec<Packet>, steps: &[Step], program: &Program) -> Self {
        let mut apart = Vec::new();
        for step in steps {
            let What::Range(range) = step.what else {
                apart.push(step.clone());
                continue;
            };
            let last = range.end.get().wrapping_sub(range.last_bytes.into());
            apart.extend(instructions(program, range.start, range.end, range.isa).into_iter().map(|at| {
                Step {
                    what: What::Instruction { at, passed: range.passed || at.address.get() != last },
                    ..step.clone()
                }
            }));
        }
        Self { packets, steps: apart, gaps: Vec::new() }
    }
}

/// Whether all atoms before an element are accounted for: cancelled or lost ones are never reported.
const fn is_after_all_atoms(element: &Element) -> bool {
    let Element::Event(Event { kind, .. }) = element else { return matches!(element, Element::Gap(_)) };
    matches!(kind, EventKind::TraceOn(_) | EventKind::Exception { .. })
}

/// The instructions of a block; each has its atom in the packet at its place, if places are known.
fn steps(block: &Block, all: &[Location], places: &[u64]) -> Vec<Step> {
    let (first, last) = (block.span.start.0, block.span.end.0.saturating_sub(1).max(block.span.start.0));
    let passed = match block.ending {
        Ending::Branch { kind: BranchKind::Barrier, .. } | Ending::Interrupted => true,
        Ending::Branch { taken, .. } => taken,
        Ending::ConditionFailed => false,
    };
    let step = |(nth, &at): (usize, &Location)| {
        let from = places.get(nth).copied().unwrap_or(first);
        let until = if nth + 1 == all.len() || places.is_empty() { last } else { from };
        Step { from, until, what: What::Instruction { at, passed: passed || at.address != block.last } }
    };
    all.iter().enumerate().map(step).collect()
}

/// The places of the instructions from `start` up to `end`.
fn instructions(program: &Program, start: Address, end: Address, isa: Isa) -> Vec<Location> {
    let mut places = Vec::new();
    let mut at = start;
    while at < end {
        let code = program.code(at).unwrap_or_default();
        let Ok(instruction) = isa::classify(code, at, isa) else { break };
        places.push(Location::new(at, isa));
        at = Location::new(at, isa).after(instruction.bytes.into()).address;
    }
    places
}

fn packets(config: &SourceConfig, bytes: &[u8]) -> Vec<Packet> {
    let mut all = Vec::<Packet>::new();
    let mut stream = PacketStream::new(config);
    let mut take = |item: PacketItem<'_>, span: Span, _: &[u8]| {
        let mut packet = Packet { at: span.start.0, kind: MALFORMED, fields: BTreeMap::new() };
        match item {
            PacketItem::Packet(described) => {
                packet.kind = described.name();
                described.fields(&mut |name, value| {
                    let value = match value {
                        Field::Number(number) | Field::Bits(number) => Value::Number(number),
                        Field::Flag(flag) => Value::Number(flag.into()),
                        Field::Address(address) => Value::Number(address.get()),
                        Field::Text(text) => Value::Text(text.to_owned()),
                    };
                    packet.fields.insert(name, value);
                });
            }
            PacketItem::Malformed(reason) => {
                packet.fields.insert(WHY, Value::Text(reason.name().to_owned()));
            }
            PacketItem::Unsynchronised => packet.kind = UNSYNCHRONISED,
        }
        all.push(packet);
    };
    stream.push(bytes, &mut take);
    stream.finish(&mut take);
    all
}
