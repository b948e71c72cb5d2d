//! The tests of recordings, in one binary.

mod chip;
mod scripts;
mod servers;
mod simulated;
mod ways;
