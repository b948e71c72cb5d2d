//! Running an analysis over a source, for every command that has one, and recording what came of it.

use tracewalk_analysis::analysis::Analysis;
use tracewalk_session::{Follow, Outcome, Session, Source};

use crate::args::FollowArgs;
use crate::failure::Failure;
use crate::messages::Messages;

/// How the sources of a capture are followed, on at most this number of threads.
pub(super) fn how(args: &FollowArgs, threads: u16) -> Follow {
    Follow { trust: args.trust(), threads, names: Some(args.source_dirs.clone()), ..Follow::default() }
}

/// Runs an analysis over a source.
pub(super) fn run<A: Analysis>(
    session: &mut Session,
    source: &Source,
    how: &Follow,
    analysis: A,
    messages: &Messages,
) -> Result<Outcome<A::Found>, Failure> {
    let how = accounting(how, messages);
    let outcome = session.run_observed(source, &how, analysis, messages)?;
    record(session, source, &outcome, messages)?;
    Ok(outcome)
}

/// The same with all that `--provenance` accounts for, if that was asked for.
pub(super) fn accounting(how: &Follow, messages: &Messages) -> Follow {
    Follow { places: messages.records(), ..how.clone() }
}

/// Records what came of following a source, if that is wanted.
pub(super) fn record<T>(
    session: &Session,
    source: &Source,
    outcome: &Outcome<T>,
    messages: &Messages,
) -> Result<(), Failure> {
    messages.record(|record| {
        record.outcome(session, source, outcome);
        Ok(())
    })
}
