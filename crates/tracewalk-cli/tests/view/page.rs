//! The page in Chromium: used with keys and pointer, served and exported.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::cores::two_sources;
use super::figures::{assert_costs, assert_counts};
use super::{Served, repeated};
use crate::support::{example, run};

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/view/page.py")
}

/// Lets tests/view/page.py use a page; the test fails if the script finds a fault.
fn visit(what: &str, url: &str, folder: Option<&Path>) {
    visit_with(what, url, folder, &[]);
}

fn visit_with(what: &str, url: &str, folder: Option<&Path>, environment: &[(&str, String)]) {
    let mut command = Command::new("python3");
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command.arg(script()).args(["chromium", what, url]).args(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Steps, searches, zooms and follows a link; the page sends requests only to its own server.
#[test]
#[ignore = "needs chromium and python3"]
fn a_page_is_used_with_keys_and_pointer() {
    let served = Served::of("m3-etmv3");
    visit("use", &served.url(), None);
    // In the same browser, a page of another site tries to read this one.
    visit("other-site", &served.url(), None);
}

/// A trace with missing bytes has a gap, and the page can go to it.
#[test]
#[ignore = "needs chromium and python3"]
fn a_gap_is_seen_and_reached() {
    let folder = tempfile::tempdir().unwrap();
    let capture = repeated("m3-etmv3", 1, folder.path());
    let trace = folder.path().join("trace.bin");
    let mut bytes = std::fs::read(&trace).unwrap();
    bytes.drain(2000..2160);
    std::fs::write(&trace, bytes).unwrap();
    let served = Served::start([capture]);
    assert!(served.ask("capture")["sources"][0]["gaps"].as_u64() > Some(0));
    visit("gap", &served.url(), None);
}

/// A capture with the same trace many times, and bytes missing in the middle: its figures equal those of the
/// other commands, and the page works like that of a small capture.
fn large(bytes: usize) {
    let folder = tempfile::tempdir().unwrap();
    let capture = repeated("a7-etmv3", bytes, folder.path());
    let trace = folder.path().join("trace.bin");
    let mut whole = std::fs::read(&trace).unwrap();
    // In the middle of one repetition: a loss between two leaves no gap.
    let one = usize::try_from(std::fs::metadata(example("a7-etmv3/trace.bin")).unwrap().len()).unwrap();
    let middle = whole.len() / one / 2 * one + one / 2;
    whole.drain(middle..middle + 1600);
    std::fs::write(&trace, whole).unwrap();
    let (served, capture) = (Served::start([&capture]), capture.to_str().unwrap());
    assert_costs(&served, capture);
    assert_counts(&served, capture);
    let source = served.ask("capture")["sources"][0].clone();
    let (steps, instructions) = (source["steps"].as_u64().unwrap(), source["instructions"].as_u64().unwrap());
    // The steps around some places are those that flow lists there.
    for number in [0, instructions / 3, instructions / 2, instructions - 500] {
        let window = [number, number + 400].map(|number| number.to_string());
        let flow =
            ["flow", capture, "--format", "jsonl", "--quiet", "--from", &window[0], "--to", &window[1]];
        let flow = run(flow).stdout;
        let ran = flow.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let ran = ran.filter(|line| line["element"] == "range").collect::<Vec<_>>();
        let first = served.ask(&format!("move?what=number&from={number}"))["step"].as_u64().unwrap();
        let rows = served.ask(&format!("rows?from={first}&count=1000"))["rows"].clone();
        let rows = rows.as_array().unwrap().iter().filter(|row| row["kind"] == "instruction");
        let mut rows = rows.collect::<Vec<_>>().into_iter();
        let mut compared = 0;
        for range in &ran {
            let count = usize::try_from(range["instructions"].as_u64().unwrap()).unwrap();
            let shown = rows.by_ref().take(count).collect::<Vec<_>>();
            assert_eq!(shown.len(), count);
            assert_eq!(address(&shown[0]["address"]), address(&range["start"]), "instruction {number}");
            compared += count;
        }
        assert_eq!(compared, 400, "instruction {number}");
    }
    visit_with("large", &served.url(), None, &[("STEPS", steps.to_string())]);
}

fn address(hex: &serde_json::Value) -> u64 {
    u64::from_str_radix(hex.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

#[test]
#[ignore = "needs chromium and python3"]
fn a_capture_of_some_megabytes_is_shown_as_a_small_one() {
    large(2 << 20);
}

#[test]
#[ignore = "heavy: decodes 100 MB several times, in chromium"]
fn heavy_a_capture_of_100_megabytes_is_shown_as_a_small_one() {
    large(100 << 20);
}

/// The other core of a capture is a lane in the timeline, and a click on the lane goes to that core.
#[test]
#[ignore = "needs chromium and python3"]
fn another_core_is_a_lane() {
    let folder = tempfile::tempdir().unwrap();
    visit("cores", &Served::start([two_sources(folder.path())]).url(), None);
}

/// A single self-contained file shows the same as the server.
#[test]
#[ignore = "needs chromium and python3"]
fn an_exported_page_is_the_same_page() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crash.html");
    let capture = example("m0-crash-mtb/capture.toml");
    let (capture, written) = (capture.to_str().unwrap(), file.to_str().unwrap());
    let outcome = run(["view", capture, "--cache", "none", "--at", "last", "-o", written]);
    assert!(file.is_file(), "{}", outcome.stderr);
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(!page.contains("<script src") && !page.contains("<link rel=\"stylesheet\""));
    visit("exported", &format!("file://{}", file.display()), None);
}

/// The documentation's pictures show the examples; PICTURES=overwrite replaces them.
#[test]
#[ignore = "needs chromium and python3"]
fn the_documentations_pictures_can_be_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, sources) = (example("m3-etmv3/capture.toml"), example("../firmware"));
    let served = Served::start([capture, "--src-dir".into(), sources]);
    visit("pictures", &served.url(), Some(folder.path()));
    let cores = tempfile::tempdir().unwrap();
    let named = cores.path().join("two-sources");
    std::fs::create_dir(&named).unwrap();
    let served = Served::start([two_sources(&named), "--src-dir".into(), example("../firmware")]);
    visit("picture-cores", &served.url(), Some(folder.path()));
    let overwrite = std::env::var_os("PICTURES").is_some_and(|value| value == "overwrite");
    for name in ["view.png", "view-dark.png", "view-narrow.png", "view-cores.png"] {
        let picture = folder.path().join(name);
        assert!(std::fs::metadata(&picture).unwrap().len() > 10_000, "{name} shows something");
        let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures").join(name);
        if overwrite {
            std::fs::copy(&picture, committed).unwrap();
        } else {
            assert!(committed.is_file(), "{name}: take it with PICTURES=overwrite");
        }
    }
}
