//! A capture, what the user says of it, and what was found out of the rest: everything that a command works on.

mod arrange;
mod arrival;
mod belonging;
mod contents;
mod correct;
mod job;
mod known;
mod live;
mod memory;
mod options;
mod strict;
mod tell;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use tracewalk::frame::Framing;
use tracewalk::ids::{Address, TraceId};
use tracewalk::program::{Scope, ViewId};
use tracewalk_analysis::drive::{Input, Progress, Spread};
use tracewalk_analysis::programs::SourceId;
use tracewalk_analysis::{Code, Context, Interrupts, Section};
use tracewalk_input::capture::{Buffer, Capture, Protocol, SourceDescription};
use tracewalk_input::cpu::Profile;
use tracewalk_input::image::{Image, ImageError, ImageKind, ImageLoader, ImageRequest, Memory, VisibleImage};
use tracewalk_input::svd::InterruptNames;
use tracewalk_input::symbols::VectorTable;
use tracewalk_input::{MemoryLimit, Origin, Stated};

use crate::args::CaptureArgs;
use crate::code::Reader;
use crate::failure::Failure;
use crate::guess::{self, Finding, Place, RawImage};
use crate::messages::Messages;
use crate::progress::Watch;
use crate::sources::config;

use arrival::{Arrival, Wanted};
pub(crate) use contents::Contents;
use contents::Identified;
pub(crate) use job::{ItmJob, Job};
use known::Known;
use live::Live;
pub(crate) use memory::Dumped;

/// A capture and the sources in it that can be decoded.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) capture: Capture,
    pub(crate) contents: Vec<Contents>,
    /// The sources to be decoded, by buffer and ID.
    pub(crate) jobs: Vec<Job>,
    /// The ITMs beside them.
    pub(crate) itms: Vec<ItmJob>,
    /// What was found out of images, by their index.
    pub(crate) image_findings: Vec<(usize, Finding)>,
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
    /// What is known of the programs, to find out what else may be wrong.
    known: Known,
    /// Whether the buffer's bytes are only the beginning of what comes.
    arriving: bool,
    /// What is still coming.
    live: Option<Live>,
    /// How much memory there is.
    limit: MemoryLimit,
}

/// A program that is visible in some contexts only.
#[derive(Debug)]
pub(crate) struct ScopedCode {
    pub(crate) scope: Scope,
    pub(crate) code: Rc<Code>,
    pub(crate) images: Vec<Arc<Image>>,
}

/// What a thread takes to decode: its graph of blocks, its memo, and the results of the segments that it is ahead.
const THREAD_BYTES: u64 = 32 << 20;

/// What a thread takes for each byte of the program: where blocks begin, by words and by halfwords.
const THREAD_TIMES_THE_CODE: u64 = 3;

/// What the memory of a source's core depends on.
type ProgramKey = (Option<String>, Option<Profile>);

impl Work {
    /// Opens what the arguments name, and finds out what they do not say.
    pub(crate) fn open(args: &CaptureArgs, messages: &Messages) -> Result<Self, Failure> {
        let capture = match arrival::place(args)? {
            None => Capture::open_with(&args.capture, &args.recording.options())?,
            Some(place) => Arrival::open(place, args, messages)?.whole(args, messages)?,
        };
        Self::of(capture, args, false, messages)
    }

    /// As [`Work::open`]; a capture that comes over time is opened as soon as it is known what it is. The caller has to
    /// decode the jobs in their order, each once, and call [`Work::end_job`] behind each.
    pub(crate) fn open_live(args: &CaptureArgs, messages: &Messages) -> Result<Self, Failure> {
        Self::open_behind(0, args, messages)
    }

    /// As [`Work::open_live`], when at least so many bytes have come, or all.
    pub(crate) fn open_behind(
        bytes: usize,
        args: &CaptureArgs,
        messages: &Messages,
    ) -> Result<Self, Failure> {
        match arrival::place(args)? {
            None => Self::open(args, messages),
            // What is recorded is looked at twice.
            Some(_) if messages.records() => Self::open(args, messages),
            Some(place) => {
                Arrival::open(place, args, messages)?.begin(Wanted::Trace { at_least: bytes }, args, messages)
            }
        }
    }

    /// As [`Work::open_live`], for its ITMs. One that has none in its first bytes is opened when all of it has come.
    pub(crate) fn open_for_itms(args: &CaptureArgs, messages: &Messages) -> Result<Self, Failure> {
        match arrival::place(args)? {
            None => Self::open(args, messages),
            // What is recorded is looked at twice.
            Some(_) if messages.records() => Self::open(args, messages),
            Some(place) => Arrival::open(place, args, messages)?.begin(Wanted::Itms, args, messages),
        }
    }

