//! Opens a capture; missing settings are inferred from its bytes and the program.

use tracewalk::ids::Address;
use tracewalk::program::Scope;
use tracewalk_analysis::Interrupts;
use tracewalk_input::capture::Capture;
use tracewalk_input::capture::perf::{Binaries, BinaryPlaces, NoBinary, Recorded};
use tracewalk_input::image::{ImageKind, ImageLoader, ImageRequest, Memory};
use tracewalk_input::svd::InterruptNames;

use crate::contents::{self, look};
use crate::error::OpenError;
use crate::infer::{self, Place, RawImage};
use crate::keep::Keep;
use crate::model::{Contents, Dumped, Identified, SeenBuffer};
use crate::notice::{Inferred, ModulesLeftOut, Notice, NoticeKind};
use crate::observer::{Notices, Observer, Say};
use crate::program::{Known, every_image};
use crate::request::{Policy, Request};
use crate::session::Session;
use crate::shared::Shared;
use crate::sources::config;
use crate::{arrange, memory, report, statements};

impl Session {
    /// Opens a capture, and infers the settings that the request omits. Also returns notices.
    ///
    /// # Errors
    ///
    /// If the capture or an image cannot be read, nothing in the capture is recognised, or the statements contradict it.
    pub fn open(request: Request) -> Result<(Self, Vec<Notice>), OpenError> {
        let notices = Notices::default();
        let session = Self::open_observed(request, &notices)?;
        Ok((session, notices.into_vec()))
    }

    /// As [`Session::open`]; `observer` receives notices as they arise.
    ///
    /// # Errors
    ///
    /// As for [`Session::open`].
    pub fn open_observed(request: Request, observer: &dyn Observer) -> Result<Self, OpenError> {
        Self::open_kept(request, None, observer)
    }

    /// As [`Session::open_observed`]. The places of a large file's frames are kept, and not searched again while the file is
    /// unchanged.
    ///
    /// # Errors
    ///
    /// As for [`Session::open`].
    pub fn open_kept(
        request: Request,
        keep: Option<&dyn Keep>,
        observer: &dyn Observer,
    ) -> Result<Self, OpenError> {
        let capture = Capture::open_with(&request.capture, &request.stated.wires, &request.roots)?;
        Self::of(capture, request, false, keep, observer)
    }

    /// Infers the settings that neither the capture nor the request states. If it is `arriving`, the rest comes later.
    pub(crate) fn of(
        mut capture: Capture,
        request: Request,
        arriving: bool,
        keep: Option<&dyn Keep>,
        observer: &dyn Observer,
    ) -> Result<Self, OpenError> {
        for error in &capture.notes {
            observer.say(NoticeKind::EntryLeftOut(error.clone()));
        }
        let mut loader = loader(&request);
        leave_out_images(&mut capture, &mut loader, observer);
        let memory = memory::read(&capture, &request)?;
        report::refuse_wrong_files(&capture, &memory)?;
        for buffer in &capture.buffers {
            if request.policy == Policy::Strict {
                contents::check_wires(buffer)?;
            }
            report::wires(buffer, observer);
        }
        if let Some(recorded) = capture.recorded.clone() {
            let places = &request.stated.binaries;
            capture.images.extend(images_of(&recorded, places, &mut loader, observer)?);
            say_recorded(&recorded, observer);
        }
        capture.images.extend(request.images.iter().cloned());
        statements::check_said(&request.stated, &capture, &memory)?;
        statements::override_by(&mut capture, &request.stated)?;
        let images = match memory.iter().any(Option::is_some) {
            true => every_image(&mut loader, &capture)?,
            false => Memory::default(),
        };
        let mut dumps = Vec::new();
        for (buffer, memory) in capture.buffers.iter_mut().zip(memory) {
            let dump =
                memory.map(|memory| memory::choose(buffer, memory, &images.program, &request, observer));
            dumps.push(dump.transpose()?);
        }
        let mut session = Self {
            capture,
            contents: Vec::new(),
            sources: Vec::new(),
            itms: Vec::new(),
            task_names: Default::default(),
            image_findings: Vec::new(),
            loader,
            programs: Vec::new(),
            interrupts: interrupts(&request, observer)?,
            vector_table: vector_table(&request, &dumps, observer),
            shared: shared_programs(&request, &dumps),
            dumps,
            known: Known::default(),
            arriving,
            live: None,
            stopped_at: None,
            request,
        };
        if session.lacks_trace() {
            return Ok(session);
        }
        session.identify(keep, observer)?;
        report::check_ids(&session, observer)?;
        statements::check_found(&session.request.stated, &session.sources, observer)?;
        if !arriving {
            report::nothing_decoded(&session, observer);
        }
        Ok(session)
    }

