//! The command `tracewalk-conformance`: checks decoding with generated traces.
#![forbid(unsafe_code)]

mod check_damage;
mod check_isa;
mod check_matrix;
mod check_opencsd;
mod check_seek;
mod disassembly;

use std::error::Error;
use std::process::ExitCode;

use tracewalk_generate::arguments::Arguments;

const USAGE: &str = "\
usage: tracewalk-conformance matrix [--all | --every N] [--firmware FOLDER] [CASE]
           check that every kind of trace of the example firmware is decoded as it was generated; a CASE is printed
           with each failure
       tracewalk-conformance damage [--times N] [--case CASE] [--kind 0-5] [--firmware FOLDER]
           damage traces and print a table of what the decoder makes of them
       tracewalk-conformance opencsd [--every N] [--damage N] [--keep FOLDER] [CASE [damage=KIND:SEED]]
           compare with OpenCSD, whose trc_pkt_lister must be installed: every Nth case of the matrix, intact and
           damaged in N ways; fail for unexplained differences; --keep keeps the snapshot of the last case
       tracewalk-conformance seek [--megabytes N] [--seeks N] [--example FOLDER]
           place a cursor at random in a capture of N megabytes, a repeated example, and compare with flow
       tracewalk-conformance check-isa
           compare the classification of instructions with objdump's reading of library code
";

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tracewalk-conformance: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    match arguments.split_first().map(|(command, rest)| (command.as_str(), rest)) {
        Some(("check-isa", rest)) => check_isa::run(&Arguments::new(rest)),
        Some(("damage", rest)) => check_damage::run(Arguments::new(rest)),
        Some(("matrix", rest)) => check_matrix::run(Arguments::new(rest)),
        Some(("opencsd", rest)) => check_opencsd::run(Arguments::new(rest)),
        Some(("seek", rest)) => check_seek::run(Arguments::new(rest)),
        Some(("help" | "--help" | "-h", _)) => {
            print!("{USAGE}");
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}
