//! Processors by name, and the usual registers of their ETMv3 or PTM.

use super::registers::{Registers, etmidr};
use crate::ids::Profile;

/// A processor with a trace unit whose usual registers are known. `MAJOR` is the architecture's major version in ETMIDR: 2 for
/// ETMv3, 3 for PFT.
///
/// ETMIDR values are those of the processors' technical reference manuals. The last digit varies with the revision,
/// which decoding does not depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownCore<const MAJOR: u32>(Row);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    name: &'static str,
    profile: Profile,
    etmidr: u32,
    etmccer: u32,
}

/// An ETMCCER without timestamps, which do not exist before ETMv3.5.
pub(super) const NO_TIMESTAMPS: u32 = 0;
/// The value of TC2's Cortex-A7: 64-bit natural binary timestamps, Virtualization.
const CORTEX_A7_CCER: u32 = 0x3440_08f2;
/// Cortex-M3 r2 and M4: 48-bit natural binary timestamps.
const CORTEX_M_CCER: u32 = 0x1854_1800;
/// CoreSight PTM-A9 (DDI 0401).
pub(super) const PTM_V1_0_CCER: u32 = 0x00c0_19a2;
/// The value of the Cortex-A15 on the TC2 board: 64-bit natural binary timestamps, return stack,
/// Virtualization.
pub(super) const PTM_V1_1_CCER: u32 = 0x34c0_1ac2;

const CORES: [Row; 19] = [
    Row { name: "cortex-m3", profile: Profile::M, etmidr: 0x4114_f250, etmccer: CORTEX_M_CCER },
    Row { name: "cortex-m4", profile: Profile::M, etmidr: 0x4114_f250, etmccer: CORTEX_M_CCER },
    // No public ETMIDR was found for Cortex-M23: the encoding is expected to be that of its siblings.
    Row { name: "cortex-m23", profile: Profile::M, etmidr: 0x4114_f250, etmccer: CORTEX_M_CCER },
    Row { name: "cortex-a5", profile: Profile::Ar, etmidr: 0x410c_f250, etmccer: CORTEX_A7_CCER },
    Row { name: "cortex-a7", profile: Profile::Ar, etmidr: 0x410c_f250, etmccer: CORTEX_A7_CCER },
    Row { name: "cortex-a8", profile: Profile::Ar, etmidr: 0x410c_f230, etmccer: NO_TIMESTAMPS },
    Row { name: "cortex-r4", profile: Profile::Ar, etmidr: 0x4104_f230, etmccer: NO_TIMESTAMPS },
    Row { name: "cortex-r5", profile: Profile::Ar, etmidr: 0x4104_f230, etmccer: NO_TIMESTAMPS },
    Row { name: "arm1136", profile: Profile::Ar, etmidr: 0x4101_3211, etmccer: NO_TIMESTAMPS },
    Row { name: "arm1156", profile: Profile::Ar, etmidr: 0x4101_3211, etmccer: NO_TIMESTAMPS },
    Row { name: "arm1176", profile: Profile::Ar, etmidr: 0x4101_3211, etmccer: NO_TIMESTAMPS },
    Row { name: "arm926", profile: Profile::Ar, etmidr: 0x4100_1220, etmccer: NO_TIMESTAMPS },
    Row { name: "arm946", profile: Profile::Ar, etmidr: 0x4100_1220, etmccer: NO_TIMESTAMPS },
    Row { name: "arm966", profile: Profile::Ar, etmidr: 0x4100_1220, etmccer: NO_TIMESTAMPS },
    Row { name: "arm968", profile: Profile::Ar, etmidr: 0x4100_1220, etmccer: NO_TIMESTAMPS },
    Row { name: "cortex-a9", profile: Profile::Ar, etmidr: 0x411c_f300, etmccer: PTM_V1_0_CCER },
    Row { name: "cortex-a12", profile: Profile::Ar, etmidr: 0x411c_f310, etmccer: PTM_V1_1_CCER },
    Row { name: "cortex-a15", profile: Profile::Ar, etmidr: 0x411c_f312, etmccer: PTM_V1_1_CCER },
    Row { name: "cortex-a17", profile: Profile::Ar, etmidr: 0x411c_f310, etmccer: PTM_V1_1_CCER },
];

impl<const MAJOR: u32> KnownCore<MAJOR> {
    fn all() -> impl Iterator<Item = Self> {
        CORES.into_iter().filter(|core| etmidr::major(core.etmidr) == MAJOR).map(Self)
    }

    /// The core of this name, like `cortex-m3`; case does not matter.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|core| core.0.name.eq_ignore_ascii_case(name))
    }

    /// The names of all known cores.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::all().map(Self::name)
    }

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// The core's profile.
    #[must_use]
    pub const fn profile(self) -> Profile {
        self.0.profile
    }

    pub(super) const fn etmidr(self) -> u32 {
        self.0.etmidr
    }

    pub(super) const fn etmccer(self) -> u32 {
        self.0.etmccer
    }

    /// The core's usual ETMIDR and ETMCCER. The other registers depend on the setup.
    #[must_use]
    pub const fn registers(self) -> Registers {
        let Row { etmidr, etmccer, .. } = self.0;
        Registers { etmcr: None, etmidr: Some(etmidr), etmccer: Some(etmccer), etmtraceidr: None }
    }
}
