//! A capture, what the user says of it, and what was found out of the rest: everything that a command works on.

mod contents;
mod job;
mod memory;
mod options;
mod tell;

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use tracewalk::frame::Framing;
use tracewalk::ids::Address;
use tracewalk::source::SourceConfig;
use tracewalk_input::capture::{Buffer, Capture, Container, SourceDescription};
use tracewalk_input::cpu::Profile;
use tracewalk_input::image::{Image, ImageLoader, Memory};
use tracewalk_input::svd::InterruptNames;
use tracewalk_input::symbols::Symbols;
use tracewalk_input::{Origin, Stated};
use tracewalk_report::drive::{Input, Progress};
use tracewalk_report::{Code, Interrupts, Section};

use crate::args::CaptureArgs;
use crate::code::code;
use crate::failure::Failure;
use crate::guess;
use crate::messages::Messages;

pub(crate) use contents::{Contents, Frames};
pub(crate) use job::Job;
pub(crate) use memory::Dumped;

/// A capture and the sources in it that can be decoded.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) capture: Capture,
    pub(crate) contents: Vec<Contents>,
    /// The sources to be decoded, by buffer and ID.
    pub(crate) jobs: Vec<Job>,
    loader: ImageLoader,
    /// The programs that were put together, by core and profile.
    programs: Vec<(ProgramKey, Rc<Code>)>,
    /// The memory that the files of the buffers say, where they say any.
    pub(crate) dumps: Vec<Option<Dumped>>,
    /// Where the processor was found halted, if the MTB had been on up to there.
    halted_at: Option<Address>,
    /// What the chip's interrupts are called.
    interrupts: Interrupts,
    /// Where M profile's table of vectors is, if somebody said it.
    vector_table: Option<Address>,
}

/// What the memory of a source's core depends on.
type ProgramKey = (Option<String>, Option<Profile>);

impl Work {
    /// Opens what the arguments name, and finds out what they do not say.
    pub(crate) fn open(args: &CaptureArgs, messages: &Messages) -> Result<Self, Failure> {
        let mut capture = Capture::open(&args.capture)?;
        let memory = memory::read(&capture, args.dump_address.map(Address))?;
        tell::refuse_wrong_files(&capture, &memory)?;
        capture.images.extend(args.images.iter().cloned());
        options::add(&mut capture, args)?;
        let mut loader = ImageLoader::new();
        let mut everything = every_image(&mut loader, &capture)?;
        let mut dumps = Vec::new();
        for (buffer, memory) in capture.buffers.iter_mut().zip(memory) {
            let dump = memory.map(|memory| memory::choose(buffer, memory, &everything.program, messages));
            dumps.push(dump.transpose()?);
        }
        for dump in dumps.iter().flatten() {
            dump.add_code(&mut everything, Some(messages));
        }
        let mut work = Self {
            capture,
            contents: Vec::new(),
            jobs: Vec::new(),
            loader,
            programs: Vec::new(),
            interrupts: interrupts(args, messages)?,
            vector_table: vector_table(args, &dumps, messages),
            dumps,
            halted_at: args.mtb_pc.map(Address),
        };
        for index in 0..work.capture.buffers.len() {
            work.look_into(index, args, &everything, messages)?;
        }
        work.check_ids(&args.ids, messages)?;
        Ok(work)
    }

    /// The bytes of a job's source.
    pub(crate) fn input<'a>(&'a self, job: &Job, progress: &'a dyn Progress) -> Input<'a> {
        let capture = &*self.buffer(job).bytes;
        Input { capture, carrier: job.carrier.clone(), progress }
    }

    /// The buffer that a job's source is in.
    pub(crate) fn buffer(&self, job: &Job) -> &Buffer {
        &self.capture.buffers[job.buffer]
    }

    /// The program of a job's core, with names and lines if they are wanted.
    pub(crate) fn code(
        &mut self,
        job: &Job,
        names: Option<&[PathBuf]>,
        messages: &Messages,
    ) -> Result<Rc<Code>, Failure> {
        // No other profile has an MTB.
        let m_profile = matches!(job.config, SourceConfig::Mtb { .. }).then_some(Profile::M);
        let key = (job.description.core.clone(), job.description.profile().or(m_profile));
        if let Some((_, code)) = self.programs.iter().find(|(known, _)| *known == key) {
            return Ok(Rc::clone(code));
        }
        let mut memory = self.loader.memory(self.capture.images_for(&job.description))?;
        for dump in self.dumps.iter().flatten() {
            dump.add_code(&mut memory, None);
        }
        let symbols = Symbols::of(&memory);
        let table = symbols.vector_table(&memory.program, key.1).map(|table| table.address);
        if let Some(table) = self.vector_table.or(table) {
            memory.program.set_vector_table(table);
        }
        let interrupts = self.interrupts.clone();
        let code = match names {
            Some(source_dirs) => code(memory, symbols, key.1, interrupts, source_dirs, messages),
            None => Rc::new(Code { program: memory.program.into(), interrupts, ..Code::unknown() }),
        };
        self.programs.push((key, Rc::clone(&code)));
        Ok(code)
    }

