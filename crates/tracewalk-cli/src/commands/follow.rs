//! How sources are followed.

use tracewalk_session::Follow;

use crate::args::FollowArgs;
use crate::messages::Messages;

/// How the sources of a capture are followed, on at most this number of threads.
pub(super) fn how(args: &FollowArgs, threads: u16, messages: &Messages) -> Follow {
    Follow { trust: args.trust(), threads, names: Some(args.source_dirs.clone()), places: messages.records() }
}
