//! Notices about the contents of a capture, before anything is decoded.

use tracewalk::frame::{Cause, Discontinuity, Framing};
use tracewalk::plain::plain;
use tracewalk::span::CaptureOffset;
use tracewalk_input::capture::dump::MemoryDump;
use tracewalk_input::capture::stream::Place;
use tracewalk_input::capture::wire;
use tracewalk_input::capture::{Arrangement, Buffer, Capture, Container, Holds, Protocol, SourceDescription};
use tracewalk_input::{Origin, OtherFile, Setting};

use crate::contents::recognise;
use crate::error::OpenError;
use crate::gather::saved_kind_of;
use crate::infer::{Certainty, Finding};
use crate::model::{Contents, Identified, OLDEST_BYTE};
use crate::notice::{Inferred, NoticeKind, Question};
use crate::observer::{Observer, Say};
use crate::program::Known;
use crate::session::Session;

/// Refuses files that are certainly not trace, and were probably meant as something else.
pub(crate) fn refuse_wrong_files(capture: &Capture, memory: &[Option<MemoryDump>]) -> Result<(), OpenError> {
    for (buffer, memory) in capture.buffers.iter().zip(memory) {
        if buffer.parts.is_some() {
            continue;
        }
        let (file, format) = (buffer.file.clone(), Capture::format_of(&buffer.bytes));
        if let Some(kind) = saved_kind_of(&file).filter(|_| memory.is_none()) {
            return Err(OpenError::SavedFile { file, kind });
        }
        match format.holds {
            Holds::PerfData => return Err(OpenError::PerfData(file)),
            _ if memory.is_some() => {}
            Holds::Elf => return Err(OpenError::ElfFile(file)),
            Holds::Text if buffer.wires.is_some() => {
                let head = buffer.bytes.get(..40).unwrap_or(&buffer.bytes);
                let text = String::from_utf8_lossy(head).split_whitespace().collect::<Vec<_>>().join(" ");
                let text = plain(text.into()).into_owned();
                return Err(OpenError::WireText { file, text });
            }
            Holds::Text | Holds::Recording => return Err(OpenError::NoTrace { file, format: format.name }),
            Holds::Description | Holds::Trace => {}
        }
    }
    Ok(())
}

/// Reports the requested trace IDs that are not decoded.
pub(crate) fn check_ids(session: &Session, observer: &dyn Observer) -> Result<(), OpenError> {
    let decoded = || {
        let sources = session.sources.iter().map(|source| source.id);
        sources.chain(session.itms.iter().map(|itm| itm.id))
    };
    let Some(&first) = session.request.ids.iter().find(|id| !decoded().any(|known| known == Some(**id)))
    else {
        return Ok(());
    };
    let frames = session.contents.iter().filter_map(|contents| contents.frames.as_ref());
    let present = frames.flat_map(|frames| frames.sources.keys().copied()).collect::<Vec<_>>();
    let error = if present.is_empty() {
        OpenError::NoTraceIds(first)
    } else if present.contains(&first) {
        OpenError::IdNotDecoded(first)
    } else {
        OpenError::IdAbsent { id: first, present }
    };
    if decoded().next().is_none() {
        return Err(error);
    }
    observer.say(NoticeKind::NothingThere(Box::new(error)));
    Ok(())
}

/// Reports the findings of a buffer, and other answers that are as likely.
pub(crate) fn findings(contents: &Contents, buffer: &Buffer, found: &[Identified], observer: &dyn Observer) {
    let mut inferred = Vec::new();
    let Arrangement { read_pointer, swapped_words } = &buffer.arrangement;
    let is_detected = |origin: &Origin| *origin == Origin::Detected;
    if swapped_words.as_ref().is_some_and(|swapped| is_detected(&swapped.origin)) {
        inferred.push(Inferred::SwappedWords);
    }
    if let Some(pointer) = read_pointer.as_ref().filter(|pointer| is_detected(&pointer.origin)) {
        inferred.push(Inferred::ReadPointer(pointer.value));
    }
    if contents.container.origin == Origin::Detected {
        inferred.push(Inferred::Container(contents.container.value));
    }
    if let (Some(Framing::PortFrom(start)), [_, ..]) =
        (contents.frames.as_ref().map(|frames| frames.framing), contents.findings.as_slice())
    {
        inferred.push(Inferred::FrameStart(start.bytes()));
    }
    let guessed = found.iter().filter(|found| found.guessed);
    inferred.extend(guessed.map(|found| Inferred::Source(found.source.clone())));
    if !inferred.is_empty() {
        observer.say(NoticeKind::Inferred(inferred));
    }
    let doubt = |source, finding: &Finding, question| {
        let is_doubtful = matches!(finding.certainty, Certainty::DoubtfulDetails | Certainty::Doubtful);
        if is_doubtful && finding.runner_up.is_some() {
            observer.say(NoticeKind::AnotherAnswer { source, question, finding: finding.clone() });
        }
    };
    for finding in &contents.findings {
        let is_pointer = finding.about == OLDEST_BYTE;
        doubt(None, finding, if is_pointer { Question::ReadPointer } else { Question::Container });
    }
    for found in found {
        found.findings.iter().for_each(|finding| doubt(found.source.id, finding, Question::Source));
    }
}

