//! Answers as data: what is counted and inferred from a trace.
//!
//! A source's bytes are run through its decoder ([`drive`]), in one thread or many, and what comes out goes past whoever
//! looks at it ([`sink`]): packets, pieces of program flow, and what an ITM told ([`record`]). Analyses are such lookers;
//! their answers are values. No file is opened here, nothing is written down, and no packet of any protocol is known by
//! name: what is known of the program beside its code comes through a trait ([`symbols`]).
#![forbid(unsafe_code)]

pub mod call_stack;
pub mod clock;
mod contexts;
mod contradictions;
pub mod coverage;
pub mod diff;
mod doubts;
pub mod drive;
mod gaps;
mod interrupt_names;
pub mod interrupts;
pub mod itm;
pub mod profile;
pub mod programs;
pub mod record;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
pub mod saved;
mod section;
pub mod sink;
mod statistics;
pub mod symbols;
pub mod table;
pub mod timeline;
mod trusted;
mod window;

pub use call_stack::{Arrival, CallStack};
pub use contexts::{Context, Contexts, ContextsPart, InContext};
pub use contradictions::Verdict;
pub use doubts::{Doubtful, DoubtfulChange, DoubtfulStretch, Doubting, Doubts, InDoubt};
pub use gaps::{GapCount, Gaps};
pub use interrupt_names::Interrupts;
pub use section::{ArmProfile, Code, CodeInContext, CodePlace, Section};
pub use statistics::Statistics;
pub use trusted::Trusted;
pub use window::{Phase, Position, Window, Windowed};
