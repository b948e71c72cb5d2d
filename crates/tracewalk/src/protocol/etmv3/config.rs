//! ETMv3's configuration: registers → named fields.

use core::fmt;
use core::str::FromStr;

use crate::directive::{Granularity, Rules};
use crate::ids::{Profile, TraceId};
use crate::protocol::UnknownCore;
use crate::protocol::branch_address::AddressEncoding;
use crate::protocol::known_core::{KnownCore, NO_TIMESTAMPS};
use crate::protocol::registers::{self, ContextIdSize, Registers, etmcr, etmidr};
use crate::protocol::timestamp::TimestampFormat;

/// The configuration of a trace unit that decoding depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {
    /// The `x` of ETMv3.x, 0 to 5.
    pub(super) minor_version: u8,
    /// The processor's profile, which determines the exceptions.
    pub(super) profile: Profile,
    /// How branch addresses are encoded.
    pub(super) address_encoding: AddressEncoding,
    /// Whether a 32-bit Thumb instruction is passed by two atoms.
    pub(super) two_atoms_per_thumb_pair: bool,
    /// Whether cycles are counted.
    pub(super) cycle_accurate: bool,
    /// Whether taken direct branches get branch packets as well.
    pub(super) branch_broadcast: bool,
    /// Whether instructions are traced, or only data.
    pub(super) instructions: bool,
    /// The tracing of loads and stores.
    pub(super) data: DataTrace,
    /// How much of the context ID is traced.
    pub(super) context_id_size: ContextIdSize,
    /// How timestamps are written.
    pub(super) timestamp: TimestampFormat,
    /// The source's ID in formatted trace.
    pub(super) trace_id: Option<TraceId>,
}

/// The tracing of loads and stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DataTrace {
    /// Whether values are traced.
    pub values: bool,
    /// Whether addresses are traced.
    pub addresses: bool,
}

impl DataTrace {
    /// Whether values or addresses are traced.
    #[must_use]
    pub const fn any(self) -> bool {
        self.values || self.addresses
    }
}

/// A processor with an ETMv3 whose usual registers are known.
pub type Core = KnownCore<MAJOR_VERSION>;

/// From a name, like [`Core::named`].
impl FromStr for Core {
    type Err = UnknownCore;

    fn from_str(name: &str) -> Result<Self, UnknownCore> {
        Self::named(name).ok_or_else(|| UnknownCore::new(name, "ETMv3", Self::names()))
    }
}

/// ETMIDR's major version of ETMv3.
const MAJOR_VERSION: u32 = 2;
/// ETMIDR's major version of PFT, which has the same registers: worth a hint.
const MAJOR_PFT: u32 = 3;

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
    NotEtmv3 {
        /// The value of ETMIDR.
        etmidr: u32,
    },
    /// A bit is set that the processor's ETM does not have.
    NotOnMProfile {
        /// The feature.
        feature: &'static str,
        /// The register and bit.
        setting: &'static str,
        /// The register's value.
        found: u32,
    },
    /// The core always has the alternative encoding, but ETMIDR states the original one.
    EncodingOfCore {
        /// The core.
        core: &'static str,
        /// The value of ETMIDR.
        etmidr: u32,
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
            Self::NotEtmv3 { etmidr } => {
                let major = etmidr::major(etmidr);
                let hint = if major == MAJOR_PFT { "; a PFT source has this value" } else { "" };
                write!(
                    f,
                    "found major architecture version {major} in ETMIDR 0x{etmidr:08x}, expected 2 for ETMv3{hint}"
                )
            }
            Self::NotOnMProfile { feature, setting, found } => {
                write!(
                    f,
                    "found {feature} in 0x{found:08x} ({setting}), which a Cortex-M ETM does not support"
                )
            }
            Self::EncodingOfCore { core, etmidr } => write!(
                f,
                "found the original branch encoding (ETMIDR[20]) in 0x{etmidr:08x}, expected the alternative one for {core}"
            ),
            Self::TraceId { found } => {
                write!(f, "found 0x{found:x} in ETMTRACEIDR, expected a trace ID from 0x01 to 0x6f")
            }
        }
    }
}

