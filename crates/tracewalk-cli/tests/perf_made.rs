//! Generated perf.data files with features that no file of the corpus has: the command finds the execution.

#[path = "perf_made/kernel.rs"]
mod kernel;
#[path = "perf_made/page.rs"]
mod page;
#[path = "perf_made/places.rs"]
mod places;

use std::num::NonZeroU32;
use std::path::Path as FilePath;

use crate::support::{assert_same_runs, comparable, run, run_with_notices};
use tracewalk::frame::FormatterOptions;
use tracewalk::ids::{Address, ContextId, Profile, TraceId, Vmid};
use tracewalk::program::Program;
use tracewalk::protocol::{etmv3 as etmv3_protocol, etmv4 as etmv4_protocol, pft as pft_protocol};
use tracewalk_generate::container::{SourceBytes, frames};
use tracewalk_generate::path::{Path, Step};
use tracewalk_generate::perf::{Place, RAW, Recording, SNAPSHOT, Unit};
use tracewalk_generate::record::Record;
use tracewalk_generate::{etmv3, etmv4, pft};

/// A program at [`CODE`], and the record of one turn of it.
#[derive(Clone, Copy)]
struct Code {
    name: &'static str,
    words: &'static [u32],
    turn: &'static str,
}

const CODE: u64 = 0x8000;

impl Code {
    /// The program, and this many turns of it in a context.
    fn path(self, context: u32, turns: usize) -> (Program, Path) {
        let mut program = Program::new();
        program.add(Address::new(CODE), &bytes(self.words)).unwrap();
        let record = format!("# tracewalk record 1\nP ar\n{}", self.turn.repeat(turns));
        let mut path = Path::expand(&Record::parse(&record).unwrap(), &program).unwrap();
        path.steps.insert(0, Step::ContextId(ContextId(context)));
        (program, path)
    }
}

const SPIN: Code = Code {
    name: "/bin/spin",
    words: &[
        0xe250_0001, // subs r0, r0, #1
        0x1aff_fffd, // bne 8000
        0xe12f_ff12, // bx r2
    ],
    turn: "R 8000 8008 a32\nR 8000 800c a32 !8004\n",
};
const WANDER: Code = Code {
    name: "/bin/wander",
    words: &[
        0xe1a0_0000, // nop
        0xea00_0001, // b 8010
        0xe1a0_0000,
        0xe1a0_0000,
        0xe12f_ff12, // bx r2
    ],
    turn: "R 8000 8008 a32\nR 8010 8014 a32\n",
};

/// Trace units, with the registers that decoding depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Etmv3,
    Ptm,
    Etmv4,
    /// The VMID identifies the process: its kernel is its own hypervisor.
    Vmid,
    Ete,
}

/// ETMCR: 32-bit context IDs.
const CONTEXT_IDS: u32 = 0b11 << 14;
/// ETMCCER and ETMIDR of a Cortex-A7 and a Cortex-A15.
const A7: [u32; 2] = [0x34c0_19c2, 0x410c_f250];
const A15: [u32; 2] = [0x34c0_1ac2, 0x411c_f312];
/// TRCCONFIGR: context IDs; VMIDs that are EL2's context IDs.
const CONTEXT_ID: u32 = 1 << 6;
const EL2_CONTEXT_ID: u32 = 1 << 15 | 1 << 7;
const ETE_1_0: u32 = 0x4770_5a13;
/// The events' own bits for the context IDs.
const CONTEXT_ID_1: u64 = 1 << 14;
const CONTEXT_ID_2: u64 = 1 << 15;

impl Kind {
    /// TRCCONFIGR, TRCIDR0, 1, 2 and 8.
    fn registers(self) -> [u32; 5] {
        match self {
            Self::Ete => [1 | EL2_CONTEXT_ID, 0x2801_cea1, 0x4100_fff0, 0xd000_1088, 0],
            Self::Vmid => [1 | EL2_CONTEXT_ID, 0x2800_0ea1, 0x4100_f420, 0x2000_1088, 0],
            _ => [1 | CONTEXT_ID, 0x2800_0ea1, 0x4100_f403, 0x0000_0488, 0],
        }
    }

