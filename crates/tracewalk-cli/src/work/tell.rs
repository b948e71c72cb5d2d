//! What is said of a capture before it is decoded, and what is refused.

use tracewalk::frame::{Cause, Discontinuity, Framing};
use tracewalk::ids::TraceId;
use tracewalk::span::CaptureOffset;
use tracewalk_input::Origin;
use tracewalk_input::capture::dump::MemoryDump;
use tracewalk_input::capture::wire;
use tracewalk_input::capture::{Arrangement, Buffer, Capture, Holds, Protocol, SourceDescription};
use tracewalk_input::image::ImageRequest;

use super::arrange::OLDEST_BYTE;
use super::contents::{Identified, recognise};
use super::known::Known;
use super::{Contents, Work};
use crate::failure::Failure;
use crate::frames::Odd;
use crate::guess::{Certainty, Finding, Place};
use crate::messages::{Messages, counted};
use crate::sources::as_option;

/// Files that are certainly no trace, and were probably meant as something else.
pub(super) fn refuse_wrong_files(capture: &Capture, memory: &[Option<MemoryDump>]) -> Result<(), Failure> {
    let others = capture.buffers.iter().zip(memory).filter(|(_, memory)| memory.is_none());
    for (buffer, _) in others {
        let file = buffer.file.display();
        let format = Capture::format_of(&buffer.bytes);
        let hint = match format.holds {
            Holds::Elf => format!("give the trace's file first, and the program with --image {file}"),
            Holds::Text | Holds::Recording => "give the file of trace bytes, a capture.toml or a snapshot directory, or memory as GDB (x/256wx), \
                            OpenOCD, J-Link, pyOCD or probe-rs print it"
                .to_owned(),
            Holds::Description | Holds::Trace => continue,
        };
        return Err(Failure::input(format!("{file}: is {}, expected trace bytes", format.name), hint));
    }
    Ok(())
}

impl Work {
    /// Says which of the trace IDs that were asked for are not decoded.
    pub(super) fn check_ids(&self, wanted: &[TraceId], messages: &Messages) -> Result<(), Failure> {
        let missing = |id: &&TraceId| {
            let mut known = self.jobs.iter().map(|job| job.id).chain(self.itms.iter().map(|itm| itm.id));
            !known.any(|known| known == Some(**id))
        };
        let Some(first) = wanted.iter().find(missing) else { return Ok(()) };
        let frames = self.contents.iter().filter_map(|contents| contents.frames.as_ref());
        let known = frames.flat_map(|frames| frames.sources.keys()).collect::<Vec<_>>();
        let failure = if known.is_empty() {
            Failure::input(
                format!("--id {first} was asked for, and the capture has no trace IDs"),
                "leave out --id, or say --container frames",
            )
        } else if known.contains(&first) {
            Failure::input(
                format!("the bytes of trace ID {first} are not decoded"),
                format!("say what they are with --source {first}=PROTOCOL,cpu=…"),
            )
        } else {
            let known = known.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            Failure::input(
                format!("the capture has no bytes of trace ID {first}, it has {known}"),
                "choose one of them with --id",
            )
        };
        if self.jobs.is_empty() && self.itms.is_empty() {
            return Err(failure);
        }
        messages.incomplete(failure);
        Ok(())
    }
}

/// Says what was found out, as the options that would have said it.
pub(super) fn findings(contents: &Contents, buffer: &Buffer, found: &[Identified], messages: &Messages) {
    let mut options = Vec::new();
    let Arrangement { read_pointer, swapped_words } = &buffer.arrangement;
    let is_detected = |origin: &Origin| *origin == Origin::Detected;
    if swapped_words.as_ref().is_some_and(|swapped| is_detected(&swapped.origin)) {
        options.push("--swap-words".to_owned());
    }
    if let Some(pointer) = read_pointer.as_ref().filter(|pointer| is_detected(&pointer.origin)) {
        options.push(format!("--read-pointer {:#x}", pointer.value));
    }
    if contents.container.origin == Origin::Detected {
        options.push(format!("--container {}", contents.container.value));
    }
    if let (Some(Framing::PortFrom(start)), [_, ..]) =
        (contents.frames.as_ref().map(|frames| frames.framing), contents.findings.as_slice())
    {
        options.push(format!("--frame-start {}", start.bytes()));
    }
    let guessed = found.iter().filter(|found| found.guessed);
    options.extend(guessed.map(|found| as_option(&found.source)));
    if !options.is_empty() {
        messages.note(format_args!("found out: {}", options.join(" ")));
    }
    for finding in &contents.findings {
        let option = if finding.about == OLDEST_BYTE { "--read-pointer" } else { "--container" };
        doubt("", finding, option, messages);
    }
    for found in found {
        let name = found.source.id.map_or_else(String::new, |id| format!("trace ID {id}: "));
        for finding in &found.findings {
            doubt(&name, finding, "--source", messages);
        }
    }
}

