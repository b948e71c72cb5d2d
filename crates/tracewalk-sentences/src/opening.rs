//! Notices about a capture as it is opened, and as it ends → sentences.

use std::ops::Range;

use tracewalk::plain::Plain;
use tracewalk_input::capture::dump::{Damage, MemoryDump};
use tracewalk_input::capture::perf::{Binary, NoBinary, TraceCounts};
use tracewalk_input::capture::stream::{End, Place};
use tracewalk_session::mtb_order::Ending;
use tracewalk_session::{
    Certainty, Change, Correction, Finding, ModulesLeftOut, Notice, NoticeKind, Question,
};

use super::files;
use super::names::{as_option, option, place, source_name};
use super::remedies::remedy;
use tracewalk_report::counted;

/// How many trace IDs a note names.
const NAMED: usize = 4;

/// How many pieces of memory a note names.
const NAMED_PIECES: usize = 4;

/// The sentence of a notice about a capture; `None` for a notice about execution.
pub(super) fn sentence(notice: &Notice) -> Option<String> {
    use NoticeKind as K;
    Some(match &notice.kind {
        K::EntryLeftOut(problem) => left_out(problem, files::of_capture(problem)),
        K::ImageLeftOut(problem) => left_out(problem, files::of_image(problem)),
        K::OtherBinary(binary) => other_binary(binary),
        K::BinariesMissing(binaries) => binaries_missing(binaries),
        K::ModulesLeftOut(modules) => modules_left_out(*modules),
        K::ModuleBranchesUnknown(branches) => format!(
            "the destinations of {} of kernel modules are unknown; execution is not followed there. Give the kernel's names with --kallsyms",
            counted(*branches, "branch")
        ),
        K::TraceNotRecorded(counts) => trace_not_recorded(*counts),
        K::MappingsMixed(count) => format!(
            "{} replaced others after the last change that can be distinguished; code from before and after is mixed",
            counted(*count, "mapping")
        ),
        K::ContextIdsShort(bytes) => format!(
            "context IDs in the trace have {} and do not say which process runs (ETMCR.CtxtIDSize): tracewalk uses the thread of each AUX record",
            counted(u64::from(*bytes), "byte")
        ),
        K::RecordsCut { at: None } => "the file ends in the middle of a record: its end was not written".to_owned(),
        K::RecordsCut { at: Some(at) } => {
            format!("there is no valid record at {at:#x} of the file; the rest is not read")
        }
        K::RecordsLost(count) => format!(
            "the kernel dropped {}: mappings or processes may be missing; record with a larger buffer (-m)",
            counted(*count, "record")
        ),
        K::InterruptLeftOut(problem) => format!("{problem}; {}", files::of_svd(problem)),
        K::InterruptsUnused { file } => format!(
            "{}: names interrupts of M profile, but no source in the capture has M profile; leave out --svd",
            file.display()
        ),
        K::Inferred(inferred) => {
            let options = inferred.iter().filter_map(option).collect::<Vec<_>>();
            format!("inferred: {}", options.join(" "))
        }
        K::AnotherAnswer { source, question, finding } => {
            let name = source.map_or_else(String::new, |id| format!("trace ID {id}: "));
            another_answer(&name, *question, finding)
        }
        K::ImageMoved { file, address, finding: Finding { best, runner_up, .. } } => {
            let file = file.display();
            let stated = runner_up.as_ref().map_or_else(String::new, |stated| format!(", not at {stated}"));
            format!(
                "{file}: the trace fits this image at {best}{stated}; tracewalk moved it there: give --image {address}:{file}, \
                 or --strict to leave it where it was"
            )
        }
        K::StatementContradicted { source, correction } => {
            let from = notice.at.map_or_else(String::new, |at| format!(" from {at} on"));
            contradicted(&source_name(*source), &from, correction)
        }
        K::NotDecoded { source, protocol } => {
            format!("{}: {protocol} is not decoded", source_name(*source))
        }
        K::RegistersMissing { source, protocol, problem } => format!(
            "{}: {problem}; state it with --source {}{protocol},cpu=… or the register's name",
            source_name(*source),
            source.map_or_else(String::new, |id| format!("{id}=")),
        ),
        K::NothingThere(error) => match remedy(error) {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        },
        K::NothingDecodable => {
            concat!(
                "nothing in the capture can be decoded: none of its sources has a protocol that tracewalk decodes (",
                crate::page!("protocols.md"),
                ")"
            )
            .to_owned()
        }
        K::Undescribed { id, bytes, reads_as } => {
            let option = match reads_as {
                Some(source) => format!("{} would decode it", as_option(source)),
                None => format!("describe it with --source {id}=PROTOCOL"),
            };
            format!(
                "trace ID {id}: {} of a source that is not described, the first at {}; {option}",
                counted(*bytes, "byte"),
                place(notice),
            )
        }
        K::ManyUndescribed { ids, bytes } => {
            let named = ids.iter().take(NAMED).map(ToString::to_string).collect::<Vec<_>>().join(", ");
            format!(
                "{} of {} trace IDs that are not described ({named}, …), the first at {}; describe one with --source ID=PROTOCOL; \
                 damaged frames also look like this",
                counted(*bytes, "byte"),
                ids.len(),
                place(notice),
            )
        }
        K::StatedAbsent { id } => {
            format!(
                "trace ID {id}: the capture has no bytes with this ID, nor of another stated source of program flow; check --source or \
                 the description"
            )
        }
        K::DescribedAbsent { id } => format!("trace ID {id}: the capture has no bytes with this ID"),
        K::Unowned { bytes } => format!(
            "{} of trace before the first trace ID: their source is unknown; a buffer that wrapped loses \
             the ID unless its formatter repeats it: trace into a larger buffer, or without the formatter",
            counted(*bytes, "byte"),
        ),
        _ => return memory(notice).or_else(|| bytes(notice)).or_else(|| arrival(notice)),
    })
}

