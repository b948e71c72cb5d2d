//! Recordings in several files, and code that is not in files of its own.

use super::*;
use crate::support::tracewalk;

/// A core file of Armv7-A with one segment, readable, writable and executable, as in perf's copy of the kernel.
pub(super) fn core_file(address: u32, code: &[u8]) -> Vec<u8> {
    const HEADERS: u32 = 52 + 32;
    const CORE: u16 = 4;
    const ARM: u16 = 40;
    let length = u32::try_from(code.len()).unwrap();
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([CORE, ARM].iter().flat_map(|half| half.to_le_bytes()));
    file.extend([1_u32, 0, 52, 0, 0].iter().flat_map(|word| word.to_le_bytes()));
    file.extend([52_u16, 32, 1, 40, 0, 0].iter().flat_map(|half| half.to_le_bytes()));
    file.extend([1, HEADERS, address, 0, length, length, 7, 0].iter().flat_map(|word| word.to_le_bytes()));
    file.extend(code);
    file
}

#[test]
fn the_kernel_s_code_is_in_its_core_file() {
    let mut machine = Machine::new(Kind::Etmv4);
    machine.recording.kernel_mapped(at(0, 1, 0), 0, 0x1_0000, 0, "[kernel.kallsyms]_text");
    for time in 2..4 {
        machine.runs(at(10, time, 0), WANDER);
    }
    let folder = folder();
    let directory = folder.path().join("perf.data");
    std::fs::create_dir_all(directory.join("kcore_dir")).unwrap();
    std::fs::write(directory.join("data"), machine.recording.file()).unwrap();
    let core = core_file(u32::try_from(CODE).unwrap(), &bytes(WANDER.words));
    std::fs::write(directory.join("kcore_dir/kcore"), core).unwrap();
    assert!(machine.runs.len() > 100);
    assert_same_runs(&flow(folder.path(), &directory), &machine.runs);
}

#[test]
fn threads_of_perf_write_files_of_their_own() {
    let compress =
        |bytes: &[u8]| ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest);
    for is_compressed in [false, true] {
        // The first file has the mappings; each other file has the events of one CPU.
        let mut machine = Machine::new(Kind::Etmv4);
        machine.mapped(at(10, 1, 0), SPIN);
        machine.mapped(at(20, 1, 0), WANDER);
        let mut others = [0, 1, 2].map(|_| Machine::new(Kind::Etmv4));
        let mut runs = Vec::new();
        for time in 2..14_u32 {
            let cpu = time % 3;
            let other = &mut others[cpu as usize];
            let (thread, code) = if time % 2 == 0 { (10, SPIN) } else { (20, WANDER) };
            other.runs(at(thread, time.into(), cpu), code);
            runs.push((cpu, std::mem::take(&mut other.runs)));
        }
        let folder = folder();
        let directory = folder.path().join("perf.data");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("data"), machine.recording.file()).unwrap();
        for (other, number) in others.iter().zip([0, 2, 10]) {
            let records = match is_compressed {
                true => other.recording.compressed_records(1000, compress),
                false => other.recording.records().to_vec(),
            };
            std::fs::write(directory.join(format!("data.{number}")), records).unwrap();
        }
        // perf creates a file for each thread, even if the thread writes nothing.
        std::fs::write(directory.join("data.11"), []).unwrap();
        // Sources are listed one after the other.
        runs.sort_by_key(|(cpu, _)| *cpu);
        let runs = runs.into_iter().flat_map(|(_, runs)| runs).collect::<Vec<_>>();
        assert!(runs.len() > 100);
        assert_same_runs(&flow(folder.path(), &directory), &runs);
    }
}

