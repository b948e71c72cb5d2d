//! Output written by passages, on any number of threads, equals output written element by element on one:
//! every format of program flow and of calls, for whole and for damaged captures.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tracewalk_analysis::analysis::FlowSink;
use tracewalk_analysis::{Doubtful, Position, Window};
use tracewalk_report::Look;
use tracewalk_report::export::CallTreeOptions;
use tracewalk_report::formats::{CALLS, FLOW, FlowOptions};
use tracewalk_session::{Follow, Request, Session, Trust};

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

/// A format, with options.
type Make = Box<dyn for<'a> Fn(&'a mut (dyn Write + 'a)) -> Box<dyn FlowSink + 'a>>;

fn formats() -> Vec<(String, Make)> {
    let mut formats: Vec<(String, Make)> = Vec::new();
    for format in FLOW {
        let ways = if format.make.names {
            &[(false, None), (true, None), (false, Some(60))][..]
        } else {
            &[(false, None)]
        };
        for &(source_lines, width) in ways {
            let look = Look { width, ..Look::PLAIN };
            let options = FlowOptions { look, source_lines, at_once: false };
            let make: Make = Box::new(move |out| (format.make.sink)(out, &options));
            formats.push((format!("flow/{}/{source_lines}/{width:?}", format.name), make));
        }
    }
    for format in CALLS {
        let ways =
            [(None, true, Window::default()), (Some(2), false, Window::default()), (None, true, part())];
        for (depth, fold, window) in ways {
            let name = format!("calls/{}/{depth:?}/{window}", format.name);
            let options = CallTreeOptions { look: Look::PLAIN, depth, fold, window };
            let make: Make = Box::new(move |out| (format.make.tree)(out, options.clone()));
            formats.push((name, make));
        }
    }
    formats
}

/// A part of each of the captures.
fn part() -> Window {
    let position = |count| Some(Position::Instructions(count).into());
    Window { from: position(300), to: position(4000) }
}

/// The output for a capture, by passages or by elements.
fn written(capture: &Path, how: &Follow, make: &Make, one_by_one: bool) -> (usize, u64) {
    let (mut session, _) = Session::open(Request::new(capture)).expect("the capture is readable");
    let mut digest = Digest::default();
    let mut sink = make(&mut digest);
    sink.begin().expect("a digest can be written");
    for source in session.sources().to_vec() {
        // Elements come one by one if the places of losses are listed.
        let how = Follow { places: one_by_one, ..how.clone() };
        let run = session.run(&source, &how, &mut *sink).map(drop);
        run.expect("the source can be followed");
    }
    sink.finish(true).expect("a digest can be written");
    drop(sink);
    (digest.bytes, digest.hasher.finish())
}

fn check(capture: &Path, threads: &[u16], is_wanted: impl Fn(&str) -> bool) {
    for (name, make) in formats().iter().filter(|(name, _)| is_wanted(name)) {
        for doubtful in [Doubtful::Keep, Doubtful::Drop] {
            let trust = Trust { doubtful, ..Trust::default() };
            let how = |threads| Follow { threads, trust, ..Follow::default() };
            let expected = written(capture, &how(1), make, true);
            for &threads in threads {
                let found = written(capture, &how(threads), make, false);
                assert_eq!(found, expected, "{}: {name}, {threads} threads, {doubtful:?}", capture.display());
            }
        }
    }
}

fn examples() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/examples");
    ["m3-etmv3", "a7-etmv3", "a15-pft", "m0-crash-mtb"].map(|name| root.join(name)).to_vec()
}

/// A copy of a capture with a changed trace.
fn with_trace(example: &Path, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    for entry in fs::read_dir(example).expect("the example is a folder") {
        let file = entry.expect("the folder is readable").path();
        let name = file.file_name().expect("a file has a name");
        fs::copy(&file, folder.path().join(name)).expect("there is room for a copy");
    }
    let trace = folder.path().join("trace.bin");
    let bytes = fs::read(&trace).expect("the trace is readable");
    fs::write(&trace, change(bytes)).expect("there is room for the trace");
    folder
}

#[test]
fn whole_captures_are_written_the_same_by_passages_and_by_elements() {
    for example in examples() {
        // The examples are too short for more than one segment.
        check(&example.join("capture.toml"), &[2], |_| true);
    }
}

#[test]
fn damaged_captures_are_written_the_same_by_passages_and_by_elements() {
    for (seed, example) in (0..2).flat_map(|seed| examples().into_iter().map(move |example| (seed, example)))
    {
        // A repeated trace runs the same code again, whose earlier output passages reuse.
        let folder = with_trace(&example, |trace| {
            let mut trace = if trace.len() < 8 << 10 && seed > 0 { trace.repeat(2) } else { trace };
            let mut hash = DefaultHasher::new();
            for _ in 0..=seed * 2 {
                hash.write_u64(seed);
                let value = hash.finish();
                let at = usize::try_from(value >> 16).unwrap_or(0) % trace.len();
                trace[at] ^= 1 << (value & 7);
            }
            let at = trace.len() / 3;
            trace.drain(at..at + 5 * usize::try_from(seed).unwrap_or(0));
            trace
        });
        let takes_passages = |name: &str| {
            let is_calls = name.starts_with("calls/text") || name.starts_with("calls/csv");
            name.starts_with("flow/text") || is_calls
        };
        check(&folder.path().join("capture.toml"), &[1], takes_passages);
    }
}

#[test]
fn long_captures_are_written_the_same_on_any_number_of_threads() {
    let example = &examples()[2];
    // Several segments, with damage in them.
    let folder = with_trace(example, |bytes| {
        let mut long = bytes.repeat((520 << 10) / bytes.len());
        for at in [long.len() / 7, long.len() / 2] {
            long[at] ^= 0x10;
            long.drain(at + 1000..at + 1037);
        }
        long
    });
    let is_wanted = |name: &str| {
        name == "flow/text/false/None"
            || name.starts_with("calls/text/None")
            || name.starts_with("calls/csv/None")
    };
    check(&folder.path().join("capture.toml"), &[2, 7], is_wanted);
}