    fn unit(self, cpu: u64, id: u8) -> Unit {
        match self {
            Self::Etmv3 => Unit::etmv3(cpu, id, [CONTEXT_IDS, A7[0], A7[1]]),
            Self::Ptm => Unit::etmv3(cpu, id, [CONTEXT_IDS, A15[0], A15[1]]),
            Self::Etmv4 | Self::Vmid => Unit::etmv4(cpu, id, self.registers()),
            Self::Ete => Unit::etmv4(cpu, id, self.registers()).with_devarch(ETE_1_0),
        }
    }

    fn config(self) -> u64 {
        if matches!(self, Self::Vmid | Self::Ete) { CONTEXT_ID_2 } else { CONTEXT_ID_1 }
    }

    /// The bytes of this number of turns of a thread, and their runs.
    fn trace(self, code: Code, thread: u32, turns: usize) -> (Vec<u8>, Vec<String>) {
        let (program, path) = code.path(thread, turns);
        self.trace_of(&path, &program, thread)
    }

    /// The bytes of a thread's path, and its runs.
    fn trace_of(self, path: &Path, program: &Program, thread: u32) -> (Vec<u8>, Vec<String>) {
        let etmcr = Some(CONTEXT_IDS);
        let trace = match self {
            Self::Etmv3 => {
                use etmv3_protocol::{Config, Core, Registers};
                let registers =
                    Registers { etmcr, etmccer: Some(A7[0]), etmidr: Some(A7[1]), ..Registers::default() };
                let config = Config::from_registers(registers, Core::named("cortex-a7")).unwrap();
                let options = etmv3::Options { synchronise_every: Some(200), ..etmv3::Options::default() };
                etmv3::encode(path, program, &config, &options).unwrap()
            }
            Self::Ptm => {
                use pft_protocol::{Config, Core, Registers};
                let registers =
                    Registers { etmcr, etmccer: Some(A15[0]), etmidr: Some(A15[1]), ..Registers::default() };
                let config = Config::from_registers(registers, Core::named("cortex-a15")).unwrap();
                let options = pft::Options { synchronise_every: Some(200), ..pft::Options::default() };
                pft::encode(path, program, &config, &options).unwrap()
            }
            Self::Etmv4 | Self::Vmid | Self::Ete => {
                use etmv4_protocol::{Config, Registers};
                let [configr, idr0, idr1, idr2, idr8] = self.registers().map(Some);
                let registers = Registers {
                    trcconfigr: configr,
                    trcidr0: idr0,
                    trcidr1: idr1,
                    trcidr2: idr2,
                    trcidr8: idr8,
                    trcdevarch: (self == Self::Ete).then_some(ETE_1_0),
                    ..Registers::default()
                };
                let config = Config::from_registers(registers, Some(Profile::Ar)).unwrap();
                let options = etmv4::Options {
                    synchronise_every: Some(200),
                    context_ids: self == Self::Etmv4,
                    vmid: (self != Self::Etmv4).then_some(Vmid(thread)),
                    ..etmv4::Options::default()
                };
                etmv4::encode(path, program, &config, &options).unwrap()
            }
        };
        let runs = Record::of_path(Profile::Ar, &trace.path).runs().to_string();
        (trace.bytes, comparable(&runs))
    }
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn at(thread: u32, time: u64, cpu: u32) -> Place {
    Place { pid: thread, tid: thread, time, cpu }
}

/// A recording, how far each CPU's ring is filled, and the runs in its trace.
struct Machine {
    kind: Kind,
    recording: Recording,
    rings: [u64; 4],
    runs: Vec<String>,
}

/// The trace ID of each CPU.
const IDS: [u8; 4] = [0x10, 0x12, 0x14, 0x16];

impl Machine {
    fn new(kind: Kind) -> Self {
        let units = IDS.iter().zip(0..).map(|(id, cpu)| kind.unit(cpu, *id)).collect();
        Self { kind, recording: Recording::new(kind.config(), units), rings: [0; 4], runs: Vec::new() }
    }

