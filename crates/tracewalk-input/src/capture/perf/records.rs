//! The records of a file. One pass looks at each header and keeps what matters; bytes of trace are skipped.

use super::fields::{name, u16_at, u32_at, u64_at};
use super::header::{Event, Header, build_id_event};
use super::maps::{BuildId, Change, Mapping};
use super::problem::PerfProblem;
use super::units::Units;

/// The contents of the records.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) header: Header,
    pub(super) units: Option<Units>,
    /// The trace ID of a CPU, by the kernel's own statement.
    pub(super) hardware_ids: Vec<HardwareId>,
    /// The kernel's records about trace, in the order of the file.
    pub(super) aux: Vec<Aux>,
    /// The places of trace in the file.
    pub(super) buffers: Vec<AuxBuffer>,
    /// What became of processes.
    pub(super) changes: Vec<(When, Change)>,
    pub(super) names: Names,
    /// The number of records that the kernel dropped.
    pub(super) lost: u64,
    /// Whether the last record is incomplete.
    pub(super) is_cut: bool,
    /// The offset of bytes that are not a record.
    pub(super) damaged_at: Option<u64>,
    /// Whether some records hold compressed records.
    pub(super) has_compressed: bool,
    /// Whether records have times.
    pub(super) has_times: bool,
    count: u64,
}

/// When a record was made: its time, or 0, then its number in the file.
pub(super) type When = (u64, u64);

#[derive(Clone, Copy, Debug)]
pub(super) struct HardwareId {
    pub(super) cpu: u64,
    pub(super) id: u8,
    pub(super) sink: u32,
}

/// The kernel's record of taking trace from a sink.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aux {
    pub(super) when: When,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) flags: u64,
    pub(super) trailer: Trailer,
}

/// Bytes of trace in the file, and the part of a ring that they come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct AuxBuffer {
    /// The offset of the first byte in the file.
    pub(super) at: u64,
    pub(super) size: u64,
    pub(super) offset: u64,
    /// `u32::MAX` for a thread's ring.
    pub(super) cpu: u32,
    pub(super) tid: u32,
}

/// The fields after a record.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trailer {
    pub(super) pid: Option<u32>,
    pub(super) tid: Option<u32>,
    pub(super) time: Option<u64>,
    pub(super) cpu: Option<u32>,
}

/// Names, each once.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: Vec<String>,
    numbers: std::collections::BTreeMap<String, u32>,
    bytes: usize,
}

impl Names {
    fn number(&mut self, name: String) -> Result<u32, PerfProblem> {
        if let Some(number) = self.numbers.get(&name) {
            return Ok(*number);
        }
        self.bytes += name.len();
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        if self.bytes > MOST_NAME_BYTES {
            return Err(PerfProblem::TooMany { what: "bytes of names", most: MOST_NAME_BYTES });
        }
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        Ok(number)
    }

    pub(super) fn get(&self, number: u32) -> &str {
        usize::try_from(number).ok().and_then(|number| self.names.get(number)).map_or("", String::as_str)
    }
}

/// Limits of the records and names kept in memory.
const MOST_KEPT: usize = 1 << 20;
const MOST_NAME_BYTES: usize = 16 << 20;

/// `PERF_RECORD_*`.
const MMAP: u32 = 1;
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const MMAP2: u32 = 10;
const AUX: u32 = 11;
const LOST_SAMPLES: u32 = 13;
const AUX_OUTPUT_HW_ID: u32 = 21;
const HEADER_ATTR: u32 = 64;
const HEADER_BUILD_ID: u32 = 67;
const AUXTRACE_INFO: u32 = 70;
const AUXTRACE: u32 = 71;
const HEADER_FEATURE: u32 = 80;
const COMPRESSED: u32 = 81;
const COMPRESSED2: u32 = 83;

/// `PERF_RECORD_MISC_*`.
const MISC_MMAP_DATA: u16 = 1 << 13;
const MISC_COMM_EXEC: u16 = 1 << 13;
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;

/// `PROT_EXEC`.
const EXECUTABLE: u32 = 4;

/// Walks over the records of `bytes`, whose first record is at `start`. Calls `take` with each record and the
/// length of the trace that follows it. Returns where the walk ended.
pub(super) fn walk<'a>(
    bytes: &'a [u8],
    start: u64,
    mut take: impl FnMut(Record<'a>) -> Result<(), PerfProblem>,
) -> Result<End, PerfProblem> {
    let mut at = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let head = (u32_at(rest, 0), u16_at(rest, 4), u16_at(rest, 6));
        let (Some(kind), Some(misc), Some(size)) = head else {
            return Ok(End { at: at as u64, is_cut: !rest.is_empty(), is_damaged: false });
        };
        let size = usize::from(size);
        if size < 8 {
            // Some writers pad the end with zeros.
            let is_padding = rest.iter().take(64).all(|byte| *byte == 0);
            return Ok(End { at: at as u64, is_cut: false, is_damaged: !is_padding });
        }
        let Some(record) = rest.get(..size) else {
            return Ok(End { at: at as u64, is_cut: true, is_damaged: false });
        };
        let trace = if kind == AUXTRACE { u64_at(record, 8).unwrap_or(0) } else { 0 };
        let next = (at + size) as u64;
        let after = next.saturating_add(trace);
        let there = trace.min((bytes.len() as u64).saturating_sub(next));
        let is_cut = after > bytes.len() as u64;
        take(Record { at: at as u64, kind, misc, bytes: record, trace: there, is_cut })?;
        if is_cut {
            return Ok(End { at: next, is_cut: true, is_damaged: false });
        }
        at = usize::try_from(after).unwrap_or(usize::MAX);
    }
}

