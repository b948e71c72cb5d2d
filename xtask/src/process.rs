//! Running other programs.

use std::process::{Command, Stdio};

/// The standard output of a command that succeeds.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{name}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
    }
}