    /// Finds out what neither the capture nor the arguments say. Of one that is `arriving` more comes later.
    fn of(
        mut capture: Capture,
        args: &CaptureArgs,
        arriving: bool,
        messages: &Messages,
    ) -> Result<Self, Failure> {
        for note in &capture.notes {
            messages.warning(format_args!("{note}; it is left out"));
        }
        let memory = memory::read(&capture, args.dump_address.map(Address::from))?;
        tell::refuse_wrong_files(&capture, &memory)?;
        for buffer in &capture.buffers {
            if args.strict {
                strict::check_wires(buffer)?;
            }
            tell::wires(buffer, messages);
        }
        capture.images.extend(args.images.iter().cloned());
        belonging::check_said(args, &capture, &memory)?;
        options::add(&mut capture, args)?;
        let limit = args.memory.unwrap_or_default();
        let mut loader = ImageLoader::within(limit);
        let images = known::every_image(&mut loader, &capture)?;
        let mut dumps = Vec::new();
        for (buffer, memory) in capture.buffers.iter_mut().zip(memory) {
            let dump = memory.map(|memory| memory::choose(buffer, memory, &images.program, messages));
            dumps.push(dump.transpose()?);
        }
        let mut work = Self {
            capture,
            contents: Vec::new(),
            jobs: Vec::new(),
            itms: Vec::new(),
            image_findings: Vec::new(),
            loader,
            programs: Vec::new(),
            interrupts: interrupts(args, messages)?,
            vector_table: vector_table(args, &dumps, messages),
            dumps,
            halted_at: args.mtb_pc.map(Address::from),
            known: Known::default(),
            arriving,
            live: None,
            limit,
        };
        let mut known = Known::of(&mut work.loader, &work.capture, &work.dumps, Some(messages))?;
        let mut seen = work.look(args, &known)?;
        for _ in 0..work.capture.images.len() {
            if args.strict || !work.place_image(&seen, &known, messages)? {
                break;
            }
            known = Known::of(&mut work.loader, &work.capture, &work.dumps, None)?;
            seen = work.look(args, &known)?;
        }
        if !args.strict && !arriving {
            work.arrange(args, &known, &mut seen)?;
        }
        work.known = known;
        for (index, (contents, found)) in seen.into_iter().enumerate() {
            work.take(index, contents, &found, args, messages)?;
        }
        work.check_ids(&args.ids, messages)?;
        belonging::check_found(args, &work, messages)?;
        if !arriving {
            tell::nothing_decoded(&work, messages);
        }
        messages.record(|record| {
            record.capture(&work);
            for file in [&args.svd, &args.registers].into_iter().flatten() {
                record.input("description", file);
            }
            Ok(())
        })?;
        Ok(work)
    }

    /// The bytes of a job's source.
    pub(crate) fn input<'a>(&'a self, job: &Job, progress: &'a dyn Progress) -> Input<'a> {
        let capture = &*self.buffer(job).bytes;
        Input { capture, carrier: job.carrier.clone(), rest: self.rest(), progress }
    }