/// A record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub(super) at: u64,
    pub(super) kind: u32,
    pub(super) misc: u16,
    /// The record's bytes, with its header.
    pub(super) bytes: &'a [u8],
    /// The number of bytes of trace that follow.
    pub(super) trace: u64,
    /// Whether the file ends before the end of the trace.
    pub(super) is_cut: bool,
}

/// Where records end.
pub(super) struct End {
    pub(super) at: u64,
    pub(super) is_cut: bool,
    pub(super) is_damaged: bool,
}

impl Record<'_> {
    /// Whether the record holds other records.
    pub(super) const fn is_compressed(&self) -> bool {
        matches!(self.kind, COMPRESSED | COMPRESSED2)
    }

    /// The compressed bytes in the record.
    pub(super) fn compressed(&self) -> &[u8] {
        match self.kind {
            COMPRESSED2 => {
                let size = u64_at(self.bytes, 8).and_then(|size| usize::try_from(size).ok());
                let data = self.bytes.get(16..).unwrap_or_default();
                size.and_then(|size| data.get(..size)).unwrap_or(data)
            }
            _ => self.bytes.get(8..).unwrap_or_default(),
        }
    }
}

impl Records {
    pub(super) fn new(header: Header) -> Self {
        Self { header, ..Self::default() }
    }

    /// Reads the records of `bytes` from `start` to `end`.
    pub(super) fn take_all(&mut self, bytes: &[u8], start: u64, end: u64) -> Result<(), PerfProblem> {
        let end = usize::try_from(end).unwrap_or(usize::MAX).min(bytes.len());
        let ending = walk(bytes.get(..end).unwrap_or_default(), start, |record| self.take(&record))?;
        self.is_cut |= ending.is_cut;
        self.damaged_at = self.damaged_at.or(ending.is_damaged.then_some(ending.at));
        Ok(())
    }

    fn take(&mut self, record: &Record<'_>) -> Result<(), PerfProblem> {
        self.count += 1;
        let &Record { at, kind, misc, bytes, trace, .. } = record;
        let kept = self.aux.len() + self.buffers.len() + self.changes.len() + self.hardware_ids.len();
        if kept >= MOST_KEPT {
            return Err(PerfProblem::TooMany {
                what: "records of mappings, processes and trace",
                most: MOST_KEPT,
            });
        }
        match kind {
            MMAP | MMAP2 | COMM | EXIT | FORK => {
                let when = self.when(bytes);
                if let Some(change) = self.change(kind, misc, bytes)? {
                    self.changes.push((when, change));
                }
            }
            LOST | LOST_SAMPLES => {
                let lost = u64_at(bytes, if kind == LOST { 16 } else { 8 });
                self.lost = self.lost.saturating_add(lost.unwrap_or(0));
            }
            AUX => self.take_aux(bytes),
            AUX_OUTPUT_HW_ID => self.take_hardware_id(bytes)?,
            HEADER_ATTR => {
                let attr = bytes.get(8..).unwrap_or_default();
                let size = u32_at(attr, 4).and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
                let ids = attr.get(size..).unwrap_or_default().as_chunks().0.iter();
                self.header.add_event(attr, ids.copied().map(u64::from_le_bytes))?;
            }
            HEADER_FEATURE => {
                if let Some(number) = u64_at(bytes, 8).and_then(|number| usize::try_from(number).ok()) {
                    self.header.feature(number, bytes.get(16..).unwrap_or_default())?;
                }
            }
            HEADER_BUILD_ID => self.header.build_ids.extend(build_id_event(bytes)),
            AUXTRACE_INFO => self.units = Some(Units::read(bytes.get(8..).unwrap_or_default(), at)?),
            AUXTRACE => {
                let parts = (u64_at(bytes, 16), u32_at(bytes, 36), u32_at(bytes, 40));
                if let (Some(offset), Some(tid), Some(cpu)) = parts {
                    let at = at + bytes.len() as u64;
                    self.buffers.push(AuxBuffer { at, size: trace, offset, cpu, tid });
                }
            }
            COMPRESSED | COMPRESSED2 => self.has_compressed = true,
            _ => {}
        }
        Ok(())
    }

    fn when(&self, bytes: &[u8]) -> When {
        (self.trailer(bytes).time.unwrap_or(0), self.count)
    }

