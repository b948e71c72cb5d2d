//! Prepares the effects of a group that end with it (frames that it enters and leaves again) as items that only have to be
//! placed.

use super::deed::{Before, Count, Deed, Marking, Marks, Takes};
use super::entrances::{EnteredBy, Entrances};
use super::item::{Change, Finish, Span, SpanId, Start, Track, What};
use super::place::Place;
use super::spans::Spans;
use crate::call_stack::Left;

/// The effects of a group, in order.
#[derive(Debug)]
pub(super) enum Part {
    Deed(Deed),
    Prepared(Prepared),
}

/// Deeds that leave nothing open and end nothing that was open before.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The unique number in a timeline.
    pub(super) number: u64,
    items: Box<[Ready]>,
    /// How many spans begin.
    pub(super) spans: u64,
    /// The counted amount.
    pub(super) count: u64,
}

/// A change, placed from the start of the deeds.
#[derive(Debug)]
struct Ready {
    at: Place,
    change: ReadyChange,
    /// Whether the change is on the track of the frame that was the innermost one before.
    is_outer: bool,
}

#[derive(Debug)]
enum ReadyChange {
    Begin { id: u64, track: Track, what: What, start: Start },
    End { id: u64, track: Track, finish: Finish },
}

impl Part {
    /// Prepares a list of deeds as far as possible.
    pub(super) fn of(list: &[Deed], entrances: &Entrances, spans: &mut Spans) -> Box<[Self]> {
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(deed) = list.get(at) {
            let mut end = at;
            while let Some(next) = unit((list, entrances), end) {
                end = next;
            }
            let whole = list.get(at..end).unwrap_or_default();
            if whole.iter().any(|deed| matches!(deed, Deed::Enters(..)))
                && let Some(prepared) = Prepared::of((whole, entrances), spans)
            {
                parts.push(Self::Prepared(prepared));
            } else if whole.is_empty() {
                parts.push(Self::Deed(*deed));
                end = at + 1;
            } else {
                parts.extend(whole.iter().copied().map(Self::Deed));
            }
            at = end;
        }
        parts.into()
    }

    /// Whether frames with marks of their own are entered or left, or the innermost frame's mark is needed.
    pub(super) fn needs_marks(&self) -> bool {
        match self {
            Self::Deed(deed) => matches!(deed, Deed::Enters(..) | Deed::Leaves(_)),
            Self::Prepared(prepared) => prepared.items.iter().any(|ready| ready.is_outer),
        }
    }

    /// The part's memory, in words.
    pub(super) fn weight(&self) -> usize {
        let prepared = match self {
            Self::Deed(_) => 0,
            Self::Prepared(prepared) => prepared.items.len() * size_of::<Ready>(),
        };
        (size_of::<Self>() + prepared) / 8
    }
}

/// The end of a run of deeds from `at` that leave every frame that they enter; `None` if there is no such run.
fn unit((list, entrances): (&[Deed], &Entrances), at: usize) -> Option<usize> {
    let is_plain = |count: &Count| count.takes == Takes::NOTHING;
    match list.get(at)? {
        Deed::Ran(count) | Deed::Passes(count) => is_plain(count).then_some(at + 1),
        Deed::Begins(count, _) => {
            let rest = list.get(at + 1..)?;
            let pieces = rest.iter().take_while(|deed| matches!(deed, Deed::Piece(_))).count();
            (is_plain(count) && rest.get(pieces) == Some(&Deed::Ends)).then_some(at + pieces + 2)
        }
        Deed::Enters(entrance) => {
            let by = entrances.get(*entrance)?.by;
            // Another frame takes over the exception of one that was replaced.
            let takes_over = at > 0 && list.get(at - 1) == Some(&Deed::Leaves(Left::Replaced));
            if takes_over || by == EnteredBy::Unknown {
                return None;
            }
            let mut end = at + 1;
            loop {
                if let Deed::Leaves(how) = list.get(end)? {
                    let goes_on = matches!(by, EnteredBy::Exception(_)) && *how == Left::Replaced;
                    return (!goes_on).then_some(end + 1);
                }
                end = unit((list, entrances), end)?;
            }
        }
        Deed::Piece(_) | Deed::Ends | Deed::Leaves(_) => None,
    }
}

impl Prepared {
    /// Applies the deeds to an empty timeline, to record the resulting changes.
    fn of((deeds, entrances): (&[Deed], &Entrances), usual: &mut Spans) -> Option<Self> {
        let mut trial = usual.trial();
        // No frame has a span there.
        let outer = trial.tracks.row(Track::OtherTasks);
        let first = trial.tracks.last();
        let mut marking = Marking { under: Some(Marks { row: outer, ..Marks::NONE }), ..Marking::default() };
        let mut items = Vec::new();
        let mut is_known = true;
        trial.repeat((deeds, entrances), Before::NOTHING, &mut marking, &mut |at, change| {
            let (change, track) = match change {
                Change::Begin(Span { id, track, what, start }) => {
                    (ReadyChange::Begin { id: id.0 - first.0, track, what, start }, track)
                }
                Change::End { id, track, finish } => {
                    (ReadyChange::End { id: id.0 - first.0, track, finish }, track)
                }
                Change::Mark { .. } => return is_known = false,
            };
            items.push(Ready { at, change, is_outer: track == Track::OtherTasks });
        });
        let is_over = is_known && marking.marks.is_empty();
        let (spans, count) = (trial.tracks.last().0 - first.0, trial.tracks.now.count);
        is_over.then(|| Self { number: usual.next_prepared(), items: items.into(), spans, count })
    }

    /// The changes, placed from the start of the deeds. `last` is the name of the previous span, `outer` the track of the
    /// innermost frame.
    #[inline]
    pub(super) fn items(
        &self,
        last: SpanId,
        outer: Track,
    ) -> impl Iterator<Item = (Place, Change)> + use<'_> {
        self.items.iter().map(move |Ready { at, change, is_outer }| {
            let on = |track: Track| if *is_outer { outer } else { track };
            let change = match *change {
                ReadyChange::Begin { id, track, what, start } => {
                    Change::Begin(Span { id: SpanId(last.0 + id), track: on(track), what, start })
                }
                ReadyChange::End { id, track, finish } => {
                    Change::End { id: SpanId(last.0 + id), track: on(track), finish }
                }
            };
            (*at, change)
        })
    }

    /// The place of the first change; `None` if there is none.
    #[inline]
    pub(super) fn first(&self) -> Option<u64> {
        self.items.first().map(|ready| ready.at.count)
    }

    /// The place of the last change.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        self.items.last().map_or(0, |ready| ready.at.count)
    }
}
