//! A file's bytes, shared without copying.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The bytes of a file: immutable, cheap to clone, readable as a slice.
///
/// How they are held is not told, so that a mapped file can take the place of memory.
#[derive(Clone, Default)]
pub struct Bytes(Arc<Vec<u8>>);

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({} bytes)", self.0.len())
    }
}
