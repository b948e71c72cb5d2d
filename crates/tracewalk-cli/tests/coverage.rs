//! The `coverage` command: several captures, saved parts, selection, checks, formats.

use std::path::Path;
use std::process::Command;

use crate::support::python::python;
use crate::support::{Folder, Outcome, example, mentions, run, run_with_kinds, run_with_notices, tracewalk};
use serde_json::Value;

fn capture(name: &str) -> String {
    example(name).join("capture.toml").to_str().unwrap().to_owned()
}

fn coverage(arguments: &[&str]) -> Outcome {
    run(["coverage", "--quiet"].iter().chain(arguments))
}

/// The report of these arguments as JSON.
fn document(arguments: &[&str]) -> Value {
    let outcome = coverage(&[arguments, &["--format", "json"]].concat());
    assert_eq!(outcome.status, 0, "{arguments:?}: {}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).unwrap()
}

fn totals(document: &Value) -> Value {
    document["totals"].clone()
}

/// How often each instruction was executed, skipped or passed with an unknown outcome.
fn counts(document: &Value) -> Vec<(String, [u64; 3])> {
    let functions = document["functions"].as_array().unwrap();
    let instructions = functions.iter().flat_map(|function| function["instructions"].as_array().unwrap());
    let count = |instruction: &Value, name: &str| instruction[name].as_u64().unwrap_or(0);
    let counts = instructions.map(|instruction| {
        let at = instruction["address"].as_str().unwrap().to_owned();
        (at, ["executed", "skipped", "unrecorded"].map(|name| count(instruction, name)))
    });
    counts.collect()
}

#[test]
fn a_table_shows_each_file_and_what_cannot_be_observed() {
    let outcome = coverage(&[&capture("a15-pft")]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let row = |name: &str| outcome.stdout.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert_eq!(
        row("total").split_whitespace().collect::<Vec<_>>(),
        ["total", "92.5%", "224/242", "64.7%", "66/102", "94.2%", "33/35"]
    );
    assert!(row("common/work.c").contains("89.2%"));
    assert!(mentions(&outcome.stdout, "50 23 7"));
    assert!(outcome.stdout.contains("including all of 2 functions: finish, ascending"));
}

#[test]
fn captures_of_one_program_add_up_and_one_shows_what_the_other_cannot() {
    let (etm, pft) = (document(&[&capture("a7-etmv3")]), document(&[&capture("a15-pft")]));
    let both = document(&[&capture("a7-etmv3"), &capture("a15-pft")]);
    let sums = counts(&etm)
        .into_iter()
        .zip(counts(&pft))
        .map(|((at, etm), (_, pft))| (at, [etm[0] + pft[0], etm[1] + pft[1], etm[2] + pft[2]]));
    assert_eq!(counts(&both), sums.collect::<Vec<_>>());
    assert_eq!(both["programs"][0]["sources"].as_array().unwrap().len(), 2);
    // The ETM saw whether conditions passed. An instruction with both outcomes leaves nothing unknown.
    let unrecorded = |document: &Value| document["totals"]["branches"]["unrecorded"].as_u64().unwrap();
    assert!(
        unrecorded(&both) < unrecorded(&pft) && unrecorded(&etm) == 0,
        "{} {}",
        unrecorded(&both),
        unrecorded(&pft)
    );
}

#[test]
fn of_many_runs_the_first_are_listed_and_the_others_counted() {
    let (folder, elf) = (Folder::new(), example("a7-etmv3/a9.elf"));
    let runs = (1..=10).map(|number| {
        let file = folder.file(&format!("run-{number}.bin"));
        std::fs::copy(example("a7-etmv3/trace.bin"), &file).unwrap();
        file
    });
    let runs = runs.collect::<Vec<_>>();
    let image = ["--image", elf.to_str().unwrap()];
    let text = coverage(&runs.iter().map(String::as_str).chain(image).collect::<Vec<_>>()).stdout;
    let mut listed = text.lines().skip(1);
    assert_eq!(listed.by_ref().take(8).filter(|line| line.contains("run-")).count(), 8, "{text}");
    assert!(listed.next().is_some_and(|line| mentions(line, "… 2")), "{text}");
    assert!(listed.all(|line| !line.contains("run-")), "{text}");
}

#[test]
fn parts_that_were_saved_and_merged_report_what_the_captures_do() {
    let folder = Folder::new();
    let (etm, pft, both) = (folder.file("etm.twcov"), folder.file("pft.twcov"), folder.file("both.twcov"));
    for (name, file) in [("a7-etmv3", &etm), ("a15-pft", &pft)] {
        let outcome = coverage(&[&capture(name), "--save", file]);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (0, ""), "{}", outcome.stderr);
    }
    let merge = |parts: [&str; 2]| {
        let outcome = run(["coverage", "-q", parts[0], parts[1], "--save", &both]);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (0, ""), "{}", outcome.stderr);
        std::fs::read_to_string(&both).unwrap()
    };
    assert_eq!(merge([&etm, &pft]), merge([&pft, &etm]));
    let elf = example("a7-etmv3/a9.elf");
    let image = ["--image", elf.to_str().unwrap()];
    let expected = document(&[&capture("a7-etmv3"), &capture("a15-pft")]);
    assert_eq!(document(&[&[both.as_str()], &image[..]].concat()), expected);
    assert_eq!(document(&[&[etm.as_str(), &pft], &image[..]].concat()), expected);
    assert_eq!(document(&[&etm, &capture("a15-pft")]), expected);
    // Saving a saved file again changes nothing.
    let again = folder.file("again.twcov");
    assert_eq!(coverage(&[&both, "--save", &again]).status, 0);
    assert_eq!(std::fs::read(&again).unwrap(), std::fs::read(&both).unwrap());
}

