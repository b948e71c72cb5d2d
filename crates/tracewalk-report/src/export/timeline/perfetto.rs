//! Perfetto's trace format: track events as protocol buffers (perfetto.dev, `protos/perfetto/trace`).
//!
//! Only the messages and fields that a timeline needs are defined here. Names are interned: each is in the file once for each
//! source.

mod messages;
mod written;

use std::sync::Arc;

use std::collections::HashMap;
use std::io::{self, Write};
use std::rc::Rc;

use self::messages::{Annotation, Counter, Descriptor, Event, Interned, Name, Packet, Process};
use self::written::{Content, Written};
use super::TimelineExport;
use super::names::{Names, details, kind, rank, title};
use crate::words::CUT;
use tracewalk_analysis::timeline::{Certainty, Change, Item, Mark, Moment, Scale, Track};
use tracewalk_analysis::{Code, Section};

/// Writes track events.
#[derive(Debug)]
pub struct PerfettoTrace<W> {
    out: W,
    sources: u32,
    source: Source,
    /// Bytes that are not written yet.
    buffer: Vec<u8>,
    /// The last time on the axis, in nanoseconds.
    last: u64,
}

/// One source's part.
#[derive(Debug)]
struct Source {
    /// The source's number, from 1: its process, and its sequence of packets.
    number: u32,
    scale: Option<Scale>,
    names: Names,
    tracks: HashMap<Track, u64>,
    interned: HashMap<Rc<str>, u64>,
    written: Written,
}

/// `TrackEvent.Type`.
const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;
const COUNTER: i32 = 4;

/// `TracePacket.SequenceFlags`.
const INCREMENTAL_STATE_CLEARED: u32 = 0b01;
const NEEDS_INCREMENTAL_STATE: u32 = 0b10;

/// `TrackDescriptor.ChildTracksOrdering`: by `sibling_order_rank`.
const EXPLICIT: i32 = 3;

/// The track of the capture; the tracks of sources have smaller numbers.
const CAPTURE: u64 = 1 << 63;

/// The number of bytes that are written at once.
const MUCH: usize = 64 << 10;

/// Event categories: the kind of a span, and the origin of its times.
const CATEGORIES: [&str; 12] = [
    "function",
    "exception",
    "task",
    "gap",
    "trigger",
    "text",
    "interpolated",
    "estimated",
    "event",
    "instrumentation",
    "transaction",
    "itm_exception",
];