#[test]
fn a_recording_may_come_through_a_pipe() {
    let mut machine = Machine::new(Kind::Etmv4);
    machine.mapped(at(10, 1, 0), SPIN);
    machine.runs(at(10, 2, 0), SPIN);
    let folder = folder();
    let root = folder.path().join("root");
    for file in [machine.recording.pipe(), machine.recording.file()] {
        let arguments = ["flow", "-", "--format", "runs", "--quiet", "--symfs"];
        let output = tracewalk().args(arguments).arg(&root).write_stdin(file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found = comparable(&String::from_utf8(output.stdout).unwrap());
        let found = found.into_iter().filter(|line| line != "U").collect::<Vec<_>>();
        assert_same_runs(&found, &machine.runs);
    }
}

/// Registers of an ETMv3 or a PTM with this ETMCR.CtxtIDSize.
fn old_registers(kind: Kind, size: u32) -> [u32; 3] {
    let [etmccer, etmidr] = if kind == Kind::Ptm { A15 } else { A7 };
    [size << 14, etmccer, etmidr]
}

#[test]
fn short_context_ids_name_the_process_if_its_lowest_byte_does() {
    // CtxtIDSize, a second process besides process 10, and whether the trace distinguishes them. Process 266
    // ends in the same byte.
    let cases = [(0b01, 20, false), (0b10, 20, true), (0b10, 266, false), (0b11, 266, true)];
    for kind in [Kind::Etmv3, Kind::Ptm] {
        for (size, other, is_traced) in cases {
            eprintln!("{kind:?}, CtxtIDSize {size:#b}, process {other}");
            let units = vec![Unit::etmv3(0, IDS[0], old_registers(kind, size))];
            let mut recording = Recording::new(CONTEXT_ID_1, units);
            recording.mapped(at(10, 1, 0), CODE, 0x1000, 0, SPIN.name);
            recording.forked(at(10, 1, 0), (10, 11));
            recording.mapped(at(other, 1, 0), CODE, 0x1000, 0, WANDER.name);
            // A kernel thread has no code of its own.
            recording.named(at(276, 1, 0), "kworker", false);
            let mut machine = Machine { kind, recording, rings: [0; 4], runs: Vec::new() };
            for (thread, code, time) in [(10, SPIN, 2), (other, WANDER, 3), (11, SPIN, 4)] {
                let (trace, runs) = short_trace(kind, code, thread << 8 | 5, size);
                let source = SourceBytes { id: TraceId::new(IDS[0]).unwrap(), bytes: trace };
                // The record names the thread that ran when the trace was taken: flow uses it only if the
                // trace itself names none.
                let taken = if is_traced { 276 } else { thread };
                machine.taken(at(taken, time, 0), &frames(&[source], FormatterOptions::default()), 0);
                machine.runs.extend(runs);
            }
            let folder = folder();
            let path = folder.path().join("perf.data");
            std::fs::write(&path, machine.recording.file()).unwrap();
            let root = folder.path().join("root");
            let arguments = ["info", path.to_str().unwrap(), "--symfs", root.to_str().unwrap()];
            let (_, kinds) = run_with_notices(arguments);
            assert_eq!(kinds.has("context_ids_short"), !is_traced);
            let mut found = flow(folder.path(), &path);
            // If records identify the trace, programs are listed one after the other: the first process's,
            // then the second's.
            found.sort();
            machine.runs.sort();
            assert!(machine.runs.len() > 100);
            assert_same_runs(&found, &machine.runs);
        }
    }
}

/// Turns of a thread, traced with this ETMCR.CtxtIDSize.
fn short_trace(kind: Kind, code: Code, context: u32, size: u32) -> (Vec<u8>, Vec<String>) {
    let (program, path) = code.path(context, 100);
    let [etmcr, etmccer, etmidr] = old_registers(kind, size).map(Some);
    let trace = if kind == Kind::Ptm {
        use pft_protocol::{Config, Core, Registers};
        let registers = Registers { etmcr, etmccer, etmidr, ..Registers::default() };
        let config = Config::from_registers(registers, Core::named("cortex-a15")).unwrap();
        let options = pft::Options { synchronise_every: Some(200), ..pft::Options::default() };
        pft::encode(&path, &program, &config, &options).unwrap()
    } else {
        use etmv3_protocol::{Config, Core, Registers};
        let registers = Registers { etmcr, etmccer, etmidr, ..Registers::default() };
        let config = Config::from_registers(registers, Core::named("cortex-a7")).unwrap();
        let options = etmv3::Options { synchronise_every: Some(200), ..etmv3::Options::default() };
        etmv3::encode(&path, &program, &config, &options).unwrap()
    };
    let runs = Record::of_path(Profile::Ar, &trace.path).runs().to_string();
    (trace.bytes, comparable(&runs))
}

/// The offset of a [`program_file`]'s code.
const CODE_OFFSET: usize = 0x100;

/// A program for Armv7-A with a build-id, linked for this address.
fn program_file(code: &[u8], address: u32, build_id: &[u8; 20]) -> Vec<u8> {
    const EXECUTABLE: u16 = 2;
    const ARM: u16 = 40;
    const LOAD: u32 = 1;
    const NOTE: u32 = 4;
    const NOTE_AT: u32 = 52 + 2 * 32;
    let note = [halves(&[4, 20, 3]), b"GNU\0".to_vec(), build_id.to_vec()].concat();
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([EXECUTABLE, ARM].iter().flat_map(|half| half.to_le_bytes()));
    file.extend(halves(&[1, 0, 52, 0, 0]));
    file.extend([52_u16, 32, 2, 40, 0, 0].iter().flat_map(|half| half.to_le_bytes()));
    let number = |number: usize| u32::try_from(number).unwrap();
    let (offset, length) = (number(CODE_OFFSET), number(code.len()));
    file.extend(halves(&[LOAD, offset, address, 0, length, length, 5, 4]));
    file.extend(halves(&[NOTE, NOTE_AT, NOTE_AT, 0, number(note.len()), number(note.len()), 4, 4]));
    file.extend(note);
    file.resize(CODE_OFFSET, 0);
    file.extend(code);
    file
}

fn halves(halves: &[u32]) -> Vec<u8> {
    halves.iter().flat_map(|half| half.to_le_bytes()).collect()
}

/// Appends a `HEADER_BUILD_ID` record to the file: the build-id of `name`.
pub(super) fn with_build_id(mut file: Vec<u8>, name: &str, build_id: &[u8; 20]) -> Vec<u8> {
    const HEADER_BUILD_ID: u32 = 67;
    let mut name = name.as_bytes().to_vec();
    name.resize((name.len() / 8 + 1) * 8, 0);
    let body = [halves(&[u32::MAX]), build_id.to_vec(), vec![0; 4], name].concat();
    let size = u16::try_from(8 + body.len()).unwrap();
    file.extend(halves(&[HEADER_BUILD_ID, u32::from(size) << 16]));
    file.extend(body);
    // The length of the records.
    let length = u64::from_le_bytes(file[48..56].try_into().unwrap()) + u64::from(size);
    file[48..56].copy_from_slice(&length.to_le_bytes());
    file
}

#[test]
#[ignore = "needs sha256sum and tar"]
fn a_program_out_of_an_archive_is_listed_with_its_hash_and_build_id() {
    let build_id = [0xab; 20];
    let hex = "ab".repeat(20);
    let mut machine = Machine::new(Kind::Etmv4);
    machine.recording.mapped(at(10, 1, 0), CODE, 0x1000, CODE_OFFSET as u64, "/bin/server");
    machine.runs(at(10, 2, 0), SPIN);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf.data");
    std::fs::write(&path, with_build_id(machine.recording.file(), "/bin/server", &build_id)).unwrap();
    // perf's cache: a directory for each file, with a subdirectory for each build-id, to which a link leads.
    let cache = folder.path().join("cache");
    let place = cache.join("bin/server").join(&hex);
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("elf"), program_file(&bytes(SPIN.words), 0x8000, &build_id)).unwrap();
    let link = cache.join(".build-id/ab");
    std::fs::create_dir_all(&link).unwrap();
    std::os::unix::fs::symlink(format!("../../bin/server/{hex}"), link.join(&hex[2..])).unwrap();
    let archive = folder.path().join("perf.data.tar");
    let tar =
        std::process::Command::new("tar").arg("cf").arg(&archive).arg("-C").arg(&cache).arg(".").status();
    assert!(tar.unwrap().success());
    let sha256 = |file: &FilePath| {
        let output = std::process::Command::new("sha256sum").arg(file).output().unwrap();
        String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned()
    };
    let origin = folder.path().join("origin.json");
    // The files from the archive and from the cache itself give the same runs; only their names differ.
    for (dir, is_archived) in [(&archive, true), (&cache, false)] {
        let arguments = ["flow", path.to_str().unwrap(), "--debug-dir", dir.to_str().unwrap()];
        let provenance = format!("--provenance={}", origin.display());
        let outcome = run(arguments.iter().chain(&["--format", "runs", "--quiet", &provenance]));
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let found = comparable(&outcome.stdout).into_iter().filter(|line| line != "U").collect::<Vec<_>>();
        assert_same_runs(&found, &machine.runs);
        let recorded: serde_json::Value = serde_json::from_slice(&std::fs::read(&origin).unwrap()).unwrap();
        let inputs = recorded["inputs"].as_array().unwrap();
        let image = inputs.iter().find(|input| input["role"] == "image").unwrap();
        assert_eq!(image["build_id"], hex.as_str());
        assert_eq!(image["sha256"], sha256(&place.join("elf")));
        let with_role = inputs.iter().filter(|input| input["role"] == "archive").collect::<Vec<_>>();
        assert_eq!(with_role.len(), usize::from(is_archived));
        if is_archived {
            assert_eq!((&image["name"], &image["archive"]), (&"server".into(), &"perf.data.tar".into()));
            assert_eq!(
                (&with_role[0]["name"], &with_role[0]["sha256"]),
                (&"perf.data.tar".into(), &sha256(&archive).into())
            );
        }
    }
}

