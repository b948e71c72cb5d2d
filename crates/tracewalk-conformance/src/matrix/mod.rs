//! The matrix: every program, on every kind of trace unit, in every mode, decoded and compared with the
//! traced path.
//!
//! [`cases`] lists all combinations. A [`Case`] is written as words that name it completely, so that a
//! failure can be repeated: `a9 wander=7 pft,cpu=cortex-a15,etmcr=0x20001000 depth=4 synchronise=50
//! container=port`.

mod cases;
mod check;
mod text;

use tracewalk::ids::Profile;
use tracewalk::protocol::{Registers, etmv3 as etmv3_protocol, etmv4 as etmv4_protocol, pft as pft_protocol};

use crate::opencsd;
use tracewalk_generate::etmv3::Cancel;
use tracewalk_generate::etmv4::ContextPlace;
use tracewalk_generate::trace::Pauses;

pub use cases::cases;
pub use check::{Failure, Programs};

/// One combination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The example program.
    pub program: String,
    /// The origin of the program's path.
    pub path: PathFrom,
    /// The trace unit.
    pub unit: Unit,
    /// Other packets and pauses.
    pub beside: Beside,
    /// How the bytes are packed.
    pub packing: Packing,
}

/// The origin of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFrom {
    /// The emulator's record.
    Record,
    /// A walk through the program with this seed.
    Wander(u32),
}

/// A trace unit and its setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// ETMv3.
    Etmv3 {
        /// The processor.
        cpu: String,
        /// ETMCR.
        etmcr: u32,
        /// ETMIDR, if it differs from the processor's usual value.
        etmidr: Option<u32>,
        /// Which instructions are traced and cancelled if an interrupt comes before them.
        cancel: Cancel,
        /// Whether an exception that replaces a return follows the return.
        tail_chaining_follows: bool,
        /// Whether exceptions are named by the deprecated code.
        deprecated_exceptions: bool,
    },
    /// PFT.
    Pft {
        /// The processor.
        cpu: String,
        /// ETMCR.
        etmcr: u32,
        /// The depth of the return stack, if ETMCR switches it on.
        depth: usize,
    },
    /// ETMv4 or ETE.
    Etmv4(Etmv4),
    /// A micro trace buffer.
    Mtb {
        /// The size of the buffer: 2 to this power.
        exponent: u32,
        /// Whether branches to the next address make packets.
        branches_to_next: bool,
    },
}

/// A trace unit of ETMv4 or ETE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Etmv4 {
    /// The processor.
    pub cpu: String,
    /// TRCCONFIGR, whose bits also select the packets to be sent.
    pub trcconfigr: u32,
    /// TRCIDR0, if it differs from the processor's usual value.
    pub trcidr0: Option<u32>,
    /// TRCIDR8: the number of P0 elements that may be uncommitted.
    pub trcidr8: u32,
    /// The depth of the return stack, if TRCCONFIGR switches it on.
    pub depth: usize,
    /// The place of contexts relative to addresses.
    pub contexts: ContextPlace,
    /// Conditional P0 instructions between wrong paths.
    pub wrong_paths: Option<u64>,
    /// Branches between Q elements.
    pub q: Option<u64>,
    /// Taken branches between source addresses.
    pub source_addresses: Option<u64>,
    /// Whether addresses of synchronisations come after an atom.
    pub late_addresses: bool,
    /// The return stack keeps its entries across a periodic synchronisation.
    pub keeps_returns: bool,
}

/// Packets that are sent in addition to those of the instructions, and pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Bytes between periodic synchronisations.
    pub synchronise_every: Option<usize>,
    /// Instructions between timestamps.
    pub timestamp_every: Option<u64>,
    /// Instructions between triggers.
    pub trigger_every: Option<u64>,
    /// When tracing is switched off.
    pub pauses: Option<Pauses>,
}

/// How the bytes get from the trace unit to the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Unpacked.
    Raw,
    /// In the frames of a buffer, beside another source.
    Frames,
    /// In the frames of a trace port, with synchronisation, beside another source.
    Port,
}

