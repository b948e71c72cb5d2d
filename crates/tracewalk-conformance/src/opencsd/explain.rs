//! The differences of two readings, each with the deviation that explains it.

use super::compare::{self, Difference};
use super::deviations::{DEVIATIONS, Deviation};
use super::listing::Listing;
use super::model::Reading;
use super::place::Place;
use super::subject::Subject;

/// A difference, and the deviation that explains it, if there is one.
#[derive(Debug)]
pub struct Found {
    /// The difference.
    pub difference: Difference,
    /// The deviation.
    pub deviation: Option<&'static Deviation>,
}

impl Subject<'_> {
    /// Where the readings differ: OpenCSD's of packets alone, and its decoding.
    #[must_use]
    pub fn differences(&self, packets: &str, decoding: &str) -> Vec<Found> {
        let listing = Listing::parse(packets);
        let decoded = Listing::parse(decoding);
        let ours = Reading::ours(&self.config, &self.bytes, self.program);
        let theirs = Reading::theirs(listing.packets, &decoded.steps, self.program);
        let place =
            |difference: &Difference| Place::around(self, &ours, &theirs, &decoded, difference.places());
        let explained = |difference: Difference| {
            let place = place(&difference);
            let deviation = |difference: &Difference| {
                DEVIATIONS.iter().find(|deviation| (deviation.recognises)(difference, &place))
            };
            let whole = deviation(&difference);
            if whole.is_none()
                && let Some(parts) = difference.parts()
            {
                let parts =
                    parts.into_iter().map(|part| Found { deviation: deviation(&part), difference: part });
                let parts = parts.collect::<Vec<_>>();
                if parts.iter().all(|part| part.deviation.is_some()) {
                    return parts;
                }
            }
            vec![Found { difference, deviation: whole }]
        };
        let mut packets =
            compare::packets(&ours, &theirs).into_iter().flat_map(explained).collect::<Vec<_>>();
        let cuts = packets.iter().filter(|found| matches!(found.difference, Difference::Cut { .. }));
        let cuts =
            cuts.filter_map(|cut| Some((cut.difference.places().0, cut.deviation?))).collect::<Vec<_>>();
        let cause = |from: u64, until: u64| {
            cuts.iter().rfind(|(at, _)| (from..=until).contains(at)).map(|(_, deviation)| *deviation)
        };
        // Timestamps are compressed against the last one, and addresses against those since the last I-sync, which only one
        // of the two may have read.
        for found in packets.iter_mut().filter(|found| found.deviation.is_none()) {
            if let Difference::Packet { ours, .. } = &found.difference {
                let from = if ours.kind == "timestamp" { 0 } else { place(&found.difference).from };
                found.deviation = cause(from, ours.at);
            }
        }
        if !self.has_flow() {
            return packets;
        }
        let mut flow = compare::flow(&ours, &theirs).into_iter().flat_map(explained).collect::<Vec<_>>();
        // Packets that are read otherwise tell something else, up to the next I-sync.
        for found in flow.iter_mut().filter(|found| found.deviation.is_none()) {
            found.deviation = cause(place(&found.difference).from, found.difference.places().1);
        }
        packets.into_iter().chain(flow).collect()
    }
}
