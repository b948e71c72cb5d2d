//! `diff`: the differences between two captures of one program.
use std::sync::Arc;

use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

use tracewalk::flow::Element;
use tracewalk::plain::Plain;
use tracewalk_analysis::analysis::{Analysis, End, FlowSink, Repeated};
use tracewalk_analysis::coverage::{Difference, Every, ProgramCoverage, ProgramInput, Report, Tracefile};
use tracewalk_analysis::diff::{Aftermath, Digest, Parting, Stretch, Walk};
use tracewalk_analysis::profile::{Profile, Profiler};
use tracewalk_analysis::programs::ProgramId;
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, Doubtful, Section, Statistics, Trusted, Window};
use tracewalk_report::export::{DiffReport, FunctionDiff, SourceDiff};
use tracewalk_session::{Covered, FollowedProgram, Session, Source};

use super::{follow, print_statistics};
use crate::args::{CaptureArgs, Diff};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{Destination, look_for, write_to};
use crate::task::{Reads, Task};

impl Task for Diff {
    fn reads(&self) -> Reads<'_> {
        Reads { more: std::slice::from_ref(&self.other), ..Reads::followed(&self.follow) }
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        vec![Destination::output(self.output.as_deref())]
    }

    fn is_for_people(&self) -> bool {
        self.format.name == "text"
    }

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        run(self, messages)
    }
}

/// Compares two captures.
fn run(args: &Diff, messages: &Messages) -> Result<(), Failure> {
    let start = Instant::now();
    let other = CaptureArgs { capture: args.other.clone(), ..args.follow.capture.clone() };
    let mut works =
        [open::whole_trace(&args.follow.capture, messages)?, open::whole_trace(&other, messages)?];
    let mut report = DiffReport {
        names: [&args.follow.capture.capture, &args.other].map(|path| Plain(path.display()).to_string()),
        sources: Vec::new(),
        complete: true,
    };
    let mut total = Statistics::default();
    for sources in pairs(&works)? {
        report.sources.push(compare(&mut works, &sources, args, &mut total, messages)?);
    }
    report.complete = messages.complete();
    let output = args.output.as_deref();
    write_to(output, |out| (args.format.make)(out, &report, look_for(output), args.table))?;
    if args.work.stats {
        print_statistics(&total, start.elapsed(), args.work.threads, messages);
    }
    if report.is_same() { Ok(()) } else { Err(Failure::Different) }
}

