//! Errors of reading files → the options and entries that help.

use tracewalk::plain::Plain;
use tracewalk_input::capture::dump::{DumpProblem, Tool};
use tracewalk_input::capture::stream::StreamProblem;
use tracewalk_input::capture::wire::RecordingProblem;
use tracewalk_input::capture::{CaptureError, CaptureErrorKind, OUTSIDE_TABLES};
use tracewalk_input::image::{ImageError, ImageErrorKind, Looks};
use tracewalk_input::records::MemoryProblem;
use tracewalk_input::svd::{SvdError, SvdErrorKind};
use tracewalk_input::{FileProblem, Naming, PathProblem};

/// The remedy for a capture that cannot be opened.
pub(super) fn of_capture(error: &CaptureError) -> Option<String> {
    use CaptureErrorKind as Kind;
    match &error.kind {
        Kind::File(FileProblem::Empty) => {
            Some("check that the capture was downloaded completely".to_owned())
        }
        Kind::File(FileProblem::TooLong { .. }) => {
            Some("split it, and describe each part".to_owned())
        }
        Kind::File(FileProblem::Endless { .. }) => {
            Some("save some of its bytes to a file, or pipe them to `-`".to_owned())
        }
        Kind::File(FileProblem::Missing) => Some("check the file's name".to_owned()),
        Kind::File(FileProblem::Denied) => None,
        Kind::NoDescription { files } if !files.is_empty() => {
            Some("give the file of trace bytes, and the program with --image".to_owned())
        }
        Kind::File(_) | Kind::NoDescription { .. } => {
            Some("give a file of trace bytes with --container and --source".to_owned())
        }
        Kind::NamedFile { problem, by, .. } => Some(match problem {
            FileProblem::Empty => {
                format!("check that the file was copied completely, or name another one with {by}")
            }
            FileProblem::Missing => format!("copy the file there, or correct {by}"),
            FileProblem::Denied => format!("grant read permission, or correct {by}"),
            FileProblem::TooLong { .. } => format!("split it, or name another file with {by}"),
            _ => format!("correct {by}"),
        }),
        Kind::Path { problem: PathProblem::Special, .. } => Some("save its bytes to a file".to_owned()),
        Kind::Path { problem: PathProblem::Ambiguous, by: Some(by), .. } => {
            Some(format!("write the name exactly as one of the files has it, in {by}"))
        }
        Kind::Path { problem: PathProblem::Empty | PathProblem::Ambiguous, by, .. } => {
            by.as_ref().map(|by| format!("correct {by}"))
        }
        Kind::Path { by: Some(by), .. } => Some(format!(
            "copy the file into the directory of the description and correct {by}; or, if you trust the description, \
             give --root DIR with a directory that holds the file"
        )),
        Kind::Path { by: None, .. } => Some(
            "copy the directory with the files in it; or, if you trust it, give --root DIR with a directory that holds \
             the file"
                .to_owned(),
        ),
        Kind::SeveralDescriptions { .. } => Some("give one of these files".to_owned()),
        Kind::NotADirectory => Some("give --root a directory that holds the files".to_owned()),
        Kind::UnknownKey { nearest: "", place, .. } if place == OUTSIDE_TABLES => {
            Some("a key belongs to `[capture]`, a `[[source]]` or an `[[image]]`".to_owned())
        }
        Kind::UnknownKey { nearest: "", .. } | Kind::UnknownValue { nearest: "", .. } => None,
        Kind::UnknownKey { nearest, .. } | Kind::UnknownValue { nearest, .. } => {
            Some(format!("write `{nearest}`"))
        }
        Kind::Undefined { nearest: Some(nearest), .. } => Some(format!("write `{nearest}`")),
        Kind::MissingKey { key, place } if key.starts_with('[') => Some(format!("add {key} to {place}")),
        Kind::MissingKey { key, place } => Some(format!("add `{key} = …` to {place}")),
        Kind::Version { .. } | Kind::NoBuffer => {
            Some("open the trace file itself, with --container, --source and --image".to_owned())
        }
        Kind::NoMtbRegisters => Some(
            "print them into it (`x/4wx` at the MTB's address, or lines like MTB_POSITION=0x…), or leave \
             --registers out"
                .to_owned(),
        ),
        Kind::TraceId { .. } => Some("give the source's ID with --source ID=PROTOCOL".to_owned()),
        Kind::Dump(problem) => Some(of_dump(problem).to_owned()),
        Kind::Recording(problem) => of_recording(problem),
        Kind::Stream(problem) => of_stream(problem).map(str::to_owned),
        _ => None,
    }
}