/// Reports how a recording was read, and the errors in it.
pub(crate) fn wires(buffer: &Buffer, observer: &dyn Observer) {
    let Some(reading) = &buffer.wires else { return };
    let mut inferred = Vec::new();
    if reading.said.wire.is_none() {
        inferred.push(Inferred::Wire(reading.wire));
    }
    if let (None, Some(rate)) = (reading.said.baud, reading.bits_per_second()) {
        inferred.push(Inferred::Baud(rate));
    }
    if reading.inverted && reading.said.inverted.is_none() {
        inferred.push(Inferred::Inverted);
    }
    let channels = reading.found_channels();
    inferred.extend(channels.map(|(role, name)| Inferred::Channel(name.clone(), *role)));
    if !inferred.is_empty() {
        observer.say(NoticeKind::Inferred(inferred));
    }
    let file = || buffer.file.clone();
    if let Some(first) = reading.first_error {
        observer.say(NoticeKind::WireErrors {
            file: file(),
            errors: reading.errors,
            byte: first.byte,
            seconds: reading.seconds(first.at),
            seen: reading.seen(),
        });
    }
    if !reading.is_aligned {
        observer.say(NoticeKind::WiresUnaligned { file: file(), seen: reading.seen() });
    }
    if let Some(problem) = &reading.problem {
        observer.say(NoticeKind::RecordingCut(problem.clone()));
    }
}

/// Refuses a buffer in which nothing can be decoded.
pub(crate) fn refuse_nothing(found: &[Identified], buffer: &Buffer, known: &Known) -> Result<(), OpenError> {
    if !found.is_empty() {
        return Ok(());
    }
    // If the reading of the channels is in doubt, another notice describes them.
    let seen = |reading: &wire::Reading| match reading.seen() {
        None => wire::seen_in(&buffer.file),
        Some(_) => None,
    };
    Err(OpenError::NothingRecognised {
        file: buffer.file.clone(),
        bytes: buffer.bytes.len() as u64,
        recording: buffer.wires.as_ref().map(seen),
        has_program: !known.everything.memory.images.is_empty(),
        other: OtherFile::of(&buffer.bytes),
        blank: buffer.bytes.first().copied().filter(|first| buffer.bytes.iter().all(|byte| byte == first)),
    })
}

/// Reports that there is trace, but none of a protocol that is decoded.
pub(crate) fn nothing_decoded(session: &Session, observer: &dyn Observer) {
    let mut sources = session.contents.iter().flat_map(|contents| &contents.sources);
    let has_others = sources.any(|source| matches!(source.protocol, Protocol::Unknown(_)));
    if has_others && session.sources.is_empty() && session.itms.is_empty() {
        observer.say(NoticeKind::NothingDecodable);
    }
}

/// The most undescribed sources that are named one by one.
const MOST_UNDESCRIBED: usize = 4;

