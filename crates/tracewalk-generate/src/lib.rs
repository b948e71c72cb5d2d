//! What a program executed, written down, and encoded as the trace that a trace unit would have made of it.
//!
//! A [`Path`](path::Path) says what ran, instruction by instruction. It comes from an emulator's log ([`qemu`]) or from
//! a [`Record`](record::Record), its compact form in a file. Decoding is not here: `tracewalk` does that, and what it
//! finds is compared with the path.
#![forbid(unsafe_code)]

pub mod capture;
pub mod container;
pub mod elf;
pub mod etmv3;
pub mod mtb;
pub mod path;
pub mod pft;
pub mod qemu;
pub mod record;
mod story;
mod time;
pub mod trace;
