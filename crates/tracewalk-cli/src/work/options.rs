//! What the options say of a capture, put in the place of what its description says.

use tracewalk_input::capture::{Capture, Container, Protocol, Registers, SourceDescription};
use tracewalk_input::{Origin, Stated};

use crate::args::{CaptureArgs, ContainerChoice};
use crate::failure::Failure;

/// Puts what the options say in the place of what the capture's description says.
pub(super) fn add(capture: &mut Capture, args: &CaptureArgs) -> Result<(), Failure> {
    if let Some(ContainerChoice::Is(container)) = args.container {
        for buffer in &mut capture.buffers {
            buffer.container = Some(Stated::new(container, Origin::Option("--container")));
        }
    }
    if let Some(start) = args.frame_start {
        for buffer in &mut capture.buffers {
            buffer.frame_start = Some(Stated::new(start, Origin::Option("--frame-start")));
        }
    }
    for source in &args.sources {
        let known = |known: &SourceDescription| known.id == source.id;
        let holder = capture.buffers.iter().position(|buffer| buffer.sources.iter().any(known));
        if let Some(buffer) = capture.buffers.get_mut(holder.unwrap_or(0)) {
            buffer.sources.retain(|other| !known(other));
            buffer.sources.push(source.clone());
        }
    }
    add_mtb_registers(capture, args)
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
    Ok(())
}
