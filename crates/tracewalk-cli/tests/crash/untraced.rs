//! Crashes that nothing traced: the registers and the memory alone. The expected results are the corpus' own, the emulator's records,
//! and what the trace of the same crash shows.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::truth::{Truth, program};
use super::{SCENARIOS, arguments, crash, is_trace, json, log};
use crate::support::{corpus, run};

/// The document of a log, and the status.
fn of_log(file: &Path, image: &Path) -> (i32, Value) {
    let (outcome, document) = json(&["crash".into(), file.into(), "--image".into(), image.into()]);
    (outcome.status, document)
}

/// The document of a text as a log.
fn of_text(text: &str, image: &Path) -> (i32, Value) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crash.log");
    std::fs::write(&file, text).unwrap();
    of_log(&file, image)
}

/// The log of a recorded crash without its trace.
fn untraced(name: &str) -> String {
    let (_folder, file) = log(name, |line| !is_trace(line));
    std::fs::read_to_string(file).unwrap()
}

fn functions(document: &Value) -> Vec<&str> {
    document["stack"].as_array().unwrap().iter().map(|frame| frame["function"].as_str().unwrap()).collect()
}

fn missing(document: &Value) -> Vec<&str> {
    document["missing"].as_array().unwrap().iter().map(|missing| missing.as_str().unwrap()).collect()
}

/// Changes a word that GDB printed.
fn with_word(text: &str, address: u32, change: impl Fn(u32) -> u32) -> String {
    let mut changed = false;
    let lines = text.lines().map(|line| {
        let start = line.split([':', ' ']).next().and_then(|start| start.strip_prefix("0x"));
        let start = start.and_then(|start| u32::from_str_radix(start, 16).ok());
        let Some((head, words)) = line.split_once('\t').filter(|_| start.is_some()) else {
            return format!("{line}\n");
        };
        let mut words = words.split('\t').map(str::to_owned).collect::<Vec<_>>();
        let index = address.wrapping_sub(start.unwrap()) as usize / 4;
        if let Some(word) = words.get_mut(index) {
            *word = format!("0x{:08x}", change(u32::from_str_radix(&word[2..], 16).unwrap()));
            changed = true;
        }
        format!("{head}\t{}\n", words.join("\t"))
    });
    let text = lines.collect();
    assert!(changed, "0x{address:x}");
    text
}

const CFSR: u32 = 0xe000_ed28;

#[tracewalk_corpus::test]
fn logs_of_every_debugger_say_what_is_proven_and_nothing_else() {
    for name in ["mailer", "lookup", "gain", "guard"] {
        let folder = corpus("crash2").join(name);
        let expected = std::fs::read(folder.join("expected.json")).unwrap();
        let expected: Value = serde_json::from_slice(&expected).unwrap();
        for form in ["gdb", "openocd", "pyocd", "jlink"] {
            let file = folder.join(form).with_extension("log");
            let (status, found) = of_log(&file, &folder.join("program.elf"));
            let context = format!("{name} {form}: {found:#}");
            assert_eq!((status, &found["v"]), (0, &1.into()), "{context}");
            assert_eq!(found["fault"]["number"], expected["fault"]["number"], "{context}");
            let fields = |status: &Value| {
                status["fields"].as_array().map(|fields| fields.iter().map(Value::to_string).collect::<Vec<_>>())
            };
            let registers = found["fault"]["status"].as_array().unwrap();
            let wanted = expected["status"].as_object().unwrap();
            assert_eq!(registers.len(), wanted.len(), "{context}");
            for register in registers {
                let wanted = &wanted[register["name"].as_str().unwrap()];
                let value = format!("0x{:08x}", wanted["value"].as_u64().unwrap());
                assert_eq!(register["value"], value, "{context}");
                assert_eq!(fields(register), fields(wanted).or(Some(Vec::new())), "{context}");
            }
            for field in ["address", "function", "line"] {
                assert_eq!(found["at"][field], expected["at"][field], "{context}");
            }
            assert_eq!(found["cause"]["kind"], expected["cause"], "{context}");
            assert!(!found["cause"]["proof"].as_array().unwrap().is_empty(), "{context}");
            assert_eq!(found["registers"], expected["registers"], "{context}");
            let stack = expected["stack"].as_array().unwrap();
            let wanted = stack.iter().map(|function| function.as_str().unwrap()).collect::<Vec<_>>();
            let tail = functions(&found).split_off(wanted.len());
            assert_eq!(functions(&found)[..wanted.len()], wanted, "{context}");
            assert!(tail.is_empty() || !wanted.is_empty() && tail == ["Reset_Handler"], "{context}");
            for empty in ["path", "last"] {
                assert_eq!(found[empty], Value::Array(Vec::new()), "{context}");
            }
            assert!(missing(&found).contains(&"trace"), "{context}");
        }
    }
}