impl<W: Write> PerfettoTrace<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        let source = Source::new(0, Arc::new(Code::unknown()));
        Self { out, sources: 0, source, buffer: Vec::new(), last: 0 }
    }

    fn send(&mut self, packet: Packet) -> io::Result<()> {
        let packet = self.of_source(packet);
        written::append(&packet, &mut self.buffer)?;
        self.write_out()
    }

    /// The packet as one of this source.
    fn of_source(&self, packet: Packet) -> Packet {
        let flags = packet.sequence_flags.unwrap_or(NEEDS_INCREMENTAL_STATE);
        Packet { trusted_packet_sequence_id: Some(self.source.number), sequence_flags: Some(flags), ..packet }
    }

    /// Writes the buffer, once it is large enough.
    #[inline]
    fn write_out(&mut self) -> io::Result<()> {
        if self.buffer.len() >= MUCH {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// A mark on a track of its own, after the last item.
    fn cut(&mut self) -> io::Result<()> {
        self.source.number = self.source.number.max(1);
        let name = Some("capture".to_owned());
        let descriptor = Descriptor { uuid: Some(CAPTURE), name, ..Descriptor::default() };
        self.send(Packet {
            sequence_flags: Some(INCREMENTAL_STATE_CLEARED),
            track_descriptor: Some(descriptor),
            ..Packet::default()
        })?;
        let event = Event {
            r#type: Some(INSTANT),
            name: Some(CUT.to_owned()),
            track_uuid: Some(CAPTURE),
            ..Event::default()
        };
        self.send(Packet { timestamp: Some(self.last), track_event: Some(event), ..Packet::default() })
    }

    /// The track's number; describes a new track.
    fn track(&mut self, track: Track) -> io::Result<u64> {
        if let Some(known) = self.source.tracks.get(&track) {
            return Ok(*known);
        }
        let uuid = self.source.uuid() + self.source.tracks.len() as u64 + 1;
        self.source.tracks.insert(track, uuid);
        let descriptor = Descriptor {
            uuid: Some(uuid),
            name: Some(self.source.names.track(track)),
            parent_uuid: Some(self.source.uuid()),
            sibling_order_rank: Some(rank(track)),
            counter: matches!(track, Track::Values(_) | Track::Watched { .. }).then_some(Counter {}),
            ..Descriptor::default()
        };
        self.send(Packet { track_descriptor: Some(descriptor), ..Packet::default() })?;
        Ok(uuid)
    }

    /// The event of an item, and its name if it is new.
    fn event(&mut self, item: &Item) -> io::Result<(Event, Option<Interned>)> {
        let (track, mut event, interned) = match &item.change {
            Change::Begin(span) => {
                let name = self.source.names.span(&span.what);
                let (name_iid, interned) = self.source.intern(&name);
                let notes = details(&span.what).into_iter();
                let notes = notes.chain(span.start.note().map(|note| ("start", note.to_owned())));
                let event = Event {
                    r#type: Some(SLICE_BEGIN),
                    name_iid: Some(name_iid),
                    category_iids: categories(Some(kind(&span.what)), item.at.certainty),
                    debug_annotations: notes.map(|(name, note)| annotation(name, note)).collect(),
                    ..Event::default()
                };
                (span.track, event, interned)
            }
            Change::End { track, finish, .. } => {
                let certainty = item.at.certainty.name().map(|name| ("end_time", name));
                let notes = finish.note().map(|note| ("end", note)).into_iter().chain(certainty);
                let event = Event {
                    r#type: Some(SLICE_END),
                    debug_annotations: notes.map(|(name, note)| annotation(name, note.to_owned())).collect(),
                    ..Event::default()
                };
                (*track, event, None)
            }
            Change::Mark { track, mark: Mark::Value(value) } => {
                let counter_value = Some(i64::from(*value));
                let event = Event { r#type: Some(COUNTER), counter_value, ..Event::default() };
                (*track, event, None)
            }
            Change::Mark { track, mark } => {
                let (kind, name) = self.source.names.mark(mark);
                let event = Event {
                    r#type: Some(INSTANT),
                    name: Some(name.into_owned()),
                    category_iids: categories(Some(kind), item.at.certainty),
                    ..Event::default()
                };
                (*track, event, None)
            }
        };
        event.track_uuid = Some(self.track(track)?);
        Ok((event, interned))
    }
}

impl Source {
    fn new(number: u32, code: Arc<Code>) -> Self {
        Self {
            number,
            scale: None,
            names: Names::new(code),
            tracks: HashMap::new(),
            interned: HashMap::new(),
            written: Written::default(),
        }
    }

    /// The number of its process's track.
    fn uuid(&self) -> u64 {
        u64::from(self.number) << 32
    }

    fn nanoseconds(&self, at: Moment) -> u64 {
        self.scale.map_or(at.ticks, |scale| scale.nanoseconds(at.ticks))
    }

    /// The number of a name, and the name itself if it is new.
    fn intern(&mut self, name: &Rc<str>) -> (u64, Option<Interned>) {
        if let Some(known) = self.interned.get(name) {
            return (*known, None);
        }
        let iid = self.interned.len() as u64 + 1;
        self.interned.insert(Rc::clone(name), iid);
        let event_names = vec![Name { iid: Some(iid), name: Some(name.to_string()) }];
        (iid, Some(Interned { event_names, ..Interned::default() }))
    }
}

fn categories(kind: Option<&str>, certainty: Certainty) -> Vec<u64> {
    let number = |name: &str| CATEGORIES.iter().position(|category| *category == name);
    let names = kind.into_iter().chain(certainty.name());
    names.filter_map(number).map(|index| index as u64 + 1).collect()
}

fn annotation(name: &str, value: String) -> Annotation {
    Annotation { name: Some(name.to_owned()), string_value: Some(value) }
}

impl<W: Write> TimelineExport for PerfettoTrace<W> {
    fn section(&mut self, section: &Section, scale: &Scale) -> io::Result<()> {
        self.sources += 1;
        self.source = Source::new(self.sources, Arc::clone(&section.code));
        self.source.scale = Some(*scale);
        let process_name = title(section, scale, "1 ns");
        let descriptor = Descriptor {
            uuid: Some(self.source.uuid()),
            process: Some(Process {
                pid: i32::try_from(self.sources).ok(),
                process_name: Some(process_name),
            }),
            child_ordering: Some(EXPLICIT),
            ..Descriptor::default()
        };
        let names = (1..).zip(CATEGORIES);
        let event_categories =
            names.map(|(iid, name)| Name { iid: Some(iid), name: Some(name.to_owned()) }).collect();
        self.send(Packet {
            sequence_flags: Some(INCREMENTAL_STATE_CLEARED),
            track_descriptor: Some(descriptor),
            ..Packet::default()
        })?;
        self.send(Packet {
            interned_data: Some(Interned { event_categories, ..Interned::default() }),
            ..Packet::default()
        })
    }

    fn item(&mut self, item: &Item) -> io::Result<()> {
        let at = self.source.nanoseconds(item.at);
        self.last = self.last.max(at);
        let content = Content::of(item);
        if let Some(bytes) = content.as_ref().and_then(|content| self.source.written.get(content)) {
            written::append_at(at, bytes, &mut self.buffer);
            return self.write_out();
        }
        let (event, interned) = self.event(item)?;
        let packet = self.of_source(Packet { track_event: Some(event), ..Packet::default() });
        // A name is written once.
        let Some(interned_data) = interned else {
            let bytes = written::without_time(&packet);
            written::append_at(at, &bytes, &mut self.buffer);
            if let Some(content) = content {
                self.source.written.keep(content, bytes);
            }
            return self.write_out();
        };
        self.send(Packet { timestamp: Some(at), interned_data: Some(interned_data), ..packet })
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        if !complete {
            self.cut()?;
        }
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use tracewalk::directive::{Instrumentation, Transaction};
    use tracewalk::ids::{Exception, ExceptionLevel};
    use tracewalk::protocol::itm::ExceptionAction;
    use tracewalk_analysis::timeline::Mark;

    use super::*;

    #[test]
    fn every_mark_has_a_category() {
        let names = Names::new(Arc::new(Code::unknown()));
        let marks = [
            Mark::Trigger,
            Mark::Events(0b0101),
            Mark::Instrumentation(Instrumentation { level: ExceptionLevel::new(1).unwrap(), value: 7 }),
            Mark::Transaction(Transaction::Failed),
            Mark::Text("hello".to_owned()),
            Mark::Exception(Some(Exception::M(15)), ExceptionAction::Entered),
        ];
        for mark in &marks {
            let (kind, _) = names.mark(mark);
            let [number] = *categories(Some(kind), Certainty::Exact) else { panic!("{kind}: no category") };
            assert_eq!(
                number.checked_sub(1).and_then(|index| CATEGORIES.get(usize::try_from(index).unwrap())),
                Some(&kind)
            );
        }
    }
}