fn left_out(problem: &dyn std::fmt::Display, remedy: Option<String>) -> String {
    let remedy = remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default();
    format!("{problem}; it is left out{remedy}")
}

/// The sentence of a notice about memory.
fn memory(notice: &Notice) -> Option<String> {
    use NoticeKind as K;
    Some(match &notice.kind {
        K::MemoryRead { file, memory } => {
            let MemoryDump { form, pieces, .. } = &**memory;
            let named = pieces.iter().take(NAMED_PIECES).map(ToString::to_string);
            let named = named.collect::<Vec<_>>().join(", ");
            let more = match pieces.len().saturating_sub(NAMED_PIECES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("inferred: {} is {form}: {named}{more}", file.display())
        }
        K::LinesPassedOver { file, count, line, text } => format!(
            "{}: skipped {} without memory, first line {line}: {text}",
            file.display(),
            counted(*count, "line")
        ),
        K::MtbRegistersFound { address, registers } => format!(
            "inferred: the MTB's registers at {address}, --source mtb,position=0x{:x},master=0x{:x},base=0x{:x}",
            registers.position,
            registers.master,
            registers.base.unwrap_or(0)
        ),
        K::MemoryAsCode { file, bytes, address } => format!(
            "inferred: possible code in {}, {} at {address}, used if no image has code there",
            file.display(),
            counted(*bytes, "byte"),
        ),
        K::MemoryContradictsImage(error) => {
            format!(
                "{error}; the memory is not used there; check that --image is the program that was in the chip"
            )
        }
        K::MtbOrderInferred(evidence) => {
            format!("inferred: {evidence}; to state it, give --registers FILE, or --source mtb,position=…,master=…")
        }
        K::MtbAnotherOrder(evidence) => {
            format!("another reading is nearly as likely: {evidence}; give --registers FILE to be sure")
        }
        K::MtbIncomplete { missing, are_addresses, newest } => {
            let bytes = missing.iter().map(|missing| missing.end - missing.start).sum();
            let consequence = if *newest {
                "the newest packets among them: the last instructions printed are not the last that ran; "
            } else {
                ""
            };
            format!(
                "{} of the trace buffer {} not in the capture: {}; {consequence}print them again, or save all of the buffer",
                counted(bytes, "byte"),
                if bytes == 1 { "is" } else { "are" },
                stretches(missing, *are_addresses),
            )
        }
        K::MtbEndUnknown { end: Ending::Unheld(others), are_addresses } => format!(
            "the capture may hold only a part of the trace buffer: if the buffer is larger, {} are missing, and the last \
             instructions printed may not be the last that ran; give --registers FILE, or save all of the buffer",
            stretches(std::slice::from_ref(others), *are_addresses),
        ),
        K::MtbEndUnknown { .. } => {
            "nothing shows where the newest packet meets the oldest: the order is right, but its \
             end is unknown; give --registers FILE, or --source mtb,position=…,master=…"
                .to_owned()
        }
        K::MtbOlderPackets(evidence) => format!(
            "MTB_POSITION shows no packet since it was set to 0, as a reset may do, but there are older \
             packets: {evidence}; leave out the registers to read them"
        ),
        K::MtbWroteNothing => {
            concat!(
                "MTB_POSITION shows no packet, and the trace buffer holds none: the MTB was never on, or no branch ran since it \
                 was switched on; switch it on before the run (",
                crate::page!("mtb-after-a-crash.md"),
                ")"
            )
            .to_owned()
        }
        K::MtbGoesOn(evidence) => format!(
            "packets after the place in MTB_POSITION continue the newest one: an earlier run left them, or the registers are \
             another recording's and the newest packets are missing; without the registers: {evidence}"
        ),
        K::DumpPlaced { address } => format!(
            "inferred: --container address={address}, where the packets continue as MTB_POSITION states; without it, tracewalk assumes a dump \
             that begins at MTB_BASE"
        ),
        K::DumpMisplaced(other) => format!(
            "packets are not where MTB_POSITION places them in a dump that begins at MTB_BASE: {other}; give the dump's \
             first address with --container address="
        ),
        K::MemoryDamaged { file, damage: Damage { count, line, problem } } => {
            let line = line.map_or_else(String::new, |line| format!("{line}:"));
            let more = match count {
                1 => String::new(),
                more => format!(" (and {} more)", counted(u64::from(more - 1), "part")),
            };
            format!("{}:{line} {problem}{more}; the rest is used", file.display())
        }
        _ => return None,
    })
}

/// Stretches of memory, by their first and last bytes.
fn stretches(stretches: &[Range<u64>], are_addresses: bool) -> String {
    let named = stretches.iter().take(NAMED_PIECES).map(|Range { start, end }| {
        let last = end.saturating_sub(1);
        if are_addresses {
            format!("0x{start:08x} to 0x{last:08x}")
        } else {
            format!("byte {start} to {last}")
        }
    });
    let named = named.collect::<Vec<_>>().join(", ");
    match stretches.len().saturating_sub(NAMED_PIECES) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// The sentence of a notice about bytes that are wrong or missing.
fn bytes(notice: &Notice) -> Option<String> {
    use NoticeKind as K;
    let what_was_seen =
        |seen: &Option<String>| seen.as_ref().map_or_else(String::new, |seen| format!("; seen: {seen}"));
    Some(match &notice.kind {
        K::FramesDamaged { file, bytes, places, unowned, first } => {
            let unowned = match unowned {
                0 => String::new(),
                bytes => format!("; {} before a trace ID have no known source", counted(*bytes, "byte")),
            };
            format!(
                "{}: {} lost to damaged frames in {}, the first: {first}{unowned}; if there are many, try --container \
                 tpiu or raw",
                file.display(),
                counted(*bytes, "byte"),
                counted(*places, "place"),
            )
        }
        K::FramesOdd { file, bytes, places, first_bytes } => format!(
            "{}: {} in {} that no formatter writes (reserved trace IDs, padding that is not zero), the first: {} at {}; if \
             there are many, try --container tpiu or raw",
            file.display(),
            counted(*bytes, "byte"),
            counted(*places, "place"),
            counted(*first_bytes, "byte"),
            place(notice),
        ),
        K::Unfilled { file, first, last } => {
            let of = |count: u64, which: &str| {
                (count > 0).then(|| format!("the {which} {}", counted(count, "byte")))
            };
            let ends = [of(*first, "first"), of(*last, "last")].into_iter().flatten().collect::<Vec<_>>();
            format!("{}: {} are zeros: the buffer was not filled", file.display(), ends.join(" and "))
        }
        K::FrameCut { file, bytes } => format!(
            "{}: ends within a frame; its {} at {} are not decoded",
            file.display(),
            counted(*bytes, "byte"),
            place(notice),
        ),
        K::WireErrors { file, errors, byte, seconds, seen } => {
            let at = seconds.map_or_else(String::new, |seconds| format!(", {seconds:.6} s"));
            format!(
                "{}: {} on the wires, the first at offset {byte}{at}; check --wire and --channel, or record at a higher \
                 sample rate{}",
                file.display(),
                counted(*errors, "error"),
                what_was_seen(seen),
            )
        }
        K::WiresUnaligned { file, seen } => format!(
            "{}: no synchronisation shows where the bytes of the trace port start; if nothing is recognised, check the \
             order of the pins with --channel{}",
            file.display(),
            what_was_seen(seen),
        ),
        K::RecordingCut(problem) => format!("{problem}; what precedes it is decoded"),
        _ => return None,
    })
}

/// The sentence of a notice about a capture that arrives over time.
fn arrival(notice: &Notice) -> Option<String> {
    use NoticeKind as K;
    Some(match &notice.kind {
        K::Awaited(place) => format!("{place}: does not exist yet; waiting for it"),
        K::InferringFromHead(place) => format!(
            "{place}: the format is inferred from the first bytes; --container and --source [ID=]PROTOCOL,cpu=… avoid \
             the wait"
        ),
        K::DecodedInTurn { place, first, others } => {
            let others = others.iter().map(|id| source_name(*id)).collect::<Vec<_>>().join(", ");
            format!(
                "{place}: {} is decoded as it arrives, {others} at the end; choose one with --id",
                source_name(*first)
            )
        }
        K::StreamEnded { place, end, received, cut } => stream_ended(place, end, *received, *cut),
        K::KeptPartly { place, kept } => format!(
            "{place}: only the first {} are kept for the other sources; choose one with --id",
            counted(*kept, "byte")
        ),
        K::ReadsOtherwise { source, decoded, better } => format!(
            "{}: was decoded as {}, inferred from its first bytes; all of its bytes fit {} better; give that option from the start",
            source_name(*source),
            as_option(decoded),
            as_option(better)
        ),
        K::DecodedByHead { source } => {
            format!("{}: was decoded with settings inferred from its first bytes", source_name(*source))
        }
        _ => return None,
    })
}

fn another_answer(name: &str, question: Question, finding: &Finding) -> String {
    let Finding { about, best, runner_up, certainty } = finding;
    let other = runner_up.as_ref().map_or_else(|| "another one".to_owned(), ToString::to_string);
    let option = match question {
        Question::ReadPointer => "--container read-pointer",
        Question::Container => "--container",
        Question::Source => "--source",
    };
    let differs = match certainty {
        Certainty::Doubtful => "they differ in the execution",
        _ => "they agree in the execution, but differ in times or contexts",
    };
    format!("{name}{about}: {best} was chosen, but {other} is as likely; {differs}: choose with {option}")
}

fn contradicted(name: &str, from: &str, correction: &Correction) -> String {
    let Correction { changes, stated, source, fits } = correction;
    let change = |Change { about, register, said, by, fits }: &Change| {
        format!("{about}: {said} ({register}, {by}), but {fits} fits")
    };
    let changes = changes.iter().map(change).collect::<Vec<_>>().join("; ");
    format!(
        "{name}: the trace contradicts its description{from}: {changes}: {stated}, against {fits}; try {}",
        as_option(source)
    )
}

/// The reason why a stream ended. The last `cut` bytes are the beginning of a frame.
fn stream_ended(place: &Place, end: &End, received: u64, cut: u64) -> String {
    let received = counted(received, "byte");
    match end {
        End::Closed if cut > 0 => format!(
            "{place}: closed the connection within a frame, after {received}; the last {cut} of them are not decoded"
        ),
        End::Closed => format!("{place}: closed the connection after {received}"),
        End::Stopped => format!("{place}: stopped after {received}"),
        End::Idle => format!("{place}: nothing arrived after {received}"),
        End::Failed(problem) => {
            let hint = files::of_stream(problem).unwrap_or_default();
            let problem = Plain(problem);
            format!("{place}: {problem}, after {received}; the bytes received before are decoded; {hint}")
        }
    }
}

/// A file with another build-id than the one that ran.
fn other_binary(binary: &Binary) -> String {
    let id = binary.build_id.map_or_else(String::new, |id| format!(" (build-id {id})"));
    let found = match &binary.file {
        Err(NoBinary::OtherBuildId { file, found }) if found.is_empty() => {
            format!("{} has no build-id", Plain(file.display()))
        }
        Err(NoBinary::OtherBuildId { file, found }) => {
            format!("{} has build-id {found}", Plain(file.display()))
        }
        _ => "no file has this build-id".to_owned(),
    };
    format!("{}{id} ran, and {found}: it is another program, and is not used", Plain(&binary.name))
}

/// Mapped files whose code is unknown.
fn binaries_missing(binaries: &[Binary]) -> String {
    const NAMED: usize = 4;
    let is_absent = |binary: &&Binary| matches!(binary.file, Err(NoBinary::NotFound));
    let (absent, others) = binaries.iter().partition::<Vec<_>, _>(is_absent);
    let is_broken = |binary: &&Binary| matches!(binary.file, Err(NoBinary::NoModule { .. }));
    let (broken, others) = others.into_iter().partition::<Vec<_>, _>(is_broken);
    let named = |binaries: &[&Binary]| {
        let mut words =
            binaries.iter().take(NAMED).map(|binary| Plain(&binary.name).to_string()).collect::<Vec<_>>();
        words.extend(
            binaries.len().checked_sub(NAMED).filter(|more| *more > 0).map(|more| format!("{more} more")),
        );
        words.join(", ")
    };
    let mut sentences = Vec::new();
    if !absent.is_empty() {
        sentences.push(format!(
            "{} not found: {}; give the directory with --symfs or --debug-dir",
            counted(absent.len() as u64, "mapped file"),
            named(&absent)
        ));
    }
    if !broken.is_empty() {
        sentences.push(format!("damaged, or not a module of a kernel for Arm: {}", named(&broken)));
    }
    if !others.is_empty() {
        sentences.push(format!("no file has the code of {}", named(&others)));
    }
    sentences.join("; ")
}

/// The reasons why the code of kernel modules is unknown.
fn modules_left_out(modules: ModulesLeftOut) -> String {
    let ModulesLeftOut { not_found, unplaced } = modules;
    let mut sentences = Vec::new();
    if not_found > 0 {
        sentences.push(format!(
            "the code of {} is missing: give the traced machine's files with --symfs",
            counted(not_found, "kernel module")
        ));
    }
    if unplaced > 0 {
        sentences.push(format!(
            "the kernel's address of the code of {} is unknown: give its names with --kallsyms",
            counted(unplaced, "kernel module")
        ));
    }
    sentences.join("; ")
}

/// The trace that is not in a recording.
fn trace_not_recorded(counts: TraceCounts) -> String {
    let mut words = Vec::new();
    if counts.missing > 0 {
        let (missing, bytes) = (counts.missing, counted(counts.missing_bytes, "byte"));
        words.push(format!("{bytes} of {} were never written to the file", counted(missing, "record")));
    }
    if counts.truncated > 0 {
        words.push(format!("trace was lost {} because a buffer was full", counted(counts.truncated, "time")));
    }
    if counts.partial > 0 {
        words.push(format!("{} have gaps", counted(counts.partial, "record")));
    }
    if counts.bytes == 0 {
        words.push("the file holds no trace".to_owned());
    }
    format!("{}; record with a larger buffer (-m ,SIZE), or record less", words.join(", "))
}
