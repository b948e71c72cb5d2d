//! Packet contents that no trace unit with this configuration sends.
//!
//! A wrong configuration often yields packets all the same, but their contents contradict each other: context IDs that
//! change without a packet for them, timestamps that go back, instruction sets that the processor does not have.

use std::collections::BTreeSet;

use tracewalk::ids::{Address, Profile};
use tracewalk::program::Program;
use tracewalk::protocol::{Describe, Field, pft};
use tracewalk::source::SourceConfig;

use super::etmv4::PacketCheck;
use super::times::Times;

/// Checks a source's packets in their order.
#[derive(Debug)]
pub(super) struct Check<'a> {
    traits: Traits,
    /// The check of a protocol that has one of its own.
    own: Option<PacketCheck>,
    program: &'a Program,
    context_id: Option<u64>,
    times: Times,
    /// I-syncs that should have a cycle count and have none, less the cycle count packets.
    missing_counts: u64,
    pub(super) i_syncs: u64,
    /// I-syncs whose address is in the program.
    pub(super) in_program: u64,
    /// The numbers of values of data transfers, and of those that are not 0.
    values: (u64, u64),
    /// The pages of memory that were addressed.
    places: BTreeSet<u64>,
}

/// The properties of packets that a configuration guarantees.
#[derive(Clone, Copy, Debug, Default)]
struct Traits {
    /// I-syncs that are not periodic have a cycle count, or a cycle count packet follows.
    counts_gaps: bool,
    only_thumb: bool,
    /// PFTv1.0, which has no exception returns and no virtual machines.
    before_v1_1: bool,
    m_profile: bool,
}

/// The fields that are checked.
#[derive(Clone, Copy, Debug, Default)]
struct Fields {
    reason: Option<u64>,
    address: Option<Address>,
    isa: Isa,
    non_secure: Option<u64>,
    hypervisor: Option<u64>,
    context_id: Option<u64>,
    cycles: Option<u64>,
    time: Option<u64>,
    exception: Option<u64>,
    value: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Isa {
    #[default]
    Unsaid,
    A32,
    T32,
    /// Jazelle or ThumbEE, which hardly any program has.
    Rare,
}

/// The address bits of a page: functions that call each other share pages.
const PAGE_BITS: u32 = 12;
/// More transfers than this are never all of value 0.
const ENOUGH_VALUES: u64 = 16;

impl<'a> Check<'a> {
    pub(super) fn new(config: &SourceConfig, program: &'a Program) -> Self {
        let traits = match config {
            SourceConfig::Etmv3(config) => Traits {
                counts_gaps: config.cycle_accurate(),
                only_thumb: config.profile() == Profile::M,
                m_profile: config.profile() == Profile::M,
                before_v1_1: false,
            },
            SourceConfig::Pft(config) => {
                Traits { before_v1_1: config.version() == pft::Version::V1_0, ..Traits::default() }
            }
            _ => Traits::default(),
        };
        let own =
            if let SourceConfig::Etmv4(config) = config { Some(PacketCheck::new(config)) } else { None };
        Self {
            traits,
            own,
            program,
            context_id: None,
            times: Times::new(config),
            missing_counts: 0,
            i_syncs: 0,
            in_program: 0,
            values: (0, 0),
            places: BTreeSet::new(),
        }
    }

    /// The number of impossible statements in the packet with these bytes.
    pub(super) fn packet(&mut self, packet: &dyn Describe, bytes: &[u8]) -> u64 {
        if let Some(own) = &mut self.own {
            let said = own.packet(packet);
            if let Some(address) = said.address {
                self.i_syncs += u64::from(said.is_beginning);
                self.in_program += u64::from(said.is_beginning && self.program.holds(address));
                self.places.insert(address.get() >> PAGE_BITS);
            }
            return said.impossible;
        }
        let name = packet.name();
        // Most packets are atoms, which are always possible.
        if matches!(name, "p_header" | "atom") {
            return 0;
        }
        let mut fields = Fields::default();
        packet.fields(&mut |name, field| fields.take(name, field));
        let impossible = match name {
            "i_sync" => self.i_sync(&fields),
            "branch" => self.branch(&fields),
            "timestamp" => {
                let field = bytes.get(1..).unwrap_or_default();
                u64::from(fields.time.is_some_and(|time| self.times.goes_back(time, field)))
            }
            "context_id" => {
                self.context_id = fields.context_id;
                0
            }
            "cycle_count" => {
                self.missing_counts = self.missing_counts.saturating_sub(1);
                0
            }
            "normal_data" | "ooo_data" => {
                self.values.0 += u64::from(fields.value.is_some());
                self.values.1 += u64::from(fields.value.is_some_and(|value| value != 0));
                0
            }
            "exception_return" | "vmid" => u64::from(self.traits.before_v1_1),
            _ => 0,
        };
        // Hyp mode exists only in Non-secure state (DDI 0406C, B1.5.1).
        impossible + u64::from(fields.hypervisor == Some(1) && fields.non_secure == Some(0))
    }

