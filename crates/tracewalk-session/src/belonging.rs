//! Refuses statements about one container, protocol or processor if the capture has none: they would be lost.

use tracewalk::source::SourceConfig;
use tracewalk_input::capture::dump::MemoryDump;
use tracewalk_input::capture::{Buffer, Capture, Container, Protocol, SourceDescription};
use tracewalk_input::cpu::Profile;

use crate::error::OpenError;
use crate::model::Source;
use crate::notice::NoticeKind;
use crate::observer::{Observer, Say};
use crate::request::Statements;

/// Refuses options that contradict other statements about the capture.
pub(crate) fn check_said(
    stated: &Statements,
    capture: &Capture,
    memory: &[Option<MemoryDump>],
) -> Result<(), OpenError> {
    if let Some(option) = arranges(stated) {
        for (buffer, memory) in capture.buffers.iter().zip(memory) {
            let file = || buffer.file.clone();
            if buffer.wires.is_some() {
                return Err(OpenError::NotForRecording { option, file: file() });
            }
            if let Some(memory) = memory {
                return Err(OpenError::NotForMemory { option, file: file(), form: memory.form.clone() });
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
    let wrong = |option, of| {
        let found = sources.iter().map(what).collect::<Vec<_>>().join(", ");
        Err(OpenError::NotFor { option, of, found })
    };
    if let Some(option) = arranges(stated).filter(|_| all_mtb) {
        return Err(OpenError::NotForMtb { option });
    }
    if stated.mtb.halted_at.is_some() && !any_mtb {
        return wrong("--source mtb,pc", "an MTB");
    }
    if stated.dump_address.is_some() && !any_mtb {
        return wrong("--container address", "memory that holds an MTB's buffer");
    }
    if stated.vector_table.is_some() && !any_m {
        return wrong("--vtor", "processors of M profile");
    }
    if let Some(file) = stated.svd.as_ref().filter(|_| !any_m) {
        observer.say(NoticeKind::InterruptsUnused { file: file.clone() });
    }
    Ok(())
}

/// Refuses an MTB's registers if the trace is not an MTB's.
pub(crate) fn check_registers(stated: &Statements, buffer: &Buffer) -> Result<(), OpenError> {
    let options = [
        ("--source mtb,position", stated.mtb.position.is_some()),
        ("--source mtb,master", stated.mtb.master.is_some()),
        ("--source mtb,base", stated.mtb.base.is_some()),
        ("--registers", stated.mtb.registers.is_some()),
    ];
    let Some((option, _)) = options.into_iter().find(|(_, given)| *given) else { return Ok(()) };
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
    Err(OpenError::NoMtb { option, stated: says })
}

/// The option that states the order of bytes in the file.
fn arranges(stated: &Statements) -> Option<&'static str> {
    let pointer = stated.read_pointer.map(|_| "--container read-pointer");
    pointer.or_else(|| stated.swap_words.then_some("--container swap-words"))
}

/// A source as a sentence names it.
fn what(source: &Source) -> String {
    let cpu = source.description.cpu.as_ref().map(|cpu| format!(" of {}", cpu.value));
    format!("{}{}", source.config.protocol(), cpu.unwrap_or_default())
}
