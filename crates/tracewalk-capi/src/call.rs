//! The wrapper of every call from C: problems and panics become a status and an error.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::tracewalk_error;
use crate::status::{Problem, tracewalk_status};

/// Does the work. A problem and a panic become a status, and an error if the program wants one.
///
/// # Safety
///
/// `error` is null, or a pointer can be written there.
pub(crate) unsafe fn guarded(
    error: *mut *mut tracewalk_error,
    work: impl FnOnce() -> Result<tracewalk_status, Problem>,
) -> tracewalk_status {
    let worked = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Problem::defect()));
    let (status, problem) = match worked {
        Ok(status) => (status, None),
        Err(problem) => (problem.status, Some(problem)),
    };
    if !error.is_null() && error.is_aligned() {
        let value = problem.map_or(std::ptr::null_mut(), |problem| Box::into_raw(Box::new(problem.into())));
        // SAFETY: `error` is neither null nor misaligned, and the caller promises the rest.
        unsafe { error.write(value) };
    }
    status
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::boundary::enter;
    use crate::error::{tracewalk_error_free, tracewalk_error_status};

    /// The status of a call. The error has the same status.
    fn status(work: impl FnOnce() -> Result<tracewalk_status, Problem>) -> tracewalk_status {
        let mut error = std::ptr::null_mut();
        // SAFETY: a pointer can be written to `error`.
        let status = unsafe { guarded(&raw mut error, work) };
        // SAFETY: `error` is null, or a box from `guarded` that nobody else has.
        let error = (!error.is_null()).then(|| unsafe { Box::from_raw(error) });
        assert_eq!(error.is_some(), (status as i32) < 0);
        assert!(error.is_none() || tracewalk_error_status(error.as_deref()) == status);
        tracewalk_error_free(error);
        status
    }

    #[test]
    fn panics_become_a_status() {
        assert_eq!(status(|| panic!("a defect")), tracewalk_status::Defect);
        assert_eq!(status(|| Ok(tracewalk_status::End)), tracewalk_status::End);
        // SAFETY: a null pointer is allowed.
        let unasked = unsafe { guarded(std::ptr::null_mut(), || panic!("a defect")) };
        assert_eq!(unasked, tracewalk_status::Defect);
    }

    #[test]
    fn a_handle_that_panicked_or_is_in_use_is_refused() {
        let handle = Mutex::new(0);
        let enters = || enter(Some(&handle)).map(|_| tracewalk_status::Ok);
        assert_eq!(status(enters), tracewalk_status::Ok);
        let held = status(|| {
            let _held = enter(Some(&handle))?;
            assert_eq!(status(enters), tracewalk_status::State);
            panic!("a defect while it is held")
        });
        assert_eq!((held, status(enters)), (tracewalk_status::Defect, tracewalk_status::State));
    }
}
