//! Looks up a processor's architecture profile and the usual values of its trace unit's registers by name.
//!
//! The values come from the protocols (`tracewalk::protocol`); this module knows the usual spellings of a
//! processor's name.
//!
//! ```
//! use tracewalk_input::cpu::{Profile, UsualRegisters};
//!
//! assert_eq!(Profile::of_cpu("Cortex-M3"), Some(Profile::M));
//! let usual = UsualRegisters::of_cpu("cortex_m3").expect("a known processor");
//! assert_eq!(usual.cpu, "cortex-m3");
//! assert!(usual.iter().any(|(name, _)| name == "ETMIDR"));
//! ```

use std::fmt;

use tracewalk::protocol::{etmv3, etmv4, pft};

use crate::origin::Origin;

/// An architecture profile, which determines the numbering of exceptions and the instruction sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Application: ARM and Thumb, Cortex-A.
    A,
    /// Real-time: ARM and Thumb, Cortex-R.
    R,
    /// Microcontroller: Thumb only, exceptions by a table of addresses, Cortex-M.
    M,
    /// ARM7 to ARM11, which precede the profiles.
    Classic,
}

impl Profile {
    /// The profile of the processor with this name, in any of the usual spellings (`Cortex-M3`, `cortex_m3`).
    #[must_use]
    pub fn of_cpu(name: &str) -> Option<Self> {
        let name = canonical(name);
        let family = name.strip_prefix("cortex-").unwrap_or("");
        match family.as_bytes().first() {
            Some(b'a' | b'x') => Some(Self::A),
            Some(b'r') => Some(Self::R),
            Some(b'm') => Some(Self::M),
            _ if name.starts_with("neoverse") => Some(Self::A),
            _ if name.starts_with("armv") => Self::of_architecture(&name),
            _ if name.starts_with("arm7") || name.starts_with("arm9") || name.starts_with("arm1") => {
                Some(Self::Classic)
            }
            _ if name.starts_with("sc000") || name.starts_with("sc300") || name.starts_with("star-mc1") => {
                Some(Self::M)
            }
            _ => None,
        }
    }

    /// The profile of an architecture in the form of snapshots' processor names: `ARMv8-M`.
    fn of_architecture(name: &str) -> Option<Self> {
        match name.rsplit_once('-')?.1 {
            "a" => Some(Self::A),
            "r" => Some(Self::R),
            "m" => Some(Self::M),
            _ => None,
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A profile",
            Self::R => "R profile",
            Self::M => "M profile",
            Self::Classic => "an architecture before profiles",
        })
    }
}

/// Usual register values of a processor's trace unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsualRegisters {
    /// The processor, as `cpu=` takes it.
    pub cpu: &'static str,
    /// Register values by Arm's names.
    registers: Vec<(&'static str, u32)>,
    /// Whether the values are assumed from related processors.
    is_assumed: bool,
}

impl UsualRegisters {
    /// The usual values for the processor with this name, in any of the usual spellings.
    #[must_use]
    pub fn of_cpu(name: &str) -> Option<Self> {
        let name = canonical(name);
        if let Some(core) = etmv4::Core::named(&name) {
            return Some(Self::of_etmv4(core));
        }
        let (cpu, etmidr, etmccer) = match etmv3::Core::named(&name) {
            Some(core) => (core.name(), core.registers().etmidr, core.registers().etmccer),
            None => {
                let core = pft::Core::named(&name)?;
                (core.name(), core.registers().etmidr, core.registers().etmccer)
            }
        };
        // ETMCR is a setting, not a property of a processor. 0 is instruction trace with nothing added: no
        // context IDs, cycle counts or data, which would change the packets' lengths.
        let registers = [("ETMCR", Some(0)), ("ETMIDR", etmidr), ("ETMCCER", etmccer)];
        Some(Self { cpu, registers: given(registers), is_assumed: false })
    }

