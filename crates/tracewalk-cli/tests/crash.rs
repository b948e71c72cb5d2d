//! `crash` against crashes recorded in an emulator: its claims, their proofs, and that it claims nothing else.

mod doubts;
mod hangs;
mod stack;
mod untraced;
pub(crate) mod truth;

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::support::{Outcome, corpus, example, mentions, run};
use truth::{Truth, crashes, program};

/// Each crash's name, kind, the line that caused it, and the exception.
const SCENARIOS: [(&str, &str, &str, u64); 30] = [
    ("m0-null-pointer", "bad_pointer", "crash.c:49", 3),
    ("m0-return-address", "corrupted_return", "crash.c:66", 3),
    ("m0-unaligned", "unaligned", "crash.c:73", 3),
    ("m0-divide", "divide_by_zero", "crash.c:78", 3),
    ("m0-stack-overflow", "stack_overflow", "crash.c:107", 3),
    ("m0-undefined", "undefined_instruction", "crash.c:122", 3),
    ("m0-bus-fault", "bad_access", "crash.c:133", 3),
    ("m0-missing-handler", "missing_handler", "startup.S:91", 21),
    ("m0-wild-jump", "bad_pointer", "crash.c:141", 3),
    ("m0-watchdog", "watchdog", "crash.c:148", 24),
    ("m3-null-pointer", "bad_pointer", "crash.c:49", 3),
    ("m3-return-address", "corrupted_return", "crash.c:66", 3),
    ("m3-unaligned", "unaligned", "crash.c:73", 6),
    ("m3-divide", "divide_by_zero", "crash.c:79", 3),
    ("m3-stack-overflow", "stack_overflow", "crash.c:107", 3),
    ("m3-undefined", "undefined_instruction", "crash.c:122", 6),
    ("m3-bus-fault", "bad_access", "crash.c:133", 3),
    ("m3-missing-handler", "missing_handler", "startup.S:91", 21),
    ("m3-wild-jump", "bad_pointer", "crash.c:141", 3),
    ("m3-watchdog", "watchdog", "crash.c:148", 1),
    ("m4-null-pointer", "bad_pointer", "crash.c:49", 3),
    ("m4-return-address", "corrupted_return", "crash.c:66", 3),
    ("m4-unaligned", "unaligned", "crash.c:73", 6),
    ("m4-divide", "divide_by_zero", "crash.c:79", 3),
    ("m4-stack-overflow", "stack_overflow", "crash.c:107", 3),
    ("m4-undefined", "undefined_instruction", "crash.c:122", 6),
    ("m4-bus-fault", "bad_access", "crash.c:133", 3),
    ("m4-missing-handler", "missing_handler", "startup.S:91", 21),
    ("m4-wild-jump", "bad_pointer", "crash.c:141", 3),
    ("m4-watchdog", "watchdog", "crash.c:148", 1),
];

/// The arguments for a saved crash.
fn arguments(name: &str) -> Vec<PathBuf> {
    let folder = crashes().join(name);
    let mut arguments = vec![PathBuf::from("crash")];
    if name.starts_with("m0") {
        arguments.push(folder.join("crash.log"));
    } else {
        arguments.extend([folder.join("capture.toml"), "--dump".into(), folder.join("crash.log")]);
    }
    arguments.extend(["--image".into(), program(name)]);
    arguments
}

fn json(arguments: &[PathBuf]) -> (Outcome, Value) {
    let options = ["--format", "json"].map(PathBuf::from);
    let outcome = run(arguments.iter().chain(&options));
    let value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{}", outcome.stderr));
    (outcome, value)
}

fn crash(arguments: &[PathBuf]) -> Value {
    json(arguments).1
}

