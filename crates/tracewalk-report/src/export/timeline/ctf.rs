//! The Common Trace Format, version 1.8 (diamon.org/ctf, v1.8.3): a folder with a description of the format and a file of
//! packets for each source. babeltrace2 and Trace Compass read it.
//!
//! All fields are aligned to bytes and little-endian, so that events are written directly.
use std::sync::Arc;

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::rc::Rc;

use super::TimelineExport;
use super::names::{Names, details, ruler, title};
use tracewalk_analysis::timeline::{Certainty, Change, Item, Mark, Moment, Scale, SpanId, Track, What};
use tracewalk_analysis::{Code, Section};

/// Creates the files of an output that is a folder.
pub trait Files {
    /// A new file of this name.
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Write>>;
}

/// Writes packets of events.
pub struct CommonTraceFormat<'a> {
    files: &'a mut dyn Files,
    sources: Vec<String>,
    scale: Option<Scale>,
    /// The title of the axis.
    axis: String,
    stream: Option<Stream>,
}

/// One source's file.
struct Stream {
    out: Box<dyn Write>,
    number: u32,
    title: String,
    names: Names,
    /// Open spans, for the names of their ends.
    open: HashMap<Track, Vec<(SpanId, EventClass, Rc<str>)>>,
    tracks: HashMap<Track, String>,
    /// The events of the packet that is not written yet, and its first and last time.
    events: Vec<u8>,
    begins: u64,
    ends: u64,
}

/// The kinds of events, by their numbers in the format's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventClass {
    Function,
    Exception,
    Task,
    Gap,
    Trigger,
    Text,
    ItmException,
    Event,
    Instrumentation,
    Transaction,
    Value,
}

/// CTF 1.8.3, 5.1: the first word of a packet.
const MAGIC: u32 = 0xc1fc_1fc1;

/// The number of bytes at which a packet is written.
const PACKET_BYTES: usize = 1 << 16;

impl EventClass {
    /// The event that begins a span, or that is a mark; the end of a span has the next number.
    const fn number(self) -> u8 {
        match self {
            Self::Function => 0,
            Self::Exception => 2,
            Self::Task => 4,
            Self::Gap => 6,
            Self::Trigger => 8,
            Self::Text => 9,
            Self::ItmException => 10,
            Self::Event => 11,
            Self::Instrumentation => 12,
            Self::Transaction => 13,
            Self::Value => 14,
        }
    }

    const fn of(what: &What) -> Self {
        match what {
            What::Function { .. } => Self::Function,
            What::Exception(_) => Self::Exception,
            What::Task(_) => Self::Task,
            What::Gap(_) => Self::Gap,
        }
    }
}

/// The names of the events, in the order of their numbers.
const EVENTS: [&str; 15] = [
    "function_begin",
    "function_end",
    "exception_begin",
    "exception_end",
    "task_begin",
    "task_end",
    "gap_begin",
    "gap_end",
    "trigger",
    "text",
    "itm_exception",
    "event",
    "instrumentation",
    "transaction",
    "value",
];

impl fmt::Debug for CommonTraceFormat<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommonTraceFormat").field("sources", &self.sources).finish_non_exhaustive()
    }
}

impl<'a> CommonTraceFormat<'a> {
    /// Writes to these files.
    pub fn new(files: &'a mut dyn Files) -> Self {
        Self { files, sources: Vec::new(), scale: None, axis: String::new(), stream: None }
    }

    /// The description of the format (TSDL; CTF 1.8.3, 7).
    fn metadata(&self, out: &mut dyn Write, complete: bool) -> io::Result<()> {
        write!(out, "{HEAD}")?;
        writeln!(out, "env {{\n    tracer_name = \"tracewalk\";\n    axis = \"{}\";", escaped(&self.axis))?;
        if !complete {
            writeln!(out, "    complete = 0;")?;
        }
        for (index, source) in self.sources.iter().enumerate() {
            writeln!(out, "    source_{} = \"{}\";", index + 1, escaped(source))?;
        }
        writeln!(out, "}};\n")?;
        writeln!(out, "clock {{\n    name = axis;\n    description = \"{}\";", escaped(&self.axis))?;
        write!(out, "{STREAM}")?;
        for (number, name) in EVENTS.iter().enumerate() {
            write!(out, "\nevent {{\n    name = \"{name}\";\n    id = {number};\n{FIELDS}")?;
        }
        out.flush()
    }
}

impl TimelineExport for CommonTraceFormat<'_> {
    fn section(&mut self, section: &Section, scale: &Scale) -> io::Result<()> {
        let title = title(section, scale, "1 ns");
        self.sources.push(title.clone());
        self.scale = Some(*scale);
        self.axis = scale.title(section.protocol);
        if let Some(ruler) = ruler(scale, "1 ns") {
            self.axis += &format!(" ({ruler})");
        }
        let number = u32::try_from(self.sources.len()).unwrap_or(u32::MAX);
        let out = self.files.create(&format!("source_{number}"))?;
        self.stream = Some(Stream::new(out, number, title, Arc::clone(&section.code)));
        Ok(())
    }

    fn item(&mut self, item: &Item) -> io::Result<()> {
        let nanoseconds = self.scale.map_or(item.at.ticks, |scale| scale.nanoseconds(item.at.ticks));
        self.stream.as_mut().map_or(Ok(()), |stream| stream.item(item, nanoseconds))
    }

    fn end_section(&mut self) -> io::Result<()> {
        match self.stream.take() {
            Some(mut stream) => {
                stream.write_packet()?;
                stream.out.flush()
            }
            None => Ok(()),
        }
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        let mut out = self.files.create("metadata")?;
        self.metadata(&mut out, complete)
    }
}

