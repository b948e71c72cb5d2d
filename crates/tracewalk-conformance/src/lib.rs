//! Whether decoding is right, where the truth is known or another decoder reads the same.
//!
//! Paths and traces of them are `tracewalk-generate`'s. [`matrix`] decodes every kind of trace and compares with what was
//! traced; [`damage`] damages traces and measures what becomes of that; [`opencsd`] puts OpenCSD's reading beside ours. No
//! user needs this crate: it is a harness, and its commands are `cargo xtask matrix`, `damage` and `opencsd`.
#![forbid(unsafe_code)]

pub mod damage;
pub mod matrix;
pub mod opencsd;
