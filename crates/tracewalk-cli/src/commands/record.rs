//! `record`: sets the trace units of a chip up through its debug probe's GDB server, and writes what they record.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use tracewalk_input::capture::stream::Stop;
use tracewalk_input::image::{self, Image, ImageForm, ImageKind, Segment};
use tracewalk_target::chip::{Chip, KNOWN};
use tracewalk_target::record::{Ended, Keep, Recording, Request, Session, Setup, Until};
use tracewalk_target::rom::Kind;
use tracewalk_target::{Problem, halted, script};

use super::target;
use crate::args::{End, Memory, Record};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::{Destination, OutputFolder, write_to};
use crate::signals;
use crate::task::{Reads, Task};

/// The file of the trace in a recording.
const TRACE: &str = "trace.bin";
/// The file of the pins' recording, which someone else makes.
const PORT: &str = "port.vcd";

impl Task for Record {
    fn reads(&self) -> Reads<'_> {
        Reads { beside: self.image.iter().map(AsRef::as_ref).collect(), ..Reads::default() }
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        match self.output.as_deref().filter(|_| !self.only_prints()) {
            Some(folder) => vec![Destination::new_folder(folder)],
            None => vec![Destination::output(None)],
        }
    }

    fn is_for_people(&self) -> bool {
        self.dry_run
    }

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        let image = self.image.as_deref().map(program).transpose()?;
        let bytes = self.image.as_deref().map(read).transpose()?;
        let program = bytes.as_deref();
        let request = Request {
            rom: self.rom,
            buffer: self.buffer.as_ref().map(|buffer| memory(buffer, program, image.as_ref())).transpose()?,
            until: until(self.until.as_ref(), program)?,
            chip: self.chip.as_deref().map(chip).transpose()?,
            keep: match self.repeat {
                None if self.head => Keep::Fills(1),
                None => Keep::Newest,
                Some(times) => Keep::Fills(times),
            },
            itm: self.itm,
        };
        let failure = |problem: Problem| target::failure(&self.gdb, &problem);
        let stop = Stop::default();
        signals::end_recording(stop.clone());
        let mut session = Session::new(target::client(&self.gdb)?).map_err(failure)?;
        let reset = if self.reset { session.reset().map_err(failure) } else { Ok(()) };
        let done = reset.and_then(|()| self.check(&mut session, &request)).and_then(|()| {
            let planned = match session.plan(&request, self.only_prints()) {
                Err(Problem::KeepsNewest { .. }) if self.repeat.is_some() => {
                    session.plan(&Request { keep: Keep::Newest, ..request.clone() }, false)
                }
                planned => planned,
            };
            let setup = planned.map_err(failure)?;
            match (&self.output, self.script) {
                (Some(folder), None) if !self.dry_run => {
                    self.record(&mut session, &setup, request.until, folder, messages, &stop)
                }
                (_, Some(dialect)) => {
                    let text =
                        format!("# {}\n{}", chosen(&setup), script::script(dialect, &setup, request.until));
                    write_to(None, |out| out.write_all(text.as_bytes()))
                }
                _ => write_to(None, |out| out.write_all(printed(&setup).as_bytes())),
            }
        });
        session.leave().map_err(failure)?;
        done
    }
}

impl Record {
    /// Whether nothing is set up.
    const fn only_prints(&self) -> bool {
        self.dry_run || self.script.is_some()
    }

    /// Records once, or as often as wanted, into a folder.
    fn record(
        &self,
        session: &mut Session<TcpStream>,
        setup: &Setup,
        until: Until,
        folder: &Path,
        messages: &Messages,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let is_one = setup.fills() || self.repeat.is_none();
        if !is_one && until == Until::Asked {
            return Err(Failure::input(
                "no_end",
                format!(
                    "{} keeps the newest trace, so each of several recordings needs an end",
                    setup.sink()
                ),
                "give it with --until",
            ));
        }
        // A folder that cannot be written is found before the target runs.
        let output = OutputFolder::new(folder)?;
        messages.note("recording", chosen(setup));
        let times = if is_one { 1 } else { self.repeat.unwrap_or(1) };
        for time in 1..=times {
            let recorded = session.record(setup, until, &|| stop.is_requested());
            let recording = match recorded.map_err(|problem| target::failure(&self.gdb, &problem)) {
                Ok(recording) => recording,
                // What was recorded before is kept.
                Err(failure) if time > 1 => return output.finish().and(Err(failure)),
                Err(failure) => return Err(failure),
            };
            let within = if is_one { String::new() } else { format!("{time}/") };
            self.write(&recording, &output, &within)?;
            messages.note("recorded", ended(&recording));
            if recording.left {
                let file = folder.join(PORT);
                let text =
                    format!("the trace left through the pins: save their recording as {}", file.display());
                messages.note("recorded_pins", text);
            }
            if recording.has_lost {
                messages
                    .warning("recording_lost", "the chip lost a part of the trace: nothing took it in time");
            }
            if stop.is_requested() {
                break;
            }
        }
        output.finish()
    }