    fn mapped(&mut self, place: Place, code: Code) {
        self.recording.mapped(place, CODE, 0x1000, 0, code.name);
    }

    /// Some turns of a thread, in an AUX record of its own. On Armv7 the context ID in the trace is not the
    /// thread's number.
    fn runs_as(&mut self, place: Place, code: Code, context: u32) {
        let (bytes, runs) = self.kind.trace(code, context, 100);
        let id = TraceId::new(IDS[place.cpu as usize]).unwrap();
        let bytes = frames(&[SourceBytes { id, bytes }], FormatterOptions::default());
        self.taken(place, &bytes, 0);
        self.runs.extend(runs);
    }

    fn runs(&mut self, place: Place, code: Code) {
        self.runs_as(place, code, place.tid);
    }

    fn taken(&mut self, place: Place, bytes: &[u8], flags: u64) {
        let ring = &mut self.rings[place.cpu as usize];
        self.recording.aux(place, *ring, bytes.len() as u64, flags);
        self.recording.buffer(place, *ring, bytes);
        *ring += bytes.len() as u64;
    }

    /// The command's output for the file.
    fn found(&self, file: &[u8]) -> Vec<String> {
        let folder = folder();
        let path = folder.path().join("perf.data");
        std::fs::write(&path, file).unwrap();
        flow(folder.path(), &path)
    }

    fn check(&self, what: &str) {
        eprintln!("{what}");
        assert!(self.runs.len() > 100);
        assert_same_runs(&self.found(&self.recording.file()), &self.runs);
    }
}

/// The traced machine's files.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("root/bin")).unwrap();
    for code in [SPIN, WANDER] {
        std::fs::write(folder.path().join(format!("root{}", code.name)), bytes(code.words)).unwrap();
    }
    folder
}

fn flow(folder: &FilePath, file: &FilePath) -> Vec<String> {
    let root = folder.join("root");
    let arguments = ["flow", file.to_str().unwrap(), "--symfs", root.to_str().unwrap()];
    let outcome = run(arguments.iter().chain(&["--format", "runs", "--quiet"]));
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    // Trace ends there, so the last indirect branch of an AUX record has no known target.
    comparable(&outcome.stdout).into_iter().filter(|line| line != "U").collect()
}

#[test]
fn every_unit_is_followed() {
    for kind in [Kind::Etmv3, Kind::Ptm, Kind::Etmv4, Kind::Vmid, Kind::Ete] {
        let mut machine = Machine::new(kind);
        machine.mapped(at(10, 1, 0), SPIN);
        machine.runs(at(10, 2, 0), SPIN);
        machine.runs(at(10, 3, 0), SPIN);
        machine.check(&format!("{kind:?}"));
    }
}

#[test]
fn a_unit_s_bytes_may_be_in_no_frames() {
    for kind in [Kind::Etmv3, Kind::Ptm, Kind::Etmv4, Kind::Vmid, Kind::Ete] {
        let mut machine = Machine::new(kind);
        machine.mapped(at(10, 1, 0), WANDER);
        for time in [2, 3] {
            // The buffer has bytes without trace after it.
            let (bytes, runs) = kind.trace(WANDER, 10, 101);
            machine.taken(at(10, time, 0), &bytes, RAW);
            machine.runs.extend(runs);
        }
        machine.check(&format!("{kind:?}"));
    }
}

#[test]
fn every_form_of_a_file_says_the_same() {
    let mut machine = Machine::new(Kind::Etmv4);
    machine.mapped(at(10, 1, 0), SPIN);
    machine.mapped(at(20, 1, 0), WANDER);
    for time in 2..12 {
        let (thread, code) = if time % 2 == 0 { (10, SPIN) } else { (20, WANDER) };
        machine.runs(at(thread, time, 0), code);
    }
    machine.check("a file");
    let recording = &machine.recording;
    assert_same_runs(&machine.found(&recording.pipe()), &machine.runs);
    for piece in [1, 1000, 60_000] {
        let compress = |bytes: &[u8]| {
            ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
        };
        assert_same_runs(&machine.found(&recording.compressed(piece, compress)), &machine.runs);
    }
    let folder = folder();
    let directory = folder.path().join("recording");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("data"), recording.file()).unwrap();
    assert_same_runs(&flow(folder.path(), &directory), &machine.runs);
}