#[test]
fn the_cause_of_each_crash_is_named_and_every_entry_of_its_proof_is_true() {
    for (name, kind, line, exception) in SCENARIOS {
        let (outcome, document) = json(&arguments(name));
        // ETM trace of a jump into data goes on where no image has code, which is a gap.
        let status = if matches!(name, "m3-wild-jump" | "m4-wild-jump") { 2 } else { 0 };
        assert_eq!(outcome.status, status, "{name}: {}", outcome.stderr);
        let crash = &document;
        assert_eq!(crash["v"], 1, "{name}");
        assert_eq!(crash["fault"]["number"], exception, "{name}");
        // A reset has no address. A branch to an address outside any function has no instruction.
        assert_eq!(crash["at"]["address"].is_string(), exception != 1, "{name}: {crash:#}");
        let [function, instruction] = ["function", "instruction"].map(|field| crash["at"][field].is_string());
        assert_eq!(function, instruction, "{name}: {crash:#}");
        let cause = &crash["cause"];
        assert_eq!(cause["kind"], kind, "{name}: {crash:#}");
        let at = &cause["at"];
        let file = at["file"].as_str().unwrap_or_default().rsplit('/').next().unwrap();
        assert_eq!(format!("{file}:{}", at["line"]), line, "{name}: {cause:#}");
        let proof = cause["proof"].as_array().unwrap();
        assert!(proof.len() >= 3, "{name}: {proof:#?}");
        let truth = Truth::read(name);
        for entry in proof {
            truth.check(entry);
        }
    }
}

/// A capture of a recorded program by this trace unit.
fn generated(folder: &Path, name: &str, unit: &str) -> PathBuf {
    let generator = assert_cmd::cargo::cargo_bin!("tracewalk").with_file_name("tracewalk-generate");
    let capture = folder.join(format!("{name}-{}", &unit[..5]));
    let record = program(name).with_file_name(name).with_extension("record");
    let mut command = std::process::Command::new(generator);
    command.args(["capture", "--protocol", unit, "--output"]).arg(&capture);
    let made = command.arg("--record").arg(record).arg("--elf").arg(program(name)).output();
    let made = made.expect("`cargo test --workspace` has built the generator");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    capture
}

/// Makes traces of some of these crashes, without what a debugger saved, and calls `each` with the capture.
fn each_trace_alone(mut each: impl FnMut(&str, &Path, Option<(&str, &str)>)) {
    // Another fault could have been escalated to a HardFault at the same instruction.
    const UNPROVEN: [&str; 4] = ["m3-divide", "m4-divide", "m3-bus-fault", "m4-bus-fault"];
    let folder = tempfile::tempdir().unwrap();
    for (name, kind, line, _) in SCENARIOS.iter().filter(|(name, ..)| !name.starts_with("m0")) {
        let expected = (!UNPROVEN.contains(name)).then_some((*kind, *line));
        let core = format!("etmv3,cpu=cortex-{}", &name[..2]);
        // Interrupt numbers of ETMv4 are others than the record's.
        let units = [core.as_str(), "etmv4,cpu=cortex-m33"];
        for unit in units.into_iter().take(if *kind == "missing_handler" { 1 } else { 2 }) {
            each(name, &generated(folder.path(), name, unit), expected);
        }
    }
}

/// The kind of a cause, and the line of its place.
fn stated(crash: &Value) -> Option<(String, String)> {
    let cause = crash["cause"].as_object()?;
    let file = cause["at"]["file"].as_str().unwrap_or_default().rsplit('/').next()?;
    Some((cause["kind"].as_str()?.to_owned(), format!("{file}:{}", cause["at"]["line"])))
}

#[test]
fn the_trace_alone_proves_a_cause_by_its_values() {
    each_trace_alone(|name, capture, expected| {
        let found = stated(&crash(&["crash".into(), capture.join("capture.toml")]));
        let expected = expected.map(|(kind, line)| (kind.to_owned(), line.to_owned()));
        assert_eq!(found, expected, "{name} {}", capture.display());
    });
}

