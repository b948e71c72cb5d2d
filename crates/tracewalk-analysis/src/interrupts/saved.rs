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
    use crate::saved::tests::{ended, is_saved_again, read, saved};

    const SAVED: &str = r#"{"saved":"interrupts","version":1,"complete":true}
{"program":{"id":{"build":["0abc"]},"images":["fw.elf"]}}
{"measured":{"unit":"ticks","counts_cycles":true,"functions":true}}
{"source":[{"id":null,"protocol":"mtb","number":2},{"left_out":0,"counted":0}]}
{"source":[{"id":"0x10","protocol":"etmv3","number":1},{"left_out":12,"counted":1}]}
{"exception":[null,{"count":3,"tail_chained":0,"preempting":0,"cut":1,"with_preemption":{"counts":[]},"without_preemption":{"counts":[]},"inter_arrival":{"counts":[]}}]}
{"exception":[["m",15],{"count":65,"tail_chained":2,"preempting":1,"cut":0,"with_preemption":{"counts":[[32,60],[40,5]]},"without_preemption":{"counts":[[32,65]]},"inter_arrival":{"counts":[[190,64]]}}]}
{"function":[{"named":["8000306",{"vmid":"2"}]},{"count":3,"tail_chained":0,"preempting":0,"cut":0,"with_preemption":{"counts":[]},"without_preemption":{"counts":[]},"inter_arrival":{"counts":[]}}]}
{"function":["unknown",{"count":1,"tail_chained":0,"preempting":0,"cut":0,"with_preemption":{"counts":[[512,2],[1024,1]],"rounded":{"sum":2100,"min":513,"max":1026}},"without_preemption":{"counts":[]},"inter_arrival":{"counts":[]}}]}
"#;

    #[test]
    fn what_was_saved_is_read_and_saved_again() {
        is_saved_again::<ProgramActivities>(SAVED);
    }

    #[test]
    fn lengths_are_as_exact_as_they_were() {
        let with = |lengths: &str| -> AllActivities {
            let head = SAVED.lines().take(4).map(|line| format!("{line}\n")).collect::<String>();
            let durations = r#""with_preemption":{"counts":[]},"without_preemption":{"counts":[]}"#;
            let exception = r#""count":3,"tail_chained":0,"preempting":0,"cut":0"#;
            let lengths = format!("\"inter_arrival\":{{\"counts\":[{lengths}]}}");
            let item = format!("{{\"exception\":[[\"m\",15],{{{exception},{durations},{lengths}}}]}}\n");
            read(&ended(&(head + &item))).unwrap()
        };
        let program = with("[7,2],[100,1]");
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
            with(&range.map(|length| format!("[{length},1]")).collect::<Vec<_>>().join(","))
        };
        let mut whole = crate::interrupts::Lengths::default();
        (0..100_000).for_each(|length| whole.add(length));
        assert!(whole.is_rounded());
        let mut sum = values(0..40_000);
        sum.merge(values(40_000..100_000)).unwrap();
        assert_eq!(of(&sum), whole);
        let again = read(&saved(&sum)).unwrap();
        assert_eq!(of(&again), whole);
        assert_eq!(of(&values(0..100_000)), whole);
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        // The item `Measured` comes before the sources.
        let lines = SAVED.lines().collect::<Vec<_>>();
        let error = |lines: &[&str]| {
            let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            read::<ProgramActivities>(&text).map_err(|(line, kind)| (line, kind.name()))
        };
        assert_eq!(error(&[&lines[..2], &lines[3..]].concat()), Err((3, "saved_misplaced")));
        assert_eq!(error(&[&lines[..3], &lines[5..]].concat()), Err((4, "saved_misplaced")));
        let years = lines[2].replace("ticks", "years");
        assert_eq!(error(&[&lines[..2], &[&years], &lines[3..]].concat()), Err((3, "saved_item")));
        let turned = lines[8].replace("513", "5130");
        assert_eq!(error(&[&lines[..8], &[&turned], &lines[9..]].concat()), Err((9, "saved_item")));
    }
}
