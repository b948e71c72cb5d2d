//! A capture's cache serves the next opening, changes no answer, and does no harm when damaged.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Served, repeated};
use crate::support::example;

/// The number of bytes of trace that were decoded.
fn decoded(served: &Served) -> u64 {
    served.counted();
    served.ask("status")["decoded"].as_u64().unwrap()
}

fn open(capture: &Path, cache: &Path) -> Served {
    Served::with(&["--cache", cache.to_str().unwrap()], [capture])
}

/// Many of a page's questions.
fn answers(served: &Served) -> Vec<Value> {
    let capture = served.ask("capture");
    let mut answers = vec![capture.clone()];
    for (source, summary) in capture["sources"].as_array().unwrap().iter().enumerate() {
        let steps = summary["steps"].as_u64().unwrap();
        let mut ask = |question: &str| answers.push(served.ask(&format!("{question}&source={source}")));
        for from in (0..steps).step_by(4096) {
            ask(&format!("rows?from={from}&count=4096"));
        }
        ask(&format!("timeline?from=0&to={steps}&width=1000"));
        ask("costs?step=0");
        ask("texts?step=0");
        for number in 0..40 {
            let step = number * 7919 % steps.max(1);
            ask(&format!("here?step={step}"));
            ask(&format!("function?step={step}"));
            for what in ["line", "function", "exception", "gap", "call"] {
                ask(&format!("move?step={step}&what={what}&back={}", number % 2 == 0));
            }
        }
        let files = answers.iter().filter_map(|answer| answer["row"]["file"].as_str());
        let files = files.map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
        answers.extend(files.iter().map(|file| served.ask(&format!("file?file={file}"))));
    }
    answers
}

fn files(cache: &Path) -> Vec<PathBuf> {
    let mut files = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    files.sort();
    files
}

fn damaged(folder: &Path) -> PathBuf {
    let capture = repeated("m3-etmv3", 1, folder);
    let trace = folder.join("trace.bin");
    let mut bytes = fs::read(&trace).unwrap();
    bytes.drain(2000..2160);
    bytes[4000] ^= 0x10;
    fs::write(&trace, bytes).unwrap();
    capture
}

/// The example's bytes on a trace port, with FSYNCs between the frames and HSYNCs in them.
fn port(folder: &Path) -> PathBuf {
    let capture = repeated("a7-etmv3", 48 << 10, folder);
    let trace = folder.join("trace.bin");
    let with_half_sync = |frame: &[u8]| [&frame[..6], &[0xff, 0x7f], &frame[6..]].concat();
    let with_syncs = |frames: &[u8]| {
        [&[0xff, 0xff, 0xff, 0x7f], &with_half_sync(&frames[..16])[..], &frames[16..]].concat()
    };
    let bytes = fs::read(&trace).unwrap().chunks_exact(64 * 16).flat_map(with_syncs).collect::<Vec<_>>();
    fs::write(&trace, bytes).unwrap();
    let description = fs::read_to_string(&capture).unwrap();
    assert!(description.contains("container = \"frames\""), "{description}");
    fs::write(&capture, description.replace("container = \"frames\"", "container = \"tpiu\"")).unwrap();
    capture
}

#[test]
fn the_second_opening_decodes_nothing_and_answers_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let examples = ["a15-pft", "a57-etmv4", "m0-crash-mtb"];
    let captures = examples.iter().map(|name| example(name).join("capture.toml"));
    let ports = tempfile::tempdir().unwrap();
    for capture in captures.chain([damaged(folder.path()), port(ports.path())]) {
        let cache = tempfile::tempdir().unwrap();
        let without = answers(&Served::start([&capture]));
        let first = open(&capture, cache.path());
        assert!(decoded(&first) > 0);
        assert!(answers(&first) == without, "{}", capture.display());
        drop(first);
        assert_eq!(files(cache.path()).len(), 2, "the index, and what is shown of it");
        let second = open(&capture, cache.path());
        assert_eq!(decoded(&second), 0, "{}", capture.display());
        assert!(answers(&second) == without, "{}", capture.display());
    }
}

