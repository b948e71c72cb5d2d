//! The coverage of a source's programs: of the code visible in all contexts, and of the code in each context that has
//! images of its own. In a system's recording each binary is a program.

mod binaries;

use std::io;
use std::sync::Arc;

use tracewalk::flow::{Element, Event, EventKind};
use tracewalk::program::{Program, Scope};
use tracewalk_analysis::analysis::{Analysis, End, FlowSink, Repeated};
use tracewalk_analysis::coverage::{Conditions, ProgramCoverage, Recorder};
use tracewalk_analysis::programs::ProgramId;
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, Context, Doubtful, InDoubt, Section};
use tracewalk_input::image::ImageError;

use self::binaries::Binaries;
use crate::error::RunError;
use crate::model::Source;
use crate::observer::Observer;
use crate::outcome::{Follow, Outcome};
use crate::program::FollowedProgram;
use crate::session::{ScopedCode, Session};

/// Records the coverage of a source's programs: of the code visible in all contexts, and of the code in each context that has
/// images of its own.
pub struct Covered {
    /// Empty if the image is not the program that was traced: what ran is then unknown.
    recorders: Vec<(Scope, Recorder)>,
    programs: Vec<(Scope, FollowedProgram)>,
    program: Arc<Program>,
    context: Context,
    /// The names of the capture and the source.
    capture: String,
    source: String,
    protocol: &'static str,
}

impl Session {
    /// The coverage of a source's programs. In a system's recording each binary is a program with the addresses of its
    /// file. `name` is the capture's name in the answer.
    ///
    /// # Errors
    ///
    /// If there is no program, an image cannot be used, or the rest of the capture cannot be opened.
    pub fn coverage(
        &mut self,
        source: &Source,
        how: &Follow,
        name: &str,
        observer: &dyn Observer,
    ) -> Result<Outcome<Vec<(FollowedProgram, ProgramCoverage)>>, RunError> {
        let outcome = self.covered(source, how, name, observer)?;
        // The end of a capture that still arrives is known later, at `end_source`.
        let cut = self.cut_frame_bytes(source);
        Ok(outcome.map(|mut found, _| {
            found.iter_mut().for_each(|(_, found)| found.cut_off(cut));
            found
        }))
    }

    fn covered(
        &mut self,
        source: &Source,
        how: &Follow,
        name: &str,
        observer: &dyn Observer,
    ) -> Result<Outcome<Vec<(FollowedProgram, ProgramCoverage)>>, RunError> {
        let covered = Covered::of(self, source, how, name, observer)?;
        if covered.programs.is_empty() {
            return Err(RunError::NoProgram);
        }
        if self.capture().recorded.is_none() {
            return self.run_observed(source, how, covered, observer);
        }
        // Systems map the same files into many processes, at different addresses.
        let scopes = covered.programs.iter().map(|(scope, _)| *scope).collect::<Vec<_>>();
        let binaries = Binaries::of(self, source, how, observer)?;
        let outcome = self.run_observed(source, how, covered, observer)?;
        Ok(outcome.map(|found, _| binaries.split(scopes.into_iter().zip(found))))
    }
}

