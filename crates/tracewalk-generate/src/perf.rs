//! Trace, mappings and processes → a perf.data file, as Linux' perf writes it.
//!
//! The kernel writes records one after the other. Trace is in buffers; records state which part of a buffer
//! was taken when. This module writes exactly what the caller passes, in that order, and derives nothing: the
//! caller is responsible for its truth.
//!
//! ```
//! use tracewalk_generate::perf::{Place, Recording, Unit};
//!
//! let unit = Unit::etmv4(0, 0x10, [1, 0x2800_0ea1, 0x4100_f422, 0x2000_1088, 0]);
//! let mut recording = Recording::new(0, vec![unit]);
//! let place = Place { pid: 7, tid: 7, time: 1, cpu: 0 };
//! recording.mapped(place, 0x40_0000, 0x1000, 0, "/bin/program");
//! recording.aux(place, 0, 4, 0);
//! recording.buffer(place, 0, b"\0\0\0\0");
//! assert!(recording.file().starts_with(b"PERFILE2"));
//! ```

/// A recording that is being made.
#[derive(Clone, Debug)]
pub struct Recording {
    config: u64,
    version: u64,
    units: Vec<Unit>,
    records: Vec<u8>,
}

/// Where and when the kernel made a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// In nanoseconds.
    pub time: u64,
    /// The processor.
    pub cpu: u32,
}

/// The description of a CPU's trace unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    magic: u64,
    cpu: u64,
    registers: Vec<u64>,
}

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A file with a table of events.
    File,
    /// The output of perf to a pipe: events are records.
    Pipe,
}

/// `PERF_AUX_FLAG_OVERWRITE`: a part of a snapshot.
pub const SNAPSHOT: u64 = 0x2;
/// `PERF_AUX_FLAG_CORESIGHT_FORMAT_RAW`: one CPU's bytes, not in frames.
pub const RAW: u64 = 0x100;

/// The event type of CoreSight trace in these files.
const PMU: u32 = 8;
/// `IP | TID | TIME | CPU | IDENTIFIER`.
const SAMPLE_TYPE: u64 = 0x1 | 0x2 | 0x4 | 0x80 | 0x1_0000;
/// `attr.size` of perf 5.
const ATTR_SIZE: u32 = 112;
/// `sample_id_all`.
const HAS_TRAILERS: u64 = 1 << 18;
/// The ID of the only event.
const EVENT: u64 = 1;

const ETMV3: u64 = 0x3030_3030_3030_3030;
const ETMV4: u64 = 0x4040_4040_4040_4040;
const ETE: u64 = 0x5050_5050_5050_5050;

/// `PERF_RECORD_*`.
const MMAP: u32 = 1;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const MMAP2: u32 = 10;
const AUX: u32 = 11;
const HARDWARE_ID: u32 = 21;
const HEADER_ATTR: u32 = 64;
const AUXTRACE_INFO: u32 = 70;
const AUXTRACE: u32 = 71;
const COMPRESSED: u32 = 81;

impl Unit {
    /// An ETMv3 or a PTM, with ETMCR, ETMCCER and ETMIDR.
    #[must_use]
    pub fn etmv3(cpu: u64, id: u8, [etmcr, etmccer, etmidr]: [u32; 3]) -> Self {
        let registers = vec![etmcr.into(), id.into(), etmccer.into(), etmidr.into()];
        Self { magic: ETMV3, cpu, registers }
    }

    /// An ETMv4, with TRCCONFIGR and TRCIDR0, 1, 2 and 8.
    #[must_use]
    pub fn etmv4(cpu: u64, id: u8, registers: [u32; 5]) -> Self {
        const AUTHENTICATION: u64 = 0xcc;
        let [configr, others @ ..] = registers.map(u64::from);
        let registers = [configr, id.into()].into_iter().chain(others).chain([AUTHENTICATION]).collect();
        Self { magic: ETMV4, cpu, registers }
    }

