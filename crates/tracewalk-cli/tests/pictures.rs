//! The documentation's pictures, drawn again and compared (tests/pictures/draw.py). The environment variable
//! `PICTURES=overwrite` replaces them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::python::python;
use crate::support::{example, tracewalk};

/// Letters have different edges on other machines; a moved span or rectangle changes more.
const SAME: f64 = 0.002;

fn pictures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures")
}

/// The command's picture of an example. The description is given without a folder, which the title would show.
fn drawn(name: &str, arguments: &[&str]) -> Vec<u8> {
    let output = tracewalk()
        .current_dir(example(name))
        .args([arguments, &["--quiet", "capture.toml"]].concat())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn flame_graph(name: &str) -> Vec<u8> {
    drawn(name, &["profile", "--format", "flamegraph"])
}

fn timeline(from: &str, to: &str) -> Vec<u8> {
    drawn("m3-etmv3", &["timeline", "--from", from, "--to", to, "--format", "perfetto"])
}

/// Draws these files in Chromium into `folder`. Returns the part of each committed picture that looks different.
fn differences(python: &Path, folder: &Path, graph: &[u8], timeline: &[u8]) -> [f64; 2] {
    let (graph_file, timeline_file) = (folder.join("flamegraph.svg"), folder.join("timeline.pftrace"));
    std::fs::write(&graph_file, graph).unwrap();
    std::fs::write(&timeline_file, timeline).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pictures/draw.py");
    let mut command = Command::new(python);
    command.arg(script).arg("chromium").args([&graph_file, &timeline_file]).arg(folder).arg(pictures());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    NAMES.map(|name| found[name].as_f64().unwrap())
}

const NAMES: [&str; 2] = ["flamegraph.png", "timeline-in-perfetto.png"];

const AGAIN: &str = "draw it again: PICTURES=overwrite cargo test -p tracewalk-cli --test all pictures:: -- --include-ignored";

fn overwrite() -> bool {
    std::env::var_os("PICTURES").is_some_and(|value| value == "overwrite")
}

#[test]
fn the_documentations_flame_graph_is_what_is_drawn() {
    let graph = flame_graph("a7-etmv3");
    let file = pictures().join("flamegraph.svg");
    if overwrite() {
        std::fs::write(&file, &graph).unwrap();
    }
    assert!(std::fs::read(&file).unwrap() == graph, "flamegraph.svg is not what is drawn; {AGAIN}");
}

#[test]
#[ignore = "needs chromium and the Python packages"]
fn the_documentations_pictures_are_what_is_drawn() {
    let python = python();
    let folder = tempfile::tempdir().unwrap();
    let found = differences(&python, folder.path(), &flame_graph("a7-etmv3"), &timeline("4800", "6200"));
    for (name, different) in NAMES.into_iter().zip(found) {
        if overwrite() {
            std::fs::copy(folder.path().join(name), pictures().join(name)).unwrap();
        } else {
            assert!(different < SAME, "{:.2}% of {name} is not what is drawn; {AGAIN}", different * 100.0);
        }
    }
}

/// The comparison detects other pictures: of another program, and of the same one a little later.
#[test]
#[ignore = "needs chromium and the Python packages"]
fn pictures_of_something_else_look_different() {
    let python = python();
    let folder = tempfile::tempdir().unwrap();
    let found = differences(&python, folder.path(), &flame_graph("a15-pft"), &timeline("4830", "6200"));
    for (name, different) in NAMES.into_iter().zip(found) {
        assert!(different > 2.0 * SAME, "{:.2}% of {name} is different", different * 100.0);
    }
}
