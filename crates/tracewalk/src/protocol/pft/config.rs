//! PFT's configuration: registers → named fields.

use core::fmt;
use core::str::FromStr;

use crate::directive::{Granularity, Rules};
use crate::ids::TraceId;
use crate::protocol::UnknownCore;
use crate::protocol::known_core::{KnownCore, PTM_V1_0_CCER, PTM_V1_1_CCER};
use crate::protocol::registers::{self, ContextIdSize, Registers, etmcr, etmidr};
use crate::protocol::timestamp::TimestampFormat;

/// The configuration of a trace unit that decoding depends on.
///
/// The configuration omits whether timestamps and VMIDs are enabled: the decoder always accepts their
/// packets. A Cortex-A9 was observed to send timestamps that its ETMCCER denies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {
    /// The architecture's version.
    pub(super) version: Version,
    /// Whether taken direct branches get branch packets as well.
    pub(super) branch_broadcast: bool,
    /// Whether cycles are counted.
    pub(super) cycle_accurate: bool,
    /// How much of the context ID is traced.
    pub(super) context_id_size: ContextIdSize,
    /// Whether returns may be traced as plain atoms.
    pub(super) return_stack: bool,
    /// Whether DMB and DSB are waypoints.
    pub(super) barriers_are_waypoints: bool,
    /// How timestamps are written.
    pub(super) timestamp: TimestampFormat,
    /// Whether the next address is compressed against the address of a waypoint update.
    ///
    /// The specification is ambiguous: the section on branch address compression names branch and I-sync
    /// packets; the one on waypoint updates states that they are compressed in the same way. OpenCSD and
    /// ptm2human use waypoint updates as bases, which is the default here as well.
    pub(super) waypoint_updates_are_bases: bool,
    /// The source's ID in formatted trace.
    pub(super) trace_id: Option<TraceId>,
}

/// The versions of the architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Version {
    /// PFTv1.0.
    V1_0,
    /// PFTv1.1: Virtualization, timestamps of other forms, exception returns on A and R profile.
    V1_1,
}

/// A processor with a PTM whose usual registers are known.
pub type Core = KnownCore<MAJOR_VERSION>;

/// From a name, like [`Core::named`].
impl FromStr for Core {
    type Err = UnknownCore;

    fn from_str(name: &str) -> Result<Self, UnknownCore> {
        Self::named(name).ok_or_else(|| UnknownCore::new(name, "PFT", Self::names()))
    }
}

/// ETMIDR's major version of PFT.
const MAJOR_VERSION: u32 = 3;
/// ETMIDR's major version of ETMv3, which has the same registers: worth a hint.
const MAJOR_ETMV3: u32 = 2;

/// Why registers do not make a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A register that decoding depends on is not given, and there is no core to supply it.
    Missing {
        /// The name.
        register: &'static str,
    },
    /// ETMIDR is that of another architecture.
    NotPft {
        /// The value of ETMIDR.
        etmidr: u32,
    },
    /// ETMIDR is that of an unknown version.
    UnknownVersion {
        /// The value of ETMIDR.
        etmidr: u32,
    },
    /// ETMIDR states another version than the core's PTM has.
    VersionOfCore {
        /// The core.
        core: &'static str,
        /// The value of ETMIDR.
        etmidr: u32,
    },
    /// Branch broadcast and return stack are both on, which makes the trace unpredictable.
    BroadcastWithReturnStack {
        /// The value of ETMCR.
        etmcr: u32,
    },
    /// VMID tracing is on in a version that has none.
    VmidOnV1_0 {
        /// The value of ETMCR.
        etmcr: u32,
    },
    /// ETMTRACEIDR is no trace ID.
    TraceId {
        /// The register's value.
        found: u32,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Missing { register } => {
                write!(f, "{register} is not given, and no cpu name supplies it")
            }
            Self::NotPft { etmidr } => {
                let major = etmidr::major(etmidr);
                let hint = if major == MAJOR_ETMV3 { "; an ETMv3 source has this value" } else { "" };
                write!(
                    f,
                    "found major architecture version {major} in ETMIDR 0x{etmidr:08x}, expected 3 for PFT{hint}"
                )
            }
            Self::UnknownVersion { etmidr } => {
                let minor = etmidr::minor(etmidr);
                write!(f, "found PFTv1.{minor} in ETMIDR 0x{etmidr:08x}, expected PFTv1.0 or PFTv1.1")
            }
            Self::VersionOfCore { core, etmidr } => {
                let minor = etmidr::minor(etmidr);
                write!(
                    f,
                    "found PFTv1.{minor} in ETMIDR 0x{etmidr:08x}, expected the other version for {core}"
                )
            }
            Self::BroadcastWithReturnStack { etmcr } => write!(
                f,
                "found branch broadcast and return stack together in ETMCR 0x{etmcr:08x}, expected at most one of bits 8 and 29 to be set"
            ),
            Self::VmidOnV1_0 { etmcr } => {
                write!(f, "found VMID tracing in ETMCR 0x{etmcr:08x}, expected bit 30 to be 0 on PFTv1.0")
            }
            Self::TraceId { found } => {
                write!(f, "found 0x{found:x} in ETMTRACEIDR, expected a trace ID from 0x01 to 0x6f")
            }
        }
    }
}

