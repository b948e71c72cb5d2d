//! The contents of a buffer: its container and its sources, as far as they are stated or can be inferred.

use tracewalk::ids::TraceId;
use tracewalk_input::capture::Buffer;

use crate::error::OpenError;
use crate::keep::Keep;
use crate::known::Known;
use crate::model::{Contents, SeenBuffer};
use crate::request::{Policy, Request};
use crate::strict;

/// Finds the containers and the sources of all buffers.
pub(crate) fn look(
    buffers: &[Buffer],
    request: &Request,
    known: &Known,
    keep: Option<&dyn Keep>,
) -> Result<Vec<SeenBuffer>, OpenError> {
    buffers.iter().map(|buffer| look_at(buffer, request, known, keep)).collect()
}

/// Finds the container and the sources of a buffer.
pub(crate) fn look_at(
    buffer: &Buffer,
    request: &Request,
    known: &Known,
    keep: Option<&dyn Keep>,
) -> Result<SeenBuffer, OpenError> {
    let ids = &request.ids;
    let is_wanted = |id: Option<TraceId>| ids.is_empty() || id.is_some_and(|id| ids.contains(&id));
    let is_strict = request.policy == Policy::Strict;
    if is_strict {
        strict::check_container(buffer)?;
    }
    let contents = Contents::of(buffer, request.policy, known, keep);
    let mut found = if is_strict {
        strict::sources(buffer, &contents, ids)?
    } else {
        contents.identify(buffer, ids, known)
    };
    found.retain(|found| is_wanted(found.source.id));
    let sources = found.iter().map(|found| found.source.clone()).collect();
    Ok((Contents { sources, ..contents }, found))
}
