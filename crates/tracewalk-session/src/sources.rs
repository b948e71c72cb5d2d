//! The identified sources of a buffer → the sources and ITMs that can be decoded, with their configurations.

use std::fmt::Display;

use tracewalk::ids::{Profile, TraceId};
use tracewalk::protocol::mtb::Source as MtbSource;
use tracewalk::protocol::mtb::order::Dump;
use tracewalk::protocol::{etmv3, etmv4, pft};
use tracewalk::source::SourceConfig;
use tracewalk_analysis::drive::Carrier;
use tracewalk_input::capture::{Protocol, SourceDescription};
use tracewalk_input::cpu;

use crate::error::OpenError;
use crate::frames::Frames;
use crate::model::{Contents, Identified, Itm, Source, stretches};
use crate::notice::NoticeKind;
use crate::observer::{Observer, Say};
use crate::session::Session;

impl Session {
    /// The source for an identified one; `None` if it cannot or need not be decoded.
    pub(crate) fn source(
        &self,
        buffer: usize,
        contents: &Contents,
        identified: &Identified,
        observer: &dyn Observer,
    ) -> Result<Option<Source>, OpenError> {
        let source = &identified.source;
        let config = match config(source) {
            Ok(SourceConfig::Mtb(_)) => {
                SourceConfig::Mtb(MtbSource { halted_at: self.request.stated.mtb.halted_at })
            }
            Ok(config) => config,
            Err(problem) => {
                say_why_not(contents, identified, problem, observer);
                return Ok(None);
            }
        };
        let id = source.id.or(config.trace_id());
        let is_absent = |frames: &Frames| id.is_some_and(|id| !frames.sources.contains_key(&id));
        if !self.arriving && contents.frames.as_ref().is_some_and(is_absent) {
            return Ok(None);
        }
        let carrier = match (&contents.frames, id) {
            (Some(frames), Some(id)) => self.in_frames(frames, id),
            (Some(_), None) => return Err(OpenError::NoTraceId(source.protocol.clone())),
            (None, _) if source.protocol == Protocol::Mtb => {
                let dumped = self.dumps.get(buffer).and_then(Option::as_ref);
                let address = dumped.and_then(|dumped| dumped.address);
                let holes = dumped.map_or(&[][..], |dumped| &dumped.holes);
                let dump = Dump { data: &self.capture.buffers[buffer].bytes, address, holes };
                crate::mtb::carrier(dump, source, self.known.program(source), observer)?
            }
            (None, _) => Carrier::Stretches(stretches(&self.capture.buffers[buffer])),
        };
        let id = if contents.frames.is_some() { id } else { source.id };
        Ok(Some(Source {
            buffer,
            id,
            description: source.clone(),
            config,
            carrier,
            findings: identified.findings.clone(),
            correction: identified.correction.clone(),
            fits: identified.fits && !self.arriving,
        }))
    }

    /// The carrier of a source in frames. Frames that are still arriving have no index.
    fn in_frames(&self, frames: &Frames, id: TraceId) -> Carrier {
        match &frames.index {
            Some(index) if !self.arriving => Carrier::Indexed { index: index.clone(), id },
            _ => Carrier::Frames { framing: frames.framing, id },
        }
    }

    /// The ITM or STM that a source is, if it is one and has bytes.
    pub(crate) fn itm(&self, buffer: usize, contents: &Contents, identified: &Identified) -> Option<Itm> {
        let source = &identified.source;
        if !matches!(source.protocol, Protocol::Itm | Protocol::Stm) {
            return None;
        }
        let carrier = match (&contents.frames, source.id) {
            (Some(frames), Some(id)) if self.arriving || frames.sources.contains_key(&id) => {
                self.in_frames(frames, id)
            }
            (Some(_), _) => return None,
            (None, _) => Carrier::Stretches(stretches(self.capture.buffers.get(buffer)?)),
        };
        let (description, findings) = (source.clone(), identified.findings.clone());
        Some(Itm { buffer, id: source.id, description, carrier, findings })
    }
}

/// Reports why a source is not decoded.
fn say_why_not(contents: &Contents, identified: &Identified, problem: NoConfig, observer: &dyn Observer) {
    let source = &identified.source;
    let has_bytes = |frames: &Frames| source.id.is_none_or(|id| frames.sources.contains_key(&id));
    match problem {
        NoConfig::NotDecoded if matches!(source.protocol, Protocol::Itm | Protocol::Stm) => {}
        NoConfig::NotDecoded => {
            if contents.frames.as_ref().is_none_or(has_bytes) {
                let (source, protocol) = (source.id, source.protocol.clone());
                observer.say(NoticeKind::NotDecoded { source, protocol });
            }
        }
        NoConfig::Registers(problem) => {
            let (source, protocol) = (source.id, source.protocol.clone());
            observer.say(NoticeKind::RegistersMissing { source, protocol, problem });
        }
    }
}