/// Reports further contents of a buffer, and missing ones. If the buffer is one of several, the others may have the missing ones.
pub(crate) fn other_sources(
    contents: &Contents,
    (buffer, is_one_of_several): (&Buffer, bool),
    sources: &[&SourceDescription],
    known: &Known,
    observer: &dyn Observer,
) {
    let Some(frames) = &contents.frames else { return };
    let others =
        frames.sources.iter().filter(|(id, _)| !sources.iter().any(|source| source.id == Some(**id)));
    let place = |id| CaptureOffset(buffer.file_offset(frames.starts.get(&id).copied().unwrap_or_default()));
    let (mut unread, mut unread_bytes) = (Vec::new(), 0);
    for (&id, &bytes) in others {
        match frames.samples.get(&id).and_then(|sample| recognise(Some(id), sample, known)) {
            Some(found) => {
                let reads_as = Some(Box::new(found.source));
                observer.say_at(place(id), NoticeKind::Undescribed { id, bytes, reads_as });
            }
            None => {
                unread.push((id, bytes));
                unread_bytes += bytes;
            }
        }
    }
    // Damaged frames seem to have bytes of any source; one notice for each would be too many.
    if unread.len() > MOST_UNDESCRIBED {
        let first = unread.iter().map(|(id, _)| place(*id)).min().unwrap_or_default();
        let ids = unread.into_iter().map(|(id, _)| id).collect();
        observer.say_at(first, NoticeKind::ManyUndescribed { ids, bytes: unread_bytes });
    } else {
        for (id, bytes) in unread {
            observer.say_at(place(id), NoticeKind::Undescribed { id, bytes, reads_as: None });
        }
    }
    let is_there = |source: &&SourceDescription| source.id.is_none_or(|id| frames.sources.contains_key(&id));
    let has_flow = sources.iter().any(|source| is_there(source) && source.protocol.has_flow());
    // A recording names the units of all CPUs, and a program runs on some of them.
    let is_recording = buffer.parts.is_some();
    for source in
        sources.iter().filter(|source| !is_recording || source.origin == Origin::Stated(Setting::Source))
    {
        let Some(id) = source.id.filter(|id| !frames.sources.contains_key(id)) else { continue };
        // A description names every trace unit of a chip, and most runs use some of them.
        observer.say(match has_flow || is_one_of_several {
            true => NoticeKind::DescribedAbsent { id },
            false => NoticeKind::StatedAbsent { id },
        });
    }
    let bytes = frames.account.unowned;
    if bytes > 0 && !sources.is_empty() && !sources.iter().any(is_there) {
        observer.say(NoticeKind::Unowned { bytes });
    }
}

/// Reports zeros around a source's bytes that no A-sync has, if there are no frames. An A-sync with up to 64 zeros
/// is accepted; a trace unit sends at most 11.
fn unfilled(buffer: &Buffer, observer: &dyn Observer) {
    const MOST_OF_AN_A_SYNC: u64 = 64;
    const MOST_SENT: u64 = 11;
    let zeros = |bytes: &mut dyn Iterator<Item = &u8>, most| {
        let count = bytes.take_while(|byte| **byte == 0).count() as u64;
        if count > most { count } else { 0 }
    };
    let first = zeros(&mut buffer.bytes.iter(), MOST_OF_AN_A_SYNC);
    let last = zeros(&mut buffer.bytes.iter().rev(), MOST_SENT);
    if first.max(last) > 0 && first < buffer.bytes.len() as u64 {
        observer.say(NoticeKind::Unfilled { file: buffer.file.clone(), first, last });
    }
}

/// Reports the damage to frames, and what is no trace around a source alone.
pub(crate) fn damage(contents: &Contents, buffer: &Buffer, observer: &dyn Observer) {
    let Some(frames) = &contents.frames else {
        if contents.container.value == Container::Raw && buffer.parts.is_none() {
            unfilled(buffer, observer);
        }
        return;
    };
    let is_loss = |discontinuity: &&Discontinuity| discontinuity.cause != Cause::Barrier;
    if let Some(first) = frames.first_discontinuities.iter().find(is_loss) {
        let at = CaptureOffset(buffer.file_offset(first.at));
        observer.say_at(
            at,
            NoticeKind::FramesDamaged {
                file: buffer.file.clone(),
                bytes: frames.lost(),
                places: frames.discontinuities,
                unowned: frames.account.unowned,
                first: Discontinuity { at, ..*first },
            },
        );
    }
    if let Some(&(at, first_bytes)) = frames.odd.first.first() {
        let (bytes, places) = (frames.odd.bytes, frames.odd.places);
        observer.say_at(
            CaptureOffset(buffer.file_offset(at)),
            NoticeKind::FramesOdd { file: buffer.file.clone(), bytes, places, first_bytes },
        );
    }
}

/// Reports that a capture ends within a frame; that of a server, the notice of the connection's end does.
pub(crate) fn cut_frame(contents: &Contents, buffer: &Buffer, observer: &dyn Observer) {
    if matches!(Place::of(&buffer.file), Ok(Some(Place::Server { .. }))) {
        return;
    }
    let Some(frames) = contents.frames.as_ref().filter(|frames| frames.account.tail > 0) else { return };
    observer.say_at(
        CaptureOffset(buffer.file_offset(frames.tail)),
        NoticeKind::FrameCut { file: buffer.file.clone(), bytes: frames.account.tail },
    );
}
