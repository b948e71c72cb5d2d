//! A session → an answer's tables, which are those that the command writes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::counts::{CountedBinary, CountsReport, ReportedBinary};
use tracewalk_analysis::coverage::{Every, ProgramCoverage, ProgramInput, Report};
use tracewalk_analysis::crash::CrashRecording;
use tracewalk_analysis::interrupts::{Activities, Measured, Measuring, ProgramActivities, seen_by_itm};
use tracewalk_analysis::profile::{Profile, ProgramProfiles};
use tracewalk_analysis::programs::{Merge, OfProgram, ProgramId, Programs, SourceId};
use tracewalk_analysis::table::Tabular;
use tracewalk_analysis::timeline::{Probe, Scale};
use tracewalk_analysis::{Code, Section, Statistics, Window, table};
use tracewalk_report::export::{
    CrashReport, InterruptReport, ProfileReport, TimelineExport, TimelineTable, Timelines, best_unit,
};
use tracewalk_sentences::{NotMeasured, not_measured};
use tracewalk_session::{Additive, Follow, FollowedProgram, Observer, Outcome, RunError, Session};

use crate::problem::Problem;
use crate::table::{Collected, Table};
use crate::worker::Listener;

/// Tables, and the totals.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) tables: Vec<Table>,
    pub(crate) statistics: Statistics,
    pub(crate) complete: bool,
}

/// The answer for each program.
pub(crate) struct Answered<T> {
    pub(crate) found: Programs<T>,
    pub(crate) code: BTreeMap<ProgramId, Arc<Code>>,
    pub(crate) statistics: Statistics,
}

/// The unit of an axis or of costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    /// `None` for the best one that the trace has.
    pub(crate) unit: Option<Unit>,
    pub(crate) frequency: Option<f64>,
}

impl<T> Answered<T> {
    fn new() -> Self {
        Self { found: Programs::default(), code: BTreeMap::new(), statistics: Statistics::default() }
    }

    fn outcome<U>(&mut self, outcome: &Outcome<U>) {
        self.statistics.add(&outcome.statistics);
        self.found.complete &= outcome.complete;
    }

    fn code(&self, id: &ProgramId) -> Result<&Arc<Code>, Problem> {
        self.code.get(id).ok_or_else(|| RunError::NoProgram.into())
    }

    /// The sources with their answers and their programs.
    fn sections<U>(
        &self,
        sources: impl Fn(&T) -> &BTreeMap<SourceId, U>,
        found: impl Fn(&U) -> U,
    ) -> Result<Vec<(Section, U)>, Problem> {
        let mut sections = Vec::new();
        for (id, program) in &self.found.programs {
            let code = self.code(id)?;
            sections.extend(sources(&program.found).iter().map(|(source, of)| {
                let SourceId { id, protocol, number } = *source;
                (Section { id, protocol, number, code: Arc::clone(code) }, found(of))
            }));
        }
        sections.sort_by_key(|(section, _)| section.id);
        Ok(sections)
    }

    /// The names of the programs.
    fn names(&self) -> Vec<(Arc<Code>, String)> {
        let programs = self.found.programs.iter();
        let named =
            programs.filter_map(|(id, program)| Some((Arc::clone(self.code.get(id)?), program.name())));
        named.filter(|(_, name)| !name.is_empty()).collect()
    }

    fn tables(&self, tables: &[table::Table]) -> Result<Tables, Problem> {
        let tables = tables.iter().map(Table::of).collect::<Result<_, _>>()?;
        Ok(Tables { tables, statistics: self.statistics, complete: self.found.complete })
    }
}

impl<T: Merge> Answered<T> {
    fn add(&mut self, program: FollowedProgram, found: T) {
        self.found.add(program.id.clone(), program.images, found);
        self.code.insert(program.id, program.code);
    }
}

/// The contents of the capture.
pub(crate) fn info(session: &Session, observer: &dyn Observer) -> Result<Tables, Problem> {
    let info = session.info(observer)?;
    let tables = info.tables().iter().map(Table::of).collect::<Result<_, _>>()?;
    Ok(Tables { tables, statistics: Statistics::default(), complete: info.complete })
}

/// An additive answer, over all sources.
pub(crate) fn additive<T: Additive>(
    session: &mut Session,
    how: &Follow,
    name: &str,
    observer: &dyn Observer,
) -> Result<Answered<T>, Problem> {
    let (how, mut answered) = (T::needs(how), Answered::<T>::new());
    session.each_source(observer, |session, source| {
        let outcome = T::find(session, source, &how, name, observer)?;
        answered.outcome(&outcome);
        outcome.found.into_iter().for_each(|(program, found)| answered.add(program, found));
        Ok::<(), Problem>(())
    })?;
    Ok(answered)
}

/// The tables of coverage.
pub(crate) fn covered(answered: &Answered<ProgramCoverage>) -> Result<Tables, Problem> {
    let inputs = answered.found.programs.iter().map(|(id, OfProgram { images, found })| {
        Ok(ProgramInput { id, images, coverage: found, code: answered.code(id)? })
    });
    let inputs = inputs.collect::<Result<Vec<_>, Problem>>()?;
    answered.tables(&Report::of(&inputs, &Every).tables())
}

