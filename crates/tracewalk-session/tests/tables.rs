//! Tables join: a column's name has one kind in all tables, and its values one spelling.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::counts::{CountsReport, ReportedBinary};
use tracewalk_analysis::coverage::{Every, ProgramInput, Report};
use tracewalk_analysis::crash::CrashRecording;
use tracewalk_analysis::interrupts::Activities;
use tracewalk_analysis::itm::event_table;
use tracewalk_analysis::profile::Profile;
use tracewalk_analysis::record::ItmRecord;
use tracewalk_analysis::sink::Sink as _;
use tracewalk_analysis::table::{Cell, Column, Kind, Table, Tabular as _, TakeRows};
use tracewalk_analysis::timeline::Scale;
use tracewalk_analysis::{Code, Window};
use tracewalk_report::export::{
    CallTable, CrashReport, DiffReport, FlowTable, FunctionDiff, InterruptReport, PacketTable, ProfileReport,
    SourceDiff, TimelineExport as _, TimelineTable, Timelines, best_unit, write_chain_rows,
};
use tracewalk_session::{
    Compared, Comparison, Follow, Itms, Notices, OfCounts, OfCoverage, OfInterrupts, OfProfile, Request, RunError, Session,
};

use crate::passages::examples;
use crate::support::corpus;

/// Collects a table that is written row by row.
#[derive(Default)]
struct Rows(Option<Table>);

impl TakeRows for Rows {
    fn table(&mut self, table: &Table) -> io::Result<()> {
        self.0 = Some(table.clone());
        Ok(())
    }

    fn row(&mut self, row: &[Cell]) -> io::Result<()> {
        self.0.as_mut().expect("a table has begun").push(row.iter().cloned());
        Ok(())
    }

    fn finish(&mut self, _: bool) -> io::Result<()> {
        Ok(())
    }
}

/// Tables, with the name of the command or the part of one that gives them.
type Tables = Vec<(String, Table)>;