/// Why a source is not decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoConfig {
    /// The source's protocol is unknown, or does not trace instructions.
    NotDecoded,
    /// The registers do not make a configuration.
    Registers(String),
}

/// The configuration for a description alone, without a capture: for bytes that are not in a file. The text of a description is
/// that of the option `--source`; registers that it omits have the values that are usual for its `cpu`.
///
/// ```
/// let description = "etmv4,cpu=cortex-m33,trcconfigr=0x1001".parse()?;
/// let config = tracewalk_session::source_config(&description)?;
/// assert_eq!(config.protocol(), "etmv4");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The missing registers, if the description is not enough to decode the source.
pub fn source_config(description: &SourceDescription) -> Result<SourceConfig, String> {
    config(description).map_err(|problem| match problem {
        NoConfig::NotDecoded => format!("{} is not decoded to program flow", description.protocol.name()),
        NoConfig::Registers(problem) => problem,
    })
}

/// The configuration for a description.
pub(crate) fn config(description: &SourceDescription) -> Result<SourceConfig, NoConfig> {
    let register = |name| description.registers.get(name);
    let cpu = description.cpu.as_ref().map(|cpu| cpu.value.as_str());
    match description.protocol {
        Protocol::EtmV3 => {
            let registers = etmv3::Registers {
                etmcr: register("ETMCR"),
                etmidr: register("ETMIDR"),
                etmccer: register("ETMCCER"),
                etmtraceidr: register("ETMTRACEIDR"),
            };
            let core = cpu.and_then(etmv3::Core::named);
            let named = core.is_some() || registers.etmidr.is_some();
            etmv3::Config::from_registers(registers, core)
                .map(SourceConfig::Etmv3)
                .map_err(|error| without_registers(description, named, &error))
        }
        Protocol::Pft => {
            let registers = pft::Registers {
                etmcr: register("ETMCR"),
                etmidr: register("ETMIDR"),
                etmccer: register("ETMCCER"),
                etmtraceidr: register("ETMTRACEIDR"),
            };
            // Registers take precedence over the processor's name, which only gives usual values.
            let core = cpu.and_then(pft::Core::named).filter(|_| registers.etmidr.is_none());
            let named = core.is_some() || registers.etmidr.is_some();
            pft::Config::from_registers(registers, core)
                .map(SourceConfig::Pft)
                .map_err(|error| without_registers(description, named, &error))
        }
        Protocol::Etmv4 => {
            let registers = etmv4::Registers {
                trcconfigr: register("TRCCONFIGR"),
                trctraceidr: register("TRCTRACEIDR"),
                trcdevarch: register("TRCDEVARCH"),
                trcidr0: register("TRCIDR0"),
                trcidr1: register("TRCIDR1"),
                trcidr2: register("TRCIDR2"),
                trcidr8: register("TRCIDR8"),
                trcidr12: register("TRCIDR12"),
                trcidr13: register("TRCIDR13"),
            };
            let profile = description.profile().map(|profile| match profile {
                cpu::Profile::M => Profile::M,
                cpu::Profile::A | cpu::Profile::R | cpu::Profile::Classic => Profile::Ar,
            });
            etmv4::Config::from_registers(registers, profile)
                .map(SourceConfig::Etmv4)
                .map_err(|error| NoConfig::Registers(error.to_string()))
        }
        Protocol::Mtb => Ok(SourceConfig::Mtb(MtbSource::default())),
        Protocol::Itm | Protocol::Stm | Protocol::Unknown(_) => Err(NoConfig::NotDecoded),
    }
}

/// Why there is no configuration; `named`: whether the trace unit is stated.
fn without_registers(description: &SourceDescription, named: bool, error: &dyn Display) -> NoConfig {
    match description.cpu.as_ref().filter(|_| !named) {
        Some(cpu) => NoConfig::Registers(format!(
            "ETMIDR is not given, and no {} trace unit for {} is known",
            description.protocol.name(),
            cpu.value
        )),
        None => NoConfig::Registers(error.to_string()),
    }
}