#[test]
fn a_damaged_trace_alone_has_the_same_cause_or_none() {
    let mut seed = 1_u32;
    each_trace_alone(|name, capture, _| {
        let arguments = ["crash".into(), capture.join("capture.toml")];
        let (right, file) = (stated(&crash(&arguments)), capture.join("trace.bin"));
        let whole = std::fs::read(&file).unwrap();
        for _ in 0..12 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let bit = seed as usize / 256 % (8 * whole.len());
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&file, damaged).unwrap();
            let outcome = run(arguments.iter().chain(&["--format", "json"].map(PathBuf::from)));
            let found = serde_json::from_str::<Value>(&outcome.stdout).ok().and_then(|crash| stated(&crash));
            assert!(found.is_none() || found == right, "{name} bit {bit}: {found:?}");
        }
        std::fs::write(&file, whole).unwrap();
    });
}

/// An ETMv4 exception packet names no handler, and Armv8-M has a stack limit and stacks nothing below it.
#[tracewalk_corpus::test]
fn crashes_in_etmv4_have_their_cause() {
    let cases = [
        ("01-crash-etmv4/m33-div", "divide_by_zero", "0x10000122", 6, Some("0x10000056")),
        ("01-crash-etmv4/m33-null", "bad_pointer", "0x100001a8", 3, Some("0x10000050")),
        ("01-crash-etmv4/m33-bus", "bad_access", "0x100001c0", 3, Some("0x10000050")),
        ("01-crash-etmv4/m33-nohandler", "missing_handler", "0x1000005a", 17, Some("0x1000005a")),
        ("02-crash-stkof", "stack_overflow", "0x1000020a", 6, Some("0x10000056")),
    ];
    for (name, kind, at, exception, handler) in cases {
        let folder = corpus(&format!("found3/truth/{name}"));
        let (outcome, crash) = json(&["crash".into(), folder.join("capture.toml")]);
        assert_eq!(outcome.status, 0, "{name}: {}", outcome.stderr);
        assert_eq!(crash["cause"]["kind"], kind, "{name}: {crash:#}");
        assert_eq!(crash["cause"]["at"]["address"], at, "{name}: {crash:#}");
        assert_eq!(crash["fault"]["number"], exception, "{name}");
        let found = crash["fault"]["handler"]["address"].as_str().or(crash["fault"]["handler"].as_str());
        assert_eq!(found, handler, "{name}: {:#}", crash["fault"]);
    }
}

/// An application that a loader started has no vectors; the processor was halted in the handler, and says which it is.
#[tracewalk_corpus::test]
fn without_vectors_the_registers_name_the_exception() {
    let folder = corpus("found3/reports/11-crash-without-vectors");
    let at = |name: &str| folder.join(name);
    let options = ["crash".into(), at("fault.bin"), "--registers".into(), at("fault.txt"), "--image".into()];
    let rest = [at("m.elf"), "--dump".into(), at("fault.log")];
    let (outcome, crash) = json(&[&options[..], &rest].concat());
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert_eq!((&crash["fault"]["number"], &crash["at"]["address"]), (&3.into(), &"0x20000042".into()));
    assert_eq!(crash["cause"]["kind"], "bad_access", "{crash:#}");
    // No word of the code is a vector.
    let proof = crash["cause"]["proof"].as_array().expect("a proof");
    assert!(proof.iter().all(|entry| entry["role"] != "vector"), "{proof:#?}");
}

/// A function whose first instruction faulted has been called, although nothing ran in it.
#[test]
fn each_function_of_the_stack_is_the_one_that_its_place_is_in() {
    for (name, ..) in SCENARIOS {
        let document = crash(&arguments(name));
        let stack = document["stack"].as_array().unwrap();
        for running in stack.iter().filter(|running| running["at"]["function"].is_string()) {
            assert_eq!(running["function"], running["at"]["function"], "{name}: {running:#}");
        }
        if name.ends_with("unaligned") {
            let functions = stack.iter().map(|running| running["function"].as_str()).collect::<Vec<_>>();
            assert_eq!(functions[..2], [Some("read_length"), Some("main")], "{name}");
        }
    }
}

