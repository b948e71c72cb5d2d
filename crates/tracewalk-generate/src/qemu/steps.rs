//! The steps that were read, and which of them are certain.

use std::collections::BTreeSet;

use tracewalk::ids::Address;

use crate::path::Step;

/// How many steps are kept while an exception has not returned; then its return address stays unknown.
pub(super) const MOST_HELD: usize = 1 << 20;

/// How many are always kept: the last instruction is among them, behind exceptions that came before their handlers ran.
const NEWEST: usize = 64;

/// A path's last steps. They are numbered from the path's beginning.
#[derive(Default)]
pub(super) struct Steps {
    pub(super) steps: Vec<Step>,
    /// How many were given out.
    taken: u64,
    /// The exceptions whose return address only their return will show.
    held: BTreeSet<u64>,
}

impl Steps {
    /// How many steps the path has.
    pub(super) const fn len(&self) -> u64 {
        self.taken + self.steps.len() as u64
    }

    /// The step that is to come will get its return address later.
    pub(super) fn hold(&mut self, step: u64) {
        self.held.insert(step);
    }

    /// It will not.
    pub(super) fn release(&mut self, step: u64) {
        self.held.remove(&step);
    }

    /// The exception that is this step returns to `address`; `false` if it was given out without.
    #[must_use]
    pub(super) fn resume(&mut self, step: u64, address: Address) -> bool {
        self.held.remove(&step);
        let index = step.checked_sub(self.taken).and_then(|index| usize::try_from(index).ok());
        let step = index.and_then(|index| self.steps.get_mut(index));
        if let Some(Step::Exception(taken)) = step {
            taken.preferred_return = Some(address);
            return true;
        }
        false
    }

    /// Gives out what is certain.
    pub(super) fn take(&mut self) -> Vec<Step> {
        let most = self.steps.len().saturating_sub(NEWEST);
        let held = self.held.first().map_or(self.len(), |&step| step).saturating_sub(self.taken);
        let held = usize::try_from(held).unwrap_or(usize::MAX);
        let certain = held.max(self.steps.len().saturating_sub(MOST_HELD)).min(most);
        let taken = self.steps.drain(..certain).collect();
        self.taken += certain as u64;
        // Those that were given up stay in the lists that wait for them, and are an error there.
        self.held = self.held.split_off(&self.taken);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Taken;
    use tracewalk::ids::Exception;

    fn exception() -> Step {
        let (exception, handler) = (Exception::M(15), Address::new(0x100));
        Step::Exception(Taken { exception, preferred_return: None, handler })
    }

    #[test]
    fn steps_wait_for_the_oldest_exception_that_has_not_returned() {
        let mut path = Steps::default();
        path.steps.extend([Step::ExceptionReturn; 10]);
        path.hold(path.len());
        path.steps.push(exception());
        path.steps.extend([Step::ExceptionReturn; 1000]);
        assert_eq!(path.take().len(), 10);
        assert!(path.resume(10, Address::new(0x200)));
        let rest = path.take();
        assert_eq!(rest.len(), 1001 - NEWEST);
        let Some(Step::Exception(taken)) = rest.first() else { panic!("expected the exception") };
        assert_eq!(taken.preferred_return, Some(Address::new(0x200)));
    }

    #[test]
    fn an_exception_that_returns_after_a_million_steps_is_an_error() {
        let mut path = Steps::default();
        path.hold(0);
        path.steps.push(exception());
        path.steps.extend(vec![Step::ExceptionReturn; MOST_HELD]);
        assert_eq!(path.take().len(), 1);
        assert!(!path.resume(0, Address::new(0x200)));
    }
}