    fn of_etmv4(core: etmv4::Core) -> Self {
        let usual = etmv4::Registers::default().or_usual_of(core);
        let registers = [
            ("TRCCONFIGR", usual.trcconfigr),
            ("TRCDEVARCH", usual.trcdevarch),
            ("TRCIDR0", usual.trcidr0),
            ("TRCIDR1", usual.trcidr1),
            ("TRCIDR2", usual.trcidr2),
            ("TRCIDR8", usual.trcidr8),
        ];
        let is_assumed = core.certainty() == etmv4::Certainty::Assumed;
        Self { cpu: core.name(), registers: given(registers), is_assumed }
    }

    /// The names of the known processors.
    pub fn cpus() -> impl Iterator<Item = &'static str> {
        etmv3::Core::names().chain(pft::Core::names()).chain(etmv4::Core::names())
    }

    /// Register values by Arm's names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u32)> {
        self.registers.iter().copied()
    }

    /// The origin of the values.
    #[must_use]
    pub fn origin(&self) -> Origin {
        if self.is_assumed {
            Origin::Assumed(self.cpu.to_owned())
        } else {
            Origin::Usual(self.cpu.to_owned())
        }
    }
}

fn given<const N: usize>(registers: [(&'static str, Option<u32>); N]) -> Vec<(&'static str, u32)> {
    registers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Converts `Cortex-A7`, `ARM Cortex A7` and `cortex_a7` to `cortex-a7`.
fn canonical(name: &str) -> String {
    let mut canonical = name.trim().to_ascii_lowercase().replace(['_', ' '], "-");
    if let Some(rest) = canonical.strip_prefix("arm-") {
        canonical = rest.to_owned();
    }
    if let Some(family) = canonical.strip_prefix("cortex").filter(|family| !family.starts_with('-')) {
        canonical = format!("cortex-{family}");
    }
    canonical
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_known_in_any_spelling() {
        for name in ["Cortex-M3", "cortex-m3", "CORTEX_M3", "ARM Cortex-M3", "CortexM3"] {
            assert_eq!(Profile::of_cpu(name), Some(Profile::M), "{name}");
            assert_eq!(UsualRegisters::of_cpu(name).map(|usual| usual.cpu), Some("cortex-m3"), "{name}");
        }
        assert_eq!(Profile::of_cpu("Cortex-A15"), Some(Profile::A));
        assert_eq!(Profile::of_cpu("Cortex-R5"), Some(Profile::R));
        assert_eq!(Profile::of_cpu("ARM1136"), Some(Profile::Classic));
        assert_eq!(Profile::of_cpu("ARMv8-M"), Some(Profile::M));
        assert_eq!(Profile::of_cpu("ARMv8-A"), Some(Profile::A));
        assert_eq!(Profile::of_cpu("Neoverse-N1"), Some(Profile::A));
        assert_eq!(Profile::of_cpu("Z80"), None);
        assert!(UsualRegisters::of_cpu("cortex-m0").is_none());
    }

    #[test]
    fn what_nobody_has_said_of_a_processor_is_assumed_for_it() {
        let origin = |cpu| UsualRegisters::of_cpu(cpu).map(|usual| usual.origin());
        assert_eq!(origin("Cortex-A53"), Some(Origin::Usual("cortex-a53".to_owned())));
        assert_eq!(origin("Cortex-A520"), Some(Origin::Assumed("cortex-a520".to_owned())));
        assert_eq!(origin("Neoverse_N2"), Some(Origin::Assumed("neoverse-n2".to_owned())));
        let registers = |cpu: &str| UsualRegisters::of_cpu(cpu).map(|usual| usual.iter().collect::<Vec<_>>());
        assert_eq!(
            registers("cortex-m33").unwrap_or_default(),
            [
                ("TRCCONFIGR", 1),
                ("TRCIDR0", 0x2800_06e1),
                ("TRCIDR1", 0x4100_f420),
                ("TRCIDR2", 0x4),
                ("TRCIDR8", 0)
            ]
        );
    }

    #[test]
    fn every_processor_with_usual_registers_has_a_profile_and_keeps_its_name() {
        for cpu in UsualRegisters::cpus() {
            assert!(Profile::of_cpu(cpu).is_some(), "{cpu}");
            assert_eq!(UsualRegisters::of_cpu(cpu).map(|usual| usual.cpu), Some(cpu));
        }
    }
}
