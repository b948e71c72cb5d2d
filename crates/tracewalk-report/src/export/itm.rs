//! `itm`: reports of an ITM, as the bytes of its ports, as lines and as JSON lines (docs/formats.md).

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use tracewalk::ids::TraceId;
use tracewalk::protocol::{Describe as _, Field};
use tracewalk::span::CaptureOffset;

use super::json::{Line, Object};
use super::stm::{StmLines, write_stm};
use super::tables::write_tables;
use super::timeline::Names;
use crate::layout::Fitted;
use crate::words::CUT;
use crate::{Look, Palette};
use tracewalk_analysis::Code;
use tracewalk_analysis::itm::{ItmCounts, ItmEvent, Watched, event_table, values_table};
use tracewalk_analysis::record::ItmRecord;
use tracewalk_analysis::sink::Nothing;
use tracewalk_analysis::table::{Tabular as _, TakeRows};
use tracewalk_analysis::timeline::{Certainty, Change, Item, Mark, ReportedTimeline};

/// The format's version, in every object; the same as that of `flow --format jsonl`.
const VERSION: u64 = 1;

/// Writes reports of ITMs.
pub trait ExportItm {
    /// Writes the next record.
    fn record(&mut self, record: &ItmRecord) -> io::Result<()>;

    /// There are no more records: the counts of each ITM, and whether the capture was decoded to its end.
    fn finish(&mut self, _counts: &[(Option<TraceId>, ItmCounts)], _complete: bool) -> io::Result<()> {
        Ok(())
    }
}

/// Writes no record.
impl ExportItm for Nothing {
    fn record(&mut self, _: &ItmRecord) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a row for each record, and tables of the counts.
#[derive(Debug)]
pub struct ItmTables<R> {
    rows: R,
    watched: WatchedBy,
    begun: bool,
}

/// What the comparators beside each ITM watch.
pub type WatchedBy = BTreeMap<Option<TraceId>, Watched>;

/// Writes a row for each value of watched data, and for each value other than text that software wrote.
#[derive(Debug)]
pub struct ItmValues<R> {
    rows: R,
    watched: WatchedBy,
    timelines: BTreeMap<Option<TraceId>, ReportedTimeline>,
    names: Names,
    begun: bool,
}

/// Writes the bytes that software wrote to stimulus ports of an ITM, as they are, and a line for each report of an STM.
#[derive(Debug)]
pub struct StimulusBytes<W> {
    out: W,
    ports: Vec<u8>,
    stm: StmLines,
    code: Arc<Code>,
}

/// Writes a line for each record.
#[derive(Debug)]
pub struct ItmText<W> {
    out: Fitted<W>,
    palette: Palette,
    watched: WatchedBy,
}

/// Writes JSON lines.
#[derive(Debug)]
pub struct ItmJsonl<W> {
    out: W,
    line: Line,
    code: Arc<Code>,
    watched: WatchedBy,
    /// The place of the last record.
    last: CaptureOffset,
}

impl<W: Write> StimulusBytes<W> {
    /// Writes the bytes of these ports to `out`.
    pub fn new(out: W, ports: Vec<u8>, code: Arc<Code>) -> Self {
        Self { out, ports, stm: StmLines::default(), code }
    }
}

impl<W: Write> ExportItm for StimulusBytes<W> {
    fn record(&mut self, record: &ItmRecord) -> io::Result<()> {
        match &record.event {
            ItmEvent::Text { port, bytes } if self.ports.contains(port) => self.out.write_all(bytes),
            ItmEvent::Value { port, size, value } if self.ports.contains(port) => {
                let bytes = value.to_le_bytes();
                self.out.write_all(bytes.get(..size.bytes().into()).unwrap_or(&bytes))
            }
            ItmEvent::Stm(event) => self.stm.event(&mut self.out, event, &self.code),
            _ => Ok(()),
        }
    }

    fn finish(&mut self, _: &[(Option<TraceId>, ItmCounts)], _: bool) -> io::Result<()> {
        self.stm.end(&mut self.out)
    }
}

impl<W: Write> ItmText<W> {
    /// Writes to `out`.
    pub const fn new(out: W, look: Look, watched: WatchedBy) -> Self {
        Self { out: Fitted::new(out, look.width), palette: look.palette, watched }
    }
}

impl<W: Write> ExportItm for ItmText<W> {
    fn record(&mut self, record: &ItmRecord) -> io::Result<()> {
        let quiet = self.palette.quiet;
        let id = record.id.map_or_else(|| "-".to_owned(), |id| id.to_string());
        write!(self.out, "{quiet}{:>10} {id:>4}{quiet:#}  {}", record.at.0, record.event)?;
        match name(&mut self.watched, record) {
            Some(name) => writeln!(self.out, " ({name})"),
            None => writeln!(self.out),
        }
    }

