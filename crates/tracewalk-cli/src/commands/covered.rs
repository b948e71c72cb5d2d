//! What of a source's programs ran: of what is visible in all contexts, and apart from it of what is in each that images
//! are for.

use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use tracewalk::flow::{Element, Event, EventKind};
use tracewalk::program::{Program, Scope};
use tracewalk_analysis::coverage::{Conditions, ProgramCoverage, RecordedPart, Recorder};
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::{Join, Sink};
use tracewalk_analysis::{Code, Context, Doubtful, Section};

use super::gather::Followed;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::work::{Job, ScopedCode, Work};

/// Records what `follow` sees.
pub(super) struct Covered {
    /// Empty where the image is not the program that was traced: what ran is then unknown.
    recorders: Vec<(Scope, Recorder)>,
    programs: Vec<(Scope, Followed)>,
    program: Arc<Program>,
    context: Context,
}

impl Covered {
    /// Nothing has run yet of a job's programs, of which `code` is the whole.
    pub(super) fn of(
        work: &mut Work,
        job: &Job,
        code: &Rc<Code>,
        source_dirs: &[PathBuf],
        doubtful: Doubtful,
        messages: &Messages,
    ) -> Result<Self, Failure> {
        let images = work.images(job)?.into_iter();
        let images = images.filter(|visible| visible.scope == Scope::EVERYWHERE).map(|visible| visible.image);
        let everywhere =
            ScopedCode { scope: Scope::EVERYWHERE, code: Rc::clone(code), images: images.collect() };
        let everywhere = Some(everywhere).filter(|all| !all.code.program.regions().is_empty());
        let scoped = work.scoped_code(job, source_dirs, messages)?;
        let scopes = std::iter::once(Scope::EVERYWHERE).chain(scoped.iter().map(|scoped| scoped.scope));
        let recorder = |scope| (scope, Recorder::new(Conditions::told_by(&job.config), doubtful));
        let recorders = scopes.map(recorder).collect();
        let followed =
            |program: ScopedCode| (program.scope, Followed::of_scope(program.code, &program.images));
        let programs = everywhere.into_iter().chain(scoped).map(followed).collect();
        Ok(Self { recorders, programs, program: Arc::default(), context: Context::default() })
    }

    /// Whether there is one program only, so that it is known whose code ran in any part of the trace.
    pub(super) fn is_of_one_program(&self) -> bool {
        self.recorders.len() == 1
    }

    /// What ran of each program, as a source of the capture with this name and of so many bytes says.
    pub(super) fn finish(self, capture: &str, job: &Job, bytes: u64) -> Vec<(Followed, ProgramCoverage)> {
        let source = job.id.map_or_else(|| "-".to_owned(), |id| id.to_string());
        let Self { mut recorders, programs, .. } = self;
        let found = programs.into_iter().filter_map(|(scope, program)| {
            let index = recorders.iter().position(|(of, _)| *of == scope)?;
            let (_, recorder) = recorders.swap_remove(index);
            let part = recorder.finish(capture, &source, job.config.protocol(), bytes);
            Some((program, ProgramCoverage::of(part)))
        });
        found.collect()
    }
}

impl Sink<FlowRecord> for Covered {
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

impl Join for Covered {
    type Part = RecordedPart;

    fn part(&self) -> RecordedPart {
        // Where there is none, nothing becomes of the parts.
        self.recorders.first().map(|(_, recorder)| recorder.part()).unwrap_or_default()
    }

    fn join(&mut self, part: RecordedPart) -> io::Result<()> {
        if let [(_, only)] = self.recorders.as_mut_slice() {
            only.join(part);
        }
        Ok(())
    }
}
