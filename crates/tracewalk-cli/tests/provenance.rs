//! `--provenance`: the inputs of a result, the same on every run.

use std::path::Path;
use std::process::Command;

use crate::support::{example, run, run_with_kinds};
use serde_json::Value;

/// Runs a command with `--provenance`, and reads the document.
fn provenance(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let file = folder.join("provenance.json");
    let option = format!("--provenance={}", file.display());
    let outcome = run(arguments.iter().copied().chain([option.as_str()]));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{error}: {}", outcome.stderr));
    (outcome.status, text)
}

fn sha256_by_another(file: &Path) -> String {
    let output = Command::new("sha256sum").arg(file).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned()
}

#[test]
fn the_same_inputs_give_the_same_bytes_on_every_run_thread_count_and_folder() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["m3-etmv3", "a15-pft"] {
        let capture = example(name).join("capture.toml");
        // A copy in another folder.
        let copy = folder.path().join(name);
        std::fs::create_dir(&copy).unwrap();
        for file in std::fs::read_dir(example(name)).unwrap() {
            let file = file.unwrap().path();
            std::fs::copy(&file, copy.join(file.file_name().unwrap())).unwrap();
        }
        let copied = copy.join("capture.toml");
        for command in [&["flow", "--format", "runs"][..], &["coverage", "--format", "json"], &["packets"]] {
            let mut all = Vec::new();
            for capture in [&capture, &copied] {
                for threads in ["1", "2", "7", "7"] {
                    let mut arguments = vec![command[0], capture.to_str().unwrap(), "--threads", threads];
                    arguments.extend(&command[1..]);
                    all.push(provenance(folder.path(), &arguments));
                }
            }
            assert!(all.iter().all(|one| *one == all[0]), "{command:?}: {all:#?}");
        }
    }
}

#[test]
#[ignore = "needs sha256sum"]
fn inputs_and_results_have_the_hashes_that_another_program_finds() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("coverage.json");
    let outcome = run([
        "coverage",
        example("m3-etmv3/capture.toml").to_str().unwrap(),
        "--format=json",
        "-o",
        result.to_str().unwrap(),
        "--provenance",
    ]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let beside = folder.path().join("coverage.json.provenance.json");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(beside).unwrap()).unwrap();
    let files = document["inputs"].as_array().unwrap();
    let names = files.iter().map(|file| (file["role"].as_str().unwrap(), file["name"].as_str().unwrap()));
    let expected = [("description", "capture.toml"), ("capture", "trace.bin"), ("image", "m3.elf")];
    assert_eq!(names.collect::<Vec<_>>(), expected);
    for file in files {
        let name = file["name"].as_str().unwrap();
        assert_eq!(file["sha256"], sha256_by_another(&example("m3-etmv3").join(name)), "{name}");
    }
    assert_eq!(document["results"][0]["name"], "coverage.json");
    assert_eq!(document["results"][0]["sha256"], sha256_by_another(&result));
    assert_eq!(document["tool"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(document["command"], "coverage");
}

#[test]
fn what_was_lost_and_what_was_not_observed_stand_with_place_and_size() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = std::fs::read(example("a15-pft/trace.bin")).unwrap();
    let middle = bytes.len() / 2 / 16 * 16;
    bytes.drain(middle..middle + 160);
    let capture = folder.path().join("trace.bin");
    std::fs::write(&capture, bytes).unwrap();
    let arguments = ["flow", capture.to_str().unwrap(), "--format", "runs"];
    let (status, text) = provenance(folder.path(), &arguments);
    assert_eq!(status, 2);
    let document: Value = serde_json::from_str(&text).unwrap();
    let source = &document["sources"][0];
    assert!(source["source"].as_str().unwrap().contains("pft"), "what was inferred is reported: {text}");
    let no_code = &source["unobserved"]["no_code"];
    assert!(no_code["count"].as_u64().unwrap() > 0, "there is no image: {text}");
    assert!(no_code["places"][0]["offset"].is_u64() && no_code["places"][0]["message"].is_string(), "{text}");
}