/// Says where another answer is as likely.
fn doubt(name: &str, finding: &Finding, option: &str, messages: &Messages) {
    let Finding { about, best, runner_up: Some(other), certainty } = finding else { return };
    let differs = match certainty {
        Certainty::Certain | Certainty::Indifferent => return,
        Certainty::DoubtfulDetails => {
            "what was executed is the same with both, and times or contexts are not"
        }
        Certainty::Doubtful => "what was executed is not the same with both",
    };
    messages.warning(format_args!(
        "{name}{about}: {best} was chosen, but {other} is as likely; {differs}: say it with {option}"
    ));
}

/// Says that an image was found to have stood elsewhere than was said.
pub(super) fn moved_image(request: &ImageRequest, place: &Place, messages: &Messages) {
    let file = request.file.display();
    let Finding { best, runner_up, .. } = &place.finding;
    let stated = runner_up.as_ref().map_or_else(String::new, |stated| format!(", not at {stated}"));
    messages.warning(format_args!(
        "{file}: the trace fits this image at {best}{stated}; it was moved there: say --image {}:{file}, or --strict \
         to leave it where it was said to be",
        place.address,
    ));
}

/// Says how a recording was read, as the options that would have said it, and what of it could not be read.
pub(super) fn wires(buffer: &Buffer, messages: &Messages) {
    let Some(reading) = &buffer.wires else { return };
    let mut options = Vec::new();
    if reading.said.wire.is_none() {
        options.push(format!("--wire {}", reading.wire));
    }
    if let (None, Some(rate)) = (reading.said.baud, reading.bits_per_second()) {
        options.push(format!("--baud {rate:.0}"));
    }
    options.extend(reading.found_channels().map(|(role, name)| format!("--channel {name}={role}")));
    if !options.is_empty() {
        messages.note(format_args!("found out: {}", options.join(" ")));
    }
    let file = buffer.file.display();
    let seen = reading.seen().map_or_else(String::new, |seen| format!("; seen were: {seen}"));
    if let Some(first) = reading.first_error {
        let at = reading.seconds(first.at).map_or_else(String::new, |seconds| format!(", {seconds:.6} s"));
        messages.incomplete(format_args!(
            "{file}: {} on the wires, the first at offset {}{at}; check --wire and --channel, or record at a higher \
             sample rate{seen}",
            counted(reading.errors, "error"),
            first.byte,
        ));
    }
    if !reading.is_aligned {
        messages.warning(format_args!(
            "{file}: no synchronisation says where the bytes of the trace port start; if nothing is recognised, \
             check the order of the pins with --channel{seen}"
        ));
    }
    if let Some(problem) = &reading.problem {
        messages.incomplete(format_args!("{problem}; what stands before it is decoded"));
    }
}

/// A buffer that has nothing that can be decoded.
pub(super) fn refuse_nothing(found: &[Identified], buffer: &Buffer, known: &Known) -> Result<(), Failure> {
    if !found.is_empty() {
        return Ok(());
    }
    if let Some(reading) = &buffer.wires {
        // Where those that were read are in doubt, it is told already.
        let seen = if reading.seen().is_none() { wire::seen_in(&buffer.file) } else { None };
        let seen = seen.map_or_else(String::new, |seen| format!(", seen were: {seen}"));
        return Err(Failure::input(
            format!("{}: nothing was recognised in its {} bytes", buffer.file.display(), buffer.bytes.len()),
            format!("check --wire and --channel{seen}; or say what it is with --container and --source"),
        ));
    }
    let image = if known.everything.images.is_empty() { ", and the program with --image" } else { "" };
    Err(Failure::input(
        format!("{}: nothing was recognised in its {} bytes", buffer.file.display(), buffer.bytes.len()),
        format!("say what it is with --container and --source [ID=]PROTOCOL,cpu=…{image}"),
    ))
}