    /// Refuses a buffer that a stack uses, and a program that the chip does not hold: its end would never be reached.
    fn check(&self, session: &mut Session<TcpStream>, request: &Request) -> Result<(), Failure> {
        const BYTES: usize = 16;
        if let Some((address, bytes)) = request.buffer.filter(|_| !self.only_prints()) {
            let mut stacks = halted::stack_pointers(session.client()).to_vec();
            stacks.push(session.client().registers().ok().map(|registers| registers.general[13]));
            // A stack that begins at the buffer's end grows into it.
            let inside =
                |stack: &u32| *stack > address && u64::from(*stack) <= u64::from(address) + u64::from(bytes);
            if let Some(stack) = stacks.into_iter().flatten().find(inside) {
                return Err(Failure::input(
                    "buffer_in_use",
                    format!("a stack at 0x{stack:08x} uses the memory of --buffer"),
                    "give memory that the program does not use with --buffer",
                ));
            }
        }
        let (Some(file), Until::Address(address)) = (&self.image, request.until) else { return Ok(()) };
        let image = program(file)?;
        let inside = |segment: &&Segment| {
            let start = segment.address.get();
            segment.executable
                && (start..start + image.segment_bytes(segment).len() as u64).contains(&address.into())
        };
        let Some(segment) = image.segments.iter().find(inside) else {
            let problem = format!("{} has no code at 0x{address:08x}", file.display());
            return Err(Failure::input("no_code", problem, "check --until, or leave --image out"));
        };
        let offset = usize::try_from(u64::from(address) - segment.address.get()).unwrap_or(usize::MAX);
        let code = image.segment_bytes(segment).get(offset..).unwrap_or_default();
        let code = code.get(..BYTES).unwrap_or(code);
        let there = session.client().read(address, u32::try_from(code.len()).unwrap_or(0));
        if there.map_err(|problem| target::failure(&self.gdb, &problem))? == code {
            return Ok(());
        }
        let problem = format!("the chip's memory at 0x{address:08x} is not that of {}", file.display());
        Err(Failure::input(
            "other_program",
            problem,
            "load the program first, or give the one that the chip holds with --image",
        ))
    }

    /// Writes the files of a folder that every command opens, in this part of the output.
    fn write(&self, recording: &Recording, folder: &OutputFolder, within: &str) -> Result<(), Failure> {
        let mut description = recording.description(if recording.left { PORT } else { TRACE });
        let mut files = Vec::new();
        if !recording.left {
            files.push((TRACE.to_owned(), recording.bytes.clone()));
        }
        if let Some(image) = &self.image {
            let name = image.file_name().map_or_else(|| "program.elf".into(), |name| name.to_string_lossy());
            let bytes = read(image)?;
            let id = image::build_id_of(&bytes)
                .map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
            let id = id.map_or_else(String::new, |id| format!("  # build ID {id}"));
            // A string takes everything.
            let _ = write!(description, "\n[[image]]\nfile = {:?}{id}\n", name);
            files.push((name.into_owned(), bytes));
        }
        files.push(("capture.toml".to_owned(), description.into_bytes()));
        let made = std::fs::create_dir_all(folder.staging().join(within));
        made.map_err(|error| Failure::write(Path::new(within), error))?;
        for (name, bytes) in files {
            let written =
                folder.create(&format!("{within}{name}")).and_then(|mut file| file.write_all(&bytes));
            written.map_err(|error| Failure::write(Path::new(&name), error))?;
        }
        Ok(())
    }
}

pub(super) fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|error| {
        Failure::input(
            "image",
            format!("{}: {error}", file.display()),
            "check the name of the program's ELF file",
        )
    })
}

/// The program's ELF file, with addresses of 32 bits.
pub(super) fn program(file: &Path) -> Result<Image, Failure> {
    let image = Image::from_bytes(file, &ImageKind::Addressed, read(file)?);
    let image = image.map_err(|error| {
        Failure::input("image", error.to_string(), "give the program's ELF file with --image")
    })?;
    match image.form {
        ImageForm::Elf32 => Ok(image),
        _ => Err(Failure::input(
            "image",
            format!("{}: is not a program of 32 bits", file.display()),
            "give the chip's program",
        )),
    }
}

