//! Errors of opening a capture → the options that help.

use tracewalk_input::OtherFile;
use tracewalk_input::capture::stream::Place;
use tracewalk_session::{OpenError, Unstated};

use super::files;

/// The remedy; `None` if none is known.
pub(super) fn remedy(error: &OpenError) -> Option<String> {
    let text = match error {
        OpenError::Capture(error) => return files::of_capture(error),
        OpenError::Image(error) => return files::of_image(error),
        OpenError::Interrupts(error) => return Some(files::of_svd(error).to_owned()),
        OpenError::DescriptionGrows(_) => "leave out --follow, or give the file of trace bytes",
        OpenError::NothingToWaitFor(_) => "leave out --idle, or add --follow",
        OpenError::NoByte { place, .. } => match place {
            Place::Server { .. } => {
                "check that the server has a probe to read from, that the target runs and traces, and that this \
                 port sends the raw trace"
            }
            Place::StandardInput | Place::Fed => "check the command that writes to it",
            Place::Growing(path) if path.exists() => "check that the program that writes the file runs",
            Place::Growing(_) => "check the file's name, and check that the program that writes it runs",
        },
        OpenError::ElfFile(file) | OpenError::Program { file, .. } => {
            let file = file.display();
            return Some(format!("give the trace's file first, and the program with --image {file}"));
        }
        OpenError::SavedFile { file, kind } => {
            return Some(format!("read it with `tracewalk {kind} {}`", file.display()));
        }
        OpenError::WireText { .. } => "choose the wire of the trace with --channel NAME=swo",
        OpenError::PerfData(_) => {
            "save the recording to a file if it came through a pipe, and give that file alone"
        }
        OpenError::NoTrace { .. } => {
            "give the file of trace bytes, a capture.toml or a snapshot directory, or memory as GDB (x/256wx), OpenOCD, \
             J-Link, pyOCD or probe-rs print it"
        }
        OpenError::NotForRecording { setting, .. } => return Some(format!("leave out {setting}")),
        OpenError::NotForMemory { .. } => "save only the trace buffer, byte for byte",
        OpenError::NotForMtb { .. } => "give the place of its oldest packet with --source mtb,position",
        OpenError::NotFor { setting, .. } | OpenError::NoMtb { setting, .. } => {
            return Some(format!("leave out {setting}, or correct --container or --source"));
        }
        OpenError::MtbWithOtherSource(_) => "correct --container or --source",
        OpenError::SourceTwice(_) => "state all settings in one --source [ID=]PROTOCOL,key=value…",
        OpenError::FrameStartOfOther(_) => "leave out frame-start=, or correct the kind in --container",
        OpenError::ArrangedAlready { .. } => "leave out read-pointer= and swap-words in --container",
        OpenError::Arrangement { .. } => "give --container read-pointer= as an offset in the file, in bytes",
        OpenError::AddressTwice { .. } => "leave out address= in --container",
        OpenError::SeveralPieces { .. } => "save only the memory that the trace is in",
        OpenError::NoBuffer { .. } | OpenError::Registers(_) => {
            "save the memory there, or correct position and base in --source mtb,…"
        }
        OpenError::NoPiece { .. } => {
            "the log may be cut: print the trace buffer into it, or give the trace's file, and the log with --dump"
        }
        OpenError::NoSnapshot(_) => "save what GDB's `info registers` and `x/16wx 0xe000ed00` print",
        OpenError::NoMtbPacket => "check --container, or give --registers FILE",
        OpenError::MtbNeverOn => {
            concat!(
                "switch it on before the crash (",
                crate::page!("mtb-after-a-crash.md"),
                "), or save the memory that MTB_BASE and MTB_POSITION name"
            )
        }
        OpenError::NoTraceId(protocol) => return Some(format!("state it with --source ID={protocol}")),
        OpenError::NotStated { needed, .. } => {
            let needed = needed.iter().map(unstated).collect::<Vec<_>>();
            let between = if needed.contains(&EACH_SOURCE.to_owned()) { " and " } else { " " };
            return Some(format!("give {}, or leave out --strict", needed.join(between)));
        }
        OpenError::NoTraceIds(_) => "leave out --id, or give --container frames",
        OpenError::IdNotDecoded(id) => {
            return Some(format!("state its protocol with --source {id}=PROTOCOL,cpu=…"));
        }
        OpenError::IdAbsent { .. } => "choose one of them with --id",
        OpenError::OnlyItm(_) => "show its text with `tracewalk itm`",
        OpenError::NothingRecognised { recording: Some(seen), .. } => {
            let seen = seen.as_ref().map_or_else(String::new, |seen| format!(" (seen: {seen})"));
            return Some(format!(
                "check --wire and --channel{seen}; or describe it with --container and --source"
            ));
        }
        OpenError::NothingRecognised { other: Some(OtherFile { is_packed: true, .. }), .. } => {
            "unpack it first, and give the file of trace bytes"
        }
        OpenError::NothingRecognised { other: Some(_), .. } => {
            "give the file of trace bytes, a capture.toml or a snapshot directory"
        }
        OpenError::NothingRecognised { blank: Some(_), .. } => {
            "switch the trace unit on before the buffer is read, or save the memory that the trace is in"
        }
        OpenError::NothingRecognised { has_program: true, .. } => {
            "describe it with --container and --source [ID=]PROTOCOL,cpu=…"
        }
        OpenError::NothingRecognised { .. } => {
            "describe it with --container and --source [ID=]PROTOCOL,cpu=…, and the program with --image"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// The option for each source of a capture of unknown sources.
const EACH_SOURCE: &str = "--source [ID=]PROTOCOL,cpu=CPU for each source";

/// The option that states what may not be inferred.
fn unstated(needed: &Unstated) -> String {
    let text = match needed {
        Unstated::Port => "--wire port",
        Unstated::Wire => "--wire WIRE,baud=BITS",
        Unstated::Baud => "--wire baud=BITS",
        Unstated::Inverted => "--wire invert",
        Unstated::Channels => "--channel NAME=ROLE",
        Unstated::Container => "--container CONTAINER",
        Unstated::FrameStart => "--container frame-start=N",
        Unstated::Sources => EACH_SOURCE,
        Unstated::MtbRegisters => "--source mtb,position=VALUE,master=VALUE",
        Unstated::TraceId(protocol) => return format!("--source ID={protocol}"),
        Unstated::Source { id, protocol } => {
            let id = id.map_or_else(String::new, |id| format!("{id}="));
            let protocol = protocol.as_ref().map_or_else(|| "PROTOCOL".to_owned(), ToString::to_string);
            return format!("--source {id}{protocol},cpu=CPU");
        }
    };
    text.to_owned()
}
