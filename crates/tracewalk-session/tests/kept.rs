//! The frames of a large file are located once, as long as the file does not change.
#![cfg(unix)]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tracewalk_session::{Keep, Key, Notices, Request, Session};

/// Keeps everything, and counts the values that it returned.
#[derive(Debug, Default)]
struct Memory {
    kept: RefCell<HashMap<Key, Vec<u8>>>,
    found: Cell<usize>,
}

impl Keep for Memory {
    fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let kept = self.kept.borrow().get(key).cloned()?;
        self.found.set(self.found.get() + 1);
        Some(kept)
    }

    fn put(&self, key: &Key, bytes: &[u8]) {
        self.kept.borrow_mut().insert(*key, bytes.to_vec());
    }
}

/// Everything known of the frames, and of the sources in them.
fn opened(capture: &Path, keep: Option<&dyn Keep>) -> String {
    let notices = Notices::default();
    let session = Session::open_kept(Request::new(capture), keep, &notices).expect("a capture");
    format!("{:?} {:?} {:?}", session.contents(), session.sources(), notices.into_vec())
}

/// The example's trace, repeated until the file is large enough to be mapped.
fn repeated(folder: &Path) -> (PathBuf, Vec<u8>) {
    let example = Path::new("../../testdata/examples/a15-pft");
    let trace = fs::read(example.join("trace.bin")).expect("the example");
    let many = trace.repeat((5 << 20) / trace.len() + 1);
    let mut bytes = many;
    bytes.truncate(bytes.len() / 16 * 16);
    let capture = folder.join("trace.bin");
    fs::write(&capture, &bytes).expect("a folder");
    (capture, bytes)
}

/// Waits until the next change gives the file another time. Before that, nothing of the file is kept.
fn settle() {
    std::thread::sleep(Duration::from_millis(3100));
}

#[test]
fn the_frames_of_a_file_are_kept_as_long_as_it_is_not_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (capture, mut bytes) = repeated(folder.path());
    let keep = Memory::default();
    let expected = opened(&capture, None);
    settle();
    assert_eq!(opened(&capture, Some(&keep)), expected);
    assert_eq!((keep.kept.borrow().len(), keep.found.get()), (1, 0));
    assert_eq!(opened(&capture, Some(&keep)), expected);
    assert_eq!((keep.kept.borrow().len(), keep.found.get()), (1, 1));

    // The following bytes have ID 0, which is no source's.
    bytes[3 << 20] = 0x01;
    fs::write(&capture, &bytes).expect("a folder");
    let changed = opened(&capture, None);
    assert_ne!(changed, expected);
    assert_eq!(opened(&capture, Some(&keep)), changed);
    assert_eq!(keep.found.get(), 1);
}

/// A capture with missing bytes, or with synchronisation between the frames, is kept as well.
#[test]
fn frames_among_other_things_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let (capture, frames) = repeated(folder.path());
    let mut damaged = frames.clone();
    damaged.drain(3 << 20..(3 << 20) + 5);
    let port =
        frames.chunks(64 * 16).flat_map(|frames| [&[0xff, 0xff, 0xff, 0x7f], frames].concat()).collect();
    for bytes in [damaged, port] {
        fs::write(&capture, &bytes).expect("a folder");
        settle();
        let keep = Memory::default();
        let expected = opened(&capture, None);
        for found in 0..2 {
            assert_eq!(opened(&capture, Some(&keep)), expected);
            assert_eq!((keep.kept.borrow().len(), keep.found.get()), (1, found));
        }
    }
}
