//! STM trace: Linux's messages, packets, damage.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::support::{corpus, run, run_with_notices};

/// The captures, and the number of function calls in each.
const CAPTURES: [(&str, usize); 2] = [("stm_only-2", 38), ("stm-issue-27", 0)];

fn objects(text: &str) -> Vec<Map<String, Value>> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn snapshot(name: &str) -> (PathBuf, Value) {
    let folder = corpus("stm").join(name);
    let mut text = String::new();
    let packed = fs::File::open(folder.join("expected.json.gz")).unwrap();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    (folder.join("snapshot.ini"), serde_json::from_str(&text).unwrap())
}

/// The objects, with only the fields that `expected` has; a field that is null may be absent.
fn assert_same(found: &[Map<String, Value>], expected: &Value, name: &str) {
    let expected = expected.as_array().unwrap();
    assert_eq!(found.len(), expected.len(), "{name}");
    for (found, expected) in found.iter().zip(expected) {
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(found.get(field).unwrap_or(&Value::Null), value, "{name}: {field} of {found:?}");
        }
    }
}

#[tracewalk_corpus::test]
fn packets_and_data_of_snapshots_are_those_expected() {
    for (name, calls) in CAPTURES {
        let (file, expected) = snapshot(name);
        let file = file.to_str().unwrap();
        let id = expected["trace_id"].as_str().unwrap();
        let packets = run(["packets", file, "--id", id, "--format", "jsonl"]);
        assert_eq!(packets.status, 0, "{}", packets.stderr);
        let mut found = objects(&packets.stdout);
        // The end of the buffer cuts a packet, which OpenCSD lists, and the expected packets do not.
        found.pop_if(|last| last["packet"] == "incomplete");
        assert_same(&found, &expected["packets"], name);
        let data = run(["stm", file, "--format", "jsonl"]);
        assert_eq!(data.status, 0, "{}", data.stderr);
        let (events, data): (Vec<_>, Vec<_>) =
            objects(&data.stdout).into_iter().partition(|object| object.contains_key("event"));
        assert_same(&data, &expected["items"], name);
        assert_eq!(events.iter().filter(|object| object["event"] == "function").count(), calls, "{name}");
        let info = run(["info", file]);
        assert!(info.status == 0 && info.stdout.contains(", stm"), "{}{}", info.stdout, info.stderr);
    }
}

#[tracewalk_corpus::test]
fn functions_that_a_kernel_reported_have_the_names_of_its_list() {
    let (file, _) = snapshot("stm_only-2");
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("kallsyms");
    fs::write(&list, "ffffffc000224700 T caller\nffffffc000359ff8 T function\nffffffc00035a010 T other\n").unwrap();
    let [file, list] = [&*file, &*list].map(|path| path.to_str().unwrap());
    let text = run(["itm", file, "--kallsyms", list]);
    assert_eq!(text.status, 0, "{}", text.stderr);
    assert!(text.stdout.contains("       229754804078   65     0  function <- caller+0x100\n"), "{}", text.stdout);
    let unnamed = run(["itm", file]).stdout;
    assert!(unnamed.contains("0xffffffc000359ff8 <- 0xffffffc000224800\n"), "{unnamed}");
    // Data before the first message is no part of one.
    assert!(unnamed.contains("0xffffffc0\n"), "{unnamed}");
    let objects = objects(&run(["stm", file, "--kallsyms", list, "--format", "jsonl"]).stdout);
    let call = objects.iter().find(|object| object.get("event").is_some_and(|event| event == "function"));
    assert_eq!(call.unwrap()["caller_name"], "caller");
}

/// Runs a command on a vector's bytes.
fn vector(folder: &Path, id: &str, arguments: [&str; 3]) -> (i32, Vec<String>, String) {
    let text = fs::read_to_string(corpus("stm/vectors.json")).unwrap();
    let vectors: Value = serde_json::from_str(&text).unwrap();
    let vector = vectors["vectors"].as_array().unwrap().iter().find(|vector| vector["id"] == id).unwrap();
    let digits = vector["bytes"].as_str().unwrap();
    let bytes = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap());
    let file = folder.join("trace.bin");
    fs::write(&file, bytes.collect::<Vec<_>>()).unwrap();
    let [command, rest @ ..] = arguments;
    let options = ["--container", "raw", "--source", "stm"];
    let all = [&[command, file.to_str().unwrap()][..], &rest, &options].concat();
    let (outcome, kinds) = run_with_notices(all);
    (outcome.status, kinds.0, outcome.stdout)
}

#[tracewalk_corpus::test]
fn damage_and_lost_writes_give_status_2_and_a_cut_packet_does_not() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["stm", "packets", "info"] {
        let format = ["--format", if command == "info" { "text" } else { "jsonl" }];
        let run = |id| vector(folder.path(), id, [command, format[0], format[1]]);
        let (status, kinds, _) = run("P01");
        assert_eq!(status, 0, "{command}: {kinds:?}");
        let (status, kinds, out) = run("P27");
        assert!(status == 0 && !out.contains("malformed\""), "{command}: {kinds:?} {out}");
        for damaged in ["P24", "P25", "P26"] {
            let (status, kinds, _) = run(damaged);
            assert!(status == 2 && kinds.iter().any(|kind| kind.contains("malformed")), "{command}: {kinds:?}");
        }
        for lost in ["P15", "P16"] {
            let (status, kinds, _) = run(lost);
            assert!(status == 2 && kinds.iter().any(|kind| kind == "stm_lost"), "{command}: {kinds:?}");
        }
    }
}

#[tracewalk_corpus::test]
fn a_description_of_a_snapshot_opens_the_same_stm() {
    let (file, _) = snapshot("stm-issue-27");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("stuck_trace.bin");
    fs::copy(file.with_file_name("stuck_trace.bin"), &copy).unwrap();
    let described = run(["describe", file.to_str().unwrap()]);
    assert!(described.status == 0 && described.stdout.contains("protocol = \"stm\""), "{}{}", described.stdout, described.stderr);
    let description = folder.path().join("capture.toml");
    fs::write(&description, described.stdout).unwrap();
    let read = |file: &Path| run(["stm", file.to_str().unwrap(), "--format", "jsonl"]).stdout;
    assert_eq!(read(&description), read(&file));
}
