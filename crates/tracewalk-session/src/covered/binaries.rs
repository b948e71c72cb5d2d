//! The coverage of memory → the coverage of each binary, at the addresses of the binary's own symbols. The processes
//! that mapped the file, and the addresses at which they did, are left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use tracewalk::ids::Address;
use tracewalk::program::Scope;
use tracewalk_analysis::coverage::{BlockCounts, BlockKey, Part, ProgramCoverage, SourceSummary};
use tracewalk_input::image::{Image, ImageError, Memory, VisibleImage};

use crate::code::Reader;
use crate::model::Source;
use crate::observer::Observer;
use crate::outcome::Follow;
use crate::program::FollowedProgram;
use crate::session::Session;

/// The binaries of a source's program.
pub(super) struct Binaries(Vec<Binary>);

/// A file, and its mappings.
struct Binary {
    program: FollowedProgram,
    /// The image as linked; if that is unknown, the image at its only address in memory.
    linked: Arc<Image>,
    mapped: Vec<VisibleImage>,
}

impl Binaries {
    /// The binaries of a source's program, each with names and lines of its own.
    ///
    /// # Errors
    ///
    /// If an image cannot be used.
    pub(super) fn of(
        session: &mut Session,
        source: &Source,
        how: &Follow,
        observer: &dyn Observer,
    ) -> Result<Self, ImageError> {
        let mut files: Vec<(Arc<Image>, Vec<VisibleImage>)> = Vec::new();
        for visible in session.images(source)? {
            // A file may be mapped several times, and under several names if it was copied.
            let is_it = |linked: &Arc<Image>, image: &Image| {
                let is_same = linked.file == image.file
                    || linked.build_id.is_some() && linked.build_id == image.build_id;
                is_same && visible.image.overlaps(linked)
            };
            let known = files.iter().position(|(linked, _)| is_it(linked, &visible.image));
            let linked = known.is_none().then(|| visible.image.linked()).flatten();
            let known = known.or_else(|| {
                let linked = linked.as_ref()?;
                files.iter().position(|(known, _)| is_it(known, linked))
            });
            match known.and_then(|known| files.get_mut(known)) {
                Some((_, mapped)) => mapped.push(visible),
                None => {
                    let linked = linked.map_or_else(|| Arc::clone(&visible.image), Arc::new);
                    files.push((linked, vec![visible]));
                }
            }
        }
        let reader = Reader {
            profile: source.profile(),
            interrupts: session.interrupts.clone(),
            threads: BTreeMap::new(),
            source_dirs: how.names.as_deref(),
        };
        let limit = session.request.limit.shared_by(files.len());
        let binaries = files.into_iter().map(|(linked, mapped)| {
            let mut memory = Memory { limit, ..Memory::default() };
            memory.add(Arc::clone(&linked))?;
            let code = reader.code(&memory, observer);
            let program = FollowedProgram::of_scope(code, &[Arc::clone(&linked)]);
            Ok(Binary { program, linked, mapped })
        });
        Ok(Self(binaries.collect::<Result<_, _>>()?))
    }

    /// Splits the coverage of what each scope sees into the coverage of each binary.
    pub(super) fn split(
        self,
        found: impl Iterator<Item = (Scope, (FollowedProgram, ProgramCoverage))>,
    ) -> Vec<(FollowedProgram, ProgramCoverage)> {
        let mut blocks = self.0.iter().map(|_| BlockCounts::new()).collect::<Vec<_>>();
        let mut whole: Option<SourceSummary> = None;
        for (scope, (_, coverage)) in found {
            for source in coverage.sources {
                match &mut whole {
                    None => whole = Some(source),
                    // All scopes saw the same trace.
                    Some(whole) => {
                        whole.losses.in_doubt.add(source.losses.in_doubt);
                        let uncommitted = &mut whole.losses.uncommitted;
                        *uncommitted = uncommitted.saturating_add(source.losses.uncommitted);
                    }
                }
            }
            for (block, count) in coverage.blocks {
                let moved = self
                    .0
                    .iter()
                    .enumerate()
                    .find_map(|(index, binary)| Some((index, binary.linked(scope, block)?)));
                if let Some((blocks, block)) =
                    moved.and_then(|(index, block)| Some((blocks.get_mut(index)?, block)))
                {
                    let sum = blocks.entry(block).or_default();
                    *sum = sum.saturating_add(count);
                }
            }
        }
        let Some(source) = whole else { return Vec::new() };
        let coverage = |(Binary { program, .. }, blocks)| {
            let coverage = ProgramCoverage::of_one(Part { source: source.clone(), blocks }, &program.code);
            (program, coverage)
        };
        self.0.into_iter().zip(blocks).map(coverage).collect()
    }
}

impl Binary {
    /// The block at its place in the file; `None` if the code in this scope belongs to another binary.
    fn linked(&self, scope: Scope, block: BlockKey) -> Option<BlockKey> {
        let mut mapped = self.mapped.iter().filter(|visible| visible.scope == scope);
        let start = mapped.find_map(|visible| visible.image.address_in(&self.linked, block.start))?;
        let length = block.end.get().wrapping_sub(block.start.get());
        let end = Address::new(start.get().wrapping_add(length));
        Some(BlockKey { start, end, ..block })
    }
}
