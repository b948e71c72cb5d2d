//! The `tracewalk` command.
#![forbid(unsafe_code)]

mod args;
#[cfg(any(feature = "gdb", feature = "view"))]
mod cache;
mod commands;
mod failure;
mod messages;
mod open;
mod output;
mod progress;
mod provenance;
mod signals;
mod task;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use tracewalk::plain::plain;

use args::Cli;
use failure::Failure;
use messages::Messages;
use output::{Destination, DestinationKind, Replaced, pager};

/// Everything was decoded, and all checks passed.
const COMPLETE: u8 = 0;
/// A check failed.
const UNMET: u8 = 1;
/// Something could not be read, or trace was malformed or missing.
const INCOMPLETE: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => refuse(error),
    };
    output::set_colours(cli.color);
    let mut messages = Messages::new(cli.quiet, cli.messages, cli.provenance.is_some());
    if !cli.no_pager
        && cli.task().is_paged()
        && let Some(problem) = pager::start()
    {
        messages.warning("no_pager", problem);
    }
    let outcome = prepare(&cli).and_then(|(provenance, replaced)| {
        messages.replaced = replaced;
        let outcome = cli.task().run(&messages);
        // A result that fails a check has totals and a provenance as well.
        let is_result =
            matches!(outcome, Ok(()) | Err(Failure::Unmet(_) | Failure::Different | Failure::NoFault));
        if is_result {
            messages.say_statistics();
        }
        messages.say_late();
        match provenance.filter(|_| is_result) {
            Some(file) => write_provenance(&cli, &file, &messages).and(outcome),
            None => outcome,
        }
    });
    let status = match outcome {
        Ok(()) if messages.failed() => INCOMPLETE,
        Ok(()) => COMPLETE,
        // The reader of the output has seen enough, like `head`.
        Err(Failure::ClosedPipe) => COMPLETE,
        // The differences were printed; an incomplete comparison is an error first of all.
        Err(Failure::Different | Failure::NoFault) if messages.failed() => INCOMPLETE,
        Err(Failure::Different | Failure::NoFault) => UNMET,
        Err(failure @ Failure::Unmet(_)) => {
            messages.error(&failure);
            UNMET
        }
        Err(failure) => {
            messages.error(&failure);
            INCOMPLETE
        }
    };
    // Errors of this flush were reported before, or the reader has gone.
    let _ = io::stdout().flush();
    match pager::finish() {
        None => ExitCode::from(status),
        Some(problem) => {
            messages.error(&Failure::input(
                "no_pager",
                problem,
                "correct PAGER or TRACEWALK_PAGER, or add --no-pager",
            ));
            ExitCode::from(INCOMPLETE)
        }
    }
}

/// Prints an error of the arguments, or the requested help. File names from a shell may contain anything, and are escaped.
fn refuse(error: clap::Error) -> ! {
    let arguments = std::env::args_os().map(|word| plain(word.to_string_lossy()).into_owned());
    let arguments = arguments.collect::<Vec<_>>();
    let is_json = arguments.iter().any(|word| word == "--messages=json")
        || arguments.windows(2).any(|words| words == ["--messages", "json"]);
    let mut shown = match error.kind() {
        ErrorKind::DisplayVersion => error,
        // Again, with words that can be printed.
        _ => Cli::arranged().try_get_matches_from(&arguments).err().unwrap_or(error),
    };
    suggest_image(&mut shown, &arguments);
    if is_json && shown.use_stderr() {
        messages::refuse(&shown);
        std::process::exit(shown.exit_code());
    }
    // Help that cannot be written is a failure, too.
    let printed = shown.print().and_then(|()| io::stdout().flush());
    let is_lost = printed.is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe);
    std::process::exit(if is_lost { INCOMPLETE.into() } else { shown.exit_code() })
}

/// Suggests `--image` if the unexpected argument is a program, or another tool's option for one.
fn suggest_image(error: &mut clap::Error, arguments: &[String]) {
    const OPTIONS: [&str; 6] = ["--elf", "--axf", "--firmware", "--program", "--exe", "--binary"];
    const EXTENSIONS: [&str; 4] = ["elf", "axf", "out", "hex"];
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg).cloned() else { return };
    if OPTIONS.contains(&word.as_str()) {
        error.insert(ContextKind::SuggestedArg, ContextValue::String("--image".to_owned()));
        return;
    }
    // The program may stand before the capture, as in other tools.
    let is_program = |word: &&String| {
        let extension = Path::new(word).extension().and_then(std::ffi::OsStr::to_str);
        !word.starts_with('-') && extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
    };
    let is_given = arguments.iter().any(|word| word.starts_with("--image"));
    if !word.starts_with('-')
        && !is_given
        && let Some(program) = [&word].into_iter().chain(arguments).find(is_program)
    {
        let tip = format!("the program is given with '--image {program}'");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

/// Checks before any work that all outputs can be written. Returns the file of `--provenance`, and the files that are replaced.
fn prepare(cli: &Cli) -> Result<(Option<PathBuf>, Replaced), Failure> {
    let provenance = cli.provenance.as_ref().map(|file| match file {
        Some(file) => Ok(file.clone()),
        None => beside_result(cli),
    });
    let provenance = provenance.transpose()?;
    let task = cli.task();
    let mut outputs = task.writes();
    outputs.extend(provenance.as_deref().map(|path| Destination {
        option: "--provenance",
        path,
        kind: DestinationKind::File,
    }));
    output::check(&outputs, task.inputs())?;
    let replaced = Replaced::by(&outputs, task.reads().source_dirs);
    Ok((provenance, replaced))
}

/// `--provenance` without a name.
fn beside_result(cli: &Cli) -> Result<PathBuf, Failure> {
    let results = cli.task().results();
    let Some(result) = results.first() else {
        return Err(Failure::input(
            "provenance_without_result",
            "--provenance writes a file next to the result's file, but the result has no file",
            "give the file with --provenance=FILE, or write the result to a file with -o",
        ));
    };
    let mut name = result.as_os_str().to_owned();
    name.push(".provenance.json");
    Ok(PathBuf::from(name))
}

/// `--provenance`.
fn write_provenance(cli: &Cli, file: &Path, messages: &Messages) -> Result<(), Failure> {
    messages
        .record(|record| {
            let task = cli.task();
            for path in task.saved() {
                record.input("saved", path);
            }
            let (results, (command, words)) = (task.results(), args::effective(std::env::args_os()));
            output::write_to(Some(file), |out| {
                record.write((&command, &words), messages.complete(), &results, out)
            })
        })
        .unwrap_or(Ok(()))
}
