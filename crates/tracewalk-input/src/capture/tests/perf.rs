//! Synthetic perf.data files, each with one feature that no file of the corpus has.

use std::path::PathBuf;

use tracewalk::program::Scope;

use super::*;
use crate::capture::perf::{BinaryPlaces, ContextTrace, PerfProblem, Recorded};

/// `IP | TID | TIME | CPU | IDENTIFIER`.
const SAMPLE: u64 = 0x1 | 0x2 | 0x4 | 0x80 | 0x1_0000;
const PMU: u32 = 8;
const CONTEXT_ID: u64 = 1 << 14;

/// A file under construction.
#[derive(Default)]
struct Perf {
    config: u64,
    units: Vec<u64>,
    cpus: u64,
    version: u64,
    records: Vec<u8>,
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn halves(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut record = kind.to_le_bytes().to_vec();
    record.extend(misc.to_le_bytes());
    record.extend(u16::try_from(8 + body.len()).unwrap().to_le_bytes());
    record.extend(body);
    record
}

fn padded(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize((name.len() / 8 + 1) * 8, 0);
    bytes
}

impl Perf {
    fn new(config: u64) -> Self {
        Self { config, version: 1, ..Self::default() }
    }

    fn etmv4(mut self, cpu: u64, id: u64) -> Self {
        let count = (self.version > 0).then_some(7);
        self.units.extend([0x4040_4040_4040_4040, cpu].into_iter().chain(count));
        self.units.extend([0xc1, id, 0x2800_0ea1, 0x4100_f422, 0x2000_1088, 0, 0xcc]);
        self.cpus += 1;
        self
    }

    /// Clears the tracing of context IDs and VMIDs in the units' settings.
    fn without_contexts(mut self) -> Self {
        self.units.iter_mut().filter(|word| **word == 0xc1).for_each(|configr| *configr = 1);
        self
    }

    /// Adds a record of the kernel.
    fn kernel(mut self, kind: u32, misc: u16, body: &[u8], (tid, time, cpu): (u32, u64, u32)) -> Self {
        let trailer = [halves(&[tid, tid]), words(&[time]), halves(&[cpu, 0]), words(&[1])].concat();
        self.records.extend(record(kind, misc, &[body, &trailer].concat()));
        self
    }

    fn mapped(self, pid: u32, time: u64, start: u64, length: u64, name: &str) -> Self {
        let body =
            [halves(&[pid, pid]), words(&[start, length, 0]), vec![0; 24], halves(&[5, 2]), padded(name)];
        self.kernel(10, 2, &body.concat(), (pid, time, 0))
    }

    fn named(self, pid: u32, tid: u32, time: u64, name: &str, exec: bool) -> Self {
        let body = [halves(&[pid, tid]), padded(name)].concat();
        self.kernel(3, if exec { 1 << 13 } else { 0 }, &body, (tid, time, 0))
    }

    fn forked(self, pid: u32, parent: u32, tid: u32, time: u64) -> Self {
        let body = [halves(&[pid, parent, tid, parent]), words(&[time])].concat();
        self.kernel(7, 0, &body, (parent, time, 0))
    }

    fn aux(self, (offset, size, flags): (u64, u64, u64), (tid, time, cpu): (u32, u64, u32)) -> Self {
        self.kernel(11, 0, &words(&[offset, size, flags]), (tid, time, cpu))
    }

    fn hardware_id(self, cpu: u32, payload: u64) -> Self {
        self.kernel(21, 0, &words(&[payload]), (0, 0, cpu))
    }

    fn trace(mut self, offset: u64, (tid, cpu): (u32, u32), bytes: &[u8]) -> Self {
        let body = [words(&[bytes.len() as u64, offset, 0]), halves(&[0, tid, cpu, 0])].concat();
        self.records.extend(record(71, 0, &body));
        self.records.extend(bytes);
        self
    }

    fn info(&self) -> Vec<u8> {
        let words = words(&[&[self.version, u64::from(PMU) << 32 | self.cpus, 0], &self.units[..]].concat());
        record(70, 0, &[halves(&[3, 0]), words].concat())
    }

