//! Answers that are counted or inferred from program flow.

pub mod call_stack;
pub mod clock;
mod contexts;
mod contradictions;
pub mod coverage;
pub mod diff;
mod doubts;
mod gaps;
pub mod interrupts;
pub mod profile;
pub mod programs;
pub mod saved;
mod statistics;
pub mod timeline;
mod trusted;
mod window;

pub use call_stack::{Arrival, CallStack};
pub use contexts::{Context, Contexts, ContextsPart, InContext};
pub use contradictions::Verdict;
pub use doubts::{Doubtful, DoubtfulChange, DoubtfulStretch, Doubting, Doubts, InDoubt};
pub use gaps::{GapCount, Gaps};
pub use statistics::Statistics;
pub use trusted::Trusted;
pub use window::{Phase, Position, Window, Windowed};
