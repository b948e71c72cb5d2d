//! The `tracewalk` command.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod counted;
mod failure;
mod messages;
mod open;
mod output;
mod progress;
mod provenance;
mod sentences;
mod signals;
mod task;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use tracewalk::plain::plain;

use args::Cli;
use failure::Failure;
use messages::Messages;
use output::{Destination, DestinationKind};

/// Everything was decoded, and what was to be checked held.
const COMPLETE: u8 = 0;
/// Something was to be checked, and it did not hold.
const UNMET: u8 = 1;
/// Something could not be read, or trace was malformed or missing.
const INCOMPLETE: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| refuse(&error));
    output::set_colours(cli.color);
    let messages = Messages::new(cli.quiet, cli.provenance.is_some());
    let outcome = prepare(&cli).and_then(|provenance| {
        let outcome = cli.command.task().run(&messages);
        messages.say_late();
        match (&outcome, provenance) {
            // A result that does not hold what was to be checked is one, too.
            (Ok(()) | Err(Failure::Unmet(_) | Failure::Different), Some(file)) => {
                write_provenance(&cli, &file, &messages).and(outcome)
            }
            _ => outcome,
        }
    });
    let status = match outcome {
        Ok(()) if messages.failed() => INCOMPLETE,
        Ok(()) => COMPLETE,
        // Whoever read the output has seen enough, like `head`.
        Err(Failure::ClosedPipe) => COMPLETE,
        // What differs was printed; a comparison that is not complete is an error before all.
        Err(Failure::Different) if messages.failed() => INCOMPLETE,
        Err(Failure::Different) => UNMET,
        Err(failure @ Failure::Unmet(_)) => {
            messages.error(failure);
            UNMET
        }
        Err(failure) => {
            messages.error(failure);
            INCOMPLETE
        }
    };
    ExitCode::from(status)
}

/// Says what is wrong with the arguments, or what was asked about them. Where a shell filled in the names of files, they may
/// hold anything, and are quoted.
fn refuse(error: &clap::Error) -> ! {
    let arguments = std::env::args_os().map(|word| plain(word.to_string_lossy()).into_owned());
    Cli::try_parse_from(arguments).err().as_ref().unwrap_or(error).exit()
}

/// Whether everything can be written that is to be written; before any work. Answers which file `--provenance` is about.
fn prepare(cli: &Cli) -> Result<Option<PathBuf>, Failure> {
    let provenance = cli.provenance.as_ref().map(|file| match file {
        Some(file) => Ok(file.clone()),
        None => beside_result(cli),
    });
    let provenance = provenance.transpose()?;
    let task = cli.command.task();
    let mut outputs = task.writes();
    outputs.extend(provenance.as_deref().map(|path| Destination {
        option: "--provenance",
        path,
        kind: DestinationKind::File,
    }));
    output::check(&outputs, &task.inputs())?;
    Ok(provenance)
}

/// `--provenance` without a name.
fn beside_result(cli: &Cli) -> Result<PathBuf, Failure> {
    let results = cli.command.task().results();
    let Some(result) = results.first() else {
        return Err(Failure::input(
            "--provenance writes a file beside the result, and the result has none",
            "say which with --provenance=FILE, or write the result to a file with -o",
        ));
    };
    let mut name = result.as_os_str().to_owned();
    name.push(".provenance.json");
    Ok(PathBuf::from(name))
}

/// `--provenance`.
fn write_provenance(cli: &Cli, file: &Path, messages: &Messages) -> Result<(), Failure> {
    messages.record(|record| {
        let task = cli.command.task();
        for path in task.saved() {
            record.input("saved", path);
        }
        let (results, (command, words)) = (task.results(), args::effective(std::env::args_os()));
        output::write_to(Some(file), |out| {
            record.write((&command, &words), messages.complete(), &results, out)
        })
    })
}
