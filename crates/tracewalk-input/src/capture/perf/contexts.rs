//! How trace identifies the process that runs: derived from the user's request, the trace units' registers
//! and the recorded processes.

use std::collections::{BTreeMap, BTreeSet};

use tracewalk::ids::{ContextId, Vmid};
use tracewalk::program::Scope;

use super::maps::{Change, KERNEL};
use super::records::When;
use super::units::Units;

/// How trace identifies its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextTrace {
    /// Trace does not identify its process.
    None,
    /// The context ID is the thread's number.
    ContextId,
    /// Armv7-A: the context ID is the thread's number, followed by the eight-bit number of an address space.
    Process,
    /// The same with only two bytes traced. The lowest byte of the thread's number identifies the process,
    /// because it differs between all processes with code.
    ProcessByte,
    /// The VMID is the thread's number: the kernel is its own hypervisor.
    Vmid,
}

impl ContextTrace {
    /// Derives the form from the bits that the user asked for, the units' registers, and the processes'
    /// history.
    pub(super) fn of(config: u64, units: &Units, changes: &[(When, Change)]) -> Self {
        // CtxtIDSize in ETMCR bits 15:14. If only one byte is traced, it is an address space's number.
        if let Some(size) = context_id_size(units) {
            return match size {
                0b11 => Self::Process,
                0b10 if differ_in_the_lowest_byte(changes) => Self::ProcessByte,
                _ => Self::None,
            };
        }
        let all = |bits: u32| {
            let mut values = units.units.iter().filter_map(|unit| unit.register("TRCCONFIGR"));
            values.any(|value| value & bits == bits)
        };
        // TRCCONFIGR bit 6: context ID; bits 7 and 15: EL2's context ID as VMID. The event's `config` has
        // bits of perf's own for both.
        if config >> 15 & 1 == 1 || all(1 << 15 | 1 << 7) {
            Self::Vmid
        } else if config >> 14 & 1 == 1 || all(1 << 6) {
            Self::ContextId
        } else {
            Self::None
        }
    }

    /// The contexts in which a thread runs.
    pub(super) const fn scope(self, tid: u32) -> Scope {
        match self {
            Self::None => Scope::EVERYWHERE,
            Self::ContextId => Scope::context(ContextId(tid)),
            // A thread's number is less than 2^22.
            Self::Process => Scope::context(ContextId(tid << 8)),
            Self::ProcessByte => Scope::context(ContextId((tid & LOWEST_BYTE) << 8)),
            Self::Vmid => Scope::vmid(Vmid(tid)),
        }
    }

    /// Whether the lowest byte of a context ID is the number of an address space.
    #[must_use]
    pub const fn has_address_spaces(self) -> bool {
        matches!(self, Self::Process | Self::ProcessByte)
    }
}

const LOWEST_BYTE: u32 = 0xff;

/// The number of bytes of context IDs that are traced, if these are too few to identify the process.
pub(super) fn too_short(contexts: ContextTrace, units: &Units) -> Option<u8> {
    match context_id_size(units).filter(|_| contexts == ContextTrace::None)? {
        0b01 => Some(1),
        0b10 => Some(2),
        _ => None,
    }
}

/// The smallest CtxtIDSize of all ETMCRs; `None` if no unit has an ETMCR.
fn context_id_size(units: &Units) -> Option<u32> {
    let registers = units.units.iter().filter_map(|unit| unit.register("ETMCR"));
    registers.map(|etmcr| etmcr >> 14 & 0b11).min()
}

/// Whether the lowest byte of a thread's number identifies its process among all that had code at any time.
fn differ_in_the_lowest_byte(changes: &[(When, Change)]) -> bool {
    let (mut with_code, mut threads) = (BTreeSet::new(), Vec::new());
    for (_, change) in changes {
        match *change {
            Change::Mapped { pid, .. } if pid != KERNEL => {
                with_code.insert(pid);
                threads.push((pid, pid));
            }
            Change::Named { pid, tid, .. } => threads.push((pid, tid)),
            Change::Forked { pid, parent, tid } => {
                if with_code.contains(&parent) {
                    with_code.insert(pid);
                }
                threads.push((pid, tid));
            }
            Change::Mapped { .. } | Change::Ended { .. } => {}
        }
    }
    let mut process_of = BTreeMap::new();
    let mut threads = threads.into_iter().filter(|(pid, _)| with_code.contains(pid));
    threads.all(|(pid, tid)| *process_of.entry(tid & LOWEST_BYTE).or_insert(pid) == pid)
}
