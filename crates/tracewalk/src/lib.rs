//! Arm CoreSight instruction trace, decoded into what the program executed.
//!
//! Bytes of a capture go in; executed blocks, events and gaps come out:
//!
//! ```text
//! frame     CoreSight formatter frames   → the bytes of one trace ID, each with its place
//! protocol  bytes                        → packets (what the trace unit reports) → directives (what it means)
//! flow      directives × program image   → blocks, events, gaps
//! ```
//!
//! The crate does no I/O: it never opens a file, starts a thread or reads a clock. It runs without `std`. Reading captures and
//! ELF files is `tracewalk-input`'s task; `tracewalk-analysis` answers questions about what was executed.
//!
//! # One source, without frames
//!
//! A [`FlowStream`] decodes one source's bytes. It needs the source's configuration and the code that was executed:
//!
//! ```
//! use tracewalk::flow::Element;
//! use tracewalk::ids::Address;
//! use tracewalk::program::Program;
//! use tracewalk::protocol::etmv3;
//! use tracewalk::{FlowStream, SourceConfig};
//!
//! let mut program = Program::new();
//! program.add(Address::new(0x100), &[0x01, 0x20, 0x70, 0x47])?; // T32: movs r0, #1; bx lr
//! let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//!
//! let mut stream = FlowStream::new(&config);
//! let mut elements = Vec::new();
//! let mut note = |element: Element| elements.push(element.to_string());
//! // A-sync; I-sync: tracing begins at 0x100 in Thumb; a P-header: two instructions executed. In pieces of any size.
//! stream.push(&[0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01], &program, &mut note);
//! stream.push(&[0x01, 0x00, 0x00, 0x88], &program, &mut note);
//! stream.finish(&program, &mut note);
//! assert_eq!(elements.last().map(String::as_str), Some("0x00000100..0x00000104 (T32): 2 instructions"));
//! # Ok::<(), tracewalk::program::AddRegionError>(())
//! ```
//!
//! If all bytes are in memory, [`capture::elements`] gives the same as an iterator.
//!
//! # A formatted capture of several sources
//!
//! A trace buffer or trace port that several sources share holds CoreSight frames. [`CaptureDecoder`] takes them apart and
//! decodes each source; its page has a complete example, `examples/two_sources.rs` is a program.
//!
//! # What the elements mean
//!
//! - [`Element::Block`]: instructions that were executed one after the other, up to a branch or barrier, a failed
//!   condition, an event or a gap. Its span names the trace that proves it.
//! - [`Element::Event`]: what happened between instructions: an exception, a new context, a timestamp.
//! - [`Element::Gap`]: execution that could not be followed, and why. A gap is data, not an error: decoding
//!   continues after it. The reason states whether the trace was damaged, the executed code is in no image, or trace and image contradict each
//!   other. A gap with `doubt` set puts the elements since the last [`flow::Proof`] in doubt.
//! - [`Element::Proof`]: the position is known from here on, independent of earlier trace. It is not an event.
//!
//! ```
//! use tracewalk::flow::{Element, GapReason};
//! use tracewalk::program::Program;
//! use tracewalk::protocol::etmv3;
//! use tracewalk::{FlowStream, SourceConfig};
//!
//! // Without an image nothing can be followed: a gap reports where code is missing.
//! let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//! let trace = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0, 0, 0x88];
//! let program = Program::new();
//! let gaps = tracewalk::capture::elements(FlowStream::new(&config), &trace, &program)
//!     .filter_map(|element| if let Element::Gap(gap) = element { Some(gap.reason) } else { None });
//! assert!(gaps.last().is_some_and(|reason| matches!(reason, GapReason::NoCode(_))));
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(feature = "serde")]
mod arrays;
pub mod capture;
mod cursor;
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

/// The README's example, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use capture::CaptureDecoder;
pub use flow::Element;
pub use ids::{Address, Isa, Location, TraceId};
pub use program::Program;
pub use source::{FlowStream, PacketStream, SourceConfig};