    fn attr(&self, size: usize) -> Vec<u8> {
        let all = [0; 8].map(|_| 0_u8);
        let mut attr =
            [halves(&[PMU, u32::try_from(size).unwrap()]), words(&[self.config, 1, SAMPLE, 4])].concat();
        attr.extend(words(&[1 << 18]));
        attr.extend(all);
        attr.resize(size, 0);
        attr
    }

    /// The file, with event descriptions of this size.
    fn file(&self, attr: usize) -> Vec<u8> {
        let entry = [self.attr(attr), words(&[104, 8])].concat();
        let data = [self.info(), self.records.clone()].concat();
        let (attrs, start) = (112, 112 + entry.len() as u64);
        let mut file = b"PERFILE2".to_vec();
        file.extend(words(&[104, entry.len() as u64, attrs, entry.len() as u64, start, data.len() as u64]));
        file.resize(104, 0);
        file.extend(words(&[1]));
        file.extend(entry);
        file.extend(data);
        file
    }

    fn pipe(&self) -> Vec<u8> {
        let attr = [self.attr(112), words(&[1])].concat();
        [b"PERFILE2".to_vec(), words(&[16]), record(64, 0, &attr), self.info(), self.records.clone()].concat()
    }

    fn open(&self) -> Capture {
        open(&self.file(136)).unwrap()
    }
}

fn open(file: &[u8]) -> Result<Capture, PerfProblem> {
    let opened = Capture::read_from("perf.data".as_ref(), file, &WireOptions::default());
    opened.map_err(|error| match error.kind {
        CaptureErrorKind::Perf(problem) => problem,
        other => panic!("{other:?}"),
    })
}

/// The name of the program that each buffer is decoded with, and the bytes of the buffer's trace.
fn parts(capture: &Capture) -> Vec<(Option<String>, Vec<Vec<u8>>)> {
    let buffer = |buffer: &Buffer| {
        let parts = buffer.parts.iter().flat_map(|parts| parts.iter());
        let bytes = parts.map(|part| buffer.bytes[part.clone()].to_vec()).collect();
        (buffer.sources.first().and_then(|source| source.core.clone()), bytes)
    };
    capture.buffers.iter().map(buffer).collect()
}

fn recorded(capture: &Capture) -> &Recorded {
    capture.recorded.as_deref().unwrap()
}

fn ids(buffer: &Buffer) -> Vec<(String, u8)> {
    let id = |source: &SourceDescription| (source.name.clone().unwrap(), source.id.unwrap().get());
    buffer.sources.iter().map(id).collect()
}

#[test]
fn each_aux_record_is_a_part_of_its_own_in_the_order_of_time() {
    let perf = Perf::new(CONTEXT_ID)
        .etmv4(0, 0x10)
        .etmv4(1, 0x12)
        .aux((8, 8, 0), (7, 300, 0))
        .aux((0, 8, 0), (7, 100, 0))
        .aux((0, 4, 1), (7, 200, 1))
        .aux((16, 0, 0), (7, 400, 0))
        .aux((64, 16, 4), (7, 500, 0))
        .trace(0, (7, 0), b"0123456789abcdef")
        .trace(0, (7, 1), b"wxyz____");
    for file in [perf.file(64), perf.file(112), perf.file(136), perf.pipe()] {
        let capture = open(&file).unwrap();
        let expected = [b"01234567".to_vec(), b"wxyz".to_vec(), b"89abcdef".to_vec()];
        assert_eq!(parts(&capture), [(None, expected.to_vec())]);
        let counts = recorded(&capture).trace;
        assert_eq!((counts.records, counts.empty, counts.bytes), (5, 1, 20));
        assert_eq!((counts.truncated, counts.partial, counts.missing, counts.missing_bytes), (1, 1, 1, 16));
        assert_eq!(recorded(&capture).contexts, ContextTrace::ContextId);
        let named = ["CPU 0", "CPU 1"].map(str::to_owned).into_iter().zip([0x10, 0x12]);
        assert_eq!(ids(&capture.buffers[0]), named.collect::<Vec<_>>());
    }
}

#[test]
fn raw_trace_is_a_buffer_for_each_cpu() {
    let perf = Perf::new(0)
        .etmv4(0, 0)
        .etmv4(1, 0)
        .aux((0, 4, 0x100), (7, 1, 0))
        .aux((0, 4, 0x100), (7, 2, 1))
        .trace(0, (7, 0), b"zero")
        .trace(0, (7, 1), b"one!");
    let capture = perf.open();
    let found = capture.buffers.iter().map(|buffer| {
        let container = buffer.container.as_ref().unwrap().value;
        (container, buffer.sources.len(), buffer.sources[0].name.clone().unwrap())
    });
    let expected = ["CPU 0", "CPU 1"].map(|name| (Container::Raw, 1, name.to_owned()));
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!(parts(&capture), [(None, vec![b"zero".to_vec()]), (None, vec![b"one!".to_vec()])]);
}

#[test]
fn the_first_version_has_no_number_of_fields() {
    let mut perf = Perf::new(0);
    perf.version = 0;
    let perf = perf.etmv4(3, 0x16).etmv4(5, 0x1a).aux((0, 4, 0), (7, 1, 3)).trace(0, (7, 3), b"zero");
    let expected = ["CPU 3", "CPU 5"].map(str::to_owned).into_iter().zip([0x16, 0x1a]);
    assert_eq!(ids(&perf.open().buffers[0]), expected.collect::<Vec<_>>());
}

#[test]
fn a_sink_has_ids_of_its_own() {
    let form = 1_u64 << 56;
    let unused = 1 << 31;
    let perf = Perf::new(0)
        .etmv4(0, 0x10 | unused)
        .etmv4(1, 0x12 | unused)
        .etmv4(2, 0x14 | unused)
        .aux((0, 4, 0), (7, 1, 0))
        .aux((0, 4, 0), (7, 2, 2))
        .trace(0, (7, 0), b"zero")
        .trace(0, (7, 2), b"two!")
        .hardware_id(0, form | 0xaa << 8 | 0x21)
        .hardware_id(1, form | 0xaa << 8 | 0x22)
        .hardware_id(2, form | 0xbb << 8 | 0x21);
    let capture = perf.open();
    let of = |index: usize| ids(&capture.buffers[index]);
    assert_eq!(of(0), [("CPU 0".to_owned(), 0x21), ("CPU 1".to_owned(), 0x22)]);
    assert_eq!(of(1), [("CPU 2".to_owned(), 0x21)]);
    let later = Perf::new(0).etmv4(0, 0x10).hardware_id(0, 1 << 60);
    assert_eq!(open(&later.file(112)).unwrap_err(), PerfProblem::HardwareId { major: 1 });
}

#[test]
fn a_snapshot_ends_at_its_offset() {
    let perf = Perf::new(0).etmv4(0, 0x10).aux((1024, 16, 2), (7, 1, 0)).trace(1016, (7, 0), b"89abcdef");
    assert_eq!(parts(&perf.open()), [(None, vec![b"89abcdef".to_vec()])]);
}

/// The images of a file's programs: the cores, the name, the address, and the scope.
fn images(capture: &Capture, root: &TemporaryDirectory) -> Vec<(Vec<String>, String, u64, Scope)> {
    let places = BinaryPlaces { symfs: Some(root.path().to_owned()), ..BinaryPlaces::default() };
    let images = recorded(capture).images(&places).unwrap().images;
    let image = |image: ImageRequest| {
        let ImageKind::Raw { address, .. } = image.kind else { panic!("{image:?}") };
        let name = image.file.file_name().unwrap().to_string_lossy().into_owned();
        (image.cores, name, address.get(), image.scope)
    };
    images.into_iter().map(image).collect()
}

fn root() -> TemporaryDirectory {
    let root = TemporaryDirectory::new();
    for name in ["old", "new", "lib"] {
        root.write(&format!("bin/{name}"), &[0; 0x100]);
    }
    root
}

#[test]
fn forks_have_what_their_parents_had_and_threads_what_their_processes_have() {
    let root = root();
    let context = |id: u32| Scope::context(tracewalk::ids::ContextId(id));
    let perf = Perf::new(CONTEXT_ID)
        .etmv4(0, 0x10)
        .mapped(10, 0, 0x1000, 0x1000, "/bin/old")
        .forked(20, 10, 20, 5)
        .forked(10, 10, 11, 6)
        .mapped(20, 7, 0x8000, 0x1000, "/bin/lib")
        .aux((0, 4, 0), (10, 9, 0))
        .trace(0, (10, 0), b"zero");
    let none = Vec::new;
    assert_eq!(
        images(&perf.open(), &root),
        [
            (none(), "old".to_owned(), 0x1000, context(10)),
            (none(), "old".to_owned(), 0x1000, context(11)),
            (none(), "old".to_owned(), 0x1000, context(20)),
            (none(), "lib".to_owned(), 0x8000, context(20)),
        ]
    );
}

#[test]
fn another_program_at_the_same_address_is_another_program_from_then_on() {
    let root = root();
    let perf = Perf::new(CONTEXT_ID)
        .etmv4(0, 0x10)
        .mapped(10, 0, 0x1000, 0x1000, "/bin/old")
        .aux((0, 4, 0), (10, 10, 0))
        .named(10, 10, 15, "new", true)
        .mapped(10, 16, 0x1000, 0x1000, "/bin/new")
        // Repeating the mapping changes nothing.
        .mapped(10, 17, 0x1000, 0x1000, "/bin/new")
        .aux((4, 4, 0), (10, 20, 0))
        .aux((8, 4, 0), (10, 30, 0))
        .trace(0, (10, 0), b"old_new_more");
    let capture = perf.open();
    let core = |number: u8| format!("mappings {number}");
    assert_eq!(
        parts(&capture),
        [(Some(core(1)), vec![b"old_".to_vec()]), (Some(core(2)), vec![b"new_".to_vec(), b"more".to_vec()]),]
    );
    let image = |number, name: &str| (vec![core(number)], name.to_owned(), 0x1000, Scope::EVERYWHERE);
    assert_eq!(images(&capture, &root), [image(1, "old"), image(2, "new")]);
}

#[test]
fn without_contexts_a_part_is_its_thread_s() {
    let root = root();
    let perf = Perf::new(0)
        .etmv4(0, 0x10)
        .without_contexts()
        .mapped(10, 0, 0x1000, 0x1000, "/bin/old")
        .mapped(20, 0, 0x1000, 0x1000, "/bin/new")
        .forked(20, 20, 21, 1)
        .aux((0, 4, 0), (10, 10, 0))
        .aux((4, 4, 0), (21, 20, 0))
        .trace(0, (10, 0), b"ten_two_");
    let capture = perf.open();
    let core = |number: u8| format!("process {number}");
    let expected = [(Some(core(10)), vec![b"ten_".to_vec()]), (Some(core(20)), vec![b"two_".to_vec()])];
    assert_eq!(parts(&capture), expected);
    let found = images(&capture, &root);
    let found = found.into_iter().map(|(cores, name, ..)| (cores, name)).collect::<Vec<_>>();
    assert_eq!(found, [(vec![core(10)], "old".to_owned()), (vec![core(20)], "new".to_owned())]);
}

#[test]
fn compressed_records_are_read_wherever_their_stream_is_cut() {
    let plain = Perf::new(CONTEXT_ID)
        .etmv4(0, 0x10)
        .mapped(10, 0, 0x1000, 0x1000, "/bin/old")
        .aux((0, 8, 0), (10, 10, 0))
        .trace(0, (10, 0), b"01234567");
    let packed = ruzstd::encoding::compress_to_vec(
        [plain.info(), plain.records.clone()].concat().as_slice(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    for cut in [1, packed.len() / 2, packed.len()] {
        let (one, other) = packed.split_at(cut);
        let mut records = record(81, 0, one);
        records.extend(record(81, 0, other));
        let outer = Perf { records, ..Perf::new(CONTEXT_ID) };
        let file = outer.file(112);
        // Without the outer description of units, which is empty.
        let info = outer.info();
        let at = file.windows(info.len()).position(|window| window == info).unwrap();
        let mut file = file;
        file[at..at + 4].copy_from_slice(&68_u32.to_le_bytes());
        let capture = open(&file).unwrap();
        assert_eq!(parts(&capture), parts(&plain.open()));
        assert_eq!(recorded(&capture).processes().count(), 1);
    }
    let broken = Perf { records: record(81, 0, b"no zstd"), ..Perf::new(0) };
    assert!(matches!(open(&broken.file(112)), Err(PerfProblem::Compressed { .. })));
}

#[test]
fn a_recording_may_be_a_directory() {
    let folder = TemporaryDirectory::new();
    let perf = Perf::new(0).etmv4(0, 0x10).aux((0, 4, 0), (7, 1, 0)).trace(0, (7, 0), b"zero");
    folder.write("perf.data/data", &perf.file(112));
    let path: PathBuf = folder.path().join("perf.data");
    assert_eq!(Capture::format(&path).name, "a perf.data file");
    assert_eq!(parts(&Capture::open(&path).unwrap()), [(None, vec![b"zero".to_vec()])]);
}

#[test]
fn what_cannot_be_is_refused_or_left_out() {
    assert_eq!(open(b"2ELIFREP\0\0\0\0").unwrap_err(), PerfProblem::BigEndian);
    assert!(matches!(open(b"PERFILE2"), Err(PerfProblem::Header { .. })));
    let perf = Perf::new(0).etmv4(0, 0x10).aux((0, u64::MAX, 0), (7, 1, 0)).aux((u64::MAX, 4, 0), (7, 2, 0));
    let file = perf.trace(u64::MAX - 1, (7, 0), b"zero").file(112);
    // A shorter file does not show that it is a perf.data file.
    for end in b"PERFILE2".len()..file.len() {
        if let Ok(capture) = open(&file[..end]) {
            for buffer in &capture.buffers {
                let parts = buffer.parts.iter().flat_map(|parts| parts.iter());
                parts.for_each(|part| assert!(part.end <= buffer.bytes.len()));
            }
        }
    }
    let spe = Perf::new(0);
    let mut file = spe.file(112);
    let info = spe.info();
    let at = file.windows(info.len()).position(|window| window == info).unwrap();
    file[at + 8] = 4;
    assert_eq!(open(&file).unwrap_err(), PerfProblem::NoCoreSight { kind: Some(4) });
}

#[test]
fn lists_of_branches_are_refused_by_name() {
    let recorded = Perf::new(CONTEXT_ID).etmv4(0, 0x10);
    // As a feature: its number is its bit in the header, and its location follows the records.
    let mut feature = recorded.file(112);
    feature[72 + 133 / 8] |= 1 << (133 % 8);
    let at = feature.len() as u64 + 16;
    feature.extend(words(&[at, 4]));
    feature.extend(b"list");
    assert_eq!(open(&feature).unwrap_err(), PerfProblem::BranchList);
    let mut pipe = recorded.pipe();
    pipe.extend(record(80, 0, &[words(&[133]), b"list____".to_vec()].concat()));
    assert_eq!(open(&pipe).unwrap_err(), PerfProblem::BranchList);
    // As separate files: since 2024 with a version and length-prefixed messages, earlier as a single message.
    let name = b"simpleperf:EtmBranchList";
    let versions = [[&name[..], &[1, 0, 0, 0, 0]].concat(), [&[0x0a, 24], &name[..], &[0x12, 0]].concat()];
    for file in versions {
        assert_eq!(open(&file).unwrap_err(), PerfProblem::BranchList);
    }
}

#[test]
fn more_mappings_than_any_recording_has_are_refused() {
    let mut perf = Perf::new(0).etmv4(0, 0x10);
    let one = Perf::new(0).mapped(1, 0, 0x1000, 0x1000, "/bin/old").records;
    perf.records = one.repeat((1 << 20) + 1);
    assert!(matches!(open(&perf.file(112)), Err(PerfProblem::TooMany { .. })));
}
