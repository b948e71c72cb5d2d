//! `bench`: how fast tracewalk is beside OpenCSD, on the same bytes in one run.
//!
//! Both decode in turn, several times; what counts is the median of the processor time. What they found is compared
//! before: a wrong result fails the task, and so does too much memory; a time never does. `docs/performance.md` says what each line means.

mod captures;
mod document;
mod firmware;
mod interpreter;
mod junk;
mod measure;
mod record;
mod rows;
mod tools;

use captures::Captures;
use rows::Row;
use tools::Tools;

use crate::{Answer, Outcome, target_folder, workspace};

/// What the task was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Small captures and few rounds: whether everything works, not how fast it is.
    short: bool,
    /// Whether the table is kept under `benches/record`.
    record: bool,
    /// Whether our programs are those that were built last.
    built: bool,
    /// Whether the table is put into the page for users.
    document: bool,
    /// How many MiB the captures have that are decoded, where that was said.
    size: Option<u64>,
    /// How many instructions the interpreter runs, where that was said.
    instructions: Option<u64>,
    /// How often each is measured.
    rounds: usize,
    /// The measures that are wanted, by their names; all for none.
    only: Vec<String>,
}

impl Options {
    fn from_arguments() -> Result<Self, String> {
        let mut options = Self {
            short: false,
            record: false,
            built: false,
            document: false,
            size: None,
            instructions: None,
            rounds: 5,
            only: Vec::new(),
        };
        for argument in std::env::args().skip(2) {
            let (name, value) = argument.split_once('=').unwrap_or((&argument, ""));
            let number = || value.parse::<u64>().map_err(|_| format!("found {argument}, expected a number"));
            match name {
                "--short" => (options.short, options.rounds) = (true, 1),
                "--record" => options.record = true,
                "--document" => options.document = true,
                "--built" => options.built = true,
                "--size" => options.size = Some(number()?),
                "--rounds" => options.rounds = usize::try_from(number()?).unwrap_or(usize::MAX),
                "--instructions" => options.instructions = Some(number()?),
                "--only" => options.only = value.split(',').map(str::to_owned).collect(),
                _ => {
                    let expected = "--short, --record, --document, --built, --size=MiB, --instructions=N, --rounds=N or --only=MEASURE,…";
                    return Err(format!("found {argument:?}, expected {expected}"));
                }
            }
        }
        let unknown = options.only.iter().find(|name| !rows::MEASURES.iter().any(|(known, _)| known == name));
        if let Some(unknown) = unknown {
            let known = rows::MEASURES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            return Err(format!("--only: found {unknown:?}, expected {known}"));
        }
        Ok(options)
    }

    /// Whether a measure is wanted.
    fn wants(&self, measure: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == measure)
    }

    /// How large the captures are that are decoded.
    const fn capture_bytes(&self) -> u64 {
        match self.size {
            Some(size) => size << 20,
            None if self.short => 1 << 20,
            None => 50 << 20,
        }
    }

    /// How large the captures are of which OpenCSD writes text: some minutes of it, so that starting counts for nothing.
    const fn text_bytes(&self) -> u64 {
        if self.short { 1 << 16 } else { 6 << 20 }
    }

    /// How large the captures are of which the listing is written.
    const fn listing_bytes(&self) -> u64 {
        if self.short { 1 << 14 } else { 1 << 20 }
    }

    /// How many instructions the interpreter runs whose trace does not repeat.
    const fn interpreter_instructions(&self) -> u64 {
        match self.instructions {
            Some(instructions) => instructions,
            None if self.short => 300_000,
            None => 100_000_000,
        }
    }

    /// How large the capture is on which memory is measured.
    const fn memory_bytes(&self) -> u64 {
        if self.short { 32 << 20 } else { 2 << 30 }
    }
}

/// Runs the task.
pub(crate) fn run() -> Answer {
    let options = Options::from_arguments()?;
    let corpus = workspace().join("../shared/corpus");
    if !corpus.is_dir() {
        return Ok(Outcome::Skipped(format!("found no captures in {}", corpus.display())));
    }
    let folder = target_folder().join("bench");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let tools = Tools::build(&folder, &options)?;
    let captures = Captures::make(&corpus, &folder, &tools.generator, &options)?;
    let mut rows = Vec::new();
    // What is decoded has to be right before its speed means anything.
    let wanted = |name: &str| name == "results" || options.wants(name);
    for (_, measure) in rows::MEASURES.iter().filter(|(name, _)| wanted(name)) {
        for row in measure(&tools, &captures, &options)? {
            println!("{row}");
            rows.push(row);
        }
    }
    let table = record::table(&rows);
    println!("\n{table}");
    if options.record {
        record::keep(&table)?;
    }
    if options.document {
        document::refresh(&rows, &options)?;
    }
    let met = rows.iter().filter(|row| row.is_met() == Some(true)).count();
    let goals = rows.iter().filter(|row| row.is_met().is_some()).count();
    let missed = rows.iter().filter(|row| row.is_met() == Some(false)).map(Row::name).collect::<Vec<_>>();
    let missed = if missed.is_empty() { String::new() } else { format!("; not met: {}", missed.join(", ")) };
    Ok(Outcome::Done(format!("the results are right; {met} of {goals} goals are met{missed}")))
}
