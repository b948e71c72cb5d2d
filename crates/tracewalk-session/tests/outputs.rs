//! What a format writes does not depend on how the trace is decoded: element by element, by passages, in parts, on any
//! number of threads. Formats of answers need no such test: they write the same if the answers are the same.

use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};
use std::path::Path;

use proptest::prelude::*;
use tracewalk_analysis::analysis::{Analysis, FlowSink};
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::drive::Spread;
use tracewalk_analysis::sink::Join;
use tracewalk_analysis::timeline::Scale;
use tracewalk_analysis::{Doubtful, Position, Window};
use tracewalk_report::Look;
use tracewalk_report::export::{CallTreeOptions, Timelines};
use tracewalk_report::formats::{CALLS, FLOW, FlowOptions, FlowParts, MakeTimeline, TIMELINE, WithJoin};
use tracewalk_session::{Follow, Notices, Request, Session, Source, Trust};

use crate::passages::{Damage, examples, long, with_trace};

/// How much was written, and a hash of it.
#[derive(Default)]
struct Digest {
    bytes: usize,
    hasher: DefaultHasher,
}

impl Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        self.hasher.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes program flow in a format, with options.
type Make = Box<dyn for<'a> Fn(&'a mut (dyn Write + 'a)) -> Box<dyn FlowSink + 'a>>;

enum Writer {
    Flow(Make),
    /// The same in parts, if threads can make them.
    Parts(Make, FlowParts),
    Timeline(&'static MakeTimeline),
}

/// All formats that are written while the trace is decoded.
fn writers() -> Vec<(String, Writer)> {
    let mut writers = Vec::new();
    for format in FLOW {
        let ways: &[_] =
            if format.make.names { &[(false, None), (true, None), (false, Some(60))] } else { &[(false, None)] };
        for &(source_lines, width) in ways {
            let options = FlowOptions { look: Look { width, ..Look::PLAIN }, source_lines, at_once: false };
            let name = format!("flow/{}/{source_lines}/{width:?}", format.name);
            let make: Make = Box::new(move |out| (format.make.sink)(out, &options));
            let writer = match format.make.parts {
                Some(parts) => Writer::Parts(make, parts),
                None => Writer::Flow(make),
            };
            writers.push((name, writer));
        }
    }
    let position = |count| Some(Position::Instructions(count).into());
    let part = Window { from: position(300), to: position(4000) };
    for format in CALLS {
        let ways = [(None, true, Window::default()), (Some(2), false, Window::default()), (None, true, part.clone())];
        for (depth, fold, window) in ways {
            let name = format!("calls/{}/{depth:?}/{window}", format.name);
            let options = CallTreeOptions { look: Look::PLAIN, depth, fold, window };
            writers.push((name, Writer::Flow(Box::new(move |out| (format.make.tree)(out, options.clone())))));
        }
    }
    let timelines = TIMELINE.iter().filter(|format| !matches!(format.make, MakeTimeline::Folder(_)));
    writers.extend(timelines.map(|format| (format!("timeline/{}", format.name), Writer::Timeline(&format.make))));
    writers
}

/// How a capture is decoded.
#[derive(Clone, Copy, Debug)]
enum Road {
    Elements,
    Threads(u16),
}

/// Segments so short that each of several threads has some.
fn segment(capture: &Path) -> usize {
    let trace = capture.with_file_name("trace.bin").metadata();
    if trace.is_ok_and(|trace| trace.len() < 64 << 10) { 512 } else { 32 << 10 }
}

/// A capture that is being decoded.
struct Decoding {
    session: Session,
    how: Follow,
    road: Road,
}

impl Decoding {
    fn of(capture: &Path, road: Road, doubtful: Doubtful) -> Self {
        let (segment, threads) = match road {
            // A short capture is followed element by element unless a segment is stated.
            Road::Elements => (None, 1),
            Road::Threads(1) => (Some(Spread::over(1).segment), 1),
            Road::Threads(threads) => (Some(segment(capture)), threads),
        };
        let request = Request { segment, ..Request::new(capture) };
        let (session, _) = Session::open(request).expect("the capture is readable");
        let trust = Trust { doubtful, ..Trust::default() };
        // Elements come one by one if the places of losses are listed.
        let places = matches!(road, Road::Elements);
        Self { session, how: Follow { threads, trust, places, ..Follow::default() }, road }
    }

    fn run<A: Analysis>(&mut self, source: &Source, analysis: A) {
        self.session.run(source, &self.how, analysis).map(drop).expect("the source can be followed");
    }

    fn write(mut self, writer: &Writer) -> (usize, u64) {
        let mut digest = Digest::default();
        let sources = self.session.sources().to_vec();
        match writer {
            Writer::Parts(_, parts) if matches!(self.road, Road::Threads(_)) => parts.with(&mut digest, self),
            Writer::Flow(make) | Writer::Parts(make, _) => {
                let mut sink = make(&mut digest);
                sink.begin().expect("a digest can be written");
                sources.iter().for_each(|source| self.run(source, &mut *sink));
                sink.finish(true).expect("a digest can be written");
            }
            Writer::Timeline(make) => {
                let mut exporter = match make {
                    MakeTimeline::Text(make) => make(&mut digest, Look::PLAIN),
                    MakeTimeline::File(make) => make(&mut digest),
                    MakeTimeline::Folder(_) => unreachable!("left out"),
                };
                let scale = Scale { unit: Unit::Instructions, counts_cycles: false, frequency: None };
                let mut timelines = Timelines::new(&mut *exporter, scale, Window::default());
                sources.iter().for_each(|source| self.run(source, &mut timelines));
                exporter.finish(true).expect("a digest can be written");
            }
        }
        (digest.bytes, digest.hasher.finish())
    }
}

impl WithJoin for Decoding {
    type Answer = ();

    fn with(mut self, sink: &mut impl Join) {
        sink.begin().expect("a digest can be written");
        for source in self.session.sources().to_vec() {
            let run = self.session.run_in_parts(&source, &self.how, sink, &Notices::default());
            run.expect("the source can be followed");
        }
        sink.finish(true).expect("a digest can be written");
    }
}

/// Checks that a format writes the same with each number of threads; returns the number of its bytes.
fn check(capture: &Path, (name, writer): &(String, Writer), threads: &[u16], doubtful: Doubtful) -> usize {
    let written = |road| Decoding::of(capture, road, doubtful).write(writer);
    let expected = written(Road::Elements);
    for &threads in threads {
        let found = written(Road::Threads(threads));
        assert_eq!(found, expected, "{}: {name}, {threads} threads, {doubtful:?}", capture.display());
    }
    expected.0
}

#[test]
fn whole_captures_are_written_the_same_on_any_number_of_threads() {
    let (examples, writers) = (examples(), writers());
    // Each format with another capture than the one before.
    for (index, writer) in writers.iter().enumerate() {
        let doubtful = [Doubtful::Keep, Doubtful::Drop][index / examples.len() % 2];
        let capture = examples[index % examples.len()].join("capture.toml");
        let bytes = check(&capture, writer, &[1, 3, 7], doubtful);
        assert!(bytes > 0 || writer.0.contains("none"), "{}", writer.0);
    }
}

#[test]
fn long_captures_are_written_the_same_on_any_number_of_threads() {
    let folder = long(&examples()[2], 100 << 10);
    let is_wanted =
        |name: &str| ["flow/text/false/None", "calls/text/None/", "calls/csv/None/", "flow/jsonl"].iter().any(|it| name.starts_with(it));
    for (index, writer) in writers().iter().filter(|(name, _)| is_wanted(name)).enumerate() {
        let doubtful = [Doubtful::Keep, Doubtful::Drop][index % 2];
        check(&folder.path().join("capture.toml"), writer, &[2, 7], doubtful);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn damaged_captures_are_written_the_same_on_any_number_of_threads(
        writer in 0..writers().len(),
        example in proptest::sample::select(examples()),
        threads in proptest::sample::select(vec![1, 2, 3, 7]),
        doubtful in proptest::sample::select(vec![Doubtful::Keep, Doubtful::Drop]),
        damage in Damage::any(),
        is_repeated in any::<bool>(),
    ) {
        // A repeated trace runs the same code again, whose earlier output passages reuse.
        let folder = with_trace(&example, |trace| damage.of(if is_repeated { trace.repeat(2) } else { trace }));
        check(&folder.path().join("capture.toml"), &writers()[writer], &[threads], doubtful);
    }
}
