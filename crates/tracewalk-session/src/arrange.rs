//! Buffers whose bytes are not in the order in which they were traced: inferred by trying other orders.

use std::collections::BTreeSet;
use std::io;

use tracewalk::flow::{Element, Gap, GapReason};
use tracewalk::frame::Framing;
use tracewalk::ids::TraceId;
use tracewalk_analysis::Statistics;
use tracewalk_analysis::drive::{Carrier, Input, NoProgress};
use tracewalk_analysis::record::FlowRecord;
use tracewalk_input::capture::{Arrangement, Buffer, Container, SourceDescription};
use tracewalk_input::{Origin, Stated};

use crate::contents::look_at;
use crate::error::OpenError;
use crate::infer::{self, Answer, Certainty, Finding, Seam};
use crate::model::{Identified, OLDEST_BYTE, SeenBuffer};
use crate::program::Known;
use crate::request::Request;
use crate::sources::config;

/// The largest trace buffer of a chip. The size of such a buffer is a power of two.
const LARGEST_BUFFER: usize = 4 << 20;

/// Rearranges the bytes of each buffer that makes sense only in another order.
pub(crate) fn arrange(
    buffers: &mut [Buffer],
    request: &Request,
    known: &Known,
    seen: &mut [SeenBuffer],
) -> Result<(), OpenError> {
    for index in 0..buffers.len() {
        // A statement that the first byte is the oldest one is trusted.
        let is_open =
            |buffer: &&Buffer| buffer.arrangement == Arrangement::default() && buffer.parts.is_none();
        let Some(buffer) = buffers.get(index).filter(is_open) else {
            continue;
        };
        let Some(before) = seen.get(index) else { continue };
        let found = if makes_no_sense(before) {
            swapped(buffer, request, known)?
        } else if was_not_filled(buffer) {
            None
        } else {
            match turned(buffer, before, request, known)? {
                Some(found) => Some(found),
                None => turned_by_rhythm(buffer, before, request, known)?,
            }
        };
        if let (Some((arranged, contents)), Some(buffer), Some(seen)) =
            (found, buffers.get_mut(index), seen.get_mut(index))
        {
            *buffer = arranged;
            *seen = contents;
        }
    }
    Ok(())
}

/// Whether a buffer begins or ends with more zeros than an A-sync has: it did not wrap.
fn was_not_filled(buffer: &Buffer) -> bool {
    const ZEROS: [u8; 65] = [0; 65];
    buffer.bytes.starts_with(&ZEROS) || buffer.bytes.ends_with(&ZEROS)
}

/// The buffer with the bytes of each word in the other order, if that makes sense.
fn swapped(
    buffer: &Buffer,
    request: &Request,
    known: &Known,
) -> Result<Option<(Buffer, SeenBuffer)>, OpenError> {
    /// The bytes that are tried: if they make no sense, neither does the whole, and a copy of the whole may not fit
    /// into memory.
    const HEAD: usize = 1 << 20;
    let swapped_words = Some(Stated::new(true, Origin::Detected));
    let arrangement = Arrangement { swapped_words, ..Arrangement::default() };
    if let Some(head) = buffer.bytes.get(..HEAD) {
        let head = Buffer { bytes: head.to_vec().into(), ..buffer.clone() };
        let Some(head) = arranged(&head, arrangement.clone()) else { return Ok(None) };
        if makes_no_sense(&look_at(&head, request, known, None)?) {
            return Ok(None);
        }
    }
    let Some(arranged) = arranged(buffer, arrangement) else { return Ok(None) };
    let mut seen = look_at(&arranged, request, known, None)?;
    if makes_no_sense(&seen) {
        return Ok(None);
    }
    let evidence = seen
        .0
        .findings
        .first()
        .map_or_else(|| "the described sources".to_owned(), |finding| finding.best.evidence.clone());
    seen.0.findings.push(Finding {
        about: "byte order in words",
        best: Answer::new("swapped", evidence),
        runner_up: Some(Answer::new("as stored", "nothing was recognised")),
        certainty: Certainty::Certain,
    });
    Ok(Some((arranged, seen)))
}

