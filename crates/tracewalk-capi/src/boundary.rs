//! C's pointers and handles.

use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::status::Problem;

/// A text from C.
///
/// # Safety
///
/// `text` is null, or ends with a NUL and is not written to meanwhile.
pub(crate) unsafe fn text<'a>(name: &str, text: *const c_char) -> Result<&'a str, Problem> {
    if text.is_null() {
        return Err(Problem::argument(format!("{name}: found a null pointer, expected text")));
    }
    // SAFETY: `text` is not null, and the caller promises the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Problem::argument(format!("{name}: found text that is not UTF-8")))
}

/// A stretch of C's memory; the pointer may be null if `count` is 0.
///
/// # Safety
///
/// `first` is null, or the first of `count` values that are not written to meanwhile.
pub(crate) unsafe fn slice<'a, T>(name: &str, first: *const T, count: usize) -> Result<&'a [T], Problem> {
    if count == 0 {
        return Ok(&[]);
    }
    let most = usize::try_from(isize::MAX).unwrap_or(usize::MAX) / size_of::<T>().max(1);
    if first.is_null() || !first.is_aligned() || count > most {
        return Err(Problem::argument(format!(
            "{name}: found an invalid pointer or count, expected {count} values"
        )));
    }
    // SAFETY: `first` is neither null nor misaligned, `count` is not too large, and the caller promises the rest.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// Hands an object to C.
///
/// # Safety
///
/// `out` is null, or a pointer can be written there.
pub(crate) unsafe fn give<T>(out: *mut *mut T, value: T) -> Result<(), Problem> {
    if out.is_null() || !out.is_aligned() {
        return Err(Problem::argument(
            "out: found a null or misaligned pointer, expected a place for the result",
        ));
    }
    // SAFETY: `out` is neither null nor misaligned, and the caller promises the rest.
    unsafe { out.write(Box::into_raw(Box::new(value))) };
    Ok(())
}

/// Writes the part of a structure that the program knows, and zeros for fields that this library does not know.
///
/// # Safety
///
/// `out` is null, or `size` bytes can be written there.
pub(crate) unsafe fn fill<T: Copy>(out: *mut T, size: usize, least: usize, value: &T) -> Result<(), Problem> {
    if out.is_null() || size < least {
        return Err(Problem::argument(format!(
            "out: found {size} bytes at {out:p}, expected at least {least} bytes"
        )));
    }
    let (out, known) = (out.cast::<u8>(), size.min(size_of::<T>()));
    // SAFETY: the caller promises that `size` bytes can be written to `out`, and `value` has at least `known` bytes.
    unsafe {
        out.write_bytes(0, size);
        out.copy_from_nonoverlapping(std::ptr::from_ref(value).cast(), known);
    }
    Ok(())
}

/// The size of a structure, for its first field.
pub(crate) const fn size_field<T>() -> u32 {
    assert!(size_of::<T>() < 1024, "structures are small");
    #[allow(clippy::cast_possible_truncation, reason = "asserted above")]
    let size = size_of::<T>() as u32;
    size
}

/// The content of a handle that several threads may use at once: a call waits for another. No callback runs meanwhile.
pub(crate) fn wait<T>(handle: Option<&Mutex<T>>) -> Result<MutexGuard<'_, T>, Problem> {
    let handle = handle.ok_or_else(no_handle)?;
    handle.lock().map_err(|_| broken())
}

/// The content of a handle for one call at a time. A call during another one is refused, because a callback may have
/// made it.
pub(crate) fn enter<T>(handle: Option<&Mutex<T>>) -> Result<MutexGuard<'_, T>, Problem> {
    let handle = handle.ok_or_else(no_handle)?;
    handle.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => Problem::state(
            "the handle is in use, by the caller of a callback or another thread: call again later",
        ),
        TryLockError::Poisoned(_) => broken(),
    })
}

fn no_handle() -> Problem {
    Problem::argument("handle: found a null pointer")
}

fn broken() -> Problem {
    Problem::state("a defect ended earlier work on this handle: free it")
}

/// The result of a function that has no status.
pub(crate) fn quiet<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

/// Frees an object that C held.
pub(crate) fn release<T>(handle: Option<Box<T>>) {
    quiet((), || drop(handle));
}

/// A text for C, which ends at a NUL.
pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}
