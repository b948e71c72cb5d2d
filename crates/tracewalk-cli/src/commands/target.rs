//! What the commands share that speak to a target.

use std::net::TcpStream;
use std::ops::Range;
use std::path::{Path, PathBuf};

use tracewalk_input::image::{Image, ImageRequest};
use tracewalk_target::client::Client;
use tracewalk_target::connection::connect;
use tracewalk_target::problem::Fault;
use tracewalk_target::{Problem, halted};

use crate::args::Server;
use crate::failure::Failure;
use crate::output::write_to;

/// A client of the server.
pub(super) fn client(server: &Server) -> Result<Client<TcpStream>, Failure> {
    let connection = connect(&server.host, server.port);
    connection.and_then(Client::new).map_err(|problem| failure(server, &problem))
}

/// What is wrong with a target, and what to try.
pub(super) fn failure(server: &Server, problem: &Problem) -> Failure {
    let hint = match problem {
        Problem::NoServer { .. } => {
            "start the probe's server, such as `openocd` or `pyocd gdbserver`, and check the port"
        }
        Problem::Closed | Problem::Silent { .. } => {
            "check the server's own messages; another debugger may hold the only connection"
        }
        Problem::NotGdb => "check the port: a server has others, such as for telnet and for trace",
        Problem::NoTarget => "check the probe's cable, and the chip's power",
        Problem::NoRomTable | Problem::NoSource { .. } => {
            "if the chip's reference manual names a ROM table, give its address with --rom"
        }
        Problem::NoBuffer { has_port: true, .. } => "record the pins with a logic analyser or a trace probe",
        Problem::Nothing { .. } => {
            "the chip may need the power or clock of its trace units switched on first; see its reference manual"
        }
        Problem::SizeUnknown => "give the memory with --buffer ADDRESS:SIZE, or leave --dry-run out",
        Problem::BufferNeeded => {
            "give memory that the program does not use with --buffer VARIABLE or --buffer ADDRESS:SIZE"
        }
        Problem::Buffer(_) => "give other memory with --buffer",
        Problem::KeepsNewest { .. } => "leave --head out, and end earlier with --until",
        Problem::NoItm => "leave --itm out",
        Problem::Unit { fault: Fault::Claimed, .. } => "end the other debugger, or reset the chip",
        Problem::Reset => "look for a watchdog, or a fault that resets the chip",
        Problem::Unit { .. } | Problem::Access { .. } => {
            "the chip may protect it, or need its power or clock switched on first; see its reference manual"
        }
        _ => "check the server's own messages",
    };
    Failure::input(problem.name(), format!("{server}: {problem}"), hint)
}

/// The most bytes of variables that are read: RAM of a microcontroller.
const OF_VARIABLES: u64 = 1 << 20;

/// Reads a halted processor into a folder; returns what `crash` opens there.
pub(super) fn halted(
    server: &Server,
    images: &[ImageRequest],
    folder: &Path,
    save: Option<&Path>,
) -> Result<PathBuf, Failure> {
    let mut variables = Vec::new();
    for request in images {
        let bytes = super::record::read(&request.file)?;
        // An image that cannot be used is reported when the program is followed.
        let Ok(image) = Image::from_bytes(&request.file, &request.kind, bytes) else { continue };
        variables.extend(image.variables());
    }
    let ranges = stretches(variables);
    let failed = |problem: Problem| failure(server, &problem);
    let mut client = client(server)?;
    let found = halted::read(&mut client, None, &ranges).map_err(failed)?;
    if found.was_running {
        client.resume().map_err(failed)?;
    }
    let log = found.log();
    let write = |path: &Path, bytes: &[u8]| write_to(Some(path), |out| out.write_all(bytes));
    if let Some(file) = save {
        write(file, log.as_bytes())?;
    }
    let file = folder.join("crash.log");
    write(&file, log.as_bytes())?;
    let Some(trace) = &found.trace else { return Ok(file) };
    if let Some(file) = save {
        write(&file.with_extension("bin"), &trace.bytes)?;
    }
    write(&folder.join("trace.bin"), &trace.bytes)?;
    let description = trace.description("trace.bin");
    let description = description.replacen("\n\n", "\ndump = \"crash.log\"\n\n", 1);
    let described = folder.join("capture.toml");
    write(&described, description.as_bytes())?;
    Ok(described)
}

/// The stretches of memory that hold variables, joined where little is between them.
fn stretches(mut variables: Vec<Range<u64>>) -> Vec<Range<u32>> {
    const LITTLE: u64 = 256;
    variables.sort_by_key(|range| range.start);
    let mut joined = Vec::<Range<u64>>::new();
    for range in variables {
        match joined.last_mut() {
            Some(last) if range.start <= last.end + LITTLE => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    let mut left = OF_VARIABLES;
    joined.retain(|range| {
        let size = range.end - range.start;
        let fits = size <= left;
        left -= if fits { size } else { 0 };
        fits
    });
    let narrow = |range: Range<u64>| Some(u32::try_from(range.start).ok()?..u32::try_from(range.end).ok()?);
    joined.into_iter().filter_map(narrow).collect()
}
