//! A store for answers that take long to compute and are the same when the capture is opened again.
//!
//! A [`Key`] is a hash of everything that an answer depends on: the capture's bytes, a source's configuration, the
//! program, and this version. An implementation of [`Keep`] stores the bytes. The hash of a large file is kept as well,
//! so that an unchanged file is not read again.

use std::fmt;
use std::io::{self, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tracewalk_analysis::Code;
use tracewalk_analysis::drive::{Carrier, FlowIndex, Progress};
use tracewalk_input::Bytes;
use tracewalk_input::image::ImageError;

use crate::model::Source;
use crate::session::Session;

/// Keeps bytes from one opening of a capture to another.
pub trait Keep: fmt::Debug {
    /// The bytes that were kept under a key; `None` if there are none, or they are damaged.
    fn get(&self, key: &Key) -> Option<Vec<u8>>;

    /// Keeps bytes under a key, for as long as there is room.
    fn put(&self, key: &Key, bytes: &[u8]);

    /// Called when a kept index is used: its source is not decoded again, and gives no notices again.
    fn used(&self) {}
}

/// A hash of everything that kept bytes depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of something of this `kind` that depends on `parts`, in this order.
    #[must_use]
    pub fn of<'k>(kind: &str, parts: impl IntoIterator<Item = &'k Self>) -> Self {
        let mut hash = Hashing::new(kind);
        parts.into_iter().for_each(|part| hash.bytes(&part.0));
        hash.key()
    }

    /// The hash.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Hashes values one by one, each with its length, so that none can be taken for a part of another.
pub(crate) struct Hashing(Sha256);

impl Hashing {
    pub(crate) fn new(kind: &str) -> Self {
        let mut hash = Self(Sha256::new());
        hash.bytes(env!("CARGO_PKG_VERSION").as_bytes());
        hash.bytes(kind.as_bytes());
        hash
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Hashes a value by its derived `Debug`, which prints all of its fields.
    pub(crate) fn value(&mut self, value: &impl fmt::Debug) {
        struct Into<'a>(&'a mut Sha256, u64);
        impl Write for Into<'_> {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.update(bytes);
                self.1 += bytes.len() as u64;
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut into = Into(&mut self.0, 0);
        // Writing to a hash cannot fail.
        let _ = write!(into, "{value:?}");
        let bytes = into.1;
        self.0.update(bytes.to_le_bytes());
    }

    pub(crate) fn key(self) -> Key {
        Key(self.0.finalize().into())
    }
}

/// The key of a buffer's bytes. The key of a file's bytes is kept until the system reports that the file has changed.
pub(crate) fn bytes_key(bytes: &Bytes, keep: &dyn Keep) -> Key {
    of_file(bytes, ("file", &()), Some(keep), || {
        let mut hash = Hashing::new("bytes");
        hash.bytes(bytes);
        hash.key()
    })
}

/// A value made from the bytes of a file in the way that `kind` and `how` state: one that was kept, which needs no look
/// at the bytes, or else a new one, which is kept. If the bytes are not a file's, nothing is kept.
pub(crate) fn of_file<T: Serialize + DeserializeOwned>(
    bytes: &Bytes,
    (kind, how): (&str, &impl fmt::Debug),
    keep: Option<&dyn Keep>,
    make: impl FnOnce() -> T,
) -> T {
    let Some((keep, file)) = keep.zip(bytes.file()) else { return make() };
    let mut hash = Hashing::new(kind);
    hash.value(&(&file, how));
    let key = hash.key();
    if let Some(kept) = keep.get(&key).and_then(|bytes| postcard::from_bytes(&bytes).ok()) {
        return kept;
    }
    // If it changes while it is read, it is another file afterwards.
    let is_settled = file.is_settled();
    let made = make();
    if is_settled && let Ok(bytes) = postcard::to_allocvec(&made) {
        keep.put(&key, &bytes);
    }
    made
}

impl Session {
    /// The key of the capture's bytes, and of their inferred places in files. `None` while they are still arriving.
    #[must_use]
    pub fn capture_key(&self, keep: &dyn Keep) -> Option<Key> {
        if self.is_live() {
            return None;
        }
        let mut hash = Hashing::new("capture");
        for buffer in &self.capture.buffers {
            hash.bytes(bytes_key(&buffer.bytes, keep).bytes());
            hash.value(&(&buffer.parts, &buffer.arrangement));
        }
        for itm in &self.itms {
            hash.value(&(itm.buffer, itm.id));
        }
        Some(hash.key())
    }

    /// The key of a source and its program `code`: of everything that its flow and the names in it depend on.
    ///
    /// # Errors
    ///
    /// If an image cannot be used.
    pub fn source_key(&mut self, capture: &Key, source: &Source, code: &Code) -> Result<Key, ImageError> {
        let mut hash = Hashing::new("source");
        hash.bytes(capture.bytes());
        hash.value(&(source.buffer, source.id, &source.config));
        match &source.carrier {
            Carrier::Frames { framing, id } => hash.value(&(framing, id)),
            Carrier::Indexed { index, id } => hash.value(&(index.framing(), index.sections(), id)),
            Carrier::Stretches(stretches) => hash.value(stretches),
        }
        for (scope, region) in code.program.all_regions() {
            hash.value(&(scope, region.start()));
            hash.bytes(region.bytes());
        }
        hash.value(&(code.program.vector_table(), code.profile, &code.interrupts, &code.threads));
        // Names and lines are in the images, or beside them.
        for visible in self.images(source)? {
            hash.value(&(visible.scope, &visible.image.build_id));
            hash.bytes(visible.image.elf_bytes().map_or(&[], |bytes| bytes));
        }
        for function in code.symbols.functions() {
            hash.value(&(&function.name, function.start));
        }
        Ok(hash.key())
    }

    /// The index of a source's flow in its program: the one kept under the source's key, or else a new one, decoded by
    /// at most `threads` threads, and kept. The index does not depend on the number of threads.
    pub fn index_kept<'a>(
        &'a self,
        source: &Source,
        code: &'a Code,
        keep: Option<(&Key, &dyn Keep)>,
        progress: &'a dyn Progress,
        threads: u16,
    ) -> FlowIndex<'a> {
        let keep = keep.map(|(key, keep)| (Key::of("index", [key]), keep));
        let input = self.input(source, progress);
        let kept = keep.as_ref().and_then(|(key, keep)| keep.get(key));
        let kept = kept.and_then(|bytes| postcard::from_bytes(&bytes).ok());
        let of_kept = |kept| FlowIndex::of_kept(kept, &input, &source.config, &code.program);
        if let Some(index) = kept.and_then(of_kept) {
            if let Some((_, keep)) = keep {
                keep.used();
            }
            return index;
        }
        let threads = self.spread(threads, code).threads;
        let index = FlowIndex::by_threads(&input, &source.config, &code.program, threads);
        let bytes = keep.is_some().then(|| index.kept()).flatten();
        if let (Some((key, keep)), Some(bytes)) =
            (keep, bytes.and_then(|kept| postcard::to_allocvec(&kept).ok()))
        {
            keep.put(&key, &bytes);
        }
        index
    }
}