/// A cache belongs to one capture and one way to read it.
#[test]
fn another_capture_image_or_option_has_a_key_of_its_own() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let capture = repeated("a7-etmv3", 1, folder.path());
    assert!(decoded(&open(&capture, cache.path())) > 0);
    assert_eq!(decoded(&open(&capture, cache.path())), 0);
    let with = ["--cache", cache.path().to_str().unwrap(), "--doubtful", "keep"];
    assert!(decoded(&Served::with(&with, [&capture])) > 0, "another option");
    let trace = folder.path().join("trace.bin");
    let mut bytes = fs::read(&trace).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&trace, bytes).unwrap();
    assert!(decoded(&open(&capture, cache.path())) > 0, "another capture");
    assert_eq!(decoded(&open(&capture, cache.path())), 0);
    // The last byte of the ELF file is in its section headers, which are not executed.
    let image = folder.path().join("a9.elf");
    let mut bytes = fs::read(&image).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&image, bytes).unwrap();
    assert!(decoded(&open(&capture, cache.path())) > 0, "another image");
}

/// Raw bytes lack the names and lines that are part of other keys.
#[test]
fn another_image_of_raw_bytes_has_a_key_of_its_own() {
    /// The program's place in the ELF file, and its address.
    const SEGMENT: (std::ops::Range<usize>, &str) = (0x4000..0xc058, "0x60000000");
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let capture = repeated("a7-etmv3", 1, folder.path());
    let mut bytes = fs::read(folder.path().join("a9.elf")).unwrap()[SEGMENT.0].to_vec();
    let image = folder.path().join("a9.bin");
    fs::write(&image, &bytes).unwrap();
    let described = fs::read_to_string(&capture).unwrap();
    let raw = format!("file = \"a9.bin\"\naddress = {}", SEGMENT.1);
    fs::write(&capture, described.replace("file = \"a9.elf\"", &raw)).unwrap();
    assert!(decoded(&open(&capture, cache.path())) > 0);
    assert_eq!(decoded(&open(&capture, cache.path())), 0);
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&image, bytes).unwrap();
    assert!(decoded(&open(&capture, cache.path())) > 0, "another image");
}

#[test]
fn damaged_files_are_not_used_and_made_again() {
    let cache = tempfile::tempdir().unwrap();
    let capture = example("m0-crash-mtb").join("capture.toml");
    let first = open(&capture, cache.path());
    first.counted();
    let expected = answers(&first);
    drop(first);
    let kept =
        files(cache.path()).into_iter().map(|file| (fs::read(&file).unwrap(), file)).collect::<Vec<_>>();
    let flipped = |bytes: &[u8], part: usize| {
        let mut bytes = bytes.to_vec();
        let at = (bytes.len() - 1) * part / 8;
        bytes[at] ^= 0x20;
        bytes
    };
    for part in 0..=8 {
        for (bytes, file) in &kept {
            fs::write(file, flipped(bytes, part)).unwrap();
        }
        let served = open(&capture, cache.path());
        assert!(decoded(&served) > 0, "part {part}");
        assert!(answers(&served) == expected, "part {part}");
        drop(served);
        for (bytes, file) in &kept {
            assert!(fs::read(file).unwrap() == *bytes, "part {part}: it is made again");
        }
    }
    for part in 0..4 {
        for (bytes, file) in &kept {
            fs::write(file, &bytes[..bytes.len() * part / 4]).unwrap();
        }
        assert!(answers(&open(&capture, cache.path())) == expected, "{part} of four parts");
    }
}

/// A large file is hashed once, and again after a change, even if its time was set back.
#[test]
#[cfg(unix)]
fn the_hash_of_a_large_file_is_kept_as_long_as_the_file_is_not_changed() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let capture = repeated("m3-etmv3", 5 << 20, folder.path());
    // Until then a change within the same tick of the clock would be possible.
    std::thread::sleep(std::time::Duration::from_millis(3100));
    assert!(decoded(&open(&capture, cache.path())) > 0);
    assert_eq!(files(cache.path()).len(), 4, "the hash, the frames, the index, and what is shown of it");
    assert_eq!(decoded(&open(&capture, cache.path())), 0);
    let trace = fs::File::options().read(true).write(true).open(folder.path().join("trace.bin")).unwrap();
    let modified = trace.metadata().unwrap().modified().unwrap();
    std::os::unix::fs::FileExt::write_all_at(&trace, &[0x77], 3 << 20).unwrap();
    trace.set_modified(modified).unwrap();
    assert!(decoded(&open(&capture, cache.path())) > 0, "the file was changed");
    assert_eq!(fs::metadata(folder.path().join("trace.bin")).unwrap().modified().unwrap(), modified);
}
