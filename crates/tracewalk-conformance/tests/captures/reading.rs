//! The result of reading a capture.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use tracewalk::flow::{Block, Element, EventKind, GapReason};
use tracewalk::frame::{Discontinuity, FrameSink, Framing, Owner, Piece, RecoveringDeframer, Tail};
use tracewalk::ids::TraceId;
use tracewalk::program::Program;
use tracewalk::source::{PacketItem, SourceConfig};
use tracewalk_analysis::drive::{Carrier, Input, NoProgress, Stretch};

use super::possible::{Fields, Possible};

/// The result of reading one source, by the place in the capture.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) packets: BTreeMap<u64, Packet>,
    /// The start of each packet and each other stretch, and its number of bytes.
    pub(crate) items: BTreeMap<u64, u64>,
    /// Stretches that are reported as malformed, and their numbers of bytes.
    pub(crate) malformed: Vec<(u64, u64)>,
    /// Stretches skipped in the search for synchronisation, and their numbers of bytes.
    pub(crate) unsynchronised: Vec<(u64, u64)>,
    /// The execution.
    pub(crate) flow: Vec<(u64, Reported)>,
    /// Places where flow could not follow, or where the trace contradicts the program.
    pub(crate) gaps: BTreeSet<u64>,
}

/// A packet: its name, and the name with its bytes and fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) name: &'static str,
    pub(crate) text: String,
    fields: Fields,
}

/// An element of program flow, without its place in the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reported {
    Block(Block),
    Event(EventKind),
    Gap(GapReason),
}

impl Reading {
    pub(crate) fn of(
        framing: Option<Framing>,
        (id, config): (Option<TraceId>, &SourceConfig),
        bytes: &[u8],
        program: &Program,
    ) -> Self {
        let carrier = match (framing, id) {
            (Some(framing), Some(id)) => Carrier::Frames { framing, id },
            _ => Carrier::Stretches(vec![Stretch::all(bytes.len())]),
        };
        let mut reading = Self::default();
        let input = Input { capture: bytes, carrier, rest: None, progress: &NoProgress };
        let look = |record: tracewalk_analysis::record::PacketRecord<'_>| {
            let length = record.bytes.len() as u64;
            reading.items.insert(record.at.0, length);
            match record.content {
                PacketItem::Packet(packet) => {
                    let mut text = format!("{} {:02x?}", packet.name(), record.bytes);
                    packet.fields(&mut |name, field| {
                        // A timestamp is sent by its low bits; its high bits are those of the previous one.
                        if name != "timestamp" {
                            write!(text, " {name} {field:?}").expect("text can be written");
                        }
                    });
                    let fields = Fields::of(packet);
                    reading.packets.insert(record.at.0, Packet { name: packet.name(), text, fields });
                }
                PacketItem::Malformed(_) => reading.malformed.push((record.at.0, length)),
                PacketItem::Unsynchronised => reading.unsynchronised.push((record.at.0, length)),
            }
            Ok(())
        };
        input.packets(config, look).expect("nothing fails");
        input
            .flow(config, program, |record| {
                let reported = match record.element {
                    Element::Block(block) => Reported::Block(Block { span: Default::default(), ..block }),
                    Element::Event(event) => Reported::Event(match event.kind {
                        EventKind::Timestamp(_) => EventKind::Timestamp(0),
                        kind => kind,
                    }),
                    Element::Gap(gap) => {
                        reading.gaps.insert(record.at.0);
                        Reported::Gap(gap.reason)
                    }
                    Element::Proof(_) => return Ok(()),
                };
                reading.flow.push((record.at.0, reported));
                Ok(())
            })
            .expect("nothing fails");
        reading
    }

    /// The place from which a source's packets count after it lost synchronisation at `lost`: its next I-sync
    /// after an A-sync; `None` if none follows.
    pub(crate) fn synchronisation(&self, lost: u64) -> Option<u64> {
        let mut after = self.packets.range(lost..).skip_while(|(_, packet)| packet.name != "a_sync");
        after.find(|(_, packet)| packet.name == "i_sync").map(|(at, _)| *at)
    }

    /// The first place up to `end` where the packets cannot be a trace of the program, except after malformed
    /// bytes and after the places in `known`.
    pub(crate) fn first_impossible(
        &self,
        config: &SourceConfig,
        program: &Program,
        known: &BTreeSet<u64>,
        end: u64,
    ) -> Option<(u64, String)> {
        let mut possible = Possible::new(config, program);
        let mut reported =
            self.malformed.iter().chain(&self.unsynchronised).map(|(at, _)| *at).collect::<Vec<_>>();
        reported.extend(known);
        reported.sort_unstable();
        let mut reported = reported.into_iter().peekable();
        for (at, packet) in self.packets.range(..=end) {
            while reported.next_if(|reported| reported < at).is_some() {
                possible.lose();
            }
            let result = possible.packet(packet.name, &packet.fields);
            if reported.next_if(|reported| reported == at).is_some() {
                possible.lose();
            } else if let Err(why) = result {
                return Some((*at, why));
            }
        }
        None
    }
}

/// The losses reported for frames.
#[derive(Default)]
pub(crate) struct FrameLosses {
    pub(crate) discontinuities: Vec<Discontinuity>,
    /// Bytes that no formatter writes: of reserved IDs, and padding that is not zero.
    pub(crate) odd: Vec<u64>,
    /// The place of each source's first byte.
    pub(crate) sources: BTreeMap<TraceId, u64>,
    /// The incomplete frame at the end.
    pub(crate) tail: Option<Tail>,
}

impl FrameSink for FrameLosses {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        match owner {
            Owner::Reserved(_) => self.odd.push(piece.at.0),
            Owner::Padding | Owner::Trigger if piece.bytes.iter().any(|byte| *byte != 0) => {
                self.odd.push(piece.at.0);
            }
            Owner::Source(id) => {
                self.sources.entry(id).or_insert(piece.at.0);
            }
            Owner::Padding | Owner::Trigger | Owner::Unknown => {}
        }
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        self.discontinuities.push(discontinuity);
    }
}

impl FrameLosses {
    pub(crate) fn of(framing: Framing, bytes: &[u8]) -> Self {
        let mut losses = Self::default();
        let mut deframer = RecoveringDeframer::new(framing);
        deframer.push(bytes, &mut losses);
        losses.tail = Some(deframer.finish(&mut losses));
        assert_eq!(deframer.account().total(), bytes.len() as u64, "each byte is accounted for");
        losses
    }
}
