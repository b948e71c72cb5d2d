//! The differences of two readings, each with the deviation that explains it.

use std::fmt::{self, Display, Formatter};

use tracewalk::ids::Location;

use super::compare::{self, Difference};
use super::deviation::{Deviation, Evidence};
use super::deviations::deviations;
use super::listing::Listing;
use super::model::{Reading, What};
use super::place::Place;
use super::subject::Subject;

/// An instruction in our reading that differs from the traced one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untrue {
    /// The instruction in our reading.
    pub found: Option<Location>,
    /// The traced instruction.
    pub traced: Option<Location>,
}

impl Display for Untrue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = |at: Option<Location>| at.map_or_else(|| "nothing".to_owned(), |at| at.to_string());
        write!(f, "read {}, traced {}", name(self.found), name(self.traced))
    }
}

/// A difference, and the deviation that explains it, if there is one.
#[derive(Debug)]
pub struct Found {
    /// The difference.
    pub difference: Difference,
    /// The deviation.
    pub deviation: Option<&'static Deviation>,
}

impl Subject<'_> {
    /// The first instruction of our reading that differs from the traced one although the bytes are
    /// undamaged.
    ///
    /// Without this check, one of our own errors could be excused as a deviation of OpenCSD.
    #[must_use]
    pub fn untrue(&self) -> Option<Untrue> {
        if !self.has_flow() {
            return None;
        }
        let reading = Reading::ours(&self.config, &self.bytes, self.program);
        let found = reading.steps.iter().filter_map(|step| match step.what {
            What::Instruction { at, .. } => Some((step, at)),
            _ => None,
        });
        let found = found.collect::<Vec<_>>();
        let differs = |found: &[Location], traced: &[Location]| {
            let same = found.iter().zip(traced).take_while(|(found, traced)| found == traced).count();
            (same < found.len())
                .then(|| Untrue { found: found.get(same).copied(), traced: traced.get(same).copied() })
        };
        let all = found.iter().map(|(_, at)| *at).collect::<Vec<_>>();
        if self.broken.is_empty() {
            return differs(&all, &self.traced).or_else(|| {
                self.traced.get(all.len()).map(|traced| Untrue { found: None, traced: Some(*traced) })
            });
        }
        // The damaged packet may state that the last instruction before it did not complete.
        let front =
            found.iter().take_while(|(step, _)| step.until < self.broken.start).count().saturating_sub(1);
        let back = found.iter().rev().take_while(|(step, _)| step.from >= self.broken.end).count();
        let traced_back = self.traced.len().saturating_sub(back);
        differs(all.get(..front)?, &self.traced)
            .or_else(|| differs(all.get(all.len() - back..)?, self.traced.get(traced_back..)?))
    }

    /// Whether a difference is in bytes that need not match the traced path.
    fn is_broken(&self, difference: &Difference) -> bool {
        let (first, last) = difference.places();
        first < self.broken.end && last >= self.broken.start
    }

    /// The differences between our reading and OpenCSD's two outputs: its packets alone, and its decoding.
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
                let is_broken = self.is_broken(difference);
                let mut possible =
                    deviations().filter(|known| known.evidence == Evidence::Readings || is_broken);
                possible.find(|known| (known.recognises)(difference, &place))
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
        // A timestamp is compressed relative to the last one, and an address relative to those since the last
        // I-sync; only one of the two readings may have the earlier packet.
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
        // A packet that is read differently changes the flow up to the next I-sync.
        for found in flow.iter_mut().filter(|found| found.deviation.is_none()) {
            found.deviation = cause(place(&found.difference).from, found.difference.places().1);
        }
        packets.into_iter().chain(flow).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::failed_blx;

    /// OpenCSD's packets of the trace, followed by an I-sync.
    const LISTING: &str = "\
Idx:0; ID:10;\tASYNC : a
Idx:6; ID:10;\tI_SYNC : b
Idx:12; ID:10;\tATOM : c
Idx:13; ID:10;\tATOM : d
Idx:14; ID:10;\tI_SYNC : e
";

    #[test]
    fn what_we_call_malformed_excuses_nothing_but_where_the_trace_was_damaged() {
        let program = failed_blx::program().unwrap();
        let mut subject = failed_blx::subject(&program).unwrap();
        subject.bytes.push(0x08);
        let deviations = |subject: &super::Subject<'_>| {
            let found = subject.differences(LISTING, "");
            let cuts = found.into_iter().filter(|found| found.difference.places().0 == 14);
            cuts.map(|found| found.deviation.map(|deviation| deviation.id)).collect::<Vec<_>>()
        };
        assert_eq!(deviations(&subject), [None]);
        subject.broken = 10..u64::MAX;
        assert_eq!(deviations(&subject), [Some("cut-packets")]);
    }

    #[test]
    fn an_instruction_that_was_not_traced_is_found_outside_the_damage_alone() {
        let program = failed_blx::program().unwrap();
        let mut subject = failed_blx::subject(&program).unwrap();
        assert_eq!(subject.untrue(), None);
        let another = subject.traced[0];
        let traced = std::mem::replace(&mut subject.traced[1], another);
        let untrue = subject.untrue().unwrap();
        assert_eq!((untrue.found, untrue.traced), (Some(traced), Some(another)));
        subject.broken = 0..u64::MAX;
        assert_eq!(subject.untrue(), None);
        subject.broken = 0..0;
        subject.traced[1] = traced;
        subject.traced.pop();
        assert!(subject.untrue().is_some_and(|untrue| untrue.traced.is_none()));
    }
}
