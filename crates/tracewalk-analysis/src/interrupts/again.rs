//! Caches the additions of repeated items to the measurements: worked out once, counted as often as the items come.
//!
//! Such items end everything that they begin. Their additions depend only on the clock that runs at their beginning, except for
//! the time since the last beginning of the same kind, which is checked each time.

use super::effects::{Added, Effect, OfRecord, Which};
use super::lengths::Gathering;
use super::{ActivityRecorder, Interrupt, Record};
use crate::timeline::{Again, SpanId, Track};

/// The most effects that are cached.
const MOST: usize = 1 << 14;

impl ActivityRecorder {
    /// Takes repeated items. Returns whether it did: if not, they have to be taken one by one.
    #[inline]
    pub(super) fn take_again(&mut self, again: &Again<'_>) -> bool {
        let Some(first) = again.begins_at() else { return false };
        let is_running = matches!(again.outer(), Track::Task(task) if Some(task) == self.task);
        let is_in_interrupt = !self.interrupts.is_empty();
        let outer = if self.functions { again.outer() } else { Track::OtherTasks };
        let which = Which { number: again.number(), outer, is_running, is_in_interrupt };
        if !self.effects.known.contains_key(&which) {
            self.learn(which, again, first);
        }
        let Some(effect) = self.effects.known.get_mut(&which) else { return false };
        let Some(added) = &effect.added else { return false };
        effect.times += 1;
        for OfRecord { record, begins, .. } in &added.of {
            if let Some((record, (begin, last))) = self.records.get_mut(*record).zip(*begins) {
                record.begins(first + begin, self.epoch, self.unit);
                record.last = Some((first + last, self.epoch));
            }
        }
        let (outer, end) = (added.outer, first + added.length);
        self.pass(first);
        *self.interrupts.last_mut().map_or(&mut self.clock, |interrupt| &mut interrupt.clock) += outer;
        self.now = end;
        true
    }

    #[inline(never)]
    fn learn(&mut self, which: Which, again: &Again<'_>, first: u64) {
        if self.effects.known.len() >= MOST {
            self.add_effects();
        }
        let added = self.added_by(again, first);
        self.effects.known.insert(which, Effect { added, times: 0 });
    }

    /// The items' additions, worked out by a trial on an empty recorder.
    fn added_by(&mut self, again: &Again<'_>, first: u64) -> Option<Added> {
        let mut trial = Self::new(self.unit, self.functions);
        (trial.now, trial.task) = (first, self.task);
        trial.interrupts.extend(self.interrupts.last().map(|_| Interrupt { id: SpanId(0), clock: 0 }));
        let mut begins: Vec<Option<(u64, u64)>> = Vec::new();
        for item in again.items() {
            trial.take(&item);
            begins.resize(trial.records.len(), None);
            for (begins, record) in begins.iter_mut().zip(&trial.records) {
                let last = record.last.map(|(at, _)| at - first);
                *begins = last.map(|last| (begins.map_or(last, |(begin, _)| begin), last));
            }
        }
        let is_over = trial.open.is_empty()
            && trial.suspended.is_empty()
            && trial.interrupts.len() == self.interrupts.len().min(1)
            && trial.task == self.task
            && trial.epoch == 0;
        if !is_over {
            return None;
        }
        let length = trial.now.checked_sub(first)?;
        let outer = trial.interrupts.last().map_or(trial.clock, |interrupt| interrupt.clock);
        let of = trial.records.into_iter().zip(begins).map(|(record, begins)| {
            let Record { key, counts, with_preemption, without_preemption, inter_arrival, .. } = record;
            let lengths = [with_preemption, without_preemption, inter_arrival].map(Gathering::into_each);
            OfRecord { record: self.record(key), begins, counts, lengths }
        });
        Some(Added { of: of.collect(), outer, length })
    }

    /// Adds the cached effects to the measurements, and forgets them.
    pub(super) fn add_effects(&mut self) {
        for Effect { added, times } in std::mem::take(&mut self.effects.known).into_values() {
            let of = added.map(|added| added.of).unwrap_or_default();
            for OfRecord { record, counts, lengths, .. } in of {
                let Some(record) = self.records.get_mut(record).filter(|_| times > 0) else { continue };
                record.counts.add_counts(&counts, times);
                let [with, without, inter_arrival] = lengths;
                let to =
                    [&mut record.with_preemption, &mut record.without_preemption, &mut record.inter_arrival];
                for (to, lengths) in to.into_iter().zip([with, without, inter_arrival]) {
                    lengths.iter().for_each(|length| to.add_several(*length, times));
                }
            }
        }
    }
}