#[test]
fn a_snapshot_is_the_end_of_what_ran() {
    for kind in [Kind::Etmv3, Kind::Ptm, Kind::Etmv4] {
        let mut machine = Machine::new(kind);
        machine.mapped(at(10, 1, 0), SPIN);
        let (bytes, runs) = kind.trace(SPIN, 10, 3000);
        let source = SourceBytes { id: TraceId::new(IDS[0]).unwrap(), bytes };
        let options = FormatterOptions { repeat_id_after: NonZeroU32::new(8), ..FormatterOptions::default() };
        let bytes = frames(&[source], options);
        // The ring wrapped often; the record gives the part that is in the buffer.
        let kept = bytes.len() / 2 / 16 * 16;
        let (head, buffer) = (bytes.len() as u64, &bytes[bytes.len() - kept..]);
        machine.recording.aux(at(10, 2, 0), head, 1 << 20, SNAPSHOT);
        machine.recording.buffer(at(10, 2, 0), head - kept as u64, buffer);
        let found = machine.found(&machine.recording.file());
        assert!(
            found.len() > 1000 && found.len() < runs.len(),
            "{kind:?}: {} of {}",
            found.len(),
            runs.len()
        );
        // The first run begins at the trace's synchronisation.
        let expected = &runs[runs.len() - found.len()..];
        assert_same_runs(&found[1..], &expected[1..]);
    }
}

#[test]
fn the_same_id_is_of_another_unit_at_another_sink() {
    // CPU 0 and 1 share a sink, CPU 2 has another.
    let (one, other, shared) = (0x21, 0x22, 0x21);
    let units = [(Kind::Ptm, 0), (Kind::Etmv3, 1), (Kind::Etmv3, 2)].map(|(kind, cpu)| kind.unit(cpu, 0));
    let mut recording = Recording::new(CONTEXT_ID_1, units.to_vec());
    recording.mapped(at(10, 1, 0), CODE, 0x1000, 0, SPIN.name);
    let traces = [(Kind::Ptm, SPIN, one), (Kind::Etmv3, SPIN, other), (Kind::Etmv3, SPIN, shared)];
    let traces = traces.map(|(kind, code, id)| {
        let (bytes, runs) = kind.trace(code, 10, 100 + usize::from(id));
        (SourceBytes { id: TraceId::new(id).unwrap(), bytes }, runs)
    });
    let [a, b, c] = traces;
    for (sources, cpu) in [(vec![a.0, b.0], 0), (vec![c.0], 2)] {
        let bytes = frames(&sources, FormatterOptions::default());
        recording.aux(at(10, 2, cpu), 0, bytes.len() as u64, 0);
        recording.buffer(at(10, 2, cpu), 0, &bytes);
    }
    for (cpu, id, sink) in [(0, one, 0xaa), (1, other, 0xaa), (2, shared, 0xbb)] {
        recording.hardware_id(at(10, 3, cpu), id, Some(sink));
    }
    let runs = [a.1, b.1, c.1].concat();
    let machine = Machine { kind: Kind::Ptm, recording, rings: [0; 4], runs };
    machine.check("two sinks");
}

#[test]
fn forks_threads_and_other_programs_are_distinguished() {
    for kind in [Kind::Etmv4, Kind::Vmid, Kind::Ete] {
        let mut machine = Machine::new(kind);
        machine.mapped(at(10, 1, 0), SPIN);
        machine.runs(at(10, 2, 0), SPIN);
        machine.recording.forked(at(10, 3, 0), (20, 20));
        machine.recording.forked(at(10, 3, 0), (10, 11));
        machine.runs(at(20, 4, 0), SPIN);
        machine.runs(Place { pid: 10, ..at(11, 5, 0) }, SPIN);
        // From here on the child is another program at the same address; the parent and its thread are not.
        machine.recording.named(at(20, 6, 0), "wander", true);
        machine.mapped(at(20, 7, 0), WANDER);
        machine.runs(at(20, 8, 0), WANDER);
        machine.runs(at(10, 9, 0), SPIN);
        machine.runs(Place { pid: 10, ..at(11, 10, 0) }, SPIN);
        machine.recording.ended(at(20, 11, 0));
        machine.runs(at(10, 12, 0), SPIN);
        machine.check(&format!("{kind:?}"));
    }
}

