//! A capture, what the user says of it, and what was found out of the rest: everything that a command works on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use tracewalk::frame::{Account, Cause, Deframer, Discontinuity, FrameSink, Framing, Owner, Piece};
use tracewalk::ids::{Address, TraceId};
use tracewalk::source::SourceConfig;
use tracewalk_input::capture::{Buffer, Capture, Container, Protocol, SourceDescription};
use tracewalk_input::cpu::Profile;
use tracewalk_input::image::{ImageLoader, Memory};
use tracewalk_input::symbols::Symbols;
use tracewalk_input::{Origin, Stated};
use tracewalk_report::drive::{Carrier, Input, Progress, Stretch};
use tracewalk_report::{Code, Section};

use crate::args::{CaptureArgs, ContainerChoice};
use crate::code::code;
use crate::failure::Failure;
use crate::guess;
use crate::messages::{Messages, counted};
use crate::mtb;
use crate::sources::{NoConfig, as_option, config};

/// A capture and the sources in it that can be decoded.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) capture: Capture,
    pub(crate) contents: Vec<Contents>,
    /// The sources to be decoded, by buffer and ID.
    pub(crate) jobs: Vec<Job>,
    loader: ImageLoader,
    /// The programs that were put together, by core and profile.
    programs: Vec<(ProgramKey, Rc<Code>)>,
    /// Where the processor was found halted, if the MTB had been on up to there.
    halted_at: Option<Address>,
}

/// What the memory of a source's core depends on.
type ProgramKey = (Option<String>, Option<Profile>);

/// What was found in one of the capture's buffers.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) container: Stated<Container>,
    /// What the frames hold; `None` for a container without frames.
    pub(crate) frames: Option<Frames>,
}

/// One source to be decoded.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// The index of its buffer.
    pub(crate) buffer: usize,
    pub(crate) id: Option<TraceId>,
    pub(crate) description: SourceDescription,
    pub(crate) config: SourceConfig,
    pub(crate) carrier: Carrier,
}

impl Job {
    /// What it is called in messages.
    pub(crate) fn name(&self) -> String {
        self.id.map_or_else(|| "the source".to_owned(), |id| format!("trace ID {id}"))
    }
}

/// What the frames of a buffer hold.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    pub(crate) framing: Framing,
    pub(crate) account: Account,
    /// How many bytes each source has.
    pub(crate) sources: BTreeMap<TraceId, u64>,
    /// Where bytes in front and bytes behind do not belong together.
    pub(crate) discontinuities: u64,
    /// How many bytes stand in front of the first frame.
    in_front: u64,
}

