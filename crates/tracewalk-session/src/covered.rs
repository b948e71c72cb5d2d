//! What of a source's programs ran: of what is visible in all contexts, and apart from it of what is in each that images
//! are for.

use std::io;
use std::sync::Arc;

use tracewalk::flow::{Element, Event, EventKind};
use tracewalk::program::{Program, Scope};
use tracewalk_analysis::coverage::{Conditions, ProgramCoverage, RecordedPart, Recorder};
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::{Join, Sink};
use tracewalk_analysis::{Code, Context, Doubtful, InDoubt, Section};
use tracewalk_input::image::ImageError;

use crate::error::RunError;
use crate::model::Source;
use crate::observer::Observer;
use crate::outcome::{Follow, Losses, Outcome, Trust};
use crate::program::FollowedProgram;
use crate::session::{ScopedCode, Session};

/// Records what of a source's programs ran: of what is visible in all contexts, and of what is visible in each that images are
/// for.
pub struct Covered {
    /// Empty where the image is not the program that was traced: what ran is then unknown.
    recorders: Vec<(Scope, Recorder)>,
    programs: Vec<(Scope, FollowedProgram)>,
    program: Arc<Program>,
    context: Context,
}

impl Session {
    /// What ran of a source's programs. `name` is what the capture is called in the answer.
    ///
    /// # Errors
    ///
    /// If there is no program, an image cannot be used, or what else was in the capture cannot be opened.
    pub fn coverage(
        &mut self,
        source: &Source,
        how: &Follow,
        name: &str,
        observer: &dyn Observer,
    ) -> Result<Outcome<Vec<(FollowedProgram, ProgramCoverage)>>, RunError> {
        let code = self.code(source, Some(&how.source_dirs), observer)?;
        if code.program.is_empty() {
            return Err(RunError::NoProgram);
        }
        let mut covered = Covered::of(self, source, &code, how, observer)?;
        let outcome = if covered.is_of_one_program() && !self.is_live() {
            let spread = self.spread(how.threads, &code).for_counts();
            self.follow_in_parts(source, &code, (how.trust, spread), &mut covered, observer)?
        } else {
            // What is in doubt is recorded as such.
            let trust = Trust { doubtful: Doubtful::Keep, ..how.trust };
            self.follow(source, &code, trust, &mut covered, observer)?
        };
        let found = covered.finish(name, source, outcome.statistics.bytes);
        let mut in_doubt = InDoubt::default();
        found.iter().for_each(|(_, found)| in_doubt.add(found.losses().in_doubt));
        let losses = Losses { in_doubt: Some(in_doubt), ..outcome.losses };
        self.say_doubts(source, &losses, observer);
        let Outcome { statistics, code, itms, notices, ended_at, .. } = outcome;
        Ok(Outcome { found, statistics, losses, code, itms, notices, ended_at })
    }
}

impl Covered {
    /// Nothing has run yet of a source's programs, of which `code` is the whole.
    ///
    /// # Errors
    ///
    /// If an image cannot be used.
    pub fn of(
        session: &mut Session,
        source: &Source,
        code: &Arc<Code>,
        how: &Follow,
        observer: &dyn Observer,
    ) -> Result<Self, ImageError> {
        let images = session.images(source)?.into_iter();
        let images = images.filter(|visible| visible.scope == Scope::EVERYWHERE).map(|visible| visible.image);
        let everywhere =
            ScopedCode { scope: Scope::EVERYWHERE, code: Arc::clone(code), images: images.collect() };
        let everywhere = Some(everywhere).filter(|all| !all.code.program.regions().is_empty());
        let scoped = session.scoped_code(source, &how.source_dirs, observer)?;
        let scopes = std::iter::once(Scope::EVERYWHERE).chain(scoped.iter().map(|scoped| scoped.scope));
        let doubtful = how.trust.doubtful;
        let recorder = |scope| (scope, Recorder::new(Conditions::told_by(&source.config), doubtful));
        let recorders = scopes.map(recorder).collect();
        let followed =
            |program: ScopedCode| (program.scope, FollowedProgram::of_scope(program.code, &program.images));
        let programs = everywhere.into_iter().chain(scoped).map(followed).collect();
        Ok(Self { recorders, programs, program: Arc::default(), context: Context::default() })
    }

    /// Whether there is one program only, so that it is known whose code ran in any part of the trace.
    fn is_of_one_program(&self) -> bool {
        self.recorders.len() == 1
    }

    /// What ran of each program, as a source of the capture with this name and of so many bytes says.
    #[must_use]
    pub fn finish(
        self,
        capture: &str,
        source: &Source,
        bytes: u64,
    ) -> Vec<(FollowedProgram, ProgramCoverage)> {
        let id = source.id.map_or_else(|| "-".to_owned(), |id| id.to_string());
        let Self { mut recorders, programs, .. } = self;
        let found = programs.into_iter().filter_map(|(scope, program)| {
            let index = recorders.iter().position(|(of, _)| *of == scope)?;
            let (_, recorder) = recorders.swap_remove(index);
            let part = recorder.finish(capture, &id, source.config.protocol(), bytes);
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
