//! Counts: how often each stretch of a program ran, and how often each branch was taken.
//!
//! Program flow goes in ([`Counting`]), [`Counts`] by context come out, in executions. Compilers and linkers use these counts to
//! optimise a program. Counts of several runs can be added up and saved.
//!
//! ```
//! use tracewalk_analysis::analysis::{Analysis as _, End};
//! use tracewalk_analysis::counts::Counting;
//! use tracewalk_analysis::sink::Sink as _;
//!
//! # use tracewalk::{ids::Address, program::Program, protocol::etmv3, source::SourceConfig};
//! # use tracewalk_analysis::drive::{Carrier, Follower, Input, NoProgress, Stretch};
//! # let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//! # let mut program = Program::new();
//! # program.add(Address::new(0x100), &[0x00, 0xbf, 0x00, 0xbf])?;
//! # let trace = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x84, 0x84];
//! # let carrier = Carrier::Stretches(vec![Stretch::all(trace.len())]);
//! # let input = Input { capture: &trace, carrier, rest: None, progress: &NoProgress };
//! // `config`, `program` and `input` are made as in the example of `drive`.
//! // A trace of two instructions.
//! let mut counting = Counting::default();
//! let statistics = Follower::new(&config, &program).flow(&input, |record| counting.record(record))?;
//! let counted = counting.answer(&End { statistics, complete: true });
//! let counts = &counted.counts[&(None, None)];
//! assert_eq!((counts.instructions, counts.branches.len(), counted.left_out), (2, 0, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod analysis;
mod collected;
mod counter;
mod report;
mod saved;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracewalk::flow::{Block, BranchKind, Ending};
use tracewalk::ids::{Address, Isa};
use tracewalk::isa::Return;

pub use analysis::{Counted, Counting};
pub use collected::{Binary, CountedBinary, CountedSource, Split};
pub use report::{CountsReport, ReportedBinary};

/// The execution in one context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often each range ran.
    pub ranges: BTreeMap<Range, u64>,
    /// How often execution went each way from each branch.
    pub branches: BTreeMap<Branch, u64>,
    /// How many instructions ran.
    pub instructions: u64,
    /// The number of branches to an address that the trace lacks, or interrupted before their target.
    pub unrecorded: u64,
}

/// Instructions that ran one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// The first instruction.
    pub first: Address,
    /// The last instruction.
    pub last: Address,
    /// The instruction set.
    pub isa: Isa,
    /// The number of instructions.
    pub instructions: u32,
}

/// A way that execution went from a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Branch {
    /// The branch.
    pub from: Address,
    /// The instruction that ran next.
    pub to: Address,
    /// How execution got there.
    pub way: Way,
}

/// How execution got from a branch to the next instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The branch was taken, and is neither a call nor a return.
    Jump,
    /// The branch was taken, and left its return address in the link register.
    Call,
    /// The branch was taken, and is a return from a function by its form.
    Return,
    /// The branch was not taken.
    NotTaken,
}

impl Way {
    /// The way of a block's ending; `None` if the ending is no branch within the program.
    const fn of(ending: Ending) -> Option<Self> {
        match ending {
            Ending::Interrupted
            | Ending::ConditionFailed
            | Ending::Branch { kind: BranchKind::Barrier, .. }
            | Ending::Branch { taken: true, returns: Some(Return::Exception), .. } => None,
            Ending::Branch { taken: false, .. } => Some(Self::NotTaken),
            Ending::Branch { returns: Some(Return::Function), .. } => Some(Self::Return),
            Ending::Branch { link: true, .. } => Some(Self::Call),
            Ending::Branch { .. } => Some(Self::Jump),
        }
    }

    /// A stable short name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jump => "jump",
            Self::Call => "call",
            Self::Return => "return",
            Self::NotTaken => "not_taken",
        }
    }

    /// Whether the branch was taken.
    #[must_use]
    pub const fn is_taken(self) -> bool {
        !matches!(self, Self::NotTaken)
    }
}

impl Range {
    const fn of(block: &Block) -> Self {
        Self { first: block.start, last: block.last, isa: block.isa, instructions: block.instructions }
    }
}

/// Adds to a count.
fn add<Key: Ord>(counts: &mut BTreeMap<Key, u64>, key: Key, count: u64) {
    let sum = counts.entry(key).or_default();
    *sum = sum.saturating_add(count);
}