    fn finish(&mut self, _: &[(Option<TraceId>, ItmCounts)], complete: bool) -> io::Result<()> {
        if complete { Ok(()) } else { writeln!(self.out, "{CUT}") }
    }
}

impl<R: TakeRows> ItmTables<R> {
    /// Hands rows to `rows`.
    pub const fn new(rows: R, watched: WatchedBy) -> Self {
        Self { rows, watched, begun: false }
    }

    fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) { Ok(()) } else { self.rows.table(&event_table()) }
    }
}

impl<R: TakeRows> ExportItm for ItmTables<R> {
    fn record(&mut self, record: &ItmRecord) -> io::Result<()> {
        self.begin()?;
        let object = name(&mut self.watched, record);
        self.rows.row(&record.row(object.as_deref()))
    }

    fn finish(&mut self, counts: &[(Option<TraceId>, ItmCounts)], complete: bool) -> io::Result<()> {
        self.begin()?;
        write_tables(&mut self.rows, &counts.tables(), complete)
    }
}

impl<R: TakeRows> ItmValues<R> {
    /// Hands rows to `rows`, with the names of `code`.
    pub fn new(rows: R, watched: WatchedBy, code: Arc<Code>) -> Self {
        Self { rows, watched, timelines: BTreeMap::new(), names: Names::new(code), begun: false }
    }

    fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) { Ok(()) } else { self.rows.table(&values_table()) }
    }
}

/// Writes the row of an item, if it is a value.
fn value(rows: &mut impl TakeRows, names: &Names, id: Option<TraceId>, item: &Item) -> io::Result<()> {
    let Change::Mark { track, mark: Mark::Value(value) } = item.change else { return Ok(()) };
    let time = Some(item.at.ticks).filter(|_| item.at.certainty == Certainty::Exact);
    rows.row(&[id.into(), time.into(), names.track(track).into(), value.into()])
}

impl<R: TakeRows> ExportItm for ItmValues<R> {
    fn record(&mut self, record: &ItmRecord) -> io::Result<()> {
        self.begin()?;
        let Self { rows, watched, timelines, names, .. } = self;
        let Some(watched) = watched.get(&record.id) else { return Ok(()) };
        let timeline = timelines.entry(record.id).or_insert_with(|| ReportedTimeline::new(watched.clone()));
        let mut written = Ok(());
        timeline.event(&record.event, &mut |item| {
            if written.is_ok() {
                written = value(rows, names, record.id, &item);
            }
        });
        written
    }

    fn finish(&mut self, _: &[(Option<TraceId>, ItmCounts)], complete: bool) -> io::Result<()> {
        self.begin()?;
        let Self { rows, timelines, names, .. } = self;
        let mut written = Ok(());
        for (id, timeline) in timelines {
            timeline.finish(&mut |item| {
                if written.is_ok() {
                    written = value(rows, names, *id, &item);
                }
            });
        }
        written?;
        self.rows.finish(complete)
    }
}

/// The name of the data object that the comparator of an event watches.
fn name(watched: &mut WatchedBy, record: &ItmRecord) -> Option<String> {
    watched.get_mut(&record.id)?.name(&record.event)
}

impl<W: Write> ItmJsonl<W> {
    /// Writes to `out`.
    pub fn new(out: W, code: Arc<Code>, watched: WatchedBy) -> Self {
        Self { out, line: Line::default(), code, watched, last: CaptureOffset(0) }
    }
}

impl<W: Write> ExportItm for ItmJsonl<W> {
    fn record(&mut self, record: &ItmRecord) -> io::Result<()> {
        self.last = record.at;
        let object = name(&mut self.watched, record);
        write_itm(&mut self.out, &mut self.line, record, (&self.code, object.as_deref()))
    }

    fn finish(&mut self, _: &[(Option<TraceId>, ItmCounts)], complete: bool) -> io::Result<()> {
        if complete {
            return Ok(());
        }
        let mut object = self.line.start(VERSION, self.last, None);
        object.text("element", "cut");
        object.close();
        self.line.end(&mut self.out)
    }
}

/// Writes a record as a line of JSON, with the names of `code`, and that of the data object that a comparator watches.
pub(super) fn write_itm(
    out: &mut impl Write,
    line: &mut Line,
    record: &ItmRecord,
    (code, object): (&Code, Option<&str>),
) -> io::Result<()> {
    if let ItmEvent::Stm(event) = &record.event {
        return write_stm(out, (line, VERSION), (record, event), code);
    }
    let mut fields = line.start(VERSION, record.at, record.id);
    fields.text("element", record.protocol.protocol());
    fields.text("event", record.event.name());
    event(&mut fields, &record.event);
    if let Some(object) = object {
        fields.text("object", object);
    }
    fields.close();
    line.end(out)
}

