//! Runs other programs, and finds the folders that they work in. The comparison with OpenCSD in `benches` uses
//! this file too.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of the workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The folder that cargo builds into.
pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace().join("target"), |folder| workspace().join(folder))
}

/// The standard output of a successful command.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        // Some programs print their errors on standard output.
        let said = [&output.stderr, &output.stdout].into_iter().find(|said| !said.is_empty());
        let said = said.map(|said| String::from_utf8_lossy(said)).unwrap_or_default();
        Err(format!("{name}: {}\n{said}", output.status))
    }
}
