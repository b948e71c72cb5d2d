//! Coverage in other tools' formats, through those tools.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::python::python;
use crate::support::{example, run, run_with_kinds, tracewalk};
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
        "--src-dir",
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

/// The lines of a file that can be judged.
fn judged(file: &Value) -> impl Iterator<Item = &Value> {
    array(&file["lines"]).iter().filter(|line| line["state"] != "unrecorded")
}

fn branches(line: &Value) -> &[Value] {
    line["branches"].as_array().map_or(&[], Vec::as_slice)
}

#[test]
#[ignore = "needs genhtml"]
fn genhtml_shows_a_tracefile_without_warnings_and_counts_the_same() {
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
#[ignore = "needs the Python packages"]
fn a_cobertura_document_is_valid_by_its_dtd_and_counts_the_same() {
    let python = python();
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
                let observed =
                    branches(line).iter().flat_map(|branch| [&branch["taken"], &branch["not_taken"]]);
                let observed = observed.filter_map(Value::as_u64).collect::<Vec<_>>();
                let seen = observed.iter().filter(|count| **count > 0).count();
                let branches = if observed.is_empty() {
                    Value::Null
                } else {
                    format!("{seen}/{}", observed.len()).into()
                };
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
fn what_a_base_covered_and_is_covered_no_more_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let base = report(folder.path(), "m3-etmv3", "lcov");
    let capture = example("m3-etmv3/capture.toml");
    let sources = sources();
    let against = |base: &Path, options: &[&str]| {
        let arguments = ["coverage", "-q", capture.to_str().unwrap(), "--src-dir", sources.to_str().unwrap()];
        run_with_kinds(arguments.iter().chain(&["--diff", base.to_str().unwrap()]).chain(options))
    };
    let same = against(&base, &["--fail-on", "regression"]);
    assert_eq!(same.status, 0, "{}", same.stderr);
    assert!(!same.stdout.contains("lost  "), "{}", same.stdout);
    // In the base, `clamp` ran, and all lines were a hundred lines further down.
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
    let outcome = against(&changed, &["--fail-on", "regression"]);
    assert_eq!(outcome.status, 1, "{}", outcome.stdout);
    assert!(outcome.stderr.contains("error: unmet"), "{}", outcome.stderr);
    let difference = outcome.stdout.split("common/work.c\n").nth(1).unwrap();
    let lines = difference.lines().map(str::trim).collect::<Vec<_>>();
    assert_eq!(lines, ["lost       72, 74, 77", "lost       clamp"]);
}

/// The script clicks through the tree, compares every file with the document, shows instructions, searches
/// and uses keys.
#[test]
#[ignore = "needs chromium and python3"]
fn a_page_shows_what_the_document_says_to_whoever_uses_it() {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/coverage/page.py");
    let visit = |page: &Path, document: &Path| {
        let mut command = Command::new("python3");
        let output = command.arg(&script).arg("chromium").args([page, document]).output().unwrap();
        assert!(output.status.success(), "{}: {}", page.display(), String::from_utf8_lossy(&output.stderr));
    };
    for name in ["m3-etmv3", "a15-pft"] {
        visit(&report(folder.path(), name, "html"), &report(folder.path(), name, "json"));
    }
    // One source was changed an hour after everything else.
    let changed = folder.path().join("sources/common/work.c");
    std::fs::create_dir_all(changed.parent().unwrap()).unwrap();
    std::fs::copy(sources().join("common/work.c"), &changed).unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    std::fs::File::options().append(true).open(&changed).unwrap().set_modified(later).unwrap();
    let file = |name: &str| folder.path().join(name);
    let (page, document) = (file("stale.html"), file("stale.json"));
    let outcome = run([
        "coverage",
        "-q",
        example("m3-etmv3").join("capture.toml").to_str().unwrap(),
        "--src-dir",
        file("sources").to_str().unwrap(),
        "-o",
        page.to_str().unwrap(),
        "-o",
        document.to_str().unwrap(),
    ]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let written: Value = serde_json::from_slice(&std::fs::read(&document).unwrap()).unwrap();
    assert_eq!(written["stale"], serde_json::json!(["common/work.c"]));
    visit(&page, &document);
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
    // The same coverage gives the same page.
    assert_eq!(
        page,
        std::fs::read_to_string(report(folder.path(), "m3-etmv3", "html"))
            .unwrap()
            .replace("http://www.w3.org/2000/svg", "")
    );
}

/// A file that cannot be read as a base is refused: compared with it nothing would be lost, and the gate would pass.
#[test]
fn a_base_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let lcov = std::fs::read_to_string(report(folder.path(), "m3-etmv3", "lcov")).unwrap();
    let html = std::fs::read(report(folder.path(), "m3-etmv3", "html")).unwrap();
    let cut = lcov.rsplit_once("end_of_record").unwrap().0;
    let saved = |command: &str, capture: &str| {
        let path = folder.path().join(format!("{command}-{capture}"));
        let capture = example(capture).join("capture.toml");
        let outcome = run([command, "-q", capture.to_str().unwrap(), "--save", path.to_str().unwrap()]);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        path
    };
    let capture = example("m3-etmv3/capture.toml");
    let against = |base: &Path| {
        let arguments = ["coverage", "-q", capture.to_str().unwrap(), "--fail-on", "regression", "--diff"];
        run(arguments.iter().copied().chain(base.to_str()))
    };
    let document = report(folder.path(), "m3-etmv3", "json");
    let own = saved("coverage", "m3-etmv3");
    let saved_text = std::fs::read_to_string(&own).unwrap();
    let half = saved_text.lines().take(5).map(|line| format!("{line}\n")).collect::<String>();
    let refused = [
        file("empty.info", b""),
        file("page.html", &html),
        file("cut.info", cut.as_bytes()),
        file("text.txt", b"hello\nworld\n"),
        file("some.json", b"{}"),
        file("list.json", b"[1, 2]"),
        file("half.twcov", half.as_bytes()),
        saved("profile", "m3-etmv3"),
        saved("coverage", "a15-pft"),
        folder.path().join("nothing"),
    ];
    for base in &refused {
        let outcome = against(base);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{}", base.display());
    }
    let json = std::fs::read_to_string(&document).unwrap();
    for base in [&file("whole.info", lcov.as_bytes()), &document, &own] {
        let outcome = against(base);
        assert_eq!(outcome.status, 0, "{}: {}", base.display(), outcome.stderr);
    }
    // A line reported as unreached has a count.
    let mut changed: Value = serde_json::from_str(&json).unwrap();
    let lines = changed["files"].as_array_mut().unwrap().iter_mut();
    let mut lines = lines.flat_map(|file| file["lines"].as_array_mut().unwrap());
    lines.find(|line| line["state"] == "unreached").unwrap()["count"] = 1.into();
    let outcome = against(&file("changed.json", changed.to_string().as_bytes()));
    assert_eq!(outcome.status, 1, "{}", outcome.stderr);
}

#[test]
fn a_source_that_is_not_the_one_that_was_compiled_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, image) = (folder.path().join("trace.bin"), folder.path().join("m3.elf"));
    std::fs::copy(example("m3-etmv3/trace.bin"), &trace).unwrap();
    std::fs::copy(example("m3-etmv3/m3.elf"), &image).unwrap();
    let stale = |sources: &Path| {
        let arguments = ["coverage", "-q", "--format", "json", "--src-dir", sources.to_str().unwrap()];
        let files = [trace.to_str().unwrap(), "--image", image.to_str().unwrap()];
        let outcome = run(arguments.iter().chain(&files));
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let reasons = document["files"].as_array().unwrap().iter().filter_map(|file| file["stale"].as_str());
        let reasons = reasons.map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(document["stale"].as_array().map_or(0, Vec::len), reasons.len());
        reasons
    };
    let none = Vec::<String>::new();
    // The copies are newer than the project's sources.
    assert_eq!(stale(&sources()), none);
    // The same file truncated, as old as the program.
    let other = folder.path().join("sources");
    let work = std::fs::read_to_string(sources().join("common/work.c")).unwrap();
    std::fs::create_dir_all(other.join("common")).unwrap();
    let short = work.lines().take(20).map(|line| format!("{line}\n")).collect::<String>();
    let path = other.join("common/work.c");
    std::fs::write(&path, &short).unwrap();
    assert_eq!(stale(&other), ["shorter"]);
    // The whole file, changed an hour later.
    std::fs::write(&path, &work).unwrap();
    assert_eq!(stale(&other), none);
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    std::fs::File::options().append(true).open(&path).unwrap().set_modified(later).unwrap();
    assert_eq!(stale(&other), ["newer"]);
}