/// The same crashes with and without their trace. A branch to a bad address has no instruction whose registers prove it.
#[test]
fn a_crash_is_the_same_as_with_its_trace_but_for_what_the_trace_alone_proves() {
    let others = ["m4-thread-divide", "m4-thread-bus-fault", "m4-thread-undefined", "m4-handler-return"];
    let recorded = SCENARIOS.map(|(name, ..)| name).into_iter().chain(others);
    let mut proven = 0;
    for name in recorded.filter(|name| !name.ends_with("watchdog")) {
        let traced = crash(&arguments(name));
        let (status, found) = of_text(&untraced(name), &program(name));
        assert_eq!(status, 0, "{name}");
        for field in ["number", "status", "handler"] {
            assert_eq!(found["fault"][field], traced["fault"][field], "{name}: {found:#}");
        }
        for field in ["at", "registers", "registers_at"] {
            assert_eq!(found[field], traced[field], "{name}: {found:#}");
        }
        let (stack, whole) = (functions(&found), functions(&traced));
        assert_eq!(stack, whole[..stack.len()], "{name}: {found:#}");
        let cause = found["cause"]["kind"].as_str();
        let needs_trace = ["bad_pointer", "corrupted_return", "stack_overflow"];
        if needs_trace.contains(&traced["cause"]["kind"].as_str().unwrap()) {
            assert!(matches!(cause, None | Some("prefetch_abort")), "{name}: {found:#}");
            assert!(stack.is_empty(), "{name}: lr may be older than the branch: {stack:?}");
        } else {
            assert_eq!(found["cause"]["kind"], traced["cause"]["kind"], "{name}: {found:#}");
            let is_short = stack.len() < 2;
            assert!(!is_short || missing(&found).contains(&"stack") || whole.len() == 1, "{name}: {found:#}");
            proven += 1;
        }
        let truth = Truth::read(name);
        found["cause"]["proof"].as_array().into_iter().flatten().for_each(|entry| truth.check(entry));
    }
    assert_eq!(proven, 18);
}

/// The processor ran on in the handler, or the image is another program: the words at the stack pointer may be anything.
#[test]
fn without_the_handlers_first_instruction_there_are_no_stacked_registers() {
    let name = "m3-divide";
    let text = untraced(name);
    let later = text.replace("pc             0xe8 ", "pc             0xea ");
    let changed = text.replacen("r1  ", "r1             0x7                 7\nx  ", 1);
    // A thread's frame is not on the main stack, and the thread's stack pointer was not printed.
    let process = text.replace("0xfffffff9", "0xfffffffd");
    for (what, text) in [("later", later), ("changed", changed), ("process", process)] {
        assert_ne!(text, untraced(name), "{what}");
        let (status, found) = of_text(&text, &program(name));
        assert_eq!((status, &found["fault"]["number"]), (0, &3.into()), "{what}: {found:#}");
        for field in ["at", "registers", "cause"] {
            assert_eq!(found[field], Value::Null, "{what}: {found:#}");
        }
        assert!(functions(&found).is_empty() && missing(&found).contains(&"frame"), "{what}: {found:#}");
    }
}

/// A frame that was not stored completely is none, whatever the words are.
#[test]
fn errors_of_stacking_leave_no_stacked_registers() {
    for flag in [1 << 4, 1 << 5, 1 << 12, 1 << 13] {
        let text = with_word(&untraced("m3-divide"), CFSR, |status| status | flag);
        let (_, found) = of_text(&text, &program("m3-divide"));
        assert_eq!((&found["registers"], &found["cause"]), (&Value::Null, &Value::Null), "{found:#}");
        assert!(missing(&found).contains(&"not_stacked"), "{found:#}");
    }
}

/// Flags stay set until software clears them. BFAR's is the address of an older fault.
#[test]
fn older_flags_are_not_held_against_the_instruction() {
    const IMPRECISERR: u32 = 1 << 10;
    for older in [0x8200, 1 << 24, 1 << 16, 0x82] {
        let text = with_word(&untraced("m3-divide"), CFSR, |status| status | older);
        let (_, found) = of_text(&text, &program("m3-divide"));
        assert_eq!(found["cause"]["kind"], "divide_by_zero", "{older:x}: {found:#}");
        // Only the older one is left: the division did not do it.
        let text = with_word(&untraced("m3-divide"), CFSR, |_| older);
        let (_, found) = of_text(&text, &program("m3-divide"));
        assert_eq!(found["cause"], Value::Null, "{older:x}: {found:#}");
    }
    let text = with_word(&untraced("m3-bus-fault"), CFSR, |_| IMPRECISERR);
    let (_, found) = of_text(&text, &program("m3-bus-fault"));
    assert_eq!((&found["cause"], &found["at"]["line"]), (&Value::Null, &133.into()), "{found:#}");
}