/// A name of the program, as an address and a size.
fn named(name: &str, program: Option<&[u8]>) -> Result<(u32, u32), Failure> {
    let Some(program) = program else {
        let problem = format!("`{name}` is a name in the program");
        return Err(Failure::input("no_program", problem, "give the program with --image FILE"));
    };
    let found = image::symbol(program, name);
    let found =
        found.and_then(|(address, size)| Some((u32::try_from(address).ok()?, u32::try_from(size).ok()?)));
    found.ok_or_else(|| {
        let problem = format!("the program has no function or variable `{name}` of 32 bits");
        Failure::input("no_such_name", problem, "check its spelling, or give its address")
    })
}

fn until(end: Option<&End>, program: Option<&[u8]>) -> Result<Until, Failure> {
    Ok(match end {
        None => Until::Asked,
        Some(End::After(time)) => Until::Time(*time),
        Some(End::Address(address)) => Until::Address(*address & !1),
        Some(End::Function(name)) => Until::Address(named(name, program)?.0),
    })
}

fn memory(memory: &Memory, bytes: Option<&[u8]>, program: Option<&Image>) -> Result<(u32, u32), Failure> {
    let (address, size) = match memory {
        Memory::Variable(name) => return named(name, bytes),
        Memory::Range(address, size) => (*address, *size),
    };
    let wanted = u64::from(address)..u64::from(address) + u64::from(size);
    let used = program.into_iter().flat_map(|image| {
        let segments = image.segments.iter().map(|segment| {
            let start = segment.address.get();
            start..start + image.segment_bytes(segment).len() as u64
        });
        image.variables().into_iter().chain(segments)
    });
    match used.into_iter().find(|used| used.start < wanted.end && wanted.start < used.end) {
        None => Ok((address, size)),
        Some(used) => {
            let problem = format!("the program uses 0x{:08x} to 0x{:08x}", used.start, used.end);
            Err(Failure::input(
                "buffer_in_use",
                problem,
                "give memory that the program does not use with --buffer",
            ))
        }
    }
}

/// What is known of a chip, by its name or from a file.
fn chip(name: &str) -> Result<Chip, Failure> {
    let known = KNOWN
        .into_iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, text)| text.to_owned());
    /// The most bytes of a description.
    const MOST: u64 = 1 << 16;
    let from_file = || {
        let mut text = String::new();
        std::fs::File::open(name)?.take(MOST).read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    };
    let text = known.map_or_else(from_file, Ok).map_err(|error| {
        let names = KNOWN.map(|(known, _)| known).join(", ");
        let hint = format!("give one of these names, or a file: {names}");
        Failure::input("no_such_chip", format!("--chip {name}: {error}"), hint)
    })?;
    Chip::parse(&text).map_err(|error| {
        Failure::input(
            "chip",
            format!("--chip {name}: {error}"),
            "see the built-in ones in tracewalk's sources for their form",
        )
    })
}

/// The chosen units.
fn chosen(setup: &Setup) -> String {
    let source = match setup.source.kind {
        Kind::Mtb => "MTB",
        _ => "ETM",
    };
    let mut text = format!("the {source} at 0x{:08x} traces into {}", setup.source.base, setup.sink());
    if setup.found.silent.is_empty() {
        return text;
    }
    let silent = setup.found.silent.iter().map(|base| format!("0x{base:08x}")).collect::<Vec<_>>();
    let _ = write!(text, "; what is at {} does not answer", silent.join(", "));
    text
}

/// How the recording ended.
fn ended(recording: &Recording) -> String {
    let how = match recording.ended {
        Ended::Reached => "reached".to_owned(),
        Ended::Interrupted => "interrupted at".to_owned(),
        Ended::Full => "the buffer was full at".to_owned(),
        Ended::Stopped(signal) => format!("the target stopped, with signal {signal}, at"),
    };
    format!("{how} 0x{:08x}; {} bytes of trace", recording.stands_at, recording.bytes.len())
}

/// The accesses, one a line.
fn printed(setup: &Setup) -> String {
    let mut text = format!("# {}\n", chosen(setup));
    let parts = [
        ("before the target runs", &setup.plan.setup),
        ("after it has stopped", &setup.plan.stop),
        ("after the trace was read", &setup.plan.restore),
    ];
    for (when, steps) in parts {
        let _ = writeln!(text, "# {when}");
        for step in steps {
            let _ = writeln!(text, "{step}");
        }
    }
    text
}
