//! `perf.data` with CoreSight trace, as recorded by Linux' perf and Android's simpleperf.
//!
//! A file is a sequence of records. Some describe trace units, processes and their mappings. Some state when
//! the kernel took which part of a CPU's ring of trace. Some are followed by the bytes of trace. One pass
//! over the records' headers finds all of them. The bytes of trace are not copied: a buffer of the capture is
//! the whole file, with a list of the parts that belong together, and decoders restart at each part.
//! Only compressed trace, or trace in several files, is copied.
//!
//! ```text
//! header ─▶ events, features                       header
//! records ─▶ units, trace IDs, AUX, processes      records, units
//! AUX × buffers × processes ─▶ groups of parts     parts, maps
//! names, build-ids ─▶ files here                   binaries
//! ```
//!
//! A recording with one trace unit and one part of its trace, and what a capture has of it:
//!
//! ```
//! use tracewalk_input::capture::Capture;
//! use tracewalk_input::capture::wire::WireOptions;
//!
//! # fn words(words: &[u64]) -> Vec<u8> {
//! #     words.iter().flat_map(|word| word.to_le_bytes()).collect()
//! # }
//! # fn record(kind: u32, body: &[u64]) -> Vec<u8> {
//! #     let size = u16::try_from(8 + 8 * body.len()).unwrap();
//! #     [&kind.to_le_bytes()[..], &[0, 0], &size.to_le_bytes(), &words(body)].concat()
//! # }
//! # // The event (PERF_RECORD_HEADER_ATTR): the PMU, its settings, what each record ends in.
//! # let event = [112 << 32 | 8, 0, 1, 0x1_0087, 4, 1 << 18, 0, 0, 0, 0, 0, 0, 0, 0, 1];
//! // CPU 0 has an ETMv4 with trace ID 0x10 (PERF_RECORD_AUXTRACE_INFO). TRCCONFIGR is 0xc1.
//! let (trcconfigr, trcidr) = (0xc1, [0x2800_0ea1, 0x4100_f422, 0x2000_1088, 0]);
//! let unit = [0x4040_4040_4040_4040, 0, 7, trcconfigr, 0x10, trcidr[0], trcidr[1], trcidr[2], trcidr[3], 0xcc];
//! let units = [&[3, 1, 8 << 32 | 1, 0], &unit[..]].concat();
//! // The kernel took 16 bytes of trace (PERF_RECORD_AUX), and these are the bytes (PERF_RECORD_AUXTRACE).
//! let (taken, place) = ([0, 16, 0, 0, 100, 0, 1], [16, 0, 0, 0, 0]);
//! let trace = [0; 16];
//! let file = [
//!     b"PERFILE2".to_vec(),
//!     words(&[16]),
//!     record(64, &event),
//!     record(70, &units),
//!     record(11, &taken),
//!     record(71, &place),
//!     trace.to_vec(),
//! ]
//! .concat();
//!
//! let capture = Capture::read_from("perf.data".as_ref(), &file[..], &WireOptions::default())?;
//! let recorded = capture.recorded.as_ref().expect("a recording");
//! assert_eq!((recorded.cpus.as_slice(), recorded.trace.bytes), (&[0][..], 16));
//! let [buffer] = capture.buffers.as_slice() else { panic!("one buffer for all parts") };
//! assert_eq!(buffer.sources[0].id.map(|id| id.get()), Some(0x10));
//! let parts = buffer.parts.as_ref().expect("a buffer is the file, and parts of it are trace");
//! assert_eq!(parts.to_vec(), [file.len() - 16..file.len()]);
//! # Ok::<(), tracewalk_input::capture::CaptureError>(())
//! ```

mod archive;
mod binaries;
mod branch_list;
mod contexts;
mod fields;
mod file2;
mod header;
mod kernel;
mod maps;
mod parts;
mod places;
mod plain;
mod problem;
mod recorded;
mod records;
mod units;

use std::path::{Path, PathBuf};

use super::Arrangement;
use super::container::{Blocks, Container};
use super::contents::{Buffer, Capture};
use super::error::{CaptureError, CaptureErrorKind};
use super::format::{Format, Given, Holds, refuse_options};
use super::wire::WireOptions;
use crate::bytes::Bytes;
use crate::file;
use crate::origin::{Origin, Stated};
use header::{Header, MAGIC, SWAPPED_MAGIC};
use maps::Processes;
use parts::{Group, Packing, Parts};
use recorded::ProgramOf;
use records::Records;
use units::Units;

