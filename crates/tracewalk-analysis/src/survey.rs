//! A survey of a source's trace: packets, synchronisation, times, contexts, losses.

use std::collections::BTreeMap;

use tracewalk::flow::{Element, Event, EventKind, Gap, GapReason};
use tracewalk::protocol::Field;
use tracewalk::source::PacketItem;
use tracewalk::span::{CaptureOffset, StreamOffset};

use crate::record::PacketRecord;
use crate::{Contexts, Doubt, DoubtChange, Doubts, Statistics};

/// A survey by all packets of a source, and by its flow without a program.
#[derive(Debug, Default)]
pub struct Survey {
    /// Totals.
    pub statistics: Statistics,
    /// The number of packets of each kind.
    pub packets: BTreeMap<&'static str, u64>,
    /// The place of the source's first synchronisation.
    pub first_sync: Option<CaptureOffset>,
    /// Bytes before that.
    pub unsynchronised: u64,
    /// Bytes after it that were passed over until the source synchronised again.
    pub passed_over: u64,
    /// The first timestamp and the last.
    pub timestamps: Option<(u64, u64)>,
    /// The cycles that the trace counts; `None` if it counts none.
    pub cycles: Option<u64>,
    /// How often tracing began, by the reason.
    pub begins: BTreeMap<&'static str, u64>,
    /// Places where trace was malformed or lost.
    pub losses: u64,
    /// The context IDs and VMIDs that the trace named.
    pub contexts: Contexts,
    /// The stretches that the trace alone puts in doubt, without a program.
    pub doubts: Doubts,
    doubt: Doubt,
    /// The kinds seen so far, unsorted.
    kinds: Vec<(&'static str, u64)>,
}

/// The packet with the time, and its field.
const TIMESTAMP: &str = "timestamp";

impl Survey {
    /// Takes the next packet.
    pub fn packet(&mut self, record: &PacketRecord<'_>) {
        match record.content {
            PacketItem::Packet(packet) => {
                let name = packet.name();
                self.count(name);
                self.first_sync.get_or_insert(record.at);
                if name == TIMESTAMP {
                    packet.fields(&mut |name, field| self.field(name, field));
                }
            }
            PacketItem::Unsynchronised if self.first_sync.is_none() => {
                self.unsynchronised += record.bytes.len() as u64;
            }
            PacketItem::Unsynchronised => self.passed_over += record.bytes.len() as u64,
            PacketItem::Malformed(_) => {}
        }
    }

    /// There are few kinds, and each has one name: the address of the name distinguishes them.
    fn count(&mut self, name: &'static str) {
        match self.kinds.iter_mut().find(|(known, _)| std::ptr::eq(*known, name)) {
            Some((_, count)) => *count += 1,
            None => self.kinds.push((name, 1)),
        }
    }

    fn field(&mut self, name: &str, field: Field<'_>) {
        if let (TIMESTAMP, Field::Number(time)) = (name, field)
            && time != 0
        {
            let first = self.timestamps.map_or(time, |(first, _)| first);
            self.timestamps = Some((first, time));
        }
    }

    /// Takes the next element of flow without a program, whose proof begins at `at`.
    pub fn element(&mut self, element: &Element, at: CaptureOffset) {
        self.contexts.element(element);
        if let Some(DoubtChange::Ends(stretch)) = self.doubt.element(element, || at) {
            self.doubts.add(stretch);
        }
        match element {
            Element::Event(Event { kind: EventKind::Cycles(cycles), .. }) => {
                *self.cycles.get_or_insert(0) += cycles;
            }
            Element::Event(Event { kind: EventKind::TraceOn(reason), .. }) => {
                *self.begins.entry(reason.name()).or_default() += 1;
            }
            Element::Gap(Gap { reason: GapReason::TraceLost, .. }) => self.losses += 1,
            _ => {}
        }
    }

    /// The trace ends here, in a capture of `bytes` bytes.
    #[must_use]
    pub fn finish(mut self, statistics: Statistics, capture: CaptureOffset) -> Self {
        let end = StreamOffset(statistics.bytes);
        self.doubt.at_end(end, capture).into_iter().for_each(|stretch| self.doubts.add(stretch));
        // The same name may exist at two addresses.
        for (name, count) in std::mem::take(&mut self.kinds) {
            *self.packets.entry(name).or_default() += count;
        }
        Self { statistics, ..self }
    }
}
