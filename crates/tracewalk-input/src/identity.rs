//! The identity of a file, so that its unchanged contents need not be examined again.

use std::fs::File;
use std::time::{Duration, SystemTime};

/// A file as the system identifies it. Files with equal identities have the same contents, if the first one
/// is [settled](FileIdentity::is_settled).
///
/// Unix records the time of a file's last change, which cannot be set back. Other systems record no such
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The time after a change within which another change may get the same timestamp.
const TICK: Duration = Duration::from_secs(2);

impl FileIdentity {
    /// The identity of an open file.
    #[cfg(unix)]
    pub(crate) fn of(file: &File) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;

        let metadata = file.metadata().ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// On other systems, nothing shows that a file was not changed.
    #[cfg(not(unix))]
    pub(crate) const fn of(_: &File) -> Option<Self> {
        None
    }

    /// Whether the last change is old enough for the next one to get a different timestamp.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        [self.modified.0, self.changed.0].into_iter().all(|seconds| {
            u64::try_from(seconds).is_ok_and(|seconds| now > Duration::from_secs(seconds) + TICK)
        })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_written_to_is_another_one_even_if_its_time_is_set_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.bin");
        std::fs::write(&path, [1; 100]).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        let (first, modified) =
            (FileIdentity::of(&file).unwrap(), file.metadata().unwrap().modified().unwrap());
        assert!(!first.is_settled(), "it may be written to once more at the same time");
        assert_eq!(FileIdentity::of(&File::open(&path).unwrap()), Some(first));
        std::thread::sleep(Duration::from_millis(20));
        std::fs::write(&path, [2; 100]).unwrap();
        file.set_modified(modified).unwrap();
        let second = FileIdentity::of(&file).unwrap();
        assert_eq!((second.bytes, second.modified), (first.bytes, first.modified));
        assert_ne!(second, first);
    }
}
