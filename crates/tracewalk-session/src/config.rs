//! A source's description → its decoder's configuration.

use std::fmt::Display;

use tracewalk::ids::Profile;
use tracewalk::protocol::{etmv3, etmv4, mtb, pft};
use tracewalk::source::SourceConfig;
use tracewalk_input::capture::{Protocol, SourceDescription};
use tracewalk_input::cpu;

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
        Protocol::Mtb => Ok(SourceConfig::Mtb(mtb::Source::default())),
        Protocol::Itm | Protocol::Unknown(_) => Err(NoConfig::NotDecoded),
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