impl core::error::Error for ConfigError {}

/// ETMCR: the bits that only PFT has.
mod pft_etmcr {

    pub(super) const RETURN_STACK: u32 = 1 << 29;
    pub(super) const VMID: u32 = 1 << 30;
}

/// ETMCCER: the bits that only PFT has.
const BARRIERS_ARE_WAYPOINTS: u32 = 1 << 24;

impl Config {
    /// The configuration of a core with its usual registers: instruction trace, nothing more. If the unit was set
    /// up otherwise, program flow is wrong: use [`Config::of_core`]. `None` if no [`Core`] has this name.
    #[must_use]
    pub fn for_core(name: &str) -> Option<Self> {
        Self::from_registers(Registers::default(), Some(Core::named(name)?)).ok()
    }

    /// The configuration of a core that registers state. The core's usual values stand in for registers that are not given.
    ///
    /// A name that is not a known core is an error of its own:
    ///
    /// ```
    /// use tracewalk::protocol::pft::{Config, Core, Registers};
    ///
    /// let core = "cortex-a9".parse::<Core>()?;
    /// let config = Config::of_core(core, Registers { etmcr: Some(0x1000), ..Registers::default() })?;
    /// assert!(config.cycle_accurate());
    /// assert_eq!("cortex-a99".parse::<Core>().unwrap_err().name(), "cortex-a99");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the registers are not those of the core's trace unit.
    pub fn of_core(core: Core, registers: Registers) -> Result<Self, ConfigError> {
        Self::from_registers(registers, Some(core))
    }

    /// The configuration that registers state. A core's usual values stand in for registers that are not given; without a core,
    /// ETMIDR and ETMCR are required. If the core is known, use [`Config::of_core`], which has the same form for each protocol.
    ///
    /// # Errors
    ///
    /// If a register is missing and no core stands in for it, or the registers are not those of the core or of a PTM.
    pub fn from_registers(registers: Registers, core: Option<Core>) -> Result<Self, ConfigError> {
        let usual =
            |register, usual: fn(Core) -> u32| core.map(usual).ok_or(ConfigError::Missing { register });
        let etmidr = registers.etmidr.map_or_else(|| usual("ETMIDR", KnownCore::etmidr), Ok)?;
        let etmcr = registers.etmcr.map_or_else(|| usual("ETMCR", |_| 0), Ok)?;
        let version = Version::from_etmidr(etmidr)?;
        if let Some(core) = core.filter(|core| Version::from_etmidr(core.etmidr()) != Ok(version)) {
            return Err(ConfigError::VersionOfCore { core: core.name(), etmidr });
        }
        // The version suffices: every known PTM of a version has the same relevant bits.
        let etmccer = registers.etmccer.unwrap_or(match version {
            Version::V1_0 => PTM_V1_0_CCER,
            Version::V1_1 => PTM_V1_1_CCER,
        });
        let branch_broadcast = etmcr & etmcr::BRANCH_BROADCAST != 0;
        // ETMCCER[23], whether there is a return stack, is not checked: without a stack, no atom stands for a
        // return.
        let return_stack = etmcr & pft_etmcr::RETURN_STACK != 0;
        if branch_broadcast && return_stack {
            return Err(ConfigError::BroadcastWithReturnStack { etmcr });
        }
        if version == Version::V1_0 && etmcr & pft_etmcr::VMID != 0 {
            return Err(ConfigError::VmidOnV1_0 { etmcr });
        }
        Ok(Self {
            version,
            branch_broadcast,
            cycle_accurate: etmcr & etmcr::CYCLE_ACCURATE != 0,
            context_id_size: etmcr::context_id_size(etmcr),
            return_stack,
            barriers_are_waypoints: etmccer & BARRIERS_ARE_WAYPOINTS != 0,
            timestamp: timestamp_format(version, etmccer),
            waypoint_updates_are_bases: true,
            trace_id: registers::trace_id(registers.etmtraceidr)
                .map_err(|found| ConfigError::TraceId { found })?,
        })
    }

