//! Exceptions as an ITM reports them.

use tracewalk::ids::Exception;
use tracewalk::protocol::itm::{ExceptionAction, Packet};

use super::Activities;
use crate::itm::ItmEvent;
use crate::record::ItmRecord;

/// How often exceptions were entered, by an ITM's reports. Durations and tail-chaining are not derived from its packets.
pub fn seen_by_itm(records: impl IntoIterator<Item = ItmRecord>) -> Activities {
    let mut found = Activities::default();
    records.into_iter().for_each(|record| found.reported(&record.event));
    found
}

impl Activities {
    /// Counts an event if it is the entry of an exception.
    pub(super) fn reported(&mut self, event: &ItmEvent) {
        if let ItmEvent::Packet(Packet::Exception { number, action: ExceptionAction::Entered }) = event {
            self.exceptions.entry(Some(Exception::M(*number))).or_default().count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use tracewalk::source::Instrumentation;

    use super::*;
    use tracewalk::span::CaptureOffset;

    #[test]
    fn entries_are_counted_and_nothing_else_is_known() {
        use ExceptionAction::{Entered, Exited, Returned};
        let events = [(15, Entered), (15, Exited), (0, Returned), (44, Entered), (15, Entered), (15, Exited)];
        let record = |(number, action)| ItmRecord {
            protocol: Instrumentation::Itm,
            id: None,
            at: CaptureOffset(0),
            event: ItmEvent::Packet(Packet::Exception { number, action }),
        };
        let found = seen_by_itm(events.map(record));
        let counts = found.exceptions.iter().map(|(exception, activity)| (*exception, activity.count));
        assert_eq!(counts.collect::<Vec<_>>(), [(Some(Exception::M(15)), 2), (Some(Exception::M(44)), 1)]);
        let mut known = found.exceptions.values().map(|activity| activity.with_preemption.count());
        assert!(known.all(|count| count == 0));
    }
}
