//! Reads captures, program images and symbols from files.
//!
//! Paths or bytes of files go in; captures, memory and symbols come out. No other crate of tracewalk
//! interprets users' captures and images:
//!
//! ```text
//! capture  trace bytes and their description: a plain file, a capture.toml, a snapshot directory
//! image    ELF files and raw memory dumps → the program's memory, and the origin of each part
//! svd      a chip's description → the names of its interrupts
//! decisions  objects of a shadow compile → decisions and conditions of the source
//! symbols  ELF files → functions, instruction sets, source lines, the vector table
//! ```
//!
//! This crate does not decode. It does not trust files: every length in a file is checked before use, a
//! description can only name files beside it, and errors state the problem in one sentence with its place and
//! the option to try.
//!
//! ```
//! use tracewalk::ids::Address;
//! use tracewalk_input::capture::Capture;
//! use tracewalk_input::image::{Image, ImageKind, Memory};
//!
//! let capture = Capture::from_bytes("trace.bin".as_ref(), vec![0, 0, 0, 0, 0, 0x80, 0x08])?;
//! assert_eq!(capture.buffers[0].bytes.len(), 7);
//!
//! let nop_and_bx_lr = vec![0x00, 0xbf, 0x70, 0x47];
//! let kind = ImageKind::Raw { address: Address::new(0x0800_0000), offset: 0, length: None, space: None };
//! let mut memory = Memory::default();
//! memory.add(Image::from_bytes("rom.bin".as_ref(), &kind, nop_and_bx_lr)?.into())?;
//! assert!(!memory.program.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod bytes;
pub mod capture;
pub mod cpu;
pub mod decisions;
mod excerpt;
mod file;
#[cfg(test)]
mod fixtures;
mod identity;
pub mod image;
mod limit;
mod mapped;
mod meant;
pub mod nearest;
mod number;
mod origin;
mod other_file;
mod paths;
pub mod records;
mod spool;
pub mod svd;
pub mod symbols;
mod text;

pub use bytes::Bytes;
pub use file::{FileProblem, read_text, reader};
pub use identity::FileIdentity;
pub use limit::{MemoryLimit, ParseMemoryLimitError};
pub use origin::{Naming, Origin, Setting, Stated};
pub use other_file::OtherFile;
pub use paths::PathProblem;

/// The README's example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    //! The types that several threads may share, and those that each thread needs a copy of.

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
        is_shared::<crate::symbols::SymbolTable>();
        is_shared::<crate::symbols::VectorTable>();
        is_moved::<crate::symbols::SourceLines>();
    };
}
