//! Everything known of the programs, for inference.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracewalk::ids::Address;
use tracewalk::program::{Program, Scope};
use tracewalk::source::SourceConfig;
use tracewalk_analysis::drive::{Follower, Learned};
use tracewalk_input::Origin;
use tracewalk_input::capture::{Capture, SourceDescription};
use tracewalk_input::image::{Image, ImageLoader, Memory};

use crate::error::OpenError;
use crate::infer::{self, Learning, Traced, Unit};
use crate::memory::add_code;
use crate::model::Dumped;
use crate::observer::Observer;
use crate::shared::{ByContent, Shared, SharedProgram};

/// The programs of all cores, and the trace units that they may have been traced with.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The images of all cores together, except those that conflict.
    pub(crate) everything: Memory,
    /// The images of each core that a source names.
    cores: BTreeMap<String, Memory>,
    pub(crate) units: Vec<Unit>,
    /// The programs that sessions share; `None` if they share none.
    common: Option<Common>,
    /// The effects that this session learned of the programs, if it shares none.
    own: Own,
}

/// The effects that a session learned of its programs before it answers.
#[derive(Debug, Default)]
struct Own {
    everything: OwnEffects,
    cores: BTreeMap<String, OwnEffects>,
}

/// The effects learned of one program, one for each configuration.
#[derive(Debug, Default)]
struct OwnEffects(Mutex<Vec<(SourceConfig, Learned)>>);

impl OwnEffects {
    fn take(&self, config: &SourceConfig) -> Option<Learned> {
        let mut all = self.all();
        let at = all.iter().position(|(known, _)| known == config)?;
        Some(all.swap_remove(at).1)
    }

    fn all(&self) -> MutexGuard<'_, Vec<(SourceConfig, Learned)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Learning for OwnEffects {
    fn follower<'p>(&'p self, config: &'p SourceConfig, program: &'p Program) -> Follower<'p> {
        match self.take(config) {
            Some(learned) => Follower::knowing(config, program, learned),
            None => Follower::new(config, program),
        }
    }

    fn keep(&self, config: &SourceConfig, learned: Learned) {
        self.all().push((config.clone(), learned));
    }
}

/// Programs that sessions share, made from the images alone.
#[derive(Debug)]
struct Common {
    everything: SharedProgram,
    cores: BTreeMap<String, SharedProgram>,
}

impl Common {
    fn of(shared: &Shared, everything: &Memory, cores: &BTreeMap<String, Memory>) -> Self {
        let program =
            |memory: &Memory| shared.program(ByContent::scoped(&memory.images), || memory.program.clone());
        Self {
            everything: program(everything),
            cores: cores.iter().map(|(core, memory)| (core.clone(), program(memory))).collect(),
        }
    }
}

impl Known {
    /// The programs of the images, and of the memory that captures describe. Notices about the latter go to `observer`.
    pub(crate) fn of(
        loader: &mut ImageLoader,
        capture: &Capture,
        dumps: &[Option<Dumped>],
        shared: Option<&Shared>,
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
                cores.insert(core.clone(), memory);
            }
        }
        let units = infer::units(&everything);
        let common = shared.map(|shared| Common::of(shared, &everything, &cores));
        let own = cores.keys().map(|core| (core.clone(), OwnEffects::default()));
        let own = Own { cores: own.collect(), ..Own::default() };
        Ok(Self { everything, cores, units, common, own })
    }

    /// The program that a source traced.
    pub(crate) fn program(&self, source: &SourceDescription) -> &Program {
        let of_core = source.core.as_ref().and_then(|core| self.cores.get(core));
        &of_core.unwrap_or(&self.everything).program
    }

    /// The program that a source traced, with what was learned of it.
    pub(crate) fn traced(&self, source: &SourceDescription) -> Traced<'_> {
        let effects = match &self.common {
            Some(common) => {
                let of_core = source.core.as_ref().and_then(|core| common.cores.get(core));
                of_core.unwrap_or(&common.everything) as &dyn Learning
            }
            None => self.own(source),
        };
        Traced::new(self.program(source), effects)
    }

    /// The program of all cores, with what was learned of it.
    pub(crate) fn traced_by_any(&self) -> Traced<'_> {
        let effects = match &self.common {
            Some(common) => &common.everything as &dyn Learning,
            None => &self.own.everything,
        };
        Traced::new(&self.everything.program, effects)
    }

    /// A follower of a source in `program`: with the effects that the session has learned, if it learned them of an equal one.
    pub(crate) fn follower<'p>(
        &'p self,
        source: &SourceDescription,
        config: &'p SourceConfig,
        program: &'p Program,
    ) -> Follower<'p> {
        match self.is_program_of(source, program) {
            true => self.own(source).follower(config, program),
            false => Follower::new(config, program),
        }
    }

    /// Keeps the effects that a follower of the source learned, for the next one.
    pub(crate) fn keep(
        &self,
        source: &SourceDescription,
        config: &SourceConfig,
        program: &Program,
        learned: Learned,
    ) {
        if self.is_program_of(source, program) {
            self.own(source).keep(config, learned);
        }
    }

    /// Whether `program` equals the one that the source traced.
    pub(crate) fn is_program_of(&self, source: &SourceDescription, program: &Program) -> bool {
        is_same(self.program(source), program)
    }

    fn own(&self, source: &SourceDescription) -> &OwnEffects {
        let of_core = source.core.as_ref().and_then(|core| self.own.cores.get(core));
        of_core.unwrap_or(&self.own.everything)
    }

    /// The file with the code at `address` for a scope.
    pub(crate) fn file_at(
        &self,
        source: &SourceDescription,
        address: Address,
        scope: Scope,
    ) -> Option<&Path> {
        let of_core = source.core.as_ref().and_then(|core| self.cores.get(core));
        let (image, _) = of_core.unwrap_or(&self.everything).given_by(address, scope)?;
        Some(&image.file)
    }

    /// The program without one image.
    pub(crate) fn without(&self, image: &Arc<Image>) -> Program {
        let mut memory = Memory::default();
        for other in self.everything.images.iter().filter(|other| !Arc::ptr_eq(&other.image, image)) {
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
            Err(error) if request.origin == Origin::Option("--image") => return Err(error.into()),
            // The image may belong to a core that was not traced.
            Err(_) => {}
        }
    }
    Ok(memory)
}

/// Whether contexts see the same bytes at the same places in two programs. The place of the vector table is not compared: only an
/// MTB uses it, and none is followed at opening.
fn is_same(one: &Program, other: &Program) -> bool {
    fn all(program: &Program) -> impl Iterator<Item = (Scope, Address, &[u8])> {
        program.all_regions().map(|(scope, region)| (scope, region.start(), region.bytes()))
    }
    one.leaves_out_address_spaces() == other.leaves_out_address_spaces() && all(one).eq(all(other))
}
