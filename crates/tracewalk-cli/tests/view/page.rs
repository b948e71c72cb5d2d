//! The page in Chromium: used with keys and pointer, served and exported.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Served, repeated};
use crate::support::{example, has, run};

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/view/page.py")
}

/// Lets tests/view/page.py use a page; it fails if something is not as it should be.
fn visit(what: &str, url: &str, folder: Option<&Path>) {
    let mut command = Command::new("python3");
    command.arg(script()).args(["chromium", what, url]).args(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
}

fn has_browser() -> bool {
    has("chromium") && has("python3")
}

/// Steps, searches, zooms, follows a link, and asks nobody but its own server.
#[test]
fn a_page_is_used_with_keys_and_pointer() {
    if !has_browser() {
        return;
    }
    let served = Served::of("m3-etmv3");
    visit("use", &served.url(), None);
    // What makes a page of another site read this one, in the same browser.
    visit("other-site", &served.url(), None);
}

/// A trace in which bytes are missing has a gap, and the page goes there.
#[test]
fn a_gap_is_seen_and_reached() {
    if !has_browser() {
        return;
    }
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

#[test]
fn a_large_capture_is_shown_as_a_small_one() {
    if !has_browser() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start([repeated("a7-etmv3", 100 << 20, folder.path())]);
    visit("large", &served.url(), None);
}

/// One file that needs nothing else shows what the server shows.
#[test]
fn an_exported_page_is_the_same_page() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crash.html");
    let capture = example("m0-crash-mtb/capture.toml");
    let (capture, written) = (capture.to_str().unwrap(), file.to_str().unwrap());
    let outcome = run(["view", capture, "--at", "last", "--export", written]);
    assert!(file.is_file(), "{}", outcome.stderr);
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(!page.contains("<script src") && !page.contains("<link rel=\"stylesheet\""));
    if has_browser() {
        visit("exported", &format!("file://{}", file.display()), None);
    }
}

/// The documentation's pictures are taken of the examples; with PICTURES=overwrite they are replaced.
#[test]
fn the_documentations_pictures_can_be_taken() {
    if !has_browser() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (capture, sources) = (example("m3-etmv3/capture.toml"), example("../firmware"));
    let served = Served::start([capture, "--source-dir".into(), sources]);
    visit("pictures", &served.url(), Some(folder.path()));
    let overwrite = std::env::var_os("PICTURES").is_some_and(|value| value == "overwrite");
    for name in ["view.png", "view-dark.png", "view-narrow.png"] {
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
