//! Proves which values registers and memory held along a path that a trace recorded.
#![forbid(unsafe_code)]

mod a32;
mod a64;
mod arm;
mod bits;
mod coprocessor;
mod effect;
#[cfg(test)]
mod emulator;
mod field;
mod flow;
mod image;
mod machine;
mod memory;
mod path;
mod profile;
mod prover;
mod relation;
mod t32;
mod terms;
mod window;

pub use effect::{Base, Effect, Origin, Transfer};
pub use flow::Walk;
pub use image::Image;
pub use machine::Register;
pub use path::{Instruction, Step};
pub use profile::Profile;
pub use window::{End, Proven, ProvenAccess, Registers, Sink, Summary, Values};
