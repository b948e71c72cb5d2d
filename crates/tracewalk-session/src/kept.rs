//! What takes long to make of a capture, and is the same when the capture is opened again.
//!
//! A [`Key`] is a hash of all that an answer depends on: the capture's bytes, how a source is read, the program, and this version. Where
//! answers are kept is the business of whoever implements [`Keep`]. The hash of a large file is kept as well, so that a file that has not
//! been changed since is not read for it.

use std::fmt;
use std::io::{self, Write};

use sha2::{Digest as _, Sha256};
use tracewalk_analysis::Code;
use tracewalk_analysis::drive::{Carrier, FlowIndex, Progress};
use tracewalk_input::Bytes;
use tracewalk_input::image::ImageError;

use crate::model::Source;
use crate::session::Session;

/// Keeps bytes from one opening of a capture to another.
pub trait Keep: fmt::Debug {
    /// What was kept under a key, as it was; `None` if there is nothing, or it is damaged.
    fn get(&self, key: &Key) -> Option<Vec<u8>>;

    /// Keeps bytes under a key, for as long as there is room.
    fn put(&self, key: &Key, bytes: &[u8]);

    /// An index that was kept is used: its source is not decoded, and what was said of it is not said again.
    fn used(&self) {}
}

/// What kept bytes were made of, as a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of what is made of several things, and of what `kind` says, in this order.
    #[must_use]
    pub fn of<'k>(kind: &str, parts: impl IntoIterator<Item = &'k Self>) -> Self {
        let mut hash = Hashing::new(kind);
        parts.into_iter().for_each(|part| hash.bytes(&part.0));
        hash.key()
    }

    /// Its bytes.
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
struct Hashing(Sha256);

impl Hashing {
    fn new(kind: &str) -> Self {
        let mut hash = Self(Sha256::new());
        hash.bytes(env!("CARGO_PKG_VERSION").as_bytes());
        hash.bytes(kind.as_bytes());
        hash
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Hashes what derived `Debug` says of a value: all of its fields.
    fn value(&mut self, value: &impl fmt::Debug) {
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
        // A hash takes everything.
        let _ = write!(into, "{value:?}");
        let bytes = into.1;
        self.0.update(bytes.to_le_bytes());
    }

    fn key(self) -> Key {
        Key(self.0.finalize().into())
    }
}

/// The key of a buffer's bytes. That of a file is kept under what the system says of the file, as long as that does not change.
fn bytes_key(bytes: &Bytes, keep: &dyn Keep) -> Key {
    let file = bytes.file().map(|file| {
        let mut hash = Hashing::new("file");
        hash.value(&file);
        (file, hash.key())
    });
    let known = file.as_ref().and_then(|(_, key)| keep.get(key)?.try_into().ok());
    if let Some(known) = known {
        return Key(known);
    }
    let mut hash = Hashing::new("bytes");
    hash.bytes(bytes);
    let key = hash.key();
    if let Some((_, file)) = file.filter(|(file, _)| file.is_settled()) {
        keep.put(&file, &key.0);
    }
    key
}

impl Session {
    /// The key of the capture's bytes, and of what was found out of how they lie in files. `None` while they are still arriving.
    #[must_use]
    pub fn capture_key(&self, keep: &dyn Keep) -> Option<Key> {
        if self.is_live() {
            return None;
        }
        let mut hash = Hashing::new("capture");
        for buffer in &self.capture.buffers {
            hash.bytes(&bytes_key(&buffer.bytes, keep).0);
            hash.value(&(&buffer.parts, &buffer.arrangement));
        }
        for itm in &self.itms {
            hash.value(&(itm.buffer, itm.id));
        }
        Some(hash.key())
    }

    /// The key of a source and its program `code`: of all that its flow depends on, and what is said of it.
    ///
    /// # Errors
    ///
    /// If an image cannot be used.
    pub fn source_key(&mut self, capture: &Key, source: &Source, code: &Code) -> Result<Key, ImageError> {
        let mut hash = Hashing::new("source");
        hash.bytes(&capture.0);
        hash.value(&(source.buffer, source.id, &source.config));
        match &source.carrier {
            Carrier::Frames { framing, id } => hash.value(&(framing, id)),
            Carrier::Indexed { index, id } => hash.value(&(index.framing(), index.sections(), id)),
            Carrier::Stretches(stretches) => hash.value(stretches),
        }
        for (scope, region) in code.program.regions_in_scopes() {
            hash.value(&(scope, region.start()));
            hash.bytes(region.bytes());
        }
        hash.value(&(code.program.vector_table(), code.profile, &code.interrupts, &code.threads));
        // Names and lines stand in the images, or beside them.
        for visible in self.images(source)? {
            hash.value(&(visible.scope, &visible.image.build_id));
            hash.bytes(visible.image.elf_bytes().map_or(&[], |bytes| bytes));
        }
        for function in code.symbols.functions() {
            hash.value(&(&function.name, function.start));
        }
        Ok(hash.key())
    }

    /// The index of a source's flow in its program, as somebody kept it under the source's key, or else decoded by so many threads at
    /// most, and kept. The index does not depend on that.
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
