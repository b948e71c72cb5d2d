//! A file's bytes, shared without copying.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

use crate::identity::FileIdentity;
use crate::mapped::Mapped;

/// The bytes of a file: immutable, cheap to clone, readable as a slice.
///
/// The storage is private. Large captures are mapped, so that they take none of the process's own memory. A
/// mapped file must not be shortened while it is read: the system ends the process when it accesses the
/// missing part.
#[derive(Clone)]
pub struct Bytes(Arc<Held>);

enum Held {
    Memory(Vec<u8>),
    Mapped(Mapped, Option<FileIdentity>),
}

impl Bytes {
    /// The bytes of an open file, mapped.
    pub(crate) fn map(file: &File) -> io::Result<Self> {
        // Taken before the bytes are read: if the file changes meanwhile, its new content is never cached
        // under the old identity.
        let identity = FileIdentity::of(file);
        Mapped::new(file).map(|mapped| Self(Arc::new(Held::Mapped(mapped, identity))))
    }

    /// The identity of the file, if the bytes are a whole mapped file and the system records when the file
    /// was changed.
    #[must_use]
    pub fn file(&self) -> Option<FileIdentity> {
        match &*self.0 {
            Held::Memory(_) => None,
            Held::Mapped(_, identity) => *identity,
        }
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Held::Memory(bytes)))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &*self.0 {
            Held::Memory(bytes) => bytes,
            Held::Mapped(mapped, _) => mapped,
        }
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({} bytes)", self.len())
    }
}
