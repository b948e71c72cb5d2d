//! A session → an answer's tables, which are those that the command writes.

use std::path::{Path, PathBuf};

use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::counts::{CountedBinary, CountsReport, ReportedBinary};
use tracewalk_analysis::coverage::{Difference, Limit, ProgramCoverage};
use tracewalk_analysis::crash::CrashRecording;
use tracewalk_analysis::interrupts::Activities;
use tracewalk_analysis::profile::{Profile, ProgramProfiles};
use tracewalk_analysis::table::Tabular;
use tracewalk_analysis::timeline::Scale;
use tracewalk_analysis::{Section, Statistics, table};
use tracewalk_report::export::{
    CrashReport, DiffReport, FunctionDiff, InterruptReport, ProfileReport, SourceDiff, TaskReport,
    TimelineExport, TimelineTable, Timelines, best_unit, read_base,
};
use tracewalk_sentences::of_unmet;
use tracewalk_session::{
    Answered, Compared, Comparison, CoverageBase, CoverageRequest, Follow, Observer, OfInterrupts, RunError,
    Session, View, WindowError,
};

use crate::problem::Problem;
use crate::table::{Collected, Table};
use crate::worker::Listener;

/// Tables, and the totals.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) tables: Vec<Table>,
    pub(crate) statistics: Statistics,
    pub(crate) complete: bool,
    /// The checks that do not hold.
    pub(crate) unmet: Vec<String>,
}

/// The unit of an axis or of costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    /// `None` for the best one that the trace has.
    pub(crate) unit: Option<Unit>,
    pub(crate) frequency: Option<f64>,
}

/// The tables of a report about an answer.
fn tables_of<T>(answered: &Answered<T>, tables: &[table::Table]) -> Result<Tables, Problem> {
    made(tables, answered.statistics, answered.programs.complete)
}

/// The contents of the capture.
pub(crate) fn info(session: &Session, observer: &dyn Observer) -> Result<Tables, Problem> {
    session.needs_trace()?;
    let info = session.info(observer)?;
    let tables = info.tables().iter().map(Table::of).collect::<Result<_, _>>()?;
    Ok(Tables { tables, complete: info.complete, ..Tables::default() })
}

/// What coverage is compared with, and what makes it fail.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub(crate) base: Option<PathBuf>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) on_loss: bool,
    pub(crate) on_regression: bool,
}

/// The tables of coverage, and the checks that do not hold.
pub(crate) fn covered(answered: &Answered<ProgramCoverage>, checks: &Checks) -> Result<Tables, Problem> {
    let base = match &checks.base {
        Some(file) => Some(CoverageBase::read(file, read_base, Vec::new())?),
        None => None,
    };
    let request = CoverageRequest { base, ..CoverageRequest::default() };
    let reported = request.report(answered, &mut |_| {})?;
    let mut unmet = if checks.on_loss { answered.programs.losses() } else { Vec::new() };
    unmet.extend(reported.unmet(&checks.limits, checks.on_regression));
    let difference = reported.difference.as_ref().map(Difference::table);
    let tables = reported.report.tables().into_iter().chain(difference);
    let tables = tables_of(answered, &tables.collect::<Vec<_>>())?;
    Ok(Tables { unmet: unmet.iter().map(of_unmet).collect(), ..tables })
}

/// The tables of execution counts.
pub(crate) fn counted(answered: &Answered<CountedBinary>) -> Result<Tables, Problem> {
    let binaries = answered.programs.programs.iter().map(|(id, program)| ReportedBinary {
        id,
        name: program.name(),
        found: &program.found,
    });
    let report = CountsReport { binaries: binaries.collect(), complete: answered.programs.complete };
    tables_of(answered, &report.tables())
}

/// The tables of costs.
pub(crate) fn profiled(
    answered: &Answered<ProgramProfiles>,
    (name, measure): (&str, Measure),
) -> Result<Tables, Problem> {
    let sources = answered.sections(|program| &program.sources, Profile::in_order)?;
    let unit = measure.unit.unwrap_or_else(|| best_unit(sources.iter().map(|(_, profile)| profile)));
    let ran = |(_, profile): &&(Section, Profile)| profile.total().instructions > 0;
    if !sources.iter().filter(ran).all(|(_, profile)| profile.measures.has(unit)) {
        return Err(no_measure(unit));
    }
    let report = ProfileReport {
        unit,
        sources,
        programs: answered.names(),
        name: name.to_owned(),
        frequency: measure.frequency,
        inlined: true,
        complete: answered.programs.complete,
    };
    tables_of(answered, &report.tables())
}

/// How often exceptions were taken, and how long they took.
pub(crate) fn interrupts(
    session: &mut Session,
    how: &Follow,
    (view, measure, functions): (View, Measure, bool),
    observer: &dyn Observer,
) -> Result<Tables, Problem> {
    let Measure { unit, frequency } = measure;
    let question = OfInterrupts { view, unit, frequency, functions };
    let answered = session.answer(&question, how, "", observer)?;
    question.view.finish()?;
    let measured = answered.programs.programs.values().find_map(|program| program.found.measured);
    let (unit, counts_cycles) =
        measured.map_or((Unit::Instructions, false), |measured| (measured.unit, measured.counts_cycles));
    let scale = Scale { unit, counts_cycles, frequency };
    let sources = answered.sections(|program| &program.sources, Activities::clone)?;
    let (programs, complete) = (answered.names(), answered.programs.complete);
    tables_of(&answered, &[InterruptReport { scale, sources, programs, complete }.table()])
}