#[test]
fn what_was_merged_stands_with_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let [a, b, all] = ["a.twcov", "b.twcov", "all.twcov"].map(file);
    let capture = example("m3-etmv3/capture.toml");
    for saved in [&a, &b] {
        assert_eq!(run(["coverage", capture.to_str().unwrap(), "--save", saved]).status, 0);
    }
    let (status, text) = provenance(folder.path(), &["coverage", &a, &b, "--save", &all]);
    assert_eq!(status, 0, "{text}");
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["command"], "coverage");
    let inputs = document["inputs"].as_array().unwrap();
    assert_eq!(inputs.len(), 2, "{text}");
    assert!(inputs.iter().all(|input| input["role"] == "saved" && input["sha256"].is_string()), "{text}");
    assert_eq!(document["results"][0]["name"], "all.twcov");
    let sources = document["sources"].as_array().unwrap();
    assert!(sources.iter().all(|source| source["saved"].is_string()), "nothing was decoded: {text}");
    assert_eq!(provenance(folder.path(), &["coverage", &a, &b, "--save", &all]).1, text);
}

/// A capture whose trace is cut in the middle of a packet.
#[test]
fn a_report_from_a_saved_file_states_its_losses_and_its_program() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let [trace, saved] = ["trace.bin", "cut.twcov"].map(file);
    let bytes = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
    std::fs::write(&trace, &bytes[..bytes.len() - 16]).unwrap();
    let elf = example("m3-etmv3/m3.elf");
    let image = ["--image", elf.to_str().unwrap()];
    let source = ["--container", "frames", "--source", "0x10=etmv3,cpu=cortex-m3", "--quiet"];
    let capture = [&["coverage", trace.as_str()], &source[..], &image].concat();
    let document = |arguments: &[&str]| {
        let text = provenance(folder.path(), arguments).1;
        assert_eq!(provenance(folder.path(), arguments).1, text, "the same bytes");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let direct = document(&capture);
    assert_eq!(run(capture.iter().chain(&["--save", &saved])).status, 2);
    let report = document(&[&["coverage", &saved][..], &image].concat());
    let of = |document: &Value, role: &str| {
        let inputs = document["inputs"].as_array().unwrap().iter();
        inputs.filter(|input| input["role"] == role).cloned().collect::<Vec<_>>()
    };
    assert_eq!(of(&report, "image"), of(&direct, "image"));
    assert_eq!((of(&report, "image").len(), of(&report, "saved").len()), (1, 1), "{report}");
    let (source, traced) = (&report["sources"][0], &direct["sources"][0]);
    for field in ["id", "protocol", "bytes", "instructions", "buffer"] {
        assert_eq!(source[field], traced[field], "{field}: {report}");
    }
    assert_eq!(source["saved"], "cut.twcov");
    assert_eq!(
        source["lost"]["trace_lost"]["count"], traced["unobserved"]["trace_lost"]["count"],
        "{direct}"
    );
    assert_eq!(source["lost"].as_object().unwrap().len(), 1, "{report}");
}

#[test]
fn both_sides_of_a_comparison_stand_with_what_they_lost() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    for file in std::fs::read_dir(example("m3-etmv3")).unwrap() {
        let file = file.unwrap().path();
        std::fs::copy(&file, other.join(file.file_name().unwrap())).unwrap();
    }
    let mut bytes = std::fs::read(other.join("trace.bin")).unwrap();
    bytes[3000] ^= 0x10;
    std::fs::write(other.join("trace.bin"), bytes).unwrap();
    let [sound, damaged] = [example("m3-etmv3"), other].map(|folder| folder.join("capture.toml"));
    let arguments = ["diff", sound.to_str().unwrap(), damaged.to_str().unwrap()];
    let (status, text) = provenance(folder.path(), &arguments);
    assert_eq!(status, 2, "{text}");
    let document: Value = serde_json::from_str(&text).unwrap();
    let captures = document["inputs"].as_array().unwrap().iter().filter(|input| input["role"] == "capture");
    let hashes = captures.map(|capture| capture["sha256"].clone()).collect::<Vec<_>>();
    assert!(hashes.len() == 2 && hashes[0] != hashes[1], "{text}");
    let [sound, damaged] = [0, 1].map(|index| &document["sources"][index]["unobserved"]);
    assert!(sound.as_object().unwrap().is_empty(), "{text}");
    assert_eq!(damaged["in_doubt"]["count"], 1, "{text}");
    assert_eq!(provenance(folder.path(), &arguments).1, text);
}

