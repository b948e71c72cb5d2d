//! Programs that run at the same addresses, distinguished by the context ID in the trace.

#[path = "../../tracewalk-input/src/fixtures.rs"]
#[allow(dead_code, reason = "only the ELF files are used here")]
mod fixtures;

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::support::{Outcome, assert_same_runs, comparable, mentions, run, run_with_kinds};
use fixtures::{ALLOC, EXECUTE, Elf, FUNCTION};
use tracewalk::frame::FormatterOptions;
use tracewalk::ids::{Address, ContextId, TraceId};
use tracewalk::program::{Program, Scope};
use tracewalk::protocol::{etmv3 as etmv3_protocol, pft as pft_protocol};
use tracewalk_generate::container::{SourceBytes, frames};
use tracewalk_generate::path::Path;
use tracewalk_generate::record::Record;
use tracewalk_generate::{etmv3, pft};

const KERNEL: (&str, u32, &[u32]) = (
    "switch_to",
    0xc000_0000,
    &[
        0xee0d_0f30, // mcr p15, 0, r0, c13, c0, 1: the context ID
        0xf57f_f06f, // isb
        0xe12f_ff11, // bx r1
    ],
);
const SPINNER: (&str, u32, &[u32]) = (
    "spin",
    0x8000,
    &[
        0xe250_0001, // subs r0, r0, #1
        0x1aff_fffd, // bne 8000
        0xe12f_ff12, // bx r2
    ],
);
const WANDERER: (&str, u32, &[u32]) = (
    "wander",
    0x8000,
    &[
        0xe1a0_0000, // nop
        0xea00_0001, // b 8010
        0xe1a0_0000,
        0xe1a0_0000,
        0xe12f_ff12, // bx r2
    ],
);
/// The number of turns of each process. The kernel runs before each.
pub(crate) const TURNS: usize = 200;

/// 32-bit context IDs.
pub(crate) const CONTEXT_IDS: u32 = 0b11 << 14;

