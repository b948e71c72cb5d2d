//! Coverage in a file (docs/formats.md); the items beside those of all saved files:
//!
//! ```text
//! {"source":{"capture":"run","source":"0x10","protocol":"etmv3","conditions":"every",…}}      a source, and its losses
//! {"block":["8000306","8000316","t32","taken","every",15]}       a block: start, end, isa, outcome, conditions, count
//! {"run":["night-1.bin","05"]}                                   a run, and the blocks that it passed: bit `n % 8` of byte `n / 8` is
//!                                                                that of block `n` of the program
//! ```

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};
use tracewalk::ids::{Address, Isa};
use tracewalk::plain::plain;

use super::blocks::{BlockKey, Conditions, Outcome};
use super::collected::{ProgramCoverage, SourceSummary};
use super::runs::Runs;
use crate::saved::{ReadItems, Save, SavedErrorKind, Saving, words};

/// An item of coverage.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// A source.
    Source(SourceSummary),
    /// A block and its count.
    Block(
        #[serde(with = "words")] Address,
        #[serde(with = "words")] Address,
        #[serde(with = "words")] Isa,
        Outcome,
        Conditions,
        u64,
    ),
    /// A run with this name, and the blocks before it that it passed.
    Run(String, #[serde(with = "words")] Vec<u8>),
}

/// Whether a saved file with this beginning keeps runs apart. The first line is enough.
#[must_use]
pub fn keeps_runs(head: &[u8]) -> bool {
    crate::saved::keeps_runs(head, ProgramCoverage::KIND)
}

impl Save for ProgramCoverage {
    const KIND: &'static str = "coverage";

    type Items = Items;

    fn runs(&self) -> &[String] {
        self.runs.names()
    }

    fn name_run(&mut self, name: &str) {
        if self.runs.names().is_empty() {
            self.runs = Runs::of(plain(name.into()).into_owned(), &self.blocks);
        }
    }

    fn captures(&self) -> Vec<&str> {
        self.sources.iter().map(|source| source.capture.as_str()).collect()
    }

    fn rename_captures(&mut self, names: &BTreeMap<String, String>) {
        for source in &mut self.sources {
            if let Some(name) = names.get(&source.capture) {
                source.capture = plain(name.into()).into_owned();
            }
        }
        // Merging expects the sources in their order.
        self.sources.sort();
    }

    fn save_items(&self, out: &mut Saving<'_>) -> io::Result<()> {
        let mut sources = self.sources.iter().map(in_plain).collect::<Vec<_>>();
        sources.sort();
        for source in sources {
            out.item(&Item::Source(source))?;
        }
        for (block, count) in &self.blocks {
            let BlockKey { start, end, isa, outcome, conditions } = *block;
            out.item(&Item::Block(start, end, isa, outcome, conditions, *count))?;
        }
        for (run, name) in self.runs.names().iter().enumerate() {
            out.item(&Item::Run(name.clone(), self.passed_by(run)))?;
        }
        Ok(())
    }
}

impl ProgramCoverage {
    /// The blocks that a run passed, a bit for each.
    fn passed_by(&self, run: usize) -> Vec<u8> {
        let mut bits = vec![0; self.blocks.len().div_ceil(8)];
        for (number, block) in self.blocks.keys().enumerate() {
            let passed = self.runs.blocks().get(block).is_some_and(|runs| runs.contains(run));
            if let (true, Some(byte)) = (passed, bits.get_mut(number / 8)) {
                *byte |= 1 << (number % 8);
            }
        }
        bits
    }
}

/// The same with a printable name.
fn in_plain(source: &SourceSummary) -> SourceSummary {
    let plain = |name: &String| plain(name.into()).into_owned();
    let SourceSummary { capture, source: id, protocol, .. } = source;
    SourceSummary { capture: plain(capture), source: plain(id), protocol: plain(protocol), ..source.clone() }
}

/// Reads the coverage of one program.
#[derive(Debug, Default)]
pub struct Items {
    found: ProgramCoverage,
    /// The blocks, in the order of the file.
    blocks: Vec<BlockKey>,
}

impl ReadItems for Items {
    type Item = Item;

    type Found = ProgramCoverage;

