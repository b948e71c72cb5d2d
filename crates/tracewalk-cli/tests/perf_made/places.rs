//! Recordings in several files, and code that is not in files of its own.

use super::*;
use crate::support::tracewalk;

/// A core file of Armv7-A with one segment, as perf copies the kernel's: readable, writable and executable.
fn core_file(address: u32, code: &[u8]) -> Vec<u8> {
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
        // The first file has the mappings, and each other one what happened on a CPU.
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
        // perf makes one for each thread, whether it wrote anything or not.
        std::fs::write(directory.join("data.11"), []).unwrap();
        // Sources come one after the other.
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

#[test]
fn short_context_ids_leave_the_process_to_the_records() {
    for (size, bytes_traced) in [(0b01, 1), (0b10, 2), (0b11, 4)] {
        let units = vec![Unit::etmv3(0, IDS[0], [size << 14, A7[0], A7[1]])];
        let mut recording = Recording::new(CONTEXT_ID_1, units);
        recording.mapped(at(10, 1, 0), CODE, 0x1000, 0, SPIN.name);
        recording.mapped(at(20, 1, 0), CODE, 0x1000, 0, WANDER.name);
        let mut machine = Machine { kind: Kind::Etmv3, recording, rings: [0; 4], runs: Vec::new() };
        // Of the process, above the number of an address space, one byte is traced at most.
        for (thread, code, time) in [(10, SPIN, 2), (20, WANDER, 3), (10, SPIN, 4)] {
            let (trace, runs) = short_trace(code, thread << 8 | 5, size);
            let source = SourceBytes { id: TraceId::new(IDS[0]).unwrap(), bytes: trace };
            machine.taken(at(thread, time, 0), &frames(&[source], FormatterOptions::default()), 0);
            machine.runs.extend(runs);
        }
        let folder = folder();
        let path = folder.path().join("perf.data");
        std::fs::write(&path, machine.recording.file()).unwrap();
        let root = folder.path().join("root");
        let arguments = ["info", path.to_str().unwrap(), "--symfs", root.to_str().unwrap()];
        let (_, kinds) = run_with_notices(arguments);
        assert_eq!(kinds.has("context_ids_short"), bytes_traced < 4, "{bytes_traced} bytes");
        let mut found = flow(folder.path(), &path);
        // Programs come one after the other where records say whose trace is: the first process', then the second's.
        found.sort();
        machine.runs.sort();
        assert!(machine.runs.len() > 100);
        assert_same_runs(&found, &machine.runs);
    }
}

/// Turns of a thread, traced with this ETMCR.CtxtIDSize.
fn short_trace(code: Code, context: u32, size: u32) -> (Vec<u8>, Vec<String>) {
    use etmv3_protocol::{Config, Core, Registers};
    let (program, path) = code.path(context, 100);
    let registers = Registers {
        etmcr: Some(size << 14),
        etmccer: Some(A7[0]),
        etmidr: Some(A7[1]),
        ..Registers::default()
    };
    let config = Config::from_registers(registers, Core::named("cortex-a7")).unwrap();
    let options = etmv3::Options { synchronise_every: Some(200), ..etmv3::Options::default() };
    let trace = etmv3::encode(&path, &program, &config, &options).unwrap();
    let runs = Record::of_path(Profile::Ar, &trace.told).runs().to_string();
    (trace.bytes, comparable(&runs))
}
