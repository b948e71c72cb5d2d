//! A known place where OpenCSD is wrong or reads less.

use super::compare::Difference;
use super::place::Place;

/// A known deviation.
#[derive(Debug)]
pub struct Deviation {
    /// A short name, for reports.
    pub id: &'static str,
    /// OpenCSD's behaviour.
    pub opencsd: &'static str,
    /// The specification's rule, and its section.
    pub specification: &'static str,
    /// The difference from other deviations.
    pub recognised_by: &'static str,
    /// The evidence that OpenCSD deviates, not tracewalk.
    pub evidence: Evidence,
    /// Whether a difference is this deviation.
    pub recognises: fn(&Difference, &Place<'_>) -> bool,
}

/// The evidence for a deviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The bytes, and OpenCSD's reading of them.
    Readings,
    /// Our reading finds bytes wrong or irrelevant; accepted only for bytes that were damaged.
    Damage,
}
