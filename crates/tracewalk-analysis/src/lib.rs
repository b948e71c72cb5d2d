//! Analyses of program flow, with answers as data: coverage, profiles, calls, timelines, interrupts, crashes, comparisons.
//!
//! A source's bytes and its program go in. [`drive`] decodes them on one thread or many, and hands records ([`record`]: packets,
//! elements of program flow, an ITM's reports) to consumers ([`sink`]). An [analysis](analysis::Analysis) is a consumer with an answer. The
//! crate opens no file, writes no output format, and does not depend on a protocol's packets. Names and lines of the program come
//! through a trait ([`symbols`]).
//!
//! ```
//! use tracewalk::program::Program;
//! use tracewalk::protocol::etmv3;
//! use tracewalk::source::SourceConfig;
//! use tracewalk_analysis::drive::{Carrier, Follower, Input, NoProgress, Stretch};
//!
//! // A-sync, I-sync at 0x100 in Thumb, and two packets of one executed instruction each.
//! let trace = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x84, 0x84];
//! let mut program = Program::new();
//! program.add(0x100_u32.into(), &[0x00, 0xbf, 0x00, 0xbf])?; // two NOPs
//!
//! let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//! let carrier = Carrier::Stretches(vec![Stretch::all(trace.len())]);
//! let input = Input { capture: &trace, carrier, rest: None, progress: &NoProgress };
//! let statistics = Follower::new(&config, &program).flow(&input, |_| Ok(()))?;
//! assert_eq!((statistics.packets, statistics.instructions), (4, 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod analysis;
mod by_number;
pub mod call_stack;
pub mod captures;
mod certain;
pub mod clock;
mod contexts;
mod contradictions;
pub mod counts;
pub mod coverage;
pub mod crash;
pub mod decisions;
pub mod diff;
pub mod drive;
mod gaps;
mod interrupt_names;
pub mod interrupts;
pub mod itm;
pub mod log;
pub mod place;
pub mod profile;
pub mod programs;
pub mod quick;
pub mod record;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
pub mod saved;
mod section;
pub mod sink;
mod statistics;
pub mod stm;
mod survey;
pub mod symbols;
pub mod table;
pub mod tasks;
pub mod timeline;
mod times;
mod transactions;
pub mod values;
mod window;

pub use call_stack::{Arrival, CallStack};
pub use certain::{Doubt, DoubtChange, Doubtful, DoubtfulStretch, Doubts, InDoubt, Trusted};
pub use contexts::{Context, Contexts, ContextsPart, InContext};
pub use contradictions::Verdict;
pub use gaps::{GapCount, Gaps};
pub use interrupt_names::Interrupts;
pub use place::{Place, Position};
pub use section::{Code, CodeInContext, CodePlace, Section};
pub use statistics::Statistics;
pub use survey::Survey;
pub use window::{Happened, Phase, Window, Windowed};

/// The README's example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