#[test]
fn code_that_was_loaded_where_other_code_was_is_other_code() {
    let mut machine = Machine::new(Kind::Etmv4);
    for (time, code) in [(1, SPIN), (3, WANDER), (5, SPIN)] {
        machine.mapped(at(10, time, 0), code);
        machine.runs(at(10, time + 1, 0), code);
    }
    // The code of kernel modules is unknown, which a notice reports.
    for (time, name) in [(7, "/lib/modules/one.ko"), (8, "[two]")] {
        machine.recording.kernel_mapped(at(0, time, 0), 0xbf00_0000, 0x1000, 0, name);
        machine.runs(at(10, time, 0), SPIN);
    }
    machine.check("libraries");
    let folder = folder();
    let path = folder.path().join("perf.data");
    std::fs::write(&path, machine.recording.file()).unwrap();
    let (_, kinds) = run_with_notices(["info", path.to_str().unwrap()]);
    assert!(kinds.has("modules_left_out"), "{kinds:?}");
}

#[test]
fn on_armv7_the_process_stands_above_an_address_space() {
    for kind in [Kind::Etmv3, Kind::Ptm] {
        let mut machine = Machine::new(kind);
        machine.mapped(at(10, 1, 0), SPIN);
        machine.mapped(at(20, 1, 0), WANDER);
        for (turn, time) in (2..12).enumerate() {
            let (thread, code) = if turn % 2 == 0 { (10, SPIN) } else { (20, WANDER) };
            let address_space = u32::try_from(turn).unwrap() * 7 + 1;
            machine.runs_as(at(thread, time, 0), code, thread << 8 | address_space);
        }
        machine.check(&format!("{kind:?}"));
    }
}

/// A recording of two processes and a thread, and each one's number of instructions.
fn three_threads() -> (Machine, [u64; 3]) {
    let mut machine = Machine::new(Kind::Etmv4);
    machine.recording.named(at(10, 1, 0), "spinner", false);
    machine.mapped(at(10, 1, 0), SPIN);
    machine.recording.forked(at(10, 1, 0), (10, 11));
    machine.recording.named(at(20, 1, 0), "wanderer", false);
    machine.mapped(at(20, 1, 0), WANDER);
    let mut instructions = [0; 3];
    let turns = [(10, 10, SPIN, 0), (10, 11, SPIN, 1), (20, 20, WANDER, 2), (10, 10, SPIN, 0)];
    for ((pid, tid, code, index), time) in turns.into_iter().zip(2..) {
        let from = machine.runs.len();
        machine.runs(Place { pid, ..at(tid, time, 0) }, code);
        let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let length = |run: &String| match *run.split(' ').collect::<Vec<_>>() {
            ["R", start, end, _] => (hex(end) - hex(start)) / 4,
            _ => 0,
        };
        instructions[index] += machine.runs[from..].iter().map(length).sum::<u64>();
    }
    (machine, instructions)
}

#[test]
fn profiles_and_timelines_are_by_process_and_thread() {
    let (machine, instructions) = three_threads();
    let folder = folder();
    let path = folder.path().join("perf.data");
    std::fs::write(&path, machine.recording.file()).unwrap();
    let root = folder.path().join("root");
    let print = |command: &str, format: &str| {
        let common = ["--symfs", root.to_str().unwrap(), "--format", format, "--quiet"];
        let outcome = run([command, path.to_str().unwrap()].iter().chain(&common));
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        outcome.stdout
    };
    let names = ["spinner 10", "spinner 10/11", "wanderer 20"];
    let mut found = [0; 3];
    let folded = print("profile", "folded");
    for line in folded.lines() {
        let (chain, cost) = line.rsplit_once(' ').unwrap();
        let task = chain.split(';').next().unwrap().trim_matches(['[', ']']).to_owned();
        let index = names.iter().position(|name| *name == task).unwrap_or_else(|| panic!("{line}"));
        found[index] += cost.parse::<u64>().unwrap();
    }
    assert_eq!(found, instructions);
    let timeline = print("timeline", "chrome");
    assert!(names.iter().all(|name| timeline.contains(&format!("\"{name}\""))), "{timeline:.2000}");
}

