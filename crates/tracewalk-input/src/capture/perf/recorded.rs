//! The content of a perf recording besides its trace.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tracewalk::ids::{ContextId, Vmid};
use tracewalk::plain::plain;
use tracewalk::program::Scope;

use super::maps::{BuildId, Epoch, KERNEL};
use super::parts::TraceCounts;
use super::records::Names;
use super::units::Units;

/// The content of a perf recording besides its trace.
#[derive(Debug)]
pub struct Recorded {
    /// The file.
    pub file: PathBuf,
    /// The command that recorded it.
    pub command: Vec<String>,
    /// The version of the kernel.
    pub os_release: Option<String>,
    /// The machine's architecture, in `uname`'s words.
    pub arch: Option<String>,
    /// Whether simpleperf wrote it.
    pub is_simpleperf: bool,
    /// The CPUs that have a trace unit.
    pub cpus: Vec<u64>,
    /// How trace identifies its process.
    pub contexts: ContextTrace,
    /// The number of bytes of context IDs that are traced, if these are too few to identify the process.
    pub short_context_ids: Option<u8>,
    /// What became of trace.
    pub trace: TraceCounts,
    /// How many records of other kinds the kernel dropped.
    pub lost_records: u64,
    /// Whether the file ends in the middle of a record.
    pub is_cut: bool,
    /// Where the file has something that is no record; what follows is not read.
    pub damaged_at: Option<u64>,
    /// Whether records have times.
    pub has_times: bool,
    pub(super) names: Names,
    pub(super) build_ids: Vec<(String, BuildId)>,
    pub(super) epochs: Vec<Epoch>,
    /// The process of each thread.
    pub(super) threads: BTreeMap<u32, u32>,
    pub(super) process_names: BTreeMap<u32, u32>,
    /// The programs that trace is decoded with, and what each is called if there are several.
    pub(super) programs: Vec<(ProgramOf, Option<String>)>,
    /// The kernel's code as it ran.
    pub(super) kcore: Option<PathBuf>,
}

/// Which program a part of the trace is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProgramOf {
    pub(super) epoch: usize,
    pub(super) process: Option<u32>,
}

/// How trace identifies its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextTrace {
    /// It does not.
    None,
    /// The context ID is the thread's number.
    ContextId,
    /// The context ID is the process' number above the number of an address space, which has eight bits: of Armv7-A.
    Process,
    /// The VMID is, where the kernel is its own hypervisor.
    Vmid,
}

impl ContextTrace {
    /// By the bits that the user asked for and those that the units were set up with.
    pub(super) fn of(config: u64, units: &Units) -> Self {
        // CtxtIDSize in ETMCR bits 15:14. Fewer than four bytes are an address space's number without the process.
        if let Some(size) = context_id_size(units) {
            return if size == 0b11 { Self::Process } else { Self::None };
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
}

/// The least of ETMCR's fields CtxtIDSize; `None` of other units.
fn context_id_size(units: &Units) -> Option<u32> {
    let registers = units.units.iter().filter_map(|unit| unit.register("ETMCR"));
    registers.map(|etmcr| etmcr >> 14 & 0b11).min()
}

/// The number of bytes of context IDs that are traced, if these are fewer than say the process.
pub(super) fn short_context_ids(units: &Units) -> Option<u8> {
    match context_id_size(units)? {
        0b01 => Some(1),
        0b10 => Some(2),
        _ => None,
    }
}

impl ContextTrace {
    /// Where a thread runs.
    pub(super) const fn scope(self, tid: u32) -> Scope {
        match self {
            Self::None => Scope::EVERYWHERE,
            Self::ContextId => Scope::context(ContextId(tid)),
            // A thread's number is less than 2^22.
            Self::Process => Scope::context(ContextId(tid << 8)),
            Self::Vmid => Scope::vmid(Vmid(tid)),
        }
    }
}

impl Recorded {
    /// What the threads are called that contexts in the trace are of: `name process`, and `name process/thread` where a thread is not its
    /// process' first.
    #[must_use]
    pub fn thread_names(&self) -> BTreeMap<Scope, String> {
        if self.contexts == ContextTrace::None {
            return BTreeMap::new();
        }
        let first = self.epochs.iter().flat_map(|epoch| epoch.spaces.keys()).map(|pid| (*pid, *pid));
        let all = first.chain(self.threads.iter().map(|(tid, pid)| (*tid, *pid)));
        let names = all.filter(|(_, pid)| *pid != KERNEL).map(|(tid, pid)| {
            let name = self.process_names.get(&pid).map_or("process", |name| self.names.get(*name));
            let thread = if tid == pid { String::new() } else { format!("/{tid}") };
            (self.contexts.scope(tid), format!("{} {pid}{thread}", plain(name.into())))
        });
        names.collect()
    }

    /// The processes that had code mapped, by number and name.
    pub fn processes(&self) -> impl Iterator<Item = (u32, &str)> {
        let mut all = self.epochs.iter().flat_map(|epoch| epoch.spaces.keys()).copied().collect::<Vec<_>>();
        all.sort_unstable();
        all.dedup();
        all.into_iter()
            .filter(|pid| *pid != KERNEL)
            .map(|pid| (pid, self.process_names.get(&pid).map_or("", |name| self.names.get(*name))))
    }
}
