//! The caller's statements: they override a capture's description, and are refused if the capture has nothing that they are
//! about, because they would be lost.

use tracewalk::source::SourceConfig;
use tracewalk_input::capture::dump::MemoryDump;
use tracewalk_input::capture::{
    Arrangement, Buffer, Capture, Container, Protocol, Registers, SourceDescription,
};
use tracewalk_input::cpu::Profile;
use tracewalk_input::{Origin, Setting, Stated};

use crate::error::OpenError;
use crate::model::Source;
use crate::notice::NoticeKind;
use crate::observer::{Observer, Say};
use crate::request::Statements;

/// Overrides the capture's description by the caller's statements.
pub(crate) fn override_by(capture: &mut Capture, stated: &Statements) -> Result<(), OpenError> {
    if let Some(container) = stated.container {
        for buffer in &mut capture.buffers {
            buffer.container = Some(Stated::new(container, Origin::Stated(Setting::Container)));
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
    let Some(start) = stated.frame_start else { return Ok(()) };
    let mut other = None;
    let mut any = false;
    for buffer in &mut capture.buffers {
        let port = || Stated::new(Container::TracePort, Origin::Stated(Setting::FrameStart));
        let container = buffer.container.get_or_insert_with(port);
        if container.value == Container::TracePort {
            buffer.frame_start = Some(Stated::new(start, Origin::Stated(Setting::FrameStart)));
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

/// Puts the bytes in the order of the trace, by the caller's statements.
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
            read_pointer: pointer.map(|pointer| Stated::new(pointer, Origin::Stated(Setting::ReadPointer))),
            swapped_words: stated
                .swap_words
                .then(|| Stated::new(true, Origin::Stated(Setting::SwappedWords))),
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
    let settings = [
        ("MTB_POSITION", Setting::MtbPosition, stated.mtb.position),
        ("MTB_MASTER", Setting::MtbMaster, stated.mtb.master),
        ("MTB_BASE", Setting::MtbBase, stated.mtb.base),
    ];
    for (name, setting, value) in settings {
        if let Some(value) = value {
            registers.set(name, value, Origin::Stated(setting));
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
    check_registers(stated, buffer)
}

/// Refuses statements that contradict other statements about the capture.
pub(crate) fn check_said(
    stated: &Statements,
    capture: &Capture,
    memory: &[Option<MemoryDump>],
) -> Result<(), OpenError> {
    if let Some(setting) = arranges(stated) {
        for (buffer, memory) in capture.buffers.iter().zip(memory) {
            let file = || buffer.file.clone();
            if buffer.wires.is_some() {
                return Err(OpenError::NotForRecording { setting, file: file() });
            }
            if let Some(memory) = memory {
                return Err(OpenError::NotForMemory { setting, file: file(), form: memory.form.clone() });
            }
        }
    }
    let said_mtb = stated.container == Some(Container::Mtb);
    let other = stated.sources.iter().find(|source| source.protocol != Protocol::Mtb);
    if let Some(SourceDescription { protocol, .. }) = other.filter(|_| said_mtb) {
        return Err(OpenError::MtbWithOtherSource(protocol.clone()));
    }
    Ok(())
}

/// Refuses statements that contradict the contents of the capture.
pub(crate) fn check_found(
    stated: &Statements,
    sources: &[Source],
    observer: &dyn Observer,
) -> Result<(), OpenError> {
    // Nothing may have been found yet of a capture that is still arriving.
    if sources.is_empty() {
        return Ok(());
    }
    let is_mtb = |source: &Source| matches!(source.config, SourceConfig::Mtb(_));
    let any_mtb = sources.iter().any(is_mtb);
    let all_mtb = sources.iter().all(is_mtb);
    // A source of unknown profile may be of M profile.
    let any_m = sources.iter().any(|source| source.profile().is_none_or(|profile| profile == Profile::M));
    let wrong = |setting, of| {
        let found = sources.iter().map(what).collect::<Vec<_>>().join(", ");
        Err(OpenError::NotFor { setting, of, found })
    };
    if let Some(setting) = arranges(stated).filter(|_| all_mtb) {
        return Err(OpenError::NotForMtb { setting });
    }
    if stated.mtb.halted_at.is_some() && !any_mtb {
        return wrong(Setting::MtbHaltedAt, "an MTB");
    }
    if stated.dump_address.is_some() && !any_mtb {
        return wrong(Setting::DumpAddress, "memory that holds an MTB's buffer");
    }
    if stated.vector_table.is_some() && !any_m {
        return wrong(Setting::VectorTable, "processors of M profile");
    }
    if let Some(file) = stated.svd.as_ref().filter(|_| !any_m) {
        observer.say(NoticeKind::InterruptsUnused { file: file.clone() });
    }
    Ok(())
}

/// Refuses an MTB's registers if the trace is not an MTB's.
fn check_registers(stated: &Statements, buffer: &Buffer) -> Result<(), OpenError> {
    let settings = [
        (Setting::MtbPosition, stated.mtb.position.is_some()),
        (Setting::MtbMaster, stated.mtb.master.is_some()),
        (Setting::MtbBase, stated.mtb.base.is_some()),
        (Setting::MtbRegisters, stated.mtb.registers.is_some()),
    ];
    let Some((setting, _)) = settings.into_iter().find(|(_, given)| *given) else { return Ok(()) };
    let container = buffer.container.as_ref().filter(|container| container.value != Container::Mtb);
    let is_mtb = |source: &SourceDescription| source.protocol == Protocol::Mtb;
    let says = match container {
        Some(container) => format!("the container is {} ({})", container.value, container.origin),
        None if buffer.sources.iter().any(is_mtb) => return Ok(()),
        None => {
            let sources = buffer.sources.iter().map(|source| source.protocol.name());
            format!("the source is {}", sources.collect::<Vec<_>>().join(", "))
        }
    };
    Err(OpenError::NoMtb { setting, stated: says })
}

/// The setting that states the order of bytes in the file.
fn arranges(stated: &Statements) -> Option<Setting> {
    let pointer = stated.read_pointer.map(|_| Setting::ReadPointer);
    pointer.or_else(|| stated.swap_words.then_some(Setting::SwappedWords))
}

/// A source as a sentence names it.
fn what(source: &Source) -> String {
    let cpu = source.description.cpu.as_ref().map(|cpu| format!(" of {}", cpu.value));
    format!("{}{}", source.config.protocol(), cpu.unwrap_or_default())
}