/// GDB's core file has the processor's registers in a note, and nothing from the System Control Block.
#[test]
fn a_core_file_says_what_the_log_of_the_same_crash_says() {
    let log = crash(&arguments("m0-null-pointer"));
    let core = crashes().join("../dumps/crash.core");
    let registers =
        ["--source=mtb,position=0x29c", "--source=mtb,master=0x80000006", "--source=mtb,base=0x20001000"];
    let mut arguments = vec![PathBuf::from("crash"), core, "--image".into(), program("m0-null-pointer")];
    arguments.extend(registers.map(PathBuf::from));
    let core = crash(&arguments);
    for field in ["at", "cause", "stack", "path", "registers", "registers_at"] {
        assert_eq!(core[field], log[field], "{field}");
    }
    assert_eq!(core["fault"]["number"], 3);
}

/// The cause names who wrote the branch target, as far as the trace reaches back.
#[test]
fn where_bad_addresses_come_from_is_said() {
    let cause = crash(&arguments("m0-null-pointer"))["cause"].clone();
    assert_eq!(cause["loaded_from"], "0x20000028", "{cause:#}");
    for name in ["m0-return-address", "m3-return-address"] {
        let cause = crash(&arguments(name))["cause"].clone();
        assert_eq!(cause["overwritten_by"]["line"], 63, "{cause:#}");
        assert_eq!(cause["saved_by"]["function"], "greet", "{cause:#}");
    }
    let cause = crash(&arguments("m3-stack-overflow"))["cause"].clone();
    assert_eq!(cause["object"]["name"], "visitor", "{cause:#}");
    let cause = crash(&arguments("m3-wild-jump"))["cause"].clone();
    assert_eq!(cause["target"]["name"], "scratch", "{cause:#}");
    let cause = crash(&arguments("m3-bus-fault"))["cause"].clone();
    assert_eq!(cause["address"], "0x87654330", "{cause:#}");
    let cause = crash(&arguments("m0-watchdog"))["cause"].clone();
    assert!(cause["times"].as_u64().unwrap() > 50, "{cause:#}");
    assert_eq!(crash(&arguments("m3-watchdog"))["cause"]["reset"], true);
}

#[test]
fn fault_status_is_decoded_and_a_cortex_m0_has_none() {
    let found = crash(&arguments("m3-bus-fault"));
    let flags = |index: usize| found["fault"]["status"][index]["fields"].to_string();
    assert!(flags(0).contains("PRECISERR") && flags(0).contains("BFARVALID"), "{found:#}");
    assert!(flags(1).contains("FORCED"), "{found:#}");
    let found = crash(&arguments("m0-bus-fault"));
    assert_eq!(found["fault"]["status"], Value::Array(Vec::new()));
    assert!(found["missing"].as_array().unwrap().contains(&"no_fault_status".into()), "{found:#}");
}

