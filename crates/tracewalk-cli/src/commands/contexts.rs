//! Saying what is wrong with images that are for some context IDs or VMIDs only.

use std::fmt::Write as _;

use tracewalk::flow::Contradiction;
use tracewalk::ids::{ContextId, Vmid};
use tracewalk::program::{Program, Scope};
use tracewalk::source::SourceConfig;
use tracewalk_analysis::{Context, Contexts};

use crate::messages::Messages;
use crate::work::{Job, Work};

/// How many contexts a message names.
const NAMED: usize = 4;

/// Says which images were never visible, because the trace names no context or others.
pub(super) fn tell(job: &Job, ran: &Contexts, program: &Program, messages: &Messages) {
    let name = job.name();
    let scopes = program.scopes().collect::<Vec<_>>();
    let for_context_ids = scopes.iter().any(|scope| scope.context_id.is_some());
    let for_vmids = scopes.iter().any(|scope| scope.vmid.is_some());
    if for_context_ids && !ran.has_context_ids() {
        messages.incomplete(format_args!(
            "{name}: an image is for a context ID, and the trace carries none, so that it is never visible; {}",
            match &job.config {
                SourceConfig::Mtb(_) => "an MTB has none: leave out @context",
                _ if has_context_ids(&job.config) => "leave out @context",
                _ => "set ContextIDSize (bits 15:14 of ETMCR) when tracing, or check etmcr of --source, or leave out \
                      @context",
            },
        ));
    }
    if for_vmids && !ran.has_vmids() {
        messages.incomplete(format_args!(
            "{name}: an image is for a VMID, and the trace carries none, so that it is never visible; set bit 30 of \
             ETMCR when tracing, or leave out @vmid"
        ));
    }
    let occurs = |scope: &Scope| {
        ran.iter().any(|((context_id, vmid), _)| {
            let named = (context_id.or(scope.context_id), vmid.or(scope.vmid));
            scope.includes(named.0, named.1)
        })
    };
    for scope in scopes.iter().filter(|scope| !occurs(scope)) {
        messages.warning(format_args!(
            "{name}: the --image of {scope} was never visible: {scope} does not occur in the trace{}",
            others(ran)
        ));
    }
}

/// Whether the trace unit was set up to trace context IDs.
const fn has_context_ids(config: &SourceConfig) -> bool {
    match config {
        SourceConfig::Etmv3(config) => config.context_id_bytes > 0,
        SourceConfig::Pft(config) => config.context_id_bytes > 0,
        SourceConfig::Mtb(_) => false,
    }
}

/// The contexts that occur.
fn others(ran: &Contexts) -> String {
    let names = ran.iter().filter_map(|(context, _)| name_of(context)).collect::<Vec<_>>();
    match names.as_slice() {
        [] => String::new(),
        names => format!("; it has {}", list(names)),
    }
}

/// In which contexts code is missing, where images are for some only.
pub(super) fn without_code(ran: &Contexts, program: &Program) -> String {
    if program.scopes().next().is_none() {
        return String::new();
    }
    let missing = ran.iter().filter(|(_, counts)| counts.no_code > 0);
    let names = missing.map(|(context, _)| name_of(context).unwrap_or_else(|| "no known context".to_owned()));
    match names.collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        names => format!(" (under {})", list(names)),
    }
}

/// How to say for which context an image is, where code is missing in one.
pub(super) fn as_suffix(ran: &Contexts, program: &Program) -> String {
    let missing = ran.iter().filter(|(_, counts)| counts.no_code > 0).map(|(context, _)| context);
    let named = missing.filter_map(suffix).next();
    match named.filter(|_| program.scopes().next().is_some()) {
        Some(suffix) => format!(", for that context alone with {suffix} behind it"),
        None => String::new(),
    }
}

/// Which image is contradicted, and under which context.
pub(super) fn where_contradicted(work: &Work, job: &Job, ran: &Contexts, first: Contradiction) -> String {
    let context = ran.contradicted.unwrap_or_default();
    let mut text = String::new();
    if let Some(file) = work.file_at(job, first.location().address, context) {
        let _ = write!(text, " in {}", file.display());
    }
    if let Some(name) = name_of(context).filter(|_| is_one_of_several(ran)) {
        let _ = write!(text, " under {name}");
    }
    text
}

/// What to try where an image is contradicted under one of several contexts.
pub(super) fn other_context(ran: &Contexts) -> String {
    let context = ran.contradicted.filter(|_| is_one_of_several(ran)).and_then(suffix);
    context.map_or_else(String::new, |suffix| {
        format!("with {suffix} behind it where it is the program of that context alone, ")
    })
}

/// The same, behind a sentence.
pub(super) fn and_context(ran: &Contexts) -> String {
    let context = ran.contradicted.filter(|_| is_one_of_several(ran)).and_then(suffix);
    context.map_or_else(String::new, |suffix| {
        format!(", and where several programs run at one address give each with its context, like {suffix}")
    })
}

fn is_one_of_several(ran: &Contexts) -> bool {
    ran.iter().filter(|(context, _)| *context != (None, None)).count() > 1
}

/// What a context is called.
fn name_of((context_id, vmid): Context) -> Option<String> {
    let scope = Scope { context_id, vmid };
    (scope != Scope::EVERYWHERE).then(|| scope.to_string())
}

/// What stands behind an image for a context.
fn suffix((context_id, vmid): Context) -> Option<String> {
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
