//! One source's part of an output.

use std::fmt;

use tracewalk::ids::TraceId;

/// What an output says of a source before its first item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// The trace ID; `None` for a capture without IDs (one source's bytes, or an MTB's RAM).
    pub id: Option<TraceId>,
    /// The protocol's name, like `etmv3`.
    pub protocol: &'static str,
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "trace ID {id}, {}", self.protocol),
            None => write!(f, "one source without trace ID, {}", self.protocol),
        }
    }
}
