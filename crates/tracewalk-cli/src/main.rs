//! The `tracewalk` command.
#![forbid(unsafe_code)]

mod args;
mod code;
mod commands;
mod failure;
mod frames;
mod guess;
mod messages;
mod mtb;
mod output;
mod progress;
mod sources;
mod work;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, Command};
use failure::Failure;
use messages::Messages;

/// Everything was decoded, and what was to be checked held.
const COMPLETE: u8 = 0;
/// Something was to be checked, and it did not hold.
const UNMET: u8 = 1;
/// Something could not be read, or trace was malformed or missing.
const INCOMPLETE: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    output::set_colours(cli.color);
    let messages = Messages::new(cli.quiet);
    let status = match run(&cli, &messages) {
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

fn run(cli: &Cli, messages: &Messages) -> Result<(), Failure> {
    match &cli.command {
        Command::Info(args) => commands::info::run(args, messages),
        Command::Packets(args) => commands::packets::run(args, messages),
        Command::Flow(args) => commands::flow::run(args, messages),
        Command::Itm(args) => commands::itm::run(args, messages),
        Command::Coverage(args) => commands::coverage::run(args, messages),
        Command::Profile(args) => commands::profile::run(args, messages),
        Command::Calls(args) => commands::calls::run(args, messages),
        Command::Timeline(args) => commands::timeline::run(args, messages),
        Command::Interrupts(args) => commands::interrupts::run(args, messages),
        Command::Diff(args) => commands::diff::run(args, messages),
        Command::Merge(args) => commands::merge::run(args),
        Command::Describe(args) => commands::describe::run(args, messages),
        Command::Snapshot(args) => commands::snapshot::run(args, messages),
        Command::Completions { shell } => commands::shell::completions(*shell, &mut Cli::command()),
        Command::Man { directory } => commands::shell::manual(directory, Cli::command()),
    }
}