fn of_dump(problem: &DumpProblem) -> &'static str {
    use MemoryProblem as Problem;
    match problem {
        DumpProblem::Values { tool: Tool::ProbeRs, .. } => {
            "give the complete, unchanged output of one command; instead of output of xxd or hexdump, give the file itself"
        }
        DumpProblem::Values { .. } => {
            "give the complete, unchanged output of one command, or save the memory as a file"
        }
        DumpProblem::NoWidth { .. } => {
            "print hexadecimal numbers, for example with `x/256wx`, or keep the command in the log"
        }
        DumpProblem::TooLong { .. } | DumpProblem::Repeats { .. } => {
            "give only the part with the trace buffer, or save the memory as a binary file and add --container address="
        }
        DumpProblem::Memory(Problem::Conflict { .. }) => {
            "the memory changed between two commands: leave the older part out"
        }
        DumpProblem::Memory(Problem::PastEndOfMemory { .. }) => "check the address",
        DumpProblem::Memory(Problem::NoMemory) => "save the memory that holds the trace buffer",
        _ => "check that the file was copied completely, or save the memory again",
    }
}

/// The remedy for a stream that cannot be opened or read.
pub(super) fn of_stream(problem: &StreamProblem) -> Option<&'static str> {
    Some(match problem {
        StreamProblem::Address { .. } => "write, for example, tcp:localhost:3443",
        StreamProblem::Connect(_) => "check that the server runs, and check its host and port",
        StreamProblem::Broken(_) => "check the connection, and start again",
        StreamProblem::Shortened { .. } | StreamProblem::Overwritten { .. } | StreamProblem::Replaced => {
            "follow the new file from its start"
        }
        StreamProblem::Deleted => "follow the file under its new name",
        _ => return None,
    })
}

