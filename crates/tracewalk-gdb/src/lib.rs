//! Serves a recording to GDB, which steps through it forwards and backwards: a server of GDB's remote protocol over a session.
//!
//! ```text
//! Session ── each source ──▶ FlowIndex + call stacks at regular distances     prepare, stacks
//!                            + loads and stores, turns of contexts            transfers, turns
//! place ──▶ registers and stack, if flow and the image give them              core, walk, unwind, machine, memory
//! bytes ⇄ packets ⇄ requests and answers                                      packet, dialogue, monitor
//! connections: one debugger at a time, over TCP or standard streams           serve
//! ```
//!
//! Program counters are exact. A register or a byte of memory that neither the trace nor the image gives is
//! unavailable. GDB needs stack addresses to unwind: those that the program does not give are artificial, and only
//! those (see `unwind`).
//!
//! Packets are parsed here instead of by the crate `gdbstub`: see `docs/dev/decisions.md`.
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
