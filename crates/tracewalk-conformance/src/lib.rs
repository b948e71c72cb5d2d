//! Checks decoding where the truth is known or another decoder reads the same trace.
//!
//! `tracewalk-generate` supplies paths and their traces. [`matrix`] decodes every kind of trace and compares
//! the result with the traced path; [`damage`] damages traces and measures the effects; [`opencsd`] compares
//! OpenCSD's reading with ours. The crate is a test harness that no user needs; its commands are `cargo xtask
//! matrix`, `damage` and `opencsd`.
#![forbid(unsafe_code)]

pub mod damage;
pub mod matrix;
pub mod opencsd;