impl Unit {
    fn etmv3_config(&self) -> Option<etmv3_protocol::Config> {
        let Self::Etmv3 { cpu, etmcr, etmidr, .. } = self else { return None };
        let registers = Registers { etmcr: Some(*etmcr), etmidr: *etmidr, ..Default::default() };
        etmv3_protocol::Config::from_registers(registers, etmv3_protocol::Core::named(cpu)).ok()
    }

    fn pft_config(&self) -> Option<pft_protocol::Config> {
        let Self::Pft { cpu, etmcr, .. } = self else { return None };
        let registers = Registers { etmcr: Some(*etmcr), ..Default::default() };
        pft_protocol::Config::from_registers(registers, pft_protocol::Core::named(cpu)).ok()
    }

    fn etmv4_config(&self) -> Option<etmv4_protocol::Config> {
        let Self::Etmv4(unit) = self else { return None };
        let profile = etmv4_protocol::Core::named(&unit.cpu)?.profile();
        etmv4_protocol::Config::from_registers(unit.registers()?, Some(profile)).ok()
    }

    /// The processor, and the registers from which another decoder learns the unit's settings; `None` for an
    /// MTB.
    fn registers(&self) -> Option<(&str, opencsd::Registers)> {
        let of = |etmcr: u32, etmidr: Option<u32>, usual: Registers| opencsd::Registers {
            etmcr,
            etmidr: etmidr.or(usual.etmidr).unwrap_or_default(),
            etmccer: usual.etmccer.unwrap_or_default(),
            ..opencsd::Registers::default()
        };
        Some(match self {
            Self::Etmv3 { cpu, etmcr, etmidr, .. } => {
                (cpu, of(*etmcr, *etmidr, etmv3_protocol::Core::named(cpu)?.registers()))
            }
            Self::Pft { cpu, etmcr, .. } => {
                (cpu, of(*etmcr, None, pft_protocol::Core::named(cpu)?.registers()))
            }
            Self::Etmv4(unit) => {
                (&unit.cpu, opencsd::Registers { etmv4: unit.registers()?, ..opencsd::Registers::default() })
            }
            Self::Mtb { .. } => return None,
        })
    }
}

impl Case {
    /// Whether OpenCSD can read such traces and their positions can be compared: the bytes of one source,
    /// without a synchronisation at every packet, which no trace unit sends. For ETMv4 and ETE, the case must
    /// not have:
    ///
    /// - speculation;
    /// - a program with transactions on a unit other than ETE: OpenCSD decides by the processor's name
    ///   whether a transaction's start is a waypoint;
    /// - an M-profile unit, or an A64 program, with a return stack: OpenCSD takes an address from it at a return
    ///   from an exception, and before an exception that has two addresses (fixed in OpenCSD 1.8.3);
    /// - a return stack that keeps its entries across a synchronisation: OpenCSD empties it.
    #[must_use]
    pub fn is_for_opencsd(&self) -> bool {
        self.beside.synchronise_every != Some(0)
            && self.packing == Packing::Raw
            && match &self.unit {
                Unit::Mtb { .. } => false,
                Unit::Etmv4(unit) => {
                    const RETURN_STACK: u32 = 1 << 12;
                    let config = self.unit.etmv4_config();
                    let is_m = config.as_ref().is_some_and(|config| config.profile() == Profile::M);
                    let is_ete = || config.as_ref().is_some_and(etmv4_protocol::Config::is_ete);
                    let has_stack = unit.trcconfigr & RETURN_STACK != 0;
                    let is_a64 = self.program.starts_with("a64-");
                    unit.trcidr8 == 0
                        && !(has_stack && (is_m || is_a64 || unit.keeps_returns))
                        && (!is_a64 || is_ete())
                }
                _ => true,
            }
    }
}

impl Etmv4 {
    fn registers(&self) -> Option<etmv4_protocol::Registers> {
        let registers = etmv4_protocol::Registers {
            trcconfigr: Some(self.trcconfigr),
            trcidr0: self.trcidr0,
            trcidr8: Some(self.trcidr8),
            ..etmv4_protocol::Registers::default()
        };
        Some(registers.or_usual_of(etmv4_protocol::Core::named(&self.cpu)?))
    }
}