    /// Bytes were lost before the next packet.
    pub(super) fn lose(&mut self) {
        self.times.lose();
        self.own.iter_mut().for_each(PacketCheck::lose);
    }

    /// The number of contradictions that show only at the end.
    pub(super) fn impossible(&self) -> u64 {
        // If values are not traced, their size is 0, and every value reads as 0.
        let no_values = self.values.0 > ENOUGH_VALUES && self.values.1 == 0;
        let own = self.own.as_ref().map_or(0, PacketCheck::impossible);
        self.missing_counts + u64::from(no_values) + own
    }

    /// The spread of addresses, as the logarithm of the number of pages. A wrong reading finds addresses everywhere.
    pub(super) fn spread(&self) -> u32 {
        usize::BITS - self.places.len().leading_zeros()
    }

    fn i_sync(&mut self, fields: &Fields) -> u64 {
        self.i_syncs += 1;
        let periodic = fields.reason == Some(0);
        if let Some(address) = fields.address {
            self.in_program += u64::from(self.program.holds(address));
            self.places.insert(address.get() >> PAGE_BITS);
        }
        // The length of an overflow is unknown.
        let counted = fields.cycles.is_some() || matches!(fields.reason, Some(0 | 2));
        self.missing_counts += u64::from(self.traits.counts_gaps && !counted);
        let changed = periodic && self.context_id.is_some() && self.context_id != fields.context_id;
        self.context_id = fields.context_id;
        u64::from(changed) + self.location(fields)
    }

    fn branch(&mut self, fields: &Fields) -> u64 {
        if let Some(address) = fields.address {
            self.places.insert(address.get() >> PAGE_BITS);
        }
        let reserved = match fields.exception {
            // IHI 0014Q, tables 7.11 and 7.12.
            Some(0x10 | 0x12 | 0x14 | 0x16 | 0x17) => self.traits.m_profile,
            Some(6 | 7) => !self.traits.m_profile,
            Some(16..) => !self.traits.m_profile,
            _ => false,
        };
        u64::from(reserved) + self.location(fields)
    }

    fn location(&self, fields: &Fields) -> u64 {
        let misaligned =
            fields.isa == Isa::A32 && fields.address.is_some_and(|address| address.get() & 0b11 != 0);
        let wrong_isa = match fields.isa {
            Isa::Unsaid | Isa::T32 => false,
            Isa::A32 => self.traits.only_thumb,
            Isa::Rare => true,
        };
        u64::from(misaligned || wrong_isa)
    }
}

impl Fields {
    fn take(&mut self, name: &str, field: Field<'_>) {
        match (name, field) {
            ("addr", Field::Address(address)) => self.address = Some(address),
            ("isa", Field::Text(name)) => {
                self.isa = match name {
                    "A32" => Isa::A32,
                    "T32" => Isa::T32,
                    _ => Isa::Rare,
                };
            }
            ("reason", Field::Number(number)) => self.reason = Some(number),
            ("ns", Field::Number(number)) => self.non_secure = Some(number),
            ("hyp", Field::Number(number)) => self.hypervisor = Some(number),
            ("context_id", Field::Number(number)) => self.context_id = Some(number),
            ("cycles", Field::Number(number)) => self.cycles = Some(number),
            ("timestamp", Field::Number(number)) => self.time = Some(number),
            ("exception", Field::Number(number)) => self.exception = Some(number),
            ("value", Field::Number(number)) => self.value = Some(number),
            _ => {}
        }
    }
}
