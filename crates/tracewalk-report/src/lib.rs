//! Output formats: program flow, packets and the answers of analyses, as text, JSON, CSV, HTML and other tools' formats.
//!
//! Records go in section by section (one for each trace source), or an analysis' answer as a whole; the bytes of one format
//! come out. The crate opens no file, and does not depend on a protocol's packets: packets describe themselves.
//!
//! ```
//! use tracewalk::ids::TraceId;
//! use tracewalk_analysis::sink::Sink as _;
//! use tracewalk_analysis::{Code, Section};
//! use tracewalk_report::export::Runs;
//!
//! let mut out = Vec::new();
//! let mut runs = Runs::new(&mut out);
//! runs.begin()?;
//! runs.section(&Section { id: TraceId::new(2), protocol: "etmv3", number: 1, code: Code::unknown().into() })?;
//! runs.end_section()?;
//! assert_eq!(out, b"# tracewalk runs 1\nS 02\n");
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "parquet")]
pub mod columns;
pub mod disassembly;
pub mod export;
pub mod formats;
mod layout;
mod look;
mod palette;
mod words;

pub use layout::Fitted;
pub use look::Look;
pub use palette::Palette;
pub use words::{counted, losses_in_words, why_stale};

/// The README's example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
