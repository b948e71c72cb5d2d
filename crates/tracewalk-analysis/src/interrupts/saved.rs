//! Durations in a file (docs/formats.md); the items beside those of all saved files:
//!
//! ```text
//! {"measured":{"unit":"cycles","counts_cycles":true,"functions":false}}     before the program's sources
//! {"source":[{"id":"0x10","protocol":"etmv4","number":1},{"left_out":12,"counted":0}]}
//!                                  a source, and its instructions in doubt; the next lines belong to it
//! {"exception":[["m",15],{"count":65,…,"with_preemption":{"counts":[[32,60]]},…}]}     an exception, and its lengths
//! {"function":[{"named":["8000306",{}]},{…}]}                                          the same for a function
//! ```

use std::io;

use serde::{Deserialize, Serialize};
use tracewalk::ids::Exception;

use super::collected::{Measured, ProgramActivities};
use super::saved_lines::Lines;
use super::{Activity, Key};
use crate::InDoubt;
use crate::call_stack::FunctionId;
use crate::programs::SourceId;
use crate::saved::{ReadItems, Save, SavedErrorKind, Saving, words};

/// An item of durations.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// How durations were measured.
    Measured(Measured),
    /// A source.
    Source(SourceId, InDoubt),
    /// An exception.
    Exception(#[serde(with = "words::exception")] Option<Exception>, Box<Activity>),
    /// A function.
    Function(FunctionId, Box<Activity>),
}

impl Save for ProgramActivities {
    const KIND: &'static str = "interrupts";

    type Items = Items;

    type Lines = Lines;

    fn save_items(&self, out: &mut Saving<'_>) -> io::Result<()> {
        if let Some(measured) = self.measured {
            out.item(&Item::Measured(measured))?;
        }
        for (source, activities) in &self.sources {
            out.item(&Item::Source(*source, activities.in_doubt))?;
            for (exception, activity) in &activities.exceptions {
                out.item(&Item::Exception(*exception, Box::new(activity.clone())))?;
            }
            for (function, activity) in &activities.functions {
                out.item(&Item::Function(*function, Box::new(activity.clone())))?;
            }
        }
        Ok(())
    }
}

/// Reads the durations of one program.
#[derive(Debug, Default)]
pub struct Items {
    found: ProgramActivities,
    source: Option<SourceId>,
}

impl ReadItems for Items {
    type Item = Item;

    type Found = ProgramActivities;

    fn item(&mut self, item: Item) -> Result<(), SavedErrorKind> {
        match item {
            Item::Measured(measured) => self.found.measured = Some(measured),
            Item::Source(source, in_doubt) => {
                // `measured` has to come first.
                self.found.measured.ok_or(SavedErrorKind::Misplaced)?;
                self.found.sources.entry(source).or_default().in_doubt.add(in_doubt);
                self.source = Some(source);
            }
            Item::Exception(exception, activity) => self.activity(Key::Exception(exception), &activity)?,
            Item::Function(function, activity) => self.activity(Key::Function(function), &activity)?,
        }
        Ok(())
    }

    fn finish(self) -> ProgramActivities {
        self.found
    }
}

