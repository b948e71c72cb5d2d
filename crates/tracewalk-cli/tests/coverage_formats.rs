//! Coverage in other tools' formats, through those tools.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::python::python;
use crate::support::{example, has, run, tracewalk};
use serde_json::Value;

const EXAMPLES: [&str; 4] = ["m3-etmv3", "a7-etmv3", "a15-pft", "m0-crash-mtb"];

fn sources() -> PathBuf {
    example("../firmware").canonicalize().unwrap()
}

/// The coverage of an example in this format, in a file.
fn report(folder: &Path, name: &str, format: &str) -> PathBuf {
    let file = folder.join(format!("{name}.{format}"));
    let outcome = run([
        "coverage",
        "--quiet",
        example(name).join("capture.toml").to_str().unwrap(),
        "--source-dir",
        sources().to_str().unwrap(),
        "--format",
        format,
        "-o",
        file.to_str().unwrap(),
    ]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (0, ""), "{}", outcome.stderr);
    file
}

fn json(folder: &Path, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(report(folder, name, "json")).unwrap()).unwrap()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// The lines of a file that can be judged, and how often they ran.
fn judged(file: &Value) -> impl Iterator<Item = &Value> {
    array(&file["lines"]).iter().filter(|line| line["state"] != "untold")
}

fn branches(line: &Value) -> &[Value] {
    line["branches"].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn genhtml_shows_a_tracefile_without_warnings_and_counts_the_same() {
    if !has("genhtml") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for name in EXAMPLES {
        let tracefile = report(folder.path(), name, "lcov");
        let html = folder.path().join(name);
        let output = Command::new("genhtml")
            .args(["--branch-coverage", "--function-coverage", "--output-directory"])
            .arg(&html)
            .arg(&tracefile)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{said}");
        assert!(!said.to_lowercase().contains("warn"), "{said}");
        let document = json(folder.path(), name);
        let sum = |metric: &str, count: &str| -> u64 {
            array(&document["files"]).iter().map(|file| file["totals"][metric][count].as_u64().unwrap()).sum()
        };
        for (metric, label) in
            [("lines", "lines......"), ("functions", "functions.."), ("branches", "branches...")]
        {
            let expected = format!("({} of {} {metric})", sum(metric, "covered"), sum(metric, "found"));
            let line = said.lines().find(|line| line.contains(label)).unwrap();
            assert!(line.ends_with(&expected), "{name}: expected {expected} in {line}");
        }
        // A page for each file, with its source.
        let pages = array(&document["files"]).iter().map(|file| {
            let page = html.join(file["name"].as_str().unwrap());
            std::fs::read_to_string(format!("{}.gcov.html", page.display())).unwrap()
        });
        assert!(pages.into_iter().any(|page| page.contains("crc ^= data[i]")), "{name}");
    }
}

#[test]
fn a_tracefile_has_the_counts_of_the_document() {
    let folder = tempfile::tempdir().unwrap();
    for name in EXAMPLES {
        let text = std::fs::read_to_string(report(folder.path(), name, "lcov")).unwrap();
        let document = json(folder.path(), name);
        let mut expected = Vec::new();
        for file in array(&document["files"]) {
            expected.push(format!("SF:{}", sources().join(file["name"].as_str().unwrap()).display()));
            for line in judged(file) {
                expected.push(format!("DA:{},{}", line["line"], line["count"]));
            }
        }
        let found = text.lines().filter(|line| line.starts_with("SF:") || line.starts_with("DA:"));
        let without_checksum = |line: &str| line.splitn(3, ',').take(2).collect::<Vec<_>>().join(",");
        assert_eq!(found.map(without_checksum).collect::<Vec<_>>(), expected, "{name}");
        let outcomes = array(&document["files"]).iter().flat_map(judged).flat_map(branches);
        let counts =
            outcomes.flat_map(|branch| [branch["taken"].as_u64(), branch["not_taken"].as_u64()]).flatten();
        let counts = counts.collect::<Vec<_>>();
        let taken = text.lines().filter_map(|line| line.strip_prefix("BRDA:")?.rsplit_once(','));
        let taken = taken.map(|(_, taken)| taken.parse().unwrap_or(0)).collect::<Vec<u64>>();
        assert_eq!(taken, counts, "{name}");
    }
}

#[test]
fn a_cobertura_document_is_valid_by_its_dtd_and_counts_the_same() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/coverage");
    for name in EXAMPLES {
        let document = report(folder.path(), name, "cobertura");
        let output = Command::new(&python)
            .args([here.join("cobertura.py"), here.join("coverage-04.dtd"), document])
            .output()
            .unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["source"], sources().to_str().unwrap());
        let document = json(folder.path(), name);
        for file in array(&document["files"]) {
            let lines = judged(file).map(|line| {
                let told = branches(line).iter().flat_map(|branch| [&branch["taken"], &branch["not_taken"]]);
                let told = told.filter_map(Value::as_u64).collect::<Vec<_>>();
                let seen = told.iter().filter(|count| **count > 0).count();
                let branches =
                    if told.is_empty() { Value::Null } else { format!("{seen}/{}", told.len()).into() };
                (line["line"].to_string(), Value::from(vec![line["count"].clone(), branches]))
            });
            let lines = lines.collect::<serde_json::Map<_, _>>();
            assert_eq!(found["lines"][file["name"].as_str().unwrap()], Value::Object(lines), "{name}");
        }
    }
}

