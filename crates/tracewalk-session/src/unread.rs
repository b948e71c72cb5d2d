//! Notices about the parts of a source that were not decoded, or are in doubt.

use tracewalk_analysis::{Doubts, Statistics};

use crate::model::Source;
use crate::notice::NoticeKind;
use crate::observer::{Observer, Say as _};
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