/// GDB stops where RAM ends. Each line fewer leaves the same functions, or fewer.
#[test]
fn a_stack_that_was_printed_in_part_or_twice_has_the_functions_that_it_shows() {
    let name = "m4-thread-divide";
    let text = untraced(name);
    let whole = of_text(&text, &program(name)).1;
    let whole = functions(&whole);
    assert_eq!(whole, ["period", "thread", "main"]);
    let printed = text.lines().filter(|line| line.starts_with("0x2000")).collect::<Vec<_>>();
    let twice = format!("{text}{}\n", printed.join("\n"));
    assert_eq!(functions(&of_text(&twice, &program(name)).1), whole);
    let mut depths = Vec::new();
    for kept in 0..printed.len() {
        let is_kept = |line: &&str| printed.iter().position(|known| known == line).is_none_or(|at| at < kept);
        let text = text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect::<String>();
        let (_, found) = of_text(&text, &program(name));
        let stack = functions(&found);
        assert_eq!(stack, whole[..stack.len()], "{kept}: {found:#}");
        assert_eq!(found["registers"].is_null(), stack.is_empty(), "{kept}: {found:#}");
        depths.push(stack.len());
    }
    assert!(depths.is_sorted() && depths[0] == 0 && depths.contains(&3), "{depths:?}");
}

/// The fault was in the handler of an interrupt, over code with floating-point registers: the recorded one, but at the instruction after
/// the return that went wrong. The functions outside of it are the trace's.
#[test]
fn the_stack_goes_on_through_an_exception() {
    let name = "m4-handler-return";
    let traced = crash(&arguments(name));
    assert_eq!(functions(&traced), ["label", "Device_Handler", "main", "Reset_Handler"]);
    let counter = u32::from_str_radix(&traced["registers_at"].as_str().unwrap()[2..], 16).unwrap() + 24;
    // The instruction after the call of `label`, by the program's listing.
    let text = with_word(&untraced(name), counter, |_| 0x18e);
    let (_, found) = of_text(&text, &program(name));
    assert_eq!(functions(&found), functions(&traced)[1..], "{found:#}");
    for (frame, other) in found["stack"].as_array().unwrap().iter().zip(&traced["stack"].as_array().unwrap()[1..]) {
        assert_eq!(frame["handles"]["number"], other["handles"]["number"], "{found:#}");
    }
    assert_eq!(found["stack"][0]["handles"]["number"], 16, "{found:#}");
    assert_eq!(found["stack"][1]["at"], traced["stack"][2]["at"], "{found:#}");
}

/// The log has code, and it is not the image's; then it is.
#[test]
fn code_in_the_log_is_compared_with_the_image() {
    let name = "m3-divide";
    // The division in `average`, by the program's listing.
    let code = "0x00000154:\t0xf0f1fbb0\n";
    let (_, found) = of_text(&untraced(name), &program(name));
    assert!(missing(&found).contains(&"program"), "{found:#}");
    let (_, found) = of_text(&(untraced(name) + code), &program(name));
    assert!(found["doubts"] == serde_json::json!([]) && !missing(&found).contains(&"program"), "{found:#}");
    let (status, found) = of_text(&(untraced(name) + &code.replace("f0f1", "f0f2")), &program(name));
    assert_eq!((status, &found["doubts"][0]["kind"]), (0, &"other_program".into()), "{found:#}");
    assert_eq!((&found["cause"], &found["at"]["function"]), (&Value::Null, &Value::Null), "{found:#}");
    assert!(functions(&found).is_empty(), "{found:#}");
}

/// The recorded programs before the crash: in a thread, or in the handler of an interrupt.
#[test]
fn a_processor_without_a_fault_has_no_crash() {
    for (name, number) in [("m3-divide", 0), ("m3-divide", 15), ("m3-missing-handler", 22), ("m0-divide", 0)] {
        let text = untraced(name);
        let line = text.lines().find(|line| line.starts_with("xpsr")).unwrap();
        let text = text.replace(line, &format!("xpsr           0x{:x}    0", 0x0100_0000 + number));
        let (status, found) = of_text(&text, &program(name));
        // Interrupts 21 and 22 share their handler.
        let is_shared = number == 22;
        assert_eq!((status == 0, found["fault"].is_null()), (is_shared, !is_shared), "{name}: {found:#}");
        if !is_shared {
            assert_eq!((status, &found["cause"], &found["stack"]), (1, &Value::Null, &Value::Array(Vec::new())));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crash.log");
    std::fs::write(&file, "0x20000000:\t0x00000001\n").unwrap();
    assert_eq!(run(["crash".into(), file]).status, 2, "memory alone");
}

/// Other commands need the trace.
#[test]
fn only_crash_answers_without_a_trace() {
    let (_folder, file) = log("m3-divide", |line| !is_trace(line));
    for command in ["flow", "calls", "coverage", "profile"] {
        let arguments = [command.into(), file.clone(), "--image".into(), program("m3-divide")];
        assert_eq!(run::<PathBuf>(arguments).status, 2, "{command}");
    }
    let table = ["crash".into(), file, "--image".into(), program("m3-divide")];
    let csv = run::<PathBuf>(table.into_iter().chain(["--format=csv".into(), "--table=stack".into()]));
    assert_eq!((csv.status, csv.stdout.lines().count()), (0, 4), "{}", csv.stdout);
}
