//! The differential test with OpenCSD: compares its reading of a trace with ours, and lists the places where
//! it is known to be wrong.
//!
//! [`Subject`] is a trace that both decoders read. The caller runs OpenCSD's `trc_pkt_lister` and passes its
//! output to [`Subject::differences`], which finds the [`Deviation`] that explains each difference.

mod atoms;
pub mod compare;
pub mod deviation;
pub mod deviations;
mod explain;
pub mod failed_blx;
pub mod listing;
mod listing_etmv4;
pub mod model;
pub mod place;
pub mod reading;
mod recognise;
mod subject;

pub use compare::Difference;
pub use deviation::{Deviation, Evidence};
pub use deviations::deviations;
pub use explain::{Found, Untrue};
pub use model::Registers;
pub use subject::{Subject, Unsuitable};
