//! Arm CoreSight instruction trace, decoded into what the program executed.
//!
//! Bytes of a capture come in; executed blocks, events and gaps go out:
//!
//! ```text
//! frame     CoreSight formatter frames   → the bytes of one trace ID, each with its place
//! protocol  bytes                        → packets (what the trace unit said) → directives (what it means)
//! flow      directives × program image   → blocks, events, gaps
//! ```
//!
//! The crate does no I/O: it never opens a file, starts a thread or reads a clock. It runs without `std`.
//! Reading captures and ELF files is `tracewalk-input`'s work, answering questions `tracewalk-analysis`', and writing
//! answers down `tracewalk-report`'s.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod cursor;
pub mod directive;
pub mod flow;
pub mod frame;
pub mod ids;
pub mod isa;
pub mod plain;
pub mod program;
pub mod protocol;
pub mod source;
pub mod span;