/// Says that there is trace, and none of it is of a protocol that is decoded.
pub(super) fn nothing_decoded(work: &Work, messages: &Messages) {
    let sources = work.contents.iter().flat_map(|contents| &contents.sources);
    let has_others = sources.into_iter().any(|source| matches!(source.protocol, Protocol::Unknown(_)));
    if has_others && work.jobs.is_empty() && work.itms.is_empty() {
        messages.incomplete("nothing in it can be decoded: only ETMv3, PFT, MTB and ITM can");
    }
}

/// Says what else is in a buffer, and what is not.
pub(super) fn other_sources(
    contents: &Contents,
    buffer: &Buffer,
    sources: &[&SourceDescription],
    known: &Known,
    messages: &Messages,
) {
    let Some(frames) = &contents.frames else { return };
    let is_known = |id: &TraceId| sources.iter().any(|source| source.id == Some(*id));
    for (id, bytes) in frames.sources.iter().filter(|(id, _)| !is_known(id)) {
        let reads_as = frames.samples.get(id).and_then(|sample| recognise(Some(*id), sample, known));
        let option = reads_as.map_or_else(
            || format!("--source {id}=PROTOCOL says what it is"),
            |found| format!("{} would decode it", as_option(&found.source)),
        );
        let start = frames.starts.get(id).copied().unwrap_or_default();
        messages.note(format_args!(
            "trace ID {id}: {} of a source that is not described, the first at {}; {option}",
            counted(*bytes, "byte"),
            CaptureOffset(buffer.file_offset(start)),
        ));
    }
    for source in sources {
        let Some(id) = source.id.filter(|id| !frames.sources.contains_key(id)) else { continue };
        // A description names every trace unit of a chip, an option only those that are meant.
        if source.origin == Origin::Option("--source") {
            messages
                .incomplete(format_args!("trace ID {id}: the capture has no bytes of it; check --source"));
        } else {
            messages.note(format_args!("trace ID {id}: the capture has no bytes of it"));
        }
    }
}

/// Says what of the frames could not be read.
pub(super) fn damage(contents: &Contents, buffer: &Buffer, messages: &Messages) {
    let Some(frames) = &contents.frames else { return };
    let is_loss = |discontinuity: &&Discontinuity| discontinuity.cause != Cause::Barrier;
    if let Some(first) = frames.first_discontinuities.iter().find(is_loss) {
        let at = CaptureOffset(buffer.file_offset(first.at));
        messages.incomplete(format_args!(
            "{}: {} lost to damaged frames in {}, the first: {}; if these are many, try --container tpiu or raw",
            buffer.file.display(),
            counted(frames.lost(), "byte"),
            counted(frames.discontinuities, "place"),
            Discontinuity { at, ..*first },
        ));
    }
    let Odd { bytes, places, first, .. } = &frames.odd;
    if let Some((at, first)) = first.first() {
        messages.incomplete(format_args!(
            "{}: {} in {} that no formatter writes (reserved trace IDs, padding that is not zero), the first: {} at {}; if \
             these are many, try --container tpiu or raw",
            buffer.file.display(),
            counted(*bytes, "byte"),
            counted(*places, "place"),
            counted(*first, "byte"),
            CaptureOffset(buffer.file_offset(*at)),
        ));
    }
}

/// Says that a capture ends within a frame.
pub(super) fn cut_frame(contents: &Contents, buffer: &Buffer, messages: &Messages) {
    let Some(frames) = contents.frames.as_ref().filter(|frames| frames.account.tail > 0) else { return };
    messages.note(format_args!(
        "{}: ends within a frame, of which the {} at {} are not decoded",
        buffer.file.display(),
        counted(frames.account.tail, "byte"),
        CaptureOffset(buffer.file_offset(frames.tail)),
    ));
}
