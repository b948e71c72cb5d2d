//! Answers that are counted or inferred from program flow.

mod call_depth;
mod contradictions;
pub mod coverage;
mod gaps;
mod statistics;

pub use call_depth::{Arrival, CallDepth};
pub use contradictions::{Contradictions, Verdict};
pub use gaps::{GapCount, Gaps};
pub use statistics::Statistics;
