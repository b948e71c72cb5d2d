//! Following one source's program flow, for every command that looks at it, and recording what was lost.

use std::sync::Arc;

use tracewalk_analysis::drive::Spread;
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::{Join, Sink};
use tracewalk_analysis::{Code, Statistics};
use tracewalk_session::{Outcome, Session, Source, Trust};

use crate::args::FollowArgs;
use crate::failure::Failure;
use crate::messages::Messages;

/// A source that is to be followed.
#[derive(Clone, Copy)]
pub(super) struct Following<'a> {
    pub(super) session: &'a Session,
    pub(super) source: &'a Source,
    pub(super) trust: Trust,
    pub(super) messages: &'a Messages,
}

impl<'a> Following<'a> {
    pub(super) const fn new(
        session: &'a Session,
        source: &'a Source,
        trust: Trust,
        messages: &'a Messages,
    ) -> Self {
        Self { session, source, trust, messages }
    }

    /// Follows the source and hands what is found to `sink`, as a section of its own; without what is in doubt, if that is left
    /// out.
    pub(super) fn in_order(
        self,
        code: &Arc<Code>,
        sink: &mut dyn Sink<FlowRecord>,
    ) -> Result<Statistics, Failure> {
        let Self { session, source, trust, messages } = self;
        let outcome = session.follow(source, code, trust, sink, messages)?;
        session.say_doubts(source, &outcome.losses, messages);
        record(session, source, &outcome, messages)?;
        Ok(outcome.statistics)
    }

    /// As [`Following::in_order`] on several threads, with all that is in doubt.
    pub(super) fn in_parts(
        self,
        code: &Arc<Code>,
        spread: Spread,
        sink: &mut impl Join,
    ) -> Result<Statistics, Failure> {
        let Self { session, source, trust, messages } = self;
        let outcome = session.follow_in_parts(source, code, (trust, spread), sink, messages)?;
        session.say_doubts(source, &outcome.losses, messages);
        record(session, source, &outcome, messages)?;
        Ok(outcome.statistics)
    }
}

/// Follows all sources of a capture, as it arrives: `each` follows one.
pub(super) fn all_sources(
    session: &mut Session,
    args: &FollowArgs,
    messages: &Messages,
    mut each: impl FnMut(&mut Session, &Source, Arc<Code>) -> Result<Statistics, Failure>,
) -> Result<Statistics, Failure> {
    let mut total = Statistics::default();
    session.each_source(messages, |session, source| {
        let code = session.code(source, Some(&args.source_dirs), messages)?;
        total.add(&each(session, source, code)?);
        Ok::<(), Failure>(())
    })?;
    Ok(total)
}

/// Records what came of following a source, if that is wanted.
pub(super) fn record<T>(
    session: &Session,
    source: &Source,
    outcome: &Outcome<T>,
    messages: &Messages,
) -> Result<(), Failure> {
    messages.record(|record| {
        outcome.itms.iter().for_each(|(itm, counts)| record.itm(itm, counts));
        let followed = (Some(&*outcome.code.program), outcome.ended_at);
        record.source(session, source, &outcome.statistics, followed)
    })
}
