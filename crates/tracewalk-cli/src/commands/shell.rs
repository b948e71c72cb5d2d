//! `completions` and `man`: the command line, described for a shell and for `man`.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::args::{Cli, Completions, Man};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::{Destination, DestinationKind, OutputFolder, standard_output};
use crate::task::{Reads, Task};

impl Task for Completions {
    fn reads(&self) -> Reads<'_> {
        Reads::NOTHING
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        vec![Destination::standard_output()]
    }

    /// Prints a completion script.
    fn run(&self, _: &Messages) -> Result<(), Failure> {
        // The generator cannot report errors, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "tracewalk", &mut script);
        let mut out = standard_output();
        out.write_all(&script)?;
        Ok(out.flush()?)
    }
}

impl Task for Man {
    fn reads(&self) -> Reads<'_> {
        Reads::NOTHING
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        vec![Destination { option: "DIR", path: &self.directory, kind: DestinationKind::Folder }]
    }

    /// Writes a page for the command and one for each of its subcommands.
    fn run(&self, _: &Messages) -> Result<(), Failure> {
        let folder = OutputFolder::over(&self.directory)?;
        clap_mangen::generate_to(Cli::command(), folder.staging())
            .map_err(|error| Failure::write(&self.directory, error))?;
        folder.finish()
    }
}
