//! Execution counts of a source's programs, for each of their binaries.

use std::sync::Arc;

use tracewalk::program::Program;
use tracewalk_analysis::Code;
use tracewalk_analysis::counts::{Binary, Counted, CountedBinary, CountedSource, Counting, Split};
use tracewalk_analysis::programs::ProgramId;
use tracewalk_input::image::{Image, ImageError, Memory, VisibleImage};

use crate::error::RunError;
use crate::model::Source;
use crate::observer::Observer;
use crate::outcome::{Follow, Outcome};
use crate::program::FollowedProgram;
use crate::session::Session;
use crate::shared::{ByContent, Identified, Shared};

impl Session {
    /// Execution counts of each binary in a source's program. `name` is the capture's name in the answer.
    ///
    /// # Errors
    ///
    /// If there is no program, an image cannot be used, or the rest of the capture cannot be opened.
    pub fn counts(
        &mut self,
        source: &Source,
        how: &Follow,
        name: &str,
        observer: &dyn Observer,
    ) -> Result<Outcome<Vec<(FollowedProgram, CountedBinary)>>, RunError> {
        let images = self.images(source)?;
        if images.is_empty() {
            return Err(RunError::NoProgram);
        }
        let outcome = self.run_observed(source, how, Counting::default(), observer)?;
        let binaries = images.iter().map(binary).collect::<Vec<_>>();
        let files = images.iter().map(File::of).collect::<Vec<_>>();
        let shared = &self.shared;
        let followed = files.iter().map(|file| file.followed(&outcome.code, shared));
        let programs = followed.collect::<Result<Vec<_>, ImageError>>()?;
        let counted = CountedSource {
            capture: name.to_owned(),
            source: source.id.map_or_else(|| "-".to_owned(), |id| id.to_string()),
            protocol: source.config.protocol().to_owned(),
            ..CountedSource::of(&outcome.statistics)
        };
        Ok(outcome.map(|Counted { counts, left_out, uncommitted }, code| {
            let counted = CountedSource { left_out, uncommitted, ..counted };
            let counts = Split::new(&code.program, &binaries).counts(&counts, &counted);
            let linked = counts.into_iter().zip(&files).map(|(found, file)| file.linked(found));
            programs.into_iter().zip(linked).collect()
        }))
    }
}

/// The memory that an image occupies.
fn binary(visible: &VisibleImage) -> Binary {
    let VisibleImage { image, scope } = visible;
    let stretches = image.segments.iter().map(|segment| {
        let start = segment.address.get();
        start..start.saturating_add(segment.len() as u64)
    });
    Binary { scope: *scope, stretches: stretches.collect() }
}

/// The file of an image.
struct File<'a> {
    visible: &'a VisibleImage,
    /// The image as linked, if it was mapped at another address.
    linked: Option<Image>,
}

impl<'a> File<'a> {
    fn of(visible: &'a VisibleImage) -> Self {
        Self { visible, linked: visible.image.linked() }
    }

    /// The file as a program of its own. `code` is the whole program that was followed.
    fn followed(&self, code: &Arc<Code>, shared: &Shared) -> Result<FollowedProgram, ImageError> {
        let image = &self.visible.image;
        let linked = self.linked.as_ref().unwrap_or(image);
        let of_code = || {
            let mut memory = Memory::default();
            memory.add(Arc::new(linked.clone()))?;
            Ok(ProgramId::of(&memory.program, [None]))
        };
        let id = match &linked.build_id {
            Some(id) => ProgramId::of(&Program::new(), [Some(id.as_slice())]),
            None => shared.program_id(Identified::File(ByContent::of(image)), of_code)?,
        };
        Ok(FollowedProgram::new(id, Arc::clone(code), std::iter::once(image)))
    }

    /// The counts at the addresses of the file's own symbols.
    fn linked(&self, found: CountedBinary) -> CountedBinary {
        let Some(linked) = &self.linked else {
            // The start of the file, because its headers may precede the code.
            let base = self.visible.image.load_address().or(found.base);
            return CountedBinary { base, ..found };
        };
        let moved = found.moved(|address| self.visible.image.address_in(linked, address));
        CountedBinary { base: linked.load_address().or(moved.base), ..moved }
    }
}