impl Session {
    /// Opens what the arguments name, and finds out what they do not say.
    pub(crate) fn open(args: &CaptureArgs, messages: &Messages) -> Result<Self, Failure> {
        let mut capture = Capture::open(&args.capture)?;
        refuse_wrong_files(&capture)?;
        capture.images.extend(args.images.iter().cloned());
        add_options(&mut capture, args)?;
        let mut loader = ImageLoader::new();
        let everything = every_image(&mut loader, &capture)?;
        let halted_at = args.mtb_pc.map(Address);
        let mut session =
            Self { capture, contents: Vec::new(), jobs: Vec::new(), loader, programs: Vec::new(), halted_at };
        for index in 0..session.capture.buffers.len() {
            session.look_into(index, args, &everything, messages)?;
        }
        session.check_ids(&args.ids, messages)?;
        Ok(session)
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
        let key = (job.description.core.clone(), job.description.profile());
        if let Some((_, code)) = self.programs.iter().find(|(known, _)| *known == key) {
            return Ok(Rc::clone(code));
        }
        let mut memory = self.loader.memory(self.capture.images_for(&job.description))?;
        let symbols = Symbols::of(&memory);
        if let Some(table) = symbols.vector_table(&memory.program, key.1) {
            memory.program.set_vector_table(table.address);
        }
        let code = match names {
            Some(source_dirs) => code(memory, symbols, key.1, source_dirs, messages),
            None => Rc::new(Code { program: memory.program.into(), ..Code::unknown() }),
        };
        self.programs.push((key, Rc::clone(&code)));
        Ok(code)
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
            refuse_nothing(&found, buffer, everything)?;
            tell_other_sources(&contents, &found, messages);
        }
        tell_findings(&contents, &found, buffer, messages);
        tell_damage(&contents, buffer, messages);
        self.jobs.extend(jobs);
        self.contents.push(contents);
        Ok(())
    }

    /// The work for one source; `None` where it cannot or need not be decoded.
    fn job(
        &self,
        buffer: usize,
        contents: &Contents,
        source: &SourceDescription,
        everything: &Memory,
        messages: &Messages,
    ) -> Result<Option<Job>, Failure> {
        let name = source.id.map_or_else(|| "the source".to_owned(), |id| format!("trace ID {id}"));
        let config = match config(source) {
            Ok(SourceConfig::Mtb { .. }) => SourceConfig::Mtb { halted_at: self.halted_at },
            Ok(config) => config,
            Err(NoConfig::NotDecoded) => {
                if contents
                    .frames
                    .as_ref()
                    .is_none_or(|frames| source.id.is_none_or(|id| frames.sources.contains_key(&id)))
                {
                    messages.note(format_args!("{name}: {} is not decoded", source.protocol));
                }
                return Ok(None);
            }
            Err(NoConfig::Registers(problem)) => {
                messages.incomplete(format_args!(
                    "{name}: {problem}; say it with --source {}{},cpu=… or the register's name",
                    source.id.map_or_else(String::new, |id| format!("{id}=")),
                    source.protocol
                ));
                return Ok(None);
            }
        };
        let id = source.id.or(config.trace_id());
        let is_absent = |frames: &Frames| id.is_some_and(|id| !frames.sources.contains_key(&id));
        if contents.frames.as_ref().is_some_and(is_absent) {
            return Ok(None);
        }
        let carrier = match (&contents.frames, id) {
            (Some(frames), Some(id)) => Carrier::Frames { framing: frames.framing, id },
            (Some(_), None) => {
                return Err(Failure::input(
                    format!("frames hold several sources, and {} has no trace ID", source.protocol),
                    format!("say it with --source ID={}", source.protocol),
                ));
            }
            (None, _) if source.protocol == Protocol::Mtb => {
                mtb::carrier(&self.capture.buffers[buffer].bytes, source, &everything.program, messages)?
            }
            (None, _) => Carrier::Stretches(vec![Stretch::all(self.capture.buffers[buffer].bytes.len())]),
        };
        let id = if contents.frames.is_some() { id } else { source.id };
        Ok(Some(Job { buffer, id, description: source.clone(), config, carrier }))
    }

    /// Says which of the trace IDs that were asked for are not decoded.
    fn check_ids(&self, wanted: &[TraceId], messages: &Messages) -> Result<(), Failure> {
        let missing = |id: &&TraceId| !self.jobs.iter().any(|job| job.id == Some(**id));
        let Some(first) = wanted.iter().find(missing) else { return Ok(()) };
        let frames = self.contents.iter().filter_map(|contents| contents.frames.as_ref());
        let known = frames.flat_map(|frames| frames.sources.keys()).collect::<Vec<_>>();
        let failure = if known.is_empty() {
            Failure::input(
                format!("--id {first} was asked for, and the capture has no trace IDs"),
                "leave out --id, or say --container frames",
            )
        } else if known.contains(&first) {
            Failure::input(
                format!("the bytes of trace ID {first} are not decoded"),
                format!("say what they are with --source {first}=PROTOCOL,cpu=…"),
            )
        } else {
            let known = known.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            Failure::input(
                format!("the capture has no bytes of trace ID {first}, it has {known}"),
                "choose one of them with --id",
            )
        };
        if self.jobs.is_empty() {
            return Err(failure);
        }
        messages.incomplete(failure);
        Ok(())
    }
}

