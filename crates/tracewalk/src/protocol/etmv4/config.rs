//! The configuration of ETMv4 and ETE: registers → named fields.

use core::fmt;

use crate::directive::{Granularity, Rules};
use crate::ids::{Profile, TraceId};

use super::cores::Core;
use super::registers::{Registers, field, is_set};

/// The versions of the architecture, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Version {
    /// ETMv4, with its minor version, 0 to 6.
    Etmv4(u8),
    /// The Embedded Trace Extension of ARMv9, with its minor version, 0 to 3.
    Ete(u8),
}

/// How a conditional result is written (TRCIDR0.CONDTYPE).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ConditionalResults {
    /// Whether the condition passed.
    PassFail,
    /// The flags of APSR.
    Flags,
}

/// How a trace unit was built and set up, as far as decoding depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {
    pub(super) version: Version,
    pub(super) profile: Profile,
    /// TRCIDR0.COMMOPT is 0: cycle count packets also commit P0 elements.
    pub(super) cycle_counts_commit: bool,
    /// TRCIDR0.QSUPP: Q packets exist.
    pub(super) q_elements: bool,
    /// TRCIDR0.TRCCOND: packets of conditional instructions exist.
    pub(super) conditional: Option<ConditionalResults>,
    /// TRCIDR0.TRCDATA: the unit has data trace, so that synchronisation markers exist.
    pub(super) data_trace: bool,
    /// TRCIDR0.COMMTRANS is 0: the start of a transaction is a P0 element.
    pub(super) transaction_start_is_p0: bool,
    /// TRCIDR2.IASIZE: addresses have 64 bits.
    pub(super) has_64_bit_addresses: bool,
    /// TRCIDR2.CIDSIZE.
    pub(super) context_id_bytes: u8,
    /// TRCIDR2.VMIDSIZE.
    pub(super) vmid_bytes: u8,
    /// TRCIDR2.CCSIZE and 12: the width of the count in a timestamp packet.
    pub(super) cycle_counter_bits: u32,
    /// TRCIDR2.WFXMODE: WFI and WFE are P0 instructions.
    pub(super) waits_are_waypoints: bool,
    /// TRCIDR8.MAXSPEC: the number of P0 elements that may be uncommitted.
    pub(super) greatest_speculation: u32,
    /// TRCCONFIGR.CCI.
    pub(super) cycle_counting: bool,
    /// TRCCONFIGR.RS.
    pub(super) return_stack: bool,
    /// TRCCONFIGR.INSTP0 and TRCIDR0.INSTP0: loads are P0 instructions.
    pub(super) loads_are_waypoints: bool,
    /// Likewise: stores are P0 instructions.
    pub(super) stores_are_waypoints: bool,
    pub(super) trace_id: Option<TraceId>,
}

/// Why registers do not make a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A register that decoding depends on is not given.
    Missing {
        /// The name.
        register: &'static str,
    },
    /// TRCIDR1 or TRCDEVARCH is that of another architecture.
    NotEtmv4 {
        /// The register's name.
        register: &'static str,
        /// The value found.
        found: u32,
    },
    /// The version is unknown.
    UnknownVersion {
        /// The register that holds the version.
        register: &'static str,
        /// The value found.
        found: u32,
    },
    /// TRCIDR2 holds a size that the architecture does not define.
    Size {
        /// The field.
        field: &'static str,
        /// The value found.
        found: u32,
    },
    /// TRCTRACEIDR is no trace ID.
    TraceId {
        /// The value found.
        found: u32,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Missing { register } => write!(f, "{register} is not given"),
            Self::NotEtmv4 { register, found } => {
                write!(
                    f,
                    "found 0x{found:08x} in {register}, expected major architecture version 4 or, for ETE, 5"
                )
            }
            Self::UnknownVersion { register, found } => {
                write!(
                    f,
                    "found 0x{found:08x} in {register}, expected a version from ETMv4.0 to 4.6 or ETE 1.0 to 1.3"
                )
            }
            Self::Size { field, found } => {
                write!(f, "found {field} {found} in TRCIDR2, which the architecture does not define")
            }
            Self::TraceId { found } => {
                write!(f, "found 0x{found:x} in TRCTRACEIDR, expected a trace ID from 0x01 to 0x6f")
            }
        }
    }
}

impl core::error::Error for ConfigError {}

