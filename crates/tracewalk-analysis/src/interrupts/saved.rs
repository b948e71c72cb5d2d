//! Durations in a file (docs/formats.md); the lines beside those of all saved files:
//!
//! ```text
//! A cycles cycles exceptions   what durations are in (instructions, cycles, ticks), what places between timestamps were
//!                              found by (instructions, cycles), and whether functions were measured too (exceptions,
//!                              functions); in front of the program's sources
//! S 0x10 etmv3 1               a source: trace ID, protocol, which of these; what follows is of it
//! Q 12 0                       instructions in doubt that were left out, and that were counted
//! X 65 2 0 1 m 15              an exception: how often it was taken, how often chained to another one, how often in another
//!                              one's handler, how often in no duration; profile and number
//! F 3 0 0 0 named 8000306 -    the same of a function
//! L with_preemption            lengths of the item above: with_preemption, without_preemption, inter_arrival
//! V 32 60                      a length of these, and how often
//! R 2145 32 40                 behind the lengths, where they are rounded down to ten bits: the exact sum, least and greatest
//! ```
//!
//! Addresses are hexadecimal, other numbers decimal.

use std::io::{self, Write};

use super::{Activities, Activity, Key, Lengths, Measured, ProgramActivities};
use crate::clock::Unit;
use crate::programs::SourceId;
use crate::saved::{
    Fields, Format, ReadItems, Save, SavedErrorKind, exception_words, function_words, save_in_doubt,
    source_words,
};

/// What is known of an activity's lengths, as they are called in a file.
const LENGTHS: [LengthsOf; 3] = [
    ("with_preemption", |activity| &mut activity.with_preemption),
    ("without_preemption", |activity| &mut activity.without_preemption),
    ("inter_arrival", |activity| &mut activity.inter_arrival),
];

type LengthsOf = (&'static str, fn(&mut Activity) -> &mut Lengths);

const UNITS: [Unit; 3] = [Unit::Instructions, Unit::Cycles, Unit::Time];

impl Save for ProgramActivities {
    const FORMAT: Format = Format { name: "interrupts", version: "2", items: "A, S, Q, X, F, L, V or R" };

    type Reader = Reader;

    fn save_items(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(Measured { unit, counts_cycles, functions }) = self.measured {
            let (places, what) = (places_word(counts_cycles), what_word(functions));
            writeln!(out, "A {} {places} {what}", unit.name())?;
        }
        for (source, activities) in &self.sources {
            writeln!(out, "S {}", source_words(*source))?;
            save_in_doubt(activities.in_doubt, out)?;
            for (exception, activity) in &activities.exceptions {
                save_activity('X', activity, &exception_words(*exception), out)?;
            }
            for (function, activity) in &activities.functions {
                save_activity('F', activity, &function_words(*function), out)?;
            }
        }
        Ok(())
    }
}

const fn places_word(counts_cycles: bool) -> &'static str {
    if counts_cycles { "cycles" } else { "instructions" }
}

const fn what_word(functions: bool) -> &'static str {
    if functions { "functions" } else { "exceptions" }
}

fn save_activity(item: char, activity: &Activity, what: &str, out: &mut dyn Write) -> io::Result<()> {
    let Activity { count, tail_chained, preempting, cut, .. } = activity;
    writeln!(out, "{item} {count} {tail_chained} {preempting} {cut} {what}")?;
    let lengths = [&activity.with_preemption, &activity.without_preemption, &activity.inter_arrival];
    for ((name, _), lengths) in LENGTHS.iter().zip(lengths).filter(|(_, lengths)| lengths.count() > 0) {
        writeln!(out, "L {name}")?;
        for (length, count) in lengths.values() {
            writeln!(out, "V {length} {count}")?;
        }
        if let (true, Some(min), Some(max)) = (lengths.is_rounded(), lengths.min(), lengths.max()) {
            writeln!(out, "R {} {min} {max}", lengths.sum())?;
        }
    }
    Ok(())
}

/// Reads what was found of one program.
#[derive(Debug, Default)]
pub struct Reader {
    found: ProgramActivities,
    source: Option<SourceId>,
    /// What lengths belong to, before it has its place.
    activity: Option<(Key, Activity)>,
    lengths: Option<LengthsOf>,
}

impl ReadItems for Reader {
    type Found = ProgramActivities;

