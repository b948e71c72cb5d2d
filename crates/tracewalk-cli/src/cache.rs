//! The cache directory: keeps a capture's index, which takes long to make, for the next time.
//!
//! A file for each key: a head (the magic, the build that wrote it, the key, the length), the bytes, and the SHA-256 hash of all
//! of these. Any other file is ignored. The total size is bounded: the files unused for the longest time are removed first.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};
use tracewalk_session::{Keep, Key};

use crate::args::CacheArgs;
use crate::messages::Messages;

/// Keeps files in a directory.
#[derive(Debug)]
pub(crate) struct Cache<'m> {
    directory: PathBuf,
    /// How many bytes all files have together, at most.
    most: u64,
    build: [u8; 32],
    messages: &'m Messages,
    /// Messages that are not repeated.
    said: RefCell<BTreeSet<&'static str>>,
}

/// How many bytes all files have together, at most.
pub(crate) const MOST_BYTES: u64 = 1 << 30;

/// The beginning of a file: the version of its format.
const MAGIC: &[u8; 16] = b"tracewalk kept 1";

const HASH: usize = 32;

/// The length of the head: the magic, the build's hash, the key, and the number of bytes.
const HEAD: usize = MAGIC.len() + HASH + HASH + 8;

/// The extension of files; their name is the key.
const EXTENSION: &str = "kept";

impl<'m> Cache<'m> {
    /// The directory of the option, or the user's; `None` if the cache is off, or if there is no such directory.
    pub(crate) fn of(args: &CacheArgs, messages: &'m Messages) -> Option<Self> {
        if args.cache.as_ref().is_some_and(|directory| directory.as_os_str() == "none") {
            return None;
        }
        let directory = args.cache.clone().or_else(users_directory)?;
        Some(Self { directory, most: MOST_BYTES, build: build(), messages, said: RefCell::default() })
    }

    fn file(&self, key: &Key) -> PathBuf {
        self.directory.join(format!("{key}.{EXTENSION}"))
    }

    fn head(&self, key: &Key, bytes: u64) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        let parts: [&[u8]; 4] = [MAGIC, &self.build, key.bytes(), &bytes.to_le_bytes()];
        for (to, from) in head.iter_mut().zip(parts.concat()) {
            *to = from;
        }
        head
    }

    /// Writes a file atomically.
    fn write(&self, key: &Key, bytes: &[u8]) -> io::Result<()> {
        create(&self.directory)?;
        let head = self.head(key, bytes.len() as u64);
        let hash = Sha256::new().chain_update(head).chain_update(bytes).finalize();
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        [&head[..], bytes, &hash[..]].into_iter().try_for_each(|part| file.write_all(part))?;
        file.persist(self.file(key)).map_err(|error| error.error)?;
        self.make_room()
    }

    /// Removes the files unused for the longest time, until the rest is within the bound.
    fn make_room(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            // Another process may have removed it.
            let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else { continue };
            // Other files are not tracewalk's.
            if metadata.is_file() && is_own(&path) {
                files.push((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), metadata.len(), path));
            }
        }
        files.sort();
        let mut all = files.iter().map(|(_, bytes, _)| bytes).sum::<u64>();
        for (_, bytes, path) in &files {
            if all <= self.most {
                break;
            }
            fs::remove_file(path)?;
            all -= bytes;
        }
        Ok(())
    }
}

impl Keep for Cache<'_> {
    fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.file(key);
        let mut bytes = self.read(&path)?;
        let Some(length) = bytes.len().checked_sub(HEAD + HASH) else {
            return self.damaged(&path);
        };
        let (written, hash) = bytes.split_at(HEAD + length);
        if *Sha256::digest(written) != *hash {
            return self.damaged(&path);
        }
        // Another build may write other things under the same key.
        if !written.starts_with(&self.head(key, length as u64)) {
            return None;
        }
        // Marks the file as used. If that fails, the file is removed sooner.
        let _ =
            File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        bytes.truncate(HEAD + length);
        bytes.drain(..HEAD);
        Some(bytes)
    }

    fn put(&self, key: &Key, bytes: &[u8]) {
        // A large file must not displace all others.
        if bytes.len() as u64 > self.most / 4 {
            return;
        }
        if let Err(error) = self.write(key, bytes) {
            let directory = tracewalk::plain::Plain(self.directory.display());
            let text = format!(
                "cannot write to the cache directory {directory}: {error}; choose another one with --cache, or none with --cache none"
            );
            self.note_once("cannot_keep", &text);
        }
    }

    fn used(&self) {
        let note = "using the index of an earlier run, whose warnings about the trace are not repeated; --cache none decodes again";
        self.note_once("index_kept", note);
    }
}

impl Cache<'_> {
    /// The bytes of a file that is regular, the user's own, and no longer than [`Cache::put`] makes one.
    fn read(&self, path: &Path) -> Option<Vec<u8>> {
        // A pipe must not be opened: that would wait for its other end.
        let metadata = fs::symlink_metadata(path).ok()?;
        let is_short = metadata.len() <= self.most / 4 + (HEAD + HASH) as u64;
        if !(metadata.is_file() && is_ours(&metadata) && is_short) {
            return None;
        }
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(metadata.len()).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    fn note_once(&self, kind: &'static str, text: &str) {
        if self.said.borrow_mut().insert(kind) {
            self.messages.note(kind, text);
        }
    }

    fn damaged(&self, path: &Path) -> Option<Vec<u8>> {
        let path = tracewalk::plain::Plain(path.display());
        self.messages
            .warning("kept_damaged", format!("{path} is damaged; it is not used and will be rebuilt"));
        None
    }
}

