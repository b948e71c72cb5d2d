//! Exceptions as an ITM reports them.

use super::{Activities, Activity, ActivityRecorder};
use crate::Code;
use crate::clock::Unit;
use crate::itm::{ItmEvent, Watched};
use crate::timeline::ReportedTimeline;

/// Measures how long exceptions took by an ITM's reports, in ticks of its local timestamps.
#[derive(Debug)]
pub struct ReportedActivities {
    timeline: ReportedTimeline,
    recorder: ActivityRecorder,
}

impl Default for ReportedActivities {
    fn default() -> Self {
        let recorder = ActivityRecorder { is_reported: true, ..ActivityRecorder::new(Unit::Time, false) };
        let watched = Watched::new(Code::unknown().into(), [None; 4]);
        Self { timeline: ReportedTimeline::new(watched), recorder }
    }
}

impl ReportedActivities {
    /// Takes the next event.
    pub fn event(&mut self, event: &ItmEvent) {
        let Self { timeline, recorder } = self;
        timeline.event(event, &mut |item| recorder.take(&item));
    }

    /// The exceptions that were entered.
    #[must_use]
    pub fn finish(mut self) -> Activities {
        let Self { timeline, recorder } = &mut self;
        timeline.finish(&mut |item| recorder.take(&item));
        self.recorder.finish()
    }

    /// The exceptions that were entered, beside a trace with another axis: without durations.
    #[must_use]
    pub fn counts(self) -> Activities {
        let mut found = self.finish();
        for activity in found.exceptions.values_mut() {
            let Activity { count, tail_chained, preempting, .. } = *activity;
            *activity = Activity { count, tail_chained, preempting, ..Activity::default() };
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use tracewalk::ids::Exception;
    use tracewalk::protocol::itm::ExceptionAction::{self, Entered, Exited, Returned};
    use tracewalk::protocol::itm::{Packet, TimestampDelay};

    use super::*;
    use crate::interrupts::Lengths;

    /// Exceptions, each with the ticks from the last timestamp to the one after it; `None` if none comes after it.
    fn activities(events: &[(u16, ExceptionAction, Option<u64>)]) -> Activities {
        let (mut found, mut total) = (ReportedActivities::default(), 0);
        for &(number, action, ticks) in events {
            found.event(&ItmEvent::Packet(Packet::Exception { number, action }));
            if let Some(ticks) = ticks {
                total += ticks;
                found.event(&ItmEvent::LocalTime { ticks, delay: TimestampDelay::None, total });
            }
        }
        found.finish()
    }

    fn of(found: &Activities, number: u16) -> &Activity {
        &found.exceptions[&Some(Exception::M(number))]
    }

    fn figures(lengths: &Lengths) -> (u64, u128, Option<u64>, Option<u64>) {
        (lengths.count(), lengths.sum(), lengths.min(), lengths.max())
    }

    /// The figures of a published log of an STM32: IRQ28, interrupted by IRQ57 four times and by IRQ54 once.
    #[test]
    fn time_between_an_exit_and_the_return_belongs_to_no_handler() {
        let mut events = vec![(44, Entered, Some(13))];
        let inside = [(73, 960), (73, 961), (70, 361), (73, 965), (73, 965)];
        for ((number, ticks), ran) in inside.into_iter().zip([2690, 4409, 4401, 3950, 80]) {
            events.extend([
                (number, Entered, Some(ran)),
                (number, Exited, Some(ticks)),
                (44, Returned, Some(7)),
            ]);
        }
        events.extend([(44, Exited, Some(412)), (0, Returned, Some(3))]);
        let found = activities(&events);
        assert_eq!(figures(&of(&found, 44).with_preemption), (1, 20_189, Some(20_189), Some(20_189)));
        assert_eq!(figures(&of(&found, 44).without_preemption), (1, 15_942, Some(15_942), Some(15_942)));
        assert_eq!(figures(&of(&found, 73).with_preemption), (4, 3851, Some(960), Some(965)));
        assert_eq!(of(&found, 73).with_preemption, of(&found, 73).without_preemption);
        assert_eq!(figures(&of(&found, 70).without_preemption), (1, 361, Some(361), Some(361)));
        let preempting =
            found.exceptions.values().map(|activity| (activity.preempting, activity.tail_chained));
        assert_eq!(preempting.collect::<Vec<_>>(), [(0, 0), (1, 0), (4, 0)]);
    }

    #[test]
    fn a_chained_exception_begins_at_its_entry_and_the_interrupted_one_goes_on_at_the_return() {
        let entries = [(11, Entered, Some(5)), (20, Entered, Some(10)), (20, Exited, Some(3))];
        let chained =
            [(21, Entered, Some(4)), (21, Exited, Some(6)), (11, Returned, Some(2)), (11, Exited, Some(1))];
        let found = activities(&[&entries[..], &chained].concat());
        assert_eq!(of(&found, 11).with_preemption.sum(), 26);
        assert_eq!(of(&found, 11).without_preemption.sum(), 11);
        assert_eq!((of(&found, 21).without_preemption.sum(), of(&found, 21).tail_chained), (6, 1));
        assert_eq!(of(&found, 21).preempting, 1);
    }

    #[test]
    fn without_later_timestamps_entries_are_counted_and_nothing_else_is_known() {
        let events = [(15, Entered), (15, Exited), (0, Returned), (44, Entered), (15, Entered), (15, Exited)];
        let untimed = activities(&events.map(|(number, action)| (number, action, None)));
        let begun = activities(
            &[&[(15, Entered, Some(9))], &events.map(|(number, action)| (number, action, None))[1..]]
                .concat(),
        );
        for found in [untimed, begun] {
            let counts = found.exceptions.iter().map(|(exception, activity)| (*exception, activity.count));
            assert_eq!(
                counts.collect::<Vec<_>>(),
                [(Some(Exception::M(15)), 2), (Some(Exception::M(44)), 1)]
            );
            assert!(found.exceptions.values().all(|activity| {
                [&activity.with_preemption, &activity.inter_arrival]
                    .iter()
                    .all(|lengths| lengths.count() == 0)
            }));
        }
    }

    #[test]
    fn what_an_overflow_cuts_has_no_length_and_later_handlers_have_one() {
        let mut found = ReportedActivities::default();
        let (overflow, mut total) = (ItmEvent::Packet(Packet::Overflow), 0);
        let mut send = |event: &ItmEvent| {
            total += 10;
            found.event(event);
            found.event(&ItmEvent::LocalTime { ticks: 10, delay: TimestampDelay::None, total });
        };
        let exception = |number, action| ItmEvent::Packet(Packet::Exception { number, action });
        send(&exception(20, Entered));
        send(&exception(21, Entered));
        send(&overflow);
        send(&exception(21, Exited));
        send(&exception(20, Returned));
        send(&exception(20, Exited));
        send(&exception(20, Entered));
        send(&exception(20, Exited));
        let found = found.finish();
        assert_eq!((of(&found, 20).count, of(&found, 20).cut), (2, 1));
        assert_eq!(figures(&of(&found, 20).with_preemption), (1, 10, Some(10), Some(10)));
        assert_eq!(of(&found, 20).inter_arrival.count(), 0);
        assert_eq!((of(&found, 21).count, of(&found, 21).with_preemption.count()), (1, 0));
    }
}