    /// The images that a job's program was put together from.
    pub(crate) fn images(&mut self, job: &Job) -> Result<Vec<Arc<Image>>, Failure> {
        let requests = self.capture.images_for(&job.description);
        Ok(requests.into_iter().map(|request| self.loader.load(request)).collect::<Result<_, _>>()?)
    }

    /// The section of a job in an output.
    pub(crate) fn section(job: &Job, code: Rc<Code>) -> Section {
        Section { id: job.id, protocol: job.config.protocol(), code }
    }

    /// Finds the container and the sources of a buffer.
    fn look_into(
        &mut self,
        index: usize,
        args: &CaptureArgs,
        everything: &Memory,
        messages: &Messages,
    ) -> Result<(), Failure> {
        let buffer = &self.capture.buffers[index];
        let candidates = guess::Candidates::of(everything);
        let container = match &buffer.container {
            Some(stated) => stated.clone(),
            None => Stated::new(guess::container(&buffer.bytes, &candidates), Origin::Detected),
        };
        let frames = match container.value {
            Container::Frames => Some(Frames::scan(&buffer.bytes, Framing::Buffer)),
            Container::TracePort => {
                Some(Frames::scan(&buffer.bytes, guess::port_framing(&buffer.bytes, &candidates)))
            }
            Container::Raw | Container::Mtb => None,
        };
        let contents = Contents { container, frames };
        let mut found = match buffer.sources.as_slice() {
            [] => contents.guess_sources(buffer, &candidates, args),
            stated => contents.complete(stated, buffer, &candidates),
        };
        let wanted = |source: &SourceDescription| source.id.is_some_and(|id| args.ids.contains(&id));
        found.retain(|source| args.ids.is_empty() || wanted(source));
        let mut jobs = Vec::new();
        for source in &found {
            if let Some(job) = self.job(index, &contents, source, everything, messages)? {
                jobs.push(job);
            }
        }
        jobs.sort_by_key(|job| job.id);
        if args.ids.is_empty() {
            tell::refuse_nothing(&found, buffer, everything)?;
            tell::other_sources(&contents, &found, messages);
        }
        tell::findings(&contents, &found, buffer, messages);
        tell::damage(&contents, buffer, messages);
        self.jobs.extend(jobs);
        self.contents.push(contents);
        Ok(())
    }
}

/// What the chip's interrupts are called, as far as somebody says it.
fn interrupts(args: &CaptureArgs, messages: &Messages) -> Result<Interrupts, Failure> {
    let Some(file) = &args.svd else { return Ok(Interrupts::default()) };
    let names =
        InterruptNames::read(file).map_err(|error| Failure::input(error.to_string(), error.hint()))?;
    if let Some(problem) = &names.problem {
        messages.warning(format_args!("{problem}; {}", problem.hint()));
    }
    Ok(names.iter().collect())
}

/// Where M profile's table of vectors is, as far as somebody says it.
fn vector_table(args: &CaptureArgs, dumps: &[Option<Dumped>], messages: &Messages) -> Option<Address> {
    let stated = args.vtor.map(Address);
    stated.or_else(|| {
        let found = dumps.iter().flatten().find_map(|dump| dump.dump.vector_table())?;
        messages.note(format_args!("found out: --vtor {found}"));
        Some(found)
    })
}

/// The images of all cores together, as far as they go together: to find out what nobody said.
fn every_image(loader: &mut ImageLoader, capture: &Capture) -> Result<Memory, Failure> {
    let mut memory = Memory::default();
    for request in &capture.images {
        match loader.load(request) {
            // Cores may have different memories at the same address. Where one core's differ, its program says so.
            Ok(image) => drop(memory.add(image)),
            Err(error) if request.origin == Origin::Option("--image") => return Err(error.into()),
            // It may belong to a core that was not traced.
            Err(_) => {}
        }
    }
    Ok(memory)
}
