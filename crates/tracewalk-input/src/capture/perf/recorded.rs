//! The content of a perf recording besides its trace.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tracewalk::plain::plain;
use tracewalk::program::Scope;

use super::contexts::ContextTrace;
use super::maps::{BuildId, Epoch, KERNEL};
use super::parts::TraceCounts;
use super::records::Names;

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
    /// Whether simpleperf wrote the file.
    pub is_simpleperf: bool,
    /// The CPUs that have a trace unit.
    pub cpus: Vec<u64>,
    /// How trace identifies its process.
    pub contexts: ContextTrace,
    /// The number of bytes of context IDs that are traced, if these are too few to identify the process.
    pub short_context_ids: Option<u8>,
    /// What became of trace.
    pub trace: TraceCounts,
    /// The number of records of other kinds that the kernel dropped.
    pub lost_records: u64,
    /// Whether the file ends in the middle of a record.
    pub is_cut: bool,
    /// The offset of bytes that are not a record; the rest of the file is not read.
    pub damaged_at: Option<u64>,
    /// Whether records have times.
    pub has_times: bool,
    pub(super) names: Names,
    pub(super) build_ids: Vec<(String, BuildId)>,
    pub(super) epochs: Vec<Epoch>,
    /// The process of each thread.
    pub(super) threads: BTreeMap<u32, u32>,
    pub(super) process_names: BTreeMap<u32, u32>,
    /// The programs that trace is decoded with, and their names if there are several.
    pub(super) programs: Vec<(ProgramOf, Option<String>)>,
    /// The kernel's code as it ran.
    pub(super) kcore: Option<PathBuf>,
    /// The kernel's names, from the file beside `kcore`.
    pub(super) kallsyms: Option<PathBuf>,
    /// The distance of each module's code from the start of its mapping, if recorded.
    pub(super) module_text: BTreeMap<String, u64>,
}

/// The program of a part of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProgramOf {
    pub(super) epoch: usize,
    pub(super) process: Option<u32>,
}

impl Recorded {
    /// The threads' names, by their contexts in the trace: `name process`, or `name process/thread` for a
    /// thread that is not its process' first.
    #[must_use]
    pub fn thread_names(&self) -> BTreeMap<Scope, String> {
        if self.contexts == ContextTrace::None {
            return BTreeMap::new();
        }
        let first = self.epochs.iter().flat_map(|epoch| epoch.spaces.keys()).map(|pid| (*pid, *pid));
        let all = first.chain(self.threads.iter().map(|(tid, pid)| (*tid, *pid)));
        let mut names = BTreeMap::new();
        for (tid, pid) in all.filter(|(_, pid)| *pid != KERNEL) {
            let name = self.process_names.get(&pid).map_or("process", |name| self.names.get(*name));
            let process = format!("{} {pid}", plain(name.into()));
            let thread = if tid == pid { process.clone() } else { format!("{process}/{tid}") };
            // Threads of a process may have the same context in the trace.
            let known = names.entry(self.contexts.scope(tid)).or_insert_with(|| thread.clone());
            if *known != thread {
                *known = process;
            }
        }
        names
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
