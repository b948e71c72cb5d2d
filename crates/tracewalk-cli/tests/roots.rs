//! Descriptions of files elsewhere: written for a capture in a read-only directory, opened with `--root`, and
//! refused for files outside the roots.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Outcome, copied_example, example, mentions, run, run_with_kinds};

/// A share with an example's files, and a directory outside it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for name in ["share/run", "share/program", "mine"] {
            fs::create_dir_all(place.path().join(name)).unwrap();
        }
        copied_example("m3-etmv3", &place.path().join("share/run"));
        fs::rename(place.path().join("share/run/m3.elf"), place.path().join("share/program/m3.elf")).unwrap();
        Self(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Describes the trace in another directory.
    fn describe(&self) -> Outcome {
        let words =
            ["describe", &self.text("share/run/trace.bin"), "--image", &self.text("share/program/m3.elf")];
        run_with_kinds(words.into_iter().chain([
            "--source",
            "0x10=etmv3,cpu=cortex-m3",
            "-o",
            &self.text("mine/capture.toml"),
        ]))
    }

    /// Runs of the description, with these directories allowed.
    fn runs(&self, roots: &[&str]) -> Outcome {
        let roots = roots.iter().flat_map(|root| ["--root".to_owned(), self.text(root)]);
        let words = ["flow".to_owned(), self.text("mine"), "--format".to_owned(), "runs".to_owned()];
        run_with_kinds(words.into_iter().chain(roots))
    }
}

fn is_refused(outcome: &Outcome, kind: &str) -> bool {
    outcome.status == 2
        && mentions(&outcome.stderr, &format!("error: {kind}"))
        && mentions(&outcome.stderr, "--root")
}

#[test]
fn a_capture_that_nothing_can_be_written_beside_is_described_elsewhere() {
    let place = Place::new();
    let outcome = place.describe();
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    // The warning names the required options, each directory once.
    let line = outcome.stderr.lines().find(|line| line.contains("files_elsewhere")).expect("a warning");
    let roots = line.split("--root ").skip(1).map(|rest| rest.split(['\"', ' ']).next().unwrap());
    let roots = roots.map(Path::new).map(Path::to_owned).collect::<Vec<_>>();
    let expected = ["share/run", "share/program"].map(|name| place.path(name).canonicalize().unwrap());
    assert_eq!(roots, expected, "{line}");
    let outcome = place.runs(&["share/run", "share/program"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert_eq!(outcome.stdout, fs::read_to_string(example("m3-etmv3/runs.txt")).unwrap());
    assert_eq!(place.runs(&["share"]).stdout, outcome.stdout);
    // Describing the capture again gives the same text.
    let again = run(["describe", &place.text("mine"), "--root", &place.text("share")]);
    assert_eq!(again.stdout, fs::read_to_string(place.path("mine/capture.toml")).unwrap());
    // Messages name the file itself, without the path's detours.
    let info = run(["info", &place.text("mine"), "--root", &place.text("share")]).stdout;
    let trace = place.path("share/run/trace.bin").canonicalize().unwrap();
    assert!(mentions(&info, trace.to_str().unwrap()) && !info.contains(".."), "{info}");
    // An output never replaces an input file, wherever it is.
    let trace = place.text("share/run/trace.bin");
    let outcome =
        run_with_kinds(["coverage", &place.text("mine"), "--root", &place.text("share"), "-o", &trace]);
    assert!(outcome.status == 2 && mentions(&outcome.stderr, "error: output_is_input"), "{}", outcome.stderr);
}

#[test]
fn what_is_not_allowed_is_not_read_and_the_error_names_the_option() {
    let place = Place::new();
    place.describe();
    assert!(is_refused(&place.runs(&[]), "path_parent"));
    assert!(is_refused(&place.runs(&["share/run"]), "path_outside"));
    assert!(is_refused(&place.runs(&["mine"]), "path_outside"));
    assert!(is_refused(&place.runs(&["nowhere"]), "file_no_directory"));
    // Only the command line sets roots: a description cannot.
    let description = place.path("mine/capture.toml");
    let text = fs::read_to_string(&description).unwrap();
    fs::write(&description, text.replace("[capture]", "[capture]\nroot = \"/\"")).unwrap();
    let outcome = place.runs(&[]);
    assert!(mentions(&outcome.stderr, "error: description_unknown_key"), "{}", outcome.stderr);
    // Absolute names are treated like others.
    fs::write(&description, text.replace("../share", &place.text("share"))).unwrap();
    assert!(is_refused(&place.runs(&[]), "path_absolute"));
    assert!(is_refused(&place.runs(&["share/run"]), "path_outside"));
    assert_eq!(place.runs(&["share"]).status, 0);
}

#[cfg(unix)]
#[test]
fn links_out_of_a_root_are_refused_and_a_linked_trace_is_described_with_its_root() {
    use std::os::unix::fs::symlink;

    let place = Place::new();
    fs::create_dir(place.path("secret")).unwrap();
    fs::rename(place.path("share/run/trace.bin"), place.path("secret/trace.bin")).unwrap();
    symlink(place.path("secret/trace.bin"), place.path("share/run/trace.bin")).unwrap();
    let outcome = place.describe();
    assert!(mentions(&outcome.stderr, "files_elsewhere"), "{}", outcome.stderr);
    assert_eq!(place.runs(&["share", "secret"]).status, 0);
    // The link's own path is in the share, its target is not.
    let description = place.path("mine/capture.toml");
    let text = fs::read_to_string(&description).unwrap();
    fs::write(&description, text.replace("../secret/", "../share/run/")).unwrap();
    assert_eq!(place.runs(&["share", "secret"]).status, 0);
    assert!(is_refused(&place.runs(&["share"]), "path_outside"));
    // A description beside the link names it, and reports the options needed to open it.
    let beside = place.text("share/run/linked.toml");
    let words = [
        "describe",
        &place.text("share/run/trace.bin"),
        "--source",
        "0x10=etmv3,cpu=cortex-m3",
        "-o",
        &beside,
    ];
    assert!(mentions(&run_with_kinds(words).stderr, "files_elsewhere"));
    assert!(is_refused(&run_with_kinds(["flow", &beside]), "path_link"));
    assert_eq!(run_with_kinds(["info", &beside, "--root", &place.text("secret")]).status, 0);
}

#[test]
fn a_snapshot_may_name_what_is_allowed() {
    let place = Place::new();
    let snapshot = place.text("snapshot");
    let outcome =
        run(["describe", "--format", "ds5", example("a7-etmv3").to_str().unwrap(), "-o", &snapshot, "-q"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let expected = run_with_kinds(["flow", &snapshot, "--format", "runs"]);
    fs::rename(place.path("snapshot/cpu_0_memory_0.bin"), place.path("share/memory.bin")).unwrap();
    let device = place.path("snapshot/cpu_0.ini");
    let text = fs::read_to_string(&device).unwrap();
    fs::write(&device, text.replace("cpu_0_memory_0.bin", "../share/memory.bin")).unwrap();
    assert!(is_refused(&run_with_kinds(["flow", &snapshot]), "path_parent"));
    let found = run_with_kinds(["flow", &snapshot, "--format", "runs", "--root", &place.text("share")]);
    assert_eq!((found.status, found.stdout), (0, expected.stdout));
}
