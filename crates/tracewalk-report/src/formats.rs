//! The registries: every output format of each command, by its name.
//!
//! A command asks its registry for the formats' names, their help, and how to write each; formats are distinguished nowhere
//! else, except for those that a build lacks (`export::LACKING`). A new format is a file in `export` and an entry in its
//! command's file (`docs/dev/adding-an-output.md`).
//!
//! ```
//! use tracewalk_report::formats::{FLOW, find};
//!
//! let json = find(FLOW, "json").expect("a format of `tracewalk flow`");
//! assert!(!json.help.ends_with('.'));
//! assert!(find(FLOW, "lcov").is_none()); // of `tracewalk coverage`
//! ```

mod calls;
mod captures;
mod counts;
mod coverage;
mod crash;
mod diff;
mod flow;
mod format;
mod info;
mod interrupts;
mod itm;
mod packets;
mod profile;
mod tasks;
mod timeline;

pub use calls::{CALLS, MakeCalls};
pub use captures::{CAPTURES, WriteCaptures};
pub use counts::{COUNTS, OF_ONE_BINARY, WriteCounts};
pub use coverage::{COVERAGE, COVERAGE_TABLES, CoverageAnswer, WriteCoverage};
pub use crash::{CRASH, WriteCrash};
pub use diff::{DIFF, WriteDiff};
pub use flow::{FLOW, FlowOptions, FlowParts, MakeFlow, WithJoin, make_values};
pub use format::{Format, find, formats_of_file, of_file};
pub use info::{INFO, WriteInfo, WriteTables};
pub use interrupts::{INTERRUPTS, WriteInterrupts};
pub use itm::{ITM, ItmOptions, MakeItm};
pub use packets::{MakePackets, PACKETS, PacketSink};
pub use profile::{PROFILE, WriteProfile};
pub use tasks::{TASKS, WriteTasks};
pub use timeline::{MakeTimeline, TIMELINE};

