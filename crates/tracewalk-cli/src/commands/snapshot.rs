//! `describe --format ds5`: a capture as the directory that DS-5 and OpenCSD read.
use std::sync::Arc;

use std::io::{self, Write};
use std::path::Path;

use tracewalk::frame::Framing;
use tracewalk::protocol::{etmv4, pft};
use tracewalk::source::SourceConfig;
use tracewalk_analysis::Code;
use tracewalk_input::capture::{
    Protocol, Snapshot, SnapshotBuffer, SnapshotCore, SnapshotSource, SourceDescription, TraceBytes,
};

use tracewalk_session::{Frames, Session, Source, repack};

use crate::args::CaptureArgs;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::OutputFolder;
use tracewalk_report::counted;
use tracewalk_sentences::source_name;

/// The trace ID in the registers of a source that has none.
const USUAL_ID: u32 = 0x10;

/// The registers that OpenCSD needs besides the trace ID, for ETMv3 and PFT.
const EARLIER: &[&str] = &["ETMCR", "ETMIDR", "ETMCCER"];
/// The registers for ETMv4.
const LATER: &[&str] = &[
    "TRCCONFIGR",
    "TRCAUTHSTATUS",
    "TRCIDR0",
    "TRCIDR1",
    "TRCIDR2",
    "TRCIDR8",
    "TRCIDR9",
    "TRCIDR10",
    "TRCIDR11",
    "TRCIDR12",
    "TRCIDR13",
];
/// The registers for ETE.
const EXTENSION: &[&str] = &["TRCCONFIGR", "TRCDEVARCH", "TRCIDR0", "TRCIDR1", "TRCIDR2", "TRCIDR8"];

/// Writes a snapshot directory.
pub(super) fn run(args: &CaptureArgs, output: &Path, messages: &Messages) -> Result<(), Failure> {
    let mut session = open::whole(args, messages)?;
    if session.capture().recorded.is_some() {
        return Err(Failure::input(
            "not_in_snapshot",
            "a snapshot cannot hold the parts of a perf.data file".to_owned(),
            "open the file itself",
        ));
    }
    let mut cores = Vec::<(String, String, Arc<Code>)>::new();
    let mut sources = Vec::new();
    for (index, source) in session.sources().to_vec().iter().enumerate() {
        let core = source.description.core.clone().unwrap_or_else(|| format!("cpu_{index}"));
        if !cores.iter().any(|(name, ..)| *name == core) {
            let cpu = source.description.cpu.as_ref().map_or_else(String::new, |cpu| cpu.value.clone());
            cores.push((core.clone(), cpu, session.code(source, None, messages)?));
        }
        let described = trace_unit(source, index, core)?;
        sources.push((source.buffer, described));
    }
    for (buffer, contents) in session.contents().iter().enumerate() {
        sources.extend(contents.sources.iter().filter_map(itm).map(|source| (buffer, source)));
    }
    if cores.iter().any(|(.., code)| code.program.scopes().next().is_some()) {
        messages.warning("contexts_left_out", format_args!(
            "images for a context ID or VMID are left out: a snapshot directory cannot state contexts; `tracewalk describe` can"
        ));
    }
    let trace = traces(&session, messages);
    let buffers = trace.iter().enumerate().map(|(index, trace)| {
        let own = sources.iter().filter(|(buffer, _)| *buffer == index);
        let names = own.map(|(_, source)| source.name.clone()).collect();
        let frames = !matches!(trace, Trace::Source(_));
        SnapshotBuffer { name: format!("BUFFER_{index}"), frames, bytes: trace, sources: names }
    });
    let cores = cores.iter().map(|(name, cpu, code)| {
        let regions = code.program.regions().iter();
        let memory = regions.map(|region| (region.start(), region.bytes())).collect();
        SnapshotCore { name: name.clone(), cpu: cpu.clone(), memory }
    });
    let snapshot = Snapshot {
        cores: cores.collect(),
        buffers: buffers.collect(),
        sources: sources.iter().map(|(_, source)| source.clone()).collect(),
        timestamp_frequency: session.capture().timestamp_frequency.as_ref().map(|stated| stated.value),
    };
    write(output, &snapshot)
}

fn write(directory: &Path, snapshot: &Snapshot<'_>) -> Result<(), Failure> {
    let folder = OutputFolder::new(directory)?;
    for file in snapshot.files() {
        let written = folder.create(&file.name).and_then(|mut out| file.write(&mut out));
        written.map_err(|error| Failure::write(&directory.join(&file.name), error))?;
    }
    folder.finish()
}

