//! Notices about a source that was followed: what was not decoded, statements that the trace contradicts, and images that
//! were never visible.

use tracewalk::flow::Contradiction;
use tracewalk::program::{Program, Scope};
use tracewalk::source::SourceConfig;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::drive::NoProgress;
use tracewalk_analysis::{Context, Contexts, Doubts, Statistics};

use crate::contents::Sample;
use crate::infer::{self, Correction, Search};
use crate::model::Source;
use crate::notice::{NoContext, NoticeKind, WrongImage};
use crate::observer::{Observer, Say};
use crate::outcome::Losses;
use crate::session::Session;

impl Session {
    /// Reports the stretches of a source that are in doubt, and whether their instructions were counted.
    pub(crate) fn say_doubts(&self, source: &Source, losses: &Losses, observer: &dyn Observer) {
        let Doubts { count, bytes, first } = &losses.doubts;
        let Some(&first) = first.first() else { return };
        let kind = NoticeKind::InDoubt {
            source: source.id,
            count: *count,
            bytes: *bytes,
            first,
            instructions: losses.in_doubt,
        };
        observer.say_at(first.from, kind);
    }

    /// Gives a notice if a source has not a single packet.
    pub fn say_if_nothing_decoded(&self, source: &Source, statistics: &Statistics, observer: &dyn Observer) {
        if statistics.packets == 0 && statistics.bytes > 0 {
            observer.say(NoticeKind::NoSynchronisation {
                source: source.id,
                bytes: statistics.bytes,
                protocol: source.config.protocol(),
            });
        }
    }
}

/// The fewest errors that justify a search for another configuration: damage causes fewer.
const FREQUENT: u64 = 8;

impl Session {
    /// Reports the statements about a source that do not fit.
    pub(crate) fn say_correction(&self, source: &Source, observer: &dyn Observer) {
        let Some(correction) = &source.correction else { return };
        let input = self.input(source, &NoProgress);
        let first = infer::first_error(&input, &source.config, self.known.program(&source.description));
        let at = first.map(|at| CaptureOffset(self.buffer(source).file_offset(at)));
        say_contradicted(source, correction.clone(), at, observer);
    }

    /// Looks for a configuration that fits better from `first` on, the place in the file of the first error, and
    /// reports it. The beginning of the trace may have had no errors.
    pub fn reconsider(&self, source: &Source, errors: u64, first: CaptureOffset, observer: &dyn Observer) {
        if source.correction.is_some() || errors < FREQUENT {
            return;
        }
        let buffer = self.buffer(source);
        let sample = Sample::from_place(&buffer.bytes, &source.carrier, buffer.trace_offset(first));
        let mut search = Search::new(&sample, self.known.traced(&source.description), &self.known.units);
        if let Some(correction) = search.correction(&source.description) {
            say_contradicted(source, correction, Some(first), observer);
        }
    }
}

fn say_contradicted(
    source: &Source,
    correction: Correction,
    at: Option<CaptureOffset>,
    observer: &dyn Observer,
) {
    let kind = NoticeKind::StatementContradicted { source: source.id, correction: Box::new(correction) };
    match at {
        Some(at) => observer.say_at(at, kind),
        None => observer.say(kind),
    }
}

/// Reports the images that were never visible, because the trace names no context or others.
pub(crate) fn say_contexts(source: &Source, ran: &Contexts, program: &Program, observer: &dyn Observer) {
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
    let others =
        || ran.iter().map(|(context, _)| scope_of(context)).filter(|scope| *scope != Scope::EVERYWHERE);
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
    ran.iter().filter(|(_, counts)| counts.no_code > 0).map(|(context, _)| scope_of(context)).collect()
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
    let context = ran.contradicted.filter(|_| is_one_of_several).map(scope_of);
    context.filter(|scope| *scope != Scope::EVERYWHERE)
}

fn scope_of((context_id, vmid): Context) -> Scope {
    Scope { context_id, vmid }
}
