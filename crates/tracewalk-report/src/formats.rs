//! The registries: every output format by its name, one line each.
//!
//! A command asks a registry which formats there are, what to say of each, and how to write it; nothing else tells formats
//! apart. A new one is a file in `export` and a line here (`docs/dev/adding-an-output.md`).

use std::io::{self, Write};

use tracewalk_analysis::Window;
use tracewalk_analysis::analysis::FlowSink;
use tracewalk_analysis::counts::CountsReport;
use tracewalk_analysis::coverage::{Difference, ProgramInput, Report, Tracefile};
use tracewalk_analysis::record::PacketRecord;
use tracewalk_analysis::sink::{Join, Nothing, Sink};
use tracewalk_analysis::symbols::SourceFile;
use tracewalk_analysis::table::{Table, Tabular as _};

use crate::Look;
use crate::export::{
    CallChainsOptions, CallTable, CallTree, CallTreeOptions, CallsOnly, ChromeTrace, CommonTraceFormat,
    CrashReport, DiffReport, ExportItm, Files, FlowJsonl, FlowTable, InterruptReport, ItmJsonl, ItmTables,
    ItmText, Listing, ListingOptions, PacketTable, PacketsJsonl, PacketsText, PerfettoTrace, ProfileReport,
    ProfileTextOptions, Runs, StimulusBytes, TableCsv, TableParquet, TablesJson, TimelineExport,
    TimelineTable, TimelineText, write_autofdo, write_bolt, write_call_chains, write_callgrind,
    write_chain_rows, write_cobertura, write_counts_text, write_coverage_html, write_coverage_json,
    write_coverage_text, write_crash_json, write_crash_markdown, write_crash_text, write_diff_json,
    write_diff_text, write_firefox, write_flamegraph, write_folded, write_interrupts_json,
    write_interrupts_text, write_lcov, write_pprof, write_profgen, write_profile_text, write_speedscope,
    write_table_csv, write_tables, write_tables_json,
};

/// An output format.
#[derive(Clone, Copy, Debug)]
pub struct Format<Make: 'static> {
    /// What users call it.
    pub name: &'static str,
    /// What it is, as a phrase without a full stop.
    pub help: &'static str,
    /// How it is written.
    pub make: Make,
}

/// The format of this name.
#[must_use]
pub fn find<Make>(formats: &'static [Format<Make>], name: &str) -> Option<&'static Format<Make>> {
    formats.iter().find(|format| format.name == name)
}

/// Shorter to read in the tables below.
const fn format<Make>(name: &'static str, help: &'static str, make: Make) -> Format<Make> {
    Format { name, help, make }
}

/// Writes profiles.
pub type WriteProfile = fn(&mut dyn Write, &ProfileReport, &ProfileTextOptions) -> io::Result<()>;

/// The formats of profiles.
pub const PROFILE: &[Format<WriteProfile>] = &[
    format("text", "A table for people", write_profile_text),
    format(
        "flamegraph",
        "A picture of all chains of calls, as an SVG that a browser can zoom and search",
        |out, report, _| write_flamegraph(out, report),
    ),
    format("folded", "One line for each chain of calls, for flame graph tools", |out, report, _| {
        write_folded(out, report)
    }),
    format("callgrind", "What callgrind writes, for KCachegrind and callgrind_annotate", |out, report, _| {
        write_callgrind(out, report)
    }),
    format("pprof", "For pprof and the tools that read its files, gzipped", |out, report, _| {
        write_pprof(out, report)
    }),
    format("firefox", "For https://profiler.firefox.com", |out, report, _| write_firefox(out, report)),
    format("speedscope", "For https://www.speedscope.app", |out, report, _| write_speedscope(out, report)),
    format("csv", "All rows of the table, with commas (docs/formats.md)", |out, report, options| {
        write_table_csv(out, &report.table(options.table))
    }),
    format(
        "parquet",
        "All rows of the table, for data frames and SQL (docs/formats.md)",
        |out, report, options| {
            write_tables(&mut TableParquet::new(out), &[report.table(options.table)], report.complete)
        },
    ),
    format(
        "json",
        "The tables of functions, lines and calls as one JSON document (docs/formats.md)",
        |out, report, _| write_tables_json(out, &report.tables(), report.complete),
    ),
    format("none", "Count everything and print nothing", |_, _, _| Ok(())),
];

/// What reports of coverage are written from.
pub struct CoverageAnswer<'a> {
    /// What was covered.
    pub report: &'a Report,
    /// The programs.
    pub inputs: &'a [ProgramInput<'a>],
    /// What changed against another report, if one was given.
    pub difference: Option<&'a Difference>,
    /// Finds source files by the names that debugging information has for them.
    pub source: &'a dyn Fn(&str) -> Option<SourceFile>,
    /// The table that CSV is of: one of [`COVERAGE_TABLES`].
    pub table: &'a str,
    /// How the text looks.
    pub look: Look,
    /// The time that an output is dated with, in seconds since 1970.
    pub time: u64,
}