pub use binaries::{Binaries, Binary, NoBinary};
pub use contexts::ContextTrace;
pub use maps::BuildId;
pub use parts::TraceCounts;
pub use places::BinaryPlaces;
pub use problem::PerfProblem;
pub use recorded::Recorded;

/// Recordings of perf and simpleperf, as a file or as a directory with one.
pub(super) const FORMAT: Format = Format {
    name: "a perf.data file",
    holds: Holds::PerfData,
    streams: false,
    sniff: |given| is_one(&given.head) || branch_list::is_one(&given.head) || is_directory(&given.path),
    open,
    names: |given| match is_directory(&given.path) {
        true => [vec![given.path.join(DATA)], threads(&given.path)].concat(),
        false => Vec::new(),
    },
};

/// The main file of a recording that is a directory.
const DATA: &str = "data";

/// The files `data.0` and so on beside the main file. Each thread of perf writes its own: records without a
/// header.
fn threads(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let numbered = entries.filter_map(|entry| {
        let name = entry.file_name();
        let number = name.to_str()?.strip_prefix(DATA)?.strip_prefix('.')?.parse::<u32>().ok()?;
        Some((number, entry.path()))
    });
    let mut files = numbered.collect::<Vec<_>>();
    files.sort();
    files.into_iter().map(|(_, file)| file).collect()
}

fn is_one(head: &[u8]) -> bool {
    head.starts_with(MAGIC) || head.starts_with(SWAPPED_MAGIC)
}

fn is_directory(path: &Path) -> bool {
    path.is_dir() && is_one(&Given::at(&path.join(DATA), &[]).head)
}

fn open(given: &Given, wires: &WireOptions) -> Result<Capture, CaptureError> {
    let directory = is_directory(&given.path);
    let path = if directory { given.path.join(DATA) } else { given.path.clone() };
    let bytes = match &given.bytes {
        Some(bytes) => bytes.clone(),
        None => file::map(&path, file::LONGEST_CAPTURE)
            .map_err(|problem| CaptureError::of_file(&path, problem))?,
    };
    let of_kernel = |name: &str| {
        let file = given.path.join("kcore_dir").join(name);
        Some(file).filter(|file| directory && file.is_file())
    };
    let (kcore, kallsyms) = (of_kernel("kcore"), of_kernel(kernel::LIST));
    let others = if directory { threads(&given.path) } else { Vec::new() };
    let others = others.iter().map(|file| {
        file::map(file, file::LONGEST_CAPTURE).map_err(|problem| CaptureError::of_file(file, problem))
    });
    let others = others.collect::<Result<Vec<_>, _>>()?;
    let capture = read(&path, (bytes, &others), (kcore, kallsyms)).map_err(|problem| CaptureError {
        file: path.clone(),
        line: None,
        kind: CaptureErrorKind::Perf(problem),
    })?;
    refuse_options(capture, wires)
}

