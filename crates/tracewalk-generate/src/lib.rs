//! Records executed paths, and encodes a path as the trace that a trace unit would have made of it.
//!
//! A [`Path`](path::Path) lists the executed instructions. It comes from an emulator's log ([`qemu`]), a
//! model's log ([`tarmac`]) or a [`Record`](record::Record), the compact form in a file ([`convert`]);
//! [`firmware`] holds the example programs. [`etmv3`], [`pft`], [`etmv4`] and [`mtb`] encode a path and state
//! what a decoder should find; [`dwt`] sends a path's stores; [`container`], [`capture`] and [`perf`] make files of the trace. `tracewalk`
//! does the decoding; [`found`] compares its output with the encoded path. [`wander`] invents paths that no
//! program would take, and [`a64`] invents programs to wander through.
//!
//! If an encoder and a decoder agree, that proves nothing about Arm's hardware, only that neither has
//! slipped.
//!
//! ```
//! use tracewalk::ids::Address;
//! use tracewalk::program::Program;
//! use tracewalk::protocol::etmv3::Config;
//! use tracewalk_generate::etmv3::{Options, encode};
//! use tracewalk_generate::path::Path;
//! use tracewalk_generate::record::Record;
//!
//! let mut program = Program::new();
//! program.add(Address::new(0x100), &[0x01, 0x38, 0xfd, 0xd1, 0x70, 0x47])?; // 1: subs r0, #1; bne 1b; bx lr
//! let record = "# tracewalk record 1\nP m\nR 100 104 t32\nR 100 104 t32 !102\n";
//! let path = Path::expand(&Record::parse(record)?, &program)?;
//!
//! let config = Config::for_core("cortex-m3").expect("a known core");
//! let trace = encode(&path, &program, &config, &Options::default())?;
//! let a_sync = [0, 0, 0, 0, 0, 0x80];
//! let i_sync_at_0x100_in_thumb = [0x08, 0x21, 0x01, 0x01, 0, 0];
//! let three_executed_and_one_failed = [0b1_1_0011_00];
//! assert_eq!(trace.bytes, [&a_sync[..], &i_sync_at_0x100_in_thumb, &three_executed_and_one_failed].concat());
//! assert_eq!(trace.path, path);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod a64;
pub mod arguments;
pub mod capture;
pub mod container;
pub mod convert;
pub mod dwt;
pub mod elf;
pub mod etmcr;
pub mod etmv3;
pub mod etmv4;
pub mod firmware;
pub mod found;
pub mod mtb;
pub mod path;
pub mod perf;
pub mod pft;
pub mod qemu;
pub mod record;
mod story;
pub mod tarmac;
mod time;
pub mod trace;
pub mod wander;
