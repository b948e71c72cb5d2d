//! [`Policy::Strict`](crate::Policy): nothing is inferred, so that everything has to be stated.

use tracewalk::frame::FSYNC;
use tracewalk::ids::TraceId;
use tracewalk_input::capture::wire::Wire;
use tracewalk_input::capture::{Buffer, Container, Protocol, SourceDescription};

use crate::config::{NoConfig, config};
use crate::error::OpenError;
use crate::model::{Contents, Identified};

/// Refuses a recording if its reading is not stated.
pub(crate) fn check_wires(buffer: &Buffer) -> Result<(), OpenError> {
    let Some(reading) = &buffer.wires else { return Ok(()) };
    let needed = match (reading.said.wire, reading.wire) {
        (None, Wire::Port) => "--wire port",
        (None, Wire::Uart | Wire::Manchester) => "--wire WIRE,baud=BITS",
        (Some(_), Wire::Uart | Wire::Manchester) if reading.said.baud.is_none() => "--wire baud=BITS",
        (Some(_), _) if reading.inverted && reading.said.inverted.is_none() => "--wire invert",
        (Some(_), _) if reading.found_channels().next().is_some() => "--channel NAME=ROLE",
        (Some(_), _) => return Ok(()),
    };
    Err(refuse(buffer, needed))
}

/// Refuses a buffer if its packing is not stated.
pub(crate) fn check_container(buffer: &Buffer) -> Result<(), OpenError> {
    let needed = match buffer.container.as_ref().map(|stated| stated.value) {
        None if buffer.sources.is_empty() => {
            "--container CONTAINER and --source [ID=]PROTOCOL,cpu=CPU for each source"
        }
        None => "--container CONTAINER",
        Some(Container::TracePort) if buffer.frame_start.is_none() && !has_full_sync(&buffer.bytes) => {
            "--container frame-start=N"
        }
        Some(_) => return Ok(()),
    };
    Err(refuse(buffer, needed))
}

/// The described sources. An error if the description of one leaves something to infer.
pub(crate) fn sources(
    buffer: &Buffer,
    contents: &Contents,
    wanted: &[TraceId],
) -> Result<Vec<Identified>, OpenError> {
    let mut needed = Vec::new();
    for source in &buffer.sources {
        needed.extend(missing(source, contents));
    }
    let described = |id: &TraceId| buffer.sources.iter().any(|source| source_id(source) == Some(*id));
    match &contents.frames {
        Some(frames) => {
            let ids = frames.sources.keys().filter(|id| wanted.is_empty() || wanted.contains(id));
            needed
                .extend(ids.filter(|id| !described(id)).map(|id| format!("--source {id}=PROTOCOL,cpu=CPU")));
        }
        None if buffer.sources.is_empty() => needed.push("--source PROTOCOL,cpu=CPU".to_owned()),
        None => {}
    }
    if !needed.is_empty() {
        return Err(refuse(buffer, &needed.join(" ")));
    }
    Ok(buffer.sources.iter().cloned().map(Identified::as_stated).collect())
}

/// The option that states the missing settings of a source.
fn missing(source: &SourceDescription, contents: &Contents) -> Option<String> {
    let id = source_id(source);
    let protocol = &source.protocol;
    match protocol {
        _ if matches!(config(source), Err(NoConfig::Registers(_))) => {
            let id = id.map_or_else(String::new, |id| format!("{id}="));
            Some(format!("--source {id}{protocol},cpu=CPU"))
        }
        Protocol::Mtb if source.registers.get("MTB_POSITION").is_none() => {
            Some("--source mtb,position=VALUE,master=VALUE".to_owned())
        }
        _ if id.is_none() && contents.frames.is_some() => Some(format!("--source ID={protocol}")),
        _ => None,
    }
}

fn source_id(source: &SourceDescription) -> Option<TraceId> {
    source.id.or_else(|| config(source).ok()?.trace_id())
}

fn has_full_sync(bytes: &[u8]) -> bool {
    bytes.windows(FSYNC.len()).any(|bytes| bytes == FSYNC)
}

fn refuse(buffer: &Buffer, needed: &str) -> OpenError {
    OpenError::NotStated { file: buffer.file.clone(), needed: needed.to_owned() }
}
