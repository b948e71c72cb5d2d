//! Proves which values registers and memory held along a path that a trace recorded.
#![forbid(unsafe_code)]

mod bits;
mod relation;
mod terms;