/// The registry of each command: the command, and its formats' names and help.
#[must_use]
pub fn registries() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
    fn listed<Make>(formats: &[Format<Make>]) -> Vec<(&'static str, &'static str)> {
        formats.iter().map(|format| (format.name, format.help)).collect()
    }
    vec![
        ("info", listed(INFO)),
        ("flow", listed(FLOW)),
        ("packets", listed(PACKETS)),
        ("itm", listed(ITM)),
        ("coverage", listed(COVERAGE)),
        ("counts", listed(COUNTS)),
        ("profile", listed(PROFILE)),
        ("calls", listed(CALLS)),
        ("timeline", listed(TIMELINE)),
        ("interrupts", listed(INTERRUPTS)),
        ("tasks", listed(TASKS)),
        ("crash", listed(CRASH)),
        ("diff", listed(DIFF)),
    ]
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "full")]
    use std::io::{self, Write};

    use super::*;

    #[test]
    fn every_name_is_listed_once_and_text_comes_first() {
        for (command, formats) in registries() {
            assert!(formats.iter().all(|(_, help)| !help.is_empty() && !help.ends_with('.')), "{command}");
            let mut names = formats.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
            assert_eq!(names[0], "text");
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{command}");
        }
        assert_eq!(find(PROFILE, "folded").map(|format| format.name), Some("folded"));
        assert!(find(PROFILE, "Folded").is_none());
    }

    #[test]
    fn every_answer_has_the_formats_of_tables() {
        for (command, formats) in registries() {
            for name in ["csv", "json", "parquet"] {
                assert!(formats.iter().any(|(known, _)| *known == name), "{command} --format {name}");
            }
        }
    }

    /// Formats that cannot show an incomplete capture, formats that write nothing, and output that the command writes itself.
    #[cfg(feature = "full")]
    const CUT_DOES_NOT_SHOW: &[(&str, &str)] = &[
        ("counts", "csv"),
        ("counts", "profgen"),
        ("counts", "bolt"),
        ("counts", "autofdo"),
        ("counts", "none"),
        ("crash", "csv"),
        ("flow", "csv"),
        ("info", "text"),
        ("info", "csv"),
        ("flow", "none"),
        ("packets", "csv"),
        ("packets", "none"),
        ("itm", "text"),
        ("itm", "csv"),
        ("coverage", "csv"),
        ("profile", "none"),
        ("profile", "folded"),
        ("profile", "csv"),
        ("calls", "csv"),
        ("timeline", "none"),
        ("timeline", "csv"),
        ("interrupts", "none"),
        ("interrupts", "csv"),
        ("tasks", "none"),
        ("tasks", "csv"),
        ("diff", "csv"),
        ("info", "none"),
        ("itm", "none"),
        ("coverage", "none"),
        ("calls", "none"),
        ("crash", "none"),
        ("diff", "none"),
    ];

    #[cfg(feature = "full")]
    #[test]
    fn a_cut_shows_in_every_format_that_can_say_it() {
        for (command, formats) in registries() {
            for (name, _) in formats {
                let documents = written(command, name, true).into_iter().zip(written(command, name, false));
                let shows = documents.map(|(whole, part)| whole != part).collect::<Vec<_>>();
                let shows = !shows.is_empty() && shows.iter().all(|shows| *shows);
                assert_eq!(shows, !CUT_DOES_NOT_SHOW.contains(&(command, name)), "{command} --format {name}");
            }
        }
    }

    #[test]
    fn a_cut_shows_in_the_table_of_captures() {
        use tracewalk_analysis::captures::Captures;
        for format in CAPTURES {
            let [whole, part] = [true, false].map(|complete| {
                let (mut out, captures) = (Vec::new(), Captures { captures: Vec::new(), complete });
                let made = (format.make)(&mut out, &captures, crate::Look::PLAIN);
                assert!(made.is_ok() || format.name == "parquet", "{}", format.name);
                out
            });
            let shows =
                matches!(format.name, "text" | "json") || (format.name == "parquet" && !part.is_empty());
            assert_eq!(whole != part, shows, "{}", format.name);
        }
    }

    #[test]
    fn the_name_of_a_file_states_its_format() {
        let of = |name: &str| of_file(PROFILE, name.as_ref()).map(|format| format.name);
        assert_eq!(of("a/profile.svg"), Some("flamegraph"));
        assert_eq!(of("profile.JSON"), Some("json"));
        assert_eq!(of("profile.pb.gz"), Some("pprof"));
        assert_eq!(of("profile"), None);
        assert_eq!(of("profile.html"), None);
        assert_eq!(formats_of_file("a.html".as_ref()), ["html"]);
    }

    /// The documents that a format makes of a capture if nothing in it was decoded, `complete` or not.
    #[cfg(feature = "full")]
    fn written(command: &str, name: &str, complete: bool) -> Vec<Vec<u8>> {
        use tracewalk::span::CaptureOffset;
        use tracewalk_analysis::clock::Unit;
        use tracewalk_analysis::counts::CountsReport;
        use tracewalk_analysis::coverage::Every;
        use tracewalk_analysis::coverage::Report;
        use tracewalk_analysis::sink::Sink as _;
        use tracewalk_analysis::timeline::Scale;
        use tracewalk_analysis::{Code, Section, Window};

        use crate::Look;
        use crate::export::{
            CallChainsOptions, CallTreeOptions, CrashReport, DiffReport, InterruptReport, ProfileReport,
            ProfileTextOptions, TaskReport,
        };
        use tracewalk_analysis::analysis::FlowSink;

        let look = Look::PLAIN;
        let scale = Scale { unit: Unit::Instructions, counts_cycles: false, frequency: None };
        let profile = ProfileReport {
            sources: Vec::new(),
            programs: Vec::new(),
            name: "capture".to_owned(),
            unit: Unit::Instructions,
            frequency: None,
            inlined: false,
            complete,
        };
        let section = Section { id: None, protocol: "etmv3", number: 1, code: Code::unknown().into() };
        let flow = |sink: &mut dyn FlowSink| {
            sink.begin().unwrap();
            sink.section(&section).unwrap();
            if !complete {
                sink.cut(CaptureOffset(1)).unwrap();
            }
            sink.end_section().unwrap();
            sink.finish(complete).unwrap();
        };
        let mut out = Vec::new();
        match command {
            "info" => match find(INFO, name).unwrap().make {
                WriteInfo::Text => return Vec::new(),
                WriteInfo::Tables(write) => write(&mut out, &[], "sources", complete).unwrap(),
            },
            "flow" => {
                let options = FlowOptions { look, source_lines: false, at_once: false };
                flow(&mut *(find(FLOW, name).unwrap().make.sink)(&mut out, &options));
            }
            "calls" => {
                let make = find(CALLS, name).unwrap().make;
                let options = CallTreeOptions { look, depth: None, fold: true, window: Window::default() };
                flow(&mut *(make.tree)(&mut out, options));
                let mut chains = Vec::new();
                let options = CallChainsOptions { look, depth: None };
                (make.chains)(&mut chains, &profile, &options).unwrap();
                return vec![out, chains];
            }
            "packets" => {
                if let Some(mut sink) = (find(PACKETS, name).unwrap().make)(&mut out, look) {
                    sink.begin().unwrap();
                    sink.section(&section).unwrap();
                    if !complete {
                        sink.cut(CaptureOffset(1)).unwrap();
                    }
                    sink.end_section().unwrap();
                    sink.finish(complete).unwrap();
                }
            }
            "itm" => {
                let options = ItmOptions {
                    look,
                    ports: vec![0],
                    code: Code::unknown().into(),
                    watched: crate::export::WatchedBy::new(),
                    table: "events",
                };
                let make = find(ITM, name).unwrap().make;
                (make.export)(&mut out, &options).finish(&[], complete).unwrap();
            }
            "coverage" => {
                let report = Report { complete, ..Report::of(&[], &Every) };
                let answer = CoverageAnswer {
                    report: &report,
                    inputs: &[],
                    difference: None,
                    source: &|_| None,
                    look,
                    table: "lines",
                    time: 0,
                };
                (find(COVERAGE, name).unwrap().make)(&mut out, &answer).unwrap();
            }
            "profile" => {
                let options = ProfileTextOptions { look, table: Default::default(), rows: None };
                (find(PROFILE, name).unwrap().make)(&mut out, &profile, &options).unwrap();
            }
            "timeline" => match find(TIMELINE, name).unwrap().make {
                MakeTimeline::Text(make) => make(&mut out, look).finish(complete).unwrap(),
                MakeTimeline::File(make) => make(&mut out).finish(complete).unwrap(),
                MakeTimeline::Folder(make) => {
                    let mut file = OneFile::default();
                    make(&mut file).finish(complete).unwrap();
                    out.clone_from(&file.0.borrow());
                }
            },
            "interrupts" => {
                let report = InterruptReport { scale, sources: Vec::new(), programs: Vec::new(), complete };
                (find(INTERRUPTS, name).unwrap().make)(&mut out, &report, look).unwrap();
            }
            "tasks" => {
                let report = TaskReport { sources: Vec::new(), complete };
                (find(TASKS, name).unwrap().make)(&mut out, &report, look, "tasks").unwrap();
            }
            "counts" => {
                let report = CountsReport { binaries: Vec::new(), complete };
                (find(COUNTS, name).unwrap().make)(&mut out, &report, look, "ranges").unwrap();
            }
            "crash" => {
                let report = CrashReport { sources: Vec::new(), ends: Vec::new(), complete, whole: true };
                (find(CRASH, name).unwrap().make)(&mut out, &report, look, "crashes").unwrap();
            }
            "diff" => {
                let names = ["a", "b"].map(str::to_owned);
                let report = DiffReport { names, sources: Vec::new(), complete };
                (find(DIFF, name).unwrap().make)(&mut out, &report, look, "functions").unwrap();
            }
            other => panic!("what {other} writes of a part of a capture is not asked here"),
        }
        vec![out]
    }

    /// The bytes of all files of a folder, one after the other.
    #[cfg(feature = "full")]
    #[derive(Clone, Default)]
    struct OneFile(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

    #[cfg(feature = "full")]
    impl crate::export::Files for OneFile {
        fn create(&mut self, _: &str) -> io::Result<Box<dyn Write>> {
            Ok(Box::new(self.clone()))
        }
    }

    #[cfg(feature = "full")]
    impl Write for OneFile {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Every format has its place in the page that promises it.
    #[test]
    fn the_page_of_formats_names_those_of_every_command() {
        let page = include_str!("../../../docs/formats.md");
        for (command, formats) in registries() {
            let row = page.lines().find_map(|line| line.strip_prefix(&format!("| `{command}` | ")));
            let row = row.unwrap_or_else(|| panic!("{command} has no row"));
            let named = row.trim_end_matches(" |").split(", ").map(|name| name.trim_matches('`'));
            let expected = formats.iter().map(|(name, _)| *name).collect::<Vec<_>>();
            assert_eq!(named.collect::<Vec<_>>(), expected, "{command}");
        }
    }
}