impl Items {
    fn activity(&mut self, key: Key, activity: &Activity) -> Result<(), SavedErrorKind> {
        let source = self.source.ok_or(SavedErrorKind::Misplaced)?;
        self.found.sources.entry(source).or_default().of(key).merge(activity);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::ProgramActivities;
    use crate::interrupts::AllActivities;
    use crate::saved::SavedErrorKind;
    use crate::saved::tests::{ended, is_saved_as, saved};

    const SAVED: &str = r#"{"saved":"interrupts","version":3,"complete":true}
{"program":{"id":{"build":["0abc"]},"images":["fw.elf"]}}
{"measured":{"unit":"ticks","counts_cycles":true,"functions":true}}
{"source":[{"id":null,"protocol":"mtb","number":2},{"left_out":0,"counted":0}]}
{"source":[{"id":"0x10","protocol":"etmv3","number":1},{"left_out":12,"counted":1}]}
{"exception":[null,{"count":3,"tail_chained":0,"preempting":0,"cut":1,"with_preemption":{"counts":[]},"without_preemption":{"counts":[]},"inter_arrival":{"counts":[]}}]}
{"exception":[["m",15],{"count":65,"tail_chained":2,"preempting":1,"cut":0,"with_preemption":{"counts":[[32,60],[40,5]]},"without_preemption":{"counts":[[32,65]]},"inter_arrival":{"counts":[[190,64]]}}]}
{"function":[{"named":["8000306",{"vmid":"2"}]},{"count":3,"tail_chained":0,"preempting":0,"cut":0,"with_preemption":{"counts":[]},"without_preemption":{"counts":[]},"inter_arrival":{"counts":[]}}]}
{"function":["unknown",{"count":1,"tail_chained":0,"preempting":0,"cut":0,"with_preemption":{"counts":[[512,2],[1024,1]],"rounded":{"sum":2100,"min":513,"max":1026}},"without_preemption":{"counts":[]},"inter_arrival":{"counts":[]}}]}
{"end":9}
"#;

    const VERSION_2: &str = "\
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

    fn read(lines: &str) -> Result<AllActivities, (usize, SavedErrorKind)> {
        let head = "# tracewalk interrupts 2\nP build 0a\nA cycles cycles exceptions\nS - mtb 1\n";
        crate::saved::tests::read(&ended(&format!("{head}{lines}")))
    }

    #[test]
    fn what_was_saved_is_read_and_saved_again() {
        for text in [SAVED, VERSION_2] {
            is_saved_as::<ProgramActivities>(&crate::saved::tests::read(text).unwrap(), SAVED);
        }
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
        // More lengths than are distinguished, in one file and in two: the same as if they had been added one by one.
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
        let again = crate::saved::tests::read(&saved(&sum)).unwrap();
        assert_eq!(of(&again), whole);
        assert_eq!(of(&values(0..100_000)), whole);
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        for (lines, line) in [("L with_preemption", 5), ("V 1 1", 5), ("X 1 0 0 0 m 15\nV 1 1", 6)] {
            assert_eq!(read(&format!("{lines}\n")), Err((line, SavedErrorKind::Misplaced)), "{lines}");
        }
        for (lines, line, field, found) in [
            ("X 1 0 0 0 m 15\nL some", 6, "lengths", "some"),
            ("X 1 0 0 0 m 15\nL with_preemption\nR 1 2 1", 7, "greatest", "1"),
            ("X 1 0 0", 5, "number excluded from durations", ""),
            ("A years cycles exceptions", 5, "unit", "years"),
        ] {
            let kind = SavedErrorKind::Field { field, found: found.to_owned() };
            assert_eq!(read(&format!("{lines}\n")), Err((line, kind)), "{lines}");
        }
        // The item `Measured` comes before the sources.
        let without = ended("# tracewalk interrupts 2\nP build 0a\nS - mtb 1\n");
        let misplaced = Err((3, SavedErrorKind::Misplaced));
        assert_eq!(crate::saved::tests::read::<ProgramActivities>(&without), misplaced);
        let lines = SAVED.lines().collect::<Vec<_>>();
        let newer = |lines: &[&str]| {
            let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            crate::saved::tests::read::<ProgramActivities>(&text).map_err(|(line, kind)| (line, kind.name()))
        };
        assert_eq!(newer(&[&lines[..2], &lines[3..]].concat()), Err((3, "saved_misplaced")));
        assert_eq!(newer(&[&lines[..3], &lines[5..]].concat()), Err((4, "saved_misplaced")));
        let turned = lines[8].replace("513", "5130");
        assert_eq!(newer(&[&lines[..8], &[&turned], &lines[9..]].concat()), Err((9, "saved_item")));
    }
}
