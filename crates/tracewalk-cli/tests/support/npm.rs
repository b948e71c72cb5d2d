//! npm packages: other projects' readers of profiles, and their schemas.

use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGES: [&str; 3] =
    ["speedscope@1.25.0", "pprof-format@2.3.2", "@firefox-devtools/profiler-cli@0.10.0"];

/// The folder `node_modules` with the packages, installed if missing.
pub(crate) fn node_modules() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("npm");
    std::fs::create_dir_all(&folder).expect("the folder of tests can be written");
    // Tests run in parallel, and one of them installs.
    let lock =
        std::fs::File::create(folder.with_extension("lock")).expect("the folder of tests can be written");
    lock.lock().expect("the folder of tests can be locked");
    let done = folder.join("installed");
    let wanted = PACKAGES.join(" ");
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        return folder.join("node_modules");
    }
    let options = ["install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefix"];
    let output = Command::new("npm").args(options).arg(&folder).args(PACKAGES).output();
    let output = output.expect("npm runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::write(done, wanted).expect("the folder of tests can be written");
    folder.join("node_modules")
}
