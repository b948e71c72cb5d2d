//! Processes over time: which file's code each had at which address, and until when.
//!
//! Each AUX record's trace is decoded with one program. As long as nothing is mapped over something else,
//! everything that was mapped at any time is one program. When a mapping replaces another that trace may have
//! run in, the next program begins.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A build-id: up to 20 bytes; the writer may have known only the first ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BuildId {
    bytes: [u8; 20],
    length: u8,
}

impl BuildId {
    /// The ID with these bytes; `None` if there are none, or only zeros. simpleperf pads short IDs with
    /// zeros.
    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        let used = bytes.iter().rposition(|byte| *byte != 0)? + 1;
        let mut all = [0; 20];
        all.get_mut(..used)?.copy_from_slice(bytes.get(..used)?);
        Some(Self { bytes: all, length: u8::try_from(used).ok()? })
    }

    /// The bytes that are known, without zeros at the end.
    #[must_use]
    pub fn known(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// Whether a file with the build-id `file` may be the one.
    #[must_use]
    pub fn is_of(&self, file: &[u8]) -> bool {
        file.starts_with(self.known()) && file.iter().skip(self.known().len()).all(|byte| *byte == 0)
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.known().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Code of a file at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) length: u64,
    /// The offset of the first byte in the file.
    pub(super) offset: u64,
    /// The number of the file's name.
    pub(super) file: u32,
    pub(super) build_id: Option<BuildId>,
}

/// What became of a process.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Mapped { pid: u32, mapping: Mapping },
    Named { pid: u32, tid: u32, name: u32, exec: bool },
    Forked { pid: u32, parent: u32, tid: u32 },
    Ended { pid: u32, tid: u32 },
}

/// The process that the kernel's mappings are listed under.
pub(super) const KERNEL: u32 = u32::MAX;

/// The mappings of a process, by address.
pub(super) type Space = BTreeMap<u64, Mapping>;

/// The mappings during a part of the recording.
#[derive(Clone, Debug, Default)]
pub(super) struct Epoch {
    /// By process.
    pub(super) spaces: BTreeMap<u32, Arc<Space>>,
}

/// The state of all processes, updated by each change.
#[derive(Debug, Default)]
pub(super) struct Processes {
    live: Epoch,
    /// The mappings since the epoch began.
    seen: Epoch,
    /// Whether there was trace since the epoch began.
    has_trace: bool,
    /// The epochs that have ended.
    done: Vec<Epoch>,
    /// The process of each thread, and each process' name.
    pub(super) threads: BTreeMap<u32, u32>,
    pub(super) names: BTreeMap<u32, u32>,
    /// How often a mapping replaced another after the last possible epoch, or a change was beyond
    /// `MOST_COPIED`.
    pub(super) mixed: u64,
    /// The number of mappings and processes that were copied.
    copied: usize,
}

/// The most mappings and processes copied: a recording of a hundred processes that fork takes some thousands.
const MOST_COPIED: usize = 1 << 20;

/// The most programs of a recording.
const MOST_EPOCHS: usize = 256;

/// The most mappings kept at once in one process.
const MOST_MAPPINGS: usize = 1 << 16;

impl Mapping {
    const fn end(&self) -> u64 {
        // Does not overflow: checked when the mapping was read.
        self.start.saturating_add(self.length)
    }

    /// Whether both have the same bytes at the addresses that they share.
    fn agrees(&self, other: &Self) -> bool {
        self.file == other.file
            && self.build_id == other.build_id
            && self.start.wrapping_sub(self.offset) == other.start.wrapping_sub(other.offset)
    }

    fn part(&self, start: u64, end: u64) -> Option<Self> {
        let (start, end) = (start.max(self.start), end.min(self.end()));
        let offset = self.offset.checked_add(start.checked_sub(self.start)?)?;
        (start < end).then(|| Self { start, length: end - start, offset, ..*self })
    }
}

/// The mappings that overlap a stretch.
fn overlapping(space: &Space, start: u64, end: u64) -> impl Iterator<Item = &Mapping> {
    // Mappings of a space do not overlap, so only one can begin before `start` and extend beyond it.
    let before = space.range(..start).next_back().filter(|(_, mapping)| mapping.end() > start);
    before.into_iter().chain(space.range(start..end)).map(|(_, mapping)| mapping)
}

