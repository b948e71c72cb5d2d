//! `--table` chooses what two formats write; with another format it would have no effect.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, error::ErrorKind};

use super::Cli;

/// The formats that write one table.
const OF_TABLES: [&str; 2] = ["csv", "parquet"];

impl Cli {
    /// Reads a command line, the command's name first.
    ///
    /// # Errors
    ///
    /// If an argument is wrong, or `--table` has no effect.
    pub(crate) fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let mut matches = command.try_get_matches_from_mut(arguments)?;
        if let Some((name, chosen)) = matches.subcommand()
            && !table_is_written(chosen)
        {
            let problem = "--table is for --format csv and --format parquet; add one of them";
            let command = command.find_subcommand_mut(name);
            return Err(command.map_or_else(
                || clap::Error::raw(ErrorKind::ArgumentConflict, problem),
                |command| command.error(ErrorKind::ArgumentConflict, problem),
            ));
        }
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }
}

/// Whether the command has no `--table`, or its format writes the table.
fn table_is_written(chosen: &ArgMatches) -> bool {
    let has_table = chosen.try_contains_id("table").unwrap_or(false);
    if !has_table || chosen.value_source("table") != Some(ValueSource::CommandLine) {
        return true;
    }
    let mut formats = chosen.get_raw("format").into_iter().flatten();
    formats.any(|format| OF_TABLES.iter().any(|of_tables| format == *of_tables))
}
