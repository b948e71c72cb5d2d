//! Coverage between two revisions of one program, which QEMU ran: `testdata/firmware/rev-old` and `rev-new`.
//! The expected values were worked out by hand from the sources and their results.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::firmware::Firmware;
use crate::support::{Outcome, run, run_with_kinds};

struct Revisions {
    folder: tempfile::TempDir,
    old: Firmware,
    new: Firmware,
}

impl Revisions {
    /// Both revisions traced, and the old one's coverage as a base.
    fn new() -> Self {
        let revisions = Self {
            folder: tempfile::tempdir().unwrap(),
            old: Firmware::load("rev-old"),
            new: Firmware::load("rev-new"),
        };
        let checkouts =
            [("old", "rev-old", "limits.c", &revisions.old), ("new", "rev-new", "range.c", &revisions.new)];
        for (name, folder, other, firmware) in checkouts {
            std::fs::write(revisions.file(&format!("{name}.bin")), firmware.etmv3("cortex-m3", 0).bytes)
                .unwrap();
            let checkout = revisions.file(name);
            std::fs::create_dir_all(checkout.join("common")).unwrap();
            for file in ["control.c", other] {
                std::fs::copy(firmware_file(&format!("{folder}/{file}")), checkout.join(file)).unwrap();
            }
            let start = "common/m-startup.s";
            std::fs::copy(firmware_file(start), checkout.join(start)).unwrap();
        }
        for (option, file) in [("-o", "base.info"), ("-o", "base.json"), ("--save", "base.twcov")] {
            let file = revisions.file(file);
            let arguments = revisions.coverage("old.bin", &revisions.old, &[option, file.to_str().unwrap()]);
            assert_eq!(run(&arguments).status, 0, "{arguments:?}");
        }
        revisions
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn coverage(&self, trace: &str, firmware: &Firmware, more: &[&str]) -> Vec<String> {
        let firmware = firmware.file.to_str().unwrap();
        let sources = self.file(trace.strip_suffix(".bin").unwrap());
        let trace = self.file(trace);
        let start = ["coverage", "-q", trace.to_str().unwrap(), "--container", "raw", "--image", firmware];
        let source = ["--source", "etmv3,cpu=cortex-m3,etmcr=0x0", "--src-dir", sources.to_str().unwrap()];
        start.iter().chain(&source).chain(more).map(|&argument| argument.to_owned()).collect()
    }

    /// The command for the new revision, with a base of the old one.
    fn against(&self, base: &str, more: &[&str]) -> Vec<String> {
        let base = self.file(base);
        self.coverage("new.bin", &self.new, &[&["--diff", base.to_str().unwrap()], more].concat())
    }

    fn difference(&self, base: &str, more: &[&str]) -> Value {
        let outcome = run(self.against(base, &[more, &["--format", "json"]].concat()));
        assert_eq!(outcome.status, 0, "{base} {more:?}: {}", outcome.stderr);
        serde_json::from_str::<Value>(&outcome.stdout).unwrap()["difference"].clone()
    }

    /// The status, and the error's kind.
    fn refusal(&self, base: &str, more: &[&str]) -> (i32, String) {
        let Outcome { status, stdout, stderr } = run_with_kinds(self.against(base, more));
        assert_eq!(stdout, "", "nothing is printed");
        let error = stderr.lines().find_map(|line| line.strip_prefix("error: ")).unwrap_or_default();
        (status, error.split([' ', ':']).next().unwrap_or_default().to_owned())
    }
}

fn firmware_file(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware").join(name).display().to_string()
}

/// The part of a difference that was worked out by hand; the renamed file has its name in the base.
fn expected(renamed_from: &str) -> [Value; 2] {
    let control = json!({
        "lost": [9], "lost_branches": [8], "gained": [], "new_uncovered": [16], "new_covered": 6,
        "lost_functions": [], "new_code_uncovered": [], "new_code_covered": 0, "unjudged": [], "deleted": 6,
    });
    let range = json!({
        "lost": [6, 8], "lost_branches": [4], "gained": [5], "new_uncovered": [], "new_covered": 0,
        "lost_functions": [], "new_code_uncovered": [], "new_code_covered": 0, "unjudged": [], "deleted": 0,
        "renamed_from": renamed_from,
    });
    [control, range]
}

/// The program's own files with their names, without the start-up code that both revisions share.
fn files(difference: &Value) -> Vec<(String, Value)> {
    let files = difference["files"].as_array().unwrap().iter().map(|file| {
        let mut file = file.clone();
        let name = file.as_object_mut().unwrap().remove("name").unwrap();
        (name.as_str().unwrap().rsplit('/').next().unwrap().to_owned(), file)
    });
    files.filter(|(name, _)| name.ends_with(".c")).collect()
}

#[test]
fn lines_are_found_where_the_diff_moved_them_in_every_base() {
    let revisions = Revisions::new();
    let (diff, old) = (firmware_file("rev.diff"), revisions.old.file.to_str().unwrap().to_owned());
    let by_diff = ["--base-src", &diff];
    let saved = [&by_diff[..], &["--base-image", &old]].concat();
    for (base, options) in [("base.info", &by_diff[..]), ("base.json", &by_diff), ("base.twcov", &saved)] {
        let difference = revisions.difference(base, options);
        let [control, range] = expected("limits.c");
        assert_eq!(
            files(&difference),
            [("control.c".to_owned(), control), ("range.c".to_owned(), range)],
            "{base}"
        );
        assert_eq!(difference["changed"], json!({"found": 7, "covered": 6, "unrecorded": 0}));
        assert_eq!(difference["gone"], json!([]), "{base}");
    }
}

#[test]
fn the_sources_of_both_revisions_say_what_their_diff_says() {
    let revisions = Revisions::new();
    let checkout = revisions.file("old");
    let sources = ["--base-src", checkout.to_str().unwrap()];
    let difference = revisions.difference("base.info", &sources);
    let changed = &difference["changed"];
    assert_eq!((&changed["found"], &changed["covered"]), (&json!(7), &json!(6)), "{difference}");
    let [control, range] = expected(checkout.canonicalize().unwrap().join("limits.c").to_str().unwrap());
    assert_eq!(files(&difference), [("control.c".to_owned(), control), ("range.c".to_owned(), range)]);
    // One file is missing, then it is from another revision.
    std::fs::rename(checkout.join("control.c"), checkout.join("moved.c")).unwrap();
    assert_eq!(revisions.refusal("base.info", &sources), (2, "no_base_source".to_owned()));
    std::fs::copy(firmware_file("rev-new/control.c"), checkout.join("control.c")).unwrap();
    assert_eq!(revisions.refusal("base.info", &sources), (2, "base_of_other_source".to_owned()));
}

#[test]
fn gates_are_of_what_did_not_change_and_of_what_did() {
    let revisions = Revisions::new();
    let diff = firmware_file("rev.diff");
    let status =
        |more: &[&str]| run(revisions.against("base.info", &[&["--base-src", &diff], more].concat())).status;
    // 6 of 7 are 85.7 percent.
    assert_eq!(status(&["--fail-under", "changed=85.7"]), 0);
    assert_eq!(status(&["--fail-under", "changed=86"]), 1);
    assert_eq!(status(&["--fail-on", "regression"]), 1);
    // Compared with itself, a revision loses nothing, and nothing changed.
    let same = |more: &[&str]| {
        let base = revisions.file("base.info");
        let empty = revisions.file("empty.diff");
        std::fs::write(&empty, "").unwrap();
        let options = [
            "--diff",
            base.to_str().unwrap(),
            "--base-src",
            empty.to_str().unwrap(),
            "--fail-on",
            "regression",
        ];
        run(revisions.coverage("old.bin", &revisions.old, &[&options[..], more].concat())).status
    };
    assert_eq!(same(&["--fail-under", "changed=100"]), 0);
    // Without checksums an empty diff proves nothing.
    let base = std::fs::read_to_string(revisions.file("base.info")).unwrap();
    let plain = base.lines().map(|line| match line.strip_prefix("DA:") {
        Some(fields) => format!("DA:{}\n", fields.splitn(3, ',').take(2).collect::<Vec<_>>().join(",")),
        None => format!("{line}\n"),
    });
    std::fs::write(revisions.file("base.info"), plain.collect::<String>()).unwrap();
    assert_eq!(same(&[]), 2);
    assert_eq!(status(&["--fail-under", "changed=85.7"]), 0);
}

#[test]
fn a_diff_that_does_not_belong_to_the_revisions_never_passes_a_gate() {
    let revisions = Revisions::new();
    let diff = std::fs::read_to_string(firmware_file("rev.diff")).unwrap();
    let refusal = |text: &str| {
        let file = revisions.file("some.diff");
        std::fs::write(&file, text).unwrap();
        revisions.refusal("base.info", &["--fail-on", "regression", "--base-src", file.to_str().unwrap()]).1
    };
    assert_eq!(refusal("fatal:\n"), "not_a_diff");
    assert_eq!(refusal(&diff[..diff.len() / 2]), "not_a_diff");
    // The diff is reversed.
    let swapped = diff.replace("\n-", "\n\u{1}").replace("\n+", "\n-").replace('\u{1}', "+");
    let swapped = swapped.replace("-++ b/", "+++ b/").replace("+-- a/", "--- a/");
    assert_ne!(refusal(&swapped), "");
    // A context line differs from the new revision, or from the base.
    assert_eq!(refusal(&diff.replace("     int total = 0;", "     int total = 1;")), "diff_of_other_source");
    assert_eq!(
        refusal(&diff.replace("-    return error - 2;", "-    return error - 3;")),
        "base_of_other_source"
    );
    // One half of the diff is missing, so that its lines do not match, or all of it.
    let (first, _) = diff.split_once("diff --git a/limits.c").unwrap();
    let of_range =
        diff.split_once("diff --git a/limits.c").map(|(_, rest)| format!("diff --git a/limits.c{rest}"));
    assert_eq!(refusal(&of_range.unwrap()), "base_of_other_source");
    assert_eq!(refusal(""), "base_of_other_source");
    // A file with another name in the base is new, and all of it counts as changed or as code that did not
    // exist before.
    std::fs::write(revisions.file("first.diff"), first).unwrap();
    let file = revisions.file("first.diff");
    let found = revisions.difference("base.info", &["--base-src", file.to_str().unwrap()]);
    assert_eq!(found["gone"].as_array().unwrap().len(), 1);
    // The `changed` gate needs the changes since the base, and a source diff needs a base that takes one.
    assert_eq!(revisions.refusal("base.info", &["--fail-under", "changed=1"]).1, "no_revisions");
    assert_eq!(revisions.refusal("base.twcov", &["--base-src", file.to_str().unwrap()]).1, "other_program");
    // A diff of other files has no effect, which a notice reports.
    let other = diff.replace("control.c", "x.c").replace("limits.c", "y.c").replace("range.c", "z.c");
    std::fs::write(&file, other).unwrap();
    std::fs::copy(revisions.file("base.json"), revisions.file("numbers.json")).unwrap();
    let arguments = revisions.against("numbers.json", &["--base-src", file.to_str().unwrap()]);
    let outcome = run_with_kinds(arguments);
    assert!(outcome.stderr.contains("diff_of_nothing"), "{}", outcome.stderr);
}

#[test]
fn the_lines_of_a_difference_are_a_table_and_stand_on_the_page() {
    let revisions = Revisions::new();
    let diff = firmware_file("rev.diff");
    let options = ["--base-src", &diff, "--format", "csv", "--table", "difference"];
    let outcome = run(revisions.against("base.info", &options));
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let rows = outcome.stdout.lines().skip(1).map(|row| row.rsplit('/').next().unwrap());
    let rows = rows.filter(|row| row.contains(".c,"));
    let expected = [
        "control.c,8,lost_branches",
        "control.c,9,lost",
        "control.c,16,new_uncovered",
        "range.c,4,lost_branches",
        "range.c,5,gained",
        "range.c,6,lost",
        "range.c,8,lost",
    ];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
    if cfg!(feature = "full") {
        let page = run(revisions.against("base.info", &["--base-src", &diff, "--format", "html"])).stdout;
        assert!(page.contains("<b>6 of 7</b>") && page.contains("was limits.c"));
    }
}

/// The names of the files of a document, and those in its difference.
fn names(document: &Value) -> [Vec<String>; 2] {
    [&document["files"], &document["difference"]["files"]].map(|files| {
        let names = files.as_array().unwrap().iter().map(|file| file["name"].as_str().unwrap().to_owned());
        names.collect()
    })
}

/// Whatever a file is called, all parts of one report call it the same, although its source was found in another folder.
#[test]
fn every_report_of_a_run_names_a_file_alike() {
    let revisions = Revisions::new();
    let diff = firmware_file("rev.diff");
    let [tracefile, report] = ["reports.info", "reports.json"].map(|name| revisions.file(name));
    let lcov = ["--base-src", &diff, "-o", tracefile.to_str().unwrap()];
    let reports = |maps: &[&str]| {
        let more = [&lcov[..], maps, &["-o", report.to_str().unwrap()]].concat();
        let outcome = run(revisions.against("base.info", &more));
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let document = serde_json::from_slice::<Value>(&std::fs::read(&report).unwrap()).unwrap();
        let of_table = |table| {
            let more = [&lcov[..2], maps, &["--format", "csv", "--table", table]].concat();
            let outcome = run(revisions.against("base.info", &more));
            let names = outcome.stdout.lines().skip(1).map(|row| row.split(',').next().unwrap().to_owned());
            names.collect::<std::collections::BTreeSet<_>>()
        };
        let lcov = std::fs::read_to_string(&tracefile).unwrap();
        let lcov = lcov.lines().filter_map(|line| line.strip_prefix("SF:")).map(str::to_owned);
        let [files, changed] = names(&document);
        assert!(
            !changed.is_empty() && changed.iter().all(|name| files.contains(name)),
            "{changed:?} {files:?}"
        );
        assert!(of_table("files").iter().eq(&files));
        assert!(of_table("difference").iter().eq(&changed));
        (files, lcov.collect::<Vec<_>>())
    };
    let (files, found) = reports(&[]);
    // genhtml needs the places of the files.
    assert!(found.iter().all(|path| Path::new(path).is_file()), "{found:?}");
    let control = files.iter().find(|name| name.ends_with("control.c")).unwrap();
    let (files, lcov) = reports(&["--path-map", &format!("{control}=/elsewhere/control.c")]);
    for names in [&files, &lcov] {
        assert!(names.contains(&"/elsewhere/control.c".to_owned()), "{names:?}");
        assert!(!names.iter().any(|name| name.ends_with("new/control.c") || name == control), "{names:?}");
    }
}

#[test]
fn a_path_map_that_matches_nothing_is_reported() {
    let revisions = Revisions::new();
    let kinds_with = |map: &str, more: &[&str]| {
        let options = [&["--path-map", map, "--format", "none"], more].concat();
        let outcome = run_with_kinds(revisions.against("base.info", &options));
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        outcome.stderr.contains("warning: unused_path_map")
    };
    let kinds = |map: &str| kinds_with(map, &[]);
    assert!(kinds("/no/such/folder=/elsewhere"));
    assert!(!kinds("rev-new/control.c=/elsewhere/control.c"));
    // The map renamed a file, although no report shows the file.
    assert!(!kinds_with("rev-new/control.c=/elsewhere/control.c", &["--exclude", "elsewhere/**"]));
}
