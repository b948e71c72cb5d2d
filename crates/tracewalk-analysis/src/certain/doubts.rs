//! The stretches of a trace that are in doubt.

use serde::{Deserialize, Serialize};
use tracewalk::span::CaptureOffset;

use super::DoubtfulStretch;

/// Whether elements in doubt are left out or kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doubtful {
    /// Elements in doubt are left out.
    #[default]
    Drop,
    /// Elements in doubt are treated like all others.
    Keep,
}

/// Instructions that are in doubt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct InDoubt {
    /// The number that was left out.
    pub left_out: u64,
    /// The number that was treated like the others.
    pub counted: u64,
}

impl InDoubt {
    /// The number of instructions in doubt, left out and counted.
    #[must_use]
    pub const fn of(instructions: u64, doubtful: Doubtful) -> Self {
        match doubtful {
            Doubtful::Drop => Self { left_out: instructions, counted: 0 },
            Doubtful::Keep => Self { left_out: 0, counted: instructions },
        }
    }

    /// Adds those of another trace.
    pub const fn add(&mut self, other: Self) {
        self.left_out = self.left_out.saturating_add(other.left_out);
        self.counted = self.counted.saturating_add(other.counted);
    }
}

/// The stretches in doubt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// How many there are.
    pub count: u64,
    /// How many bytes of the source's trace they have.
    pub bytes: u64,
    /// The first ones.
    pub first: Vec<DoubtfulStretch>,
}

/// How many stretches are kept.
const KEPT: usize = 5;

impl Doubts {
    /// Adds the next stretch.
    pub fn add(&mut self, stretch: DoubtfulStretch) {
        self.count += 1;
        self.bytes += stretch.bytes;
        if self.first.len() < KEPT {
            self.first.push(stretch);
        }
    }

    /// Adds those of the next part. `place` returns the file offset of a byte of the capture.
    pub fn add_part(&mut self, part: &Self, place: impl Fn(CaptureOffset) -> CaptureOffset) {
        self.count += part.count;
        self.bytes += part.bytes;
        let first = part.first.iter().map(|stretch| DoubtfulStretch {
            from: place(stretch.from),
            to: place(stretch.to),
            ..*stretch
        });
        self.first.extend(first.take(KEPT.saturating_sub(self.first.len())));
    }
}
