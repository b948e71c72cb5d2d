//! A recording's cache serves the next debugger, changes nothing that it sees, and does no harm when damaged.

use std::fs;
use std::path::{Path, PathBuf};

use super::server::{Server, ask};
use crate::support::{example, run_with_kinds};

fn start(capture: &Path, cache: &Path) -> (Server, Vec<String>) {
    Server::with(&["--cache", cache.to_str().unwrap()], [capture])
}

/// Many of a debugger's questions: registers, threads and calls at places all over the recording.
fn answers(server: &Server) -> Vec<String> {
    let mut stream = server.connect();
    let mut answers = vec![ask(&mut stream, "qfThreadInfo")];
    for packet in ["bc", "c"] {
        answers.push(ask(&mut stream, packet));
        for _ in 0..50 {
            let step = if packet == "bc" { "s" } else { "bs" };
            answers.extend([step, "g", "qThreadExtraInfo,1"].map(|packet| ask(&mut stream, packet)));
        }
    }
    answers.push(ask(&mut stream, "D"));
    answers
}

fn files(cache: &Path) -> Vec<PathBuf> {
    let mut files = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    files.sort();
    files
}

fn has(kinds: &[String], kind: &str) -> bool {
    kinds.iter().any(|known| known == kind)
}

#[test]
fn the_second_server_uses_the_index_and_answers_the_same() {
    for name in ["m3-etmv3", "a57-etmv4", "a7-etmv3", "m0-crash-mtb"] {
        let (capture, cache) = (example(name).join("capture.toml"), tempfile::tempdir().unwrap());
        let without = answers(&Server::of([&capture]));
        let (first, kinds) = start(&capture, cache.path());
        assert!(!has(&kinds, "index_kept"), "{name}: {kinds:?}");
        assert!(answers(&first) == without, "{name}");
        drop(first);
        assert_eq!(files(cache.path()).len(), 2, "the index, and the calls");
        let times = || {
            let time = |file: &PathBuf| fs::metadata(file).unwrap().len();
            files(cache.path()).iter().map(time).collect::<Vec<_>>()
        };
        let before = times();
        let (second, kinds) = start(&capture, cache.path());
        assert!(has(&kinds, "index_kept"), "{name}: {kinds:?}");
        assert!(answers(&second) == without, "{name}");
        assert_eq!(times(), before);
    }
}

/// The index does not depend on the command that uses it.
#[test]
fn what_the_page_kept_serves_the_debugger() {
    let (capture, cache) = (example("a7-etmv3").join("capture.toml"), tempfile::tempdir().unwrap());
    let directory = cache.path().to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let capture_name = capture.to_str().unwrap();
    let outcome = run_with_kinds(["view", capture_name, "--cache", directory, "-o", page.to_str().unwrap()]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let (server, kinds) = start(&capture, cache.path());
    assert!(has(&kinds, "index_kept"), "{kinds:?}");
    assert!(answers(&server) == answers(&Server::of([&capture])));
}

#[test]
fn damaged_files_are_reported_and_made_again() {
    let (capture, cache) = (example("m0-crash-mtb").join("capture.toml"), tempfile::tempdir().unwrap());
    let expected = answers(&start(&capture, cache.path()).0);
    let kept =
        files(cache.path()).into_iter().map(|file| (fs::read(&file).unwrap(), file)).collect::<Vec<_>>();
    for (whole, file) in &kept {
        for length in [0, whole.len() / 2, whole.len()] {
            let mut bytes = whole[..length].to_vec();
            if length == whole.len() {
                bytes[length / 2] ^= 0x20;
            }
            fs::write(file, bytes).unwrap();
            let (server, kinds) = start(&capture, cache.path());
            assert!(has(&kinds, "kept_damaged"), "{kinds:?}");
            assert!(answers(&server) == expected);
            drop(server);
            assert!(fs::read(file).unwrap() == *whole, "it is made again");
        }
    }
}

/// For a program that was not the traced one nothing is cached: each run reports it.
#[test]
fn an_image_that_does_not_fit_is_reported_each_time() {
    let cache = tempfile::tempdir().unwrap();
    let (trace, other) = (example("m3-etmv3/trace.bin"), example("m0-crash-mtb/m0-crash.elf"));
    let options = ["--container=frames", "--source=0x10=etmv3,cpu=cortex-m3", "--listen", "-"];
    let outcome = || {
        let before = ["gdb", "--cache", cache.path().to_str().unwrap(), "--image", other.to_str().unwrap()];
        run_with_kinds(before.into_iter().chain(options).chain([trace.to_str().unwrap()]))
    };
    let (first, second) = (outcome(), outcome());
    assert_eq!((first.status, &first.stderr), (second.status, &second.stderr));
    assert!(first.stderr.contains("warning: image_refused: "), "{}", first.stderr);
    assert!(files(cache.path()).is_empty());
}
