//! How often what of a source's programs ran, for each of their binaries.

use std::sync::Arc;

use tracewalk::program::Program;
use tracewalk_analysis::Code;
use tracewalk_analysis::counts::{Binary, CountedBinary, CountedSource, Counting, Split};
use tracewalk_analysis::programs::ProgramId;
use tracewalk_input::image::{ImageError, Memory, VisibleImage};

use crate::error::RunError;
use crate::model::Source;
use crate::observer::Observer;
use crate::outcome::{Follow, Outcome};
use crate::program::FollowedProgram;
use crate::session::Session;

impl Session {
    /// How often what of each binary ran that a source's program consists of. `name` is what the capture is called in the answer.
    ///
    /// # Errors
    ///
    /// If there is no program, an image cannot be used, or what else was in the capture cannot be opened.
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
        let followed = images.iter().map(|image| followed(image, &outcome.code));
        let programs = followed.collect::<Result<Vec<_>, ImageError>>()?;
        let binaries = images.iter().map(binary).collect::<Vec<_>>();
        let counted = CountedSource {
            capture: name.to_owned(),
            source: source.id.map_or_else(|| "-".to_owned(), |id| id.to_string()),
            protocol: source.config.protocol().to_owned(),
            ..CountedSource::of(&outcome.statistics)
        };
        Ok(outcome.map(|(counts, left_out), code| {
            let counted = CountedSource { left_out, ..counted };
            programs.into_iter().zip(Split::new(&code.program, &binaries).counts(&counts, &counted)).collect()
        }))
    }
}

/// Where an image is in memory.
fn binary(visible: &VisibleImage) -> Binary {
    let VisibleImage { image, scope } = visible;
    let stretches = image.segments.iter().map(|segment| {
        let start = segment.address.get();
        start..start.saturating_add(segment.len() as u64)
    });
    Binary { scope: *scope, stretches: stretches.collect() }
}

/// A binary as a program of its own: `code` is the whole that was followed.
fn followed(visible: &VisibleImage, code: &Arc<Code>) -> Result<FollowedProgram, ImageError> {
    let image = &visible.image;
    let id = match &image.build_id {
        Some(id) => ProgramId::of(&Program::new(), [Some(id.as_slice())]),
        None => ProgramId::of(&alone(visible)?, [None]),
    };
    Ok(FollowedProgram { id, ..FollowedProgram::of_scope(Arc::clone(code), &[Arc::clone(image)]) })
}

/// A program that consists of one image.
fn alone(visible: &VisibleImage) -> Result<Program, ImageError> {
    let mut memory = Memory::default();
    memory.add(Arc::clone(&visible.image))?;
    Ok(memory.program)
}
