//! Makes the keys of hash maps the same in every process. They determine the order of a map's entries and how
//! often its loops run. libFuzzer counts loops, so with random keys no two runs of the same seed would be
//! alike.

use std::ffi::{c_uint, c_void};

/// Replaces the C library's function from which the standard library gets random bytes; here they are
/// constant.
///
/// # Safety
///
/// As of the C library's: there are `length` bytes at `buffer`, to be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut c_void, length: usize, _flags: c_uint) -> isize {
    // SAFETY: the caller says so.
    unsafe { buffer.cast::<u8>().write_bytes(0x5a, length) };
    isize::try_from(length).unwrap_or(isize::MAX)
}