/// The buffer from its oldest byte on, if it wrapped and was read from its first address on. The sources of such a
/// buffer break off somewhere in the middle and continue from the last byte to the first.
fn turned(
    buffer: &Buffer,
    seen: &SeenBuffer,
    request: &Request,
    known: &Known,
) -> Result<Option<(Buffer, SeenBuffer)>, OpenError> {
    /// How far before the first error, in frames, the break may be. Bytes after the break may look like packets.
    const FRAMES_BEFORE: usize = 32;
    const ENOUGH_JOINED: u64 = 128;
    const FRAME: usize = tracewalk::frame::FRAME_BYTES;
    let is_buffer = buffer.bytes.len().is_power_of_two() && buffer.bytes.len() <= LARGEST_BUFFER;
    let frames = seen
        .0
        .frames
        .as_ref()
        .filter(|frames| frames.framing == Framing::Buffer && frames.discontinuities == 0);
    if !is_buffer || frames.is_none() || known.everything.program.is_empty() {
        return Ok(None);
    }
    // The bytes before the first synchronisation in the file are read after the file's last byte then. If they did not
    // belong there, they would hardly fit the program, unless there are few of them.
    if before_first(buffer, &seen.1, known) < ENOUGH_JOINED {
        return Ok(None);
    }
    // One break causes one error in each source, or a few.
    let as_read = errors(buffer, &seen.1, known, 4 * seen.1.len().max(1));
    let Some((as_read, first)) = as_read.and_then(|errors| Some((errors, errors.first?))) else {
        return Ok(None);
    };
    let mut best = None::<(Errors, Buffer)>;
    let frame = usize::try_from(first).unwrap_or(usize::MAX) / FRAME;
    for frame in (frame.saturating_sub(FRAMES_BEFORE).max(1)..=frame.saturating_add(1)).rev() {
        let read_pointer = Some(Stated::new((frame * FRAME) as u64, Origin::Detected));
        let arrangement = Arrangement { read_pointer, ..Arrangement::default() };
        let Some(turned) = arranged(buffer, arrangement) else { continue };
        // The break itself is now at the start and causes no error.
        let most = best.as_ref().map_or(as_read.count / 2, |(best, _)| best.count - 1);
        let Some(errors) = errors(&turned, &seen.1, known, most) else { continue };
        let is_best = errors.count == 0;
        best = Some((errors, turned));
        if is_best {
            break;
        }
    }
    let Some((errors, turned)) = best else { return Ok(None) };
    let Some(pointer) = turned.arrangement.read_pointer.as_ref() else { return Ok(None) };
    let finding = Finding {
        about: OLDEST_BYTE,
        best: Answer::new(format!("at {:#x}", pointer.value), errors),
        runner_up: Some(Answer::new("the first one", as_read)),
        certainty: Certainty::Certain,
    };
    let mut seen = look_at(&turned, request, known, None)?;
    seen.0.findings.push(finding);
    Ok(Some((turned, seen)))
}