impl Config {
    /// The configuration of a core with its usual registers: instruction trace, nothing more. If the unit was set
    /// up otherwise, program flow is wrong: use [`Config::of_core`]. `None` if no [`Core`] has this name.
    #[must_use]
    pub fn for_core(name: &str) -> Option<Self> {
        Self::of_core(Core::named(name)?, Registers::default()).ok()
    }

    /// The configuration of a core that registers state. The core's usual values stand in for registers that are not given.
    ///
    /// A name that is not a known core is an error of its own:
    ///
    /// ```
    /// use tracewalk::protocol::etmv4::{Config, Core, Registers};
    ///
    /// let core = "cortex-a53".parse::<Core>()?;
    /// let config = Config::of_core(core, Registers { trcconfigr: Some(0x11), ..Registers::default() })?;
    /// assert!(config.cycle_counting());
    /// assert_eq!("cortex-a5e".parse::<Core>().unwrap_err().name(), "cortex-a5e");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the registers are not those of the core's trace unit.
    pub fn of_core(core: Core, registers: Registers) -> Result<Self, ConfigError> {
        Self::from_registers(registers.or_usual_of(core), Some(core.profile()))
    }

    /// The configuration that registers state. `profile` is the processor's; if it is unknown, a unit with
    /// 32-bit addresses and without context IDs is taken for one of M profile.
    ///
    /// TRCCONFIGR, TRCIDR0 and TRCIDR2 are required, and TRCIDR1 or TRCDEVARCH for the version. TRCIDR8
    /// defaults to 0: no speculation, as on every publicly known processor. If the core is known, use [`Config::of_core`], which has
    /// the same form for each protocol.
    ///
    /// # Errors
    ///
    /// If a required register is missing, or the registers are not those of an ETMv4 or ETE.
    pub fn from_registers(registers: Registers, profile: Option<Profile>) -> Result<Self, ConfigError> {
        let given = |register, value: Option<u32>| value.ok_or(ConfigError::Missing { register });
        let version = version(&registers)?;
        let configr = given("TRCCONFIGR", registers.trcconfigr)?;
        let idr0 = given("TRCIDR0", registers.trcidr0)?;
        let idr2 = given("TRCIDR2", registers.trcidr2)?;
        let counts_cycles = is_set(idr0, 7);
        let p0_loads_and_stores = field(idr0, 2, 1) == 0b11;
        let context_id_bytes = context_id_bytes(idr2)?;
        Ok(Self {
            version,
            profile: profile.unwrap_or(match (field(idr2, 4, 0), context_id_bytes) {
                (0b00100, 0) => Profile::M,
                _ => Profile::Ar,
            }),
            cycle_counts_commit: !(counts_cycles && is_set(idr0, 29)),
            q_elements: field(idr0, 16, 15) != 0,
            conditional: is_set(idr0, 6).then_some(match field(idr0, 13, 12) {
                0b00 => ConditionalResults::PassFail,
                _ => ConditionalResults::Flags,
            }),
            data_trace: field(idr0, 4, 3) == 0b11,
            transaction_start_is_p0: version >= Version::Ete(0) && !is_set(idr0, 30),
            has_64_bit_addresses: field(idr2, 4, 0) == 0b01000,
            context_id_bytes,
            vmid_bytes: vmid_bytes(idr2, version)?,
            cycle_counter_bits: 12 + field(idr2, 28, 25),
            waits_are_waypoints: version >= Version::Etmv4(3) && is_set(idr2, 31),
            greatest_speculation: registers.trcidr8.unwrap_or(0),
            cycle_counting: is_set(configr, 4),
            return_stack: is_set(configr, 12),
            loads_are_waypoints: p0_loads_and_stores && is_set(configr, 1),
            stores_are_waypoints: p0_loads_and_stores && is_set(configr, 2),
            trace_id: trace_id(registers.trctraceidr)?,
        })
    }

    /// The architecture's version.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// The processor's profile.
    #[must_use]
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// The number of P0 elements that may be uncommitted at a time.
    #[must_use]
    pub const fn greatest_speculation(&self) -> u32 {
        self.greatest_speculation
    }

    /// Whether cycle counts are traced.
    #[must_use]
    pub const fn cycle_counting(&self) -> bool {
        self.cycle_counting
    }