impl core::error::Error for ConfigError {}

/// ETMCR: the bits that only ETMv3 has.
mod etmv3_etmcr {
    pub(super) const DATA_VALUES: u32 = 1 << 2;
    pub(super) const DATA_ADDRESSES: u32 = 1 << 3;
    pub(super) const DATA_ONLY: u32 = 1 << 20;
}

/// ETMIDR: the bits that only ETMv3 has.
mod etmv3_etmidr {
    /// Each 32-bit Thumb instruction is one instruction.
    pub(super) const THUMB_PAIRS_ARE_ONE: u32 = 1 << 18;
    pub(super) const SECURITY_EXTENSIONS: u32 = 1 << 19;
    pub(super) const ALTERNATIVE_ENCODING: u32 = 1 << 20;
}

impl Config {
    /// The configuration of a core with its usual registers: instruction trace, nothing more. If the unit was set
    /// up otherwise, program flow is wrong: use [`Config::of_core`]. `None` if no [`Core`] has this name.
    #[must_use]
    pub fn for_core(name: &str) -> Option<Self> {
        Self::from_registers(Registers::default(), Core::named(name)).ok()
    }

    /// The configuration of a core that registers state. The core's usual values stand in for registers that are not given.
    ///
    /// A name that is not a known core is an error of its own:
    ///
    /// ```
    /// use tracewalk::protocol::etmv3::{Config, Core, Registers};
    ///
    /// let core = "cortex-a7".parse::<Core>()?;
    /// let config = Config::of_core(core, Registers { etmcr: Some(0x1000), ..Registers::default() })?;
    /// assert!(config.cycle_accurate());
    /// assert_eq!("cortex-a77".parse::<Core>().unwrap_err().name(), "cortex-a77");
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
    /// If a register is missing and no core stands in for it, or the registers are not those of the core or of an ETMv3.
    pub fn from_registers(registers: Registers, core: Option<Core>) -> Result<Self, ConfigError> {
        let usual =
            |register, usual: fn(Core) -> u32| core.map(usual).ok_or(ConfigError::Missing { register });
        let etmidr = registers.etmidr.map_or_else(|| usual("ETMIDR", KnownCore::etmidr), Ok)?;
        let etmcr = registers.etmcr.map_or_else(|| usual("ETMCR", |_| 0), Ok)?;
        // Only timestamps depend on ETMCCER, and not every source has them.
        let etmccer = registers.etmccer.or(core.map(KnownCore::etmccer)).unwrap_or(NO_TIMESTAMPS);
        if etmidr::major(etmidr) != MAJOR_VERSION {
            return Err(ConfigError::NotEtmv3 { etmidr });
        }
        let minor_version = u8::try_from(etmidr::minor(etmidr)).unwrap_or_default();
        // ETMIDR[20] has a meaning only from ETMv3.4 on.
        let alternative = minor_version >= 4 && etmidr & etmv3_etmidr::ALTERNATIVE_ENCODING != 0;
        let profile = core.map_or_else(|| profile_by_id(etmidr, alternative), KnownCore::profile);
        if let (Some(core), Profile::M, false) = (core, profile, alternative) {
            return Err(ConfigError::EncodingOfCore { core: core.name(), etmidr });
        }
        if profile == Profile::M {
            refuse_on_m_profile(etmcr)?;
        }
        Ok(Self {
            minor_version,
            profile,
            address_encoding: if alternative {
                AddressEncoding::Alternative
            } else {
                AddressEncoding::Original
            },
            two_atoms_per_thumb_pair: etmidr & etmv3_etmidr::THUMB_PAIRS_ARE_ONE == 0,
            cycle_accurate: etmcr & etmcr::CYCLE_ACCURATE != 0,
            branch_broadcast: etmcr & etmcr::BRANCH_BROADCAST != 0,
            instructions: etmcr & etmv3_etmcr::DATA_ONLY == 0,
            data: DataTrace {
                values: etmcr & etmv3_etmcr::DATA_VALUES != 0,
                addresses: etmcr & etmv3_etmcr::DATA_ADDRESSES != 0,
            },
            context_id_size: etmcr::context_id_size(etmcr),
            timestamp: registers::timestamp_format(etmccer),
            trace_id: registers::trace_id(registers.etmtraceidr)
                .map_err(|found| ConfigError::TraceId { found })?,
        })
    }