/// The tables that coverage has as CSV. `difference` is there only if there is a base, those of runs if they were kept apart.
pub const COVERAGE_TABLES: [&str; 7] =
    ["lines", "files", "functions", "branches", "difference", "runs", "lines_by_run"];

/// Writes what was covered.
pub type WriteCoverage = fn(&mut dyn Write, &CoverageAnswer<'_>) -> io::Result<()>;

/// The formats of coverage.
pub const COVERAGE: &[Format<WriteCoverage>] = &[
    format("text", "A table with a row for each file", |out, answer| {
        write_coverage_text(answer.report, answer.difference, answer.look, out)
    }),
    format("html", "A page to look at, in one file", |out, answer| {
        write_coverage_html(answer.report, answer.inputs, answer.difference, answer.source, out)
    }),
    format("lcov", "An LCOV tracefile, which most tools read", |out, answer| {
        write_lcov(&Tracefile::of(answer.report, answer.source), answer.report.complete, out)
    }),
    format("cobertura", "Cobertura's XML, for GitLab, Jenkins and others", |out, answer| {
        write_cobertura(answer.report, &answer.paths(), answer.time, out)
    }),
    format("json", "Everything that is known, as one JSON document (docs/coverage.md)", |out, answer| {
        write_coverage_json(answer.report, answer.difference, out)
    }),
    format("csv", "The table of --table, with commas (docs/formats.md)", |out, answer| {
        let tables = answer.report.tables().into_iter().chain(answer.difference.map(Difference::table));
        tables.filter(|table| table.name == answer.table).try_for_each(|table| write_table_csv(out, &table))
    }),
    format("parquet", "The table of --table, for data frames and SQL (docs/formats.md)", |out, answer| {
        let tables = answer.report.tables().into_iter().chain(answer.difference.map(Difference::table));
        let table = tables.filter(|table| table.name == answer.table).collect::<Vec<_>>();
        write_tables(&mut TableParquet::new(out), &table, answer.report.complete)
    }),
    format("none", "Count everything and print nothing", |_, _| Ok(())),
];

impl CoverageAnswer<'_> {
    /// The paths of the report's files: where they are, or what the debugging information calls them.
    fn paths(&self) -> Vec<String> {
        let path = |name: &String| (self.source)(name).map_or_else(|| name.clone(), |found| found.path);
        self.report.files.iter().map(|file| path(&file.name)).collect()
    }
}

/// Writes how often what ran: all of it, or the table of this name.
pub type WriteCounts = fn(&mut dyn Write, &CountsReport<'_>, Look, &'static str) -> io::Result<()>;

/// The formats of counts that are of one binary, for the tools that optimise it.
pub const PGO: &[Format<WriteCounts>] = &[PROFGEN, BOLT, AUTOFDO];

/// The formats of counts.
pub const COUNTS: &[Format<WriteCounts>] = &[
    format(
        "text",
        "What was kept at each step from the trace to the counts, for people",
        |out, report, look, _| write_counts_text(out, report, look),
    ),
    format("csv", "One table, with commas (docs/formats.md)", |out, report, _, table| {
        one_table(out, &report.tables(), table, report.complete)
    }),
    format("parquet", "One table, for data frames and SQL (docs/formats.md)", |out, report, _, table| {
        one_parquet(out, &report.tables(), table, report.complete)
    }),
    format("json", "The tables as one JSON document (docs/formats.md)", |out, report, _, _| {
        write_tables_json(out, &report.tables(), report.complete)
    }),
    PROFGEN,
    BOLT,
    AUTOFDO,
    format("none", "Count everything and print nothing", |_, _, _, _| Ok(())),
];

