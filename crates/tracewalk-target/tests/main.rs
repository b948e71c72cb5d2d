//! The tests of recordings, in one binary.

mod chip;
mod servers;
mod simulated;
