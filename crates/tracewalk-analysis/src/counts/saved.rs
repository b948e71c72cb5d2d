//! Counts in a file (docs/formats.md); the items beside those of all saved files:
//!
//! ```text
//! {"base":"8000000"}                                       the address at which the binary begins
//! {"source":{"capture":"run","source":"0x10",…}}           a source, and its losses
//! {"range":["8000306","8000314","t32",8,15]}               first and last instruction, instruction set, instructions, count
//! {"branch":["8000314","8000306","jump",14]}               from, to, way, count; null for an address in another binary
//! ```

use std::io;

use serde::{Deserialize, Serialize};
use tracewalk::ids::{Address, Isa};
use tracewalk::plain::plain;

use super::collected::{CountedBinary, CountedSource};
use super::{Range, Way, add};
use crate::saved::{ReadItems, Save, SavedErrorKind, Saving, words};

/// An item of counts.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// The address at which the binary begins.
    Base(#[serde(with = "words")] Address),
    /// A source.
    Source(CountedSource),
    /// A range, and the number of times that it ran.
    Range(
        #[serde(with = "words")] Address,
        #[serde(with = "words")] Address,
        #[serde(with = "words")] Isa,
        u32,
        u64,
    ),
    /// A way, and the number of times that execution went it.
    Branch(
        #[serde(with = "words::optional")] Option<Address>,
        #[serde(with = "words::optional")] Option<Address>,
        Way,
        u64,
    ),
}

impl Save for CountedBinary {
    const KIND: &'static str = "counts";

    type Items = Items;

    const NEEDS_PROGRAM: bool = false;

    fn save_items(&self, out: &mut Saving<'_>) -> io::Result<()> {
        if let Some(base) = self.base {
            out.item(&Item::Base(base))?;
        }
        let mut sources = self.sources.iter().map(in_plain).collect::<Vec<_>>();
        sources.sort();
        for source in sources {
            out.item(&Item::Source(source))?;
        }
        for (Range { first, last, isa, instructions }, count) in &self.ranges {
            out.item(&Item::Range(*first, *last, *isa, *instructions, *count))?;
        }
        for ((from, to, way), count) in &self.branches {
            out.item(&Item::Branch(*from, *to, *way, *count))?;
        }
        Ok(())
    }
}

/// The same with names that can be shown.
fn in_plain(source: &CountedSource) -> CountedSource {
    let plain = |name: &String| plain(name.into()).into_owned();
    let CountedSource { capture, source: id, protocol, .. } = source;
    CountedSource { capture: plain(capture), source: plain(id), protocol: plain(protocol), ..source.clone() }
}

/// Reads the counts of one binary.
#[derive(Debug, Default)]
pub struct Items(CountedBinary);

impl ReadItems for Items {
    type Item = Item;

    type Found = CountedBinary;

    fn item(&mut self, item: Item) -> Result<(), SavedErrorKind> {
        match item {
            Item::Base(base) => self.0.base = Some(base),
            Item::Source(source) => self.0.sources.push(in_plain(&source)),
            Item::Range(first, last, isa, instructions, count) => {
                if last < first || instructions == 0 {
                    return Err(SavedErrorKind::field("last", format_args!("{last:x}")));
                }
                add(&mut self.0.ranges, Range { first, last, isa, instructions }, count);
            }
            Item::Branch(from, to, way, count) => {
                if from.is_none() && to.is_none() {
                    return Err(SavedErrorKind::field("to", "null"));
                }
                add(&mut self.0.branches, (from, to, way), count);
            }
        }
        Ok(())
    }

    fn finish(self) -> CountedBinary {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use crate::counts::CountedBinary;
    use crate::saved::SavedErrorKind;
    use crate::saved::tests::{ended, is_saved_again, read};

    const SAVED: &str = r#"{"saved":"counts","version":1,"complete":true}
{"program":{"id":{"build":["0abc"]},"images":["fw.elf"]}}
{"base":"8000000"}
{"source":{"capture":"run","source":"0x10","protocol":"etmv3","bytes":1,"packets":2,"malformed":3,"followed":4,"gaps":5,"left_out":6,"unrecorded":7,"counted":8}}
{"range":["8000306","8000314","t32",8,18446744073709551615]}
{"branch":[null,"8000306","call",1]}
{"branch":["8000314",null,"return",1]}
{"branch":["8000314","8000306","jump",14]}
{"branch":["8000314","8000316","not_taken",1]}
"#;

    #[test]
    fn what_was_saved_is_read_and_saved_again() {
        is_saved_again::<CountedBinary>(SAVED);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_line() {
        let head = "{\"saved\":\"counts\",\"version\":1,\"complete\":true}\n{\"program\":{\"id\":{\"build\":[\"0a\"]},\"images\":[]}}\n";
        for (item, field) in [
            ("{\"range\":[\"4\",\"2\",\"t32\",1,1]}", "last"),
            ("{\"range\":[\"2\",\"4\",\"t32\",0,1]}", "last"),
            ("{\"branch\":[null,null,\"jump\",1]}", "to"),
        ] {
            let (line, kind) = read::<CountedBinary>(&ended(&format!("{head}{item}\n"))).unwrap_err();
            assert_eq!(line, 3);
            assert!(matches!(kind, SavedErrorKind::Field { field: found, .. } if found == field), "{item}");
        }
    }
}