/// Reads a file's bytes, and those of others that have only records. `path` is used in messages.
fn read(
    path: &Path,
    (file, others): (Bytes, &[Bytes]),
    (kcore, kallsyms): (Option<PathBuf>, Option<PathBuf>),
) -> Result<Capture, PerfProblem> {
    if branch_list::is_one(&file) {
        return Err(PerfProblem::BranchList);
    }
    let header = Header::read(&file)?;
    let data = header.data;
    let mut records = Records::new(header.clone());
    records.take_all(&file, data.0, data.0.saturating_add(data.1))?;
    // A file that came through a pipe has its features in records.
    if records.header.is_branch_list {
        return Err(PerfProblem::BranchList);
    }
    let mut bytes = file;
    let others = others.iter().filter(|other| !other.is_empty()).collect::<Vec<_>>();
    if records.has_compressed || !others.is_empty() {
        let files = others.into_iter().map(|other| (&**other, (0, u64::MAX)));
        let plain = plain::plain(std::iter::once((&*bytes, data)).chain(files))?;
        let damaged_at = records.damaged_at;
        records = Records::new(header);
        (records.is_cut, records.damaged_at) = (plain.is_cut, damaged_at);
        records.take_all(&plain.bytes, 0, u64::MAX)?;
        bytes = plain.bytes;
    }
    let units = records.units.take().ok_or(PerfProblem::NoCoreSight { kind: None })?;
    let trace_event = records.header.events.iter().find(|event| event.kind == units.event_kind);
    let contexts = ContextTrace::of(trace_event.map_or(0, |event| event.config), &units, &records.changes);
    let mut processes = Processes::default();
    let parts = Parts::of(&mut records, &mut processes, contexts != ContextTrace::None)?;
    let programs = programs(&parts);
    let mut buffers = Vec::new();
    for (group, ranges) in parts.groups {
        let program = ProgramOf { epoch: group.epoch, process: group.process };
        let core = programs.iter().find(|(known, _)| *known == program).and_then(|(_, core)| core.clone());
        buffers.push(buffer(path, (&bytes, ranges), &group, core, &units, &records));
    }
    if buffers.is_empty() {
        // An empty buffer: reports of lost trace need one, and the units are known.
        let group = Group { epoch: 0, process: None, packing: Packing::Frames(0) };
        buffers.push(buffer(path, (&bytes, Vec::new()), &group, None, &units, &records));
    }
    let Records { header, names, lost, is_cut, damaged_at, has_times, .. } = records;
    let recorded = Recorded {
        file: path.to_owned(),
        command: header.command,
        os_release: header.os_release,
        arch: header.arch,
        is_simpleperf: header.is_simpleperf,
        cpus: units.units.iter().map(|unit| unit.cpu).collect(),
        contexts,
        short_context_ids: contexts::too_short(contexts, &units),
        trace: parts.counts,
        lost_records: lost,
        is_cut,
        damaged_at,
        has_times,
        names,
        build_ids: header.build_ids,
        module_text: header.module_text,
        epochs: parts.epochs,
        threads: processes.threads,
        process_names: processes.names,
        programs,
        kcore,
        kallsyms,
    };
    Ok(Capture {
        path: path.to_owned(),
        buffers,
        other_sources: Vec::new(),
        images: Vec::new(),
        timestamp_frequency: None,
        dump: None,
        notes: Vec::new(),
        unused: Vec::new(),
        recorded: Some(std::sync::Arc::new(recorded)),
    })
}

/// The programs that parts are decoded with, and their names if there are several.
fn programs(parts: &Parts) -> Vec<(ProgramOf, Option<String>)> {
    let mut programs = Vec::new();
    for group in parts.groups.keys() {
        let program = ProgramOf { epoch: group.epoch, process: group.process };
        if !programs.contains(&program) {
            programs.push(program);
        }
    }
    let has_several = programs.len() > 1;
    let has_epochs = programs.iter().any(|program| program.epoch > 0);
    let named = |program: ProgramOf| {
        let process = program.process.map(|process| format!("process {process}"));
        let epoch = has_epochs.then(|| format!("mappings {}", program.epoch + 1));
        let words = process.into_iter().chain(epoch).collect::<Vec<_>>();
        (program, has_several.then(|| words.join(", ")))
    };
    programs.into_iter().map(named).collect()
}

/// The buffer of a group.
fn buffer(
    path: &Path,
    (bytes, ranges): (&Bytes, Vec<std::ops::Range<usize>>),
    group: &Group,
    core: Option<String>,
    units: &Units,
    records: &Records,
) -> Buffer {
    let (container, sources) = match group.packing {
        Packing::Raw(cpu) => {
            let unit = units.of_cpu(cpu).or(units.units.first());
            (Container::Raw, unit.map(|unit| unit.source(None, core, path)).into_iter().collect())
        }
        Packing::Frames(sink) => {
            let ids = parts::ids(units, &records.hardware_ids, sink);
            let source = |(cpu, id)| Some(units.of_cpu(cpu)?.source(Some(id), core.clone(), path));
            (Container::Frames, ids.into_iter().filter_map(source).collect())
        }
    };
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    Buffer {
        name: tracewalk::plain::plain(name).into_owned(),
        file: path.to_owned(),
        bytes: bytes.clone(),
        parts: Some(ranges.into()),
        container: Some(Stated::new(container, Origin::file(path))),
        frame_start: None,
        sources,
        blocks: Blocks::None,
        arrangement: Arrangement::default(),
        wires: None,
        origin: Origin::file(path),
    }
}