/// A mistake is reported in one sentence, without output, and the status is 2.
fn assert_refused(outcome: &Outcome, message: &str) {
    assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
    assert!(mentions(&outcome.stderr, message), "expected {message:?} in {:?}", outcome.stderr);
}

#[test]
fn a_run_without_the_program_that_was_traced_shows_no_loss_and_is_refused() {
    let folder = Folder::new();
    let [base, empty, merged] = ["base.info", "empty.twcov", "merged.twcov"].map(|name| folder.file(name));
    let m3 = capture("m3-etmv3");
    assert_eq!(coverage(&[&m3, "-o", &base]).status, 0);
    let other = example("../firmware/rev-new/rev-new.elf");
    let other = ["--image", other.to_str().unwrap()];
    let trace = example("m3-etmv3/trace.bin");
    let source = ["--container", "frames", "--source", "0x10=etmv3,cpu=cortex-m3"];
    let wrong = [&[trace.to_str().unwrap()], &source[..], &other[..]].concat();
    let outcome = coverage(&[&wrong[..], &["--save", &empty]].concat());
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    let compared =
        run_with_kinds([&["coverage"], &wrong[..], &["--diff", &base, "--fail-on", "regression"]].concat());
    assert_refused(&compared, "error: nothing_to_compare");
    let nothing = "error: saved_nothing empty.twcov:";
    let saved = [&["coverage", empty.as_str()], &other[..], &["--diff", &base]].concat();
    assert_refused(&run_with_kinds(saved), nothing);
    assert_refused(&run_with_kinds(["coverage", &empty, "--save", &merged]), nothing);
}

