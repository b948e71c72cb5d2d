//! Limits the memory that the contents of files take.
//!
//! A file's counts and sizes are checked against the file before they are used. That bounds memory by the
//! file's length, which may still exceed the available memory. [`MemoryLimit`] is the user's limit for
//! everything read from files: each part gets a share. Whatever exceeds its share is left out with a message.

use std::fmt;
use std::str::FromStr;

/// The memory limit for everything together. Without a number, the lengths of files bound memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryLimit(Option<u64>);

/// Why a text is not a memory limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseMemoryLimitError;

impl MemoryLimit {
    /// The least limit: in less memory, the program and its buffers do not fit.
    pub const LEAST: u64 = 32 << 20;

    /// A number of bytes, at least [`MemoryLimit::LEAST`].
    #[must_use]
    pub fn of(bytes: u64) -> Option<Self> {
        (bytes >= Self::LEAST).then_some(Self(Some(bytes)))
    }

    /// The number of bytes; `None` without a limit.
    #[must_use]
    pub const fn bytes(self) -> Option<u64> {
        self.0
    }

    /// The share of each of `users` concurrent users.
    #[must_use]
    pub fn shared_by(self, users: usize) -> Self {
        Self(self.0.map(|bytes| bytes / (users as u64).max(1)))
    }

    /// The share of one part: images, symbols, source lines, and decoding with its results get a quarter
    /// each.
    #[must_use]
    pub fn share(self) -> Option<u64> {
        self.0.map(|bytes| bytes / 4)
    }
}

impl FromStr for MemoryLimit {
    type Err = ParseMemoryLimitError;

    /// Parses a number of bytes, or of KiB, MiB or GiB if `K`, `M` or `G` follows.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (digits, shift) = match text.char_indices().next_back() {
            Some((at, 'K' | 'k')) => (&text[..at], 10),
            Some((at, 'M' | 'm')) => (&text[..at], 20),
            Some((at, 'G' | 'g')) => (&text[..at], 30),
            _ => (text, 0),
        };
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse::<u64>().ok().filter(|_| is_number);
        number
            .and_then(|number| number.checked_mul(1 << shift))
            .and_then(Self::of)
            .ok_or(ParseMemoryLimitError)
    }
}

impl fmt::Display for ParseMemoryLimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected at least {}M, for example 512M or 2G", MemoryLimit::LEAST >> 20)
    }
}

impl std::error::Error for ParseMemoryLimitError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_of_bytes_or_of_larger_units() {
        let limit = |text: &str| text.parse::<MemoryLimit>().ok().and_then(MemoryLimit::bytes);
        assert_eq!(limit("33554432"), Some(32 << 20));
        assert_eq!(limit("40000K"), Some(40_000 << 10));
        assert_eq!(limit("512M"), Some(512 << 20));
        assert_eq!(limit("2g"), Some(2 << 30));
        for wrong in ["", "M", "+64M", "64MB", "-1", "31M", "99999999999G", "0x40000000", "64 M", "64é"] {
            assert_eq!(limit(wrong), None, "{wrong}");
        }
    }
}
