//! Everything known of the programs, for inference.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tracewalk::ids::Address;
use tracewalk::program::{Program, Scope};
use tracewalk_input::capture::{Capture, SourceDescription};
use tracewalk_input::image::{Image, ImageLoader, Memory};
use tracewalk_input::{Origin, Setting};

use crate::error::OpenError;
use crate::infer::{self, Traced, Unit};
use crate::memory::add_code;
use crate::model::Dumped;
use crate::observer::Observer;
use crate::shared::{ByContent, Shared};

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