const PROFGEN: Format<WriteCounts> = format(
    "profgen",
    "An unsymbolised profile for llvm-profgen, which makes one for clang",
    |out, report, _, _| write_profgen(out, report),
);
const BOLT: Format<WriteCounts> = format(
    "bolt",
    "Pre-aggregated branches for perf2bolt, which makes a profile for llvm-bolt",
    |out, report, _, _| write_bolt(out, report),
);
const AUTOFDO: Format<WriteCounts> =
    format("autofdo", "Text for AutoFDO's create_llvm_prof and create_gcov", |out, report, _, _| {
        write_autofdo(out, report)
    });

/// Writes how long exceptions took.
pub type WriteInterrupts = fn(&mut dyn Write, &InterruptReport, Look) -> io::Result<()>;

/// The formats of interrupts.
pub const INTERRUPTS: &[Format<WriteInterrupts>] = &[
    format("text", "A table for people", write_interrupts_text),
    format("csv", "A line for each exception, with commas", |out, report, _| {
        write_table_csv(out, &report.table())
    }),
    format("parquet", "A row for each exception, for data frames and SQL", |out, report, _| {
        write_tables(&mut TableParquet::new(out), &[report.table()], report.complete)
    }),
    format("json", "Everything that is known, as one JSON document (docs/profiling.md)", |out, report, _| {
        write_interrupts_json(out, report)
    }),
    format("none", "Measure everything and print nothing", |_, _, _| Ok(())),
];