impl Contents {
    /// Finds out whose bytes a buffer holds.
    fn guess_sources(
        &self,
        buffer: &Buffer,
        candidates: &guess::Candidates<'_>,
        args: &CaptureArgs,
    ) -> Vec<SourceDescription> {
        match &self.frames {
            None if self.container.value == Container::Mtb => {
                vec![SourceDescription::new(Protocol::Mtb, Origin::Detected)]
            }
            None => {
                let carrier = Carrier::Stretches(vec![Stretch::all(buffer.bytes.len())]);
                guess::source(None, &buffer.bytes, carrier, candidates).into_iter().collect()
            }
            Some(frames) => {
                let wanted = |id: &&TraceId| args.ids.is_empty() || args.ids.contains(id);
                let guess = |&id| {
                    let carrier = Carrier::Frames { framing: frames.framing, id };
                    guess::source(Some(id), &buffer.bytes, carrier, candidates)
                };
                frames.sources.keys().filter(wanted).filter_map(guess).collect()
            }
        }
    }

    /// Adds to sources that were named what is not said of them.
    fn complete(
        &self,
        stated: &[SourceDescription],
        buffer: &Buffer,
        candidates: &guess::Candidates<'_>,
    ) -> Vec<SourceDescription> {
        let mut sources = stated.to_vec();
        for source in &mut sources {
            guess::add_cpu(source, candidates);
        }
        // One source without an ID in frames: it is the one that decodes best.
        if let ([source], Some(frames)) = (sources.as_mut_slice(), &self.frames)
            && source.id.is_none()
        {
            source.id = guess::id(source, &buffer.bytes, frames);
        }
        sources
    }
}

impl Frames {
    /// Takes a whole buffer apart.
    pub(crate) fn scan(bytes: &[u8], framing: Framing) -> Self {
        let mut deframer = Deframer::new(framing);
        let mut counts = Counts::default();
        deframer.push(bytes, &mut counts);
        deframer.finish(&mut counts);
        let Counts { sources, discontinuities, in_front } = counts;
        Self { framing, account: *deframer.account(), sources, discontinuities, in_front }
    }
}

impl Frames {
    /// How many bytes were lost, other than those in front of the first frame.
    pub(crate) fn lost(&self) -> u64 {
        self.account.lost.saturating_sub(self.in_front)
    }
}

#[derive(Default)]
struct Counts {
    sources: BTreeMap<TraceId, u64>,
    discontinuities: u64,
    in_front: u64,
}

impl FrameSink for Counts {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if let Some(id) = owner.trace_id() {
            *self.sources.entry(id).or_default() += piece.bytes.len() as u64;
        }
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        match discontinuity.cause {
            Cause::Start => self.in_front += discontinuity.bytes,
            Cause::Barrier | Cause::MisplacedSync | Cause::ImpossibleId => self.discontinuities += 1,
        }
    }
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

/// Files that are certainly no trace, and were probably meant as something else.
fn refuse_wrong_files(capture: &Capture) -> Result<(), Failure> {
    for buffer in &capture.buffers {
        let file = buffer.file.display();
        let head = buffer.bytes.get(..4096).unwrap_or(&buffer.bytes);
        if head.starts_with(b"\x7fELF") {
            let hint = format!("give the trace's file first, and the program with --image {file}");
            return Err(Failure::input(format!("{file}: is an ELF file, expected trace bytes"), hint));
        }
        let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
        if head.iter().all(is_text) {
            let hint = "give the file of trace bytes, a capture.toml or a snapshot directory";
            return Err(Failure::input(format!("{file}: is text, expected trace bytes"), hint));
        }
    }
    Ok(())
}

/// Puts what the options say in the place of what the capture's description says.
fn add_options(capture: &mut Capture, args: &CaptureArgs) -> Result<(), Failure> {
    if let Some(ContainerChoice::Is(container)) = args.container {
        for buffer in &mut capture.buffers {
            buffer.container = Some(Stated::new(container, Origin::Option("--container")));
        }
    }
    for source in &args.sources {
        let known = |known: &SourceDescription| known.id == source.id;
        let holder = capture.buffers.iter().position(|buffer| buffer.sources.iter().any(known));
        if let Some(buffer) = capture.buffers.get_mut(holder.unwrap_or(0)) {
            buffer.sources.retain(|other| !known(other));
            buffer.sources.push(source.clone());
        }
    }
    add_mtb_registers(capture, args)
}

