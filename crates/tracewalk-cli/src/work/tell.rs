//! What is said of a capture before it is decoded, and what is refused.

use tracewalk::ids::TraceId;
use tracewalk_input::Origin;
use tracewalk_input::capture::dump::MemoryDump;
use tracewalk_input::capture::{Buffer, Capture, SourceDescription};
use tracewalk_input::image::Memory;

use super::{Contents, Work};
use crate::failure::Failure;
use crate::messages::{Messages, counted};
use crate::sources::as_option;

/// Files that are certainly no trace, and were probably meant as something else.
pub(super) fn refuse_wrong_files(capture: &Capture, memory: &[Option<MemoryDump>]) -> Result<(), Failure> {
    let others = capture.buffers.iter().zip(memory).filter(|(_, memory)| memory.is_none());
    for (buffer, _) in others {
        let file = buffer.file.display();
        let head = buffer.bytes.get(..4096).unwrap_or(&buffer.bytes);
        if head.starts_with(b"\x7fELF") {
            let hint = format!("give the trace's file first, and the program with --image {file}");
            return Err(Failure::input(format!("{file}: is an ELF file, expected trace bytes"), hint));
        }
        let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
        if head.iter().all(is_text) {
            let hint = "give the file of trace bytes, a capture.toml or a snapshot directory, or memory as GDB (x/256wx), \
                        OpenOCD, J-Link, pyOCD or probe-rs print it";
            return Err(Failure::input(format!("{file}: is text, expected trace bytes"), hint));
        }
    }
    Ok(())
}

impl Work {
    /// Says which of the trace IDs that were asked for are not decoded.
    pub(super) fn check_ids(&self, wanted: &[TraceId], messages: &Messages) -> Result<(), Failure> {
        let missing = |id: &&TraceId| !self.jobs.iter().any(|job| job.id == Some(**id));
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
        if self.jobs.is_empty() {
            return Err(failure);
        }
        messages.incomplete(failure);
        Ok(())
    }
}

/// Says what was found out, as the options that would have said it.
pub(super) fn findings(
    contents: &Contents,
    found: &[SourceDescription],
    buffer: &Buffer,
    messages: &Messages,
) {
    let mut options = Vec::new();
    if contents.container.origin == Origin::Detected {
        options.push(format!("--container {}", contents.container.value));
    }
    for source in found {
        let detected = source.origin == Origin::Detected
            || source.cpu.as_ref().is_some_and(|cpu| cpu.origin == Origin::Detected)
            || (source.id.is_some()
                && !buffer.sources.is_empty()
                && buffer.sources.iter().all(|stated| stated.id.is_none()));
        if detected {
            options.push(as_option(source));
        }
    }
    if !options.is_empty() {
        messages.note(format_args!("found out: {}", options.join(" ")));
    }
}

/// A buffer that has nothing that can be decoded.
pub(super) fn refuse_nothing(
    found: &[SourceDescription],
    buffer: &Buffer,
    everything: &Memory,
) -> Result<(), Failure> {
    if !found.is_empty() {
        return Ok(());
    }
    let image = if everything.images.is_empty() { ", and the program with --image" } else { "" };
    Err(Failure::input(
        format!("{}: nothing was recognised in its {} bytes", buffer.file.display(), buffer.bytes.len()),
        format!("say what it is with --container and --source [ID=]PROTOCOL,cpu=…{image}"),
    ))
}

/// Says what else is in a buffer, and what is not.
pub(super) fn other_sources(contents: &Contents, found: &[SourceDescription], messages: &Messages) {
    let Some(frames) = &contents.frames else { return };
    let known = |id: &TraceId| found.iter().any(|source| source.id == Some(*id));
    for (id, bytes) in frames.sources.iter().filter(|(id, _)| !known(id)) {
        messages.note(format_args!(
            "trace ID {id}: {} of a source that is not known; --source {id}=PROTOCOL says what it is",
            counted(*bytes, "byte")
        ));
    }
    for source in found {
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
    let (lost, reserved) = (frames.lost(), frames.account.reserved);
    if lost > 0 || reserved > 0 {
        messages.incomplete(format_args!(
            "{}: {} lost to damaged frames, {} of reserved trace IDs; if these are many, try --container tpiu or raw",
            buffer.file.display(),
            counted(lost, "byte"),
            counted(reserved, "byte"),
        ));
    }
}
