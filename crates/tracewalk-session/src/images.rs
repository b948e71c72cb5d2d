//! The images of a capture: those of a perf recording, and those of raw bytes whose address differs from the stated one.

use tracewalk::program::Scope;
use tracewalk_input::capture::perf::{Binaries, BinaryPlaces, NoBinary, Recorded};
use tracewalk_input::image::{ImageKind, ImageLoader, ImageRequest};

use crate::error::OpenError;
use crate::infer::{self, Place, RawImage};
use crate::known::Known;
use crate::model::SeenBuffer;
use crate::notice::{ModulesLeftOut, NoticeKind};
use crate::observer::{Observer, Say};
use crate::session::Session;
use crate::sources::config;

/// The images of the programs that ran. Reports files that were not found, or are not the ones that ran. Gives the
/// contents of archives to `loader`.
pub(crate) fn recorded(
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
pub(crate) fn say_recorded(recorded: &Recorded, observer: &dyn Observer) {
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
pub(crate) fn place_image(
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