#[test]
fn a_source_is_newer_than_the_trace_and_the_image_whatever_the_age_of_the_description() {
    let folder = tempfile::tempdir().unwrap();
    let description = crate::support::copied_example("m3-etmv3", folder.path());
    let work = folder.path().join("sources/common/work.c");
    std::fs::create_dir_all(work.parent().unwrap()).unwrap();
    std::fs::copy(sources().join("common/work.c"), &work).unwrap();
    let now = std::time::SystemTime::now();
    // In hours: the description, the trace, the image, the source.
    let stale = |hours: [u64; 4]| {
        let files = ["capture.toml", "trace.bin", "m3.elf", "sources/common/work.c"];
        for (file, hours) in files.into_iter().zip(hours) {
            let file = std::fs::File::options().append(true).open(folder.path().join(file)).unwrap();
            file.set_modified(now + std::time::Duration::from_secs(hours * 3600)).unwrap();
        }
        let sources = folder.path().join("sources");
        let outcome = run_with_kinds([
            "coverage",
            "--format",
            "json",
            &description,
            "--src-dir",
            sources.to_str().unwrap(),
        ]);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let named = document["stale"] == serde_json::json!(["common/work.c"]);
        assert_eq!(named, outcome.stderr.contains("warning: stale_source: "));
        named
    };
    assert!(!stale([0, 3, 2, 1]), "the description is the oldest file");
    assert!(!stale([3, 2, 2, 1]), "the description is the newest file");
    assert!(stale([3, 1, 3, 2]), "the source is newer than the trace, and older than the description");
    assert!(stale([3, 3, 1, 2]), "the source is newer than the image");
    assert!(stale([0, 1, 1, 2]));
}

