//! Runs other programs.

use std::process::{Command, Stdio};

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