#[test]
fn counts_of_another_program_are_refused() {
    let folder = Folder::new();
    let (a9, m3) = (folder.file("a9.twcov"), folder.file("m3.twcov"));
    coverage(&[&capture("a7-etmv3"), "--save", &a9]);
    coverage(&[&capture("m3-etmv3"), "--save", &m3]);
    let elf = example("a7-etmv3/a9.elf");
    let other = "m3.twcov";
    assert_refused(&run(["coverage", &a9, &m3, "--save", "-"]), other);
    assert_refused(&coverage(&[&m3, "--image", elf.to_str().unwrap()]), other);
    assert_refused(&coverage(&[&m3, &capture("a7-etmv3")]), other);
    assert_refused(&coverage(&[&a9]), "ELF --image");
    // Without a build ID the code itself is compared.
    let mut stripped = std::fs::read(&elf).unwrap();
    let note = stripped.windows(4).position(|bytes| bytes == b"GNU\0").unwrap();
    stripped[note] = b'X';
    let (first, second) = (folder.file("first.elf"), folder.file("second.elf"));
    std::fs::write(&first, &stripped).unwrap();
    // A constant outside the code differs.
    let text = stripped.windows(12).position(|bytes| bytes == b"was the best").unwrap();
    stripped[text] ^= 1;
    std::fs::write(&second, &stripped).unwrap();
    let trace = example("a7-etmv3/trace.bin");
    let part = folder.file("first.twcov");
    let source = ["--container", "frames", "--source", "0x10=etmv3,cpu=cortex-a7,etmcr=0x5000"];
    let save = [trace.to_str().unwrap(), "--image", &first, "--save", &part];
    let outcome = coverage(&[&save, &source[..]].concat());
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert_eq!(coverage(&[&part, "--image", &first]).status, 0);
    assert_refused(&coverage(&[&part, "--image", &second]), "first.twcov");
}

#[test]
fn captures_of_two_programs_are_refused_as_their_saved_counts_are() {
    let [m3, a7, a15] = ["m3-etmv3", "a7-etmv3", "a15-pft"].map(capture);
    for order in [[&m3, &a7], [&a7, &m3]] {
        let outcome = run_with_kinds(["coverage"].into_iter().chain(order.map(String::as_str)));
        assert_refused(&outcome, "error: other_program");
        assert!(mentions(&outcome.stderr, order[1]), "{}", outcome.stderr);
    }
    assert_eq!(coverage(&[&a7, &a15]).status, 0);
    // A saved file keeps programs apart, and nothing is written with a report that is refused.
    let folder = Folder::new();
    let saved = folder.file("both.twcov");
    assert_refused(&coverage(&[&m3, &a7, "--save", &saved, "-o", &folder.file("both.json")]), "a7-etmv3");
    assert!(!Path::new(&saved).exists());
    assert_eq!(coverage(&[&m3, &a7, "--save", &saved]).status, 0);
    assert_eq!(std::fs::read_to_string(&saved).unwrap().matches("{\"program\":").count(), 2);
}

#[test]
fn damaged_files_and_missing_programs_are_refused_in_one_sentence() {
    let folder = Folder::new();
    let older = folder.file("older.twcov");
    let head = |version: u8| format!("{{\"saved\":\"coverage\",\"version\":{version},\"complete\":true}}\n");
    std::fs::write(&older, head(9)).unwrap();
    assert_refused(&coverage(&[&older]), "older.twcov 1 9");
    let broken = folder.file("broken.twcov");
    std::fs::write(&broken, head(1) + "{\"block\":[]}\n").unwrap();
    assert_refused(&run(["coverage", &broken, "--save", "-"]), "broken.twcov 2");
    let trace = example("m3-etmv3/trace.bin");
    assert_refused(&run_with_kinds(["coverage", trace.to_str().unwrap()]), "error: no_program");
    let base = folder.file("base.info");
    std::fs::write(&base, "DA:1,1\n").unwrap();
    assert_refused(
        &coverage(&[&capture("m3-etmv3"), "--diff", &base]),
        "base.info: line 1: found \"DA:1,1\"",
    );
}

#[test]
fn an_image_that_was_not_traced_counts_nothing() {
    let (trace, elf) = (example("m3-etmv3/trace.bin"), example("m0-crash-mtb/m0-crash.elf"));
    let source = ["--source", "0x10=etmv3,cpu=cortex-m3", "--image", elf.to_str().unwrap()];
    let arguments =
        [&["coverage", "--quiet", trace.to_str().unwrap(), "--format", "json"][..], &source[..]].concat();
    let (outcome, notices) = run_with_notices(arguments);
    assert_eq!(outcome.status, 2);
    assert!(notices.has("image_refused"), "{notices:?}: {}", outcome.stderr);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(report["totals"]["instructions"]["covered"], 0);
}

