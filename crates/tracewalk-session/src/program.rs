//! The programs that sources were followed in, with their identities, and everything known of them for inference.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracewalk::ids::Address;
use tracewalk::plain::plain;
use tracewalk::program::{Program, Scope};
use tracewalk_analysis::Code;
use tracewalk_analysis::programs::ProgramId;
use tracewalk_input::capture::{Capture, SourceDescription};
use tracewalk_input::image::{Image, ImageError, ImageForm, ImageLoader, Memory, VisibleImage};
use tracewalk_input::{Origin, Setting, cpu};

use crate::code::{Reader, source_files, without_names};
use crate::error::OpenError;
use crate::infer::{self, Traced, Unit};
use crate::memory::add_code;
use crate::model::{Dumped, Source};
use crate::notice::NoticeKind;
use crate::observer::{Observer, Say as _};
use crate::open::interrupts;
use crate::request::Request;
use crate::session::Session;
use crate::shared::{ByContent, Identified, Shared};

/// A program that a source was followed in.
#[derive(Clone, Debug)]
pub struct FollowedProgram {
    /// The program's identity: its build IDs, or a hash of its code.
    pub id: ProgramId,
    /// The program.
    pub code: Arc<Code>,
    /// The names of its files, without the folders, which differ from one machine to the next.
    pub images: BTreeSet<String>,
}

impl PartialEq for FollowedProgram {
    /// Programs of one identity have the same code.
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.images == other.images
    }
}

impl Session {
    /// Reports if no program has source lines.
    ///
    /// # Errors
    ///
    /// If an image cannot be read.
    pub fn check_lines(
        &mut self,
        source_dirs: &[PathBuf],
        observer: &dyn Observer,
    ) -> Result<(), ImageError> {
        let mut without = None;
        for source in self.sources.clone() {
            let code = self.code(&source, Some(source_dirs), observer)?;
            let views = code.views.values().map(|view| &view.symbols);
            if views.chain([&code.symbols]).any(|symbols| symbols.has_lines()) {
                return Ok(());
            }
            let memory = self.memory(&source, source.profile())?;
            // Other notices cover hexadecimal records and a missing program.
            if without_names(&memory).is_none() {
                without = without.or(memory.images.first().map(|visible| visible.image.file.clone()));
            }
        }
        if let Some(file) = without {
            observer.say(NoticeKind::NoLines { file });
        }
        Ok(())
    }

    /// The program of a source, as it was followed; an empty one if it is not the traced program.
    ///
    /// # Errors
    ///
    /// If an image cannot be used.
    pub fn followed(&mut self, source: &Source, code: &Arc<Code>) -> Result<FollowedProgram, ImageError> {
        let images = if code.program.is_empty() { Vec::new() } else { self.images(source)? };
        let work_out = || Ok(FollowedProgram::of_all(Arc::clone(code), &images).id);
        let id = if code.program.is_empty() {
            work_out()?
        } else {
            self.shared.program_id(Identified::Program(ByContent::scoped(&images)), work_out)?
        };
        Ok(FollowedProgram::new(id, Arc::clone(code), images.iter().map(|visible| &visible.image)))
    }
}

impl FollowedProgram {
    /// The programs of a request's images, without any capture: the whole, and the part that is visible in each scope
    /// of the images.
    ///
    /// # Errors
    ///
    /// If an image or the chip's description cannot be used.
    pub fn of_images(
        request: &Request,
        source_dirs: &[PathBuf],
        observer: &dyn Observer,
    ) -> Result<Vec<Self>, OpenError> {
        let interrupts = interrupts(request, observer)?;
        let memory = ImageLoader::within(request.limit).memory(&request.images)?;
        let threads = BTreeMap::new();
        let reader = Reader { profile: None, interrupts, threads, source_dirs: Some(source_dirs) };
        let mut programs = vec![Self::of_all(reader.code(&memory, observer), &memory.images)];
        if memory.program.scopes().next().is_some() {
            for scope in std::iter::once(Scope::EVERYWHERE).chain(memory.program.scopes()) {
                let memory = memory.of_scope(scope);
                let images = memory.images.iter().map(|visible| Arc::clone(&visible.image));
                let images = images.collect::<Vec<_>>();
                if !images.is_empty() {
                    programs.push(Self::of_scope(reader.code(&memory, observer), &images));
                }
            }
        }
        Ok(programs)
    }

    /// The source files that the debug information of a request's images names, without any capture: see
    /// [`Session::source_files`].
    #[must_use]
    pub fn source_files(request: &Request, directories: &[PathBuf]) -> BTreeSet<PathBuf> {
        source_files(&request.images, &mut ImageLoader::within(request.limit), directories)
    }

    /// A whole program, with the code that is visible only in some contexts.
    pub(crate) fn of_all(code: Arc<Code>, images: &[VisibleImage]) -> Self {
        let images = images.iter().map(|visible| &visible.image);
        Self::new(ProgramId::of_all(&code.program, build_ids(images.clone())), code, images)
    }

    /// The part of a program that is visible in one scope.
    pub(crate) fn of_scope(code: Arc<Code>, images: &[Arc<Image>]) -> Self {
        Self::new(ProgramId::of(&code.program, build_ids(images.iter())), code, images.iter())
    }