/// The sources that belong together: those with the same trace ID, or the only ones.
fn pairs(works: &[Session; 2]) -> Result<Vec<[Source; 2]>, Failure> {
    let [a, b] = works;
    if let ([only], [other]) = (a.sources(), b.sources()) {
        return Ok(vec![[only.clone(), other.clone()]]);
    }
    let partner = |source: &Source| b.sources().iter().find(|other| other.id == source.id).cloned();
    let pairs = a.sources().iter().map(|source| partner(source).map(|other| [source.clone(), other]));
    match pairs.collect::<Option<Vec<_>>>().filter(|pairs| pairs.len() == b.sources().len()) {
        Some(pairs) => Ok(pairs),
        None => Err(Failure::input(
            "different_sources",
            "the captures have different sources",
            "choose with --id the source to compare in both",
        )),
    }
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

fn compare(
    works: &mut [Session; 2],
    sources: &[Source; 2],
    args: &Diff,
    total: &mut Statistics,
    messages: &Messages,
) -> Result<SourceDiff, Failure> {
    let [work_a, work_b] = works;
    let [job_a, job_b] = sources;
    let done = [done(work_a, job_a, args, messages)?, done(work_b, job_b, args, messages)?];
    refuse_different_programs(&done)?;
    for done in &done {
        total.add(&done.statistics);
    }
    let doubtful = args.follow.trust().doubtful;
    let sides = [
        Side { session: work_a, source: job_a, done: &done[0], doubtful, messages },
        Side { session: work_b, source: job_b, done: &done[1], doubtful, messages },
    ];
    let [a, b] = &done;
    Ok(SourceDiff {
        ids: [job_a.id, job_b.id],
        code: [Arc::clone(&a.code), Arc::clone(&b.code)],
        instructions: [a.statistics.instructions, b.statistics.instructions],
        parting: parting(&sides, args)?,
        functions: FunctionDiff::between([(&a.profile, &a.code), (&b.profile, &b.code)]),
        coverage: coverage(a, b),
    })
}

fn done(session: &mut Session, source: &Source, args: &Diff, messages: &Messages) -> Result<Done, Failure> {
    let how = follow::how(&args.follow, args.work.threads);
    let covered = Covered::of(session, source, &how, "", messages)?;
    let listener = Listener { ignore_interrupts: args.ignore_interrupts, covered, seen: None };
    let outcome = follow::run(session, source, &how, listener, messages)?;
    let (covered, Some(Seen { mut walk, mut digest, profiler })) = outcome.found else {
        return Err(Failure::input(
            "no_flow",
            "the source has no program flow",
            "give the program with --image",
        ));
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

fn refuse_different_programs(done: &[Done; 2]) -> Result<(), Failure> {
    let [a, b] = done.each_ref().map(|done| done.program.as_ref());
    match a.zip(b).filter(|(a, b)| a != b) {
        None => Ok(()),
        Some((a, b)) => Err(Failure::input(
            "other_program",
            format!("the captures are of different programs: found {b}, expected {a}"),
            "only runs of the same program can be compared",
        )),
    }
}

/// One of the two captures, with its results.
struct Side<'a> {
    session: &'a Session,
    source: &'a Source,
    done: &'a Done,
    doubtful: Doubtful,
    messages: &'a Messages,
}

impl Side<'_> {
    /// Follows the source again, until `look` returns `false`.
    fn again(&self, mut look: impl FnMut(&Element) -> bool) -> Result<(), Failure> {
        let mut enough = false;
        let mut trusted = Trusted::default();
        let mut look = |record: FlowRecord| {
            enough = enough || !look(&record.element);
            // An error ends the work.
            if enough { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
        };
        let watch = self.session.watch(self.source, self.messages);
        let input = self.session.input(self.source, &watch);
        let result = input.flow(&self.source.config, &self.done.code.program, |record| match self.doubtful {
            Doubtful::Keep => look(record),
            Doubtful::Drop => trusted.record(record, &mut look),
        });
        let result = result.and_then(|_| trusted.finish(&mut look));
        if enough { Ok(()) } else { Ok(result?) }
    }

    fn stretch(&self, first: u64, args: &Diff) -> Result<Stretch, Failure> {
        let mut stretch = Stretch::new(first);
        let mut walk = Walk::new(Arc::clone(&self.done.code), args.ignore_interrupts);
        self.again(|element| {
            walk.element(element, |step| stretch.add(step));
            !stretch.is_complete()
        })?;
        walk.finish(|step| stretch.add(step));
        Ok(stretch)
    }

    fn aftermath(&self, parting: Parting, args: &Diff) -> Result<Aftermath, Failure> {
        let mut aftermath = Aftermath::new(Arc::clone(&self.done.code), args.ignore_interrupts, parting);
        self.again(|element| aftermath.element(element))?;
        aftermath.finish();
        Ok(aftermath)
    }
}

fn parting(sides: &[Side<'_>; 2], args: &Diff) -> Result<Option<[Aftermath; 2]>, Failure> {
    let [a, b] = sides;
    let Some(first) = a.done.digest.differs_in(&b.done.digest) else { return Ok(None) };
    let Some(parting) = a.stretch(first, args)?.parting(&b.stretch(first, args)?) else { return Ok(None) };
    Ok(Some([a.aftermath(parting, args)?, b.aftermath(parting, args)?]))
}

/// The coverage that only one of the runs has.
fn coverage(a: &Done, b: &Done) -> Option<(Difference, BTreeMap<String, Vec<String>>)> {
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
