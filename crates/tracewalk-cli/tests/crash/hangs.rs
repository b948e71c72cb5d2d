//! Programs that go on no more although nothing faulted, recorded in an emulator, and programs that only seem so.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::truth::{Truth, crashes, program};
use super::{generated, json, stated};

/// The kind of a cause with the line of its place and that of the call.
type Cause = (&'static str, u64, Option<u64>);

/// Each program's name with its cause, by `crash/hang.c`.
const PROGRAMS: [(&str, Option<Cause>); 8] = [
    ("wait", Some(("waiting", 57, None))),
    ("wait-with-ticks", Some(("waiting", 57, None))),
    ("wait-for-device", None),
    ("timeout", None),
    ("ticks", None),
    ("idle", None),
    ("assertion", Some(("stopped", 88, Some(102)))),
    ("breakpoint", Some(("stopped", 96, Some(109)))),
];

fn log(name: &str) -> PathBuf {
    crashes().join("../hangs").join(name).with_extension("log")
}

/// What these arguments print of a program, with the status.
fn crash(arguments: &[PathBuf]) -> (i32, Value) {
    let (outcome, document) = json(arguments);
    (outcome.status, document)
}

/// Checks a document against what is expected of a program. What the trace of an MTB does not show is unknown.
fn check(name: &str, (status, document): &(i32, Value), is_short: bool) {
    let (_, expected) = PROGRAMS.iter().find(|(kind, _)| name.ends_with(&format!("-{kind}"))).unwrap();
    let cause = &document["cause"];
    let Some((kind, line, call)) = expected else {
        assert_eq!((*status, cause), (1, &Value::Null), "{name}: {document:#}");
        return;
    };
    assert_eq!((*status, cause["kind"].as_str()), (0, Some(*kind)), "{name}: {document:#}");
    assert_eq!((&cause["at"]["line"], &document["fault"]), (&(*line).into(), &Value::Null), "{name}: {cause:#}");
    match kind {
        &"waiting" => {
            let waited = &cause["waits_for"][0];
            assert_eq!((&waited["name"], &waited["device"]), (&"sensor_ready".into(), &false.into()), "{name}");
            // `main` stores it before anything else.
            let stored = waited["stored_by"]["function"].as_str();
            assert_eq!(stored, (!is_short).then_some("main"), "{name}: {waited:#}");
        }
        _ if is_short && name.ends_with("assertion") => {}
        _ => {
            assert_eq!(cause["called_from"]["line"].as_u64(), *call, "{name}: {cause:#}");
            assert_eq!(document["stack"][1]["at"]["line"].as_u64(), *call, "{name}: {document:#}");
        }
    }
    let truth = Truth::of(name, &log(name));
    cause["proof"].as_array().unwrap().iter().for_each(|entry| truth.check(entry));
}

/// Makes the traces of the Cortex-M3's programs in both protocols.
fn each_trace(mut each: impl FnMut(&str, &str, &Path)) {
    let folder = tempfile::tempdir().unwrap();
    for (kind, _) in PROGRAMS {
        let name = format!("m3-{kind}");
        for unit in ["etmv3,cpu=cortex-m3", "etmv4,cpu=cortex-m33"] {
            each(&name, unit, &generated(folder.path(), &name, unit));
        }
    }
}

#[test]
fn a_program_that_goes_on_no_more_has_a_cause_and_one_that_only_waits_has_none() {
    each_trace(|name, unit, capture| {
        let capture = capture.join("capture.toml");
        // An ETMv4 trace ends with the last branch: the breakpoint after it is only in the log.
        let is_shown = name != "m3-breakpoint" || unit.starts_with("etmv3");
        let alone = crash(&["crash".into(), capture.clone()]);
        if is_shown {
            check(name, &alone, false);
        } else {
            assert_eq!(alone.1["cause"], Value::Null, "{name}: {:#}", alone.1);
        }
        check(name, &crash(&["crash".into(), capture, "--dump".into(), log(name)]), false);
    });
    // The buffer of `wait-with-ticks` ends with a return from an exception, after which the path cannot be joined to the log.
    for (kind, _) in PROGRAMS.into_iter().filter(|(kind, _)| *kind != "wait-with-ticks") {
        let name = format!("m0-{kind}");
        let document = crash(&["crash".into(), log(&name), "--image".into(), program(&name)]);
        check(&name, &document, kind != "breakpoint");
    }
}

/// A register of a device changes by itself, so that a loop over it is a statement and no cause.
#[test]
fn a_loop_over_a_device_is_stated() {
    each_trace(|name, _, capture| {
        let (_, document) = crash(&["crash".into(), capture.join("capture.toml")]);
        let polls = &document["polls"];
        assert_eq!(polls.is_object(), name == "m3-wait-for-device", "{name}: {document:#}");
        if polls.is_object() {
            // UART0's interrupt status (MPS2, AN385).
            assert_eq!(polls["waits_for"][0]["address"], "0x40004008", "{polls:#}");
        }
    });
}

#[test]
fn damage_makes_no_other_cause_of_a_program_that_goes_on_no_more() {
    let mut seed = 7_u32;
    each_trace(|name, _, capture| {
        let arguments = ["crash".into(), capture.join("capture.toml")];
        let (right, file) = (stated(&crash(&arguments).1), capture.join("trace.bin"));
        let whole = std::fs::read(&file).unwrap();
        for _ in 0..6 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let bit = seed as usize / 256 % (8 * whole.len());
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&file, damaged).unwrap();
            let found = stated(&crash(&arguments).1);
            assert!(found.is_none() || found == right, "{name} bit {bit}: {found:?}");
        }
        std::fs::write(&file, whole).unwrap();
    });
}
