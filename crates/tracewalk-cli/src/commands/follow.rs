//! Running an analysis over a source, for every command that has one, and recording what came of it.

use tracewalk_analysis::analysis::Analysis;
use tracewalk_session::{Follow, Outcome, Session, Source};

use crate::args::FollowArgs;
use crate::failure::Failure;
use crate::messages::Messages;

/// How the sources of a capture are followed, on at most so many threads.
pub(super) fn how(args: &FollowArgs, threads: u16) -> Follow {
    Follow { trust: args.trust(), threads, names: Some(args.source_dirs.clone()) }
}

/// Runs an analysis over a source.
pub(super) fn run<A: Analysis>(
    session: &mut Session,
    source: &Source,
    how: &Follow,
    analysis: A,
    messages: &Messages,
) -> Result<Outcome<A::Found>, Failure> {
    let outcome = session.run_observed(source, how, analysis, messages)?;
    record(session, source, &outcome, messages)?;
    Ok(outcome)
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
