//! Options that belong to one container, protocol or processor, where there is none of it: refused, since what they say
//! would be lost.

use tracewalk::source::SourceConfig;
use tracewalk_input::capture::dump::MemoryDump;
use tracewalk_input::capture::{Buffer, Capture, Container, Protocol, SourceDescription};
use tracewalk_input::cpu::Profile;

use super::{Job, Work};
use crate::args::{CaptureArgs, ContainerChoice};
use crate::failure::Failure;
use crate::messages::Messages;

/// Refuses options that do not go with what is said of the capture.
pub(super) fn check_said(
    args: &CaptureArgs,
    capture: &Capture,
    memory: &[Option<MemoryDump>],
) -> Result<(), Failure> {
    if let Some(option) = arranges(args) {
        for (buffer, memory) in capture.buffers.iter().zip(memory) {
            let file = buffer.file.display();
            if buffer.wires.is_some() {
                let problem = format!("{option} is for a buffer's memory, and {file} is a recording");
                return Err(Failure::input(problem, format!("leave out {option}")));
            }
            if let Some(memory) = memory {
                let problem = format!("{option} is for a file of trace bytes, and {file} is {}", memory.form);
                return Err(Failure::input(problem, "save the trace buffer alone, as it is in memory"));
            }
        }
    }
    let said_mtb = args.container == Some(ContainerChoice::Is(Container::Mtb));
    let other = args.sources.iter().find(|source| source.protocol != Protocol::Mtb);
    if let Some(SourceDescription { protocol, .. }) = other.filter(|_| said_mtb) {
        let problem = format!("--container mtb holds an MTB's packets, and --source says {protocol}");
        return Err(Failure::input(problem, "correct --container or --source"));
    }
    Ok(())
}

/// Refuses options that do not go with what is in the capture.
pub(super) fn check_found(args: &CaptureArgs, work: &Work, messages: &Messages) -> Result<(), Failure> {
    // Of what is still coming nothing was found, perhaps.
    if work.jobs.is_empty() {
        return Ok(());
    }
    let is_mtb = |job: &Job| matches!(job.config, SourceConfig::Mtb(_));
    let any_mtb = work.jobs.iter().any(is_mtb);
    let all_mtb = work.jobs.iter().all(is_mtb);
    // What may be of M profile, as far as anybody knows.
    let any_m = work.jobs.iter().any(|job| job.profile().is_none_or(|profile| profile == Profile::M));
    let wrong = |option: &str, of: &str| {
        let found = work.jobs.iter().map(what).collect::<Vec<_>>().join(", ");
        let problem = format!("{option} is for {of}, and the capture is of {found}");
        Err(Failure::input(problem, format!("leave out {option}, or correct --container or --source")))
    };
    if let Some(option) = arranges(args).filter(|_| all_mtb) {
        let problem = format!("{option} is for frames and raw bytes, and the capture is of an MTB");
        return Err(Failure::input(problem, "say with --mtb-position where its oldest packet is"));
    }
    if args.mtb_pc.is_some() && !any_mtb {
        return wrong("--mtb-pc", "an MTB");
    }
    if args.dump_address.is_some() && !any_mtb {
        return wrong("--dump-address", "memory that holds an MTB's buffer");
    }
    if args.vtor.is_some() && !any_m {
        return wrong("--vtor", "processors of M profile");
    }
    if let Some(file) = args.svd.as_ref().filter(|_| !any_m) {
        messages.warning(format_args!(
            "{}: names the interrupts of M profile, and none of that is in the capture; leave out --svd",
            file.display()
        ));
    }
    Ok(())
}

/// Refuses an MTB's registers where no MTB took them.
pub(super) fn check_registers(args: &CaptureArgs, buffer: &Buffer) -> Result<(), Failure> {
    let options = [
        ("--mtb-position", args.mtb_position.is_some()),
        ("--mtb-master", args.mtb_master.is_some()),
        ("--mtb-base", args.mtb_base.is_some()),
        ("--registers", args.registers.is_some()),
    ];
    let Some((option, _)) = options.into_iter().find(|(_, given)| *given) else { return Ok(()) };
    let container = buffer.container.as_ref().filter(|container| container.value != Container::Mtb);
    let is_mtb = |source: &SourceDescription| source.protocol == Protocol::Mtb;
    let says = match container {
        Some(container) => format!("the container is {} ({})", container.value, container.origin),
        None if buffer.sources.iter().any(is_mtb) => return Ok(()),
        None => {
            let sources = buffer.sources.iter().map(|source| source.protocol.name());
            format!("the source is {}", sources.collect::<Vec<_>>().join(", "))
        }
    };
    let problem = format!("{option} is for an MTB, and {says}");
    Err(Failure::input(problem, format!("leave out {option}, or correct --container or --source")))
}

/// The option that says how bytes stand in the file.
fn arranges(args: &CaptureArgs) -> Option<&'static str> {
    let pointer = args.read_pointer.map(|_| "--read-pointer");
    pointer.or_else(|| args.swap_words.then_some("--swap-words"))
}

/// A source as a sentence names it.
fn what(job: &Job) -> String {
    let cpu = job.description.cpu.as_ref().map(|cpu| format!(" of {}", cpu.value));
    format!("{}{}", job.config.protocol(), cpu.unwrap_or_default())
}