#[test]
fn a_dump_of_the_memory_over_the_elf_file_takes_no_lines_away() {
    let folder = Folder::new();
    let (plain, dump) = (document(&[&capture("m3-etmv3")]), folder.file("dump.bin"));
    let elf = example("m3-etmv3/m3.elf");
    let bytes = std::fs::read(&elf).unwrap();
    // The program's first segment, which begins at address 0 with the table of vectors.
    let table = u32::from_le_bytes(bytes[28..32].try_into().unwrap()) as usize;
    let offset = u32::from_le_bytes(bytes[table + 4..table + 8].try_into().unwrap()) as usize;
    std::fs::write(&dump, &bytes[offset..offset + 0x100]).unwrap();
    let address = u32::from_le_bytes(bytes[table + 8..table + 12].try_into().unwrap());
    let trace = example("m3-etmv3/trace.bin");
    let both = document(&[
        trace.to_str().unwrap(),
        "--source",
        "0x10=etmv3,cpu=cortex-m3",
        "--image",
        &format!("{address:#x}:{dump}"),
        "--image",
        elf.to_str().unwrap(),
    ]);
    assert_eq!(totals(&both), totals(&plain));
}

#[test]
#[cfg_attr(not(feature = "full"), ignore = "patterns need --features full")]
fn files_and_functions_are_selected_by_patterns() {
    let m3 = capture("m3-etmv3");
    let files = |options: &[&str]| {
        let document = document(&[&[m3.as_str()], options].concat());
        let files = document["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| file["name"].as_str().unwrap().to_owned());
        files.collect::<Vec<_>>()
    };
    assert_eq!(files(&[]), ["common/work.c", "m3/main.c", "m3/startup.s"]);
    assert_eq!(files(&["--include", "*.c"]), ["common/work.c", "m3/main.c"]);
    assert_eq!(files(&["--include", "*.c", "--exclude", "common/**"]), ["m3/main.c"]);
    assert_eq!(files(&["--exclude-function", "*_Handler", "--include", "m3/*.s"]), ["m3/startup.s"]);
    let handlers = document(&[&m3, "--include-function", "{crc32,partition}"]);
    let names =
        handlers["functions"].as_array().unwrap().iter().map(|function| function["name"].as_str().unwrap());
    // `partition` was inlined into `quicksort`.
    assert_eq!(names.collect::<Vec<_>>(), ["crc32", "quicksort"]);
    assert_eq!(handlers["files"].as_array().unwrap().len(), 1);
}

#[test]
#[cfg_attr(not(feature = "full"), ignore = "patterns need --features full")]
fn patterns_match_the_paths_that_the_report_shows() {
    let m3 = capture("m3-etmv3");
    let files = |options: &[&str]| {
        let document = document(&[&[m3.as_str(), "--path-map", "common=/elsewhere/lib"], options].concat());
        let files = document["files"].as_array().unwrap().iter();
        files.map(|file| file["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(files(&[]), ["/elsewhere/lib/work.c", "m3/main.c", "m3/startup.s"]);
    assert_eq!(files(&["--include", "/elsewhere/**"]), ["/elsewhere/lib/work.c"]);
    assert_eq!(files(&["--exclude", "lib/*.c"]), ["m3/main.c", "m3/startup.s"]);
    let outcome = run_with_kinds(["coverage", &m3, "--path-map", "common=lib", "--exclude", "common/**"]);
    assert!(outcome.stderr.starts_with("warning: unused_pattern: "), "{}", outcome.stderr);
}

#[test]
#[cfg_attr(not(feature = "full"), ignore = "patterns need --features full")]
fn a_saved_file_has_all_code_and_a_note_says_so_of_patterns() {
    let (folder, m3) = (Folder::new(), capture("m3-etmv3"));
    let saved = |name: &str, options: &[&str]| {
        let file = folder.file(name);
        let outcome = run_with_kinds([&["coverage", &m3, "--save", &file], options].concat());
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        (std::fs::read(&file).unwrap(), outcome.stderr.contains("note: saved_whole: "))
    };
    let (whole, said) = saved("whole", &[]);
    assert!(!said);
    for option in ["--include", "--exclude", "--include-function", "--exclude-function"] {
        assert_eq!(saved("part", &[option, "m*"]), (whole.clone(), true), "{option}");
    }
}

#[test]
#[cfg_attr(not(feature = "full"), ignore = "patterns need --features full")]
fn limits_that_do_not_hold_give_status_1() {
    let (m3, pft) = (capture("m3-etmv3"), capture("a15-pft"));
    assert_eq!(coverage(&[&m3, "--fail-under", "lines=90,branches=80,functions=92"]).status, 0);
    let outcome = coverage(&[&m3, "--fail-under", "lines=95,branches=99.5%"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.stdout.contains("total"));
    assert!(mentions(&outcome.stderr, "92.1% 177 192 95% 80.6%"), "{}", outcome.stderr);
    // No branch can be judged, so no limit is met.
    let outcome =
        coverage(&[&pft, "--include-function", "clamp", "--include", "*.s", "--fail-under", "branches=0"]);
    assert_eq!(outcome.status, 1, "{}", outcome.stderr);
    assert!(mentions(&outcome.stderr, "error: branches"), "{}", outcome.stderr);
    assert_refused(&run_with_kinds(["coverage", &m3, "--fail-under", "line=80"]), "error: arguments line=80");
}

#[test]
#[ignore = "needs the Python packages"]
fn the_document_is_valid_by_its_schema() {
    let python = python();
    let folder = Folder::new();
    let base = folder.file("base.info");
    std::fs::write(&base, "SF:m3/main.c\nDA:42,1\nDA:43,0\nend_of_record\nSF:old.c\nDA:1,1\nend_of_record\n")
        .unwrap();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coverage-1.schema.json");
    let script = "import json, sys, jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
for file in sys.argv[2:]:
    jsonschema.validate(json.load(open(file)), schema)";
    let files = ["m3-etmv3", "a7-etmv3", "a15-pft", "m0-crash-mtb"].map(|name| {
        let file = folder.file(&format!("{name}.json"));
        let outcome =
            coverage(&[&capture(name), "--format", "json", "-o", &file, "--diff", &base, "--by-run"]);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        file
    });
    let output = Command::new(python).args(["-c", script]).arg(schema).args(files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn trace_that_is_damaged_is_counted_as_far_as_it_goes_and_the_rest_is_named() {
    let folder = Folder::new();
    let mut bytes = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
    // A reserved header in the middle of the source's bytes.
    bytes[2048..2064].fill(0x5a);
    let cut = folder.file("cut.bin");
    std::fs::write(&cut, bytes).unwrap();
    let elf = example("m3-etmv3/m3.elf");
    let source =
        ["--container", "frames", "--source", "0x10=etmv3,cpu=cortex-m3", "--image", elf.to_str().unwrap()];
    let outcome = coverage(&[&[cut.as_str()], &source[..]].concat());
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("not followed: trace malformed or lost 1 time ("), "{}", outcome.stdout);
    assert!(
        outcome.stdout.contains("code that is reported as not run may have run there"),
        "{}",
        outcome.stdout
    );
}

/// The example of why object branches do not give MC/DC holds: every outcome occurs, and `b` never matters.
#[test]
fn the_documented_example_has_every_branch_outcome_and_no_independence_of_b() {
    // The decision as compiled: which condition's branch went which way, and the result.
    let evaluate = |a: bool, b: bool, c: bool| {
        let mut outcomes = vec![('a', a)];
        if a {
            outcomes.push(('b', b));
        }
        let result = if a && b {
            true
        } else {
            outcomes.push(('c', c));
            c
        };
        (outcomes, result)
    };
    let tests = [(true, true, false), (false, true, false), (true, false, true)];
    let seen = tests.iter().flat_map(|&(a, b, c)| evaluate(a, b, c).0);
    assert_eq!(seen.collect::<std::collections::BTreeSet<_>>().len(), 6);
    let with_a = tests.iter().filter(|(a, ..)| *a).map(|&(a, b, c)| evaluate(a, b, c).1);
    assert!(with_a.eq([true, true]), "the result does not depend on b in any of them");
}

#[test]
#[cfg_attr(not(feature = "full"), ignore = "needs HTML")]
fn several_reports_of_one_run_are_what_each_alone_is() {
    let (capture, folder) = (capture("m3-etmv3"), tempfile::tempdir().unwrap());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let run = |more: &[&str]| {
        let mut command = tracewalk();
        let output =
            command.args(["coverage", &capture]).args(more).env("SOURCE_DATE_EPOCH", "1").output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let formats = ["html", "lcov", "cobertura", "json"];
    let file = |name: &str| {
        let extension = [("html", ".html"), ("lcov", ".info"), ("cobertura", ".xml"), ("json", ".json")];
        let extension =
            extension.iter().find(|(format, _)| *format == name).map_or("", |(_, extension)| extension);
        file(name) + extension
    };
    let options = formats.map(|format| ["-o".to_owned(), file(format)]).concat();
    let options = options.iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(run(&options), (Some(0), String::new()), "what is written to files is not printed");
    for format in formats {
        let alone = run(&["--format", format]);
        assert_eq!(std::fs::read_to_string(file(format)).unwrap(), alone.1, "{format}");
    }
    // Any other format can be printed at the same time, and a text can go to a file.
    let csv = run(&[&options[..2], &["-o", "-"]].concat());
    assert_eq!(csv, run(&["--format", "text"]));
    assert_eq!(run(&[&options[..], &["-o", &file("text")]].concat()), (Some(0), String::new()));
    assert!(std::fs::read_to_string(file("text")).unwrap().contains("main.c"));
    // Two formats cannot share a file, and an output cannot replace an input.
    let same = file("same");
    assert_eq!(run(&["-o", &same, "-o", &same]).0, Some(2));
    assert_eq!(run(&["--format", "lcov", "-o", &capture]).0, Some(2));
    assert!(!Path::new(&same).exists());
}

#[test]
fn paths_are_mapped_in_reports_and_where_files_are_looked_for() {
    let capture = capture("m3-etmv3");
    let names = |more: &[&str]| {
        let document = document(&[&[capture.as_str()][..], more].concat());
        let files = document["files"].as_array().unwrap();
        files.iter().map(|file| file["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let before = names(&[]);
    let main = before.iter().find(|name| name.ends_with("main.c")).unwrap();
    let folder = main.strip_suffix("main.c").unwrap();
    let map = format!("{main}=/elsewhere/zz.c");
    let after = names(&["--path-map", &map]);
    assert!(after.contains(&"/elsewhere/zz.c".to_owned()) && !after.contains(main), "{folder}: {after:?}");
    assert!(after.is_sorted() && after.len() == before.len());
    assert_eq!(names(&["--path-map", "/no/such=/elsewhere"]), before);
    // The functions of a file that moved are still its own.
    let of = |document: &Value, file: &str| {
        let files = document["files"].as_array().unwrap();
        let index = files.iter().position(|known| known["name"] == file).unwrap();
        let functions = document["functions"].as_array().unwrap();
        let here = functions.iter().filter(|function| function["file"] == index);
        here.map(|function| function["name"].clone()).collect::<Vec<_>>()
    };
    let found = of(&document(&[&capture, "--path-map", &map]), "/elsewhere/zz.c");
    assert_eq!(found, of(&document(&[&capture]), main));
    assert!(!found.is_empty());
}

#[test]
#[cfg_attr(not(feature = "full"), ignore = "needs patterns")]
fn a_selection_that_leaves_nothing_is_an_error() {
    let capture = capture("m3-etmv3");
    assert_eq!(coverage(&[&capture, "--include", "nomatch/**"]).status, 2);
    assert_eq!(coverage(&[&capture, "--include-function", "nomatch"]).status, 2);
    assert_eq!(coverage(&[&capture, "--include", "nomatch/**", "--include", "main.c"]).status, 0);
    assert_eq!(coverage(&[&capture, "--exclude", "nomatch/**"]).status, 0);
}
