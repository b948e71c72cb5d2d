//! The command `tracewalk-generate`: records of executed paths, and the traces of them.
#![forbid(unsafe_code)]

mod dispatch;
mod etmv4_files;
mod files;
mod generate;

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::ExitCode;

use files::{read_elf, read_record, write};
use tracewalk_generate::arguments::Arguments;
use tracewalk_generate::elf::Elf;
use tracewalk_generate::path::Path;
use tracewalk_generate::qemu::LogReader;
use tracewalk_generate::record::{Profile, Record};
use tracewalk_generate::tarmac;

const USAGE: &str = "\
usage: tracewalk-generate record --elf FILE --log FILE --output FILE
           write the execution in QEMU's log as a record
       tracewalk-generate record --tarmac FILE [--processor NAME] --output FILE
           write the execution in the Tarmac text of Arm's models as a record
       tracewalk-generate runs RECORD
           print a record in the runs format of `tracewalk flow`
       tracewalk-generate capture --record FILE --elf FILE --protocol PROTOCOL[,key=value...] --output FOLDER
           write the trace of a record; PROTOCOL is etmv3, pft, etmv4 or mtb; keys for all but mtb: cpu=cortex-m3
           (required), and registers by Arm's names in lower case, for example etmcr=0x100 and trcidr8=0x1e
         etmv3, pft and etmv4:
           --branch-broadcast --cycle-accurate --context-id-bytes N
                                 bits of ETMCR by their meaning; for etmv3 also --data-addresses and --data-values,
                                 for pft also --return-stack; bits of TRCCONFIGR for etmv4: --return-stack,
                                 --context-ids and --vmids instead of --context-id-bytes
           --id ID               the trace ID; 0x10 by default
           --container frames|raw
           --itm ID:TEXT         in frames: text from an ITM beside the trace
           --dwt ID:ADDRESS      in frames: the stores to an address, by a DWT and an ITM beside the trace
           --snapshot            write a snapshot folder for OpenCSD instead of capture.toml
           --synchronise BYTES   the distance of periodic synchronisations; 0 for only one; 1024 by default
           --timestamps N        a timestamp every N instructions
           --times FILE          write the number of cycles that had passed after each step of the record
           --pauses TRACED:UNTRACED[:REASON]
                                 switch tracing off after TRACED steps of the path, for UNTRACED steps; REASON is enabled,
                                 overflow or debug
           --triggers N          a trigger and an ignore packet every N instructions
           --non-secure          the processor is in Non-secure state
         etmv3:
           --cancel never|multiple|always
                                 which interrupted instructions are traced and cancelled
           --tail-chaining-follows
                                 an exception that replaces a return does not cancel the return
           --deprecated-exceptions
                                 send exceptions as the deprecated codes of the original address encoding
         pft and etmv4:
           --return-stack-depth N
         etmv4:
           --contexts with|before|after
                                 the place of a context that changes together with an address
           --cycle-threshold N   cycle counts are sent from N cycles on
           --wrong-paths N       a wrong path every N conditional branches, if trcidr8 is not 0; 0 for none
           --q-elements N        a Q element every N branches, if trcidr0 has them; 0 for none
           --source-addresses N  a source address every N taken branches, in ETE; 0 for none
           --late-addresses      periodic synchronisations send their address after the next atom
           --keeps-returns       the return stack keeps its entries across a periodic synchronisation
         mtb:
           --mtb-size BYTES      the size of the buffer, a power of two; 4096 by default
           --mtb-base ADDRESS    the address of the MTB's memory; 0x20000000 by default
           --branches-to-next    also write packets for branches to the next address
           --process-stack       thread mode uses the process stack
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
        Some(("record", rest)) => record(Arguments::new(rest)),
        Some(("capture", rest)) => dispatch::run(Arguments::new(rest)),
        Some(("runs", [file])) => {
            print!("{}", read_record(file)?.runs());
            Ok(())
        }
        Some(("help" | "--help" | "-h", _)) => {
            print!("{USAGE}");
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}

fn record(mut arguments: Arguments) -> Result<(), Box<dyn Error>> {
    if let Some(file) = arguments.optional("--tarmac")? {
        return record_tarmac(&file, arguments);
    }
    let elf_file = arguments.required("--elf")?;
    let log_file = arguments.required("--log")?;
    let output = arguments.required("--output")?;
    arguments.finish()?;
    let elf = read_elf(&elf_file)?;
    let path = read_log(&log_file, &elf).map_err(|error| format!("{log_file}: {error}"))?;
    write(&output, Record::of_path(elf.profile, &path).to_string().as_bytes())?;
    Ok(())
}

fn record_tarmac(file: &str, mut arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let processor = arguments.optional("--processor")?;
    let output = arguments.required("--output")?;
    arguments.finish()?;
    let text = files::read_text(file)?;
    let path = tarmac::read(&text, processor.as_deref()).map_err(|error| format!("{file}: {error}"))?;
    write(&output, Record::of_path(Profile::Ar, &path).to_string().as_bytes())?;
    Ok(())
}

/// Reads a log that need not fit into memory, and may be a pipe.
fn read_log(file: &str, elf: &Elf) -> Result<Path, Box<dyn Error>> {
    let mut log = BufReader::with_capacity(1 << 20, File::open(file)?);
    let mut reader = LogReader::new(elf.profile, &elf.program);
    let mut line = Vec::new();
    while log.read_until(b'\n', &mut line)? > 0 {
        if !reader.line(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']))? {
            break;
        }
        line.clear();
    }
    Ok(reader.finish()?)
}
