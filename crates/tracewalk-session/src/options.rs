//! The caller's statements, which override a capture's description.

use tracewalk_input::capture::dump::MemoryDump;
use tracewalk_input::capture::{Arrangement, Capture, Container, Protocol, Registers, SourceDescription};
use tracewalk_input::{Origin, Stated};

use crate::belonging;
use crate::error::OpenError;
use crate::request::Statements;

/// Overrides the capture's description by the options.
pub(crate) fn add(capture: &mut Capture, stated: &Statements) -> Result<(), OpenError> {
    if let Some(container) = stated.container {
        for buffer in &mut capture.buffers {
            buffer.container = Some(Stated::new(container, Origin::Option("--container")));
        }
    }
    set_frame_start(capture, stated)?;
    arrange(capture, stated)?;
    for (index, source) in stated.sources.iter().enumerate() {
        if stated.sources.iter().take(index).any(|before| before.id == source.id) {
            return Err(OpenError::SourceTwice(source.id));
        }
        let known = |known: &SourceDescription| known.id == source.id;
        let holder = capture.buffers.iter().position(|buffer| buffer.sources.iter().any(known));
        if let Some(buffer) = capture.buffers.get_mut(holder.unwrap_or(0)) {
            buffer.sources.retain(|other| !known(other));
            buffer.sources.push(source.clone());
        }
    }
    add_mtb_registers(capture, stated)
}

/// Sets the start of the frames of trace ports; this also states that the container is a trace port.
fn set_frame_start(capture: &mut Capture, stated: &Statements) -> Result<(), OpenError> {
    const OPTION: &str = "--container frame-start";
    let Some(start) = stated.frame_start else { return Ok(()) };
    let mut other = None;
    let mut any = false;
    for buffer in &mut capture.buffers {
        let port = || Stated::new(Container::TracePort, Origin::Option(OPTION));
        let container = buffer.container.get_or_insert_with(port);
        if container.value == Container::TracePort {
            buffer.frame_start = Some(Stated::new(start, Origin::Option(OPTION)));
            any = true;
        } else {
            other.get_or_insert(format!("{} ({})", container.value, container.origin));
        }
    }
    match other.filter(|_| !any) {
        Some(other) => Err(OpenError::FrameStartOfOther(other)),
        None => Ok(()),
    }
}

/// Puts the bytes in the order of the trace, by the options.
fn arrange(capture: &mut Capture, stated: &Statements) -> Result<(), OpenError> {
    if stated.read_pointer.is_none() && !stated.swap_words {
        return Ok(());
    }
    for buffer in &mut capture.buffers {
        let known = &buffer.arrangement;
        if !known.is_usual() {
            let by = buffer.origin.to_string();
            return Err(OpenError::ArrangedAlready { file: buffer.file.clone(), by });
        }
        let pointer = stated.read_pointer.map(u64::from);
        let arrangement = Arrangement {
            read_pointer: pointer
                .map(|pointer| Stated::new(pointer, Origin::Option("--container read-pointer"))),
            swapped_words: stated
                .swap_words
                .then(|| Stated::new(true, Origin::Option("--container swap-words"))),
        };
        let arranged = buffer.arrange(arrangement);
        arranged.map_err(|problem| OpenError::Arrangement {
            file: buffer.file.clone(),
            problem: problem.to_string(),
        })?;
    }
    Ok(())
}

fn add_mtb_registers(capture: &mut Capture, stated: &Statements) -> Result<(), OpenError> {
    let mut registers = match &stated.mtb.registers {
        Some(file) => MemoryDump::registers_of(file)?,
        None => Registers::new(),
    };
    let options = [
        ("MTB_POSITION", "--source mtb,position", stated.mtb.position),
        ("MTB_MASTER", "--source mtb,master", stated.mtb.master),
        ("MTB_BASE", "--source mtb,base", stated.mtb.base),
    ];
    for (name, option, value) in options {
        if let Some(value) = value {
            registers.set(name, value, Origin::Option(option));
        }
    }
    let Some((_, first)) = registers.iter().next() else { return Ok(()) };
    let origin = first.origin.clone();
    let Some(buffer) = capture.buffers.first_mut() else { return Ok(()) };
    buffer.container.get_or_insert_with(|| Stated::new(Container::Mtb, origin.clone()));
    if buffer.sources.is_empty() {
        buffer.sources.push(SourceDescription::new(Protocol::Mtb, origin));
    }
    for source in buffer.sources.iter_mut().filter(|source| source.protocol == Protocol::Mtb) {
        source.registers.extend(registers.clone());
    }
    belonging::check_registers(stated, buffer)
}
