//! What was worked out for each number of a set of numbers.

use crate::analysis::Repeated;

/// Values by the numbers of one set. A number of another set begins anew.
#[derive(Clone, Debug)]
pub(crate) struct ByNumber<T> {
    set: u32,
    values: Vec<Option<T>>,
}

impl<T> Default for ByNumber<T> {
    fn default() -> Self {
        Self { set: 0, values: Vec::new() }
    }
}

impl<T: Copy> ByNumber<T> {
    /// The value of a passage's number, worked out the first time.
    #[inline]
    pub(crate) fn get(&mut self, repeated: &Repeated<'_>, work_out: impl FnOnce() -> T) -> T {
        self.of((repeated.set(), repeated.number()), work_out)
    }

    /// The value of a number in a set.
    #[inline]
    pub(crate) fn of(&mut self, (set, number): (u32, u32), work_out: impl FnOnce() -> T) -> T {
        if set == self.set
            && let Some(Some(known)) = self.values.get(number as usize)
        {
            return *known;
        }
        self.insert((set, number as usize), work_out())
    }

    #[inline(never)]
    fn insert(&mut self, (set, number): (u32, usize), value: T) -> T {
        if set != self.set {
            (self.set, self.values) = (set, Vec::new());
        }
        if self.values.len() <= number {
            self.values.resize(number + 1, None);
        }
        self.values[number] = Some(value);
        value
    }
}
