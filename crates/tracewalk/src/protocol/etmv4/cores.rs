//! Processors by name, and the usual registers of their trace units.

use core::str::FromStr;

use super::registers::{Registers, field};
use crate::ids::Profile;
use crate::protocol::UnknownCore;

/// The evidence for the values of a processor's ID registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Certainty {
    /// Captures of such a processor hold these values.
    Captured,
    /// The processor's Technical Reference Manual states the fields that decoding depends on.
    Documented,
    /// The values are likely by the architecture, or are those of a related processor.
    Assumed,
}

/// A processor that is traced by ETMv4 or ETE. The last digit of TRCIDR1 varies with the revision, which decoding does not
/// depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Core {
    name: &'static str,
    profile: Profile,
    version: Unit,
    trcidr0: u32,
    trcidr2: u32,
    certainty: Certainty,
}

/// The architecture, with the register that states its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// TRCIDR1.
    Etmv4(u32),
    /// TRCDEVARCH.
    Ete(u32),
}

/// TRCIDR0 of Cortex-A: cycle counting, return stack, four events, 64-bit timestamps, commit mode 1.
const A_PROFILE: u32 = 0x2800_0ea1;
/// TRCIDR0 of ETE: the same with Q elements.
const ETE: u32 = 0x2801_cea1;
/// TRCIDR0 of Cortex-M: the same as of Cortex-A with two events.
const M_PROFILE: u32 = 0x2800_06e1;

/// TRCIDR2: 64-bit addresses, 32-bit context IDs, VMIDs of one byte.
const BYTE_VMID: u32 = 0x0000_0488;
/// The same with VMIDs of four bytes, which may be CONTEXTIDR_EL2.
const WORD_VMID: u32 = 0x2000_1088;
/// The same in ETE, where waits are waypoints, with a cycle counter of 20 bits.
const ETE_SIZES: u32 = 0xd000_1088;
/// 32-bit addresses, 32-bit context IDs, VMIDs of one byte.
const AARCH32: u32 = 0x0000_0484;
/// The same without Virtualization.
const AARCH32_WITHOUT_VMID: u32 = 0x0000_0084;
/// 32-bit addresses alone.
const ADDRESSES_ALONE: u32 = 0x0000_0004;

/// TRCDEVARCH of ETE 1.0.
const ETE_1_0: u32 = 0x4770_5a13;

const fn a(name: &'static str, trcidr1: u32, trcidr2: u32, certainty: Certainty) -> Core {
    Core { name, profile: Profile::Ar, version: Unit::Etmv4(trcidr1), trcidr0: A_PROFILE, trcidr2, certainty }
}

const fn ete(name: &'static str) -> Core {
    Core {
        name,
        profile: Profile::Ar,
        version: Unit::Ete(ETE_1_0),
        trcidr0: ETE,
        trcidr2: ETE_SIZES,
        certainty: Certainty::Assumed,
    }
}

const fn m(name: &'static str, trcidr1: u32, trcidr0: u32, certainty: Certainty) -> Core {
    Core {
        name,
        profile: Profile::M,
        version: Unit::Etmv4(trcidr1),
        trcidr0,
        trcidr2: ADDRESSES_ALONE,
        certainty,
    }
}

/// ETMv4.0, 4.2 and 4.5 in TRCIDR1.
const V4_0: u32 = 0x4100_f400;
const V4_2: u32 = 0x4100_f420;
const V4_5: u32 = 0x4100_f454;

