//! Profiles in a file (docs/formats.md); the items beside those of all saved files:
//!
//! ```text
//! {"source":{"source":{"id":"0x10","protocol":"etmv3","number":1},"measures":…}}   a source; the next lines belong to it
//! {"task":[0,{"number":1}]}                a task: how many links of the chain of calls are outside, and which
//! {"exception":[1,65,["m",15]]}            an exception: links outside, how often, numbering and number
//! {"function":[2,3,"8000112",{"named":["8000306",{}]}]}
//!                                          a function: links outside, how often it was called, from where, which
//! {"code":["8000306","8000316","t32",8,120,340,0]}
//!                                          of the link above: a piece of code, its instructions, and its cost in
//!                                          instructions, cycles and ticks
//! ```
//!
//! Each link of a chain of calls comes after those outside.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};
use tracewalk::ids::{Address, Exception, Isa};

use super::saved_parts::Parts;
use super::{Measures, NodeKind, Profile, ProgramProfiles};
use crate::InDoubt;
use crate::call_stack::{Evidence, FunctionId, Piece, Task};
use crate::clock::Cost;
use crate::programs::SourceId;
use crate::saved::{ReadItems, Save, SavedErrorKind, Saving, words};

/// An item of profiles.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// A source, with the values that apply to all of it.
    Source(Source),
    /// A task.
    Task(usize, Task),
    /// An exception.
    Exception(usize, u64, #[serde(with = "words::exception")] Option<Exception>),
    /// A function.
    Function(usize, u64, #[serde(with = "words::optional")] Option<Address>, FunctionId),
    /// A piece of code, and its cost in instructions, cycles and ticks.
    Code(
        #[serde(with = "words")] Address,
        #[serde(with = "words")] Address,
        #[serde(with = "words")] Isa,
        u32,
        u64,
        u64,
        u64,
    ),
}

/// A source, with the values that apply to all of it.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    source: SourceId,
    measures: Measures,
    in_doubt: InDoubt,
    unfollowed: Cost,
    untraced: Cost,
    switches: BTreeMap<Evidence, u64>,
    folded_calls: u64,
}

impl Save for ProgramProfiles {
    const KIND: &'static str = "profile";

    type Items = Items;

    fn save_items(&self, out: &mut Saving<'_>) -> io::Result<()> {
        self.sources.iter().try_for_each(|(source, profile)| profile.in_order().save(*source, out))
    }
}

impl Profile {
    /// Writes the items of a profile that is in order.
    fn save(&self, source: SourceId, out: &mut Saving<'_>) -> io::Result<()> {
        out.item(&Item::Source(Source {
            source,
            measures: self.measures,
            in_doubt: self.in_doubt,
            unfollowed: self.unfollowed,
            untraced: self.untraced,
            switches: self.switches.clone(),
            folded_calls: self.folded_calls,
        }))?;
        let mut entries = self.entries.iter().peekable();
        for (index, node) in self.nodes.iter().enumerate() {
            let (depth, calls) = (node.depth, node.calls);
            out.item(&match node.kind {
                NodeKind::Task(task) => Item::Task(depth, task),
                NodeKind::Exception(exception) => Item::Exception(depth, calls, exception),
                NodeKind::Function { function, site } => Item::Function(depth, calls, site, function),
            })?;
            while let Some(entry) = entries.next_if(|entry| entry.node.index() == index) {
                let Piece { start, end, isa, instructions } = entry.piece;
                let Cost { instructions: executed, cycles, time } = entry.cost;
                out.item(&Item::Code(start, end, isa, instructions, executed, cycles, time))?;
            }
        }
        Ok(())
    }
}

/// Reads the profiles of one program.
#[derive(Debug, Default)]
pub struct Items(Parts);

impl ReadItems for Items {
    type Item = Item;

    type Found = ProgramProfiles;

