//! Notices about images that are for some context IDs or VMIDs only.

use tracewalk::flow::Contradiction;
use tracewalk::program::{Program, Scope};
use tracewalk::source::SourceConfig;
use tracewalk_analysis::{Context, Contexts};

use crate::model::Source;
use crate::notice::{NoContext, NoticeKind, WrongImage};
use crate::observer::{Observer, Say};
use crate::session::Session;

/// Reports the images that were never visible, because the trace names no context or others.
pub(crate) fn say(source: &Source, ran: &Contexts, program: &Program, observer: &dyn Observer) {
    let scopes = program.scopes().collect::<Vec<_>>();
    let for_context_ids = scopes.iter().any(|scope| scope.context_id.is_some());
    let for_vmids = scopes.iter().any(|scope| scope.vmid.is_some());
    if for_context_ids && !ran.has_context_ids() {
        let why = match &source.config {
            SourceConfig::Mtb(_) => NoContext::Mtb,
            config if has_context_ids(config) => NoContext::Traced,
            _ => NoContext::NotTraced,
        };
        observer.say(NoticeKind::NoContextIds { source: source.id, why });
    }
    if for_vmids && !ran.has_vmids() {
        observer.say(NoticeKind::NoVmids { source: source.id });
    }
    let occurs = |scope: &Scope| {
        ran.iter().any(|((context_id, vmid), _)| {
            scope.includes(program.named(context_id.or(scope.context_id)), vmid.or(scope.vmid))
        })
    };
    let others = || ran.iter().map(|(context, _)| of(context)).filter(|scope| *scope != Scope::EVERYWHERE);
    for &scope in scopes.iter().filter(|scope| !occurs(scope)) {
        observer.say(NoticeKind::ContextAbsent { source: source.id, scope, others: others().collect() });
    }
}

/// Whether the trace unit was set up to trace context IDs.
const fn has_context_ids(config: &SourceConfig) -> bool {
    match config {
        SourceConfig::Etmv3(config) => config.context_id_size().bytes() > 0,
        SourceConfig::Pft(config) => config.context_id_size().bytes() > 0,
        _ => false,
    }
}

/// In which contexts code is missing, if images are for some only.
pub(crate) fn without_code(ran: &Contexts, program: &Program) -> Vec<Scope> {
    if program.scopes().next().is_none() {
        return Vec::new();
    }
    ran.iter().filter(|(_, counts)| counts.no_code > 0).map(|(context, _)| of(context)).collect()
}

/// The image that is contradicted, and its context if that is one of several.
pub(crate) fn where_contradicted(
    session: &Session,
    source: &Source,
    ran: &Contexts,
    first: Contradiction,
) -> WrongImage {
    let context = ran.contradicted.unwrap_or_default();
    let file = session.file_at(source, first.location().address, context);
    WrongImage { file: file.map(ToOwned::to_owned), context: wrong_context(ran) }
}

/// The context in which an image is contradicted, if that is one of several.
pub(crate) fn wrong_context(ran: &Contexts) -> Option<Scope> {
    let is_one_of_several = ran.iter().filter(|(context, _)| *context != (None, None)).count() > 1;
    let context = ran.contradicted.filter(|_| is_one_of_several).map(of);
    context.filter(|scope| *scope != Scope::EVERYWHERE)
}

fn of((context_id, vmid): Context) -> Scope {
    Scope { context_id, vmid }
}