/// A trace unit with all registers that OpenCSD needs.
fn trace_unit(source: &Source, index: usize, core: String) -> Result<SnapshotSource, Failure> {
    let (kind, minor_version, needed, id_register) = match &source.config {
        SourceConfig::Etmv3(config) => ("ETM", config.minor_version(), EARLIER, "ETMTRACEIDR"),
        SourceConfig::Pft(config) => {
            ("PTM", u8::from(config.version() == pft::Version::V1_1), EARLIER, "ETMTRACEIDR")
        }
        SourceConfig::Etmv4(config) => match config.version() {
            etmv4::Version::Etmv4(minor) => ("ETM", minor, LATER, "TRCTRACEIDR"),
            etmv4::Version::Ete(minor) => ("ETE", minor, EXTENSION, "TRCTRACEIDR"),
        },
        config => {
            return Err(Failure::input(
                "not_in_snapshot",
                format!("{}: a snapshot cannot contain {}", source_name(source.id), config.protocol()),
                "use `tracewalk describe` instead",
            ));
        }
    };
    let known = &source.description.registers;
    let register = |name: &str| (name.to_owned(), known.get(name).unwrap_or(0));
    let id = source.id.map_or(USUAL_ID, |id| u32::from(id.get()));
    let mut registers = needed.iter().copied().map(register).collect::<Vec<_>>();
    registers.push((id_register.to_owned(), id));
    let is_written = |name: &str| name == id_register || needed.contains(&name);
    let others = known.iter().filter(|(name, _)| !is_written(name));
    registers.extend(others.map(|(name, stated)| (name.to_owned(), stated.value)));
    Ok(SnapshotSource {
        name: source.description.name.clone().unwrap_or_else(|| format!("{kind}_{index}")),
        protocol: source.description.protocol.clone(),
        minor_version,
        registers,
        core: Some(core),
    })
}

/// An ITM or STM, which has its trace ID in another register.
fn itm(source: &SourceDescription) -> Option<SnapshotSource> {
    let (kind, register) = match source.protocol {
        Protocol::Itm => ("ITM", "ITMTCR"),
        Protocol::Stm => ("STM", "STMTCSR"),
        _ => return None,
    };
    let id = source.id?;
    let name = source.name.clone().unwrap_or_else(|| format!("{kind}_{}", id.get()));
    let stated = source.registers.get("STMTCSR");
    let enabled = stated.unwrap_or(u32::from(id.get()) << 16 | 1);
    let others = source.other_registers().map(|(name, stated)| (name.to_owned(), stated.value));
    let registers = std::iter::once((register.to_owned(), enabled)).chain(others).collect();
    Some(SnapshotSource { name, protocol: source.protocol.clone(), minor_version: 0, registers, core: None })
}

/// A buffer's bytes as OpenCSD takes them. Such bytes may exceed the memory.
#[derive(Debug)]
enum Trace<'a> {
    /// One source's.
    Source(&'a [u8]),
    /// Frames that need no change.
    Frames(&'a [u8]),
    /// Frames that are repacked when written.
    Repacked(&'a [u8], Framing),
}

impl TraceBytes for Trace<'_> {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Source(bytes) | Self::Frames(bytes) => out.write_all(bytes),
            Self::Repacked(bytes, framing) => repack(bytes, *framing, out),
        }
    }
}

/// The trace of each buffer; reports the parts that a snapshot cannot hold.
fn traces<'a>(session: &'a Session, messages: &Messages) -> Vec<Trace<'a>> {
    let buffers = session.capture().buffers.iter().zip(session.contents());
    let trace = buffers.map(|(buffer, contents)| match &contents.frames {
        None => Trace::Source(&buffer.bytes),
        Some(frames) if is_aligned(frames) && buffer.bytes.len().is_multiple_of(16) => {
            Trace::Frames(&buffer.bytes)
        }
        Some(frames) => {
            if frames.discontinuities > 0 {
                messages.warning(
                    "losses_not_marked",
                    format_args!(
                        "{}: {} where trace was lost cannot be marked in a snapshot",
                        buffer.file.display(),
                        counted(frames.discontinuities, "place")
                    ),
                );
            }
            Trace::Repacked(&buffer.bytes, frames.framing)
        }
    });
    trace.collect()
}

/// Whether frames are those of a buffer, without discontinuities.
fn is_aligned(frames: &Frames) -> bool {
    frames.framing == Framing::Buffer && frames.discontinuities == 0
}
