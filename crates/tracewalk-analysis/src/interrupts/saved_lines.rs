//! Durations in files of versions 1 and 2; the lines beside those of all saved files:
//!
//! ```text
//! A cycles cycles exceptions   the unit of durations (instructions, cycles, ticks), the unit by which places between timestamps
//!                              were interpolated (instructions, cycles), and whether functions were measured too (exceptions,
//!                              functions); before the program's sources
//! S 0x10 etmv3 1               a source: trace ID, protocol, number among equal ones; the next lines belong to it
//! Q 12 0                       instructions in doubt that were left out, and that were counted
//! X 65 2 0 1 m 15              an exception: how often it was taken, how often chained to another one, how often in another
//!                              one's handler, how often in no duration; profile and number
//! F 3 0 0 0 named 8000306 -    the same for a function
//! L with_preemption            lengths of the item above: with_preemption, without_preemption, inter_arrival
//! V 32 60                      a length of these, and how often
//! R 2145 32 40                 after the lengths, if they are rounded down to ten bits: the exact sum, least and greatest
//! ```
//!
//! Addresses are hexadecimal, other numbers decimal.

use super::collected::{Measured, ProgramActivities};
use super::{Activities, Activity, Key, Lengths};
use crate::clock::Unit;
use crate::programs::SourceId;
use crate::saved::{Fields, ReadLines, SavedErrorKind};

/// An activity's sets of lengths, by their names in a file.
const LENGTHS: [LengthsOf; 3] = [
    ("with_preemption", |activity| &mut activity.with_preemption),
    ("without_preemption", |activity| &mut activity.without_preemption),
    ("inter_arrival", |activity| &mut activity.inter_arrival),
];

type LengthsOf = (&'static str, fn(&mut Activity) -> &mut Lengths);

const UNITS: [Unit; 3] = [Unit::Instructions, Unit::Cycles, Unit::Time];

/// Reads the durations of one program.
#[derive(Debug, Default)]
pub struct Lines {
    found: ProgramActivities,
    source: Option<SourceId>,
    /// The activity that lengths belong to, before it is stored.
    activity: Option<(Key, Activity)>,
    lengths: Option<LengthsOf>,
}

impl ReadLines for Lines {
    type Found = ProgramActivities;

    fn line(&mut self, item: &str, mut fields: Fields<'_>) -> Result<(), SavedErrorKind> {
        match item {
            "A" => self.found.measured = Some(measured(&mut fields)?),
            "S" => {
                self.end_activity();
                // The line `A` has to come first.
                self.found.measured.ok_or(SavedErrorKind::Misplaced)?;
                let source = fields.source_id()?;
                self.found.sources.entry(source).or_default();
                self.source = Some(source);
            }
            "Q" => {
                let source = self.source.ok_or(SavedErrorKind::Misplaced)?;
                self.found.sources.entry(source).or_default().in_doubt.add(fields.in_doubt()?);
            }
            "X" | "F" => {
                self.end_activity();
                self.source.ok_or(SavedErrorKind::Misplaced)?;
                let activity = activity(&mut fields)?;
                let key = match item {
                    "X" => Key::Exception(fields.exception()?),
                    _ => Key::Function(fields.function()?),
                };
                self.activity = Some((key, activity));
            }
            "L" => {
                self.activity.as_ref().ok_or(SavedErrorKind::Misplaced)?;
                let of =
                    fields.parsed("lengths", |word| LENGTHS.iter().copied().find(|(name, _)| *name == word));
                self.lengths = Some(of?);
            }
            "V" => {
                let (length, count) = (fields.decimal("length")?, fields.decimal("count")?);
                self.lengths()?.add_several(length, count);
            }
            "R" => {
                let sum = fields.parsed("sum", |word| word.parse().ok())?;
                let min = fields.decimal("least")?;
                let max = fields.parsed("greatest", |word| word.parse().ok().filter(|max| *max >= min))?;
                self.lengths()?.set_rounded(sum, min, max);
            }
            _ => return Err(SavedErrorKind::UnknownItem { found: item.to_owned() }),
        }
        Ok(())
    }

    fn finish(mut self) -> ProgramActivities {
        self.end_activity();
        self.found
    }
}

impl Lines {
    fn lengths(&mut self) -> Result<&mut Lengths, SavedErrorKind> {
        match (&mut self.activity, self.lengths) {
            (Some((_, activity)), Some((_, lengths))) => Ok(lengths(activity)),
            _ => Err(SavedErrorKind::Misplaced),
        }
    }

    fn end_activity(&mut self) {
        self.lengths = None;
        if let (Some(source), Some((key, activity))) = (self.source, self.activity.take()) {
            let activities: &mut Activities = self.found.sources.entry(source).or_default();
            activities.of(key).merge(&activity);
        }
    }
}

fn measured(fields: &mut Fields<'_>) -> Result<Measured, SavedErrorKind> {
    Ok(Measured {
        unit: fields.one_of("unit", &UNITS, Unit::name)?,
        counts_cycles: fields.one_of("measure of places", &[false, true], |cycles| {
            if cycles { "cycles" } else { "instructions" }
        })?,
        functions: fields.one_of("word for what was measured", &[false, true], |all| {
            if all { "functions" } else { "exceptions" }
        })?,
    })
}

fn activity(fields: &mut Fields<'_>) -> Result<Activity, SavedErrorKind> {
    Ok(Activity {
        count: fields.decimal("count")?,
        tail_chained: fields.decimal("number of tail-chained exceptions")?,
        preempting: fields.decimal("number of preempting exceptions")?,
        cut: fields.decimal("number excluded from durations")?,
        ..Activity::default()
    })
}
