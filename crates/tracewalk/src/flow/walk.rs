//! Following directives instruction by instruction.

/// The plain walk.
#[derive(Clone, Debug, Default)]
pub struct Walk;