fn of_recording(problem: &RecordingProblem) -> Option<String> {
    let hint = match problem {
        RecordingProblem::Zip(_) | RecordingProblem::Entry { .. } => {
            "check that the recording was copied completely"
        }
        RecordingProblem::NoEntry { .. } | RecordingProblem::MissingKey { .. } => {
            "save it again as a sigrok session, VCD or CSV"
        }
        RecordingProblem::TooMuch { .. } => "save a shorter part of it",
        RecordingProblem::UnknownChannel { nearest: Some(nearest), .. } => {
            return Some(format!("write --channel {nearest}=…"));
        }
        RecordingProblem::BothWires | RecordingProblem::RoleTwice { .. } => "correct --wire and --channel",
        RecordingProblem::NoChannel { role, .. } => {
            return Some(format!("name it with --channel NAME={role}"));
        }
        RecordingProblem::NoSignal { channel: Some(_), .. } => "name another one with --channel NAME=swo",
        RecordingProblem::Ambiguous { .. } => "choose one with --channel NAME=swo",
        RecordingProblem::Unreadable { .. } => "state what each channel carries with --wire and --channel",
        RecordingProblem::RateOfPort => "leave out baud= in --wire, or give --wire uart",
        RecordingProblem::NoRate => "give --wire rate=RATE, or leave out baud= to measure it",
        RecordingProblem::RateTwice => "leave out rate= in --wire",
        RecordingProblem::TooSlow { .. } => {
            "sample at three times the bit rate or more, or correct --wire baud="
        }
        RecordingProblem::NotARecording => {
            "leave out --wire and --channel, give the sample rate of bare samples with --wire rate=, or give a sigrok session, VCD or CSV file"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// The remedy for an image that cannot be used.
pub(super) fn of_image(error: &ImageError) -> Option<String> {
    match &error.named_by {
        Some(by) => Some(image_of_description(&error.kind, by)),
        None => image_of_option(error),
    }
}

fn image_of_description(kind: &ImageErrorKind, by: &Naming) -> String {
    use ImageErrorKind as Kind;
    match kind {
        Kind::NotElf(Looks::Binary) => {
            format!("if it holds raw memory, give its address with `address` next to {by}")
        }
        Kind::HasAddresses(_) => format!("leave out `address` next to {by}"),
        Kind::Records { problem: MemoryProblem::Conflict { .. }, .. } => {
            format!("the file combines two programs: name the one that ran with {by}")
        }
        Kind::Records { .. } => {
            format!("check that the file was copied completely, or name another one with {by}")
        }
        Kind::NotElf(Looks::Text | Looks::Archive) | Kind::Machine { .. } | Kind::NoCode | Kind::Unlinked => {
            format!("name the linked ELF file of the traced program with {by}")
        }
        Kind::BigEndian => {
            format!("name a file of the memory's bytes in little-endian order with {by}, and add `address`")
        }
        Kind::Truncated { .. }
        | Kind::Malformed(_)
        | Kind::Oversized { .. }
        | Kind::TooManySegments { .. } => {
            format!("check that the file was copied completely, or name another one with {by}")
        }
        Kind::Conflict { .. } => {
            format!("leave out the image of the program that did not run, perhaps {by}")
        }
        Kind::PastEndOfMemory { .. } => format!("check `address` next to {by}"),
        Kind::TooManyContexts => "leave out the images of contexts that do not occur in the trace".to_owned(),
        Kind::OutsideFile { .. } => format!("check `offset` and `length` next to {by}"),
        Kind::File(FileProblem::Missing) => format!("copy the file there, or correct {by}"),
        _ => format!("correct {by}"),
    }
}

fn image_of_option(error: &ImageError) -> Option<String> {
    use ImageErrorKind as Kind;
    let file = Plain(error.file.display());
    match &error.kind {
        Kind::NotElf(Looks::Binary) => {
            Some(format!("if it holds raw memory, give its address: --image ADDRESS:{file}"))
        }
        Kind::HasAddresses(_) => Some(format!("leave the address out: --image {file}")),
        Kind::Records { problem: MemoryProblem::Conflict { .. }, .. } => {
            Some("the file combines two programs: give the one that ran".to_owned())
        }
        Kind::Records { .. } => {
            Some("check that the file was copied completely, or build it again".to_owned())
        }
        Kind::NotElf(Looks::Text | Looks::Archive) | Kind::Machine { .. } | Kind::NoCode => {
            Some("give the linked ELF file of the traced program with --image".to_owned())
        }
        Kind::Unlinked => Some("link it, and give the linked ELF file with --image".to_owned()),
        Kind::BigEndian => {
            Some("give the memory's bytes in little-endian order with --image ADDRESS:FILE".to_owned())
        }
        Kind::Truncated { .. }
        | Kind::Malformed(_)
        | Kind::Oversized { .. }
        | Kind::TooManySegments { .. } => {
            Some("check that the file was copied completely, or build it again".to_owned())
        }
        Kind::Conflict { .. } => Some("leave out the --image of the program that did not run".to_owned()),
        Kind::PastEndOfMemory { .. } => Some("check ADDRESS in --image ADDRESS:FILE".to_owned()),
        Kind::TooManyContexts => {
            Some("leave out the --image of contexts that do not occur in the trace".to_owned())
        }
        Kind::OutsideFile { .. } => Some("check `offset` and `length` in the description".to_owned()),
        Kind::File(_) => Some("check the name after --image".to_owned()),
        _ => None,
    }
}

/// The remedy for a description of a chip that cannot be used.
pub(super) fn of_svd(error: &SvdError) -> &'static str {
    match &error.kind {
        SvdErrorKind::File(_) => "check the name after --svd",
        SvdErrorKind::Xml(_) | SvdErrorKind::CutOff => {
            "check that the file was copied completely, or leave out --svd"
        }
        SvdErrorKind::Root { .. } | SvdErrorKind::TooDeep { .. } | SvdErrorKind::NoInterrupt => {
            "give the chip's CMSIS-SVD file with --svd; its vendor's device pack has one"
        }
        _ => "correct the file, or do without the interrupt's name",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(kind: CaptureErrorKind) -> Option<String> {
        of_capture(&CaptureError { file: "a".into(), line: None, kind })
    }

    #[test]
    fn problems_that_an_option_solves_name_it() {
        let naming =
            Naming { key: "file".into(), section: "[[image]]".into(), file: "c.toml".into(), line: 7 };
        let image = |kind, by: Option<&Naming>| {
            of_image(&ImageError { file: "app.elf".into(), kind, named_by: by.cloned().map(Box::new) })
        };
        let cases = [
            (capture(CaptureErrorKind::NoDescription { files: Vec::new() }), "--container"),
            (capture(CaptureErrorKind::NotADirectory), "--root"),
            (capture(CaptureErrorKind::TraceId { found: 0x7f }), "--source"),
            (capture(CaptureErrorKind::NoMtbRegisters), "--registers"),
            (capture(CaptureErrorKind::Recording(RecordingProblem::NoRate)), "--wire"),
            (
                capture(CaptureErrorKind::Dump(DumpProblem::TooLong { bytes: 2, most: 1 })),
                "--container address=",
            ),
            (image(ImageErrorKind::NoCode, None), "--image"),
            (image(ImageErrorKind::NoCode, Some(&naming)), "c.toml:7"),
            (Some(of_svd(&svd(SvdErrorKind::CutOff)).to_owned()), "--svd"),
        ];
        for (remedy, option) in cases {
            assert!(remedy.as_ref().is_some_and(|remedy| remedy.contains(option)), "{option}: {remedy:?}");
        }
    }

    fn svd(kind: SvdErrorKind) -> SvdError {
        SvdError { file: "chip.svd".into(), line: None, kind }
    }

    #[test]
    fn a_remedy_that_needs_no_option_is_there_as_well() {
        for kind in [
            CaptureErrorKind::File(FileProblem::Missing),
            CaptureErrorKind::Stream(StreamProblem::Connect(String::new())),
            CaptureErrorKind::Dump(DumpProblem::NoWidth { found: String::new() }),
            CaptureErrorKind::Dump(MemoryProblem::NoMemory.into()),
        ] {
            assert!(capture(kind.clone()).is_some(), "{kind:?}");
        }
        assert_eq!(capture(CaptureErrorKind::File(FileProblem::Denied)), None);
    }
}