/// The captured values are from boards with Cortex-A53, A57 and A72 and from a Cortex-M55, the documented ones from the Technical
/// Reference Manual of the ETM-M33 (100232). Of Cortex-A35 and A76 only TRCIDR0 is from their manuals; the rest is assumed.
const CORES: &[Core] = &[
    a("cortex-a32", V4_0, AARCH32, Certainty::Assumed),
    a("cortex-a34", V4_0, BYTE_VMID, Certainty::Assumed),
    a("cortex-a35", V4_0, BYTE_VMID, Certainty::Assumed),
    a("cortex-a53", 0x4100_f403, BYTE_VMID, Certainty::Captured),
    a("cortex-a55", V4_2, WORD_VMID, Certainty::Assumed),
    a("cortex-a57", 0x4100_f402, BYTE_VMID, Certainty::Captured),
    a("cortex-a65", V4_2, WORD_VMID, Certainty::Assumed),
    a("cortex-a65ae", V4_2, WORD_VMID, Certainty::Assumed),
    a("cortex-a72", V4_0, BYTE_VMID, Certainty::Captured),
    a("cortex-a73", V4_0, BYTE_VMID, Certainty::Assumed),
    a("cortex-a75", V4_2, WORD_VMID, Certainty::Assumed),
    a("cortex-a76", V4_2, WORD_VMID, Certainty::Assumed),
    a("cortex-a76ae", V4_2, WORD_VMID, Certainty::Assumed),
    a("cortex-a77", V4_2, WORD_VMID, Certainty::Assumed),
    a("cortex-a78", V4_2, WORD_VMID, Certainty::Assumed),
    a("cortex-a78ae", V4_2, WORD_VMID, Certainty::Assumed),
    a("cortex-a78c", V4_2, WORD_VMID, Certainty::Assumed),
    a("cortex-x1", V4_2, WORD_VMID, Certainty::Assumed),
    a("cortex-x1c", V4_2, WORD_VMID, Certainty::Assumed),
    a("neoverse-e1", V4_2, WORD_VMID, Certainty::Assumed),
    a("neoverse-n1", V4_2, WORD_VMID, Certainty::Assumed),
    a("neoverse-v1", V4_2, WORD_VMID, Certainty::Assumed),
    ete("cortex-a510"),
    ete("cortex-a520"),
    ete("cortex-a710"),
    ete("cortex-a715"),
    ete("cortex-a720"),
    ete("cortex-a725"),
    ete("cortex-x2"),
    ete("cortex-x3"),
    ete("cortex-x4"),
    ete("cortex-x925"),
    ete("neoverse-n2"),
    ete("neoverse-n3"),
    ete("neoverse-v2"),
    ete("neoverse-v3"),
    a("cortex-r8", V4_0, AARCH32_WITHOUT_VMID, Certainty::Assumed),
    a("cortex-r52", V4_2, AARCH32, Certainty::Assumed),
    a("cortex-r82", V4_2, BYTE_VMID, Certainty::Assumed),
    m("cortex-m7", 0x4100_f401, 0x0800_06e1, Certainty::Assumed),
    m("cortex-m33", V4_2, M_PROFILE, Certainty::Documented),
    m("cortex-m35p", V4_2, M_PROFILE, Certainty::Assumed),
    m("cortex-m52", V4_5, M_PROFILE, Certainty::Assumed),
    m("cortex-m55", V4_5, M_PROFILE, Certainty::Captured),
    m("cortex-m85", V4_5, M_PROFILE, Certainty::Assumed),
];

/// From a name, like [`Core::named`].
impl FromStr for Core {
    type Err = UnknownCore;

    fn from_str(name: &str) -> Result<Self, UnknownCore> {
        Self::named(name).ok_or_else(|| UnknownCore::new(name, "ETMv4 or ETE", Self::names()))
    }
}

impl Core {
    /// The core of this name, like `cortex-a53`; case does not matter.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        CORES.iter().find(|core| core.name.eq_ignore_ascii_case(name)).copied()
    }

    /// The names of all known cores.
    pub fn names() -> impl Iterator<Item = &'static str> {
        CORES.iter().map(|core| core.name)
    }

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The core's profile.
    #[must_use]
    pub const fn profile(self) -> Profile {
        self.profile
    }

    /// The evidence for the core's usual registers.
    #[must_use]
    pub const fn certainty(self) -> Certainty {
        self.certainty
    }

    /// The core's usual ID registers. No core is publicly known to speculate in its trace. TRCCONFIGR and
    /// TRCTRACEIDR depend on the setup.
    #[must_use]
    pub const fn registers(self) -> Registers {
        let (trcidr1, trcdevarch) = match self.version {
            Unit::Etmv4(trcidr1) => (Some(trcidr1), None),
            Unit::Ete(trcdevarch) => (None, Some(trcdevarch)),
        };
        Registers {
            trcconfigr: None,
            trctraceidr: None,
            trcdevarch,
            trcidr0: Some(self.trcidr0),
            trcidr1,
            trcidr2: Some(self.trcidr2),
            trcidr8: Some(0),
            trcidr12: None,
            trcidr13: None,
        }
    }
}

impl Registers {
    /// These registers, with the core's usual values for those that are `None`: its ID registers, and a
    /// TRCCONFIGR of instruction trace alone.
    #[must_use]
    pub fn or_usual_of(self, core: Core) -> Self {
        let usual = core.registers();
        // A unit whose TRCIDR1 states ETMv4 is not one of ETE, whatever is usual for the core.
        let is_etmv4 = self.trcidr1.is_some_and(|trcidr1| field(trcidr1, 11, 8) == 4);
        Self {
            trcconfigr: self.trcconfigr.or(Some(1)),
            trctraceidr: self.trctraceidr,
            trcdevarch: self.trcdevarch.or(usual.trcdevarch.filter(|_| !is_etmv4)),
            trcidr0: self.trcidr0.or(usual.trcidr0),
            trcidr1: self.trcidr1.or(usual.trcidr1),
            trcidr2: self.trcidr2.or(usual.trcidr2),
            trcidr8: self.trcidr8.or(usual.trcidr8),
            trcidr12: self.trcidr12.or(usual.trcidr12),
            trcidr13: self.trcidr13.or(usual.trcidr13),
        }
    }
}
