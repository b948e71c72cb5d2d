//! The name of a processor whose trace unit is not known.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A name that is no core with a known trace unit of a protocol: misspelt, or of a processor with another protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCore {
    name: String,
    protocol: &'static str,
    known: Vec<&'static str>,
}

impl UnknownCore {
    /// The name is none of these, which `protocol` has.
    pub(super) fn new(name: &str, protocol: &'static str, known: impl Iterator<Item = &'static str>) -> Self {
        Self { name: name.to_owned(), protocol, known: known.collect() }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the cores with a known trace unit of the protocol.
    #[must_use]
    pub fn known(&self) -> &[&'static str] {
        &self.known
    }
}

impl fmt::Display for UnknownCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, protocol, known } = self;
        write!(f, "found core `{}`, expected one with {protocol}", crate::plain::Plain(name))?;
        for (index, known) in known.iter().enumerate() {
            write!(f, "{}{known}", if index == 0 { ": " } else { ", " })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownCore {}