/// Which tasks ran.
pub(crate) fn tasks(
    session: &mut Session,
    how: &Follow,
    dump: Option<&Path>,
    observer: &dyn Observer,
) -> Result<Tables, Problem> {
    let (mut sources, mut statistics, mut complete) = (Vec::new(), Statistics::default(), true);
    session.each_source(observer, |session, source| {
        let outcome = session.tasks(source, how, dump, observer)?;
        statistics.add(&outcome.statistics);
        complete &= outcome.complete;
        sources.push((session.section(source, outcome.code), outcome.found));
        Ok::<(), Problem>(())
    })?;
    made(&TaskReport { sources, complete }.tables(), statistics, complete)
}

/// Spans and marks in time.
pub(crate) fn timeline(
    session: &mut Session,
    how: &Follow,
    (view, measure): (View, Measure),
    observer: &dyn Observer,
) -> Result<Tables, Problem> {
    view.check(session, how, observer)?;
    let scale = session.scale(measure.unit, measure.frequency, how, observer)?;
    let mut collected = Collected::default();
    let (mut statistics, mut complete) = (Statistics::default(), true);
    {
        let mut export = TimelineTable::new(&mut collected);
        let mut timelines = Timelines::new(&mut export, scale, view.window().clone());
        session.each_source(observer, |session, source| {
            let outcome = view.run(session, source, how, &mut timelines, observer)?;
            statistics.add(&outcome.statistics);
            complete &= outcome.complete;
            Ok::<(), Problem>(())
        })?;
        view.finish()?;
        export.finish(complete)?;
    }
    let tables = collected.table().into_iter().collect();
    Ok(Tables { tables, statistics, complete, ..Tables::default() })
}

/// What differs between two captures of one program.
pub(crate) fn diff(
    sessions: &mut [Session; 2],
    how: &Follow,
    ignore_interrupts: bool,
    observer: &Listener,
) -> Result<Tables, Problem> {
    let names = [0, 1].map(|side: usize| sessions[side].request().capture.display().to_string());
    let compared = Comparison { ignore_interrupts }.run(sessions, how, observer)?;
    let mut statistics = Statistics::default();
    compared.iter().flat_map(|compared| &compared.statistics).for_each(|done| statistics.add(done));
    let source = |compared: Compared| {
        let Compared { ids, code, statistics, parting, profiles: [a, b], coverage } = compared;
        let instructions = statistics.map(|done| done.instructions);
        let functions = FunctionDiff::between([(&a, &code[0]), (&b, &code[1])]);
        SourceDiff { ids, code, instructions, parting, functions, coverage }
    };
    let complete = observer.is_complete();
    let report = DiffReport { names, sources: compared.into_iter().map(source).collect(), complete };
    let tables = made(&report.tables(), statistics, complete)?;
    let unmet = if report.is_same() { Vec::new() } else { vec!["the captures differ".to_owned()] };
    Ok(Tables { unmet, ..tables })
}

/// The crash of the program, and its cause.
pub(crate) fn crash(
    session: &mut Session,
    how: &Follow,
    dump: Option<&PathBuf>,
    observer: &Listener,
) -> Result<Tables, Problem> {
    let snapshot = session.snapshot(dump.map(PathBuf::as_path))?;
    if session.lacks_trace() {
        let found = session.untraced(&snapshot, how.names.as_deref().unwrap_or_default(), observer)?;
        let report = CrashReport::untraced(found.section, found.crash, found.doubts);
        return made(&report.tables(), Statistics::default(), true);
    }
    let mut recording = CrashRecording::default();
    let (mut statistics, mut complete, mut doubts) = (Statistics::default(), true, Vec::new());
    session.each_source(observer, |session, source| {
        let outcome = session.run_observed(source, how, &mut recording, observer)?;
        statistics.add(&outcome.statistics);
        complete &= outcome.complete;
        session.prove_crash(
            &mut recording,
            source,
            &outcome.code,
            (&snapshot, dump.map(PathBuf::as_path)),
        )?;
        doubts.push(session.doubts_of_end(source, how, &outcome, observer)?);
        Ok::<(), Problem>(())
    })?;
    let report = CrashReport::of(recording, &snapshot, doubts, (complete, observer.whole()));
    made(&report.tables(), statistics, complete)
}

fn made(tables: &[table::Table], statistics: Statistics, complete: bool) -> Result<Tables, Problem> {
    let tables = tables.iter().map(Table::of).collect::<Result<_, _>>()?;
    Ok(Tables { tables, statistics, complete, ..Tables::default() })
}

fn no_measure(unit: Unit) -> Problem {
    RunError::from(WindowError::NotMeasured(unit)).into()
}