/// The buffer from about its oldest byte on, if the distances between A-syncs alone show that it wrapped.
fn turned_by_rhythm(
    buffer: &Buffer,
    (contents, found): &SeenBuffer,
    request: &Request,
    known: &Known,
) -> Result<Option<(Buffer, SeenBuffer)>, OpenError> {
    /// Buffers for trace are allocated in such pieces. A file that lost bytes to damage rarely has such a size.
    const PIECE: usize = 1 << 10;
    /// A larger file is not a buffer but a longer recording.
    const LARGEST: usize = 64 << 20;
    let length = buffer.bytes.len();
    let in_frames = match &contents.frames {
        Some(frames) if frames.framing == Framing::Buffer && frames.discontinuities == 0 => true,
        None if contents.container.value == Container::Raw && !found.is_empty() => false,
        _ => return Ok(None),
    };
    if !length.is_multiple_of(PIECE) || length > LARGEST || buffer.wires.is_some() {
        return Ok(None);
    }
    let Some(seam) = infer::seam(&buffer.bytes, in_frames) else { return Ok(None) };
    let Seam { first, last, sources, distance } = seam;
    let read_pointer = Some(Stated::new(first as u64, Origin::Detected));
    let Some(turned) = arranged(buffer, Arrangement { read_pointer, ..Arrangement::default() }) else {
        return Ok(None);
    };
    let of = if sources == 1 { "one source".to_owned() } else { format!("{sources} sources") };
    let evidence = format!(
        "across the end of the file A-syncs of {of} keep their distance of about {distance} bytes, and one \
         distance differs"
    );
    let (runner_up, certainty) = if first == last {
        (Answer::new("the first one", "one distance differs"), Certainty::Certain)
    } else {
        let left_out = format!("the last bytes traced, up to {}, are left out", last - first);
        (Answer::new(format!("one up to {last:#x}"), left_out), Certainty::Doubtful)
    };
    let finding = Finding {
        about: OLDEST_BYTE,
        best: Answer::new(format!("at {first:#x}"), evidence),
        runner_up: Some(runner_up),
        certainty,
    };
    let mut seen = look_at(&turned, request, known, None)?;
    seen.0.findings.push(finding);
    Ok(Some((turned, seen)))
}

/// A copy of the buffer with its bytes in this order.
fn arranged(buffer: &Buffer, arrangement: Arrangement) -> Option<Buffer> {
    let mut buffer = buffer.clone();
    buffer.arrange(arrangement).ok().map(|()| buffer)
}

/// Whether nothing in a buffer can be read: there is no source, or there are no frames.
fn makes_no_sense((contents, found): &SeenBuffer) -> bool {
    let are_no_frames = contents.frames.as_ref().is_some_and(|frames| {
        let account = &frames.account;
        (account.reserved + frames.lost()) * 32 > account.total()
    });
    found.is_empty() || are_no_frames
}

/// The places at which a buffer's sources break off.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    count: usize,
    first: Option<u64>,
    packets: u64,
}

impl std::fmt::Display for Errors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} errors in {} packets", self.count, self.packets)
    }
}

/// The places at which a buffer's sources break off; `None` if there are more than `most`.
fn errors(buffer: &Buffer, found: &[Identified], known: &Known, most: usize) -> Option<Errors> {
    let (mut places, mut packets) = (BTreeSet::new(), 0);
    for (source, id) in found.iter().filter_map(|found| Some((&found.source, found.source.id?))) {
        let statistics = flow(buffer, (source, id), known, |record| {
            let is_error = |reason| matches!(reason, GapReason::TraceLost | GapReason::Contradiction(_));
            if let Element::Gap(Gap { reason, .. }) = record.element
                && is_error(reason)
            {
                places.insert((id, record.at.0));
            }
            places.len() <= most
        });
        packets += statistics.map_or(0, |statistics| statistics.packets);
        if places.len() > most {
            return None;
        }
    }
    let first = places.iter().map(|(_, at)| *at).min();
    Some(Errors { count: places.len(), first, packets })
}

/// How many bytes of the buffer precede the first ones of a source that could be followed: the greatest number.
fn before_first(buffer: &Buffer, found: &[Identified], known: &Known) -> u64 {
    let of_source = |found: &Identified| {
        let mut first = None;
        flow(buffer, (&found.source, found.source.id?), known, |record| {
            first = Some(record.at.0).filter(|_| matches!(record.element, Element::Block(_)));
            first.is_none()
        });
        first
    };
    found.iter().filter_map(of_source).max().unwrap_or(0)
}

/// Follows a source of the buffer as long as `look` wants more. Returns `None` if it ended earlier.
fn flow(
    buffer: &Buffer,
    (source, id): (&SourceDescription, TraceId),
    known: &Known,
    mut look: impl FnMut(&FlowRecord) -> bool,
) -> Option<Statistics> {
    let carrier = Carrier::Frames { framing: Framing::Buffer, id };
    let input = Input { capture: &buffer.bytes, carrier, rest: None, progress: &NoProgress };
    let look = |record: FlowRecord| {
        if look(&record) { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    };
    known.traced(source).follow(&config(source).ok()?, |follower| follower.flow(&input, look).ok())
}
