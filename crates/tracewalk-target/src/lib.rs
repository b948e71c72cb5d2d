//! Traces a chip: finds its trace units through a GDB server, sets them up, lets the program run, and reads the trace.
//!
//! ```text
//! packet      the shape of GDB's packets
//! connection  a socket
//! client      requests and replies: memory, registers, breakpoints
//! rom         the ROM tables of CoreSight: which units a chip has
//! plan        the accesses that set units up and switch them off, as data
//! units       the plan's part of each unit
//! sink        what takes a trace
//! chip        what no ROM table has: chips as text files
//! processor   the debug registers of M profile
//! choice      chooses the units, and makes the plan
//! record      carries a plan out
//! script      a plan as a script for GDB, OpenOCD or pyOCD
//! halted      what a halted processor's debugger can read, without changing it
//! ```
//!
//! A plan is made from what was read, and is data: it can be printed, or carried out. Everything that it writes is read back where
//! the unit allows it.
#![forbid(unsafe_code)]

pub mod chip;
mod choice;
pub mod client;
pub mod connection;
pub mod halted;
pub mod packet;
pub mod plan;
pub mod problem;
mod processor;
pub mod record;
pub mod rom;
pub mod script;
mod sink;
mod units;

pub use problem::Problem;