    fn item(&mut self, item: Item) -> Result<(), SavedErrorKind> {
        match item {
            Item::Source(source) => self.found.sources.push(in_plain(&source)),
            Item::Block(start, end, isa, outcome, conditions, count) => {
                if end <= start {
                    return Err(SavedErrorKind::field("end", format_args!("{end:x}")));
                }
                let block = BlockKey { start, end, isa, outcome, conditions };
                let sum = self.found.blocks.entry(block).or_default();
                *sum = sum.saturating_add(count);
                self.blocks.push(block);
            }
            Item::Run(name, bits) => {
                let passed =
                    |number: &usize| bits.get(number / 8).is_some_and(|byte| byte >> (number % 8) & 1 != 0);
                if bits.len() != self.blocks.len().div_ceil(8)
                    || (self.blocks.len()..8 * bits.len()).any(|number| passed(&number))
                {
                    let found = format!("{} blocks for {}", 8 * bits.len(), self.blocks.len());
                    return Err(SavedErrorKind::Field { field: "blocks of a run", found });
                }
                let blocks = self.blocks.iter().enumerate().filter(|(number, _)| passed(number));
                let blocks = blocks.map(|(_, block)| (*block, 1)).collect();
                self.found.runs.add(&Runs::of(plain(name.into()).into_owned(), &blocks));
            }
        }
        Ok(())
    }

    fn finish(self) -> ProgramCoverage {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use crate::saved::tests::{ended, is_saved_again, read, saved};

    const SAVED: &str = r#"{"saved":"coverage","version":1,"complete":true}
{"program":{"id":{"build":["0abc","ff"]},"images":["a name with spaces.elf"]}}
{"source":{"capture":"a capture","source":"0x10","protocol":"etmv3","conditions":"every","bytes":5920,"instructions":12345,"losses":{"begins":2,"overflows":1,"trace_lost":{"stretches":2,"bytes":17},"address_unknown":{"stretches":0,"bytes":0},"contradictions":{"stretches":0,"bytes":0},"undecodable":{"stretches":0,"bytes":0},"no_image":[["20000000",3]],"in_doubt":{"left_out":12,"counted":0}}}}
{"source":{"capture":"mtb.bin","source":"-","protocol":"mtb","conditions":"branches","bytes":1024,"instructions":300,"losses":{"begins":1,"overflows":0,"trace_lost":{"stretches":0,"bytes":0},"address_unknown":{"stretches":0,"bytes":0},"contradictions":{"stretches":0,"bytes":0},"undecodable":{"stretches":0,"bytes":0},"no_image":[],"in_doubt":{"left_out":0,"counted":0}}}}
{"block":["100","104","t32","taken","every",15]}
{"block":["100","104","t32","taken","branches",18446744073709551615]}
{"block":["100","108","a32","failed","every",1]}
{"program":{"id":{"code":"0101010101010101010101010101010101010101010101010101010101010101"},"images":[]}}
"#;

    #[test]
    fn what_was_saved_is_read_and_saved_again() {
        is_saved_again::<super::ProgramCoverage>(SAVED);
    }

    #[test]
    fn names_that_cannot_be_shown_do_not_change_the_order_when_they_are_read_again() {
        let source = |name: &str| {
            SAVED.lines().nth(3).map(|line| line.replace("mtb.bin", name) + "\n").unwrap_or_default()
        };
        let head = SAVED.lines().next().unwrap_or_default();
        let program = r#"{"program":{"id":{"build":["0a"]},"images":["a\u0001.elf","a!.elf"]}}"#;
        let text = format!("{head}\n{program}\n{}{}", source("b\\u0001"), source("b!"));
        let text = saved(&read::<super::ProgramCoverage>(&ended(&text)).unwrap());
        assert!(text.contains("[\"a!.elf\",\"a\u{fffd}.elf\"]"), "{text}");
        assert_eq!(saved(&read::<super::ProgramCoverage>(&text).unwrap()), text);
        let (lines, _) = text.rsplit_once("{\"end\"").unwrap();
        let hostile = ended(&lines.replace("a!.elf", "a\\u0001.elf"));
        let again = saved(&read::<super::ProgramCoverage>(&hostile).unwrap());
        assert!(again.contains("[\"a\u{fffd}.elf\"]"), "{again}");
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        let text = |line: usize, from: &str, to: &str| {
            let lines = SAVED.lines().enumerate();
            let changed =
                lines.map(|(at, found)| if at + 1 == line { found.replace(from, to) } else { found.into() });
            let text = changed.map(|line| line + "\n").collect::<String>();
            assert_ne!(text, SAVED);
            let (line, kind) = read::<super::ProgramCoverage>(&text).unwrap_err();
            (line, kind.name())
        };
        assert_eq!(text(3, "every", "some"), (3, "saved_item"));
        assert_eq!(text(3, "undecodable", "some"), (3, "saved_item"));
        assert_eq!(text(5, "104", "100"), (5, "saved_field"));
        assert_eq!(text(5, "\"taken\",", ""), (5, "saved_item"));
        assert_eq!(text(8, "0101", "01"), (8, "saved_item"));
    }
}