/// Adds a mapping, which replaces what it covers.
fn put(space: &mut Space, mapping: Mapping) {
    let covered = overlapping(space, mapping.start, mapping.end()).copied().collect::<Vec<_>>();
    for old in covered {
        space.remove(&old.start);
        let rest = [old.part(0, mapping.start), old.part(mapping.end(), u64::MAX)];
        space.extend(rest.into_iter().flatten().map(|rest| (rest.start, rest)));
    }
    if space.len() < MOST_MAPPINGS {
        space.insert(mapping.start, mapping);
    }
}

impl Processes {
    /// The number of the epoch that current trace belongs to.
    pub(super) fn trace(&mut self) -> usize {
        self.has_trace = true;
        self.done.len()
    }

    /// The process of a thread.
    pub(super) fn process_of(&self, tid: u32) -> u32 {
        self.threads.get(&tid).copied().unwrap_or(tid)
    }

    pub(super) fn change(&mut self, change: Change) {
        match change {
            Change::Mapped { pid, mapping } => {
                if self.may_copy(pid) {
                    put(Arc::make_mut(self.live.spaces.entry(pid).or_default()), mapping);
                    self.see(pid, mapping);
                }
            }
            Change::Named { pid, tid, name, exec } => {
                self.threads.insert(tid, pid);
                if tid == pid {
                    self.names.insert(pid, name);
                }
                if exec {
                    self.live.spaces.remove(&pid);
                }
            }
            Change::Forked { pid, parent, tid } => {
                self.threads.insert(tid, pid);
                if pid == parent {
                    return;
                }
                if let Some(name) = self.names.get(&parent).copied() {
                    self.names.entry(pid).or_insert(name);
                }
                let Some(space) = self.live.spaces.get(&parent).cloned() else { return };
                // Copies the process itself, and its mappings if another process had that number before.
                let again = if self.seen.spaces.contains_key(&pid) { space.len() } else { 0 };
                if !self.is_room(1 + again) {
                    return;
                }
                self.live.spaces.insert(pid, Arc::clone(&space));
                match self.seen.spaces.get(&pid) {
                    None => drop(self.seen.spaces.insert(pid, space)),
                    Some(_) => space.values().for_each(|mapping| self.see(pid, *mapping)),
                }
            }
            Change::Ended { pid, tid } => {
                if pid == tid {
                    self.live.spaces.remove(&pid);
                }
            }
        }
    }

    /// Whether `more` may be copied; if not, the change is left out and counts as mixed.
    fn is_room(&mut self, more: usize) -> bool {
        self.copied = self.copied.saturating_add(more);
        let is_room = self.copied <= MOST_COPIED;
        self.mixed += u64::from(!is_room);
        is_room
    }

    /// Whether a process' mappings may be changed: a change copies the mappings that it shares with others.
    fn may_copy(&mut self, pid: u32) -> bool {
        let spaces = [self.live.spaces.get(&pid), self.seen.spaces.get(&pid)].into_iter().flatten();
        let shared = spaces.filter(|space| Arc::strong_count(space) > 1).map(|space| space.len()).sum();
        self.is_room(shared)
    }

    /// Adds a mapping to the epoch, or begins the next one if it replaces a mapping that trace may have run
    /// in.
    fn see(&mut self, pid: u32, mapping: Mapping) {
        let differs = self.seen.spaces.get(&pid).is_some_and(|space| {
            overlapping(space, mapping.start, mapping.end()).any(|old| !old.agrees(&mapping))
        });
        if differs && self.has_trace {
            if self.done.len() + 1 < MOST_EPOCHS && self.is_room(self.live.spaces.len()) {
                self.done.push(std::mem::replace(&mut self.seen, self.live.clone()));
                self.has_trace = false;
                return;
            }
            self.mixed += 1;
        }
        put(Arc::make_mut(self.seen.spaces.entry(pid).or_default()), mapping);
    }

    /// All epochs.
    pub(super) fn finish(&mut self) -> Vec<Epoch> {
        let mut epochs = std::mem::take(&mut self.done);
        epochs.push(std::mem::take(&mut self.seen));
        epochs
    }
}
