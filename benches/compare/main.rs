//! `cargo xtask bench`: measures the speed of tracewalk and OpenCSD, on the same bytes in one run.
//!
//! Both decode in turn, several times; the result is the median of the processor time. Their decoded output
//! is compared first. A wrong result or too much memory fails the task; a time never does.
//! `benches/record/README.md` explains each line.

#![forbid(unsafe_code)]

mod captures;
mod firmware;
mod interpreter;
mod junk;
mod measure;
#[path = "../../xtask/src/process.rs"]
mod process;
mod record;
mod rows;
mod tools;

use std::process::ExitCode;

use captures::Captures;
use process::{target_folder, workspace};
use rows::Row;
use tools::Tools;

/// The task's options.
#[derive(Clone, Copy, Debug)]
struct Options {
    /// Uses small captures and few rounds, to check that everything works rather than how fast it is.
    short: bool,
    /// Saves the table under `benches/record`.
    record: bool,
    /// Measures the programs of the last build instead of building them.
    built: bool,
    /// The size of the decoded captures in MiB, if it is given.
    size: Option<u64>,
    /// The number of measurements of each row.
    rounds: usize,
}

impl Options {
    fn from_arguments() -> Result<Self, String> {
        let mut options = Self { short: false, record: false, built: false, size: None, rounds: 5 };
        for argument in std::env::args().skip(1) {
            let (name, value) = argument.split_once('=').unwrap_or((&argument, ""));
            let number = || value.parse::<u64>().map_err(|_| format!("found {argument}, expected a number"));
            match name {
                "--short" => (options.short, options.rounds) = (true, 1),
                "--record" => options.record = true,
                "--built" => options.built = true,
                "--size" => options.size = Some(number()?),
                "--rounds" => options.rounds = usize::try_from(number()?).unwrap_or(usize::MAX),
                _ => {
                    let expected = "--short, --record, --built, --size=MiB or --rounds=N";
                    return Err(format!("found {argument:?}, expected {expected}"));
                }
            }
        }
        Ok(options)
    }

    /// The size of the decoded captures.
    const fn capture_bytes(self) -> u64 {
        match self.size {
            Some(size) => size << 20,
            None if self.short => 1 << 20,
            None => 50 << 20,
        }
    }

    /// The size of the captures whose text OpenCSD writes. That takes some minutes, so that the time to start
    /// is negligible.
    const fn text_bytes(self) -> u64 {
        if self.short { 1 << 16 } else { 6 << 20 }
    }

    /// The size of the captures that are listed.
    const fn listing_bytes(self) -> u64 {
        if self.short { 1 << 14 } else { 1 << 20 }
    }

    /// The number of instructions that the interpreter runs. Its trace does not repeat.
    const fn interpreter_instructions(self) -> u64 {
        if self.short { 300_000 } else { 14_000_000 }
    }

    /// The size of the capture with which memory is measured.
    const fn memory_bytes(self) -> u64 {
        if self.short { 32 << 20 } else { 2 << 30 }
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(summary) => {
            println!("bench: {summary}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, String> {
    let options = Options::from_arguments()?;
    let corpus = workspace().join("../shared/corpus");
    if !corpus.is_dir() {
        return Err(format!("found no captures in {}", corpus.display()));
    }
    let folder = target_folder().join("bench");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let tools = Tools::build(&folder, options)?;
    let captures = Captures::make(&corpus, &folder, &tools.generator, options)?;
    let mut rows = Vec::new();
    for measure in rows::MEASURES {
        for row in measure(&tools, &captures, options)? {
            println!("{row}");
            rows.push(row);
        }
    }
    let table = record::table(&rows);
    println!("\n{table}");
    if options.record {
        record::keep(&table)?;
    }
    let met = rows.iter().filter(|row| row.is_met() == Some(true)).count();
    let goals = rows.iter().filter(|row| row.is_met().is_some()).count();
    let missed = rows.iter().filter(|row| row.is_met() == Some(false)).map(Row::name).collect::<Vec<_>>();
    let missed = if missed.is_empty() { String::new() } else { format!("; not met: {}", missed.join(", ")) };
    Ok(format!("the results are right; {met} of {goals} goals are met{missed}"))
}
