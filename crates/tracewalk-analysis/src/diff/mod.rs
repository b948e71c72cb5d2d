//! The comparison of two paths through one program: the point at which they part, and how each continues.
//!
//! ```text
//! Walk, Digest    each path → a number for each stretch of steps: which stretch differs?
//! Stretch         … the steps of that stretch: which step differs, and where in it?
//! Aftermath       … the code that ran there and after it
//! ```
//!
//! Each stage reads the trace from its beginning, so that memory does not grow with the trace.
//!
//! ```
//! use tracewalk_analysis::diff::{Digest, Step};
//!
//! let digest = |steps: &[Step]| {
//!     let mut digest = Digest::default();
//!     steps.iter().for_each(|step| digest.add(*step));
//!     digest.finish();
//!     digest
//! };
//! let one = digest(&[Step::Exception(None), Step::Lost]);
//! assert_eq!(one.differs_in(&digest(&[Step::Exception(None), Step::Lost])), None);
//! assert_eq!(one.differs_in(&digest(&[Step::Exception(None)])), Some(0));
//! ```

mod aftermath;
mod path;

use tracewalk::ids::Address;

pub use aftermath::{Aftermath, Called, Next};
pub use path::{CHUNK, Digest, Part, Run, Step, Walk};

/// The steps of one stretch.
#[derive(Clone, Debug)]
pub struct Stretch {
    first: u64,
    next: u64,
    steps: Vec<Step>,
}

/// The point at which two paths part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parting {
    /// The number of the first step that differs, from 0.
    pub step: u64,
    /// The place in the step, if both begin in the same way: the first address that only one of the paths reached.
    pub inside: Option<Address>,
}

impl Stretch {
    /// The stretch of [`CHUNK`] steps that begins with step number `first`.
    #[must_use]
    pub const fn new(first: u64) -> Self {
        Self { first, next: 0, steps: Vec::new() }
    }

    /// The path's next step, from its first one on.
    pub fn add(&mut self, step: Step) {
        if self.next >= self.first && !self.is_complete() {
            self.steps.push(step);
        }
        self.next += 1;
    }

    /// Whether no more steps are needed.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.steps.len() as u64 >= CHUNK
    }

    /// The place where the paths part; `None` if they agree in this stretch.
    #[must_use]
    pub fn parting(&self, other: &Self) -> Option<Parting> {
        let longest = self.steps.len().max(other.steps.len());
        let index = (0..longest).find(|index| self.steps.get(*index) != other.steps.get(*index))?;
        let inside = match (self.steps.get(index), other.steps.get(index)) {
            (Some(Step::Run(a)), Some(Step::Run(b)))
                if (a.start, a.isa, a.scope) == (b.start, b.isa, b.scope) =>
            {
                Some(a.end.min(b.end))
            }
            // One trace may end in the middle of a step; then the other one continues from its beginning.
            _ => None,
        };
        Some(Parting { step: self.first + index as u64, inside })
    }
}

#[cfg(test)]
mod tests;
