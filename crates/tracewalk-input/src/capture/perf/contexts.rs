//! How trace identifies the process that runs, by the user's request, the trace units' registers and the processes there are.

use std::collections::{BTreeMap, BTreeSet};

use tracewalk::ids::{ContextId, Vmid};
use tracewalk::program::Scope;

use super::maps::{Change, KERNEL};
use super::records::When;
use super::units::Units;

/// How trace identifies its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextTrace {
    /// It does not.
    None,
    /// The context ID is the thread's number.
    ContextId,
    /// The context ID is the thread's number above the number of an address space, which has eight bits: of Armv7-A.
    Process,
    /// The same with two bytes traced: the lowest byte of the thread's number identifies the process, because it differs between all
    /// processes with code.
    ProcessByte,
    /// The VMID is, where the kernel is its own hypervisor.
    Vmid,
}

impl ContextTrace {
    /// By the bits that the user asked for, those that the units were set up with, and what became of processes.
    pub(super) fn of(config: u64, units: &Units, changes: &[(When, Change)]) -> Self {
        // CtxtIDSize in ETMCR bits 15:14. One byte is an address space's number without the process.
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
        // The kernel's own word is the units' (TRCCONFIGR bit 6: context ID; 7 and 15: EL2's as VMID). perf writes its own form of them.
        if config >> 15 & 1 == 1 || all(1 << 15 | 1 << 7) {
            Self::Vmid
        } else if config >> 14 & 1 == 1 || all(1 << 6) {
            Self::ContextId
        } else {
            Self::None
        }
    }

    /// Where a thread runs.
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

/// The number of bytes of context IDs that are traced, if these are fewer than say the process.
pub(super) fn too_short(contexts: ContextTrace, units: &Units) -> Option<u8> {
    match context_id_size(units).filter(|_| contexts == ContextTrace::None)? {
        0b01 => Some(1),
        0b10 => Some(2),
        _ => None,
    }
}

/// The least of ETMCR's fields CtxtIDSize; `None` of other units.
fn context_id_size(units: &Units) -> Option<u32> {
    let registers = units.units.iter().filter_map(|unit| unit.register("ETMCR"));
    registers.map(|etmcr| etmcr >> 14 & 0b11).min()
}

/// Whether the lowest byte of a thread's number says which process it is of, among those that had code at any time.
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
