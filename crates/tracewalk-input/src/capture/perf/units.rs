//! AUXTRACE_INFO: the trace units of a recording, and how each was set up.

use std::path::Path;

use tracewalk::ids::TraceId;

use super::fields::u32_at;
use super::problem::PerfProblem;
use crate::capture::source::{Protocol, SourceDescription};
use crate::origin::Origin;

/// The trace unit of a CPU.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) cpu: u64,
    pub(super) protocol: Protocol,
    registers: Vec<(&'static str, u32)>,
    /// The unit's ID unless another is stated: see [`super::parts::ids`].
    pub(super) usual_id: Option<TraceId>,
}

/// All trace units.
#[derive(Clone, Debug, Default)]
pub(super) struct Units {
    /// The number of the unit (PMU) whose events are the trace.
    pub(super) event_kind: u32,
    pub(super) units: Vec<Unit>,
}

/// perf's number for CoreSight, among kinds of hardware trace.
const CORESIGHT: u32 = 3;

/// The largest number of CPUs: `NR_CPUS` of the largest kernels.
const MOST_CPUS: u64 = 8192;

const ETMV3: u64 = 0x3030_3030_3030_3030;
const ETMV4: u64 = 0x4040_4040_4040_4040;
const ETE: u64 = 0x5050_5050_5050_5050;

/// A block's fields, which follow the number of fields; "" for a field that is not a register or not used.
/// The second is the trace ID.
const OLD_FIELDS: [&str; 4] = ["ETMCR", "", "ETMCCER", "ETMIDR"];
const NEW_FIELDS: [&str; 8] =
    ["TRCCONFIGR", "", "TRCIDR0", "TRCIDR1", "TRCIDR2", "TRCIDR8", "", "TRCDEVARCH"];

impl Units {
    /// Reads the record at `at`: its bytes from the kind of trace on.
    pub(super) fn read(record: &[u8], at: u64) -> Result<Self, PerfProblem> {
        let kind = u32_at(record, 0);
        if kind != Some(CORESIGHT) {
            return Err(PerfProblem::NoCoreSight { kind });
        }
        let words = record.get(8..).unwrap_or_default().as_chunks().0;
        let word = |index: usize| words.get(index).copied().map(u64::from_le_bytes);
        let damaged = |index: usize| {
            let place = at.saturating_add(16 + 8 * index as u64);
            PerfProblem::TraceUnit { at: place, found: word(index).unwrap_or(0) }
        };
        let (Some(version), Some(second)) = (word(0), word(1)) else { return Err(damaged(0)) };
        let cpus = second & 0xffff_ffff;
        if cpus > MOST_CPUS {
            return Err(damaged(1));
        }
        let event_kind = u32::try_from(second >> 32).unwrap_or(u32::MAX);
        let mut units = Self { event_kind, units: Vec::new() };
        let mut next = 3;
        for _ in 0..cpus {
            let (Some(magic), Some(cpu)) = (word(next), word(next + 1)) else { return Err(damaged(next)) };
            let fields: &[&'static str] = match magic {
                ETMV3 => &OLD_FIELDS,
                ETMV4 => NEW_FIELDS.get(..7).unwrap_or_default(),
                ETE => &NEW_FIELDS,
                _ => return Err(damaged(next)),
            };
            // Blocks of version 0 have no number of fields. Later kernels may have more fields than are
            // known.
            let (start, count) = match version {
                0 => (next + 2, fields.len()),
                _ => {
                    let count = word(next + 2).and_then(|count| usize::try_from(count).ok());
                    (next + 3, count.filter(|count| *count <= words.len()).ok_or_else(|| damaged(next + 2))?)
                }
            };
            if start + count > words.len() {
                return Err(damaged(next));
            }
            let values = (start..start + count).map(|index| word(index).unwrap_or(0));
            units.units.push(Unit::new(magic, cpu, fields.iter().copied().zip(values)));
            next = start + count;
        }
        Ok(units)
    }

    pub(super) fn of_cpu(&self, cpu: u64) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.cpu == cpu)
    }
}

impl Unit {
    fn new(magic: u64, cpu: u64, fields: impl Iterator<Item = (&'static str, u64)>) -> Self {
        let (mut registers, mut id) = (Vec::new(), 0);
        for (index, (name, value)) in fields.enumerate() {
            if index == 1 {
                id = value;
            }
            // Registers have 32 bits.
            if let (false, Ok(value)) = (name.is_empty(), u32::try_from(value & 0xffff_ffff)) {
                registers.push((name, value));
            }
        }
        // ETMIDR bits 11:8: the major version, 3 of a PTM (IHI 0035B, 3.15.39), 2 of ETMv3 (IHI 0014Q, 3.5.59).
        let etmidr = registers.iter().find(|(name, _)| *name == "ETMIDR").map_or(0, |(_, value)| *value);
        let protocol = match magic {
            ETMV3 if etmidr >> 8 & 0b1111 == 3 => Protocol::Pft,
            ETMV3 => Protocol::EtmV3,
            _ => Protocol::Etmv4,
        };
        // If bit 31 is set, the kernel may use another ID, which it states in a separate record.
        let usual_id = u8::try_from(id & 0x7f).ok().filter(|id| *id < 0x70).and_then(TraceId::new);
        Self { cpu, protocol, registers, usual_id }
    }

    /// The unit as a source of trace, with this ID in frames.
    pub(super) fn source(&self, id: Option<TraceId>, core: Option<String>, file: &Path) -> SourceDescription {
        let origin = Origin::file(file);
        let mut source = SourceDescription::new(self.protocol.clone(), origin.clone());
        for (name, value) in &self.registers {
            source.registers.set(name, *value, origin.clone());
        }
        source.name = Some(format!("CPU {}", self.cpu));
        source.id = id;
        source.core = core;
        source
    }

    /// The value of a register, by name.
    pub(super) fn register(&self, name: &str) -> Option<u32> {
        self.registers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}
