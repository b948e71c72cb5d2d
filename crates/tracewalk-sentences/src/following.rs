//! Notices about a source that was decoded → sentences.

use tracewalk::ids::{ContextId, Vmid};
use tracewalk::plain::Plain;
use tracewalk::program::Scope;
use tracewalk::protocol::Fault;
use tracewalk_analysis::{InDoubt, Position};
use tracewalk_session::{Bound, NoContext, Notice, NoticeKind, WrongImage};

use super::names::{itm_name, place, source_name};
use tracewalk_report::counted;

/// How many contexts a message names.
const NAMED: usize = 4;

/// The sentence of a notice about execution.
pub(super) fn sentence(notice: &Notice) -> Option<String> {
    use NoticeKind as K;
    let at = place(notice);
    Some(match &notice.kind {
        K::MemoryExhausted { used } => format!(
            "{} MiB of memory are in use; decoding ends after byte {} of the capture, and the result up to there is \
             printed; raise --memory, or decode less with --id or an option that limits the result",
            used >> 20,
            at.0,
        ),
        K::NamesMissing(problem) => {
            format!("{problem}; names or lines are missing, and --image can name a better file")
        }
        K::NoNames { file, form } => format!(
            "{}: {form} has no names or source lines: places are printed as addresses, and functions start at call targets; \
             give the ELF file that it was made from with --image",
            Plain(file.display()),
        ),
        K::NoLines { file } => format!(
            "{}: has no debugging information, so source lines are missing; build with -g, and give the \
             compiler's ELF file with --image",
            Plain(file.display()),
        ),
        K::SourcesMissing { files } => {
            let shown =
                files.iter().take(3).map(|file| Plain(file).to_string()).collect::<Vec<_>>().join(", ");
            let more = files.len().checked_sub(3).filter(|more| *more > 0);
            format!(
                "found no source file for {shown}{}; give their directory with --src-dir",
                more.map_or_else(String::new, |more| format!(" and {more} more")),
            )
        }
        K::NoSynchronisation { source, bytes, protocol } => format!(
            "{}: found no synchronisation in {}, expected {protocol}; check --source and --container",
            source_name(*source),
            counted(*bytes, "byte"),
        ),
        K::Malformed { source, count, first: None } => format!(
            "{}: found {} of malformed trace; `tracewalk packets` shows them",
            source_name(*source),
            counted(*count, "part"),
        ),
        K::Malformed { source, count, first: Some(reason) } => {
            let hint = match reason.at_fault() {
                Fault::Trace => "the trace is damaged, or not this protocol: check --source",
                Fault::Configuration => "the registers in --source contradict it",
            };
            format!(
                "{}: {}, the first at {at}: {reason}; {hint}",
                source_name(*source),
                counted(*count, "malformed stretch"),
            )
        }
        K::InDoubt { source, count, bytes, first, instructions } => {
            let became = match instructions.map(in_doubt) {
                Some(Some(sentence)) => sentence,
                Some(None) => "they contain no decoded instructions".to_owned(),
                None => "--doubtful drop leaves out what was decoded in them".to_owned(),
            };
            format!(
                "{}: {} of trace in doubt, {}, the first from {} to {}; {became}",
                source_name(*source),
                counted(*count, "stretch"),
                counted(*bytes, "byte"),
                first.from,
                first.to,
            )
        }
        K::ItmMalformed { source, count } => format!(
            "{}: found {} of malformed trace; `tracewalk itm --format events` shows them",
            itm_name(*source),
            counted(*count, "part"),
        ),
        K::ItmOverflow { source, count } => format!(
            "{}: the ITM could not send fast enough {}, and dropped an unknown number of packets; enable fewer of its reports, or raise \
             the rate of the trace port",
            itm_name(*source),
            counted(*count, "time"),
        ),
        K::StmLost { source, count } => format!(
            "{}: the STM reports {} of lost writes; raise the rate of the trace port, or write less",
            source_name(*source),
            counted(*count, "time"),
        ),
        K::ItmAlone { source } => format!(
            "{}: an ITM or STM alone does not record program flow; `tracewalk itm` prints what was written to it",
            itm_name(*source)
        ),
        K::WindowNotCounted { source, bound, position } => {
            not_counted(&source_name(*source), *bound, *position)
        }
        K::WindowEmpty { source, window, end } => format!(
            "{}: found nothing {}: the source ends at {end}; check --from and --to",
            source_name(*source),
            window
        ),
        _ => return contexts(notice).or_else(|| gaps(notice)),
    })
}

/// The sentence of a notice about images that are for some contexts only.
fn contexts(notice: &Notice) -> Option<String> {
    use NoticeKind as K;
    Some(match &notice.kind {
        K::NoContextIds { source, why } => format!(
            "{}: an image is for a context ID, but the trace has none, so the image is never visible; {}",
            source_name(*source),
            match why {
                NoContext::Mtb => "an MTB has none: leave out @context",
                NoContext::Traced => "leave out @context",
                NoContext::NotTraced => {
                    "set ContextIDSize (bits 15:14 of ETMCR) when tracing, or check etmcr of --source, or leave out \
                     @context"
                }
            },
        ),
        K::NoVmids { source } => format!(
            "{}: an image is for a VMID, but the trace has none, so the image is never visible; set bit 30 of ETMCR when \
             tracing, or leave out @vmid",
            source_name(*source)
        ),
        K::ContextAbsent { source, scope, others } => {
            let others = others.iter().map(ToString::to_string).collect::<Vec<_>>();
            let others =
                if others.is_empty() { String::new() } else { format!("; it has {}", list(&others)) };
            let name = source_name(*source);
            format!(
                "{name}: the --image of {scope} was never visible: {scope} does not occur in the trace{others}"
            )
        }
        _ => return None,
    })
}