#[test]
fn a_document_can_be_made_again_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let cobertura = || {
        let file = folder.path().join("dated.xml");
        let capture = example("m3-etmv3/capture.toml");
        let arguments = ["coverage", "-q", capture.to_str().unwrap(), "--format", "cobertura", "-o"];
        let mut command = tracewalk();
        command.env("SOURCE_DATE_EPOCH", "1700000000").args(arguments).arg(&file);
        assert!(command.output().unwrap().status.success());
        std::fs::read_to_string(file).unwrap()
    };
    let first = cobertura();
    assert!(first.contains("timestamp=\"1700000000\""));
    assert_eq!(first, cobertura());
}

#[test]
fn what_a_base_covered_and_is_covered_no_more_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let base = report(folder.path(), "m3-etmv3", "lcov");
    let capture = example("m3-etmv3/capture.toml");
    let sources = sources();
    let against = |base: &Path, options: &[&str]| {
        let arguments =
            ["coverage", "-q", capture.to_str().unwrap(), "--source-dir", sources.to_str().unwrap()];
        run(arguments.iter().chain(&["--diff", base.to_str().unwrap()]).chain(options))
    };
    let same = against(&base, &["--no-loss"]);
    assert_eq!(same.status, 0, "{}", same.stderr);
    assert!(same.stdout.contains("nothing that the base covered was lost"), "{}", same.stdout);
    // In the base `clamp` ran, and everything was a hundred lines further down.
    let text = std::fs::read_to_string(&base).unwrap();
    let (work, rest) = text.split_once("end_of_record\n").unwrap();
    let moved = work.lines().map(|line| {
        let fields = line.strip_prefix("DA:").map(|fields| fields.splitn(3, ',').collect::<Vec<_>>());
        match fields.as_deref() {
            Some([number, count, checksum]) => {
                let number = number.parse::<u32>().unwrap();
                let count = if (72..79).contains(&number) { "3" } else { *count };
                format!("DA:{},{count},{checksum}\n", number + 100)
            }
            _ => line.replace("FNDA:0,clamp", "FNDA:4,clamp") + "\n",
        }
    });
    let moved = moved.collect::<String>() + "end_of_record\n" + rest;
    let changed = folder.path().join("changed.info");
    std::fs::write(&changed, moved).unwrap();
    let outcome = against(&changed, &["--no-loss"]);
    assert_eq!(outcome.status, 1, "{}", outcome.stdout);
    assert!(outcome.stderr.contains("lines of the base no longer covered"), "{}", outcome.stderr);
    let difference = outcome.stdout.split("common/work.c\n").nth(1).unwrap();
    let lines = difference.lines().map(str::trim).collect::<Vec<_>>();
    assert_eq!(lines, ["lost       72, 74, 77", "lost       clamp"]);
}

/// The tree is clicked, every file opened and compared with the document, instructions shown, search and keys used.
#[test]
fn a_page_shows_what_the_document_says_to_whoever_uses_it() {
    if !has("chromium") || !has("python3") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/coverage/page.py");
    for name in ["m3-etmv3", "a15-pft"] {
        let (page, document) = (report(folder.path(), name, "html"), report(folder.path(), name, "json"));
        let mut command = Command::new("python3");
        let output = command.arg(&script).arg("chromium").args([page, document]).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_page_holds_its_overview_without_scripts_and_asks_for_nothing_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let page = std::fs::read_to_string(report(folder.path(), "m3-etmv3", "html")).unwrap();
    for part in [
        "Coverage of m3.elf",
        "92.1%",
        "177 of 192",
        "m3/startup.s",
        "all of 2 functions: Unexpected_Handler, clamp",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let page = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!page.contains("http:") && !page.contains("https:"));
    // The same coverage is the same page.
    assert_eq!(
        page,
        std::fs::read_to_string(report(folder.path(), "m3-etmv3", "html"))
            .unwrap()
            .replace("http://www.w3.org/2000/svg", "")
    );
}
