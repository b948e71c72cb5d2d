//! Answers that are counted or inferred from program flow.

pub mod call_stack;
pub mod clock;
mod contradictions;
pub mod coverage;
mod gaps;
mod statistics;

pub use call_stack::{Arrival, CallStack};
pub use contradictions::{Contradictions, Verdict};
pub use gaps::{GapCount, Gaps};
pub use statistics::Statistics;