impl Covered {
    /// Empty coverage of a source's programs. `name` is the capture's name in the answer.
    ///
    /// # Errors
    ///
    /// If an image cannot be used.
    pub fn of(
        session: &mut Session,
        source: &Source,
        how: &Follow,
        name: &str,
        observer: &dyn Observer,
    ) -> Result<Self, ImageError> {
        let code = session.code(source, how.names.as_deref(), observer)?;
        let images = session.images(source)?.into_iter();
        let images = images.filter(|visible| visible.scope == Scope::EVERYWHERE).map(|visible| visible.image);
        let everywhere = ScopedCode { scope: Scope::EVERYWHERE, code, images: images.collect() };
        let everywhere = Some(everywhere).filter(|all| !all.code.program.regions().is_empty());
        let scoped = session.scoped_code(source, how.names.as_deref().unwrap_or_default(), observer)?;
        let scopes = std::iter::once(Scope::EVERYWHERE).chain(scoped.iter().map(|scoped| scoped.scope));
        let doubtful = how.trust.doubtful;
        let recorder = |scope| (scope, Recorder::new(Conditions::recorded_by(&source.config), doubtful));
        let recorders = scopes.map(recorder).collect();
        let followed =
            |program: ScopedCode| (program.scope, FollowedProgram::of_scope(program.code, &program.images));
        let programs = everywhere.into_iter().chain(scoped).map(followed).collect();
        Ok(Self {
            recorders,
            programs,
            program: Arc::default(),
            context: Context::default(),
            capture: name.to_owned(),
            source: source.id.map_or_else(|| "-".to_owned(), |id| id.to_string()),
            protocol: source.config.protocol(),
        })
    }

    /// Empty coverage of all code as one program, whatever is followed: for bytes that are in no file.
    #[must_use]
    pub fn of_all(conditions: Conditions, doubtful: Doubtful) -> Self {
        let nothing = ProgramId::of(&Program::new(), []);
        let program = FollowedProgram::new(nothing, Code::unknown().into(), std::iter::empty());
        Self {
            recorders: vec![(Scope::EVERYWHERE, Recorder::new(conditions, doubtful))],
            programs: vec![(Scope::EVERYWHERE, program)],
            program: Arc::default(),
            context: Context::default(),
            capture: String::new(),
            source: String::new(),
            protocol: "",
        }
    }

    /// The programs; empty if there is no code.
    pub fn programs(&self) -> impl Iterator<Item = &FollowedProgram> {
        self.programs.iter().map(|(_, program)| program)
    }

    fn element(&mut self, element: &Element, is_doubtful: bool) {
        let Element::Block(block) = element else {
            if let Element::Event(Event { kind: EventKind::Context { context_id, vmid, .. }, .. }) = element {
                self.context = (*context_id, *vmid);
            }
            // Execution that a trace does not show may have been of any program.
            self.recorders.iter_mut().for_each(|(_, recorder)| recorder.element(element, is_doubtful));
            return;
        };
        if let [(_, only)] = self.recorders.as_mut_slice() {
            return only.element(element, is_doubtful);
        }
        let scope = self.program.scope_at(self.context.0, self.context.1, block.start);
        for (of, recorder) in &mut self.recorders {
            if *of == scope {
                recorder.element(element, is_doubtful);
            } else {
                recorder.another_program(block);
            }
        }
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
        self.element(&record.element, false);
        Ok(())
    }
}

impl FlowSink for Covered {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        match self.recorders.as_mut_slice() {
            [(_, only)] => only.passage(repeated),
            _ => repeated.elements().for_each(|element| self.element(&element, false)),
        }
        Ok(())
    }

    fn needs_places(&self) -> bool {
        false
    }

    fn doubtful(&mut self, record: FlowRecord) -> io::Result<()> {
        self.element(&record.element, true);
        Ok(())
    }

    fn weighs_doubt(&self) -> bool {
        true
    }
}

impl Analysis for Covered {
    type Found = Vec<(FollowedProgram, ProgramCoverage)>;

    fn answer(self, end: &End) -> Self::Found {
        let Self { mut recorders, programs, capture, source, protocol, .. } = self;
        let found = programs.into_iter().filter_map(|(scope, program)| {
            let index = recorders.iter().position(|(of, _)| *of == scope)?;
            let (_, recorder) = recorders.swap_remove(index);
            let part = recorder.finish(&capture, &source, protocol, end.statistics.bytes);
            Some((program, ProgramCoverage::of(part)))
        });
        found.collect()
    }

    fn in_doubt(found: &Self::Found) -> Option<InDoubt> {
        let mut in_doubt = InDoubt::default();
        found.iter().for_each(|(_, found)| in_doubt.add(found.losses().in_doubt));
        Some(in_doubt)
    }
}