    /// Adds TRCDEVARCH, which states whether the unit is an ETE.
    #[must_use]
    pub fn with_devarch(mut self, devarch: u32) -> Self {
        self.magic = ETE;
        self.registers.push(devarch.into());
        self
    }

    fn words(&self, version: u64) -> Vec<u64> {
        let count = (version > 0).then_some(self.registers.len() as u64);
        let all = [self.magic, self.cpu].into_iter().chain(count).chain(self.registers.iter().copied());
        all.collect()
    }
}

impl Recording {
    /// A recording of these units; `config` holds the user's options.
    #[must_use]
    pub fn new(config: u64, units: Vec<Unit>) -> Self {
        Self { config, version: 1, units, records: Vec::new() }
    }

    /// A mapping of a file's code from `offset` on.
    pub fn mapped(&mut self, at: Place, start: u64, length: u64, offset: u64, name: &str) {
        const READ_AND_EXECUTE: u32 = 5;
        const PRIVATE: u32 = 2;
        const USER: u16 = 2;
        let body = [
            halves(&[at.pid, at.tid]),
            words(&[start, length, offset, 0, 0, 0]),
            halves(&[READ_AND_EXECUTE, PRIVATE]),
            padded(name),
        ];
        self.kernel(MMAP2, USER, &body.concat(), at);
    }

    /// A mapping of the kernel itself or of a module.
    pub fn kernel_mapped(&mut self, at: Place, start: u64, length: u64, offset: u64, name: &str) {
        const KERNEL: u16 = 1;
        let body = [halves(&[u32::MAX, 0]), words(&[start, length, offset]), padded(name)];
        self.kernel(MMAP, KERNEL, &body.concat(), at);
    }

    /// Names a thread. `exec` means that the process began another program.
    pub fn named(&mut self, at: Place, name: &str, exec: bool) {
        let body = [halves(&[at.pid, at.tid]), padded(name)].concat();
        self.kernel(COMM, u16::from(exec) << 13, &body, at);
    }

    /// The place's process created another process or thread with this process and thread ID.
    pub fn forked(&mut self, at: Place, (pid, tid): (u32, u32)) {
        let body = [halves(&[pid, at.pid, tid, at.tid]), words(&[at.time])].concat();
        self.kernel(FORK, 0, &body, at);
    }

    /// The place's thread ended.
    pub fn ended(&mut self, at: Place) {
        let body = [halves(&[at.pid, at.pid, at.tid, at.tid]), words(&[at.time])].concat();
        self.kernel(EXIT, 0, &body, at);
    }

    /// The trace ID of the place's CPU at a sink (form 0.1), or at all of them (form 0.0).
    pub fn hardware_id(&mut self, at: Place, id: u8, sink: Option<u32>) {
        let sink = sink.map_or(0, |sink| 1 << 56 | u64::from(sink) << 8);
        self.kernel(HARDWARE_ID, 0, &words(&[sink | u64::from(id)]), at);
    }

    /// Trace was taken from the place's ring: `size` bytes from `offset` on, or for a [`SNAPSHOT`] before
    /// `offset`.
    pub fn aux(&mut self, at: Place, offset: u64, size: u64, flags: u64) {
        self.kernel(AUX, 0, &words(&[offset, size, flags]), at);
    }