    /// The rules by which flow follows the trace.
    #[must_use]
    pub const fn rules(&self) -> Rules {
        Rules {
            granularity: Granularity::Waypoints,
            barriers_are_waypoints: self.barriers_are_waypoints,
            return_stack: self.return_stack,
            ..Rules::NONE
        }
    }
}

/// The meaning of the registers, field by field.
impl Config {
    /// The same configuration with another source ID.
    #[must_use]
    pub const fn with_trace_id(self, trace_id: Option<TraceId>) -> Self {
        Self { trace_id, ..self }
    }

    /// The same configuration with another timestamp format than ETMCCER states.
    #[must_use]
    pub const fn with_timestamp(self, timestamp: TimestampFormat) -> Self {
        Self { timestamp, ..self }
    }

    /// The same configuration, with waypoint updates as bases of address compression or not.
    #[must_use]
    pub const fn with_waypoint_updates_as_bases(self, are_bases: bool) -> Self {
        Self { waypoint_updates_are_bases: are_bases, ..self }
    }

    /// The architecture's version.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Whether taken direct branches get branch packets as well.
    #[must_use]
    pub const fn branch_broadcast(&self) -> bool {
        self.branch_broadcast
    }

    /// Whether cycles are counted.
    #[must_use]
    pub const fn cycle_accurate(&self) -> bool {
        self.cycle_accurate
    }

    /// How much of the context ID is traced.
    #[must_use]
    pub const fn context_id_size(&self) -> ContextIdSize {
        self.context_id_size
    }

    /// Whether returns may be traced as plain atoms.
    #[must_use]
    pub const fn return_stack(&self) -> bool {
        self.return_stack
    }

    /// Whether DMB and DSB are waypoints.
    #[must_use]
    pub const fn barriers_are_waypoints(&self) -> bool {
        self.barriers_are_waypoints
    }

    /// How timestamps are written.
    #[must_use]
    pub const fn timestamp(&self) -> TimestampFormat {
        self.timestamp
    }

    /// Whether the next address is compressed against the address of a waypoint update.
    ///
    /// The specification is ambiguous: the section on branch address compression names branch and I-sync
    /// packets; the one on waypoint updates states that they are compressed in the same way. OpenCSD and
    /// ptm2human use waypoint updates as bases, which is the default here as well.
    #[must_use]
    pub const fn waypoint_updates_are_bases(&self) -> bool {
        self.waypoint_updates_are_bases
    }

    /// The source's ID in formatted trace.
    #[must_use]
    pub const fn trace_id(&self) -> Option<TraceId> {
        self.trace_id
    }
}

impl Version {
    /// ETMIDR: bits 11:8 are 3 for PFT, bits 7:4 the minor version.
    const fn from_etmidr(etmidr: u32) -> Result<Self, ConfigError> {
        match (etmidr::major(etmidr), etmidr::minor(etmidr)) {
            (MAJOR_VERSION, 0) => Ok(Self::V1_0),
            (MAJOR_VERSION, 1) => Ok(Self::V1_1),
            (MAJOR_VERSION, _) => Err(ConfigError::UnknownVersion { etmidr }),
            (_, _) => Err(ConfigError::NotPft { etmidr }),
        }
    }
}

/// PFTv1.0 always has 48 bits in Gray code; ETMCCER states the format only from PFTv1.1 on.
const fn timestamp_format(version: Version, etmccer: u32) -> TimestampFormat {
    match version {
        Version::V1_0 => registers::timestamp_format(0),
        Version::V1_1 => registers::timestamp_format(etmccer),
    }
}
