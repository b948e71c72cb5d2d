//! The differential test with OpenCSD: its reading of a trace beside ours, and the list of places if it is known to be
//! wrong.
//!
//! [`Subject`] is a trace that both read; running OpenCSD's `trc_pkt_lister` is the caller's. What it printed goes into
//! [`Subject::differences`], which finds for each difference the [`Deviation`] that it is.

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
