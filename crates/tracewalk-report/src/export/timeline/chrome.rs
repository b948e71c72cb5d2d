//! Chrome's trace event format, as JSON: `chrome://tracing`, Perfetto and others read it ("Trace Event Format", Google).
use std::sync::Arc;

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::TimelineExport;
use super::names::{Names, details, kind, rank, title};
use tracewalk_analysis::timeline::{Change, Item, Mark, Moment, Scale, Track};
use tracewalk_analysis::{Code, Section};

/// Writes trace events, one a line.
#[derive(Debug)]
pub struct ChromeTrace<W> {
    out: W,
    /// The number of the source, from 1: its process.
    process: u32,
    scale: Option<Scale>,
    names: Names,
    threads: HashMap<Track, usize>,
    /// Whether an event was written already.
    follows: bool,
}

impl<W: Write> ChromeTrace<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            process: 0,
            scale: None,
            names: Names::new(Arc::new(Code::unknown())),
            threads: HashMap::new(),
            follows: false,
        }
    }

    /// The title of the whole, before the first source.
    fn head(&mut self, axis: &str) -> io::Result<()> {
        let other = json!({ "program": "tracewalk", "axis": axis });
        write!(self.out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{other},\"traceEvents\":[")
    }

    fn metadata(&mut self, name: &str, thread: usize, args: &Value) -> io::Result<()> {
        let event = json!({ "name": name, "ph": "M", "pid": self.process, "tid": thread, "args": args });
        self.line(&event)
    }

    fn line(&mut self, event: &Value) -> io::Result<()> {
        let separator = if std::mem::replace(&mut self.follows, true) { "," } else { "" };
        write!(self.out, "{separator}\n{event}")
    }

    fn thread(&mut self, track: Track) -> io::Result<usize> {
        if let Some(known) = self.threads.get(&track) {
            return Ok(*known);
        }
        let thread = self.threads.len() + 1;
        self.threads.insert(track, thread);
        let name = self.names.track(track);
        self.metadata("thread_name", thread, &json!({ "name": name }))?;
        self.metadata("thread_sort_index", thread, &json!({ "sort_index": rank(track) }))?;
        Ok(thread)
    }

    /// Microseconds, the unit of the format; without a frequency, one unit of the axis is one microsecond.
    fn time(&self, at: Moment) -> Value {
        match self.scale.filter(Scale::is_in_seconds) {
            None => at.ticks.into(),
            // A nanosecond in three decimals is exact enough for 200 days.
            Some(scale) => json!(scale.nanoseconds(at.ticks) as f64 / 1000.0),
        }
    }
}

impl<W: Write> TimelineExport for ChromeTrace<W> {
    fn section(&mut self, section: &Section, scale: &Scale) -> io::Result<()> {
        if self.process == 0 {
            self.head(&scale.title(section.protocol))?;
        }
        self.process += 1;
        self.scale = Some(*scale);
        self.names = Names::new(Arc::clone(&section.code));
        self.threads.clear();
        self.metadata("process_name", 0, &json!({ "name": title(section, scale, "1 µs") }))
    }

    fn item(&mut self, item: &Item) -> io::Result<()> {
        let mut args = Map::new();
        let mut event = match &item.change {
            Change::Begin(span) => {
                args.extend(
                    details(&span.what).into_iter().map(|(name, note)| (name.to_owned(), note.into())),
                );
                args.extend(span.start.note().map(|note| ("start".to_owned(), note.into())));
                args.extend(item.at.certainty.name().map(|name| ("start_time".to_owned(), name.into())));
                let name = self.names.span(&span.what);
                json!({ "ph": "B", "name": &*name, "cat": kind(&span.what), "tid": self.thread(span.track)? })
            }
            Change::End { track, finish, .. } => {
                args.extend(finish.note().map(|note| ("end".to_owned(), note.into())));
                args.extend(item.at.certainty.name().map(|name| ("end_time".to_owned(), name.into())));
                json!({ "ph": "E", "tid": self.thread(*track)? })
            }
            Change::Mark { track, mark: Mark::Value(value) } => {
                args.insert("value".to_owned(), (*value).into());
                json!({ "ph": "C", "name": self.names.track(*track), "tid": self.thread(*track)? })
            }
            Change::Mark { track, mark } => {
                args.extend(item.at.certainty.name().map(|name| ("time".to_owned(), name.into())));
                let (kind, name) = self.names.mark(mark);
                json!({ "ph": "i", "s": "t", "name": name, "cat": kind, "tid": self.thread(*track)? })
            }
        };
        event["ts"] = self.time(item.at);
        event["pid"] = self.process.into();
        if !args.is_empty() {
            event["args"] = args.into();
        }
        self.line(&event)
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        if self.process == 0 {
            write!(self.out, "{{\"traceEvents\":[")?;
        }
        // Fields outside of the format are metadata of the whole.
        let complete = if complete { "" } else { ",\"complete\":false" };
        writeln!(self.out, "\n]{complete}}}")?;
        self.out.flush()
    }
}
