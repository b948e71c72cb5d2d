//! The programs that sources were followed in, and their identities.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use tracewalk::plain::plain;
use tracewalk::program::Scope;
use tracewalk_analysis::Code;
use tracewalk_analysis::programs::ProgramId;
use tracewalk_input::image::{Image, ImageError, ImageLoader, VisibleImage};

use crate::code::{Reader, source_files, without_names};
use crate::error::OpenError;
use crate::model::Source;
use crate::notice::NoticeKind;
use crate::observer::{Observer, Say as _};
use crate::open::interrupts;
use crate::request::Request;
use crate::session::Session;
use crate::shared::{ByContent, Identified};

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
    fn of_all(code: Arc<Code>, images: &[VisibleImage]) -> Self {
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