    /// Whether cycle counts commit P0 elements as well (TRCIDR0.COMMOPT).
    #[must_use]
    pub const fn cycle_counts_commit(&self) -> bool {
        self.cycle_counts_commit
    }

    /// Whether there are Q packets.
    #[must_use]
    pub const fn q_elements(&self) -> bool {
        self.q_elements
    }

    /// The size of a context ID in bytes; 0 if there are none.
    #[must_use]
    pub const fn context_id_bytes(&self) -> u8 {
        self.context_id_bytes
    }

    /// The size of a VMID in bytes; 0 if there are none.
    #[must_use]
    pub const fn vmid_bytes(&self) -> u8 {
        self.vmid_bytes
    }

    /// The rules by which flow follows the trace.
    #[must_use]
    pub fn rules(&self) -> Rules {
        Rules {
            granularity: Granularity::Waypoints,
            m_profile: self.profile == Profile::M,
            return_stack: self.return_stack,
            waits_are_waypoints: self.waits_are_waypoints,
            transaction_starts_are_waypoints: self.is_ete(),
            loads_are_waypoints: self.loads_are_waypoints,
            stores_are_waypoints: self.stores_are_waypoints,
            waypoints_may_be_far: true,
            waypoints_fail_by_condition: true,
            exception_returns_by_form: self.is_ete(),
            ..Rules::NONE
        }
    }

    /// The source's ID in formatted trace.
    #[must_use]
    pub const fn trace_id(&self) -> Option<TraceId> {
        self.trace_id
    }

    /// Whether the version is one of ETE.
    #[must_use]
    pub fn is_ete(&self) -> bool {
        self.version >= Version::Ete(0)
    }

    /// Whether there are timestamp markers, which came with ETMv4.6 and ETE 1.1.
    #[must_use]
    pub fn has_timestamp_markers(&self) -> bool {
        self.version >= Version::Etmv4(6) && self.version != Version::Ete(0)
    }
}

/// TRCDEVARCH holds the version of both architectures, TRCIDR1 that of ETMv4.
fn version(registers: &Registers) -> Result<Version, ConfigError> {
    const ETE: u32 = 0b1111;
    let (register, found, major, minor) = match (registers.trcdevarch, registers.trcidr1) {
        (Some(found), _) => ("TRCDEVARCH", found, field(found, 15, 12), field(found, 19, 16)),
        (None, Some(found)) if field(found, 11, 8) == ETE => {
            return Err(ConfigError::Missing { register: "TRCDEVARCH" });
        }
        (None, Some(found)) => ("TRCIDR1", found, field(found, 11, 8), field(found, 7, 4)),
        (None, None) => return Err(ConfigError::Missing { register: "TRCIDR1" }),
    };
    let unknown = ConfigError::UnknownVersion { register, found };
    let minor = u8::try_from(minor).map_err(|_| unknown)?;
    match (major, minor) {
        (4, 0..=6) => Ok(Version::Etmv4(minor)),
        (5, 0..=3) => Ok(Version::Ete(minor)),
        (4 | 5, _) => Err(unknown),
        _ => Err(ConfigError::NotEtmv4 { register, found }),
    }
}

const fn context_id_bytes(idr2: u32) -> Result<u8, ConfigError> {
    match field(idr2, 9, 5) {
        0 => Ok(0),
        4 => Ok(4),
        found => Err(ConfigError::Size { field: "CIDSIZE", found }),
    }
}

/// Before ETMv4.1 a VMID has at most one byte.
fn vmid_bytes(idr2: u32, version: Version) -> Result<u8, ConfigError> {
    match field(idr2, 14, 10) {
        0 => Ok(0),
        1 => Ok(1),
        2 if version >= Version::Etmv4(1) => Ok(2),
        4 if version >= Version::Etmv4(1) => Ok(4),
        found => Err(ConfigError::Size { field: "VMIDSIZE", found }),
    }
}

/// TRCTRACEIDR[6:0]. 0 is its reset value: not set.
fn trace_id(trctraceidr: Option<u32>) -> Result<Option<TraceId>, ConfigError> {
    match trctraceidr {
        None | Some(0) => Ok(None),
        Some(found) => {
            let id = u8::try_from(found).ok().and_then(TraceId::new);
            id.map(Some).ok_or(ConfigError::TraceId { found })
        }
    }
}