fn add_mtb_registers(capture: &mut Capture, args: &CaptureArgs) -> Result<(), Failure> {
    let mut registers = match &args.registers {
        Some(file) => tracewalk_input::capture::Registers::read_mtb(file)?,
        None => tracewalk_input::capture::Registers::new(),
    };
    let options = [
        ("MTB_POSITION", "--mtb-position", args.mtb_position),
        ("MTB_MASTER", "--mtb-master", args.mtb_master),
        ("MTB_BASE", "--mtb-base", args.mtb_base),
    ];
    for (name, option, value) in options {
        if let Some(value) = value {
            registers.set(name, value, Origin::Option(option));
        }
    }
    let Some((_, first)) = registers.iter().next() else { return Ok(()) };
    let origin = first.origin.clone();
    let Some(buffer) = capture.buffers.first_mut() else { return Ok(()) };
    buffer.container.get_or_insert_with(|| Stated::new(Container::Mtb, origin.clone()));
    if buffer.sources.is_empty() {
        buffer.sources.push(SourceDescription::new(Protocol::Mtb, origin));
    }
    for source in buffer.sources.iter_mut().filter(|source| source.protocol == Protocol::Mtb) {
        source.registers.extend(registers.clone());
    }
    Ok(())
}

/// Says what was found out, as the options that would have said it.
fn tell_findings(contents: &Contents, found: &[SourceDescription], buffer: &Buffer, messages: &Messages) {
    let mut options = Vec::new();
    if contents.container.origin == Origin::Detected {
        options.push(format!("--container {}", contents.container.value));
    }
    for source in found {
        let detected = source.origin == Origin::Detected
            || source.cpu.as_ref().is_some_and(|cpu| cpu.origin == Origin::Detected)
            || (source.id.is_some()
                && !buffer.sources.is_empty()
                && buffer.sources.iter().all(|stated| stated.id.is_none()));
        if detected {
            options.push(as_option(source));
        }
    }
    if !options.is_empty() {
        messages.note(format_args!("found out: {}", options.join(" ")));
    }
}

/// A buffer that has nothing that can be decoded.
fn refuse_nothing(found: &[SourceDescription], buffer: &Buffer, everything: &Memory) -> Result<(), Failure> {
    if !found.is_empty() {
        return Ok(());
    }
    let image = if everything.images.is_empty() { ", and the program with --image" } else { "" };
    Err(Failure::input(
        format!("{}: nothing was recognised in its {} bytes", buffer.file.display(), buffer.bytes.len()),
        format!("say what it is with --container and --source [ID=]PROTOCOL,cpu=…{image}"),
    ))
}

/// Says what else is in a buffer, and what is not.
fn tell_other_sources(contents: &Contents, found: &[SourceDescription], messages: &Messages) {
    let Some(frames) = &contents.frames else { return };
    let known = |id: &TraceId| found.iter().any(|source| source.id == Some(*id));
    for (id, bytes) in frames.sources.iter().filter(|(id, _)| !known(id)) {
        messages.note(format_args!(
            "trace ID {id}: {} of a source that is not known; --source {id}=PROTOCOL says what it is",
            counted(*bytes, "byte")
        ));
    }
    for source in found {
        let Some(id) = source.id.filter(|id| !frames.sources.contains_key(id)) else { continue };
        // A description names every trace unit of a chip, an option only those that are meant.
        if source.origin == Origin::Option("--source") {
            messages
                .incomplete(format_args!("trace ID {id}: the capture has no bytes of it; check --source"));
        } else {
            messages.note(format_args!("trace ID {id}: the capture has no bytes of it"));
        }
    }
}

/// Says what of the frames could not be read.
fn tell_damage(contents: &Contents, buffer: &Buffer, messages: &Messages) {
    let Some(frames) = &contents.frames else { return };
    let (lost, reserved) = (frames.lost(), frames.account.reserved);
    if lost > 0 || reserved > 0 {
        messages.incomplete(format_args!(
            "{}: {} lost to damaged frames, {} of reserved trace IDs; if these are many, try --container tpiu or raw",
            buffer.file.display(),
            counted(lost, "byte"),
            counted(reserved, "byte"),
        ));
    }
}