#[test]
fn one_screen_of_80_columns_shows_it_all() {
    for (name, ..) in SCENARIOS {
        let outcome = run(arguments(name));
        assert!(outcome.stdout.lines().count() <= 60, "{name}:\n{}", outcome.stdout);
        for line in outcome.stdout.lines() {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
        for title in ["Fault", "Cause", "Call stack", "Last path", "Last instructions", "Proof"] {
            assert!(outcome.stdout.lines().any(|line| line == title), "{name}: {title}\n{}", outcome.stdout);
        }
        let markdown = run(arguments(name).into_iter().chain(["--format=markdown".into()]));
        assert!(markdown.stdout.starts_with("## ") && markdown.stdout.contains("### Cause"), "{name}");
        assert_eq!(markdown.stdout.matches("```").count() % 2, 0, "{name}");
    }
}

/// Recorded like the others, but only the emulator's record has their causes: a load from an unmapped
/// address, through a register that no exception stacks.
#[test]
fn no_cause_is_claimed_of_crashes_whose_cause_cannot_be_proven() {
    for core in ["m0", "m3"] {
        for (kind, reaches_back) in [("overwritten", false), ("unsaved", true), ("cleared", true)] {
            let name = format!("{core}-{kind}");
            let found = crash(&arguments(&name));
            assert_eq!(found["cause"], Value::Null, "{name}: {found:#}");
            assert_eq!(found["fault"]["number"], 3, "{name}: {found:#}");
            let missing = found["missing"].as_array().unwrap();
            assert!(missing.contains(&"frame".into()), "{name}: {found:#}");
            // The place where the exception was taken is either in the trace or not reported.
            let (number, faulted_at) = Truth::read(&name).last_taken();
            let at = reaches_back.then(|| format!("0x{faulted_at:08x}"));
            assert_eq!((number, found["at"]["address"].as_str()), (3, at.as_deref()), "{name}: {found:#}");
            assert_eq!(missing.contains(&"path".into()), !reaches_back, "{name}: {found:#}");
            assert!(!found["last"].as_array().unwrap().is_empty(), "{name}: {found:#}");
        }
    }
}

/// A forbidden supervisor call ends in a HardFault at the load after it, which the bus never refused.
#[test]
fn an_escalated_call_is_not_held_against_the_instruction_after_it() {
    for name in ["m0-escalated", "m3-escalated"] {
        let found = crash(&arguments(name));
        let (number, taken_at) = Truth::read(name).last_taken();
        assert_eq!((number, &found["fault"]["number"]), (3, &3.into()), "{name}: {found:#}");
        assert_eq!(found["at"]["address"], format!("0x{taken_at:08x}"), "{name}: {found:#}");
        assert!(!found["registers"].is_null(), "{name}: {found:#}");
        assert_eq!(found["cause"], Value::Null, "{name}: {found:#}");
    }
}

/// Each `EXC_RETURN` value other than 0xffffffe9: threads and a handler, with floating-point registers on the
/// stack and without.
#[test]
fn causes_are_named_on_both_stacks_with_and_without_floating_point_frames() {
    for (name, kind, exception, stacked_at) in [
        ("m4-thread-divide", "divide_by_zero", 6, "0x20000130"),
        ("m4-handler-return", "corrupted_return", 3, "0x200002a8"),
        ("m4-thread-bus-fault", "bad_access", 5, "0x20000130"),
        ("m4-thread-undefined", "undefined_instruction", 6, "0x20000178"),
    ] {
        let found = crash(&arguments(name));
        let truth = Truth::read(name);
        assert_eq!(truth.last_taken().0, exception, "{name}");
        assert_eq!(found["fault"]["number"], exception, "{name}: {found:#}");
        assert_eq!(found["registers_at"], stacked_at, "{name}: {found:#}");
        assert_eq!(found["cause"]["kind"], kind, "{name}: {found:#}");
        let proof = found["cause"]["proof"].as_array().unwrap();
        assert!(proof.len() >= 3, "{name}: {proof:#?}");
        proof.iter().for_each(|entry| truth.check(entry));
    }
    // The address of the stacked return address follows from the size of the frame.
    let cause = crash(&arguments("m4-handler-return"))["cause"].clone();
    assert_eq!(cause["saved_by"]["function"], "label", "{cause:#}");
    assert_eq!(cause["overwritten_by"]["function"], "label", "{cause:#}");
}

/// A crash's log with only the lines that `keep` accepts.
fn log(name: &str, keep: impl Fn(&str) -> bool) -> (tempfile::TempDir, PathBuf) {
    let text = std::fs::read_to_string(crashes().join(name).join("crash.log")).unwrap();
    let kept = text.lines().filter(|line| keep(line)).map(|line| format!("{line}\n")).collect::<String>();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crash.log");
    std::fs::write(&file, kept).unwrap();
    (folder, file)
}

fn is_trace(line: &str) -> bool {
    line.starts_with("MTB_") || line.starts_with("0x20001")
}

#[test]
fn what_the_trace_cannot_prove_is_not_claimed() {
    // A load through a pointer that was not printed: it may be misaligned, or go to an unmapped address.
    let (_folder, file) = log("m0-bus-fault", is_trace);
    let found = crash(&["crash".into(), file, "--image".into(), program("m0-bus-fault")]);
    assert_eq!((&found["fault"]["number"], &found["cause"]), (&3.into(), &Value::Null));
    // A load or a division in ETM trace, with nothing printed: the fault status is unknown. Only an odd address would suffice.
    for name in ["m3-bus-fault", "m3-divide"] {
        let found = crash(&[
            "crash".into(),
            crashes().join(name).join("capture.toml"),
            "--image".into(),
            program(name),
        ]);
        assert!(found["fault"]["number"].is_u64(), "{found:#}");
        assert_eq!(found["cause"], Value::Null, "{found:#}");
        assert!(found["missing"].as_array().unwrap().contains(&"fault_status".into()), "{found:#}");
    }
    // The handler's endless loop overwrote the buffer: the trace no longer has the faulting instruction.
    let (_folder, file) = log("m0-null-pointer", |line| !line.starts_with("0x20001"));
    let mut text = std::fs::read_to_string(&file).unwrap();
    for line in 0..64 {
        let words = ["0x000000e6"; 4].join("\t");
        text += &format!("0x{:x}:\t{words}\n", 0x2000_1000 + 16 * line);
    }
    std::fs::write(&file, text).unwrap();
    let found = crash(&["crash".into(), file, "--image".into(), program("m0-null-pointer")]);
    assert_eq!(found["cause"], Value::Null, "{found:#}");
}

/// QEMU has no imprecise faults. The registers describe one: the bus refused an access of an earlier
/// instruction, and BFAR has no address.
#[test]
fn a_fault_that_came_late_is_not_held_against_the_instruction_where_it_came() {
    for name in ["m3-bus-fault", "m3-divide", "m3-unaligned", "m4-thread-bus-fault"] {
        let text = std::fs::read_to_string(crashes().join(name).join("crash.log")).unwrap();
        let status = text.lines().find(|line| line.starts_with("0xe000ed20:")).unwrap();
        let mut words = status.split('\t').collect::<Vec<_>>();
        words[3] = "0x00000400";
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("crash.log");
        std::fs::write(&file, text.replace(status, &words.join("\t"))).unwrap();
        let mut arguments = arguments(name);
        arguments[3] = file;
        let found = crash(&arguments);
        let status = found["fault"]["status"][0]["fields"].to_string();
        assert!(status.contains("IMPRECISERR"), "{name}: {found:#}");
        assert_eq!(found["cause"], Value::Null, "{name}: {found:#}");
    }
}

/// The fault status is that of another fault than the trace shows, as if it was printed later.
#[test]
fn registers_that_contradict_the_trace_prove_nothing() {
    let text = std::fs::read_to_string(crashes().join("m3-divide/crash.log")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crash.log");
    let arguments = |file: &Path| {
        let mut arguments = arguments("m3-divide");
        arguments[3] = file.to_owned();
        arguments
    };
    std::fs::write(&file, text.replace("0x02000000", "0x00008200")).unwrap();
    assert_eq!(crash(&arguments(&file))["cause"], Value::Null);
    let other_frame = text.replace("0x00000154\t0x", "0x00000158\t0x");
    assert_ne!(other_frame, text);
    std::fs::write(&file, other_frame).unwrap();
    assert_eq!(crash(&arguments(&file))["cause"], Value::Null);
}

/// The examples and the corpus, whole, truncated and with flipped bits.
#[tracewalk_corpus::test]
fn healthy_and_damaged_captures_claim_nothing() {
    let mut captures = Vec::<Vec<PathBuf>>::new();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    for name in ["m3-etmv3", "a7-etmv3", "a15-pft"] {
        captures.push(vec![example(name).join("capture.toml")]);
    }
    let whole = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
    let described = std::fs::read_to_string(example("m3-etmv3/capture.toml")).unwrap();
    std::fs::copy(example("m3-etmv3/m3.elf"), folder.path().join("m3.elf")).unwrap();
    let mut etm = |name: String, bytes: &[u8]| {
        file(&name, bytes);
        let description = described.replace("trace.bin", &name);
        assert_ne!(description, described);
        captures.push(vec![file(&format!("{name}.toml"), description.as_bytes())]);
    };
    for part in 1..=8 {
        etm(format!("cut{part}"), &whole[..whole.len() / 16 * part * 2 - 16]);
        let mut flipped = whole.clone();
        let length = flipped.len();
        flipped[length - 1 - 37 * part] ^= 1 << (part - 1);
        etm(format!("flipped{part}"), &flipped);
    }
    // An MTB as a debugger finds it when it stops a running program: the example's, before the last packets
    // were written.
    let trace = std::fs::read(example("m0-crash-mtb/trace.bin")).unwrap();
    let mut mtb = |name: &str, position: u32, trace: &[u8]| {
        let position = position | 4;
        let registers =
            format!("--source=mtb,position={position:#x},master=0x80000006,base=0x20001000").into();
        let image = ["--image".into(), example("m0-crash-mtb/m0-crash.elf")];
        captures.push([file(name, trace)].into_iter().chain([registers]).chain(image).collect());
    };
    for position in [0x08, 0x10, 0x18] {
        mtb(&format!("mtb{position}"), position, &trace);
    }
    // The buffer's last packets damaged: one bit of each word that shows the fault.
    for (word, bit) in [(0x24, 0x100), (0x28, 0x40), (0x2c, 0x1000)] {
        let mut damaged = trace.clone();
        let at = damaged[word..].first_chunk_mut::<4>().unwrap();
        *at = (u32::from_le_bytes(*at) ^ bit).to_le_bytes();
        mtb(&format!("damaged{word}"), 0x30, &damaged);
    }
    let own = captures.len();
    let real = corpus("real");
    {
        captures.push(vec![real.join("TC2")]);
        captures.push(vec![real.join("tc2-ptm-rstk-t32")]);
        let sigrok = real.join("stm32f105");
        captures.push(vec![
            sigrok.join("trace_example.sr"),
            "--image".into(),
            sigrok.join("trace_example.elf"),
        ]);
        captures.push(vec![sigrok.join("swo.bin")]);
    }
    assert_eq!(own, 25);
    for capture in captures {
        let (outcome, document) = json(&[vec!["crash".into()], capture.clone()].concat());
        let others = document["others"].as_array().cloned().unwrap_or_default();
        for source in others.iter().chain([&document]) {
            assert_eq!(source["cause"], Value::Null, "{capture:?}: {source:#}");
        }
        if document["fault"].is_null() {
            assert_ne!(outcome.status, 0, "{capture:?}");
        }
    }
}

/// One bit of the packets that show the crash is flipped, so the evidence no longer fits together.
#[test]
fn damage_of_the_evidence_takes_the_claim_away() {
    let text = std::fs::read_to_string(crashes().join("m0-null-pointer/crash.log")).unwrap();
    let position = text.lines().find_map(|line| line.strip_prefix("MTB_POSITION=0x")).unwrap();
    let position = u32::from_str_radix(position, 16).unwrap() & !7;
    // The last packet but one is the branch; its destination is the second word.
    let at = 0x2000_1000 + (position + 1024 - 16 + 4) % 1024;
    let line = at & !15;
    let (folder, _) = log("m0-null-pointer", |_| true);
    let file = folder.path().join("damaged.log");
    let damaged = text.lines().map(|text| {
        if !text.starts_with(&format!("0x{line:x}:")) {
            return format!("{text}\n");
        }
        let (head, words) = text.split_once('\t').unwrap();
        let mut words = words.split('\t').map(str::to_owned).collect::<Vec<_>>();
        let word = &mut words[(at as usize - line as usize) / 4];
        *word = format!("0x{:08x}", u32::from_str_radix(&word[2..], 16).unwrap() ^ 0x100);
        format!("{head}\t{}\n", words.join("\t"))
    });
    std::fs::write(&file, damaged.collect::<String>()).unwrap();
    let found = crash(&["crash".into(), file, "--image".into(), program("m0-null-pointer")]);
    assert_eq!(found["cause"], Value::Null, "{found:#}");
}

/// Half of the buffer, without the newest packets, which may have been anything.
#[test]
fn where_the_newest_packets_are_missing_nobody_knows_how_it_ended() {
    let (_folder, file) = log("m0-null-pointer", |line| {
        let address =
            line.strip_prefix("0x20001").and_then(|rest| u32::from_str_radix(rest.get(..3)?, 16).ok());
        address.is_none_or(|address| address < 0x200)
    });
    let arguments = ["crash".into(), file, "--image".into(), program("m0-null-pointer")];
    let outcome = run(&arguments);
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    // One stretch, in address order.
    assert!(mentions(&outcome.stderr, "512 0x20001200 0x200013ff"), "{}", outcome.stderr);
    let found = crash(&arguments);
    assert_eq!((&found["whole"], &found["cause"]), (&Value::Bool(false), &Value::Null), "{found:#}");
    assert_eq!(crash(&self::arguments("m0-null-pointer"))["whole"], Value::Null);
}

/// The trace ends long before the crash: only the registers show the crash, and the traced path does not lead to it.
#[test]
fn a_path_that_does_not_lead_to_the_fault_is_not_shown_as_if_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let case = crashes().join("m3-divide");
    std::fs::copy(case.join("capture.toml"), file("capture.toml")).unwrap();
    let trace = std::fs::read(case.join("trace.bin")).unwrap();
    std::fs::write(file("trace.bin"), &trace[..208]).unwrap();
    let arguments = [file("capture.toml"), "--dump".into(), case.join("crash.log"), "--image".into()];
    let mut arguments = [vec!["crash".into()], arguments.to_vec()].concat();
    arguments.push(program("m3-divide"));
    let found = crash(&arguments);
    assert_eq!((&found["fault"]["number"], &found["cause"]), (&3.into(), &Value::Null), "{found:#}");
    assert!(found["missing"].as_array().unwrap().contains(&"path".into()), "{found:#}");
    for empty in ["path", "last", "stack"] {
        assert_eq!(found[empty].as_array().map(Vec::len), Some(0), "{found:#}");
    }
    assert_eq!(found["at"]["address"], Value::Null, "{found:#}");
}

/// Flips every bit of the packets that show another crash: the claim is that of the undamaged buffer, or
/// there is none.
#[test]
fn no_damaged_bit_makes_another_claim() {
    let trace = std::fs::read(example("m0-crash-mtb/trace.bin")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mtb.bin");
    let registers = [
        "--source=mtb,position=0x34",
        "--source=mtb,master=0x80000006",
        "--source=mtb,base=0x20001000",
        "--image",
    ];
    let mut arguments = vec![PathBuf::from("crash"), file.clone()];
    arguments.extend(registers.map(PathBuf::from));
    arguments.push(example("m0-crash-mtb/m0-crash.elf"));
    let claim = |trace: &[u8]| {
        std::fs::write(&file, trace).unwrap();
        let cause = &crash(&arguments)["cause"];
        ["kind", "at", "target"].map(|field| cause[field].clone())
    };
    let whole = claim(&trace);
    assert_eq!(whole[0], "bad_pointer");
    let mut claims = 0;
    // The interrupt, the branch through the pointer, the fault: 8 bytes each.
    for bit in 0x18 * 8..0x30 * 8 {
        let mut damaged = trace.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let found = claim(&damaged);
        if !found[0].is_null() {
            assert_eq!(found, whole, "bit {bit}");
            claims += 1;
        }
    }
    // The place where the interrupt was taken matters little. In the other two packets only the bit for a
    // restart of tracing is free.
    assert!(claims <= 8, "{claims}");
}

#[test]
fn a_file_that_holds_no_registers_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "again\n").unwrap();
    let mut arguments = arguments("m3-divide");
    arguments[3] = file;
    assert_eq!(run(arguments).status, 2);
}
