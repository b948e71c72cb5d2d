//! Lets GDB walk through what a trace recorded, forwards and backwards: a server of its remote protocol over a session.
//!
//! ```text
//! Session ── each source ──▶ FlowIndex + call stacks at regular distances     prepare, stacks
//!                            + loads and stores, turns of contexts            transfers, turns
//! place ──▶ registers and stack, as far as flow and the image give them       core, walk, unwind, machine, memory
//! bytes ⇄ packets ⇄ requests and answers                                      packet, dialogue, monitor
//! connections: one debugger at a time, over TCP or standard streams           serve
//! ```
//!
//! Program counters are exact. A register or a byte of memory that the trace and the image do not give is unavailable; what GDB needs
//! to unwind is made up as far as it does not follow from the program, and nothing else is: see `unwind`.
//!
//! The packets are read here and not by the crate `gdbstub`: see `docs/dev/decisions.md`.
//!
//! ```no_run
//! use tracewalk_gdb::{Event, Listen, Options, serve};
//! use tracewalk_session::{At, Notices, Request, Session};
//!
//! let (mut session, _) = Session::open(Request::new("../../testdata/examples/a7-etmv3/capture.toml"))?;
//! let options = Options { at: At::Last, trust_image: false, dump: None, keep: None };
//! // Serves debuggers until the process ends.
//! serve(&mut session, &options, Listen::tcp("127.0.0.1:1234")?, &Notices::default(), &mut |event: &Event| {
//!     eprintln!("{event:?}");
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod core;
mod dialogue;
mod error;
mod machine;
mod memory;
mod monitor;
mod packet;
mod prepare;
mod registers;
mod serve;
mod stacks;
mod transfers;
mod turns;
mod unwind;
mod walk;

pub use error::GdbError;
pub use prepare::Options;
pub use serve::{Event, Listen, serve};