fn event(object: &mut Object<'_>, event: &ItmEvent) {
    match event {
        ItmEvent::Text { port, bytes } => {
            object.number("port", (*port).into());
            object.text("text", &String::from_utf8_lossy(bytes));
        }
        ItmEvent::Value { port, size, value } => {
            object.number("port", (*port).into());
            object.number("size", size.bytes().into());
            object.number("value", (*value).into());
        }
        ItmEvent::Packet(packet) => packet.fields(&mut |name, field| match field {
            Field::Number(value) => object.number(name, value),
            Field::Bits(value) => object.hex(name, value),
            Field::Flag(value) => object.flag(name, value),
            Field::Address(value) => object.address(name, value),
            Field::Text(value) => object.text(name, value),
        }),
        ItmEvent::LocalTime { ticks, delay, total } => {
            object.number("ticks", *ticks);
            object.number("total", *total);
            object.text("delay", delay.name());
        }
        ItmEvent::GlobalTime { value, clock_changed } => {
            object.number("value", *value);
            object.flag("clock_changed", *clock_changed);
        }
        ItmEvent::Malformed { reason, bytes } => {
            object.number("bytes", *bytes);
            object.text("reason", reason.name());
            object.text("message", &reason.to_string());
        }
        // An STM's events have lines of their own.
        ItmEvent::Stm(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::{TableCsv, TablesJson};
    use tracewalk_analysis::drive::{Carrier, Input, NoProgress, Stretch};

    fn written(write: impl FnOnce(&mut Vec<u8>, &[ItmRecord])) -> String {
        // "hi", SysTick entered, 8 ticks, 0x1234 to port 1.
        let bytes = [1, b'h', 1, b'i', 0x0e, 15, 0x10, 0xc0, 8, 0x0a, 0x34, 0x12];
        let carrier = Carrier::Stretches(vec![Stretch::all(bytes.len())]);
        let input = Input { capture: &bytes, carrier, rest: None, progress: &NoProgress };
        let mut out = Vec::new();
        write(&mut out, &input.itm().collect::<Vec<_>>());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn records_become_lines() {
        let text = written(|out, records| {
            let mut text = ItmText::new(out, Look::PLAIN, WatchedBy::new());
            records.iter().for_each(|record| text.record(record).unwrap());
        });
        let expected = "         0    -  port 0: hi\n         4    -  SysTick entered\n         7    -  time +8 = 8\n         \
                        9    -  port 1: 0x1234\n";
        assert_eq!(text, expected);
        let bytes = written(|out, records| {
            let mut bytes = StimulusBytes::new(out, vec![0, 1], Code::unknown().into());
            records.iter().for_each(|record| bytes.record(record).unwrap());
        });
        assert_eq!(bytes, "hi4\x12");
    }

    #[test]
    fn records_become_rows_and_what_is_not_known_of_one_is_empty() {
        let csv = written(|out, records| {
            let mut rows = ItmTables::new(TableCsv::new(out), WatchedBy::new());
            records.iter().for_each(|record| rows.record(record).unwrap());
            rows.finish(&[(None, ItmCounts::default())], true).unwrap();
        });
        let lines = csv.lines().collect::<Vec<_>>();
        assert_eq!(
            lines[0],
            "id,protocol,offset,event,port,size,value,number,action,addr,comparator,total,text,master,channel,object"
        );
        assert_eq!(lines[1], ",itm,0,text,0,,,,,,,,hi,,,");
        assert_eq!(lines[2], ",itm,4,exception,,,,15,entered,,,,SysTick entered,,,");
        assert_eq!(lines.len(), 5, "the other tables are not in it");
        let json = written(|out, records| {
            let mut rows = ItmTables::new(TablesJson::new(out), WatchedBy::new());
            records.iter().for_each(|record| rows.record(record).unwrap());
            rows.finish(&[(TraceId::new(1), ItmCounts { bytes: 12, ..ItmCounts::default() })], true).unwrap();
        });
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let names = json["tables"].as_array().unwrap().iter().map(|table| table["name"].as_str().unwrap());
        assert_eq!(names.collect::<Vec<_>>(), tracewalk_analysis::itm::ITM_TABLES);
        assert_eq!(json["tables"][1]["rows"][0]["bytes"], 12);
        assert_eq!(json["tables"][0]["rows"][0]["value"], serde_json::Value::Null);
    }

    #[test]
    fn records_become_objects() {
        let objects = written(|out, records| {
            let mut jsonl = ItmJsonl::new(out, Code::unknown().into(), WatchedBy::new());
            records.iter().for_each(|record| jsonl.record(record).unwrap());
        });
        let expected = [
            r#"{"v":1,"offset":0,"id":null,"element":"itm","event":"text","port":0,"text":"hi"}"#,
            r#"{"v":1,"offset":4,"id":null,"element":"itm","event":"exception","number":15,"action":"entered"}"#,
            r#"{"v":1,"offset":7,"id":null,"element":"itm","event":"local_time","ticks":8,"total":8,"delay":"none"}"#,
            r#"{"v":1,"offset":9,"id":null,"element":"itm","event":"value","port":1,"size":2,"value":4660}"#,
        ];
        assert_eq!(objects.lines().collect::<Vec<_>>(), expected);
    }
}
