//! npm packages: other projects' readers of profiles, and their schemas.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::has;

const PACKAGES: [&str; 3] =
    ["speedscope@1.25.0", "pprof-format@2.3.2", "@firefox-devtools/profiler-cli@0.10.0"];

/// The folder `node_modules` with the packages, installed if missing. `None`, with a message, if they cannot
/// be installed; with the environment variable CI set, that is a failure.
pub(crate) fn node_modules() -> Option<PathBuf> {
    if !has("node") || !has("npm") {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("npm");
    std::fs::create_dir_all(&folder).expect("the folder of tests can be written");
    // Tests run in parallel, and one of them installs.
    let lock =
        std::fs::File::create(folder.with_extension("lock")).expect("the folder of tests can be written");
    lock.lock().expect("the folder of tests can be locked");
    let done = folder.join("installed");
    let wanted = PACKAGES.join(" ");
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        return Some(folder.join("node_modules"));
    }
    let options = ["install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefix"];
    let output = Command::new("npm").args(options).arg(&folder).args(PACKAGES).output();
    let output = output.expect("npm runs");
    if !output.status.success() {
        let problem = String::from_utf8_lossy(&output.stderr);
        assert!(std::env::var_os("CI").is_none(), "the npm packages cannot be installed: {problem}");
        eprintln!("skipped: the npm packages cannot be installed: {problem}");
        return None;
    }
    std::fs::write(done, wanted).expect("the folder of tests can be written");
    Some(folder.join("node_modules"))
}
