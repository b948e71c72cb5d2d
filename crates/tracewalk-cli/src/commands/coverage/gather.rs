//! Captures and saved parts → what ran, and the programs that it ran in.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use tracewalk::flow::{Element, Event, EventKind};
use tracewalk::program::{Program, Scope};
use tracewalk_input::FileProblem;
use tracewalk_input::image::{Image, ImageLoader};
use tracewalk_report::analysis::coverage::{
    Conditions, Coverage, ProgramId, ProgramInput, RecordedPart, Recorder,
};
use tracewalk_report::analysis::{Context, Statistics};
use tracewalk_report::drive::Spread;
use tracewalk_report::export::{Export, FlowRecord, Join};
use tracewalk_report::{Code, Interrupts, Section};

use super::super::follow::{self, Following};
use crate::args::{self, CaptureArgs};
use crate::code::Reader;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::work::{Job, ScopedCode, Work};

/// What ran, and in which programs.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) coverage: Coverage,
    pub(super) statistics: Statistics,
    programs: BTreeMap<ProgramId, Rc<Code>>,
}

impl Gathered {
    /// Decodes the captures and reads the saved parts that the arguments name.
    pub(super) fn from(args: &args::Coverage, messages: &Messages) -> Result<Self, Failure> {
        let mut gathered = Self::default();
        let mut parts = Vec::new();
        for path in args.captures() {
            if is_part(path) {
                parts.push(path);
            } else {
                let capture = CaptureArgs { capture: path.clone(), ..args.capture.clone() };
                gathered.capture(&capture, args, messages)?;
            }
        }
        if gathered.programs.is_empty() {
            gathered.images(args, messages)?;
        }
        for path in parts {
            let part = read_part(path)?;
            gathered.refuse_other_program(&part, path)?;
            gathered.merge(part, path)?;
        }
        Ok(gathered)
    }

    /// What a report is made from.
    pub(super) fn inputs(&self) -> Result<Vec<ProgramInput<'_>>, Failure> {
        let input = |(id, coverage)| {
            let code = self.programs.get(id).ok_or_else(no_program)?;
            Ok(ProgramInput { id, coverage, code })
        };
        self.coverage.programs.iter().map(input).collect()
    }

    /// Decodes a capture.
    fn capture(
        &mut self,
        capture: &CaptureArgs,
        args: &args::Coverage,
        messages: &Messages,
    ) -> Result<(), Failure> {
        let mut work = Work::open_live(capture, messages)?;
        // More of them may be found when a capture that comes has come.
        for index in 0.. {
            let Some(job) = work.jobs.get(index).cloned() else { break };
            let images = work.images(&job)?;
            let code = work.code(&job, Some(&args.source_dirs), messages)?;
            if code.program.is_empty() {
                return Err(no_program());
            }
            let scoped = work.scoped_code(&job, &args.source_dirs, messages)?;
            let mut listener = Listener::new(&job, scoped.iter().map(|scoped| scoped.scope));
            // Whose code ran in a part is known only where there is one program.
            let statistics = if scoped.is_empty() && !work.is_live() {
                let following = Following { work: &work, job: &job, trust_image: args.trust_image, messages };
                let spread = Spread::over(args.work.threads.into()).for_counts();
                follow::source_in_parts(following, Rc::clone(&code), spread, &mut listener)?
            } else {
                follow::source(&work, &job, Rc::clone(&code), args.trust_image, &mut listener, messages)?
            };
            work.end_job(messages)?;
            self.statistics.add(&statistics);
            let name = capture.capture.display().to_string();
            let source = job.id.map_or_else(|| "-".to_owned(), |id| id.to_string());
            let everywhere = ScopedCode { scope: Scope::EVERYWHERE, code, images };
            let everywhere = Some(everywhere).filter(|all| !all.code.program.regions().is_empty());
            for ScopedCode { scope, code, images } in everywhere.into_iter().chain(scoped) {
                let Some(recorder) = listener.take(scope) else { continue };
                let part = recorder.finish(&name, &source, job.config.protocol(), statistics.bytes);
                let id = identity(&code, &images);
                self.coverage.add(id.clone(), names(&images), part);
                self.programs.insert(id, code);
            }
        }
        Ok(())
    }

    /// Loads the images that the options name, where no capture named any.
    fn images(&mut self, args: &args::Coverage, messages: &Messages) -> Result<(), Failure> {
        if args.capture.images.is_empty() {
            return Ok(());
        }
        let memory = ImageLoader::new().memory(&args.capture.images)?;
        let interrupts = Interrupts::default();
        let reader = Reader { profile: None, interrupts, source_dirs: Some(&args.source_dirs) };
        for scope in std::iter::once(Scope::EVERYWHERE).chain(memory.program.scopes()) {
            let memory = memory.of_scope(scope);
            let images = memory.images.iter().map(|visible| Arc::clone(&visible.image)).collect::<Vec<_>>();
            if !images.is_empty() {
                let code = reader.code(&memory, messages);
                self.programs.insert(identity(&code, &images), code);
            }
        }
        Ok(())
    }

    /// Says so where a part is of another program than the one at hand.
    fn refuse_other_program(&self, part: &Coverage, path: &Path) -> Result<(), Failure> {
        if self.programs.is_empty() {
            return Ok(());
        }
        match part.programs.keys().find(|id| !self.programs.contains_key(*id)) {
            None => Ok(()),
            Some(other) => {
                let known = self.programs.keys().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
                Err(Failure::input(
                    format!("{}: is of another program: found {other}, expected {known}", path.display()),
                    "give the ELF file that was running with --image",
                ))
            }
        }
    }

    fn merge(&mut self, part: Coverage, path: &Path) -> Result<(), Failure> {
        self.coverage.merge(part).map_err(|error| {
            Failure::input(
                format!("{}: {error}", path.display()),
                "only runs of the same program can be put together",
            )
        })
    }
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

fn identity(code: &Code, images: &[Arc<Image>]) -> ProgramId {
    ProgramId::of(&code.program, images.iter().map(|image| image.build_id.as_deref()))
}

/// The names of the files, without the folders, which differ from one machine to the next.
fn names(images: &[Arc<Image>]) -> impl Iterator<Item = String> {
    images.iter().filter_map(|image| Some(image.file.file_name()?.to_string_lossy().into_owned()))
}

/// Whether a file holds saved coverage. What cannot be read is a capture, and is told as one.
fn is_part(path: &Path) -> bool {
    let mut head = [0; 64];
    let read = File::open(path).and_then(|mut file| file.read(&mut head));
    read.is_ok_and(|bytes| Coverage::is_saved(head.get(..bytes).unwrap_or_default()))
}

/// Reads a file of saved coverage.
pub(in crate::commands) fn read_part(path: &Path) -> Result<Coverage, Failure> {
    Coverage::read(&read_text(path)?).map_err(|error| {
        Failure::input(
            format!("{}: {error}", path.display()),
            "give a file that `tracewalk coverage --save` wrote",
        )
    })
}

/// Reads a text file.
pub(super) fn read_text(path: &Path) -> Result<String, Failure> {
    let failure = |problem: FileProblem| {
        Failure::input(format!("{}: {problem}", path.display()), "check the file's name")
    };
    let bytes = std::fs::read(path).map_err(|error| failure(error.into()))?;
    String::from_utf8(bytes)
        .map_err(|error| failure(FileProblem::NotText { offset: error.utf8_error().valid_up_to() }))
}
