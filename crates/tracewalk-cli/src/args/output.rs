//! `-o`: the extension of the output states the format. `--table` chooses what two formats write.

use std::ffi::OsString;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches as _, error::ErrorKind};
use tracewalk_report::export::LACKING;
use tracewalk_report::formats::{formats_of_file, registries};

use super::Cli;
use super::built_in::refuse;
use super::capture::StatedTask;

/// The formats that write one table.
const OF_TABLES: [&str; 2] = ["csv", "parquet"];

impl Cli {
    /// Reads a command line, the command's name first.
    ///
    /// # Errors
    ///
    /// If an argument is wrong, an output's extension contradicts `--format`, or `--table` or `--tasks proven` has no effect.
    pub(crate) fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut arguments = arguments.into_iter().collect::<Vec<_>>();
        let mut command = Self::arranged();
        let mut matches = command.try_get_matches_from_mut(&arguments)?;
        if let Some((name, chosen)) = matches.subcommand() {
            let judged = format_of_output(name, chosen).and_then(|format| {
                if !table_is_written(chosen, format) {
                    return Err(NO_TABLE.to_owned());
                }
                if TASKS_BY_PROOF.contains(&name) || !asks_for_proven_tasks(chosen) {
                    return Ok(format);
                }
                Err(format!("--tasks proven is for {}; leave it out", TASKS_BY_PROOF.join(", ")))
            });
            match judged {
                Ok(None) => {}
                Ok(Some(format)) => {
                    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
                    arguments.splice(end..end, ["--format".into(), format.into()]);
                    matches = command.try_get_matches_from_mut(&arguments)?;
                }
                Err(problem) => {
                    return Err(command.find_subcommand_mut(name).map_or_else(
                        || clap::Error::raw(ErrorKind::ArgumentConflict, &problem),
                        |command| command.error(ErrorKind::ArgumentConflict, &problem),
                    ));
                }
            }
        }
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }
}

const NO_TABLE: &str = "--table is for --format csv and --format parquet; add one of them";

/// The commands with figures for tasks.
const TASKS_BY_PROOF: [&str; 4] = ["tasks", "profile", "timeline", "interrupts"];

fn asks_for_proven_tasks(chosen: &ArgMatches) -> bool {
    let stated = chosen.try_get_many::<StatedTask>("tasks").ok().flatten();
    stated.is_some_and(|mut stated| stated.any(|task| matches!(task, StatedTask::Proven)))
}

/// The format that the extension of the output states, unless `--format` does; an error if they contradict each other. `None` if
/// there are several outputs, each with a format of its own.
pub(super) fn format_of_output(name: &str, chosen: &ArgMatches) -> Result<Option<&'static str>, String> {
    let all = registries().into_iter().find(|(command, _)| *command == name);
    let Some((_, all)) = all.filter(|_| chosen.try_contains_id("output").unwrap_or(false)) else {
        return Ok(None);
    };
    let is_stated = chosen.value_source("format") == Some(ValueSource::CommandLine);
    let stated = chosen.get_raw("format").into_iter().flatten().next().filter(|_| is_stated);
    let outputs = chosen.get_raw("output").into_iter().flatten().collect::<Vec<_>>();
    let mut found = None;
    for output in &outputs {
        let of_file = formats_of_file(Path::new(output));
        let mut known = of_file.iter().filter(|known| all.iter().any(|(format, _)| format == *known));
        let file = output.display();
        match stated {
            _ if of_file.is_empty() => {}
            Some(stated) if stated == "none" || of_file.iter().any(|known| stated == *known) => {}
            Some(stated) => {
                let stated = stated.display();
                return Err(format!(
                    "-o {file} is not the name of a file for --format {stated}; leave out one of them"
                ));
            }
            None => {
                let no_format =
                    || format!("`tracewalk {name}` has no format for -o {file}; choose one with --format");
                let format = *known.next().ok_or_else(no_format)?;
                refuse(format, LACKING)?;
                found = Some(format);
            }
        }
    }
    Ok(found.filter(|_| outputs.len() == 1))
}

/// Whether the command has no `--table`, or a format writes the table.
fn table_is_written(chosen: &ArgMatches, format: Option<&str>) -> bool {
    let has_table = chosen.try_contains_id("table").unwrap_or(false);
    if !has_table || chosen.value_source("table") != Some(ValueSource::CommandLine) {
        return true;
    }
    let values = |id: &str| chosen.try_get_raw(id).ok().flatten().into_iter().flatten().collect::<Vec<_>>();
    let of_outputs = values("output").into_iter().flat_map(|output| formats_of_file(Path::new(output)));
    let stated = values("format");
    format.into_iter().chain(of_outputs.copied()).any(|format| OF_TABLES.contains(&format))
        || stated.iter().any(|format| OF_TABLES.iter().any(|of_tables| *format == *of_tables))
}
