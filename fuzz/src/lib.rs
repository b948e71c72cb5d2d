//! What the fuzz targets do with their bytes.
//!
//! Each function takes any bytes and must return: no panic, no endless loop, bounded memory, and the properties that
//! `ARCHITECTURE.md` promises hold. The first bytes of an input choose the configuration, the rest is what a file or a
//! trace unit would give. `run` builds and runs them.
#![deny(unsafe_code)]

mod files;
mod flow;
mod frames;
mod input;
mod packets;
mod parts;
mod path;
#[cfg(feature = "libfuzzer")]
#[allow(unsafe_code, reason = "a function of the C library is replaced")]
mod random;
mod server;

pub use files::{coverage, description, dump, elf, perf, recording, saved, snapshot, svd};
pub use flow::flow;
pub use frames::frames;
pub use packets::{etmv3, etmv4, itm, mtb, pft, stm};
pub use path::path;
pub use server::server;
