//! What differs between two captures of one program: where execution diverges, costs of functions, coverage.
//!
//! ```text
//! each source once:   steps ──▶ digest of each stretch, profile, coverage
//! if digests differ:  the source again, to the first stretch that differs ──▶ where the paths part, and what each did next
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;

use tracewalk::flow::Element;
use tracewalk::ids::TraceId;
use tracewalk_analysis::analysis::{Analysis, End, FlowSink, Repeated};
use tracewalk_analysis::coverage::{Difference, Every, ProgramCoverage, ProgramInput, Report, Tracefile};
use tracewalk_analysis::diff::{Aftermath, Digest, Parting, Stretch, Walk};
use tracewalk_analysis::profile::{Profile, Profiler};
use tracewalk_analysis::programs::ProgramId;
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, Doubtful, Section, Statistics, Trusted, Window};

use crate::covered::Covered;
use crate::error::RunError;
use crate::model::Source;
use crate::observer::Observer;
use crate::outcome::Follow;
use crate::program::FollowedProgram;
use crate::session::Session;

/// How two captures are compared.
///
/// ```
/// use tracewalk_session::{Comparison, Follow, Notices, Request, Session};
///
/// let open = || Session::open(Request::new("../../testdata/examples/a7-etmv3/capture.toml"));
/// let (mut sessions, notices) = ([open()?.0, open()?.0], Notices::default());
/// let compared = Comparison::default().run(&mut sessions, &Follow::default(), &notices)?;
/// assert!(compared[0].parting.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Comparison {
    /// Whether paths are compared without the handlers of interrupts.
    pub ignore_interrupts: bool,
}

/// The differences between two sources.
#[derive(Debug)]
pub struct Compared {
    /// The trace IDs.
    pub ids: [Option<TraceId>; 2],
    /// The programs that were followed.
    pub code: [Arc<Code>; 2],
    /// The amounts of trace and execution.
    pub statistics: [Statistics; 2],
    /// Where the paths part, and what each source did next; `None` if they do not part.
    pub parting: Option<[Aftermath; 2]>,
    /// The costs of functions.
    pub profiles: [Profile; 2],
    /// The coverage that only the first source has, and the functions that only the second one has, by file; `None` if there is
    /// no program.
    pub coverage: Option<(Difference, BTreeMap<String, Vec<String>>)>,
}

/// Why two captures cannot be compared.
#[derive(Clone, Debug, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum CompareError {
    /// The captures have different sources.
    DifferentSources,
    /// A source has no program flow.
    NoFlow,
    /// The captures are of different programs.
    OtherProgram { expected: ProgramId, found: ProgramId },
}

impl CompareError {
    /// A stable short name, like `different_sources`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DifferentSources => f.write_str("the captures have different sources"),
            Self::NoFlow => f.write_str("the source has no program flow"),
            Self::OtherProgram { expected, found } => {
                write!(f, "the captures are of different programs: found {found}, expected {expected}")
            }
        }
    }
}

impl Comparison {
    /// Compares the sources that belong together: those with the same trace ID, or the only ones.
    ///
    /// # Errors
    ///
    /// If the captures have different sources or programs, or a source cannot be followed.
    pub fn run(
        self,
        sessions: &mut [Session; 2],
        how: &Follow,
        observer: &dyn Observer,
    ) -> Result<Vec<Compared>, RunError> {
        pairs(sessions)?.iter().map(|sources| self.compare(sessions, sources, how, observer)).collect()
    }

    fn compare(
        self,
        sessions: &mut [Session; 2],
        sources: &[Source; 2],
        how: &Follow,
        observer: &dyn Observer,
    ) -> Result<Compared, RunError> {
        let [a, b] = sessions;
        let done = [self.done(a, &sources[0], how, observer)?, self.done(b, &sources[1], how, observer)?];
        refuse_different_programs(&done)?;
        let side = |session, index: usize| Side {
            session,
            source: &sources[index],
            done: &done[index],
            doubtful: how.trust.doubtful,
            ignore_interrupts: self.ignore_interrupts,
            observer,
        };
        let parting = parting(&[side(&sessions[0], 0), side(&sessions[1], 1)])?;
        let coverage = coverage(&done);
        let [a, b] = done;
        Ok(Compared {
            ids: [sources[0].id, sources[1].id],
            code: [a.code, b.code],
            statistics: [a.statistics, b.statistics],
            parting,
            profiles: [a.profile, b.profile],
            coverage,
        })
    }

    /// Follows a source once.
    fn done(
        self,
        session: &mut Session,
        source: &Source,
        how: &Follow,
        observer: &dyn Observer,
    ) -> Result<Done, RunError> {
        let covered = Covered::of(session, source, how, "", observer)?;
        let listener = Listener { ignore_interrupts: self.ignore_interrupts, covered, seen: None };
        let outcome = session.run_observed(source, how, listener, observer)?;
        let (covered, Some(Seen { mut walk, mut digest, profiler })) = outcome.found else {
            return Err(CompareError::NoFlow.into());
        };
        walk.finish(|step| digest.add(step));
        digest.finish();
        let (code, statistics) = (outcome.code, outcome.statistics);
        let program = match code.program.is_empty() {
            true => None,
            false => Some(session.followed(source, &code)?.id),
        };
        Ok(Done { code, statistics, digest, profile: profiler.finish(), program, covered })
    }
}

