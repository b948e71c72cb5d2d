//! The command `tracewalk-generate`: records of executed paths, and the traces of them.
#![forbid(unsafe_code)]

use std::error::Error;
use std::process::ExitCode;

use tracewalk_generate::record::Record;
use tracewalk_generate::{elf, qemu};

const USAGE: &str = "\
usage: tracewalk-generate record --elf FILE --log FILE --output FILE
           what QEMU's log says was executed, as a record
       tracewalk-generate runs RECORD
           a record in the runs format of `tracewalk flow`
";

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tracewalk-generate: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    match arguments.split_first().map(|(command, rest)| (command.as_str(), rest)) {
        Some(("record", rest)) => record(&mut Arguments(rest.to_vec())),
        Some(("runs", [file])) => {
            print!("{}", read_record(file)?.runs());
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}

fn record(arguments: &mut Arguments) -> Result<(), Box<dyn Error>> {
    let elf_file = arguments.required("--elf")?;
    let log_file = arguments.required("--log")?;
    let output = arguments.required("--output")?;
    arguments.finish()?;
    let elf = elf::read(&read(&elf_file)?).map_err(|error| format!("{elf_file}: {error}"))?;
    let log = read_text(&log_file)?;
    let path =
        qemu::read_log(&log, elf.profile, &elf.program).map_err(|error| format!("{log_file}: {error}"))?;
    let record = Record::of_path(elf.profile, &path).to_string();
    std::fs::write(&output, record).map_err(|error| format!("{output}: {error}"))?;
    Ok(())
}

fn read_record(file: &str) -> Result<Record, String> {
    Record::parse(&read_text(file)?).map_err(|error| format!("{file}: {error}"))
}

fn read(file: &str) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{file}: {error}"))
}

fn read_text(file: &str) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))
}

/// The arguments of a command that were not looked at yet.
struct Arguments(Vec<String>);

impl Arguments {
    /// The value behind `option`.
    fn required(&mut self, option: &str) -> Result<String, String> {
        let index = self.0.iter().position(|argument| argument == option);
        let index = index.ok_or_else(|| format!("{option} is missing\n{USAGE}"))?;
        self.0.remove(index);
        if index < self.0.len() { Ok(self.0.remove(index)) } else { Err(format!("{option} needs a value")) }
    }

    fn finish(&self) -> Result<(), String> {
        self.0.first().map_or(Ok(()), |excess| Err(format!("\"{excess}\" is not an option here\n{USAGE}")))
    }
}
