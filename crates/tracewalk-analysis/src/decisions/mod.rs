//! MC/DC: how decisions were evaluated, and which conditions that shows to have an effect of their own.
//!
//! ```text
//! Graph       the conditions of a decision, and which follows which
//! Evaluation  one run through the graph, as branches decide it
//! Vector      its values and its result
//! Vectors     the set of vectors → the conditions that a pair of them covers
//! ```
//!
//! Which branch decides which condition is not here.
//!
//! ```
//! use tracewalk_analysis::decisions::{Evaluation, Graph, Node, Pairs, Step, Vectors};
//!
//! // `a && b`
//! let graph = Graph::new(&[
//!     Node { id: 1, if_true: 2, if_false: 0 },
//!     Node { id: 2, if_true: 0, if_false: 0 },
//! ])?;
//! let mut vectors = Vectors::default();
//! for values in [[true, true], [true, false]] {
//!     let mut evaluation = Evaluation::default();
//!     for (condition, value) in values.into_iter().enumerate() {
//!         if let Step::Over(vector) = evaluation.take(&graph, condition, value) {
//!             vectors.add(vector);
//!         }
//!     }
//! }
//! // Only `b` was true and false.
//! assert_eq!(vectors.covered(&graph, Pairs::Masking), 0b10);
//! # Ok::<(), tracewalk_analysis::decisions::NoGraph>(())
//! ```

mod graph;
mod vectors;

pub use graph::{Evaluation, Graph, NoGraph, Node, Step};
pub use vectors::{Pairs, Vector, Vectors};
