//! Reports what could not be followed.

use tracewalk::flow::{Contradiction, GapReason};
use tracewalk::ids::Address;
use tracewalk::program::Program;
use tracewalk::protocol::mtb;
use tracewalk::source::SourceConfig;
use tracewalk_analysis::{GapCount, Gaps, Statistics};

use super::Following;
use crate::misfits;
use crate::model::Source;
use crate::notice::NoticeKind;
use crate::observer::Say;
use crate::outcome::Losses;
use crate::session::Session;

impl Session {
    /// How many gaps are malformed or missing trace.
    pub(crate) fn lost(&self, source: &Source, gaps: &Gaps) -> u64 {
        // Between the parts of a recording the trace unit was off.
        let cuts = if self.buffer(source).parts.is_some() { gaps.cuts } else { 0 };
        gaps.trace_lost.count.saturating_sub(cuts)
    }
}

impl Following<'_> {
    /// Reports what could not be decoded or followed.
    pub(super) fn say(self, statistics: &Statistics, losses: &Losses, program: &Program, fits: bool) {
        let Self { session, source, observer, .. } = self;
        let gaps = &losses.gaps;
        session.say_if_nothing_decoded(source, statistics, observer);
        let contradicting =
            [gaps.contradictions.first.map(|(at, _)| at), gaps.trace_lost.first.map(|(at, ())| at)];
        if let Some(first) = contradicting.into_iter().flatten().min() {
            session.reconsider(source, statistics.malformed + gaps.contradictions.count, first, observer);
        }
        if statistics.malformed > 0 {
            let (source, count) = (source.id, statistics.malformed);
            observer.say(NoticeKind::Malformed { source, count, first: None });
        }
        misfits::say_contexts(source, &losses.contexts, program, observer);
        self.say_gaps(statistics, losses, program, fits);
    }

    /// The address at which an MTB's processor is stated to have been halted, if the program contradicts only that.
    fn only_its_end(self, contradictions: &GapCount<GapReason>) -> Option<Address> {
        let SourceConfig::Mtb(mtb::Source { halted_at: Some(halted_at) }) = self.source.config else {
            return None;
        };
        let (_, first) = contradictions.first.filter(|_| contradictions.count == 1)?;
        let until = match first {
            GapReason::Contradiction(
                Contradiction::RunPassesBranch { until, .. } | Contradiction::RunMissesEnd { until, .. },
            ) => until,
            _ => return None,
        };
        (until == halted_at).then_some(halted_at)
    }

    /// Reports the gaps in execution, summed up by reason.
    fn say_gaps(self, statistics: &Statistics, losses: &Losses, program: &Program, image_fits: bool) {
        let Self { session, source: Source { id: source, .. }, observer, .. } = self;
        let (source, Losses { gaps, contexts: ran, .. }) = (*source, losses);
        let foreign = session.known.foreign_image(self.source).filter(|_| statistics.instructions == 0);
        match gaps.no_code.first {
            _ if let Some(file) = foreign => observer.say(NoticeKind::ForeignImage { source, file }),
            // The notice that the image does not fit covers this.
            Some(_) if program.is_empty() && !image_fits => {}
            Some(_) if program.is_empty() => observer.say(NoticeKind::NoProgram { source }),
            Some((at, first)) => {
                let contexts = misfits::without_code(ran, program);
                let count = gaps.no_code.count;
                let images = &session.known.everything.memory.images;
                let image = images.first().filter(|_| statistics.instructions == 0);
                let elsewhere = image.and_then(|visible| {
                    let first = program.regions().first()?.start();
                    Some((visible.image.file.clone(), first))
                });
                observer.say_at(at, NoticeKind::CodeMissing { source, count, first, contexts, elsewhere });
            }
            None => {}
        }
        if let Some((at, first)) = gaps.undecodable.first {
            let count = gaps.undecodable.count;
            observer.say_at(at, NoticeKind::CodeUndecodable { source, count, first });
        }
        if let Some((at, first)) = gaps.contradictions.first
            && let Some(halted_at) = self.only_its_end(&gaps.contradictions)
        {
            observer.say_at(at, NoticeKind::HaltContradicted { source, halted_at, first });
        } else if let Some((at, first)) = gaps.contradictions.first {
            let wrong = match first {
                GapReason::Contradiction(contradiction) => {
                    misfits::where_contradicted(session, self.source, ran, contradiction)
                }
                _ => crate::notice::WrongImage::default(),
            };
            let count = gaps.contradictions.count;
            observer.say_at(at, NoticeKind::Contradictions { source, count, first, wrong });
        }
        if let Some((at, ())) = gaps.address_unknown.first {
            let count = gaps.address_unknown.count;
            observer.say_at(at, NoticeKind::AddressUnknown { source, count });
        }
        let count = session.lost(self.source, gaps);
        if let Some((at, ())) = gaps.trace_lost.first.filter(|_| count > 0) {
            observer.say_at(at, NoticeKind::TraceLost { source, count });
        }
    }
}