    /// A program with a known identity, made of these images.
    pub(crate) fn new<'a>(
        id: ProgramId,
        code: Arc<Code>,
        images: impl Iterator<Item = &'a Arc<Image>>,
    ) -> Self {
        let name = |image: &Arc<Image>| Some(plain(image.file.file_name()?.to_string_lossy()).into_owned());
        Self { id, code, images: images.filter_map(name).collect() }
    }
}

fn build_ids<'a>(images: impl Iterator<Item = &'a Arc<Image>>) -> impl Iterator<Item = Option<&'a [u8]>> {
    images.map(|image| image.build_id.as_deref())
}

/// The programs of all cores, and the trace units that they may have been traced with.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The images of all cores together, except those that conflict.
    pub(crate) everything: OfCore,
    /// The images of each core that a source names.
    cores: BTreeMap<String, OfCore>,
    pub(crate) units: Vec<Unit>,
    shared: Shared,
}

/// The memory that a core sees, and its program as sessions share it.
#[derive(Debug, Default)]
pub(crate) struct OfCore {
    pub(crate) memory: Memory,
    pub(crate) program: Arc<Program>,
}

impl OfCore {
    fn of(memory: Memory, shared: &Shared) -> Self {
        let program = shared.program(ByContent::scoped(&memory.images), || memory.program.clone());
        Self { memory, program }
    }
}

impl Known {
    /// The programs of the images, and of the memory that captures describe. Notices about the latter go to `observer`.
    pub(crate) fn of(
        loader: &mut ImageLoader,
        capture: &Capture,
        dumps: &[Option<Dumped>],
        shared: &Shared,
        observer: Option<&dyn Observer>,
    ) -> Result<Self, OpenError> {
        let mut everything = every_image(loader, capture)?;
        for dump in dumps.iter().flatten() {
            add_code(dump, &mut everything, observer);
        }
        let mut cores = BTreeMap::new();
        for source in capture.sources() {
            let Some(core) = source.core.as_ref().filter(|core| !cores.contains_key(*core)) else { continue };
            // Problems of the images are reported when the source is decoded.
            if let Ok(mut memory) = loader.memory(capture.images_for(source)) {
                dumps.iter().flatten().for_each(|dump| add_code(dump, &mut memory, None));
                cores.insert(core.clone(), OfCore::of(memory, shared));
            }
        }
        let units = infer::units(&everything);
        Ok(Self { everything: OfCore::of(everything, shared), cores, units, shared: shared.clone() })
    }

    /// The program that a source traced.
    pub(crate) fn program(&self, source: &SourceDescription) -> &Program {
        &self.of_core(source).program
    }

    /// The program that a source traced, with what was learned of it.
    pub(crate) fn traced(&self, source: &SourceDescription) -> Traced<'_> {
        Traced::new(&self.of_core(source).program, &self.shared)
    }

    /// The program of all cores, with what was learned of it.
    pub(crate) fn traced_by_any(&self) -> Traced<'_> {
        Traced::new(&self.everything.program, &self.shared)
    }

    fn of_core(&self, source: &SourceDescription) -> &OfCore {
        let of_core = source.core.as_ref().and_then(|core| self.cores.get(core));
        of_core.unwrap_or(&self.everything)
    }

    /// The file with the code at `address` for a scope.
    pub(crate) fn file_at(
        &self,
        source: &SourceDescription,
        address: Address,
        scope: Scope,
    ) -> Option<&Path> {
        let (image, _) = self.of_core(source).memory.given_by(address, scope)?;
        Some(&image.file)
    }

    /// The first image's file, if this source's processor can have executed none of the images.
    pub(crate) fn foreign_image(&self, source: &Source) -> Option<PathBuf> {
        let is_m = |profile| profile == cpu::Profile::M;
        let is_foreign = |image: &Image| match (image.attributes.profile, source.profile()) {
            _ if image.form == ImageForm::Elf64 => !source.may_run_a64(),
            (Some(built_for), Some(traced)) => is_m(built_for) != is_m(traced),
            _ => false,
        };
        let images = &self.of_core(&source.description).memory.images;
        let first = images.first().filter(|_| images.iter().all(|visible| is_foreign(&visible.image)))?;
        Some(first.image.file.clone())
    }

    /// The program without one image.
    pub(crate) fn without(&self, image: &Arc<Image>) -> Program {
        let mut memory = Memory::default();
        for other in self.everything.memory.images.iter().filter(|other| !Arc::ptr_eq(&other.image, image)) {
            // These images did not conflict before.
            let _ = memory.add_in(Arc::clone(&other.image), other.scope);
        }
        memory.program
    }
}

/// The images of all cores together, except those that conflict.
pub(crate) fn every_image(loader: &mut ImageLoader, capture: &Capture) -> Result<Memory, OpenError> {
    if let Ok(memory) = loader.memory(&capture.images) {
        return Ok(memory);
    }
    let mut memory = Memory::default();
    for request in &capture.images {
        match loader.load(request) {
            // Cores may have different memories at the same address; each core's own program then has the right one.
            Ok(image) => drop(memory.add_in(image, request.scope)),
            Err(error) if request.origin == Origin::Stated(Setting::Image) => return Err(error.into()),
            // The image may belong to a core that was not traced.
            Err(_) => {}
        }
    }
    Ok(memory)
}
