//! The deeds of repeated elements, kept so that a timeline repeats them at once.

use super::axis::Placer;
use super::deed::{self, Before, Deed, Marking, Takers, shorten};
use super::entrances::Entrances;
use super::place::Place;
use super::prepared::Part;
use super::spans::{Recorder, Spans};
use super::take::TakeItems;

/// The deeds of a passage, in order.
#[derive(Debug)]
pub(super) struct Deeds {
    pub(super) list: Box<[Deed]>,
    /// The same for a group, with what can be prepared; nothing for a passage.
    pub(super) parts: Box<[Part]>,
    /// The cycles that are counted after its last block.
    pub(super) waiting: u64,
    /// Whether the meter of cycles has lost its place after them.
    pub(super) lost: bool,
    /// Whether frames come or go that have marks of their own.
    pub(super) changes_marks: bool,
    takes_pending: bool,
    takes_waited: bool,
}

/// Room for notes of one passage after the other.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// The noted deeds.
    pub(super) noted: Vec<Deed>,
    /// The same as a shorter list.
    short: Vec<Deed>,
}

impl Deeds {
    /// The deeds of a group's members, one after the other.
    pub(super) fn of_group(list: Vec<Deed>, (waiting, lost): (u64, bool), recorder: &mut Recorder) -> Self {
        let parts = Part::of(&list, &recorder.entrances, &mut recorder.spans);
        let changes_marks = parts.iter().any(Part::needs_marks);
        let list = list.into();
        Self { list, parts, waiting, lost, changes_marks, takes_pending: false, takes_waited: false }
    }

    /// The memory of a group's deeds, in words.
    pub(super) fn weight(&self) -> usize {
        self.list.len() * size_of::<Deed>() / 8 + self.parts.iter().map(Part::weight).sum::<usize>()
    }

    /// The noted deeds, and the cycles left after them; `None` if it is not known what takes the cycles before them.
    pub(super) fn of(
        notes: &mut Notes,
        takers: Takers,
        (waiting, lost): (u64, bool),
        before: Before,
    ) -> Option<Self> {
        let Takers { pending, waited, .. } = takers;
        let Notes { noted, short } = notes;
        shorten(noted, short);
        let changes_marks = short.iter().any(|deed| matches!(deed, Deed::Enters(..) | Deed::Leaves(_)));
        let deeds = Self {
            list: short.as_slice().into(),
            parts: Box::default(),
            waiting,
            lost,
            changes_marks,
            takes_pending: pending,
            takes_waited: waited,
        };
        deeds.take(before).then_some(deeds)
    }

    /// Whether it is known what takes the cycles before these deeds.
    pub(super) const fn take(&self, before: Before) -> bool {
        (before.pending == 0 || self.takes_pending) && (before.waited == 0 || self.takes_waited)
    }

    /// Repeats the deeds. `marking` has the marks of the frames that are left, and of the frame under them; without functions, only
    /// those of exceptions' frames, because all other frames have the same mark.
    #[inline]
    pub(super) fn repeat(
        &self,
        recorder: &mut Recorder,
        before: Before,
        marking: &mut Marking,
        out: &mut Placer<'_, impl TakeItems>,
    ) {
        let Recorder { spans, group, entrances, .. } = recorder;
        let before = if spans.by_cycles { before } else { Before::NOTHING };
        if let Some(group) = group {
            self.list.iter().for_each(|deed| deed::push(group, deed.placed(before)));
        }
        if self.parts.is_empty() || !spans.is_usual() {
            spans.repeat((&self.list, entrances), before, marking, &mut |place, change| {
                out.change(place, change);
            });
        } else {
            self.parts.iter().for_each(|part| repeat(part, (spans, entrances), marking, out));
        }
    }

    /// Whether the only deeds are blocks that run.
    pub(super) fn runs_only(&self) -> bool {
        matches!(*self.list, [Deed::Ran(_)])
    }
}

/// Repeats a part of a group.
#[inline]
fn repeat(
    part: &Part,
    (spans, entrances): (&mut Spans, &Entrances),
    marking: &mut Marking,
    out: &mut Placer<'_, impl TakeItems>,
) {
    match part {
        Part::Deed(deed) => {
            let change = &mut |place, change| out.change(place, change);
            spans.repeat_one(deed, entrances, Before::NOTHING, (marking, change));
        }
        Part::Prepared(prepared) => {
            let from = spans.tracks.now.count;
            let outer = spans.tracks.track(marking.top().map(|marks| marks.row));
            out.prepared(prepared, (spans.tracks.last(), outer), from);
            spans.tracks.pass(prepared.spans);
            spans.tracks.now = Place { count: from.saturating_add(prepared.count), ..Place::default() };
        }
    }
}
