//! Files → captures, program images and symbols.
//!
//! This is the only crate of tracewalk that opens files:
//!
//! ```text
//! capture  trace bytes and what describes them: a plain file, a capture.toml, a snapshot directory
//! image    ELF files and raw memory dumps → the program's memory, and who gave which part of it
//! svd      a chip's description → the names of its interrupts
//! symbols  ELF files → functions, instruction sets, source lines, the vector table
//! ```
//!
//! Decoding is not here, and nothing here knows what a packet is. A file may hold anything: every length that it
//! claims is checked before it is used, a description can only name files beside it, and what is wrong is told in one
//! sentence with its place and the option to try.
#![deny(unsafe_code)]

mod bytes;
pub mod capture;
pub mod cpu;
mod excerpt;
mod file;
#[cfg(test)]
mod fixtures;
pub mod image;
mod limit;
mod mapped;
mod nearest;
mod number;
mod origin;
mod paths;
mod spool;
pub mod svd;
pub mod symbols;
mod text;

pub use bytes::Bytes;
pub use file::{FileProblem, read_text};
pub use limit::{MemoryLimit, ParseMemoryLimitError};
pub use origin::{Naming, Origin, Stated};
pub use paths::PathProblem;

#[cfg(test)]
mod tests {
    //! What several threads may share, and what each needs a copy of.

    const fn is_shared<T: Send + Sync>() {}
    const fn is_moved<T: Send>() {}

    const _: () = {
        is_shared::<crate::Bytes>();
        is_shared::<crate::capture::Capture>();
        is_shared::<crate::capture::CaptureError>();
        is_shared::<crate::capture::dump::MemoryDump>();
        is_shared::<crate::capture::wire::Recording>();
        is_shared::<crate::image::Image>();
        is_shared::<crate::image::Memory>();
        is_shared::<crate::svd::InterruptNames>();
        is_shared::<crate::symbols::Symbols>();
        is_shared::<crate::symbols::VectorTable>();
        is_moved::<crate::symbols::SourceLines>();
    };
}
