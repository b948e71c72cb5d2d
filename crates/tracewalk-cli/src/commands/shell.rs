//! `completions` and `man`: what a shell and `man` want to know of the command line.

use std::io::Write as _;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output::{OutputFolder, standard_output};

/// Prints a completion script.
pub(crate) fn completions(shell: Shell, command: &mut Command) -> Result<(), Failure> {
    // The generator cannot report errors, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "tracewalk", &mut script);
    let mut out = standard_output();
    out.write_all(&script)?;
    Ok(out.flush()?)
}

/// Writes a page for the command and one for each of its subcommands.
pub(crate) fn manual(directory: &Path, command: Command) -> Result<(), Failure> {
    let folder = OutputFolder::over(directory)?;
    clap_mangen::generate_to(command, folder.staging()).map_err(|error| Failure::write(directory, error))?;
    folder.finish()
}
