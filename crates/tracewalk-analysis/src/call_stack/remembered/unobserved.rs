//! Takes repeated elements for an observer of nothing.

use super::super::CallStack;
use super::super::observer::Unobserved;
use super::Remembered;
use crate::analysis::Repeated;

impl Remembered<(), ()> {
    /// Takes repeated elements.
    pub fn take(&mut self, repeated: &Repeated<'_>, calls: &mut CallStack<()>) {
        let key = (repeated.set(), repeated.number());
        match (self.find(calls, key, |()| 0), repeated.members()) {
            (Some(known), _) => self.go(known, calls),
            (None, Some(members)) => {
                let learning = self.begin_group(calls, key);
                let count = members.map(|member| self.take(&member, calls)).count();
                if let Some(learning) = learning {
                    self.end_group(calls, learning, count, Some(((), true, 0)));
                }
            }
            (None, None) => {
                let outlined = calls.outline(repeated, &mut Unobserved);
                if !self.is_worth_learning(key)
                    && let Some(outlined) = outlined
                {
                    self.disturb(calls);
                    return calls.follow(repeated, outlined, &mut Unobserved);
                }
                if self.is_full(key.0) {
                    self.forget(key.0, calls);
                }
                let learning = self.begin_learning(calls, key);
                match outlined {
                    Some(outlined) => calls.follow(repeated, outlined, &mut Unobserved),
                    None => repeated.elements().for_each(|element| {
                        let _ = calls.element(&element, &mut Unobserved);
                    }),
                }
                self.end_learning(calls, learning, Some(((), true)), |()| 0);
            }
        }
    }
}