#[test]
#[ignore = "needs the Python packages"]
fn it_is_valid_by_its_schema() {
    let python = crate::support::python::python();
    let folder = tempfile::tempdir().unwrap();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/provenance-1.schema.json");
    let capture = example("m3-etmv3/capture.toml");
    let mut files = Vec::new();
    for (number, command) in
        ["flow", "packets", "calls", "profile", "timeline", "interrupts"].iter().enumerate()
    {
        let (_, text) = provenance(folder.path(), &[command, capture.to_str().unwrap()]);
        let file = folder.path().join(format!("{number}.json"));
        std::fs::write(&file, text).unwrap();
        files.push(file);
    }
    let saved = folder.path().join("run.twcov");
    let text = provenance(
        folder.path(),
        &["coverage", capture.to_str().unwrap(), "--save", saved.to_str().unwrap()],
    )
    .1;
    let image = example("m3-etmv3/m3.elf");
    let report = ["coverage", saved.to_str().unwrap(), "--image", image.to_str().unwrap()];
    for (name, text) in [("saving.json", text), ("saved.json", provenance(folder.path(), &report).1)] {
        std::fs::write(folder.path().join(name), text).unwrap();
        files.push(folder.path().join(name));
    }
    let script = "import json, sys, jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
for file in sys.argv[2:]:
    jsonschema.validate(json.load(open(file)), schema)";
    let output = Command::new(python).args(["-c", script]).arg(schema).args(files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_of_a_part_of_the_capture_is_not_complete() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("long.bin");
    std::fs::write(&capture, std::fs::read(example("m3-etmv3/trace.bin")).unwrap().repeat(120)).unwrap();
    let program = example("m3-etmv3/m3.elf");
    let cut = |memory: &str| {
        let arguments = ["flow", capture.to_str().unwrap(), "--image", program.to_str().unwrap(), "--stats"];
        let last = ["--format", "runs", "--last", "100000000", "--memory", memory];
        let file = folder.path().join("provenance.json");
        let option = format!("--provenance={}", file.display());
        let outcome = run(arguments.iter().chain(&last).copied().chain([option.as_str()]));
        let statistics = outcome.stderr.lines().rfind(|line| line.starts_with('{')).unwrap();
        let statistics: Value = serde_json::from_str(statistics).unwrap();
        let document: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        assert_eq!(document["complete"], statistics["complete"], "{}", outcome.stderr);
        (outcome.status, document)
    };
    let (status, whole) = cut("1G");
    assert_eq!((status, whole["complete"].as_bool()), (0, Some(true)));
    assert!(whole["sources"][0].get("decoded_bytes").is_none());
    let (status, part) = cut("32M");
    assert_eq!((status, part["complete"].as_bool()), (2, Some(false)));
    let decoded = part["sources"][0]["decoded_bytes"].as_u64().unwrap();
    assert!(decoded > 0 && decoded < part["buffers"][0]["bytes"].as_u64().unwrap(), "{part}");
    let [part, whole] = [part, whole].map(|document| document["sources"][0]["bytes"].as_u64().unwrap());
    assert!(part < whole);
}

#[cfg(target_os = "linux")]
#[test]
fn a_capture_that_was_interrupted_is_not_complete_wherever_the_result_goes() {
    use std::io::Write as _;
    use std::process::Stdio;

    let folder = tempfile::tempdir().unwrap();
    let trace = std::fs::read(example("m3-etmv3/trace.bin")).unwrap().repeat(40);
    assert!(trace.len() > 1 << 17, "more than a pipe holds");
    for (command, interrupt) in [("coverage", true), ("interrupts", true), ("coverage", false)] {
        let result = folder.path().join("result.json");
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("tracewalk"))
            .args([command, "-", "--format", "json", "--provenance", "--image"])
            .arg(example("m3-etmv3/m3.elf"))
            .arg("-o")
            .arg(&result)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(&trace).unwrap();
        if interrupt {
            std::thread::sleep(std::time::Duration::from_millis(300));
            let id = child.id().to_string();
            assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        } else {
            drop(pipe);
        }
        child.wait().unwrap();
        let read = |file: &Path| serde_json::from_slice::<Value>(&std::fs::read(file).unwrap()).unwrap();
        let document = read(&folder.path().join("result.json.provenance.json"));
        assert_eq!(document["complete"], !interrupt, "{command}: {document}");
        // The result's own document has the field only if it is incomplete.
        assert_eq!(read(&result).get("complete").is_some(), interrupt, "{command}");
    }
}

#[test]
fn without_a_file_to_stand_beside_one_has_to_be_named() {
    let outcome =
        run_with_kinds(["flow", example("m3-etmv3/capture.toml").to_str().unwrap(), "--provenance"]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.stderr.contains("error: provenance_without_result"), "{}", outcome.stderr);
}
