//! What is known of one place where OpenCSD is wrong, or reads less.

use super::compare::Difference;
use super::place::Place;

/// A known deviation.
#[derive(Debug)]
pub struct Deviation {
    /// A short name, for reports.
    pub id: &'static str,
    /// What OpenCSD does.
    pub opencsd: &'static str,
    /// What the specification says, and where.
    pub specification: &'static str,
    /// How it is distinguished from others.
    pub recognised_by: &'static str,
    /// What shows that it is OpenCSD's doing and not ours.
    pub evidence: Evidence,
    /// Whether a difference is this one.
    pub recognises: fn(&Difference, &Place<'_>) -> bool,
}

/// What a deviation rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The bytes, and what OpenCSD says of them.
    Readings,
    /// Our reading says that bytes are wrong or do not count: believed only of those that were damaged.
    Damage,
}