/// The sentence of a notice about gaps in execution, with the remedy.
fn gaps(notice: &Notice) -> Option<String> {
    use NoticeKind as K;
    let at = place(notice);
    Some(match &notice.kind {
        K::ImageRefused { source, count, ranges, first, wrong } => {
            let context = wrong.context.and_then(suffix).map_or_else(String::new, |suffix| {
                format!("with {suffix} appended if it is for that context only, ")
            });
            format!(
                "{}: trace and image disagree {} in {}, first at {at}{}: {first}; this is not the program that was \
                 traced, and only what the trace alone proves is printed; give the right one with --image, {context}or \
                 --trust-image to follow this one",
                source_name(*source),
                counted(*count, "time"),
                counted(*ranges, "range"),
                which_image(wrong),
            )
        }
        K::NoProgram { source } => format!(
            "{}: without the program, only what the trace alone proves is known; add it with --image FILE",
            source_name(*source)
        ),
        K::ForeignImage { source, file } => format!(
            "{}: {} is a program for processors of another kind than the one that was traced; give the program that was traced with \
             --image FILE",
            source_name(*source),
            file.display(),
        ),
        K::CodeMissing { source, count, first, elsewhere: Some((file, start)), .. } => format!(
            "{}: nothing that ran is in {}, which begins at {start}: execution reached code that no image holds {}, first at \
             {first}; give the program that was traced with --image FILE",
            source_name(*source),
            file.display(),
            counted(*count, "time"),
        ),
        K::CodeMissing { source, count, first, contexts, .. } => {
            let names = contexts.iter().map(|scope| match *scope {
                Scope::EVERYWHERE => "no known context".to_owned(),
                scope => scope.to_string(),
            });
            let names = names.collect::<Vec<_>>();
            let under = if names.is_empty() { String::new() } else { format!(" (under {})", list(&names)) };
            let suffix = contexts.iter().find_map(|scope| suffix(*scope));
            let suffix = suffix
                .map_or_else(String::new, |suffix| format!(", for that context only with {suffix} appended"));
            format!(
                "{}: execution reached code that no image holds {}, first at {first}{under}; add it with --image FILE or \
                 --image ADDRESS:FILE{suffix}",
                source_name(*source),
                counted(*count, "time"),
            )
        }
        K::CodeUndecodable { source, count, first } => format!(
            "{}: {} where code cannot be decoded, first at {at}: {first}; --image can name a better file",
            source_name(*source),
            counted(*count, "place"),
        ),
        K::Contradictions { source, count, first, wrong } => {
            let context = wrong.context.and_then(suffix).map_or_else(String::new, |suffix| {
                format!(
                    ", and if several programs run at the same address, add the context to each, for example {suffix}"
                )
            });
            format!(
                "{}: {}, first at {at}{}: {first}; check that --image is exactly the program that was traced{context}",
                source_name(*source),
                counted(*count, "contradiction"),
                which_image(wrong),
            )
        }
        K::HaltContradicted { source, halted_at, first } => format!(
            "{}: the program fits up to the last packet, but cannot have continued to {halted_at}, the given \
             place of the halt: {first}; check --source mtb,pc, or leave it out",
            source_name(*source),
        ),
        K::AddressUnknown { source, count } => format!(
            "{}: the trace lacks the address that execution went to {}, first at {at}; if the registers in --source are \
             right, no option helps",
            source_name(*source),
            counted(*count, "time"),
        ),
        K::TraceLost { source, count } => format!(
            "{}: {} where trace is malformed or missing, first at {at}; `tracewalk info` shows what was lost",
            source_name(*source),
            counted(*count, "place"),
        ),
        _ => return None,
    })
}

fn not_counted(name: &str, bound: Bound, position: Position) -> String {
    let option = match bound {
        Bound::From => "--from",
        Bound::To => "--to",
    };
    let missing = match position {
        Position::Cycles(_) => "cycle counts",
        _ => "timestamps",
    };
    format!(
        "{name}: {option} is {position}, but the trace has no {missing}; give it in instructions (2000) or in bytes of the \
         capture (@0x7d0)"
    )
}

/// Names the wrong image, and its context.
fn which_image(wrong: &WrongImage) -> String {
    let file = wrong.file.as_ref().map_or_else(String::new, |file| format!(" in {}", file.display()));
    let context = wrong.context.map_or_else(String::new, |scope| format!(" under {scope}"));
    file + &context
}

/// The suffix of an image option for a context.
fn suffix(Scope { context_id, vmid }: Scope) -> Option<String> {
    let context_id = context_id.map(|ContextId(id)| format!("context=0x{id:x}"));
    let vmid = vmid.map(|Vmid(vmid)| format!("vmid={vmid}"));
    let parts = context_id.into_iter().chain(vmid).collect::<Vec<_>>();
    (!parts.is_empty()).then(|| format!("@{}", parts.join(",")))
}

fn list(names: &[String]) -> String {
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ") + &more
}

/// The sentence about instructions in doubt, with the option that changes their treatment; `None` if there are none.
fn in_doubt(InDoubt { left_out, counted }: InDoubt) -> Option<String> {
    let became = |count, became: &str, otherwise: &str| match count {
        1 => format!("1 instruction in doubt was {became}; {otherwise} it"),
        _ => format!("{count} instructions in doubt were {became}; {otherwise} them"),
    };
    let dropped = became(left_out, "left out", "--doubtful keep counts");
    let kept = became(counted, "counted", "--doubtful drop leaves out");
    match (left_out, counted) {
        (0, 0) => None,
        (_, 0) => Some(dropped),
        (0, _) => Some(kept),
        _ => Some(format!("{dropped}. {kept}")),
    }
}
