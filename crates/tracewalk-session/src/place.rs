//! Images of raw bytes whose address differs from the stated one.

use tracewalk::program::Scope;
use tracewalk_input::image::ImageKind;

use crate::config::config;
use crate::error::OpenError;
use crate::infer::{self, Place, RawImage};
use crate::known::Known;
use crate::model::SeenBuffer;
use crate::notice::NoticeKind;
use crate::observer::{Observer, Say};
use crate::session::Session;

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
