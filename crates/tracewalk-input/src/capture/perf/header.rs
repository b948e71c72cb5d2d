//! The parts before and after the records: events, and perf's information about the recording.

use std::collections::BTreeMap;

use super::fields::{section, string, u16_at, u32_at, u64_at};
use super::maps::BuildId;
use super::problem::PerfProblem;

/// An event that was recorded.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// The number of the unit (PMU) that counts the event; it may differ after the next boot.
    pub(super) kind: u32,
    /// The settings that the user asked for.
    pub(super) config: u64,
    /// The fields after each record: see [`super::records::Trailer`].
    pub(super) sample_type: u64,
    pub(super) has_trailers: bool,
}

/// The file's information besides its records.
#[derive(Clone, Debug, Default)]
pub(super) struct Header {
    pub(super) events: Vec<Event>,
    /// The event of each ID.
    pub(super) event_of: BTreeMap<u64, usize>,
    pub(super) os_release: Option<String>,
    pub(super) arch: Option<String>,
    pub(super) command: Vec<String>,
    pub(super) is_simpleperf: bool,
    pub(super) build_ids: Vec<(String, BuildId)>,
    pub(super) is_branch_list: bool,
    /// The distance of each kernel module's code from the start of its mapping.
    pub(super) module_text: BTreeMap<String, u64>,
    /// The records' offset in the file, and their size.
    pub(super) data: (u64, u64),
}

/// The magic number, and that of a machine with the other byte order.
pub(super) const MAGIC: &[u8] = b"PERFILE2";
pub(super) const SWAPPED_MAGIC: &[u8] = b"2ELIFREP";

/// The size of the header of a file that came through a pipe.
const PIPE_HEADER: u64 = 16;

/// The most events of a file: usual ones have a few for each CPU.
const MOST_EVENTS: usize = 1 << 14;

/// The most IDs of events: an event has one for each CPU and thread.
const MOST_IDS: usize = 1 << 20;

/// `attr.size` of the first version of perf.
const SMALLEST_ATTR: usize = 64;

impl Header {
    pub(super) fn read(file: &[u8]) -> Result<Self, PerfProblem> {
        if file.starts_with(SWAPPED_MAGIC) {
            return Err(PerfProblem::BigEndian);
        }
        let damaged = |what| PerfProblem::Header { what };
        let word = |at| u64_at(file, at).ok_or_else(|| damaged("the header"));
        if !file.starts_with(MAGIC) {
            return Err(damaged("the magic number"));
        }
        if word(8)? == PIPE_HEADER {
            return Ok(Self { data: (PIPE_HEADER, u64::MAX), ..Self::default() });
        }
        let (attr_size, attrs) = (word(16)?, section(file, word(24)?, word(32)?));
        let data = (word(40)?, word(48)?);
        if data.0 > file.len() as u64 {
            return Err(damaged("the place of the records"));
        }
        let mut header = Self { data, ..Self::default() };
        let attr_size = usize::try_from(attr_size).unwrap_or(usize::MAX);
        if attr_size < SMALLEST_ATTR + 16 {
            return Err(damaged("the size of an event's description"));
        }
        for entry in attrs.chunks_exact(attr_size) {
            let at = attr_size - 16;
            let (Some(offset), Some(size)) = (u64_at(entry, at), u64_at(entry, at + 8)) else { break };
            let ids = section(file, offset, size).as_chunks().0.iter().copied().map(u64::from_le_bytes);
            header.add_event(entry, ids)?;
        }
        header.features(file, data.0.saturating_add(data.1))?;
        Ok(header)
    }

    /// Adds an event by its description.
    pub(super) fn add_event(
        &mut self,
        attr: &[u8],
        ids: impl Iterator<Item = u64>,
    ) -> Result<(), PerfProblem> {
        let parts = (u32_at(attr, 0), u64_at(attr, 8), u64_at(attr, 24), u64_at(attr, 40));
        let (Some(kind), Some(config), Some(sample_type), Some(flags)) = parts else {
            return Err(PerfProblem::Header { what: "an event's description" });
        };
        if self.events.len() >= MOST_EVENTS {
            return Err(PerfProblem::TooMany { what: "events", most: MOST_EVENTS });
        }
        let room = MOST_IDS.saturating_sub(self.event_of.len());
        self.event_of.extend(ids.take(room).map(|id| (id, self.events.len())));
        self.events.push(Event { kind, config, sample_type, has_trailers: flags >> 18 & 1 == 1 });
        Ok(())
    }

    /// Reads the sections of features. Their places are listed at `at`, one for each bit that is set.
    fn features(&mut self, file: &[u8], at: u64) -> Result<(), PerfProblem> {
        let bits = section(file, 72, 32).as_chunks().0;
        let mut places = section(file, at, u64::MAX).as_chunks::<16>().0.iter();
        for (number, set) in (0..256_usize).map(|bit| {
            let word = bits.get(bit / 64).copied().map_or(0, u64::from_le_bytes);
            (bit, word >> (bit % 64) & 1 == 1)
        }) {
            if !set {
                continue;
            }
            let Some(place) = places.next() else { break };
            let (Some(offset), Some(size)) = (u64_at(place, 0), u64_at(place, 8)) else { break };
            self.feature(number, section(file, offset, size))?;
        }
        Ok(())
    }

    /// Reads the bytes of a feature.
    pub(super) fn feature(&mut self, number: usize, bytes: &[u8]) -> Result<(), PerfProblem> {
        match number {
            2 => self.build_ids(bytes),
            4 => self.os_release = string(bytes).map(|(text, _)| text),
            6 => self.arch = string(bytes).map(|(text, _)| text),
            11 => {
                let (mut rest, words) = (bytes.get(4..).unwrap_or_default(), u32_at(bytes, 0).unwrap_or(0));
                for _ in 0..words.min(4096) {
                    let Some((word, after)) = string(rest) else { break };
                    self.command.push(word);
                    rest = after;
                }
            }
            129 => self.is_simpleperf = true,
            132 => self.module_text.extend(super::file2::module_texts(bytes)),
            133 => self.is_branch_list = true,
            _ => {}
        }
        Ok(())
    }

    /// Reads consecutive entries `{header, pid, id[24], name}`.
    fn build_ids(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(size) = u16_at(rest, 6).map(usize::from).filter(|size| *size >= 36) {
            let Some((entry, after)) = rest.split_at_checked(size) else { break };
            self.build_ids.extend(build_id_event(entry));
            rest = after;
        }
    }
}

/// A file and its build-id, from a build-id record.
pub(super) fn build_id_event(record: &[u8]) -> Option<(String, BuildId)> {
    let misc = u16_at(record, 4)?;
    let id = record.get(12..36)?;
    // Since perf 5.12, a byte after the ID contains its length.
    let length = if misc >> 15 & 1 == 1 { id.get(20).copied().unwrap_or(20).min(20) } else { 20 };
    let id = BuildId::new(id.get(..usize::from(length))?)?;
    Some((super::fields::name(record.get(36..)?), id))
}