    /// Somebody who watches how far the work on a job has come, and how much memory it takes.
    pub(crate) fn watch<'a>(&self, job: &Job, messages: &'a Messages) -> Watch<'a> {
        Watch::new(self.buffer(job).bytes.len() as u64, self.limit, messages)
    }

    /// How the work on a program is spread over threads, at most so many.
    pub(crate) fn spread(&self, threads: u16, code: &Code) -> Spread {
        let threads = usize::from(threads);
        let fit = self.limit.share().map_or(threads, |share| {
            let code =
                code.program.regions_in_scopes().map(|(_, region)| region.bytes().len() as u64).sum::<u64>();
            let each = THREAD_BYTES + THREAD_TIMES_THE_CODE * code;
            usize::try_from(share / each).unwrap_or(threads)
        });
        Spread::over(threads.min(fit).max(1))
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
        let key = (job.description.core.clone(), job.profile());
        if let Some((_, code)) = self.programs.iter().find(|(known, _)| *known == key) {
            return Ok(Rc::clone(code));
        }
        let memory = self.memory(job, key.1)?;
        let reader = Reader { profile: key.1, interrupts: self.interrupts.clone(), source_dirs: names };
        let code = reader.code(&memory, messages);
        self.programs.push((key, Rc::clone(&code)));
        Ok(code)
    }

    /// What of a job's program is visible in some contexts only, as programs of their own, with their images.
    pub(crate) fn scoped_code(
        &mut self,
        job: &Job,
        source_dirs: &[PathBuf],
        messages: &Messages,
    ) -> Result<Vec<ScopedCode>, Failure> {
        let profile = job.profile();
        let memory = self.memory(job, profile)?;
        let reader = Reader { profile, interrupts: self.interrupts.clone(), source_dirs: Some(source_dirs) };
        let of_scope = |scope| {
            let memory = memory.of_scope(scope);
            let images = memory.images.iter().map(|visible| Arc::clone(&visible.image)).collect();
            ScopedCode { scope, code: reader.code(&memory, messages), images }
        };
        Ok(memory.program.scopes().map(of_scope).collect())
    }

    /// The memory of a job's core.
    fn memory(&mut self, job: &Job, profile: Option<Profile>) -> Result<Memory, Failure> {
        let mut memory = self.loader.memory(self.capture.images_for(&job.description))?;
        for dump in self.dumps.iter().flatten() {
            dump.add_code(&mut memory, None);
        }
        let everywhere = memory.seen_in(ViewId::default(), Scope::EVERYWHERE);
        let found = || VectorTable::of(&everywhere, profile).map(|table| table.address);
        if let Some(table) = self.vector_table.or_else(found) {
            memory.program.set_vector_table(table);
        }
        Ok(memory)
    }

    /// The images that a job's program was put together from, and in which contexts each is visible.
    pub(crate) fn images(&mut self, job: &Job) -> Result<Vec<VisibleImage>, Failure> {
        let load = |request: &ImageRequest| {
            Ok(VisibleImage { image: self.loader.load(request)?, scope: request.scope })
        };
        Ok(self.capture.images_for(&job.description).map(load).collect::<Result<_, ImageError>>()?)
    }

    /// The file that says what stands at `address` of a job's program, in a context.
    pub(crate) fn file_at(&self, job: &Job, address: Address, context: Context) -> Option<&Path> {
        let program = self.known.program(&job.description);
        let scope = program.scope_at(context.0, context.1, address);
        self.known.file_at(&job.description, address, scope)
    }

    /// The section of a job in an output.
    pub(crate) fn section(&self, job: &Job, code: Rc<Code>) -> Section {
        let SourceId { id, protocol, number } = self.source_id(job);
        Section { id, protocol, number, code }
    }

    /// What tells a job's source apart in all captures of its program.
    pub(crate) fn source_id(&self, job: &Job) -> SourceId {
        let (id, protocol) = (job.id, job.config.protocol());
        let is_alike =
            |other: &&Job| other.id == id && other.config.protocol() == protocol && other.buffer < job.buffer;
        let before = self.jobs.iter().filter(is_alike).count();
        let number = u16::try_from(before).unwrap_or(u16::MAX).saturating_add(1);
        SourceId { id, protocol, number }
    }

    /// The capture with all that was found out of it.
    pub(crate) fn described(&self) -> Capture {
        let mut capture = self.capture.clone();
        for (buffer, contents) in capture.buffers.iter_mut().zip(&self.contents) {
            buffer.container = Some(contents.container.clone());
            if let Some(Framing::PortFrom(start)) = contents.frames.as_ref().map(|frames| frames.framing) {
                buffer.frame_start.get_or_insert(Stated::new(start.bytes(), Origin::Detected));
            }
            buffer.sources.clone_from(&contents.sources);
            let frames = contents.frames.iter().flat_map(|frames| frames.sources.keys());
            for &id in frames {
                if !buffer.sources.iter().any(|source| source.id == Some(id)) {
                    let protocol = Protocol::Unknown(String::new());
                    let source = SourceDescription::new(protocol, Origin::Detected);
                    buffer.sources.push(SourceDescription { id: Some(id), ..source });
                }
            }
        }
        capture
    }

    /// Finds the containers and the sources of all buffers.
    fn look(&self, args: &CaptureArgs, known: &Known) -> Result<arrange::Seen, Failure> {
        self.capture.buffers.iter().map(|buffer| Self::look_at(buffer, args, known)).collect()
    }

    /// Finds the container and the sources of a buffer.
    fn look_at(buffer: &Buffer, args: &CaptureArgs, known: &Known) -> Result<arrange::SeenBuffer, Failure> {
        let wanted = |id: Option<TraceId>| args.ids.is_empty() || id.is_some_and(|id| args.ids.contains(&id));
        if args.strict {
            strict::check_container(buffer)?;
        }
        let contents = Contents::of(buffer, known);
        let mut found = if args.strict {
            strict::sources(buffer, &contents, &args.ids)?
        } else {
            contents.identify(buffer, &args.ids, known)
        };
        found.retain(|found| wanted(found.source.id));
        let sources = found.iter().map(|found| found.source.clone()).collect();
        Ok((Contents { sources, ..contents }, found))
    }

    /// Makes jobs of what was found in a buffer, and says what was found out.
    fn take(
        &mut self,
        index: usize,
        contents: Contents,
        found: &[Identified],
        args: &CaptureArgs,
        messages: &Messages,
    ) -> Result<(), Failure> {
        let buffer = &self.capture.buffers[index];
        let mut jobs = Vec::new();
        for identified in found {
            if let Some(job) = self.job(index, &contents, identified, messages)? {
                jobs.push(job);
            }
        }
        jobs.sort_by_key(|job| job.id);
        let mut itms =
            found.iter().filter_map(|found| self.itm_job(index, &contents, found)).collect::<Vec<_>>();
        itms.sort_by_key(|itm| itm.id);
        if args.ids.is_empty() {
            match tell::refuse_nothing(found, buffer, &self.known) {
                // Another buffer may hold something.
                Err(failure) if self.capture.buffers.len() > 1 => messages.incomplete(failure),
                nothing => nothing?,
            }
        }
        // What else is in a capture that is still coming is told when it has come.
        if args.ids.is_empty() && !self.arriving {
            let sources = found.iter().map(|found| &found.source).collect::<Vec<_>>();
            tell::other_sources(&contents, buffer, &sources, &self.known, messages);
        }
        tell::findings(&contents, buffer, found, messages);
        if !self.arriving {
            tell::damage(&contents, buffer, messages);
            tell::cut_frame(&contents, buffer, messages);
        }
        for job in &jobs {
            self.tell_correction(job, messages);
        }
        self.jobs.extend(jobs);
        self.itms.extend(itms);
        self.contents.push(contents);
        Ok(())
    }

    /// Moves the image of raw bytes that fits the trace best elsewhere than where it was said to stand to where it fits,
    /// if there is one. Tells whether there was.
    fn place_image(
        &mut self,
        seen: &[(Contents, Vec<Identified>)],
        known: &Known,
        messages: &Messages,
    ) -> Result<bool, Failure> {
        let mut best = None::<(usize, Place)>;
        for index in 0..self.capture.images.len() {
            let request = self.capture.images[index].clone();
            let ImageKind::Raw { address, .. } = request.kind else { continue };
            if request.scope != Scope::EVERYWHERE {
                continue;
            }
            let sources = seen.iter().zip(&self.capture.buffers).flat_map(|((contents, found), buffer)| {
                found.iter().map(move |found| (&found.source, found.misses_program, contents, buffer))
            });
            let mut misplaced =
                sources.filter(|(source, misses, ..)| *misses && request.is_for(source.core.as_deref()));
            let Some((source, _, contents, buffer)) = misplaced.next() else { continue };
            let Ok(config) = config(source) else { continue };
            let image = self.loader.load(&request)?;
            let bytes =
                image.segments.first().map(|segment| image.segment_bytes(segment)).unwrap_or_default();
            let sample = contents.sample(source.id, buffer);
            let place = guess::place(&sample, &config, RawImage { address, bytes }, &known.without(&image));
            let is_better =
                |place: &Place| best.as_ref().is_none_or(|(_, best)| best.instructions < place.instructions);
            best = place.filter(is_better).map(|place| (index, place)).or(best);
        }
        let Some((index, place)) = best else { return Ok(false) };
        let Some(request) = self.capture.images.get_mut(index) else { return Ok(false) };
        tell::moved_image(request, &place, messages);
        if let ImageKind::Raw { address, .. } = &mut request.kind {
            *address = place.address;
        }
        self.image_findings.push((index, place.finding));
        Ok(true)
    }
}

/// Whether a capture comes over time, and can be read only once.
pub(crate) fn comes_over_time(args: &CaptureArgs) -> Result<bool, Failure> {
    Ok(arrival::place(args)?.is_some())
}

/// What the chip's interrupts are called, as far as somebody says it.
pub(crate) fn interrupts(args: &CaptureArgs, messages: &Messages) -> Result<Interrupts, Failure> {
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
    let stated = args.vtor.map(Address::from);
    stated.or_else(|| {
        let found = dumps.iter().flatten().find_map(|dump| dump.dump.vector_table())?;
        messages.note(format_args!("found out: --vtor {found}"));
        Some(found)
    })
}