/// Writes how a program crashed: all of it, or the table of this name.
pub type WriteCrash = fn(&mut dyn Write, &CrashReport, Look, &'static str) -> io::Result<()>;

/// The formats of crashes.
pub const CRASH: &[Format<WriteCrash>] = &[
    format("text", "One screen for people", |out, report, look, _| write_crash_text(out, report, look)),
    format("csv", "One table, with commas (docs/formats.md)", |out, report, _, table| {
        one_table(out, &report.tables(), table, report.complete)
    }),
    format("parquet", "One table, for data frames and SQL (docs/formats.md)", |out, report, _, table| {
        one_parquet(out, &report.tables(), table, report.complete)
    }),
    format(
        "json",
        "Everything that is known, as one JSON document (docs/crash.md)",
        |out, report, look, _| write_crash_json(out, report, look),
    ),
    format("markdown", "For a bug report", |out, report, look, _| write_crash_markdown(out, report, look)),
    format("none", "Examine everything and print nothing", |_, _, _, _| Ok(())),
];

/// Writes how two captures differ: all of it, or the table of this name.
pub type WriteDiff = fn(&mut dyn Write, &DiffReport, Look, &'static str) -> io::Result<()>;

/// The formats of differences.
pub const DIFF: &[Format<WriteDiff>] = &[
    format("text", "For people", |out, report, look, _| write_diff_text(out, report, look)),
    format("csv", "One table, with commas (docs/formats.md)", |out, report, _, table| {
        one_table(out, &report.tables(), table, report.complete)
    }),
    format("parquet", "One table, for data frames and SQL (docs/formats.md)", |out, report, _, table| {
        one_parquet(out, &report.tables(), table, report.complete)
    }),
    format("json", "One JSON document (docs/profiling.md)", |out, report, _, _| write_diff_json(out, report)),
    format("none", "Compare everything and print nothing", |_, _, _, _| Ok(())),
];

/// Makes what writes timelines.
#[derive(Clone, Copy, Debug)]
pub enum MakeTimeline {
    /// For people, who see each line as soon as it is known.
    Text(for<'a> fn(&'a mut (dyn Write + 'a), Look) -> Box<dyn TimelineExport + 'a>),
    /// In one file.
    File(for<'a> fn(&'a mut (dyn Write + 'a)) -> Box<dyn TimelineExport + 'a>),
    /// In the files of a folder.
    Folder(for<'a> fn(&'a mut (dyn Files + 'a)) -> Box<dyn TimelineExport + 'a>),
}

/// The formats of timelines.
pub const TIMELINE: &[Format<MakeTimeline>] = &[
    format(
        "text",
        "Lines for people",
        MakeTimeline::Text(|out, look| Box::new(TimelineText::new(out, look))),
    ),
    format(
        "perfetto",
        "A protocol buffer for ui.perfetto.dev and its trace processor",
        MakeTimeline::File(|out| Box::new(PerfettoTrace::new(out))),
    ),
    format(
        "chrome",
        "JSON for chrome://tracing and Perfetto",
        MakeTimeline::File(|out| Box::new(ChromeTrace::new(out))),
    ),
    format(
        "csv",
        "A line for each span and mark, with commas (docs/formats.md)",
        MakeTimeline::File(|out| Box::new(TimelineTable::new(TableCsv::new(out)))),
    ),
    format(
        "parquet",
        "The same rows, for data frames and SQL (docs/formats.md)",
        MakeTimeline::File(|out| Box::new(TimelineTable::new(TableParquet::new(out)))),
    ),
    format(
        "json",
        "The same as one JSON document (docs/formats.md)",
        MakeTimeline::File(|out| Box::new(TimelineTable::new(TablesJson::new(out)))),
    ),
    format(
        "ctf",
        "A folder in the Common Trace Format 1.8, for babeltrace2 and Trace Compass",
        MakeTimeline::Folder(|files| Box::new(CommonTraceFormat::new(files))),
    ),
    format("none", "Follow everything and print nothing", MakeTimeline::File(|_| Box::new(Nothing))),
];

/// Writes tables: all of them, or the one of this name. The flag is whether what they are of was decoded to its end.
pub type WriteTables = fn(&mut dyn Write, &[Table], &'static str, bool) -> io::Result<()>;

/// Writes what is in a capture.
#[derive(Clone, Copy, Debug)]
pub enum WriteInfo {
    /// For people: by the command, which knows the options that state what was inferred.
    Text,
    /// As tables.
    Tables(WriteTables),
}

/// The formats of what is in a capture.
pub const INFO: &[Format<WriteInfo>] = &[
    format("text", "For people", WriteInfo::Text),
    format("csv", "One table, with commas (docs/formats.md)", WriteInfo::Tables(one_table)),
    format("parquet", "One table, for data frames and SQL (docs/formats.md)", WriteInfo::Tables(one_parquet)),
    format("json", "The tables as one JSON document (docs/formats.md)", WriteInfo::Tables(all_tables)),
    format("none", "Count everything and print nothing", WriteInfo::Tables(|_, _, _, _| Ok(()))),
];

fn one_table(out: &mut dyn Write, tables: &[Table], name: &'static str, complete: bool) -> io::Result<()> {
    write_tables(&mut TableCsv::of(out, name), tables, complete)
}

fn one_parquet(out: &mut dyn Write, tables: &[Table], name: &'static str, complete: bool) -> io::Result<()> {
    write_tables(&mut TableParquet::of(out, name), tables, complete)
}

fn all_tables(out: &mut dyn Write, tables: &[Table], _: &'static str, complete: bool) -> io::Result<()> {
    write_tables_json(out, tables, complete)
}

/// Makes what writes the records of ITMs.
#[derive(Clone, Copy, Debug)]
pub struct MakeItm {
    /// Takes records in the order of the capture.
    pub export: for<'a> fn(&'a mut (dyn Write + 'a), &ItmOptions) -> Box<dyn ExportItm + 'a>,
    /// Whether it writes nothing but what was written to some ports.
    pub of_ports: bool,
}

/// How what ITMs sent is to look.
#[derive(Clone, Debug)]
pub struct ItmOptions {
    /// The colours and the width.
    pub look: Look,
    /// The stimulus ports whose bytes are written.
    pub ports: Vec<u8>,
    /// The table that CSV writes.
    pub table: &'static str,
}

/// The formats of what ITMs sent.
pub const ITM: &[Format<MakeItm>] = &[
    format(
        "text",
        "The bytes that software wrote to a stimulus port",
        MakeItm {
            export: |out, options| Box::new(StimulusBytes::new(out, options.ports.clone())),
            of_ports: true,
        },
    ),
    format(
        "events",
        "A line for each thing that was told, with its offset in the capture",
        MakeItm { export: |out, options| Box::new(ItmText::new(out, options.look)), of_ports: false },
    ),
    format(
        "jsonl",
        "One JSON object a line (docs/formats.md)",
        MakeItm { export: |out, _| Box::new(ItmJsonl::new(out)), of_ports: false },
    ),
    format(
        "csv",
        "One table, with commas (docs/formats.md)",
        MakeItm {
            export: |out, options| Box::new(ItmTables::new(TableCsv::of(out, options.table))),
            of_ports: false,
        },
    ),
    format(
        "parquet",
        "One table, for data frames and SQL (docs/formats.md)",
        MakeItm {
            export: |out, options| Box::new(ItmTables::new(TableParquet::of(out, options.table))),
            of_ports: false,
        },
    ),
    format(
        "json",
        "The tables as one JSON document (docs/formats.md)",
        MakeItm { export: |out, _| Box::new(ItmTables::new(TablesJson::new(out))), of_ports: false },
    ),
    format(
        "none",
        "Decode everything and print nothing",
        MakeItm { export: |_, _| Box::new(Nothing), of_ports: false },
    ),
];

/// How program flow is to look.
#[derive(Clone, Debug)]
pub struct FlowOptions {
    /// The colours and the width.
    pub look: Look,
    /// Lines of the source between the instructions, in text.
    pub source_lines: bool,
    /// Nothing but the functions, as a tree of calls, in text.
    pub functions: bool,
    /// Each line is written as soon as it is known.
    pub at_once: bool,
    /// The part that a tree of calls shows.
    pub window: Window,
}

/// Makes what writes program flow.
#[derive(Clone, Copy, Debug)]
pub struct MakeFlow {
    /// Takes records in the order of the trace.
    pub sink: for<'a> fn(&'a mut (dyn Write + 'a), &FlowOptions) -> Box<dyn FlowSink + 'a>,
    /// The same in parts that threads make, where it can be written so.
    pub parts: Option<FlowParts>,
    /// Whether it shows the names of functions and lines of the source.
    pub names: bool,
}

/// What writes flow in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowParts {
    /// [`Nothing`].
    Nothing,
    /// [`Runs`].
    Runs,
    /// [`FlowJsonl`].
    Jsonl,
}

/// Something to do with whatever writes flow in parts.
pub trait WithJoin {
    /// What comes of it.
    type Answer;

    /// Does it.
    fn with(self, sink: &mut impl Join) -> Self::Answer;
}

impl FlowParts {
    /// Does something with what writes to `out`.
    pub fn with<V: WithJoin>(self, out: &mut impl Write, visitor: V) -> V::Answer {
        match self {
            Self::Nothing => visitor.with(&mut Nothing),
            Self::Runs => visitor.with(&mut Runs::new(out)),
            Self::Jsonl => visitor.with(&mut FlowJsonl::new(out)),
        }
    }
}

/// The formats of program flow.
pub const FLOW: &[Format<MakeFlow>] = &[
    format("text", "A listing for people", MakeFlow { sink: flow_text, parts: None, names: true }),
    format(
        "runs",
        "The addresses that were executed, one run a line (docs/formats.md)",
        MakeFlow { sink: flow_runs, parts: Some(FlowParts::Runs), names: false },
    ),
    format(
        "jsonl",
        "One JSON object a line (docs/formats.md)",
        MakeFlow {
            sink: |out, _| Box::new(FlowJsonl::new(out)),
            parts: Some(FlowParts::Jsonl),
            names: false,
        },
    ),
    format(
        "csv",
        "A line for each element, with commas (docs/formats.md)",
        MakeFlow { sink: |out, _| Box::new(FlowTable::new(TableCsv::new(out))), parts: None, names: true },
    ),
    format(
        "parquet",
        "The same rows, for data frames and SQL (docs/formats.md)",
        MakeFlow {
            sink: |out, _| Box::new(FlowTable::new(TableParquet::new(out))),
            parts: None,
            names: true,
        },
    ),
    format(
        "json",
        "The same as one JSON document (docs/formats.md)",
        MakeFlow { sink: |out, _| Box::new(FlowTable::new(TablesJson::new(out))), parts: None, names: true },
    ),
    format(
        "none",
        "Decode everything and print nothing",
        MakeFlow { sink: |_, _| Box::new(Nothing), parts: Some(FlowParts::Nothing), names: false },
    ),
];

fn flow_text<'a>(out: &'a mut (dyn Write + 'a), options: &FlowOptions) -> Box<dyn FlowSink + 'a> {
    let FlowOptions { look, source_lines, .. } = *options;
    if options.functions {
        let options = CallTreeOptions { look, depth: None, fold: true, window: options.window.clone() };
        Box::new(CallTree::new(out, options))
    } else {
        Box::new(Listing::new(out, ListingOptions { look, source_lines }))
    }
}

fn flow_runs<'a>(out: &'a mut (dyn Write + 'a), options: &FlowOptions) -> Box<dyn FlowSink + 'a> {
    let runs = Runs::new(out);
    Box::new(if options.at_once { runs.at_once() } else { runs })
}

/// Makes what writes calls.
#[derive(Clone, Copy, Debug)]
pub struct MakeCalls {
    /// One by one, as they ran.
    pub tree: for<'a> fn(&'a mut (dyn Write + 'a), CallTreeOptions) -> Box<dyn FlowSink + 'a>,
    /// Added up by chains.
    pub chains: fn(&mut dyn Write, &ProfileReport, &CallChainsOptions) -> io::Result<()>,
}

/// The formats of calls.
pub const CALLS: &[Format<MakeCalls>] = &[
    format(
        "text",
        "A tree for people",
        MakeCalls { tree: |out, options| Box::new(CallTree::new(out, options)), chains: write_call_chains },
    ),
    format(
        "csv",
        "A line for each call, or each chain, with commas (docs/formats.md)",
        MakeCalls {
            tree: |out, CallTreeOptions { window, depth, .. }| {
                Box::new(CallTable::new(TableCsv::new(out), window, depth))
            },
            chains: |out, report, options| write_chain_rows(&mut TableCsv::new(out), report, options.depth),
        },
    ),
    format(
        "parquet",
        "The same rows, for data frames and SQL (docs/formats.md)",
        MakeCalls {
            tree: |out, CallTreeOptions { window, depth, .. }| {
                Box::new(CallTable::new(TableParquet::new(out), window, depth))
            },
            chains: |out, report, options| {
                write_chain_rows(&mut TableParquet::new(out), report, options.depth)
            },
        },
    ),
    format(
        "json",
        "The same as one JSON document (docs/formats.md)",
        MakeCalls {
            tree: |out, CallTreeOptions { window, depth, .. }| {
                Box::new(CallTable::new(TablesJson::new(out), window, depth))
            },
            chains: |out, report, options| write_chain_rows(&mut TablesJson::new(out), report, options.depth),
        },
    ),
    format(
        "none",
        "Follow everything and print nothing",
        MakeCalls { tree: |_, _| Box::new(CallsOnly::default()), chains: |_, _, _| Ok(()) },
    ),
];

/// Takes packets.
pub type PacketSink<'a> = Box<dyn for<'b> Sink<PacketRecord<'b>> + 'a>;

/// Makes what takes packets; `None` for what takes none.
pub type MakePackets = for<'a> fn(&'a mut (dyn Write + 'a), Look) -> Option<PacketSink<'a>>;

/// The formats of packets.
pub const PACKETS: &[Format<MakePackets>] = &[
    format("text", "A table for people", |out, look| Some(Box::new(PacketsText::new(out, look)))),
    format("jsonl", "One JSON object a line (docs/formats.md)", |out, _| {
        Some(Box::new(PacketsJsonl::new(out)))
    }),
    format("csv", "How many packets of each kind, with commas (docs/formats.md)", |out, _| {
        Some(Box::new(PacketTable::new(TableCsv::new(out))))
    }),
    format("parquet", "The same rows, for data frames and SQL (docs/formats.md)", |out, _| {
        Some(Box::new(PacketTable::new(TableParquet::new(out))))
    }),
    format("json", "The same as one JSON document (docs/formats.md)", |out, _| {
        Some(Box::new(PacketTable::new(TablesJson::new(out))))
    }),
    format("none", "Decode everything and print nothing", |_, _| None),
];

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
        ("crash", listed(CRASH)),
        ("diff", listed(DIFF)),
    ]
}

#[cfg(test)]
mod tests {
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

    /// Formats that cannot say it, those that write nothing, and what the command writes itself.
    #[cfg(feature = "full")]
    const CUT_DOES_NOT_SHOW: [(&str, &str); 30] = [
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

    /// The documents that a format makes of a capture of which nothing was decoded, `complete` or not.
    #[cfg(feature = "full")]
    fn written(command: &str, name: &str, complete: bool) -> Vec<Vec<u8>> {
        use tracewalk::span::CaptureOffset;
        use tracewalk_analysis::clock::Unit;
        use tracewalk_analysis::coverage::Every;
        use tracewalk_analysis::timeline::Scale;
        use tracewalk_analysis::{Code, Section};

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
                let options = FlowOptions {
                    look,
                    source_lines: false,
                    functions: false,
                    at_once: false,
                    window: Window::default(),
                };
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
                let options = ItmOptions { look, ports: vec![0], table: "events" };
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
            "counts" => {
                let report = CountsReport { binaries: Vec::new(), complete };
                (find(COUNTS, name).unwrap().make)(&mut out, &report, look, "ranges").unwrap();
            }
            "crash" => {
                let report = CrashReport { sources: Vec::new(), complete, whole: true };
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

    /// The bytes of all files of a folder, one behind the other.
    #[cfg(feature = "full")]
    #[derive(Clone, Default)]
    struct OneFile(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

    #[cfg(feature = "full")]
    impl Files for OneFile {
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