#[test]
fn coverage_is_of_each_binary_at_its_own_addresses() {
    // Neither program runs at the address that it is linked for. The first runs in two processes, under two names.
    const LINKED: u32 = 0x1_8000;
    let mut machine = Machine::new(Kind::Etmv4);
    let files = [("/bin/one", 10, SPIN), ("/bin/other", 20, SPIN), ("/bin/wander", 30, WANDER)];
    for (name, process, _) in files {
        machine.recording.mapped(at(process, 1, 0), CODE, 0x1000, CODE_OFFSET as u64, name);
    }
    let mut instructions = std::collections::BTreeMap::<u32, u64>::new();
    for (turn, (_, process, code)) in files.iter().cycle().take(7).enumerate() {
        let from = machine.runs.len();
        machine.runs(at(*process, turn as u64 + 2, 0), *code);
        let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
        for run in &machine.runs[from..] {
            if let ["R", start, end, _] = *run.split(' ').collect::<Vec<_>>() {
                *instructions.entry(code.words[0]).or_default() += (hex(end) - hex(start)) / 4;
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf.data");
    std::fs::write(&path, machine.recording.file()).unwrap();
    let root = folder.path().join("root");
    std::fs::create_dir_all(root.join("bin")).unwrap();
    for (name, _, code) in files {
        let id = [u8::try_from(code.words.len()).unwrap(); 20];
        std::fs::write(root.join(&name[1..]), program_file(&bytes(code.words), LINKED, &id)).unwrap();
    }
    let saved = folder.path().join("all.twcov");
    let arguments =
        ["coverage", path.to_str().unwrap(), "--symfs", root.to_str().unwrap(), "--quiet", "--save"];
    let outcome = run(arguments.iter().copied().chain([saved.to_str().unwrap()]));
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let (mut found, mut program) = (std::collections::BTreeMap::<String, u64>::new(), String::new());
    for line in std::fs::read_to_string(&saved).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(id) = line["program"]["id"].as_object() {
            program = id.values().next().unwrap().to_string();
        }
        if let Some(block) = line["block"].as_array() {
            let hex = |index: usize| u64::from_str_radix(block[index].as_str().unwrap(), 16).unwrap();
            let (start, end) = (hex(0), hex(1));
            assert!(u64::from(LINKED) <= start && end <= u64::from(LINKED) + 0x14, "{line}");
            *found.entry(program.clone()).or_default() += (end - start) / 4 * block[5].as_u64().unwrap();
        }
    }
    let mut found = found.into_values().collect::<Vec<_>>();
    let mut expected = instructions.into_values().collect::<Vec<_>>();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

/// The peak of a command's private memory, in KiB, and its success.
#[cfg(target_os = "linux")]
fn private_memory(arguments: &[&str]) -> (u64, bool) {
    use std::process::{Command, Stdio};
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracewalk"));
    let mut child = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    loop {
        // Linux reports nothing for a process that has just ended.
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        most = most.max(kib.unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            return (most, status.success());
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn counts_of_a_large_recording_take_little_memory_of_their_own() {
    // Generating the recording takes longer than the measurement.
    counts_take_little_memory(8 << 20);
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "takes a minute"]
fn heavy_counts_of_a_recording_of_100_mib_take_little_memory_of_their_own() {
    counts_take_little_memory(100 << 20);
}

#[cfg(target_os = "linux")]
fn counts_take_little_memory(file: usize) {
    const MOST_KIB: u64 = 64 << 10;
    let mut machine = Machine::new(Kind::Etmv4);
    machine.mapped(at(10, 1, 0), SPIN);
    machine.mapped(at(20, 1, 0), WANDER);
    // The kernel empties a sink in pieces of some hundred kilobytes.
    let traces = [(10, SPIN), (20, WANDER)].map(|(thread, code)| Kind::Etmv4.trace(code, thread, 30_000).0);
    let mut time = 2;
    let mut written = 0;
    while written < file {
        let (thread, bytes) = [(10, &traces[0]), (20, &traces[1])][usize::from(time % 2 == 1)];
        let cpu = u32::try_from(time / 2 % 4).unwrap();
        let id = TraceId::new(IDS[cpu as usize]).unwrap();
        let bytes = frames(&[SourceBytes { id, bytes: bytes.clone() }], FormatterOptions::default());
        machine.taken(at(thread, time, cpu), &bytes, 0);
        written += bytes.len();
        time += 1;
    }
    let folder = folder();
    let path = folder.path().join("perf.data");
    std::fs::write(&path, machine.recording.file()).unwrap();
    drop(machine);
    let root = folder.path().join("root");
    let common = [path.to_str().unwrap(), "--symfs", root.to_str().unwrap()];
    let pgo = ["--binary", "spin", "--format", "profgen"];
    for (command, options) in [("counts", &[][..]), ("counts", &pgo), ("coverage", &[])] {
        let arguments = [&[command][..], &common, options].concat();
        let (kib, is_success) = private_memory(&arguments);
        println!("{command}: {kib} KiB beside {written} bytes");
        assert!(is_success && (1..MOST_KIB).contains(&kib), "{command}: {kib} KiB");
    }
}