/// All tables of a capture.
fn tables(capture: &Path) -> Tables {
    let open = || Session::open(Request::new(capture)).unwrap_or_else(|error| panic!("{error}")).0;
    let (mut session, notices) = (open(), Notices::default());
    let how = Follow { threads: 1, ..Follow::default() };
    let mut tables = Tables::new();
    let mut add = |of: &str, found: Vec<Table>| {
        tables.extend(found.into_iter().map(|table| (format!("{of} {}", table.name), table)));
    };
    let info = session.info(&notices).expect("bytes in memory");
    add("info", info.tables());

    let covered = session.answer(&OfCoverage::default(), &how, "run", &notices).expect("an example");
    let inputs = covered.programs.programs.iter().map(|(id, program)| ProgramInput {
        id,
        images: &program.images,
        coverage: &program.found,
        code: covered.code(id).expect("a program that was followed"),
    });
    add("coverage", Report::of(&inputs.collect::<Vec<_>>(), &Every).tables());

    let counted = session.answer(&OfCounts, &how, "capture", &notices).expect("an example");
    let binaries = counted.programs.programs.iter().map(|(id, program)| ReportedBinary {
        id,
        name: program.name(),
        found: &program.found,
    });
    add("counts", CountsReport { binaries: binaries.collect(), complete: true }.tables());

    let profiled = session.answer(&OfProfile::default(), &how, "capture", &notices).expect("an example");
    let sources = profiled.sections(|program| &program.sources, Profile::in_order).expect("programs");
    let unit = best_unit(sources.iter().map(|(_, profile)| profile));
    let (programs, name) = (profiled.names(), "capture".to_owned());
    let report =
        ProfileReport { sources, programs, name, unit, frequency: None, inlined: true, complete: true };
    add("profile", report.tables());
    let mut chains = Rows::default();
    write_chain_rows(&mut chains, &report, None).expect("rows in memory");
    add("calls", chains.0.into_iter().collect());

    let question = OfInterrupts { functions: true, ..OfInterrupts::default() };
    let measured = session.answer(&question, &how, "capture", &notices).expect("an example");
    let sources = measured.sections(|program| &program.sources, Activities::clone).expect("programs");
    let scale = Scale { unit: Unit::Instructions, counts_cycles: false, frequency: None };
    add("interrupts", InterruptReport { scale, sources, programs: measured.names(), complete: true }.tables());

    let mut sinks = [Rows::default(), Rows::default(), Rows::default(), Rows::default()];
    let [flows, calls, spans, packets] = &mut sinks;
    let (mut flow, mut calls) = (FlowTable::new(flows), CallTable::new(calls, Window::default(), None));
    let (mut timeline, mut packets) = (TimelineTable::new(spans), PacketTable::new(packets));
    let mut timelines = Timelines::new(&mut timeline, scale, Window::default());
    flow.begin().and_then(|()| calls.begin()).and_then(|()| packets.begin()).expect("rows in memory");
    let snapshot = session.snapshot(None).expect("memory of the capture");
    let (mut recording, mut doubts) = (CrashRecording::default(), Vec::new());
    let followed = session.each_source(&notices, |session, source| {
        session.run(source, &how, &mut flow)?;
        session.run(source, &how, &mut calls)?;
        session.run(source, &how, &mut timelines)?;
        let outcome = session.run(source, &how, &mut recording)?;
        add("losses", [outcome.losses.gaps.tables(), outcome.losses.contexts.tables()].concat());
        add("losses", outcome.statistics.tables());
        doubts.push(session.doubts_of_end(source, &how, &outcome, &notices)?);
        packets.section(&session.section(source, Code::unknown().into())).expect("rows in memory");
        let watch = session.watch(source, &notices);
        let input = session.input(source, &watch);
        input.packets(&source.config, |record| packets.record(record)).expect("rows in memory");
        packets.end_section().expect("rows in memory");
        Ok::<_, RunError>(())
    });
    followed.expect("an example");
    timeline.finish(true).expect("rows in memory");
    add("each source", sinks.into_iter().filter_map(|rows| rows.0).collect());
    add("crash", CrashReport::of(recording, &snapshot, doubts, (true, true)).tables());

    let mut events = event_table();
    let mut itms = Itms::new(&session, session.itms().to_vec());
    let add_event = |record: &_| {
        events.push(ItmRecord::row(record, None));
        Ok(())
    };
    itms.each(add_event).expect("rows in memory");
    add("itm", vec![events]);

    let mut both = [session, open()];
    let compared = Comparison::default().run(&mut both, &how, &notices).expect("the same capture");
    let source = |compared: Compared| SourceDiff {
        functions: FunctionDiff::between([0, 1].map(|side: usize| (&compared.profiles[side], &*compared.code[side]))),
        ids: compared.ids,
        code: compared.code,
        instructions: compared.statistics.map(|done| done.instructions),
        parting: compared.parting,
        coverage: compared.coverage,
    };
    let names = ["a", "b"].map(str::to_owned);
    let sources = compared.into_iter().map(source).collect();
    add("diff", DiffReport { names, sources, complete: true }.tables());
    tables
}

/// Columns, and the tables that have all of their values. Any other table with these columns spells them in the same way.
const KEYS: [(&[&str], &[&str]); 12] = [
    (&["id", "protocol"], &["info sources", "info itms"]),
    (&["id", "protocol", "source_number"], &["info sources"]),
    (&["id", "protocol", "source_number", "packet", "count"], &["info packets"]),
    (&["trace_file"], &["info buffers"]),
    (&["build_id", "binary"], &["info images"]),
    (&["binary"], &["info images"]),
    (&["file"], &["coverage files"]),
    (&["file", "line"], &["coverage lines", "coverage functions"]),
    (&["function"], &["coverage functions"]),
    (&["function", "file", "address"], &["coverage functions"]),
    (&["isa"], &["counts ranges"]),
    (&["exception", "name"], &["each source flow"]),
];

/// The columns of all tables, and what does not join.
#[derive(Default)]
struct Joins {
    kinds: BTreeMap<String, (Kind, String)>,
    /// How many values of each key another table shares with those that have all of them.
    joined: BTreeMap<&'static [&'static str], usize>,
    faults: BTreeSet<String>,
}

