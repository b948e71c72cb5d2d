//! Finds frames again after bytes of a capture were lost or inserted.
//!
//! A frame has no checksum, and a lost byte shifts all frames after it. But a reader that is off by some
//! bytes sees things that no formatter writes. These signs keep a capture from a lossy wire (SWO) readable.
//!
//! - `watch` looks at every frame and raises doubts: cheap, and easily alarmed.
//! - `judge` takes a closer look at doubtful frames, and finds where the old alignment ends.
//! - `ranking` compares the 16 alignments by their `evidence`; `search` does so until one stands out.
//! - `held` keeps the newest frames back, so that bytes that turn out not to be frames can be read again.
//! - `recovering` joins them around a [`Deframer`](super::Deframer).

mod evidence;
mod held;
mod judge;
mod ranking;
mod recovering;
mod search;
mod watch;

pub use evidence::AlignmentEvidence;
pub use ranking::{AlignmentCandidate, AlignmentRanking};
pub use recovering::RecoveringDeframer;
