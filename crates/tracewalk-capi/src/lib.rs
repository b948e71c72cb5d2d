//! tracewalk for C and C++: `include/tracewalk.h` declares the functions, docs/c.md shows how to use them.
//!
//! A thin front: [`decoder`] over the core for bytes that are pushed, [`session`] over `tracewalk-session` for files.
//! No panic leaves the library, and nothing is global. A call with a mistake (null pointers, two threads in one handle,
//! a handle that failed) returns a status, if the library can detect the mistake.
#![allow(unsafe_code, reason = "C's pointers; all of them are read and written in `boundary`")]
#![allow(non_camel_case_types, reason = "they are called in C as they are here")]
#![allow(unreachable_pub, reason = "what is public is C's")]
#![allow(clippy::missing_safety_doc, reason = "what a C program must keep to stands in the header, once")]

mod boundary;
mod call;
mod decoder;
mod element;
mod error;
mod instruction;
mod notice;
mod options;
mod packet;
mod program;
mod session;
mod status;
mod tap;
mod vocabulary;
mod work;

use std::ffi::c_char;

/// The ABI version, which changes if programs have to be compiled again. New functions, fields at the end of
/// structures, and values of enumerations do not change it.
pub const TRACEWALK_ABI: u32 = 0;

/// The ABI version of the loaded library: compare it with `TRACEWALK_ABI`.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_abi_version() -> u32 {
    TRACEWALK_ABI
}

/// The version of the loaded library, like `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