    /// Reads the fields after one of the kernel's records.
    fn trailer(&self, bytes: &[u8]) -> Trailer {
        const IDENTIFIER: u64 = 0x1_0000;
        let events = &self.header.events;
        let Some(first) = events.first() else { return Trailer::default() };
        let id = || bytes.len().checked_sub(8).and_then(|at| u64_at(bytes, at));
        let event = if first.sample_type & IDENTIFIER > 0 && events.len() > 1 {
            let index = id().and_then(|id| self.header.event_of.get(&id));
            index.and_then(|index| events.get(*index)).unwrap_or(first)
        } else {
            first
        };
        event.trailer(bytes)
    }

    fn take_aux(&mut self, bytes: &[u8]) {
        let trailer = self.trailer(bytes);
        self.has_times |= trailer.time.is_some();
        let when = (trailer.time.unwrap_or(0), self.count);
        if let (Some(offset), Some(size), Some(flags)) =
            (u64_at(bytes, 8), u64_at(bytes, 16), u64_at(bytes, 24))
        {
            self.aux.push(Aux { when, offset, size, flags, trailer });
        }
    }

    fn take_hardware_id(&mut self, bytes: &[u8]) -> Result<(), PerfProblem> {
        let (Some(payload), Some(cpu)) = (u64_at(bytes, 8), self.trailer(bytes).cpu) else { return Ok(()) };
        let byte = |shift: u32| u8::try_from(payload >> shift & 0xff).unwrap_or(0);
        let (major, minor) = (byte(60) & 0xf, byte(56) & 0xf);
        if major != 0 {
            return Err(PerfProblem::HardwareId { major });
        }
        // Form 0.0 has one map for all sinks.
        let sink = if minor == 0 { 0 } else { u32::try_from(payload >> 8 & 0xffff_ffff).unwrap_or(0) };
        self.hardware_ids.push(HardwareId { cpu: cpu.into(), id: byte(0), sink });
        Ok(())
    }

    /// A record's information about a process.
    fn change(&mut self, kind: u32, misc: u16, bytes: &[u8]) -> Result<Option<Change>, PerfProblem> {
        let (Some(pid), Some(tid)) = (u32_at(bytes, 8), u32_at(bytes, 12)) else { return Ok(None) };
        Ok(match kind {
            COMM => {
                let name = self.names.number(name(bytes.get(16..).unwrap_or_default()))?;
                Some(Change::Named { pid, tid, name, exec: misc & MISC_COMM_EXEC > 0 })
            }
            EXIT => Some(Change::Ended { pid, tid: u32_at(bytes, 16).unwrap_or(pid) }),
            FORK => {
                let (Some(tid), parent) = (u32_at(bytes, 16), tid) else { return Ok(None) };
                Some(Change::Forked { pid, parent, tid })
            }
            _ => {
                let place = (u64_at(bytes, 16), u64_at(bytes, 24), u64_at(bytes, 32));
                let (Some(start), Some(length), Some(offset)) = place else { return Ok(None) };
                let is_second = kind == MMAP2;
                let is_code = if is_second {
                    u32_at(bytes, 64).is_some_and(|protection| protection & EXECUTABLE > 0)
                } else {
                    misc & MISC_MMAP_DATA == 0
                };
                if !is_code || length == 0 || start.checked_add(length).is_none() {
                    return Ok(None);
                }
                let file = name(bytes.get(if is_second { 72 } else { 40 }..).unwrap_or_default());
                let build_id = (is_second && misc & MISC_MMAP_BUILD_ID > 0)
                    .then(|| {
                        let length = usize::from(bytes.get(40).copied().unwrap_or(0).min(20));
                        BuildId::new(bytes.get(44..64)?.get(..length)?)
                    })
                    .flatten();
                let file = self.names.number(file)?;
                Some(Change::Mapped { pid, mapping: Mapping { start, length, offset, file, build_id } })
            }
        })
    }
}

impl Event {
    /// Reads the fields after a record that the event has, in the order TID, TIME, ID, STREAM_ID, CPU,
    /// IDENTIFIER.
    fn trailer(&self, bytes: &[u8]) -> Trailer {
        const TID: u64 = 0x2;
        const TIME: u64 = 0x4;
        const OTHER: [u64; 2] = [0x40, 0x200];
        const CPU: u64 = 0x80;
        const IDENTIFIER: u64 = 0x1_0000;
        let has = |bit: u64| self.sample_type & bit > 0;
        let all = [TID, TIME, OTHER[0], OTHER[1], CPU, IDENTIFIER];
        let size = 8 * all.iter().filter(|bit| has(**bit)).count();
        let mut trailer = Trailer::default();
        let Some(mut at) = bytes.len().checked_sub(size).filter(|at| self.has_trailers && *at >= 8) else {
            return trailer;
        };
        for bit in all.into_iter().filter(|bit| has(*bit)) {
            match bit {
                TID => (trailer.pid, trailer.tid) = (u32_at(bytes, at), u32_at(bytes, at + 4)),
                TIME => trailer.time = u64_at(bytes, at),
                CPU => trailer.cpu = u32_at(bytes, at),
                _ => {}
            }
            at += 8;
        }
        trailer
    }
}
