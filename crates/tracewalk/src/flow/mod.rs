//! What the program did: directives followed through the program's code.
//!
//! Directives and a [`Program`](crate::program::Program) go in, [`Element`]s come out: blocks of executed instructions,
//! events between them, and gaps where execution could not be followed. Protocols and packets are unknown here.
//!
//! [`Walk`] decodes instruction by instruction: simple, obviously right, and the oracle for [`Flow`], which goes a block at
//! a time where it can.

mod data;
mod doubt;
mod element;
mod engine;
#[cfg(test)]
mod engine_tests;
mod graph;
mod handover;
mod location_stack;
pub(crate) mod passage;
mod segment;
pub(crate) mod state;
mod straight;
#[cfg(test)]
mod tests;
mod vectors;
mod walk;

pub use doubt::{Doubt, DoubtChange};
pub use element::{
    Block, BranchKind, Contradiction, DataTransfer, Element, Ending, Event, EventKind, Gap, GapReason, Proof,
};
pub use engine::{Engine, Flow};
pub use passage::{Passage, PassageId, TakeElements, Totals};
pub use straight::runs_straight;
pub use walk::Walk;
