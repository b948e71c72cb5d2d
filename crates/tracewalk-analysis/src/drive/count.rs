//! Counting a source's packets, without looking at them.

use std::io;

use tracewalk::frame::PlaceMap;
use tracewalk::protocol::Malformation;
use tracewalk::source::{PacketCounter, SourceConfig};
use tracewalk::span::{CaptureOffset, Span};

use super::{Ending, Input, Interruption, Take};
use crate::Statistics;

impl Input<'_> {
    /// Counts the source's packets, much quicker than [`Input::packets`] gives them, and calls `malformed` with each stretch
    /// that is none: where it begins and why.
    pub fn count_packets<F>(&self, config: &SourceConfig, malformed: F) -> io::Result<Statistics>
    where
        F: FnMut(CaptureOffset, Malformation),
    {
        let mut work = Counting {
            counter: PacketCounter::new(config),
            places: PlaceMap::new(),
            last: CaptureOffset(0),
            malformed,
        };
        let ending = self.feed(&mut work)?;
        if ending == Ending::Open {
            work.counter.forget_incomplete();
        }
        let bytes = work.places.end().0;
        work.tell(|counter, mut note| counter.finish(&mut note));
        let counts = work.counter.counts();
        Ok(Statistics {
            bytes,
            packets: counts.packets,
            malformed: counts.malformed,
            ..Statistics::default()
        })
    }
}

struct Counting<F> {
    counter: PacketCounter,
    places: PlaceMap,
    /// The last place that was known, for what has no bytes of its own at the end.
    last: CaptureOffset,
    malformed: F,
}

impl<F: FnMut(CaptureOffset, Malformation)> Counting<F> {
    fn tell(&mut self, work: impl FnOnce(&mut PacketCounter, &mut dyn FnMut(Malformation, Span))) {
        let Self { counter, places, last, malformed } = self;
        work(counter, &mut |reason, span| {
            *last = places.locate(span.start).unwrap_or(*last);
            malformed(*last, reason);
        });
    }
}

impl<F: FnMut(CaptureOffset, Malformation)> Take for Counting<F> {
    fn places(&mut self) -> &mut PlaceMap {
        &mut self.places
    }

    fn take(&mut self, bytes: &[u8]) {
        self.tell(|counter, mut note| counter.push(bytes, &mut note));
    }

    fn interrupt(&mut self, _: Interruption) {
        self.tell(|counter, mut note| counter.lose_sync(&mut note));
    }

    fn has_failed(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use tracewalk::protocol::etmv3;

    use super::*;
    use crate::drive::{Carrier, NoProgress, Stretch};

    #[test]
    fn as_many_packets_are_counted_as_there_are_and_what_is_malformed_is_told() {
        // A-sync, I-sync at 0x100 in Thumb, many packets, a reserved header, and all of it again.
        let mut capture = vec![0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00];
        capture.extend([0x84, 0x88, 0x05].repeat(100));
        capture.push(0x10);
        let capture = capture.repeat(3);
        let carrier = Carrier::Stretches(vec![Stretch::all(capture.len())]);
        let input = Input { capture: &capture, carrier, rest: None, progress: &NoProgress };
        let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
        let mut malformed = Vec::new();
        let counted = input.count_packets(&config, |at, reason| malformed.push((at.0, reason)));
        let given = input.packets(&config, |_| Ok(()));
        assert_eq!(counted.expect("memory can be read"), given.expect("memory can be read"));
        let reserved = Malformation::ReservedHeader { found: 0x10 };
        assert_eq!(malformed, [312, 625, 938].map(|at| (at, reserved)));
    }
}
