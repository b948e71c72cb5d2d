//! Answers: what a trace tells, counted and written down.
//!
//! Packets and flow elements come in, section by section (one for each trace source); analyses and the bytes of one
//! output format go out. No file is opened here and no packet of any protocol is known by name: packets describe
//! themselves, and what is known of the program beside its code comes through a trait.
//!
//! ```
//! use tracewalk::ids::TraceId;
//! use tracewalk_report::export::Runs;
//! use tracewalk_report::sink::Sink as _;
//! use tracewalk_report::{Code, Section};
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

pub mod analysis;
pub mod disassembly;
pub mod drive;
pub mod export;
mod interrupts;
pub mod itm;
mod palette;
pub mod record;
mod section;
pub mod sink;
pub mod symbols;

pub use interrupts::Interrupts;
pub use palette::Palette;
pub use section::{ArmProfile, Code, CodeInContext, CodePlace, Section};