#[test]
fn a_source_whose_checksum_the_program_has_is_judged_by_it_and_not_by_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let image = sources().join("m3/m3-checksums.elf");
    let capture = example("m3-etmv3/trace.bin");
    let path = folder.path().join("common/work.c");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // The file's `stale` entry, and whether there was a warning.
    let stale = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
        std::fs::File::options().append(true).open(&path).unwrap().set_modified(later).unwrap();
        let files = [capture.to_str().unwrap(), "--image", image.to_str().unwrap()];
        let options = ["coverage", "--format", "json", "--src-dir", folder.path().to_str().unwrap()];
        let outcome = run_with_kinds(options.iter().chain(&files));
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let files = document["files"].as_array().unwrap();
        let work = files.iter().find(|file| file["name"] == "common/work.c").unwrap();
        (work["stale"].clone(), outcome.stderr.contains("warning: stale_source: "))
    };
    let work = std::fs::read_to_string(sources().join("common/work.c")).unwrap();
    assert_eq!(stale(&work), (Value::Null, false));
    // With the line ends of a Windows checkout.
    assert_eq!(stale(&work.replace('\n', "\r\n")), (Value::Null, false));
    // Another text with the same number of lines.
    let other = work.replacen("return", "return ", 1);
    assert_ne!(other, work);
    assert_eq!(stale(&other), ("checksum".into(), true));
}

#[test]
fn a_pattern_that_matches_nothing_is_named() {
    let capture = example("m3-etmv3/capture.toml");
    let warnings = |pattern: &str| {
        let outcome = run(["coverage", "-q", capture.to_str().unwrap(), "--include", pattern]);
        outcome.stderr.lines().filter(|line| line.contains("--include")).count()
    };
    assert_eq!((warnings("nomatch/**"), warnings("*.c")), (1, 0));
}
