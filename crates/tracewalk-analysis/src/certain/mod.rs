//! Which elements are certain: the doubt that gaps cast, and flow without elements in doubt.

mod doubt;
mod doubts;
mod trusted;

pub use doubt::{Doubt, DoubtChange, DoubtfulStretch};
pub use doubts::{Doubtful, Doubts, InDoubt};
pub use trusted::Trusted;