/// The sources that belong together.
fn pairs(sessions: &[Session; 2]) -> Result<Vec<[Source; 2]>, CompareError> {
    let [a, b] = sessions;
    if let ([only], [other]) = (a.sources(), b.sources()) {
        return Ok(vec![[only.clone(), other.clone()]]);
    }
    let partner = |source: &Source| b.sources().iter().find(|other| other.id == source.id).cloned();
    let pairs = a.sources().iter().map(|source| partner(source).map(|other| [source.clone(), other]));
    let pairs = pairs.collect::<Option<Vec<_>>>().filter(|pairs| pairs.len() == b.sources().len());
    pairs.ok_or(CompareError::DifferentSources)
}

/// The execution of one capture's source.
struct Done {
    code: Arc<Code>,
    statistics: Statistics,
    digest: Digest,
    profile: Profile,
    /// The program; `None` if none was followed.
    program: Option<ProgramId>,
    /// The program's coverage.
    covered: Vec<(FollowedProgram, ProgramCoverage)>,
}

fn refuse_different_programs(done: &[Done; 2]) -> Result<(), CompareError> {
    let [a, b] = done.each_ref().map(|done| done.program.as_ref());
    match a.zip(b).filter(|(a, b)| a != b) {
        None => Ok(()),
        Some((a, b)) => Err(CompareError::OtherProgram { expected: a.clone(), found: b.clone() }),
    }
}

/// One of the two captures, with its results.
struct Side<'a> {
    session: &'a Session,
    source: &'a Source,
    done: &'a Done,
    doubtful: Doubtful,
    ignore_interrupts: bool,
    observer: &'a dyn Observer,
}

impl Side<'_> {
    /// Follows the source again, until `look` returns `false`.
    fn again(&self, mut look: impl FnMut(&Element) -> bool) -> Result<(), RunError> {
        let mut enough = false;
        let mut trusted = Trusted::default();
        let mut look = |record: FlowRecord| {
            enough = enough || !look(&record.element);
            // An error ends the work.
            if enough { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
        };
        let watch = self.session.watch(self.source, self.observer);
        let input = self.session.input(self.source, &watch);
        let result = input.flow(&self.source.config, &self.done.code.program, |record| match self.doubtful {
            Doubtful::Keep => look(record),
            Doubtful::Drop => trusted.record(record, &mut look),
        });
        let result = result.and_then(|_| trusted.finish(&mut look));
        if enough { Ok(()) } else { Ok(result?) }
    }

    fn stretch(&self, first: u64) -> Result<Stretch, RunError> {
        let mut stretch = Stretch::new(first);
        let mut walk = Walk::new(Arc::clone(&self.done.code), self.ignore_interrupts);
        self.again(|element| {
            walk.element(element, |step| stretch.add(step));
            !stretch.is_complete()
        })?;
        walk.finish(|step| stretch.add(step));
        Ok(stretch)
    }

    fn aftermath(&self, parting: Parting) -> Result<Aftermath, RunError> {
        let mut aftermath = Aftermath::new(Arc::clone(&self.done.code), self.ignore_interrupts, parting);
        self.again(|element| aftermath.element(element))?;
        aftermath.finish();
        Ok(aftermath)
    }
}

fn parting(sides: &[Side<'_>; 2]) -> Result<Option<[Aftermath; 2]>, RunError> {
    let [a, b] = sides;
    let Some(first) = a.done.digest.differs_in(&b.done.digest) else { return Ok(None) };
    let Some(parting) = a.stretch(first)?.parting(&b.stretch(first)?) else { return Ok(None) };
    Ok(Some([a.aftermath(parting)?, b.aftermath(parting)?]))
}

/// The coverage that only one of the runs has.
fn coverage([a, b]: &[Done; 2]) -> Option<(Difference, BTreeMap<String, Vec<String>>)> {
    let tracefile = |done: &Done| {
        done.program.as_ref()?;
        let inputs = done.covered.iter().map(|(program, coverage)| ProgramInput {
            id: &program.id,
            images: &program.images,
            coverage,
            code: &program.code,
        });
        let report = Report::of(&inputs.collect::<Vec<_>>(), &Every);
        // Both are the same program, so lines are matched by number, and texts are not needed.
        Some(Tracefile::of(&report, |_| None))
    };
    let (a, b) = (tracefile(a)?, tracefile(b)?);
    let backwards = Difference::between(&b, &a);
    let gained = backwards.files.into_iter().map(|(name, file)| (name, file.lost_functions));
    let gained = gained.filter(|(_, functions)| !functions.is_empty()).collect();
    Some((Difference::between(&a, &b), gained))
}

/// The recorders of a source, for a single pass.
struct Listener {
    ignore_interrupts: bool,
    covered: Covered,
    seen: Option<Seen>,
}

struct Seen {
    walk: Walk,
    digest: Digest,
    profiler: Profiler,
}

impl Sink<FlowRecord> for Listener {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.covered.section(section)?;
        let code = &section.code;
        self.seen = Some(Seen {
            walk: Walk::new(Arc::clone(code), self.ignore_interrupts),
            digest: Digest::default(),
            profiler: Profiler::new(Arc::clone(code), &Window::default()),
        });
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        if let Some(Seen { walk, digest, profiler, .. }) = &mut self.seen {
            walk.element(&record.element, |step| digest.add(step));
            profiler.element(&record.element, record.at);
        }
        self.covered.record(record)
    }
}

impl FlowSink for Listener {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        if let Some(Seen { walk, digest, profiler, .. }) = &mut self.seen {
            walk.passage(repeated, |step| digest.add(step));
            profiler.passage(repeated);
        }
        repeated.records().try_for_each(|record| self.covered.record(record))
    }

    fn needs_places(&self) -> bool {
        false
    }
}

impl Analysis for Listener {
    type Found = (Vec<(FollowedProgram, ProgramCoverage)>, Option<Seen>);

    fn answer(self, end: &End) -> Self::Found {
        (self.covered.answer(end), self.seen)
    }
}