    fn line(&mut self, item: &str, mut fields: Fields<'_>) -> Result<(), SavedErrorKind> {
        match item {
            "A" => self.found.measured = Some(measured(&mut fields)?),
            "S" => {
                self.end_activity();
                // What was measured stands in front.
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

impl Reader {
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
        counts_cycles: fields.one_of("measure of places", &[false, true], places_word)?,
        functions: fields.one_of("word for what was measured", &[false, true], what_word)?,
    })
}

fn activity(fields: &mut Fields<'_>) -> Result<Activity, SavedErrorKind> {
    Ok(Activity {
        count: fields.decimal("count")?,
        tail_chained: fields.decimal("number of tail-chained ones")?,
        preempting: fields.decimal("number of preempting ones")?,
        cut: fields.decimal("number of those in no duration")?,
        ..Activity::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::interrupts::AllActivities;
    use crate::saved::ended;

    const SAVED: &str = "\
# tracewalk interrupts 2
P build 0abc
I fw.elf
A ticks cycles functions
S 0x10 etmv3 1
Q 12 1
X 3 0 0 1 -
X 65 2 1 0 m 15
L with_preemption
V 32 60
V 40 5
L without_preemption
V 32 65
L inter_arrival
V 190 64
F 3 0 0 0 named 8000306 vmid=0x2
F 1 0 0 0 unknown
L with_preemption
V 512 2
V 1024 1
R 2100 513 1026
S - mtb 2
E 22
";

    fn saved(activities: &AllActivities) -> String {
        let mut out = Vec::new();
        activities.save(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn read(lines: &str) -> Result<AllActivities, String> {
        let head = "# tracewalk interrupts 2\nP build 0a\nA cycles cycles exceptions\nS - mtb 1\n";
        AllActivities::read(&ended(&format!("{head}{lines}"))).map_err(|error| error.to_string())
    }

    #[test]
    fn what_was_saved_is_read_and_saved_again_in_order() {
        let activities = AllActivities::read(SAVED).unwrap();
        let text = saved(&activities);
        let sorted = |text: &str| {
            let mut lines = text.lines().map(str::to_owned).collect::<Vec<_>>();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&text), sorted(SAVED));
        assert_eq!(AllActivities::read(&text).as_ref(), Ok(&activities));
    }

    #[test]
    fn lengths_are_as_exact_as_they_were() {
        let program = read("X 3 0 0 0 m 15\nL inter_arrival\nV 7 2\nV 100 1\n").unwrap();
        let of = |activities: &AllActivities| {
            let program = activities.programs.values().next().unwrap();
            program
                .found
                .sources
                .values()
                .next()
                .unwrap()
                .exceptions
                .values()
                .next()
                .unwrap()
                .inter_arrival
                .clone()
        };
        let lengths = of(&program);
        let expected = (3, 114, Some(7), Some(100), Some(100), false);
        let found = (
            lengths.count(),
            lengths.sum(),
            lengths.min(),
            lengths.max(),
            lengths.percentile(99),
            lengths.is_rounded(),
        );
        assert_eq!(found, expected);
        // More lengths than are told apart, in one file and in two: the same as if they had been added one by one.
        let values = |range: std::ops::Range<u64>| {
            let values = range.map(|length| format!("V {length} 1\n")).collect::<String>();
            read(&format!("X 0 0 0 0 m 15\nL inter_arrival\n{values}")).unwrap()
        };
        let mut whole = crate::interrupts::Lengths::default();
        (0..100_000).for_each(|length| whole.add(length));
        assert!(whole.is_rounded());
        let mut sum = values(0..40_000);
        sum.merge(values(40_000..100_000)).unwrap();
        assert_eq!(of(&sum), whole);
        let again = AllActivities::read(&saved(&sum)).unwrap();
        assert_eq!(of(&again), whole);
        assert_eq!(of(&values(0..100_000)), whole);
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let misplaced = "line 5: the line that it belongs to does not stand before it";
        let cases = [
            ("L with_preemption", misplaced),
            ("V 1 1", misplaced),
            ("X 1 0 0 0 m 15\nV 1 1", "line 6: the line that it belongs to"),
            ("X 1 0 0 0 m 15\nL some", "line 6: found \"some\" where the lengths should be"),
            (
                "X 1 0 0 0 m 15\nL with_preemption\nR 1 2 1",
                "line 7: found \"1\" where the greatest should be",
            ),
            ("X 1 0 0", "line 5: found no number of those in no duration"),
            ("A years cycles exceptions", "line 5: found \"years\" where the unit should be"),
            ("T 1", "line 5: found an item \"T\", expected P, I, E, A, S, Q, X, F, L, V or R"),
        ];
        for (lines, message) in cases {
            let error = read(&format!("{lines}\n")).unwrap_err();
            assert!(error.starts_with(message), "{lines}: {error}");
        }
        let without = ended("# tracewalk interrupts 2\nP build 0a\nS - mtb 1\n");
        let error = AllActivities::read(&without).unwrap_err().to_string();
        assert_eq!(error, misplaced.replace("5", "3"), "what was measured stands in front of its sources");
    }
}
