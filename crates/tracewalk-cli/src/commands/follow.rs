//! Runs an analysis over a source, for every command, and records its outcome.

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

/// The same, with everything that `--provenance` records, if requested.
pub(super) fn accounting(how: &Follow, messages: &Messages) -> Follow {
    Follow { places: messages.records(), ..how.clone() }
}

/// Records the outcome of following a source, if requested.
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
