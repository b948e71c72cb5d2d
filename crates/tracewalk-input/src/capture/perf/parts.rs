//! AUX records → the parts of the file that are trace, grouped by program, process and packing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tracewalk::ids::TraceId;

use super::maps::{Epoch, KERNEL, Processes};
use super::problem::PerfProblem;
use super::records::{Aux, AuxBuffer, HardwareId, Records};
use super::units::Units;

/// Identifies trace that belongs together: decoded by the same units, with the same program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    pub(super) epoch: usize,
    /// The process, if the trace does not identify it.
    pub(super) process: Option<u32>,
    pub(super) packing: Packing,
}

/// How trace is packed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Packing {
    /// In frames, at this sink.
    Frames(u32),
    /// As one CPU's bytes.
    Raw(u64),
}

/// The trace of a recording, by group.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) groups: BTreeMap<Group, Vec<Range<usize>>>,
    pub(super) counts: TraceCounts,
    pub(super) epochs: Vec<Epoch>,
}

/// What became of the trace of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceCounts {
    /// How often the kernel took trace from a sink.
    pub records: u64,
    /// How often there was no trace to take.
    pub empty: u64,
    /// The number of bytes of trace in the file.
    pub bytes: u64,
    /// How often earlier trace had been lost because a buffer was full.
    pub truncated: u64,
    /// How often the trace has gaps inside.
    pub partial: u64,
    /// How often samples collided with others.
    pub collisions: u64,
    /// How often the bytes of trace are not in the file.
    pub missing: u64,
    /// The number of bytes of trace that are not in the file.
    pub missing_bytes: u64,
    /// The number of snapshots: the newest content of a buffer.
    pub snapshots: u64,
    /// How often a mapping replaced another in the same program, so that code of either may be shown.
    pub mixed_mappings: u64,
}

/// The most programs and sinks of a recording that are distinguished.
const MOST_GROUPS: usize = 4096;

/// `PERF_AUX_FLAG_*`.
const TRUNCATED: u64 = 1;
const OVERWRITE: u64 = 2;
const PARTIAL: u64 = 4;
const COLLISION: u64 = 8;
const FORMAT: u64 = 0xff00;
const RAW: u64 = 0x100;

impl Parts {
    pub(super) fn of(
        records: &mut Records,
        processes: &mut Processes,
        says_context: bool,
    ) -> Result<Self, PerfProblem> {
        let mut parts = Self::default();
        let mut changes = std::mem::take(&mut records.changes);
        changes.sort_by_key(|(when, _)| *when);
        let mut aux = records.aux.clone();
        aux.sort_by_key(|aux| aux.when);
        let queues = Queues::of(&records.buffers);
        let sinks = records.hardware_ids.iter().map(|id| (id.cpu, id.sink)).collect::<BTreeMap<_, _>>();
        let mut changes = changes.into_iter().peekable();
        for aux in &aux {
            while let Some((_, change)) = changes.next_if(|(when, _)| *when <= aux.when) {
                processes.change(change);
            }
            parts.add(aux, &queues, &sinks, processes, says_context);
            if parts.groups.len() > MOST_GROUPS {
                return Err(PerfProblem::TooMany { what: "programs and sinks", most: MOST_GROUPS });
            }
        }
        changes.for_each(|(_, change)| processes.change(change));
        parts.epochs = processes.finish();
        parts.counts.mixed_mappings = processes.mixed;
        Ok(parts)
    }

    fn add(
        &mut self,
        aux: &Aux,
        queues: &Queues,
        sinks: &BTreeMap<u64, u32>,
        processes: &mut Processes,
        says_context: bool,
    ) {
        let counts = &mut self.counts;
        counts.records += 1;
        if aux.size == 0 {
            counts.empty += 1;
            counts.truncated += aux.flags & TRUNCATED;
            return;
        }
        counts.truncated += u64::from(aux.flags & TRUNCATED > 0);
        counts.partial += u64::from(aux.flags & PARTIAL > 0);
        counts.collisions += u64::from(aux.flags & COLLISION > 0);
        counts.snapshots += u64::from(aux.flags & OVERWRITE > 0);
        let Some((bytes, queue)) = queues.find(aux) else {
            counts.missing += 1;
            counts.missing_bytes = counts.missing_bytes.saturating_add(aux.size);
            return;
        };
        counts.bytes += bytes.len() as u64;
        let cpu = match queue {
            Queue::Cpu(cpu) => Some(u64::from(cpu)),
            Queue::Thread(_) => aux.trailer.cpu.map(u64::from),
        };
        let packing = match aux.flags & FORMAT {
            RAW => Packing::Raw(cpu.unwrap_or(0)),
            _ => Packing::Frames(cpu.and_then(|cpu| sinks.get(&cpu).copied()).unwrap_or(0)),
        };
        let thread = match queue {
            Queue::Thread(tid) => Some(tid),
            Queue::Cpu(_) if says_context => None,
            Queue::Cpu(_) => aux.trailer.tid,
        };
        let process = thread.map(|tid| processes.process_of(tid));
        let group = Group { epoch: processes.trace(), process, packing };
        self.groups.entry(group).or_default().push(bytes);
    }
}