    /// Finds the containers and the sources of all buffers.
    fn identify(&mut self, keep: Option<&dyn Keep>, observer: &dyn Observer) -> Result<(), OpenError> {
        let is_strict = self.request.policy == Policy::Strict;
        let mut known = self.known_of(Some(observer))?;
        let mut seen = look(&self.capture.buffers, &self.request, &known, keep)?;
        for _ in 0..self.capture.images.len() {
            // A recording states the address of each image.
            let is_placed = is_strict || self.capture.recorded.is_some();
            if is_placed || !place_image(self, &seen, &known, observer)? {
                break;
            }
            known = self.known_of(None)?;
            seen = look(&self.capture.buffers, &self.request, &known, keep)?;
        }
        if !is_strict && !self.arriving {
            arrange::arrange(&mut self.capture.buffers, &self.request, &known, &mut seen)?;
        }
        self.known = known;
        for (index, (contents, found)) in seen.into_iter().enumerate() {
            self.take(index, contents, &found, observer)?;
        }
        Ok(())
    }

    fn known_of(&mut self, observer: Option<&dyn Observer>) -> Result<Known, OpenError> {
        Known::of(&mut self.loader, &self.capture, &self.dumps, &self.shared, observer)
    }

    /// Makes sources of the findings in a buffer, and reports the inferred settings.
    fn take(
        &mut self,
        index: usize,
        contents: Contents,
        found: &[Identified],
        observer: &dyn Observer,
    ) -> Result<(), OpenError> {
        let buffer = &self.capture.buffers[index];
        let mut sources = Vec::new();
        for identified in found {
            sources.extend(self.source(index, &contents, identified, observer)?);
        }
        sources.sort_by_key(|source| source.id);
        let mut itms = found.iter().filter_map(|found| self.itm(index, &contents, found)).collect::<Vec<_>>();
        itms.sort_by_key(|itm| itm.id);
        if self.request.ids.is_empty() {
            match report::refuse_nothing(found, buffer, &self.known) {
                // Another buffer may hold something.
                Err(error) if self.capture.buffers.len() > 1 => {
                    observer.say(NoticeKind::NothingThere(Box::new(error)));
                }
                nothing => nothing?,
            }
        }
        // The other contents of a capture that is still arriving are known at its end.
        if self.request.ids.is_empty() && !self.arriving {
            let described = found.iter().map(|found| &found.source).collect::<Vec<_>>();
            let is_one_of_several = self.capture.buffers.len() > 1;
            report::other_sources(&contents, (buffer, is_one_of_several), &described, &self.known, observer);
        }
        report::findings(&contents, buffer, found, observer);
        if !self.arriving {
            report::damage(&contents, buffer, observer);
            report::cut_frame(&contents, buffer, observer);
        }
        for source in &sources {
            self.say_correction(source, observer);
        }
        self.sources.extend(sources);
        self.itms.extend(itms);
        self.contents.push(contents);
        Ok(())
    }
}

/// The cache of programs: the request's, unless the capture describes memory, which is its own.
fn shared_programs(request: &Request, dumps: &[Option<Dumped>]) -> Shared {
    let is_own = dumps.iter().any(Option::is_some);
    request.shared.clone().filter(|_| !is_own).unwrap_or_default()
}

/// Leaves out the images of the description that a source needs and that cannot be used, if others can be.
fn leave_out_images(capture: &mut Capture, loader: &mut ImageLoader, observer: &dyn Observer) {
    let cores = capture.sources().map(|source| source.core.clone()).chain([None]).collect::<Vec<_>>();
    let load = |image: &ImageRequest| {
        let is_needed = cores.iter().any(|core| image.is_for(core.as_deref()));
        is_needed.then(|| loader.load(image).map(drop))
    };
    let loaded = capture.images.iter().map(load).collect::<Vec<_>>();
    if !loaded.iter().flatten().any(Result::is_ok) {
        return;
    }
    let mut loaded = loaded.into_iter();
    capture.images.retain(|_| match loaded.next().flatten() {
        Some(Err(problem)) => {
            observer.say(NoticeKind::ImageLeftOut(problem));
            false
        }
        _ => true,
    });
}

/// The reader of images, which shares them with other sessions if these share a cache.
fn loader(request: &Request) -> ImageLoader {
    let loader = ImageLoader::within(request.limit);
    match &request.shared {
        Some(shared) => loader.sharing(shared.images.clone()),
        None => loader,
    }
}

/// The names of the chip's interrupts, if the request names its description.
///
/// # Errors
///
/// If the chip's description cannot be read.
pub fn interrupts(request: &Request, observer: &dyn Observer) -> Result<Interrupts, OpenError> {
    let Some(file) = &request.stated.svd else { return Ok(Interrupts::default()) };
    let names = InterruptNames::read(file).map_err(OpenError::Interrupts)?;
    if let Some(problem) = &names.problem {
        observer.say(NoticeKind::InterruptLeftOut(problem.clone()));
    }
    Ok(names.iter().collect())
}