pub(crate) struct Machine {
    directory: tempfile::TempDir,
    expected: Vec<String>,
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The record of the run: the kernel gives each process its turn.
fn record() -> String {
    let kernel = |context| format!("R c0000000 c000000c a32\nC c0000000 {context}\n");
    let mut record = "# tracewalk record 1\nP ar\n".to_owned();
    for _ in 0..TURNS {
        let _ = write!(record, "{}R 8000 8008 a32\nR 8000 800c a32 !8004\n", kernel("42"));
        let _ = write!(record, "{}R 8000 8008 a32\nR 8010 8014 a32\n", kernel("43"));
    }
    record
}

impl Machine {
    /// Writes the programs, and the trace that this trace unit generates.
    pub(crate) fn new(protocol: &str, etmcr: u32) -> Self {
        let mut program = Program::new();
        let scopes = [Scope::EVERYWHERE, Scope::context(ContextId(0x42)), Scope::context(ContextId(0x43))];
        let directory = tempfile::tempdir().unwrap();
        for (scope, (name, address, code)) in scopes.into_iter().zip([KERNEL, SPINNER, WANDERER]) {
            program.add_in(scope, Address::from(address), &bytes(code)).unwrap();
            let mut elf = Elf::new();
            elf.section(".text", ALLOC | EXECUTE, address, &bytes(code));
            elf.symbol(name, address, 4 * u32::try_from(code.len()).unwrap(), FUNCTION, 1);
            std::fs::write(directory.path().join(format!("{name}.elf")), elf.build()).unwrap();
        }
        let record = record();
        let path = Path::expand(&Record::parse(&record).unwrap(), &program).unwrap();
        let trace = if protocol == "etmv3" {
            use etmv3_protocol::{Config, Core, Registers};
            let registers = Registers { etmcr: Some(etmcr), ..Registers::default() };
            let config = Config::from_registers(registers, Core::named("cortex-a7")).unwrap();
            let options = etmv3::Options { synchronise_every: Some(200), ..etmv3::Options::default() };
            etmv3::encode(&path, &program, &config, &options).unwrap()
        } else {
            use pft_protocol::{Config, Core, Registers};
            let registers = Registers { etmcr: Some(etmcr), ..Registers::default() };
            let config = Config::from_registers(registers, Core::named("cortex-a9")).unwrap();
            let options = pft::Options { synchronise_every: Some(200), ..pft::Options::default() };
            pft::encode(&path, &program, &config, &options).unwrap()
        };
        let source = SourceBytes { id: TraceId::new(0x10).unwrap(), bytes: trace.bytes };
        let capture = frames(&[source], FormatterOptions::default());
        std::fs::write(directory.path().join("etb.bin"), capture).unwrap();
        let runs = record.lines().filter(|line| line.starts_with('R'));
        let expected = runs.map(|line| line.split(" !").next().unwrap().to_owned()).collect();
        Self { directory, expected }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs a command with these images, each with its scope.
    fn run(&self, command: &str, images: &[&str], options: &[&str]) -> Outcome {
        let mut arguments = vec![command.to_owned(), self.file("etb.bin").display().to_string()];
        for image in images {
            arguments.extend(["--image".to_owned(), self.file(image).display().to_string()]);
        }
        arguments.extend(options.iter().map(ToString::to_string));
        run_with_kinds(arguments)
    }

    /// Fails if something that ran is missing from the output, except the end, which the trace does not prove.
    fn assert_all_ran(&self, outcome: &Outcome) {
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let mut found = comparable(&outcome.stdout);
        let proven = found.len().min(self.expected.len());
        assert!(self.expected.len() - proven < 3, "{} of {}", found.len(), self.expected.len());
        if let Some(last) = found.last_mut() {
            // The last line found may end before its run does.
            last.clone_from(&self.expected[proven - 1]);
        }
        assert_same_runs(&found, &self.expected[..proven]);
    }
}

pub(crate) const ALL: [&str; 3] = ["switch_to.elf", "spin.elf@context=0x42", "wander.elf@context=0x43"];
const RUNS: [&str; 2] = ["--format", "runs"];
pub(crate) const ETM: [&str; 2] = ["--source", "0x10=etmv3,cpu=cortex-a7,etmcr=0xc000"];
const PTM: [&str; 2] = ["--source", "0x10=pft,cpu=cortex-a9,etmcr=0xc000"];

fn machines() -> [(Machine, [&'static str; 2]); 2] {
    [(Machine::new("etmv3", CONTEXT_IDS), ETM), (Machine::new("pft", CONTEXT_IDS), PTM)]
}

#[test]
fn processes_at_the_same_addresses_are_followed_in_their_own_images() {
    for (machine, source) in machines() {
        let options = [&RUNS[..], &source].concat();
        machine.assert_all_ran(&machine.run("flow", &ALL, &options));
        // The options can be omitted.
        machine.assert_all_ran(&machine.run("flow", &ALL, &RUNS));
    }
}

#[test]
fn names_come_from_the_image_of_the_context() {
    for (machine, source) in machines() {
        let tree = machine.run("calls", &ALL, &source);
        let text = machine.run("flow", &ALL, &source);
        for (name, outcome) in
            ["spin", "wander", "switch_to"].iter().flat_map(|name| [(name, &tree), (name, &text)])
        {
            assert_eq!(outcome.status, 0, "{}", outcome.stderr);
            let lines = outcome.stdout.lines().filter(|line| line.contains(name)).count();
            assert!(lines > TURNS - 2, "{name}: {lines} in {}", outcome.stdout);
        }
        // Address 8000 holds a different instruction in each context.
        for instruction in ["00008000  e2500001    subs", "00008000  e1a00000    mov"] {
            let found = text.stdout.lines().filter(|line| line.trim_start().starts_with(instruction)).count();
            assert!(found > TURNS - 2, "{instruction}: {found} in {}", &text.stdout[..2000]);
        }
        let last = machine.run("flow", &ALL, &[&["--last", "3"][..], &source].concat());
        assert!(last.stdout.contains("wander") && !last.stdout.contains("spin"), "{}", last.stdout);
        let profile = machine.run("profile", &ALL, &source);
        for name in ["spin", "wander", "switch_to"] {
            assert_eq!(profile.stdout.matches(name).count().min(1), 1, "{name} in {}", profile.stdout);
        }
    }
}

/// How often each function was called, by `profile --format callgrind`.
fn calls_of(callgrind: &str, name: &str) -> usize {
    let function = format!("fn={name}\n");
    callgrind.matches(&function).count()
}

#[test]
fn reports_over_time_and_differences_name_the_functions_of_each_context() {
    for (machine, source) in machines() {
        let json = |command: &str, options: &[&str]| -> serde_json::Value {
            let outcome = machine.run(command, &ALL, &[options, &source].concat());
            assert!(outcome.status < 2, "{command}: {}", outcome.stderr);
            serde_json::from_str(&outcome.stdout).unwrap()
        };
        let interrupts = json("interrupts", &["--functions", "--format", "json"]);
        let functions = interrupts["sources"][0]["functions"].as_array().unwrap();
        let count = |name: &str| {
            let of_name = functions.iter().filter(|function| function["name"] == name).collect::<Vec<_>>();
            assert_eq!(of_name.len(), 1, "{name} in {interrupts}");
            of_name[0]["count"].as_u64().unwrap()
        };
        // The first call, and those left open by a gap at the end, may be missing.
        for name in ["spin", "wander"] {
            assert!(count(name) + 3 > TURNS as u64, "{name}: {}", count(name));
        }
        let chrome = json("timeline", &["--format", "chrome"]);
        let events = chrome["traceEvents"].as_array().unwrap();
        let begun =
            |name: &str| events.iter().filter(|event| event["name"] == name && event["ph"] != "E").count();
        for name in ["spin", "wander", "switch_to"] {
            assert!(begun(name) + 3 > TURNS, "{name}: {}", begun(name));
        }
        let text = machine.run("timeline", &ALL, &source);
        assert!(text.stdout.contains("wander") && text.stdout.contains("context 0x43"), "{}", text.stdout);
        let calls = machine.run("calls", &ALL, &[&["--fold", "none"][..], &source].concat());
        for name in ["spin", "wander"] {
            let lines = calls.stdout.lines().filter(|line| line.contains(name)).count();
            assert!(lines + 3 > TURNS, "{name}: {lines}");
        }
        let profile = machine.run("profile", &ALL, &[&["--format", "callgrind"][..], &source].concat());
        for name in ["spin", "wander", "switch_to"] {
            assert_eq!(calls_of(&profile.stdout, name), 1, "{name} in {}", profile.stdout);
        }
        let capture = machine.file("etb.bin");
        let same = json("diff", &[capture.to_str().unwrap(), "--format", "json"]);
        assert_eq!(same["same"], true, "{same}");
    }
}

#[test]
fn a_difference_is_reported_by_the_names_of_its_context() {
    // The second capture lacks its end.
    let machine = Machine::new("etmv3", CONTEXT_IDS);
    let whole = std::fs::read(machine.file("etb.bin")).unwrap();
    let cut = machine.file("cut.bin");
    std::fs::write(&cut, &whole[..whole.len() / 2 / 16 * 16]).unwrap();
    let options = [&[cut.to_str().unwrap(), "--format", "json"][..], &ETM].concat();
    let outcome = machine.run("diff", &ALL, &options);
    // The second capture ends in the middle of a packet.
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    let report: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    let source = &report["sources"][0];
    let functions = source["functions"].as_array().unwrap();
    let mut names = functions.iter().map(|function| function["name"].as_str().unwrap()).collect::<Vec<_>>();
    names.sort_unstable();
    assert_eq!(names, ["spin", "switch_to", "wander"]);
    let last = source["divergence"]["last"]["function"].as_str().unwrap();
    let stack = source["divergence"]["a"]["stack"][0]["function"].as_str().unwrap();
    assert!(names.contains(&last) && names.contains(&stack), "{last}, {stack}");
    // Half of the turns execute all of the code.
    assert_eq!(source["coverage"]["lost"], serde_json::json!([]));
    let text = machine.run("diff", &ALL, &[&[cut.to_str().unwrap()][..], &ETM].concat());
    assert!(!text.stdout.contains(" 0x00008000\n"), "{}", text.stdout);
}

#[test]
fn profiles_of_the_same_images_in_other_contexts_do_not_add_up() {
    let machine = Machine::new("etmv3", CONTEXT_IDS);
    let save = |images: &[&str], name: &str| {
        let file = machine.file(name).display().to_string();
        let outcome =
            machine.run("profile", images, &[&["--save", &file, "--trust-image"][..], &ETM].concat());
        assert!(outcome.stdout.is_empty(), "{}", outcome.stderr);
        file
    };
    let right = save(&ALL, "right.twprof");
    let turned =
        save(&["switch_to.elf", "spin.elf@context=0x43", "wander.elf@context=0x42"], "turned.twprof");
    let refused = run(["profile", &right, &turned, "--save", "-"]);
    assert_eq!(refused.status, 2);
    assert!(mentions(&refused.stderr, "turned.twprof"), "{}", refused.stderr);
    // With the same images the saved profile equals the capture's.
    let images = |inputs: &str| {
        let mut arguments = vec!["profile".to_owned(), inputs.to_owned(), "--format=folded".to_owned()];
        for image in ALL {
            arguments.push(format!("--image={}", machine.file(image).display()));
        }
        arguments.extend(ETM.map(str::to_owned));
        run(arguments).stdout
    };
    assert_eq!(images(&right), images(machine.file("etb.bin").to_str().unwrap()));
    assert!(images(&right).contains("[context 0x43];wander"), "{}", images(&right));
}

#[test]
fn coverage_keeps_the_code_of_contexts_apart() {
    for (machine, source) in machines() {
        let outcome = machine.run("coverage", &ALL, &[&["--format", "json"][..], &source].concat());
        assert!(outcome.status < 2, "{}", outcome.stderr);
        let report: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
        let text = report.to_string();
        for name in ["switch_to", "spin", "wander"] {
            assert!(text.contains(name), "{name} in {text}");
        }
        let programs = report["programs"].as_array().unwrap();
        assert_eq!(programs.len(), 3, "{text}");
    }
}

#[test]
fn an_image_of_all_contexts_that_is_one_processs_is_contradicted_by_name() {
    for (machine, source) in machines() {
        let images = ["switch_to.elf", "spin.elf"];
        let options = [&RUNS[..], &source, &["--trust-image"]].concat();
        let outcome = machine.run("flow", &images, &options);
        assert_eq!(outcome.status, 2, "{}", outcome.stderr);
        let line = outcome.stderr.lines().find(|line| line.contains(": contradictions: ")).unwrap();
        assert!(mentions(line, "spin.elf 0x43"), "{line}");
        assert!(line.contains("for example @context=0x43"), "{line}");
        let refused = machine.run("flow", &images, &[&RUNS[..], &source].concat());
        let line = refused.stderr.lines().find(|line| line.contains(": image_refused: ")).unwrap();
        assert!(line.contains("spin.elf under context ID 0x43"), "{line}");
        assert!(line.contains("with @context=0x43 appended"), "{line}");
    }
}

#[test]
fn contexts_without_an_image_and_images_without_a_context_are_named() {
    for (machine, source) in machines() {
        let images = ["switch_to.elf", "spin.elf@context=0x42", "wander.elf@context=0x99"];
        let outcome = machine.run("flow", &images, &[&RUNS[..], &source].concat());
        assert_eq!(outcome.status, 2, "{}", outcome.stderr);
        for part in ["--image 0x99", "context ID 0x42, context ID 0x43", "200 0x00008000 0x43 @context=0x43"]
        {
            assert!(mentions(&outcome.stderr, part), "{part:?} in {}", outcome.stderr);
        }
        let info = machine.run("info", &ALL, &source);
        assert!(info.stdout.contains("  contexts      context ID 0x"), "{}", info.stdout);
        assert!(info.stdout.contains("  visible in    context ID 0x42"), "{}", info.stdout);
    }
}

#[test]
fn a_trace_without_context_ids_says_so_where_an_image_asks_for_one() {
    for (protocol, source) in
        [("etmv3", "0x10=etmv3,cpu=cortex-a7,etmcr=0"), ("pft", "0x10=pft,cpu=cortex-a9,etmcr=0")]
    {
        let machine = Machine::new(protocol, 0);
        let outcome = machine.run("flow", &ALL, &["--format", "runs", "--source", source]);
        assert_eq!(outcome.status, 2, "{}", outcome.stderr);
        let line = outcome.stderr.lines().find(|line| line.contains(": no_context_ids: ")).unwrap();
        assert!(line.contains("set ContextIDSize (bits 15:14 of ETMCR)"), "{line}");
    }
}

#[test]
fn a_description_says_the_contexts_and_decodes_to_the_same() {
    for (machine, source) in machines() {
        let output = machine.file("capture.toml").display().to_string();
        let described =
            machine.run("describe", &ALL, &[&["--output", output.as_str()][..], &source].concat());
        assert_eq!(described.status, 0, "{}", described.stderr);
        let text = std::fs::read_to_string(&output).unwrap();
        assert!(text.contains("file = \"spin.elf\"\ncontext = 0x42\n"), "{text}");
        machine.assert_all_ran(&run(["flow", &output, "--format", "runs"]));
        let snapshot = machine.file("snapshot").display().to_string();
        let written = machine.run(
            "describe",
            &ALL,
            &[&["--format", "ds5", "--output", snapshot.as_str()][..], &source].concat(),
        );
        assert!(written.stderr.contains("warning: contexts_left_out"), "{}", written.stderr);
    }
}

#[test]
fn what_is_wrong_after_the_name_of_an_image_is_reported_in_one_sentence() {
    let machine = Machine::new("etmv3", CONTEXT_IDS);
    for wrong in ["spin.elf@contxt=1", "spin.elf@context=x", "spin.elf@vmid=256"] {
        let outcome = machine.run("flow", &[wrong], &[]);
        assert_eq!(outcome.status, 2);
        assert!(outcome.stderr.contains("expected context=NUMBER, vmid=NUMBER"), "{}", outcome.stderr);
    }
    let both = ["wander.elf@context=0x42", "spin.elf@context=0x42"];
    let outcome = machine.run("flow", &both, &ETM);
    assert_eq!(outcome.status, 2);
    assert!(mentions(&outcome.stderr, "0x00008000"), "{}", outcome.stderr);
}