/// The ring that bytes of trace come from: a CPU's or a thread's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Queue {
    Cpu(u32),
    Thread(u32),
}

/// The buffers of each ring, sorted by their offsets in the ring.
struct Queues(BTreeMap<Queue, Vec<AuxBuffer>>);

impl Queues {
    fn of(buffers: &[AuxBuffer]) -> Self {
        let mut queues = BTreeMap::<_, Vec<AuxBuffer>>::new();
        for buffer in buffers {
            let queue = match buffer.cpu {
                u32::MAX => Queue::Thread(buffer.tid),
                cpu => Queue::Cpu(cpu),
            };
            queues.entry(queue).or_default().push(*buffer);
        }
        queues.values_mut().for_each(|buffers| buffers.sort_by_key(|buffer| buffer.offset));
        Self(queues)
    }

    /// Where the bytes of a record are in the file.
    fn find(&self, aux: &Aux) -> Option<(Range<usize>, Queue)> {
        let queues = [aux.trailer.cpu.map(Queue::Cpu), aux.trailer.tid.map(Queue::Thread)];
        let found = queues.into_iter().flatten().find_map(|queue| {
            let buffers = self.0.get(&queue)?;
            Some((in_buffers(buffers, aux)?, queue))
        });
        // A file without trailers has one ring.
        found.or_else(|| match self.0.iter().next() {
            Some((queue, buffers)) if self.0.len() == 1 => Some((in_buffers(buffers, aux)?, *queue)),
            _ => None,
        })
    }
}

fn in_buffers(buffers: &[AuxBuffer], aux: &Aux) -> Option<Range<usize>> {
    let (start, end) = if aux.flags & OVERWRITE > 0 {
        // The offset of a snapshot is the place of the ring's newest byte. perf has put the oldest byte
        // first.
        let after = buffers.partition_point(|buffer| buffer.offset < aux.offset);
        let mut before = buffers.get(..after)?.iter().rev().take(MOST_LOOKED_AT);
        let buffer = before.find(|buffer| aux.offset <= buffer.offset.saturating_add(buffer.size))?;
        let size = aux.size.min(buffer.size);
        let end = aux.offset.saturating_sub(buffer.offset);
        (buffer.at + end.saturating_sub(size), buffer.at + end)
    } else {
        let end = aux.offset.checked_add(aux.size)?;
        let after = buffers.partition_point(|buffer| buffer.offset <= aux.offset);
        // Buffers of damaged files may overlap: take the newest one that has the whole record.
        let mut before = buffers.get(..after)?.iter().rev().take(MOST_LOOKED_AT);
        let buffer = before.find(|buffer| end <= buffer.offset.saturating_add(buffer.size))?;
        let start = buffer.at + (aux.offset - buffer.offset);
        (start, start + aux.size)
    };
    let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
    (!range.is_empty()).then_some(range)
}

/// The number of buffers before a record's offset that may hold it.
const MOST_LOOKED_AT: usize = 16;

/// The trace ID of each CPU whose trace may be at a sink.
pub(super) fn ids(units: &Units, stated: &[HardwareId], sink: u32) -> Vec<(u64, TraceId)> {
    let at_sink = stated.iter().filter(|id| id.sink == sink);
    let mut ids = at_sink.filter_map(|id| Some((id.cpu, TraceId::new(id.id)?))).collect::<Vec<_>>();
    if stated.is_empty() {
        // Kernels before 6.1 state no IDs: the ID follows from the CPU.
        ids = units.units.iter().filter_map(|unit| Some((unit.cpu, unit.usual_id?))).collect();
    }
    let mut known = BTreeSet::new();
    ids.retain(|(_, id)| known.insert(*id));
    ids
}

/// The processes that have code mapped at some time of an epoch, without the kernel.
pub(super) fn processes(epoch: &Epoch) -> impl Iterator<Item = u32> {
    let has_code = |(_, space): &(&u32, &std::sync::Arc<super::maps::Space>)| !space.is_empty();
    epoch.spaces.iter().filter(has_code).map(|(pid, _)| *pid).filter(|pid| *pid != KERNEL)
}