/// The address of M profile's vector table, if it is stated or in a dump.
fn vector_table(request: &Request, dumps: &[Option<Dumped>], observer: &dyn Observer) -> Option<Address> {
    request.stated.vector_table.or_else(|| {
        let found = dumps.iter().flatten().find_map(|dump| dump.dump.vector_table())?;
        observer.say(NoticeKind::Inferred(vec![Inferred::VectorTable(found)]));
        Some(found)
    })
}

/// The images of the programs that ran. Reports files that were not found, or are not the ones that ran. Gives the
/// contents of archives to `loader`.
fn images_of(
    recorded: &Recorded,
    places: &BinaryPlaces,
    loader: &mut ImageLoader,
    observer: &dyn Observer,
) -> Result<Vec<ImageRequest>, OpenError> {
    let Binaries { images, binaries, archived, prepared, unknown_branches } = recorded.images(places)?;
    archived.into_iter().for_each(|(file, bytes)| loader.give(file, bytes));
    prepared.into_iter().for_each(|(kind, image)| loader.give_image(kind, image));
    let (mut modules, mut missing) = (ModulesLeftOut::default(), Vec::new());
    for binary in binaries {
        match binary.file {
            Ok(_) => {}
            // Modules are counted, because a kernel has hundreds.
            Err(NoBinary::Module) => modules.not_found += 1,
            Err(NoBinary::ModuleUnplaced) => modules.unplaced += 1,
            Err(NoBinary::OtherBuildId { .. }) => observer.say(NoticeKind::OtherBinary(Box::new(binary))),
            Err(_) => missing.push(binary),
        }
    }
    if !missing.is_empty() {
        observer.say(NoticeKind::BinariesMissing(missing));
    }
    if modules != ModulesLeftOut::default() {
        observer.say(NoticeKind::ModulesLeftOut(modules));
    }
    if unknown_branches > 0 {
        observer.say(NoticeKind::ModuleBranchesUnknown(unknown_branches));
    }
    Ok(images)
}

/// Reports which trace and records are not in the file.
fn say_recorded(recorded: &Recorded, observer: &dyn Observer) {
    let counts = recorded.trace;
    let is_whole = counts.truncated == 0 && counts.partial == 0 && counts.missing == 0;
    if !is_whole || counts.bytes == 0 {
        observer.say(NoticeKind::TraceNotRecorded(counts));
    }
    if counts.mixed_mappings > 0 {
        observer.say(NoticeKind::MappingsMixed(counts.mixed_mappings));
    }
    if let Some(bytes) = recorded.short_context_ids
        && recorded.processes().nth(1).is_some()
    {
        observer.say(NoticeKind::ContextIdsShort(bytes));
    }
    if recorded.is_cut || recorded.damaged_at.is_some() {
        observer.say(NoticeKind::RecordsCut { at: recorded.damaged_at });
    }
    if recorded.lost_records > 0 {
        observer.say(NoticeKind::RecordsLost(recorded.lost_records));
    }
}

/// Finds the image of raw bytes that fits the trace best at another address than the stated one, and moves the image
/// there. Returns whether there is one.
fn place_image(
    session: &mut Session,
    seen: &[SeenBuffer],
    known: &Known,
    observer: &dyn Observer,
) -> Result<bool, OpenError> {
    let mut best = None::<(usize, Place)>;
    for index in 0..session.capture.images.len() {
        let request = session.capture.images[index].clone();
        let ImageKind::Raw { address, .. } = request.kind else { continue };
        if request.scope != Scope::EVERYWHERE {
            continue;
        }
        let sources = seen.iter().zip(&session.capture.buffers).flat_map(|((contents, found), buffer)| {
            found.iter().map(move |found| (&found.source, found.misses_program, contents, buffer))
        });
        let mut misplaced =
            sources.filter(|(source, misses, ..)| *misses && request.is_for(source.core.as_deref()));
        let Some((source, _, contents, buffer)) = misplaced.next() else { continue };
        let Ok(config) = config(source) else { continue };
        let image = session.loader.load(&request)?;
        let bytes = image.segments.first().map(|segment| image.segment_bytes(segment)).unwrap_or_default();
        let sample = contents.sample(source.id, buffer);
        let place = infer::place(&sample, &config, RawImage { address, bytes }, &known.without(&image));
        let is_better =
            |place: &Place| best.as_ref().is_none_or(|(_, best)| best.instructions < place.instructions);
        best = place.filter(is_better).map(|place| (index, place)).or(best);
    }
    let Some((index, place)) = best else { return Ok(false) };
    let Some(request) = session.capture.images.get_mut(index) else { return Ok(false) };
    observer.say(NoticeKind::ImageMoved {
        file: request.file.clone(),
        address: place.address,
        finding: place.finding.clone(),
    });
    if let ImageKind::Raw { address, .. } = &mut request.kind {
        *address = place.address;
    }
    session.image_findings.push((index, place.finding));
    Ok(true)
}