/// Whether nobody but this user can have written a file.
#[cfg(unix)]
fn is_ours(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

#[cfg(not(unix))]
const fn is_ours(_: &fs::Metadata) -> bool {
    true
}

/// Whether a file has a name like the kept ones.
fn is_own(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    path.extension().is_some_and(|extension| extension == EXTENSION)
        && stem.len() == 2 * HASH
        && stem.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The user's cache directory, as the platform has it.
fn users_directory() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let directory = match std::env::consts::OS {
        "windows" => variable("LOCALAPPDATA"),
        "macos" => variable("HOME").map(|home| home.join("Library/Caches")),
        _ => variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache"))),
    };
    directory.map(|directory| directory.join("tracewalk"))
}

/// Creates the directory. Other users may not read it, because the files name functions.
fn create(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Identifies the build: two builds of one version may write different states.
fn build() -> [u8; 32] {
    let program = std::env::current_exe().and_then(fs::metadata);
    let facts = program.map(|metadata| (metadata.len(), metadata.modified().ok()));
    let facts = format!("{} {:?}", env!("CARGO_PKG_VERSION"), facts.ok());
    Sha256::digest(facts.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache<'m>(directory: &Path, most: u64, messages: &'m Messages) -> Cache<'m> {
        Cache { directory: directory.to_owned(), most, build: build(), messages, said: RefCell::default() }
    }

    #[test]
    fn what_is_kept_is_given_back() {
        let (folder, messages) = (tempfile::tempdir().unwrap(), Messages::default());
        let cache = cache(&folder.path().join("a/b"), 1 << 20, &messages);
        let (one, two) = (Key::of("one", []), Key::of("two", []));
        assert_eq!(cache.get(&one), None);
        cache.put(&one, b"first");
        cache.put(&two, b"");
        assert_eq!((cache.get(&one), cache.get(&two)), (Some(b"first".to_vec()), Some(Vec::new())));
        cache.put(&one, b"second");
        assert_eq!(cache.get(&one), Some(b"second".to_vec()));
        let other = Cache { build: [0; 32], ..cache };
        assert_eq!(other.get(&one), None, "another build's");
    }

    #[test]
    fn a_damaged_file_is_not_used() {
        let (folder, messages) = (tempfile::tempdir().unwrap(), Messages::default());
        let cache = cache(folder.path(), 1 << 20, &messages);
        let (key, other) = (Key::of("key", []), Key::of("other", []));
        cache.put(&key, b"some bytes");
        let whole = fs::read(cache.file(&key)).unwrap();
        for at in 0..whole.len() {
            for bit in [0, 7] {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                fs::write(cache.file(&key), damaged).unwrap();
                assert_eq!(cache.get(&key), None, "byte {at}");
            }
            fs::write(cache.file(&key), &whole[..at]).unwrap();
            assert_eq!(cache.get(&key), None, "{at} bytes");
        }
        fs::write(cache.file(&key), [&whole[..], &[0]].concat()).unwrap();
        assert_eq!(cache.get(&key), None, "a byte more");
        // The file of another key, under this key's name.
        cache.put(&other, b"other bytes");
        fs::copy(cache.file(&other), cache.file(&key)).unwrap();
        assert_eq!(cache.get(&key), None);
        cache.put(&key, b"some bytes");
        assert_eq!(cache.get(&key), Some(b"some bytes".to_vec()));
    }

    #[cfg(unix)]
    #[test]
    fn only_regular_files_of_this_user_are_read() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let (folder, messages) = (tempfile::tempdir().unwrap(), Messages::default());
        let cache = cache(folder.path(), 1 << 20, &messages);
        let (key, linked) = (Key::of("key", []), Key::of("linked", []));
        cache.put(&key, b"some bytes");
        symlink("/dev/zero", cache.file(&linked)).unwrap();
        assert_eq!(cache.get(&linked), None);
        fs::set_permissions(cache.file(&key), fs::Permissions::from_mode(0o622)).unwrap();
        assert_eq!(cache.get(&key), None, "anybody may have written it");
    }

    #[test]
    fn the_oldest_files_make_room() {
        let (folder, messages) = (tempfile::tempdir().unwrap(), Messages::default());
        let cache = cache(folder.path(), 10_000, &messages);
        let foreign = folder.path().join("notes.kept");
        fs::write(&foreign, [0; 20_000]).unwrap();
        let keys = [0, 1, 2, 3, 4, 5, 6, 7].map(|number: u8| Key::of(&number.to_string(), []));
        let old = |key: &Key, seconds| {
            let file = File::options().append(true).open(cache.file(key)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
        };
        for (key, seconds) in keys.iter().zip(1..) {
            cache.put(key, &[7; 2000]);
            old(key, seconds);
            // The first file is used again and again.
            assert!(cache.get(&keys[0]).is_some());
        }
        let left = keys.map(|key| cache.file(&key).exists());
        assert_eq!(left, [true, false, false, false, false, true, true, true]);
        assert!(foreign.exists(), "somebody else's");
        cache.put(&keys[1], &[7; 2600]);
        assert!(!cache.file(&keys[1]).exists(), "too large");
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_no_error() {
        let (folder, messages) = (tempfile::tempdir().unwrap(), Messages::default());
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let cache = cache(&file, 1 << 20, &messages);
        let key = Key::of("key", []);
        cache.put(&key, b"bytes");
        assert_eq!(cache.get(&key), None);
    }
}
