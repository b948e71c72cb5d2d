//! Processors by name: their architecture profile and the usual values of their trace unit's registers.
//!
//! The values are those of the technical reference manuals and of captures. ETMIDR's last digit is the trace unit's
//! revision, which changes no packet.

use std::fmt;

/// An architecture profile: how exceptions are numbered and which instruction sets exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Application: ARM and Thumb, Cortex-A.
    A,
    /// Real-time: ARM and Thumb, Cortex-R.
    R,
    /// Microcontroller: Thumb only, exceptions by a table of addresses, Cortex-M.
    M,
    /// Before there were profiles: ARM7 to ARM11.
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
            _ if name.starts_with("arm7") || name.starts_with("arm9") || name.starts_with("arm1") => {
                Some(Self::Classic)
            }
            _ if name.starts_with("sc000") || name.starts_with("sc300") || name.starts_with("star-mc1") => {
                Some(Self::M)
            }
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

/// What is usual for a processor's trace unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsualRegisters {
    /// The processor, as `cpu=` takes it.
    pub cpu: &'static str,
    /// Register values by Arm's names.
    pub registers: &'static [(&'static str, u32)],
}

impl UsualRegisters {
    /// What is usual for the processor with this name, in any of the usual spellings.
    #[must_use]
    pub fn of_cpu(name: &str) -> Option<&'static Self> {
        let name = canonical(name);
        USUAL.iter().find(|usual| usual.cpu == name)
    }

    /// Every processor that is known, in the order of the names.
    #[must_use]
    pub const fn all() -> &'static [Self] {
        USUAL
    }
}

/// `Cortex-A7`, `ARM Cortex A7` and `cortex_a7` as `cortex-a7`; a part behind a dot or `@` is left out.
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

/// ETMCR is not a property of a processor but of how it was set up. 0 is instruction trace with nothing added: no
/// context IDs, cycle counts or data, which would change the packets' lengths.
const PLAIN: (&str, u32) = ("ETMCR", 0);

const USUAL: &[UsualRegisters] = &[
    UsualRegisters { cpu: "arm1136", registers: &[PLAIN, ("ETMIDR", 0x4101_3211)] },
    UsualRegisters { cpu: "arm1156", registers: &[PLAIN, ("ETMIDR", 0x4101_3211)] },
    UsualRegisters { cpu: "arm1176", registers: &[PLAIN, ("ETMIDR", 0x4101_3211)] },
    UsualRegisters { cpu: "arm9", registers: &[PLAIN, ("ETMIDR", 0x4100_1220)] },
    UsualRegisters {
        cpu: "cortex-a12",
        registers: &[PLAIN, ("ETMIDR", 0x411c_f312), ("ETMCCER", 0x34c0_1ac2)],
    },
    UsualRegisters {
        cpu: "cortex-a15",
        registers: &[PLAIN, ("ETMIDR", 0x411c_f312), ("ETMCCER", 0x34c0_1ac2)],
    },
    UsualRegisters {
        cpu: "cortex-a17",
        registers: &[PLAIN, ("ETMIDR", 0x411c_f312), ("ETMCCER", 0x34c0_1ac2)],
    },
    UsualRegisters { cpu: "cortex-a5", registers: &[PLAIN, ("ETMIDR", 0x410c_f250)] },
    UsualRegisters {
        cpu: "cortex-a7",
        registers: &[PLAIN, ("ETMIDR", 0x410c_f250), ("ETMCCER", 0x3440_08f2)],
    },
    UsualRegisters { cpu: "cortex-a8", registers: &[PLAIN, ("ETMIDR", 0x410c_f230)] },
    UsualRegisters {
        cpu: "cortex-a9",
        registers: &[PLAIN, ("ETMIDR", 0x411c_f301), ("ETMCCER", 0x0000_08ea)],
    },
    UsualRegisters {
        cpu: "cortex-m3",
        registers: &[PLAIN, ("ETMIDR", 0x4114_f250), ("ETMCCER", 0x1854_1800)],
    },
    UsualRegisters {
        cpu: "cortex-m4",
        registers: &[PLAIN, ("ETMIDR", 0x4114_f250), ("ETMCCER", 0x1854_1800)],
    },
    UsualRegisters { cpu: "cortex-r4", registers: &[PLAIN, ("ETMIDR", 0x4104_f230)] },
    UsualRegisters { cpu: "cortex-r5", registers: &[PLAIN, ("ETMIDR", 0x4104_f230)] },
];

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
        assert_eq!(Profile::of_cpu("Z80"), None);
        assert!(UsualRegisters::of_cpu("cortex-a53").is_none());
    }

    #[test]
    fn the_usual_table_is_sorted_and_has_a_profile_for_each() {
        assert!(USUAL.is_sorted_by_key(|usual| usual.cpu));
        assert!(USUAL.iter().all(|usual| Profile::of_cpu(usual.cpu).is_some()));
    }
}