/// The tables of execution counts.
pub(crate) fn counted(answered: &Answered<CountedBinary>) -> Result<Tables, Problem> {
    let binaries = answered.found.programs.iter().map(|(id, program)| ReportedBinary {
        id: id.to_string(),
        name: program.name(),
        found: &program.found,
    });
    let report = CountsReport { binaries: binaries.collect(), complete: answered.found.complete };
    answered.tables(&report.tables())
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
        complete: answered.found.complete,
    };
    answered.tables(&report.tables())
}

/// How often exceptions were taken, and how long they took.
pub(crate) fn interrupts(
    session: &mut Session,
    how: &Follow,
    (measure, functions): (Measure, bool),
    observer: &dyn Observer,
) -> Result<Tables, Problem> {
    let scale = scale(session, how, measure, observer)?;
    let measured = Measured { unit: scale.unit, counts_cycles: scale.counts_cycles, functions };
    let mut answered = Answered::<ProgramActivities>::new();
    session.each_source(observer, |session, source| {
        let measuring = Measuring::new(scale, Window::default(), functions);
        let outcome = session.run_observed(source, how, measuring, observer)?;
        answered.outcome(&outcome);
        let (activities, _) = outcome.found;
        let mut sources = BTreeMap::from([(session.source_id(source), activities)]);
        for itm in session.itms_beside(source) {
            let found = seen_by_itm(session.itm_records(&itm));
            if !found.exceptions.is_empty() {
                sources.insert(session.itm_id(&itm), found);
            }
        }
        let found = ProgramActivities { measured: Some(measured), sources };
        answered.add(session.followed(source, &outcome.code)?, found);
        Ok::<(), Problem>(())
    })?;
    let sources = answered.sections(|program| &program.sources, Activities::clone)?;
    let report =
        InterruptReport { scale, sources, programs: answered.names(), complete: answered.found.complete };
    answered.tables(&[report.table()])
}

/// Spans and marks in time.
pub(crate) fn timeline(
    session: &mut Session,
    how: &Follow,
    measure: Measure,
    observer: &dyn Observer,
) -> Result<Tables, Problem> {
    let scale = scale(session, how, measure, observer)?;
    let mut collected = Collected::default();
    let (mut statistics, mut complete) = (Statistics::default(), true);
    {
        let mut export = TimelineTable::new(&mut collected);
        let mut timelines = Timelines::new(&mut export, scale, Window::default());
        session.each_source(observer, |session, source| {
            let outcome = session.run_observed(source, how, &mut timelines, observer)?;
            statistics.add(&outcome.statistics);
            complete &= outcome.complete;
            Ok::<(), Problem>(())
        })?;
        export.finish(complete)?;
    }
    Ok(Tables { tables: collected.table().into_iter().collect(), statistics, complete })
}

/// The crash of the program, and its cause.
pub(crate) fn crash(
    session: &mut Session,
    how: &Follow,
    dump: Option<&PathBuf>,
    observer: &Listener,
) -> Result<Tables, Problem> {
    let snapshot = session.snapshot(dump.map(PathBuf::as_path))?;
    let mut recording = CrashRecording::default();
    let (mut statistics, mut complete, mut doubts) = (Statistics::default(), true, Vec::new());
    session.each_source(observer, |session, source| {
        let outcome = session.run_observed(source, how, &mut recording, observer)?;
        statistics.add(&outcome.statistics);
        complete &= outcome.complete;
        doubts.push(session.doubts_of_end(source, how, &outcome, observer)?);
        Ok::<(), Problem>(())
    })?;
    let report = CrashReport::of(recording, &snapshot, doubts, (complete, observer.whole()));
    made(&report.tables(), statistics, complete)
}

fn made(tables: &[table::Table], statistics: Statistics, complete: bool) -> Result<Tables, Problem> {
    let tables = tables.iter().map(Table::of).collect::<Result<_, _>>()?;
    Ok(Tables { tables, statistics, complete })
}

/// The axis: the requested one, or the best that all sources have.
fn scale(
    session: &mut Session,
    how: &Follow,
    measure: Measure,
    observer: &dyn Observer,
) -> Result<Scale, Problem> {
    let probed = [session.probe(how.names.as_deref(), observer)?];
    let unit = measure.unit.unwrap_or_else(|| Probe::best(&probed));
    let lacks = |probe: &Probe| probe.instructions > 0 && !probe.has(unit);
    if probed.iter().flatten().any(lacks) {
        return Err(no_measure(unit));
    }
    let [probes] = probed;
    Ok(Scale::of(&probes, unit, measure.frequency))
}

fn no_measure(unit: Unit) -> Problem {
    let NotMeasured { missing, switch } = not_measured(unit);
    let remedy = format!("ask for another measure, or switch on {switch} when capturing");
    Problem::new("not_measured", format!("the trace has no {missing}; {remedy}"))
}
