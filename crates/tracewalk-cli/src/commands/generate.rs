//! `--generate`: the command line, described for a shell and for `man`.

use clap_complete::Shell;

use crate::args::{Cli, Generate, Kind};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::{Destination, DestinationKind, OutputFolder, write_to};
use crate::task::{Reads, Task};

impl Task for Generate {
    fn reads(&self) -> Reads<'_> {
        Reads::default()
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        match (self.kind, self.output.as_deref()) {
            (Some(Kind::Man), Some(path)) => {
                vec![Destination { option: "-o", path, kind: DestinationKind::Folder }]
            }
            (_, output) => vec![Destination::output(output)],
        }
    }

    fn is_for_people(&self) -> bool {
        false
    }

    fn run(&self, _: &Messages) -> Result<(), Failure> {
        let shell = match self.kind {
            Some(Kind::Man) => return self.output.iter().try_for_each(|folder| manual(folder)),
            Some(Kind::CompleteBash) => Shell::Bash,
            Some(Kind::CompleteElvish) => Shell::Elvish,
            Some(Kind::CompleteFish) => Shell::Fish,
            Some(Kind::CompletePowershell) => Shell::PowerShell,
            Some(Kind::CompleteZsh) => Shell::Zsh,
            None => return Ok(()),
        };
        // The generator cannot report errors, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::arranged(), "tracewalk", &mut script);
        write_to(self.output.as_deref(), |out| out.write_all(&script))
    }
}

/// Writes a page for the command and one for each of its subcommands.
fn manual(directory: &std::path::Path) -> Result<(), Failure> {
    let folder = OutputFolder::over(directory)?;
    clap_mangen::generate_to(Cli::arranged(), folder.staging())
        .map_err(|error| Failure::write(directory, error))?;
    folder.finish()
}
