//! Reports of crashes whose trace, program and registers contradict each other or are incomplete.

use std::path::PathBuf;

use serde_json::Value;

use super::truth::{crashes, program};
use super::{SCENARIOS, arguments, is_trace, json, log};
use crate::support::run;

/// The kinds of the reasons to doubt the end.
fn doubts(document: &Value) -> Vec<&str> {
    let doubts = document["doubts"].as_array().map_or(&[][..], Vec::as_slice);
    doubts.iter().map(|doubt| doubt["kind"].as_str().unwrap()).collect()
}

/// The document of an MTB's crash by another log.
fn of_log(name: &str, file: PathBuf) -> (i32, Value) {
    let (outcome, document) = json(&["crash".into(), file, "--image".into(), program(name)]);
    (outcome.status, document)
}

fn recorded(name: &str) -> String {
    std::fs::read_to_string(crashes().join(name).join("crash.log")).unwrap()
}

/// The document of an MTB's crash by its log with changes.
fn of_changed_log(name: &str, change: impl FnOnce(&str) -> String) -> (i32, Value) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crash.log");
    std::fs::write(&file, change(&recorded(name))).unwrap();
    of_log(name, file)
}

#[test]
fn a_recorded_crash_leaves_no_doubt() {
    for (name, ..) in SCENARIOS {
        let (_, document) = json(&arguments(name));
        assert_eq!(doubts(&document), Vec::<&str>::new(), "{name}: {document:#}");
        assert_eq!(document.get("trace_end"), None, "{name}");
    }
}

/// The emulator recorded each crash of the program apart: trace of one and registers of another cannot both be true. Two crashes
/// whose exceptions were taken at the same address cannot be distinguished.
#[test]
fn trace_of_one_crash_and_registers_of_another_are_doubted() {
    let names = SCENARIOS.map(|(name, ..)| name).into_iter().filter(|name| name.starts_with("m0"));
    // The watchdog's handler is not at its first instruction when the log of a fault is made, and has another exception.
    let names = names.filter(|name| !name.ends_with("watchdog") && !name.ends_with("handler"));
    let names = names.collect::<Vec<_>>();
    let whole = names.iter().map(|name| json(&arguments(name)).1).collect::<Vec<_>>();
    let folder = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for (traced, of_trace) in names.iter().zip(&whole) {
        for (halted, of_registers) in names.iter().zip(&whole) {
            let [trace, registers] = [(traced, true), (halted, false)].map(|(name, wanted)| {
                let text = recorded(name);
                let lines = text.lines().filter(|line| is_trace(line) == wanted);
                lines.map(|line| format!("{line}\n")).collect::<String>()
            });
            let file = folder.path().join("crash.log");
            std::fs::write(&file, trace + &registers).unwrap();
            let (_, document) = of_log(traced, file);
            let differ = of_trace["at"]["address"] != of_registers["at"]["address"];
            assert_eq!(
                doubts(&document) == ["stacked_elsewhere"],
                differ,
                "{traced}, {halted}: {document:#}"
            );
            if differ {
                let doubt = &document["doubts"][0];
                assert_eq!(doubt["traced"]["address"], of_trace["at"]["address"]);
                assert_eq!(doubt["stacked"]["address"], of_registers["at"]["address"]);
                compared += 1;
            }
        }
    }
    assert!(compared > 30, "{compared}");
}

/// The processor was halted in thread mode, in a function that the trace does not lead to.
#[test]
fn a_processor_that_was_halted_elsewhere_is_doubted() {
    let name = "m0-divide";
    let whole = json(&arguments(name)).1;
    // In the function `start_timer`, by the ELF file's symbols.
    let (_, document) = of_changed_log(name, |text| {
        let moved = text.lines().map(|line| match line.split_whitespace().next() {
            Some("pc") => "pc             0x134               0x134 <start_timer+4>",
            Some("xpsr" | "xPSR") => "xpsr           0x1000000           16777216",
            _ => line,
        });
        moved.map(|line| format!("{line}\n")).collect()
    });
    assert_eq!(doubts(&document), ["halted_elsewhere"], "{document:#}");
    let doubt = &document["doubts"][0];
    assert_eq!(doubt["halted"]["function"], "start_timer");
    assert_eq!(doubt["traced"]["address"], whole["fault"]["handler"]["address"]);
}

/// Without the newest packets the path ends before the fault. It is a part of the whole trace's path.
#[test]
fn what_is_known_before_missing_packets_is_shown() {
    let name = "m0-null-pointer";
    let missing = |line: &str| line.starts_with("0x20001280") || line.starts_with("0x20001290");
    let (_folder, file) = log(name, |line| !missing(line));
    let (status, document) = of_log(name, file.clone());
    assert_eq!((status, doubts(&document)), (2, vec!["incomplete"]), "{document:#}");
    assert_eq!(document["whole"], false);
    let end = &document["trace_end"];
    let functions = |stack: &Value| {
        let stack = stack.as_array().unwrap().iter();
        stack.map(|running| running["function"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(functions(&end["stack"]), ["count_call", "run_timers", "main"]);
    let whole = json(&arguments(name)).1;
    assert_eq!(functions(&whole["stack"]), ["run_timers", "main"]);
    assert!(!end["path"].as_array().unwrap().is_empty() && !end["last"].as_array().unwrap().is_empty());
    // The stacked registers need no trace, but only the trace has the place.
    assert_eq!((&document["registers"], &document["at"]), (&whole["registers"], &Value::Null));
    let text = run(["crash".into(), file, "--image".into(), program(name)]);
    for title in ["Fault", "Doubt", "Last path"] {
        assert!(text.stdout.lines().any(|line| line.starts_with(title)), "{title}: {}", text.stdout);
    }
}

#[test]
fn a_contradiction_is_in_the_report_with_the_path_before_it() {
    let name = "m0-null-pointer";
    // The pointer is ten packets too early, so that the newest packets are taken for the oldest ones.
    let (status, document) =
        of_changed_log(name, |text| text.replace("MTB_POSITION=0x0000029c", "MTB_POSITION=0x0000024c"));
    assert_eq!((status, doubts(&document)), (2, vec!["contradicted"]), "{document:#}");
    // The packet after the exception's.
    assert_eq!((&document["doubts"][0]["count"], &document["doubts"][0]["offset"]), (&1.into(), &664.into()));
    assert!(!document["trace_end"]["path"].as_array().unwrap().is_empty());
}

/// `flow` names the addresses that the trace alone proves.
#[test]
fn with_another_program_the_report_has_the_addresses_that_the_trace_proves() {
    for (name, other) in [("m0-null-pointer", "unproven-m0.elf"), ("m3-divide", "unproven-m3.elf")] {
        let mut arguments = arguments(name);
        let image = arguments.last_mut().unwrap();
        image.set_file_name(other);
        let (outcome, document) = json(&arguments);
        assert_eq!((outcome.status, doubts(&document)), (2, vec!["other_program"]), "{name}: {document:#}");
        let path = document["trace_end"]["path"].to_string();
        assert!(path.matches("\"no_code\"").count() > 4, "{name}: {path}");
        assert!(document["registers"].is_object(), "{name}: {document:#}");
        assert_eq!(document["cause"], Value::Null);
    }
}