    fn item(&mut self, item: Item) -> Result<(), SavedErrorKind> {
        match item {
            Item::Source(source) => self.source(source),
            Item::Task(depth, task) => self.0.link(depth, NodeKind::Task(task), 0),
            Item::Exception(depth, calls, exception) => {
                self.0.link(depth, NodeKind::Exception(exception), calls)
            }
            Item::Function(depth, calls, site, function) => {
                self.0.link(depth, NodeKind::Function { function, site }, calls)
            }
            Item::Code(start, end, isa, instructions, executed, cycles, time) => self
                .0
                .code(Piece { start, end, isa, instructions }, Cost { instructions: executed, cycles, time }),
        }
    }

    fn finish(self) -> ProgramProfiles {
        self.0.finish()
    }
}

impl Items {
    fn source(&mut self, source: Source) -> Result<(), SavedErrorKind> {
        let Source { source, measures, in_doubt, unfollowed, untraced, switches, folded_calls } = source;
        self.0.source(source);
        let (unfollowed, untraced) = (self.0.cost(unfollowed)?, self.0.cost(untraced)?);
        let profile = self.0.profile()?;
        (profile.measures, profile.in_doubt, profile.folded_calls) = (measures, in_doubt, folded_calls);
        (profile.unfollowed, profile.untraced, profile.switches) = (unfollowed, untraced, switches);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profiles;
    use crate::profile::tests::{recorded, stories};
    use crate::programs::ProgramId;
    use crate::saved::tests::{ended, is_saved_again, read, saved};
    use proptest::prelude::*;

    const SAVED: &str = r#"{"saved":"profile","version":1,"complete":true}
{"program":{"id":{"build":["0abc"]},"images":["fw.elf"]}}
{"source":{"source":{"id":null,"protocol":"mtb","number":2},"measures":{"cycle_counts":0,"without_cycles":10,"without_time":10,"timestamps":0,"timed_instructions":0},"in_doubt":{"left_out":0,"counted":0},"unfollowed":{"instructions":0,"cycles":0,"time":0},"untraced":{"instructions":0,"cycles":0,"time":0},"switches":{},"folded_calls":0}}
{"exception":[0,1,["ar",14]]}
{"source":{"source":{"id":"0x10","protocol":"etmv3","number":1},"measures":{"cycle_counts":3,"without_cycles":0,"without_time":0,"timestamps":2,"timed_instructions":40},"in_doubt":{"left_out":12,"counted":1},"unfollowed":{"instructions":0,"cycles":12,"time":1},"untraced":{"instructions":0,"cycles":3,"time":0},"switches":{"context":2,"resumed":1},"folded_calls":7}}
{"task":[0,{"context":{"context_id":"42"}}]}
{"task":[0,{"number":1}]}
{"function":[1,0,null,{"named":["100",{}]}]}
{"code":["100","104","t32",2,20,31,4]}
{"code":["104","106","t32",1,1,2,0]}
{"function":[2,3,"102",{"named":["200",{"context_id":"42","vmid":"1"}]}]}
{"code":["200","208","a32",2,6,9,0]}
{"function":[2,1,"106",{"unnamed":["300",{}]}]}
{"function":[2,1,null,{"missing":"9000"}]}
{"task":[0,"unresolved"]}
{"exception":[0,2,null]}
{"exception":[0,65,["m",15]]}
{"function":[1,65,null,"unknown"]}
{"code":["0","0","t32",0,5,0,0]}
{"program":{"id":{"code":"0101010101010101010101010101010101010101010101010101010101010101"},"images":[]}}
"#;

    #[test]
    fn what_was_saved_is_read_and_saved_again() {
        is_saved_again::<ProgramProfiles>(SAVED);
    }

    #[test]
    fn every_protocol_with_program_flow_is_read_again() {
        for protocol in tracewalk::source::SourceConfig::PROTOCOLS {
            let text = SAVED.replace("\"etmv3\"", &format!("\"{protocol}\""));
            is_saved_again::<ProgramProfiles>(&text);
        }
    }

    /// Each mistake after a program and a source.
    #[test]
    fn mistakes_are_reported_with_their_line() {
        let [_, program, source, ..] = SAVED.lines().collect::<Vec<_>>()[..] else { unreachable!() };
        let error = |line: &str| {
            let text = format!(
                "{{\"saved\":\"profile\",\"version\":1,\"complete\":true}}\n{program}\n{source}\n{line}\n"
            );
            let (at, kind) = read::<ProgramProfiles>(&text).unwrap_err();
            (at, kind.name())
        };
        let much = source.replace("\"cycles\":0", "\"cycles\":72057594037927937");
        for (line, expected) in [
            (source.replace("mtb", "stm").as_str(), (4, "saved_item")),
            (&source.replace("\"number\":2", "\"number\":0"), (4, "saved_item")),
            (&source.replace("null", "\"0x7d\""), (4, "saved_item")),
            (&source.replace("\"timestamps\":0,", ""), (4, "saved_item")),
            (&source.replace("{}", "{\"guess\":1}"), (4, "saved_item")),
            (&much, (4, "saved_field")),
            (r#"{"task":[0,"third"]}"#, (4, "saved_item")),
            (r#"{"task":[1,{"number":1}]}"#, (4, "saved_field")),
            (r#"{"exception":[0,1,["r",3]]}"#, (4, "saved_item")),
            (r#"{"exception":[0,1,["ar",256]]}"#, (4, "saved_item")),
            (r#"{"code":["0","4","t32",2,1,1,1]}"#, (4, "saved_misplaced")),
            ("{\"task\":[0,{\"number\":1}]}\n{\"code\":[\"0\",\"4\",\"t32\",3,1,1,1]}", (5, "saved_field")),
            ("{\"task\":[0,{\"number\":1}]}\n{\"code\":[\"4\",\"0\",\"t32\",1,1,1,1]}", (5, "saved_field")),
            (
                "{\"task\":[0,{\"number\":1}]}\n{\"code\":[\"0\",\"20000004\",\"t32\",268435457,1,1,1]}",
                (5, "saved_field"),
            ),
            (r#"{"function":[0,18446744073709551615,null,"unknown"]}"#, (4, "saved_field")),
        ] {
            assert_eq!(error(line), expected, "{line}");
        }
    }

    #[test]
    fn links_that_are_too_deep_count_to_those_outside() {
        let mut text = SAVED.lines().take(3).map(|line| format!("{line}\n")).collect::<String>();
        for depth in 0..5000 {
            text += &format!("{{\"function\":[{depth},2,null,{{\"named\":[\"{depth:x}\",{{}}]}}]}}\n");
            text += "{\"code\":[\"0\",\"2\",\"t32\",1,1,0,0]}\n";
        }
        let profiles: Profiles = read(&ended(&text)).unwrap();
        let profile = profiles.programs.values().next().unwrap().found.sources.values().next().unwrap();
        assert_eq!(profile.nodes.len(), super::super::DEEPEST);
        assert_eq!(profile.total().instructions, 5000);
        assert_eq!(profile.folded_calls, 2 * (5000 - super::super::DEEPEST as u64));
    }

    fn profiles(story: &[u8]) -> Profiles {
        let source = SourceId { id: None, protocol: "pft", number: 1 };
        let sources = [(source, recorded(story))].into_iter().collect();
        let mut profiles = Profiles::default();
        profiles.add(ProgramId::Code([0; 32]), [], ProgramProfiles { sources });
        profiles
    }

    fn merged(parts: &[&Profiles]) -> String {
        let mut sum = Profiles::default();
        for part in parts {
            sum.merge((*part).clone()).unwrap();
        }
        saved(&sum)
    }

    proptest! {
        #[test]
        fn profiles_add_up_in_any_order_saved_or_not(a in stories(), b in stories(), c in stories()) {
            let (a, b, c) = (profiles(&a), profiles(&b), profiles(&c));
            let sum = merged(&[&a, &b, &c]);
            prop_assert_eq!(&merged(&[&c, &a, &b]), &sum);
            let again = |text: &str| read::<ProgramProfiles>(text).unwrap();
            prop_assert_eq!(&merged(&[&again(&saved(&a)), &again(&merged(&[&c, &b]))]), &sum);
            prop_assert_eq!(saved(&again(&sum)), sum);
        }
    }
}