    /// Bytes of the ring of the place's CPU, from `offset` on.
    pub fn buffer(&mut self, at: Place, offset: u64, bytes: &[u8]) {
        let room = bytes.len().next_multiple_of(8);
        let body = [words(&[room as u64, offset, 0]), halves(&[0, at.tid, at.cpu, 0])].concat();
        record(&mut self.records, AUXTRACE, 0, &body);
        self.records.extend(bytes);
        self.records.resize(self.records.len() + room - bytes.len(), 0);
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> Vec<u8> {
        self.in_form(Form::File, &[self.units_record(), self.records.clone()].concat())
    }

    /// The output of perf to a pipe.
    #[must_use]
    pub fn pipe(&self) -> Vec<u8> {
        self.in_form(Form::Pipe, &[self.units_record(), self.records.clone()].concat())
    }

    /// The file with its records compressed; each compressed record holds at most `piece` bytes of the output
    /// of `compress`.
    #[must_use]
    pub fn compressed(&self, piece: usize, compress: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
        let packed = compress(&[self.units_record(), self.records.clone()].concat());
        self.in_form(Form::File, &in_pieces(&packed, piece))
    }

    /// The records alone, without the description of the units, as each of perf's threads writes them to a
    /// file of its own.
    #[must_use]
    pub fn records(&self) -> &[u8] {
        &self.records
    }

    /// The records alone, compressed as by [`Recording::compressed`].
    #[must_use]
    pub fn compressed_records(&self, piece: usize, compress: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
        in_pieces(&compress(&self.records), piece)
    }

    fn in_form(&self, form: Form, records: &[u8]) -> Vec<u8> {
        const FILE_HEADER: u64 = 104;
        const PIPE_HEADER: u64 = 16;
        let mut file = b"PERFILE2".to_vec();
        match form {
            Form::File => {
                // The ID of the event, its description, then the records.
                let entry = [self.event(), words(&[FILE_HEADER, 8])].concat();
                let attrs = FILE_HEADER + 8;
                let size = entry.len() as u64;
                file.extend(words(&[FILE_HEADER, size, attrs, size, attrs + size, records.len() as u64]));
                file.resize(usize::try_from(FILE_HEADER).unwrap_or_default(), 0);
                file.extend(words(&[EVENT]));
                file.extend(entry);
            }
            Form::Pipe => {
                file.extend(words(&[PIPE_HEADER]));
                record(&mut file, HEADER_ATTR, 0, &[self.event(), words(&[EVENT])].concat());
            }
        }
        file.extend(records);
        file
    }

    fn event(&self) -> Vec<u8> {
        const READ_FORMAT: u64 = 4;
        let attr =
            [halves(&[PMU, ATTR_SIZE]), words(&[self.config, 1, SAMPLE_TYPE, READ_FORMAT, HAS_TRAILERS])];
        let mut attr = attr.concat();
        attr.resize(ATTR_SIZE as usize, 0);
        attr
    }

    fn units_record(&self) -> Vec<u8> {
        const CORESIGHT: u32 = 3;
        let mut all = vec![self.version, u64::from(PMU) << 32 | self.units.len() as u64, 0];
        all.extend(self.units.iter().flat_map(|unit| unit.words(self.version)));
        let mut bytes = Vec::new();
        record(&mut bytes, AUXTRACE_INFO, 0, &[halves(&[CORESIGHT, 0]), words(&all)].concat());
        bytes
    }

    /// A record that the kernel writes; a trailer states where and when.
    fn kernel(&mut self, kind: u32, misc: u16, body: &[u8], at: Place) {
        let trailer = [halves(&[at.pid, at.tid]), words(&[at.time]), halves(&[at.cpu, 0]), words(&[EVENT])];
        record(&mut self.records, kind, misc, &[body, &trailer.concat()].concat());
    }
}

/// Compressed records of a fixed number of bytes each.
fn in_pieces(packed: &[u8], piece: usize) -> Vec<u8> {
    let mut records = Vec::new();
    for piece in packed.chunks(piece.clamp(1, usize::from(u16::MAX) - 8)) {
        record(&mut records, COMPRESSED, 0, piece);
    }
    records
}

/// Appends a record. A record has at most 64 KiB, which callers do not exceed.
fn record(records: &mut Vec<u8>, kind: u32, misc: u16, body: &[u8]) {
    let size = u16::try_from(8 + body.len()).unwrap_or(u16::MAX);
    records.extend(kind.to_le_bytes());
    records.extend(misc.to_le_bytes());
    records.extend(size.to_le_bytes());
    records.extend(body);
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn halves(halves: &[u32]) -> Vec<u8> {
    halves.iter().flat_map(|half| half.to_le_bytes()).collect()
}

/// A name with a terminating zero, padded to a multiple of eight bytes.
fn padded(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize((name.len() / 8 + 1) * 8, 0);
    bytes
}
