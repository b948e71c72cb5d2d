//! Captures and saved parts → what ran, and the programs that it ran in.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use tracewalk::flow::{Element, Event, EventKind};
use tracewalk::program::{Program, Scope};
use tracewalk_report::Section;
use tracewalk_report::analysis::Context;
use tracewalk_report::analysis::coverage::{
    Conditions, ProgramCoverage, ProgramInput, RecordedPart, Recorder,
};
use tracewalk_report::drive::Spread;
use tracewalk_report::export::{Export, FlowRecord, Join};

use super::super::follow::{self, Following};
use super::super::gather::{Followed, Gathered};
use crate::args::{self, CaptureArgs};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::work::{Job, ScopedCode, Work};

/// Decodes the captures and reads the saved parts that the arguments name.
pub(super) fn gather<'a>(
    args: &'a args::Coverage,
    messages: &Messages,
) -> Result<Gathered<'a, ProgramCoverage>, Failure> {
    let mut gathered = Gathered::open(&args.follow, &args.more)?;
    for capture in gathered.captures() {
        decode(&mut gathered, &capture, args, messages)?;
    }
    gathered.finish(messages)
}

/// What a report is made from.
pub(super) fn inputs<'a>(
    gathered: &'a Gathered<'_, ProgramCoverage>,
) -> Result<Vec<ProgramInput<'a>>, Failure> {
    let input = |(id, coverage)| {
        let code = gathered.code(id).ok_or_else(no_program)?;
        Ok(ProgramInput { id, coverage, code })
    };
    gathered.found.programs.iter().map(input).collect()
}

/// Decodes a capture.
fn decode(
    gathered: &mut Gathered<'_, ProgramCoverage>,
    capture: &CaptureArgs,
    args: &args::Coverage,
    messages: &Messages,
) -> Result<(), Failure> {
    let mut work = Work::open_live(capture, messages)?;
    let source_dirs = &args.follow.source_dirs;
    // More of them may be found when a capture that comes has come.
    for index in 0.. {
        let Some(job) = work.jobs.get(index).cloned() else { break };
        let code = work.code(&job, Some(source_dirs), messages)?;
        if code.program.is_empty() {
            return Err(no_program());
        }
        let images = work.images(&job)?.into_iter();
        let images = images.filter(|visible| visible.scope == Scope::EVERYWHERE).map(|visible| visible.image);
        let images = images.collect();
        let scoped = work.scoped_code(&job, source_dirs, messages)?;
        let mut listener = Listener::new(&job, scoped.iter().map(|scoped| scoped.scope));
        let trust_image = args.follow.trust_image;
        // Whose code ran in a part is known only where there is one program.
        let statistics = if scoped.is_empty() && !work.is_live() {
            let following = Following { work: &work, job: &job, trust_image, messages };
            let spread = Spread::over(args.work.threads.into()).for_counts();
            follow::source_in_parts(following, Rc::clone(&code), spread, &mut listener)?
        } else {
            follow::source(&work, &job, Rc::clone(&code), trust_image, &mut listener, messages)?
        };
        work.end_job(messages)?;
        gathered.statistics.add(&statistics);
        let name = capture.capture.display().to_string();
        let source = job.id.map_or_else(|| "-".to_owned(), |id| id.to_string());
        let everywhere = ScopedCode { scope: Scope::EVERYWHERE, code, images };
        let everywhere = Some(everywhere).filter(|all| !all.code.program.regions().is_empty());
        for ScopedCode { scope, code, images } in everywhere.into_iter().chain(scoped) {
            let Some(recorder) = listener.take(scope) else { continue };
            let part = recorder.finish(&name, &source, job.config.protocol(), statistics.bytes);
            gathered.add(Followed::of_scope(code, &images), ProgramCoverage::of(part));
        }
    }
    Ok(())
}

fn no_program() -> Failure {
    Failure::input(
        "coverage is of a program, and there is none",
        "give the ELF file that was running with --image",
    )
}

/// Records what `follow` sees, apart for what is visible in all contexts and in each that images are for.
struct Listener {
    /// Empty where the image is not the program that was traced: what ran is then unknown.
    recorders: Vec<(Scope, Recorder)>,
    program: Arc<Program>,
    context: Context,
}

impl Listener {
    fn new(job: &Job, scopes: impl Iterator<Item = Scope>) -> Self {
        let recorder = |scope| (scope, Recorder::new(Conditions::told_by(&job.config)));
        Self {
            recorders: std::iter::once(Scope::EVERYWHERE).chain(scopes).map(recorder).collect(),
            program: Arc::default(),
            context: Context::default(),
        }
    }

    fn take(&mut self, scope: Scope) -> Option<Recorder> {
        let index = self.recorders.iter().position(|(of, _)| *of == scope)?;
        Some(self.recorders.swap_remove(index).1)
    }
}

impl Export<FlowRecord> for Listener {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        if section.code.program.is_empty() {
            self.recorders.clear();
        }
        self.program = Arc::clone(&section.code.program);
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        let Element::Block(block) = &record.element else {
            if let Element::Event(Event { kind: EventKind::Context { context_id, vmid, .. }, .. }) =
                record.element
            {
                self.context = (context_id, vmid);
            }
            // What a trace cannot tell may have been any program's.
            self.recorders.iter_mut().for_each(|(_, recorder)| recorder.element(&record.element));
            return Ok(());
        };
        if let [(_, only)] = self.recorders.as_mut_slice() {
            only.element(&record.element);
            return Ok(());
        }
        let scope = self.program.scope_at(self.context.0, self.context.1, block.start);
        for (of, recorder) in &mut self.recorders {
            if *of == scope {
                recorder.element(&record.element);
            } else {
                recorder.another_program(block);
            }
        }
        Ok(())
    }
}

impl Join for Listener {
    type Part = RecordedPart;

    fn join(&mut self, part: RecordedPart) -> io::Result<()> {
        if let [(_, only)] = self.recorders.as_mut_slice() {
            only.join(part);
        }
        Ok(())
    }
}