#[test]
fn a_profile_is_by_binary_and_thread() {
    let (machine, [spinner, thread, wanderer]) = three_threads();
    let folder = folder();
    let path = folder.path().join("perf.data");
    std::fs::write(&path, machine.recording.file()).unwrap();
    let root = folder.path().join("root");
    let arguments = ["profile", path.to_str().unwrap(), "--symfs", root.to_str().unwrap()];
    let outcome = run(arguments.iter().chain(&["--table", "binaries", "--format", "csv", "--quiet"]));
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let mut rows = outcome.stdout.lines().map(|line| line.split(',').collect::<Vec<_>>());
    assert_eq!(
        rows.next().unwrap(),
        ["id", "protocol", "source_number", "task", "binary", "self", "self_instructions", "program"]
    );
    let mut found =
        rows.map(|row| (row[3].to_owned(), row[4].to_owned(), row[5].parse().unwrap())).collect::<Vec<_>>();
    found.sort();
    let expected = [
        ("spinner 10", "spin", spinner),
        ("spinner 10/11", "spin", thread),
        ("wanderer 20", "wander", wanderer),
    ];
    let expected = expected.map(|(task, binary, cost)| (task.to_owned(), binary.to_owned(), cost));
    assert_eq!(found, expected);
}

/// Recordings that no kernel writes: more mappings than can be kept, processes that are each other's parents,
/// code that moves again and again. The command ends with a message or with the known part, in little memory.
#[cfg(target_os = "linux")]
#[test]
fn hostile_recordings_take_little_memory() {
    let folder = folder();
    let root = folder.path().join("root");
    let in_little_memory = |file: &[u8]| {
        let path = folder.path().join("hostile.data");
        std::fs::write(&path, file).unwrap();
        // The limits on memory besides the mapped file, in KiB, and on processor time, in seconds.
        let limited = "ulimit -t 60; ulimit -d 262144; exec \"$@\"";
        let command = env!("CARGO_BIN_EXE_tracewalk");
        let output = std::process::Command::new("sh")
            .args(["-c", limited, "sh", command, "flow", path.to_str().unwrap(), "--format", "runs"])
            .args(["--symfs", root.to_str().unwrap()])
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let mut one = Recording::new(CONTEXT_ID_1, vec![Kind::Etmv4.unit(0, 0x10)]);
    let empty = one.file().len();
    one.mapped(at(10, 1, 0), CODE, 0x1000, 0, SPIN.name);
    let record = one.file()[empty..].to_vec();
    let many = 2 << 20;
    let mut file = one.file();
    file.extend(record.repeat(many));
    // The length of the records.
    let length = u64::from_le_bytes(file[48..56].try_into().unwrap()) + (record.len() * many) as u64;
    file[48..56].copy_from_slice(&length.to_le_bytes());
    let (status, stderr) = in_little_memory(&file);
    assert_eq!(status, Some(2), "{stderr}");
    let mut machine = Machine::new(Kind::Etmv4);
    for time in 0..100_000_u32 {
        let (thread, other) = if time % 2 == 0 { (10, 20) } else { (20, 10) };
        let place = at(thread, time.into(), 0);
        machine.recording.mapped(place, CODE + u64::from(time % 7), 0x1000, u64::from(time), SPIN.name);
        machine.recording.forked(place, (other, other));
        if time % 100 == 0 {
            machine.taken(place, &[0; 16], 0);
        }
    }
    let (status, stderr) = in_little_memory(&machine.recording.file());
    assert!(status.is_some_and(|status| status < 3), "{stderr}");
}
