//! What the options say of a capture, put in the place of what its description says.

use tracewalk_input::capture::{Arrangement, Capture, Container, Protocol, Registers, SourceDescription};
use tracewalk_input::{Origin, Stated};

use super::belonging;
use crate::args::{CaptureArgs, ContainerChoice};
use crate::failure::Failure;

/// Puts what the options say in the place of what the capture's description says.
pub(super) fn add(capture: &mut Capture, args: &CaptureArgs) -> Result<(), Failure> {
    if let Some(ContainerChoice::Is(container)) = args.container {
        for buffer in &mut capture.buffers {
            buffer.container = Some(Stated::new(container, Origin::Option("--container")));
        }
    }
    set_frame_start(capture, args)?;
    arrange(capture, args)?;
    for (index, source) in args.sources.iter().enumerate() {
        if args.sources.iter().take(index).any(|before| before.id == source.id) {
            let which = source.id.map_or_else(|| "the source".to_owned(), |id| format!("trace ID {id}"));
            let problem = format!("--source is given twice for {which}");
            return Err(Failure::input(problem, "say all of it in one --source [ID=]PROTOCOL,key=value…"));
        }
        let known = |known: &SourceDescription| known.id == source.id;
        let holder = capture.buffers.iter().position(|buffer| buffer.sources.iter().any(known));
        if let Some(buffer) = capture.buffers.get_mut(holder.unwrap_or(0)) {
            buffer.sources.retain(|other| !known(other));
            buffer.sources.push(source.clone());
        }
    }
    add_mtb_registers(capture, args)
}

/// Where the frames of trace ports start; it says that these are some as well.
fn set_frame_start(capture: &mut Capture, args: &CaptureArgs) -> Result<(), Failure> {
    const OPTION: &str = "--frame-start";
    let Some(start) = args.frame_start else { return Ok(()) };
    let mut other = None;
    let mut any = false;
    for buffer in &mut capture.buffers {
        let port = || Stated::new(Container::TracePort, Origin::Option(OPTION));
        let container = buffer.container.get_or_insert_with(port);
        if container.value == Container::TracePort {
            buffer.frame_start = Some(Stated::new(start, Origin::Option(OPTION)));
            any = true;
        } else {
            other.get_or_insert(format!("{} ({})", container.value, container.origin));
        }
    }
    let Some(other) = other.filter(|_| !any) else { return Ok(()) };
    let problem = format!("{OPTION} is for --container tpiu, and the container is {other}");
    Err(Failure::input(problem, format!("leave out {OPTION}, or correct --container")))
}

/// Puts the bytes in the order in which they were traced, as far as the options say where they stand.
fn arrange(capture: &mut Capture, args: &CaptureArgs) -> Result<(), Failure> {
    if args.read_pointer.is_none() && !args.swap_words {
        return Ok(());
    }
    for buffer in &mut capture.buffers {
        let known = &buffer.arrangement;
        if !known.is_usual() {
            let problem = format!("{}: {} says where its bytes stand", buffer.file.display(), buffer.origin);
            return Err(Failure::input(problem, "leave out --read-pointer and --swap-words"));
        }
        let pointer = args.read_pointer.map(u64::from);
        let arrangement = Arrangement {
            read_pointer: pointer.map(|pointer| Stated::new(pointer, Origin::Option("--read-pointer"))),
            swapped_words: args.swap_words.then(|| Stated::new(true, Origin::Option("--swap-words"))),
        };
        buffer.arrange(arrangement).map_err(|problem| {
            Failure::input(
                format!("{}: {problem}", buffer.file.display()),
                "give --read-pointer as an offset in the file, in bytes",
            )
        })?;
    }
    Ok(())
}

fn add_mtb_registers(capture: &mut Capture, args: &CaptureArgs) -> Result<(), Failure> {
    let mut registers = match &args.registers {
        Some(file) => Registers::read_mtb(file)?,
        None => Registers::new(),
    };
    let options = [
        ("MTB_POSITION", "--mtb-position", args.mtb_position),
        ("MTB_MASTER", "--mtb-master", args.mtb_master),
        ("MTB_BASE", "--mtb-base", args.mtb_base),
    ];
    for (name, option, value) in options {
        if let Some(value) = value {
            registers.set(name, value, Origin::Option(option));
        }
    }
    let Some((_, first)) = registers.iter().next() else { return Ok(()) };
    let origin = first.origin.clone();
    let Some(buffer) = capture.buffers.first_mut() else { return Ok(()) };
    buffer.container.get_or_insert_with(|| Stated::new(Container::Mtb, origin.clone()));
    if buffer.sources.is_empty() {
        buffer.sources.push(SourceDescription::new(Protocol::Mtb, origin));
    }
    for source in buffer.sources.iter_mut().filter(|source| source.protocol == Protocol::Mtb) {
        source.registers.extend(registers.clone());
    }
    belonging::check_registers(args, buffer)
}
