//! Program flow: directives followed through the program's code.
//!
//! Directives and a [`Program`](crate::program::Program) go in, [`Element`]s come out: blocks of executed instructions,
//! events between them, and gaps where execution could not be followed. Protocols and packets are unknown here.
//!
//! There is one state, `execution::Execution`. The walk (`walk`) drives the state instruction by instruction.
//! The walk is simple and obviously right: tests compare [`Flow`] with it. `Flow` drives the state a block at
//! a time, if the graph has the block.
//!
//! [`Flow`] has an example. To decode a source's bytes, use [`FlowStream`](crate::FlowStream), which feeds a `Flow`. Elements
//! print as text:
//!
//! ```
//! use tracewalk::flow::{Element, Flow};
//! use tracewalk::directive::{BeginReason, Directive, Rules};
//! use tracewalk::ids::{Address, Isa, Location};
//! use tracewalk::program::Program;
//! use tracewalk::span::Span;
//!
//! // No image holds the code at 0x100: a gap, and its reason.
//! let (program, mut elements) = (Program::new(), Vec::new());
//! let mut note = |element: Element| elements.push(element.to_string());
//! let mut flow = Flow::new(Rules::default());
//! let at = Some(Location::new(Address::new(0x100), Isa::T32));
//! flow.follow(&program, Directive::Begin { at, why: BeginReason::Enabled }, Span::default(), &mut note);
//! flow.follow(&program, Directive::Instructions { executed: 1, then_failed: false }, Span::default(), &mut note);
//! flow.finish(&program, &mut note);
//! assert!(elements.iter().any(|element| element.contains("0x00000100")), "{elements:?}");
//! ```

mod checkpoint;
mod code;
pub(crate) mod compact;
mod data;
mod element;
#[cfg(test)]
mod engine_tests;
mod execution;
mod follow;
mod graph;
mod kept;
mod pages;
pub(crate) mod passage;
mod stack;
pub(crate) mod state;
mod straight;
#[cfg(test)]
mod tests;
mod vectors;
mod walk;
mod watched_stack;

pub use element::{
    Block, BranchKind, Contradiction, DataTransfer, Element, Ending, Event, EventKind, Gap, GapReason, Proof,
};
pub(crate) use execution::Execution;
pub use follow::{Engine, Flow};
pub use kept::{KeptPassage, Placing};
pub use passage::{Passage, PassageId, TakeElements, Totals};
pub use straight::runs_straight;