impl Stream {
    fn new(out: Box<dyn Write>, number: u32, title: String, code: Arc<Code>) -> Self {
        Self {
            out,
            number,
            title,
            names: Names::new(code),
            open: HashMap::new(),
            tracks: HashMap::new(),
            events: Vec::new(),
            begins: 0,
            ends: 0,
        }
    }

    fn item(&mut self, item: &Item, nanoseconds: u64) -> io::Result<()> {
        match &item.change {
            Change::Begin(span) => {
                let name = self.names.span(&span.what);
                let class = EventClass::of(&span.what);
                self.open.entry(span.track).or_default().push((span.id, class, Rc::clone(&name)));
                let notes = details(&span.what).into_iter().map(|(field, note)| format!("{field}: {note}"));
                let notes = notes.chain(span.start.note().map(str::to_owned)).collect::<Vec<_>>();
                self.event(class.number(), (span.track, &name), (item.at, nanoseconds), &notes.join(", "));
            }
            Change::End { track, finish, .. } => {
                let ended = self.open.get_mut(track).and_then(Vec::pop);
                let Some((_, class, name)) = ended else { return Ok(()) };
                let note = finish.note().unwrap_or("");
                self.event(class.number() + 1, (*track, &name), (item.at, nanoseconds), note);
            }
            Change::Mark { track, mark } => {
                let class = match mark {
                    Mark::Trigger => EventClass::Trigger,
                    Mark::Events(_) => EventClass::Event,
                    Mark::Instrumentation(_) => EventClass::Instrumentation,
                    Mark::Transaction(_) => EventClass::Transaction,
                    Mark::Text(_) => EventClass::Text,
                    Mark::Exception(..) => EventClass::ItmException,
                    Mark::Value(_) => EventClass::Value,
                };
                let (_, name) = self.names.mark(mark);
                self.event(class.number(), (*track, &name), (item.at, nanoseconds), "");
            }
        }
        if self.events.len() >= PACKET_BYTES { self.write_packet() } else { Ok(()) }
    }

    fn event(
        &mut self,
        number: u8,
        (track, name): (Track, &str),
        (at, nanoseconds): (Moment, u64),
        note: &str,
    ) {
        if self.events.is_empty() {
            self.begins = nanoseconds;
        }
        self.ends = nanoseconds;
        let names = &self.names;
        let track = self.tracks.entry(track).or_insert_with(|| names.track(track));
        self.events.push(number);
        self.events.extend_from_slice(&nanoseconds.to_le_bytes());
        self.events.push(match at.certainty {
            Certainty::Exact => 0,
            Certainty::Interpolated => 1,
            Certainty::Estimated => 2,
        });
        push_string(&mut self.events, track);
        push_string(&mut self.events, name);
        push_string(&mut self.events, note);
    }

    /// Writes the events so far as a packet.
    fn write_packet(&mut self) -> io::Result<()> {
        let mut header = Vec::new();
        header.extend_from_slice(&MAGIC.to_le_bytes());
        header.extend_from_slice(&0_u32.to_le_bytes());
        header.extend_from_slice(&u64::from(self.number).to_le_bytes());
        let mut title = Vec::new();
        push_string(&mut title, &self.title);
        let bytes = header.len() + 4 * size_of::<u64>() + title.len() + self.events.len();
        let bits = 8 * bytes as u64;
        for value in [bits, bits, self.begins, self.ends] {
            header.extend_from_slice(&value.to_le_bytes());
        }
        header.extend_from_slice(&title);
        self.out.write_all(&header)?;
        self.out.write_all(&self.events)?;
        self.events.clear();
        self.begins = self.ends;
        Ok(())
    }
}

/// A string ends with a zero byte, so it cannot contain one.
fn push_string(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend(text.bytes().filter(|byte| *byte != 0));
    bytes.push(0);
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ")
}

const HEAD: &str = "\
/* CTF 1.8 */

typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;

trace {
    major = 1;
    minor = 8;
    byte_order = le;
    packet.header := struct {
        uint32_t magic;
        uint32_t stream_id;
        uint64_t stream_instance_id;
    };
};

";

const STREAM: &str = "\
    freq = 1000000000;
    offset = 0;
};

typealias integer { size = 64; align = 8; signed = false; map = clock.axis.value; } := moment_t;

stream {
    id = 0;
    packet.context := struct {
        uint64_t content_size;
        uint64_t packet_size;
        moment_t timestamp_begin;
        moment_t timestamp_end;
        string source;
    };
    event.header := struct {
        uint8_t id;
        moment_t timestamp;
    };
};
";

const FIELDS: &str = "    stream_id = 0;
    fields := struct {
        enum : uint8_t { exact, interpolated, estimated } time;
        string track;
        string name;
        string note;
    };
};
";
