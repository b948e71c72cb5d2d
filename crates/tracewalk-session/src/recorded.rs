//! The metadata of a perf recording → the images of its programs, and notices about what is missing.

use tracewalk_input::capture::perf::{Binaries, BinaryPlaces, NoBinary, Recorded};
use tracewalk_input::image::{ImageLoader, ImageRequest};

use crate::error::OpenError;
use crate::notice::{ModulesLeftOut, NoticeKind};
use crate::observer::{Observer, Say};

/// The images of the programs that ran. Reports files that were not found, or are not the ones that ran. Gives the
/// contents of archives to `loader`.
pub(crate) fn images(
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
pub(crate) fn say(recorded: &Recorded, observer: &dyn Observer) {
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
