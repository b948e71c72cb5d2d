//! What a recording of perf says beside its trace → the images of its programs, and notices about what is not there.

use tracewalk_input::capture::perf::{BinaryPlaces, NoBinary, Recorded};
use tracewalk_input::image::ImageRequest;

use crate::notice::NoticeKind;
use crate::observer::{Observer, Say};

/// The images of the programs that ran. Says which files were not found, or are not the ones that ran.
pub(crate) fn images(
    recorded: &Recorded,
    places: &BinaryPlaces,
    observer: &dyn Observer,
) -> Vec<ImageRequest> {
    let (images, binaries) = recorded.images(places);
    let (mut modules, mut missing) = (0, Vec::new());
    for binary in binaries {
        match binary.file {
            Ok(_) => {}
            // A kernel has hundreds.
            Err(NoBinary::Module) => modules += 1,
            Err(NoBinary::OtherBuildId { .. }) => observer.say(NoticeKind::OtherBinary(Box::new(binary))),
            Err(_) => missing.push(binary),
        }
    }
    if !missing.is_empty() {
        observer.say(NoticeKind::BinariesMissing(missing));
    }
    if modules > 0 {
        observer.say(NoticeKind::ModulesLeftOut(modules));
    }
    images
}

/// Says what of the trace is not in the file.
pub(crate) fn say(recorded: &Recorded, observer: &dyn Observer) {
    let counts = recorded.trace;
    let is_whole = counts.truncated == 0 && counts.partial == 0 && counts.missing == 0;
    if !is_whole || counts.bytes == 0 {
        observer.say(NoticeKind::TraceNotRecorded(counts));
    }
    if counts.mixed_mappings > 0 {
        observer.say(NoticeKind::MappingsMixed(counts.mixed_mappings));
    }
    if recorded.is_cut || recorded.damaged_at.is_some() {
        observer.say(NoticeKind::RecordsCut { at: recorded.damaged_at });
    }
    if recorded.lost_records > 0 {
        observer.say(NoticeKind::RecordsLost(recorded.lost_records));
    }
}