impl Joins {
    fn add(&mut self, capture: &Path) {
        let tables = tables(capture);
        for (of, table) in &tables {
            for Column { name, kind, .. } in &table.columns {
                let (known, first) = self.kinds.entry(name.to_string()).or_insert((*kind, of.clone()));
                if *known != *kind {
                    self.faults.insert(format!("{name}: {known:?} in {first}, {kind:?} in {of}"));
                }
            }
        }
        for (key, whole) in KEYS {
            let (known, others) = tables.iter().partition::<Vec<_>, _>(|(of, _)| whole.contains(&&**of));
            let known = known.iter().flat_map(|(_, table)| values(table, key)).collect::<BTreeSet<_>>();
            for (of, table) in others {
                let (joined, apart) = values(table, key).into_iter().partition::<Vec<_>, _>(|it| known.contains(it));
                *self.joined.entry(key).or_default() += joined.len();
                self.faults.extend(apart.iter().map(|it| format!("{}: {key:?} {it} of {of}", capture.display())));
            }
        }
        // What ran by one report ran by the other.
        let of = |name: &str| &tables.iter().find(|(of, _)| of == name).expect("a table of every capture").1;
        let (covered, costs) = (of("coverage functions"), of("profile functions"));
        let ran = covered.rows.iter().filter(|row| row.last() != Some(&Cell::Integer(0))).cloned();
        let ran = Table { rows: ran.collect(), ..covered.clone() };
        let costs = values(costs, &["function"]);
        let apart = values(&ran, &["function"]).into_iter().filter(|function| !costs.contains(function));
        self.faults.extend(apart.map(|function| format!("{}: {function} ran at no cost", capture.display())));
    }
}

/// The values of columns; none if the table lacks one of them.
fn values(table: &Table, columns: &[&str]) -> BTreeSet<String> {
    let place = |name: &&str| table.columns.iter().position(|known| known.name == *name);
    let Some(places) = columns.iter().map(place).collect::<Option<Vec<_>>>() else { return BTreeSet::new() };
    // Coverage lists neither functions that are inlined everywhere nor code without a name; `info` counts bytes before the first
    // synchronisation apart.
    let is_elsewhere = |cell: &Cell| {
        let Cell::Text(text) = cell else { return false };
        text == "inlined" || text == "unsynced" || text == "code without a name" || text.starts_with("0x")
    };
    let rows = table.rows.iter().filter(|row| !row.iter().any(is_elsewhere));
    let rows = rows.map(|row| places.iter().map(|place| &row[*place]).collect::<Vec<_>>());
    rows.filter(|cells| !cells.contains(&&Cell::Unknown)).map(|cells| format!("{cells:?}")).collect()
}

#[test]
fn tables_of_examples_join() {
    let joined = check(&examples()).joined;
    assert!(joined.len() == KEYS.len() && joined.values().all(|count| *count > 2), "{joined:?}");
}

/// A crash with its dump, an ITM beside trace, contexts, several cores, several compilers.
#[tracewalk_corpus::test]
fn tables_of_the_corpus_join() {
    let names = [
        "etm4/synthetic/mix-a57-etmv4-speculative",
        "found/pft-gray-timestamps-before-t-sync",
        "found3/truth/01-crash-etmv4/m33-null",
        "found3/truth/05-unresolved-tasks",
        "found3/truth/06-cpp-exceptions-recursive",
        "mcdc/decisions/gcc-O2-etmv3",
        "mcdc/json/clang-O1-etmv3",
        "mcdc/sched/gcc-Og-pft",
        "real/TC2",
        "synthetic/mix-m3-etmv3-broadcast",
    ];
    check(&names.map(corpus));
}

fn check(captures: &[PathBuf]) -> Joins {
    let mut joins = Joins::default();
    captures.iter().for_each(|capture| joins.add(capture));
    assert!(joins.faults.is_empty(), "{:#?}", joins.faults);
    joins
}
