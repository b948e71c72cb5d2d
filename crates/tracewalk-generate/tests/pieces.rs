//! A path that comes piece by piece gives the trace of the whole path.

use crate::common::firmware;
use tracewalk::protocol::{etmv3 as v3, etmv4 as v4, pft as pft_protocol};
use tracewalk_generate::path::{Path, Step};
use tracewalk_generate::stream::Stream;
use tracewalk_generate::trace::{Pauses, Trace};
use tracewalk_generate::{etmv3, etmv4, pft};

/// The program over and over: several times as many steps as an encoder looks ahead.
fn long_path(path: &Path) -> Vec<Step> {
    path.steps.iter().copied().cycle().take(200_000).collect()
}

/// What the stream gives for the path in pieces of this length, and the most steps that were told at once.
fn joined(mut stream: Stream<'_>, steps: &[Step], length: usize) -> (Trace, usize) {
    let mut joined = Trace::default();
    let mut most = 0;
    let mut join = |trace: Trace| {
        most = most.max(trace.told.steps.len());
        joined.bytes.extend(trace.bytes);
        joined.told.steps.extend(trace.told.steps);
        joined.times.extend(trace.times);
        joined.starts += trace.starts;
        joined.triggers += trace.triggers;
        joined.cycles = trace.cycles;
    };
    for piece in steps.chunks(length) {
        stream.add(piece);
        stream.advance().unwrap();
        join(stream.take());
    }
    stream.finish().unwrap();
    join(stream.take());
    (joined, most)
}

fn check<'a>(what: &str, steps: &[Step], whole: &Trace, stream: impl Fn() -> Stream<'a>) {
    assert!(whole.told.steps.len() > 100_000, "{what}: {}", whole.told.steps.len());
    for length in [777, 50_000] {
        let (joined, most) = joined(stream(), steps, length);
        assert!(joined == *whole, "{what} in pieces of {length}");
        assert!(most < 100_000, "{what}: {most} steps at once");
    }
}

const PAUSES: Option<Pauses> = Some(Pauses { traced: 5000, untraced: 77, reason: v3::ISyncReason::Overflow });

#[test]
fn etmv3_in_pieces_is_the_trace_of_the_whole_path() {
    for (name, core, etmcr) in
        [("a9", "cortex-a7", 0x1000), ("m3", "cortex-m3", 0x100), ("a9", "cortex-a7", 0x500c)]
    {
        let firmware = firmware(name);
        let program = &firmware.elf.program;
        let path = Path { steps: long_path(&firmware.path) };
        let registers = v3::Registers { etmcr: Some(etmcr), ..v3::Registers::default() };
        let config = v3::Config::from_registers(registers, v3::Core::named(core)).unwrap();
        for pauses in [None, PAUSES] {
            let options = etmv3::Options {
                pauses,
                timestamp_every: Some(90),
                trigger_every: Some(333),
                ..etmv3::Options::default()
            };
            let whole = etmv3::encode(&path, program, &config, &options).unwrap();
            check(name, &path.steps, &whole, || etmv3::stream(program, &config, &options));
        }
    }
}

#[test]
fn pft_in_pieces_is_the_trace_of_the_whole_path() {
    let firmware = firmware("a9");
    let program = &firmware.elf.program;
    let path = Path { steps: long_path(&firmware.path) };
    for etmcr in [0x1000, 1 << 29] {
        let registers = pft_protocol::Registers { etmcr: Some(etmcr), ..pft_protocol::Registers::default() };
        let core = pft_protocol::Core::named("cortex-a15");
        let config = pft_protocol::Config::from_registers(registers, core).unwrap();
        for pauses in [None, PAUSES] {
            let options = pft::Options { pauses, timestamp_every: Some(90), ..pft::Options::default() };
            let whole = pft::encode(&path, program, &config, &options).unwrap();
            check("a9", &path.steps, &whole, || pft::stream(program, &config, &options));
        }
    }
}

#[test]
fn etmv4_in_pieces_is_the_trace_of_the_whole_path() {
    for (name, core) in [("m3", "cortex-m33"), ("a9", "cortex-a53")] {
        let firmware = firmware(name);
        let program = &firmware.elf.program;
        let path = Path { steps: long_path(&firmware.path) };
        let core = v4::Core::named(core).unwrap();
        let registers = v4::Registers {
            trcconfigr: Some(1 | 1 << 4 | 1 << 12),
            trcidr8: Some(20),
            ..v4::Registers::default()
        };
        let config = v4::Config::from_registers(registers.or_usual_of(core), Some(core.profile())).unwrap();
        for pauses in [None, PAUSES] {
            let options = etmv4::Options { pauses, timestamp_every: Some(90), ..etmv4::Options::default() };
            let whole = etmv4::encode(&path, program, &config, &options).unwrap();
            check(name, &path.steps, &whole, || etmv4::stream(program, &config, &options));
        }
    }
}
