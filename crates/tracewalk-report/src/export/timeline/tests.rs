use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::rc::Rc;

use super::*;
use crate::Look;
use crate::export::{TableCsv, TablesJson};
use tracewalk::flow::Element;
use tracewalk::ids::TraceId;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::samples::{block, call, page, pages, returns, taken};

const SCALE: Scale = Scale { unit: Unit::Cycles, counts_cycles: false, frequency: Some(2e6) };

/// `main` calls `sort` this number of times.
fn write(exporter: &mut dyn TimelineExport, scale: Scale, times: usize) {
    let id = TraceId::new(0x10);
    let mut timelines = Timelines::new(&mut *exporter, scale, Window::default());
    timelines.section(&Section { id, protocol: "etmv3", number: 1, code: pages() }).unwrap();
    let mut record =
        |element: Element| timelines.record(FlowRecord { element, at: CaptureOffset(0) }).unwrap();
    for _ in 0..times {
        record(block(page("main"), page("main") + 4, call()));
        record(block(page("sort"), page("sort") + 8, returns()));
        record(block(page("main") + 4, page("main") + 6, taken()));
    }
    timelines.end_section().unwrap();
    exporter.finish(true).unwrap();
}

#[test]
fn text_has_one_line_for_a_function_that_called_nothing_and_seconds_where_a_frequency_is_said() {
    let mut out = Vec::new();
    write(&mut TimelineText::new(&mut out, Look::PLAIN), SCALE, 1);
    let expected = "\
trace ID 0x10, etmv3, in cycles at 2 MHz
~ interpolated  ? estimated
  0.000000000 s  task 1          main  start not traced
  0.000000000 s  running         task 1
  0.000001000 s  task 1            sort  0.000002000 s
  0.000003500 s  task 1          └ main  0.000003500 s, end not traced
  0.000003500 s  running         └ task 1  0.000003500 s, end not traced
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn chromes_times_are_microseconds_and_nothing_is_valid_too() {
    let mut out = Vec::new();
    write(&mut ChromeTrace::new(&mut out), SCALE, 1);
    let document: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let sort = events.iter().find(|event| event["name"] == "sort").unwrap();
    assert_eq!((&sort["ph"], sort["ts"].as_f64()), (&"B".into(), Some(1.0)));
    let mut nothing = Vec::new();
    ChromeTrace::new(&mut nothing).finish(true).unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(&nothing).is_ok());
}

/// Files in memory.
#[derive(Default)]
struct Memory(Rc<RefCell<BTreeMap<String, Vec<u8>>>>);

struct MemoryFile {
    files: Rc<RefCell<BTreeMap<String, Vec<u8>>>>,
    name: String,
}

impl Files for Memory {
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Write>> {
        Ok(Box::new(MemoryFile { files: Rc::clone(&self.0), name: name.to_owned() }))
    }
}

impl Write for MemoryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.files.borrow_mut().entry(self.name.clone()).or_default().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn packets_of_the_common_trace_format_tile_its_file() {
    let mut files = Memory::default();
    write(&mut CommonTraceFormat::new(&mut files), SCALE, 5000);
    let files = files.0.borrow();
    assert!(files["metadata"].starts_with(b"/* CTF 1.8 */"));
    let stream = &files["source_1"];
    let word = |at: usize| u64::from_le_bytes(stream[at..at + 8].try_into().unwrap());
    let (mut at, mut packets, mut ended) = (0, 0, 0);
    while at < stream.len() {
        assert_eq!(stream[at..at + 4], 0xc1fc_1fc1_u32.to_le_bytes());
        let (bits, begins, ends) = (word(at + 24), word(at + 32), word(at + 40));
        assert_eq!(word(at + 16), bits);
        assert!(ended <= begins && begins <= ends);
        (at, packets, ended) = (at + usize::try_from(bits / 8).unwrap(), packets + 1, ends);
    }
    assert!(packets > 3, "{packets}");
    assert_eq!(at, stream.len());
}

#[test]
fn a_row_has_a_span_from_its_beginning_to_its_end() {
    let mut out = Vec::new();
    write(&mut TimelineTable::new(TablesJson::new(&mut out)), SCALE, 2);
    let document: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let rows = document["tables"][0]["rows"].as_array().unwrap();
    let of = |name: &str| rows.iter().filter(|row| row["name"] == name).collect::<Vec<_>>();
    let [first, second] = of("sort")[..] else { panic!("{document}") };
    let lengths =
        [first, second].map(|row| row["end_time"].as_u64().unwrap() - row["start_time"].as_u64().unwrap());
    assert_eq!(lengths, [4, 4]);
    assert!(second["start_time"].as_u64() > first["end_time"].as_u64());
    assert_eq!((&first["kind"], &first["end_note"]), (&"function".into(), &serde_json::Value::Null));
    assert_eq!((of("main").len(), of("task 1").len()), (1, 1));
    let mut csv = Vec::new();
    write(&mut TimelineTable::new(TableCsv::new(&mut csv)), SCALE, 2);
    assert_eq!(String::from_utf8(csv).unwrap().lines().count(), rows.len() + 1);
    let mut nothing = Vec::new();
    TimelineTable::new(TablesJson::new(&mut nothing)).finish(false).unwrap();
    let nothing: serde_json::Value = serde_json::from_slice(&nothing).unwrap();
    assert_eq!((&nothing["tables"][0]["name"], &nothing["complete"]), (&"timeline".into(), &false.into()));
}
