//! Notices and errors of a session → sentences: what is wrong, where, and which option helps.

mod following;
mod names;
mod opening;
mod remedies;

use tracewalk_session::Notice;

pub(crate) use names::{as_option, itm_name, quoted, source_name};
pub(crate) use remedies::remedy;

/// The sentence that says what a notice is about, and which option helps.
pub(crate) fn sentence(notice: &Notice) -> String {
    opening::sentence(notice).or_else(|| following::sentence(notice)).unwrap_or_else(|| {
        // A newer session may have notices that nobody has put into words.
        match notice.at {
            Some(at) => format!("{}, first at {at}", notice.kind),
            None => notice.kind.to_string(),
        }
    })
}