    /// The first minor version whose exception exit packet this profile has.
    pub(super) const fn exception_exit_since(&self) -> u8 {
        match self.profile {
            Profile::M => 4,
            Profile::Ar => 5,
        }
    }

    /// Whether there is an exception entry packet.
    pub(super) const fn has_exception_entry(&self) -> bool {
        matches!(self.profile, Profile::M)
    }

    /// The rules by which flow follows the trace.
    #[must_use]
    pub const fn rules(&self) -> Rules {
        let m_profile = matches!(self.profile, Profile::M);
        Rules {
            granularity: Granularity::Instructions,
            barriers_are_waypoints: false,
            return_stack: false,
            halfwords_count: self.two_atoms_per_thumb_pair,
            m_profile,
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

    /// The `x` of ETMv3.x, 0 to 5.
    #[must_use]
    pub const fn minor_version(&self) -> u8 {
        self.minor_version
    }

    /// The processor's profile, which determines the exceptions.
    #[must_use]
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// How branch addresses are encoded.
    #[must_use]
    pub const fn address_encoding(&self) -> AddressEncoding {
        self.address_encoding
    }

    /// Whether a 32-bit Thumb instruction is passed by two atoms.
    #[must_use]
    pub const fn two_atoms_per_thumb_pair(&self) -> bool {
        self.two_atoms_per_thumb_pair
    }

    /// Whether cycles are counted.
    #[must_use]
    pub const fn cycle_accurate(&self) -> bool {
        self.cycle_accurate
    }

    /// Whether taken direct branches get branch packets as well.
    #[must_use]
    pub const fn branch_broadcast(&self) -> bool {
        self.branch_broadcast
    }

    /// Whether instructions are traced, or only data.
    #[must_use]
    pub const fn instructions(&self) -> bool {
        self.instructions
    }

    /// The tracing of loads and stores.
    #[must_use]
    pub const fn data(&self) -> DataTrace {
        self.data
    }

    /// How much of the context ID is traced.
    #[must_use]
    pub const fn context_id_size(&self) -> ContextIdSize {
        self.context_id_size
    }

    /// How timestamps are written.
    #[must_use]
    pub const fn timestamp(&self) -> TimestampFormat {
        self.timestamp
    }

    /// The source's ID in formatted trace.
    #[must_use]
    pub const fn trace_id(&self) -> Option<TraceId> {
        self.trace_id
    }
}

/// The profile without a core's name: an ETM with the alternative encoding but without Security Extensions is
/// a Cortex-M's.
const fn profile_by_id(etmidr: u32, alternative: bool) -> Profile {
    if alternative && etmidr & etmv3_etmidr::SECURITY_EXTENSIONS == 0 { Profile::M } else { Profile::Ar }
}

/// The ETM of Cortex-M3 and M4 traces only instructions and lacks the features refused here (DDI 0440C, 1.3).
const fn refuse_on_m_profile(etmcr: u32) -> Result<(), ConfigError> {
    let features = [
        (etmv3_etmcr::DATA_VALUES | etmv3_etmcr::DATA_ADDRESSES, "data tracing", "ETMCR[3:2]"),
        (etmv3_etmcr::DATA_ONLY, "data-only tracing", "ETMCR[20]"),
        (etmcr::CYCLE_ACCURATE, "cycle-accurate tracing", "ETMCR[12]"),
        (etmcr::CONTEXT_ID, "context ID tracing", "ETMCR[15:14]"),
    ];
    let mut index = 0;
    while index < features.len() {
        let (bits, feature, setting) = features[index];
        if etmcr & bits != 0 {
            return Err(ConfigError::NotOnMProfile { feature, setting, found: etmcr });
        }
        index += 1;
    }
    Ok(())
}
