//! Captures without any description: how often what they are is found out rightly. Traces are generated from what
//! programs are known to have executed, with every combination of settings that changes their bytes.

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use support::firmware::{Firmware, Setup};
use support::{Outcome, run};
use tracewalk::ids::TraceId;
use tracewalk_generate::capture::runs_file;

/// Bits of ETMCR.
const BROADCAST: u32 = 1 << 8;
const CYCLES: u32 = 1 << 12;
const RETURN_STACK: u32 = 1 << 29;
/// Bits of ETMCCER: binary timestamps, 64 bits of them.
const TIMESTAMPS: [u32; 3] = [0b11 << 28, 0b01 << 28, 0];
const BARRIERS: u32 = 1 << 24;
const EVERY: u64 = 200;

fn etmv3_setups(cpu: &'static str, etmidr: Option<u32>) -> Vec<Setup> {
    let mut setups = Vec::new();
    let formats = TIMESTAMPS.map(Some).into_iter().chain([None]);
    for timestamps in formats.filter(|format| cpu != "cortex-a8" || format.is_none()) {
        for broadcast in [0, BROADCAST] {
            for data in 0..4 {
                for cycles in [0, CYCLES] {
                    for context_id in 0..4 {
                        setups.push(Setup {
                            protocol: "etmv3",
                            cpu,
                            etmcr: context_id << 14 | cycles | data << 2 | broadcast,
                            etmidr,
                            etmccer: timestamps.map(|bits| 0x0440_08f2 | bits),
                            timestamps: timestamps.map(|_| EVERY),
                        });
                    }
                }
            }
        }
    }
    setups
}

fn pft_setups(cpu: &'static str) -> Vec<Setup> {
    let mut setups = Vec::new();
    for timestamps in TIMESTAMPS.map(Some).into_iter().chain([None]) {
        for barriers in [0, BARRIERS] {
            for more in [0, BROADCAST, RETURN_STACK] {
                for cycles in [0, CYCLES] {
                    for context_id in 0..4 {
                        setups.push(Setup {
                            protocol: "pft",
                            cpu,
                            etmcr: context_id << 14 | cycles | more,
                            etmidr: None,
                            etmccer: Some(0x04c0_1ac2 | barriers | timestamps.unwrap_or(0)),
                            timestamps: timestamps.map(|_| EVERY),
                        });
                    }
                }
            }
        }
    }
    setups
}

/// How a guess went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Guess {
    Right,
    /// Wrong or uncertain, and a warning says so.
    Told,
    /// Wrong, and nothing says so.
    Silent,
}

fn warned(outcome: &Outcome) -> bool {
    outcome.stderr.lines().any(|line| line.starts_with("warning: ") || line.starts_with("error: "))
}

/// What the trace tells with nothing but the program.
fn with_image(setup: &Setup, firmware: &Firmware, directory: &Path) -> (Guess, String) {
    let trace = firmware.trace(setup);
    let file = directory.join("trace.bin");
    std::fs::write(&file, &trace.bytes).unwrap();
    let expected = runs_file(None::<TraceId>, firmware.elf.profile, &trace.told).bytes;
    let arguments =
        ["flow", file.to_str().unwrap(), "--image", firmware.file.to_str().unwrap(), "--format", "runs"];
    let outcome = run(arguments);
    let guess = match (outcome.stdout.as_bytes() == expected, warned(&outcome)) {
        (true, _) => Guess::Right,
        (false, true) => Guess::Told,
        (false, false) => Guess::Silent,
    };
    (guess, outcome.stderr)
}

/// What the packets are with nothing but the trace.
fn without_image(setup: &Setup, firmware: &Firmware, directory: &Path) -> (Guess, String) {
    let trace = firmware.trace(setup);
    let file = directory.join("trace.bin");
    std::fs::write(&file, &trace.bytes).unwrap();
    let arguments = ["packets", file.to_str().unwrap(), "--format", "jsonl"];
    let outcome = run(arguments);
    let option = setup.option();
    let stated = run(arguments.into_iter().chain(["--container", "raw", "--source", &option]));
    assert_eq!(stated.status, 0, "{option}: {}", stated.stderr);
    let guess = match (outcome.stdout == stated.stdout, warned(&outcome)) {
        (true, _) => Guess::Right,
        (false, true) => Guess::Told,
        (false, false) => Guess::Silent,
    };
    (guess, outcome.stderr)
}

/// The settings of every trace unit that is tried, by what the unit is called in docs/captures.md.
fn units() -> [(&'static str, Vec<Setup>); 5] {
    [
        ("Cortex-A7, ETMv3.5, original encoding", etmv3_setups("cortex-a7", None)),
        ("Cortex-A7, ETMv3.5, alternative encoding", etmv3_setups("cortex-a7", Some(0x411c_f250))),
        ("Cortex-A8, ETMv3.3", etmv3_setups("cortex-a8", None)),
        ("Cortex-A15, PFTv1.1", pft_setups("cortex-a15")),
        ("Cortex-A9, PFTv1.0", pft_setups("cortex-a9")),
    ]
}

/// Counts how guesses go: all of them with TRACEWALK_EVERY=1, else a few of each unit, as there are hundreds.
fn measure(guess: fn(&Setup, &Firmware, &Path) -> (Guess, String)) {
    let a9 = Firmware::load("a9");
    let directory = tempfile::tempdir().unwrap();
    let every = std::env::var("TRACEWALK_EVERY").ok().and_then(|every| every.parse().ok()).unwrap_or(41);
    for (unit, setups) in units() {
        let mut counts = BTreeMap::<Guess, usize>::new();
        for setup in setups.iter().step_by(every) {
            let (guess, said) = guess(setup, &a9, directory.path());
            assert_ne!(guess, Guess::Silent, "{} was wrong and nothing said so: {said}", setup.option());
            *counts.entry(guess).or_default() += 1;
            if guess != Guess::Right {
                println!("{}: {said}", setup.option());
            }
        }
        let (right, all) = (counts.get(&Guess::Right).copied().unwrap_or(0), counts.values().sum::<usize>());
        println!("| {unit} | {right} of {all} |");
        assert!(right * 100 >= all * 97, "{unit}: {right} of {all}");
    }
}

#[test]
fn with_the_program_every_setting_is_found_out() {
    measure(with_image);
}

#[test]
fn without_the_program_every_setting_is_found_out() {
    measure(without_image);
}
