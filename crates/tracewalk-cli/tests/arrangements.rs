//! Buffers whose bytes are not in order in the file: tracewalk names the arrangement and reads them all the same.

use std::fs;
use std::path::Path;

use crate::support::{Outcome, example, mentions, run};

fn write(directory: &Path, bytes: &[u8]) -> String {
    let file = directory.join("etb.bin");
    fs::write(&file, bytes).unwrap();
    file.display().to_string()
}

fn flow(file: &str, options: &[&str]) -> Outcome {
    run(["flow", file, "--format", "runs"].iter().chain(options))
}

fn swap(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
    bytes
}

#[test]
fn words_with_their_bytes_swapped_are_recognised_named_and_read() {
    let directory = tempfile::tempdir().unwrap();
    for (trace, elf) in [("a7-etmv3/trace.bin", "a7-etmv3/a9.elf"), ("m3-etmv3/trace.bin", "m3-etmv3/m3.elf")]
    {
        let (trace, elf) = (example(trace), example(elf));
        let elf = elf.to_str().unwrap();
        let whole = flow(trace.to_str().unwrap(), &["--image", elf]);
        let file = write(directory.path(), &swap(&fs::read(&trace).unwrap()));
        let found = flow(&file, &["--image", elf]);
        assert_eq!(found.status, 0, "{}", found.stderr);
        assert!(
            found.stderr.contains("inferred: --container swap-words --container frames"),
            "{}",
            found.stderr
        );
        assert!(found.stdout == whole.stdout, "{}", trace.display());
        let said = flow(&file, &["--image", elf, "--container", "swap-words"]);
        assert!(said.stdout == whole.stdout && !said.stderr.contains("swap-words"), "{}", said.stderr);
        let info = run(["info", &file, "--image", elf]);
        assert!(info.stdout.contains("byte order in words: swapped ("), "{}", info.stdout);
        assert!(info.stdout.contains("not as stored (nothing was recognised)"), "{}", info.stdout);
    }
}

#[test]
fn the_oldest_byte_of_a_buffer_of_any_size_is_found_without_a_program() {
    let whole = fs::read(example("m3-etmv3/trace.bin")).unwrap();
    let whole = &whole[..5 * 1024];
    let directory = tempfile::tempdir().unwrap();
    let etm = |file: &str, options: &[&str]| {
        let arguments = ["packets", file, "--format", "jsonl", "--id", "0x10"];
        let outcome = run(arguments.iter().chain(options));
        let packet = |line: &str| {
            let mut packet: serde_json::Value = serde_json::from_str(line).unwrap();
            packet.as_object_mut().unwrap().remove("offset");
            packet
        };
        (outcome.stdout.lines().map(packet).collect::<Vec<_>>(), outcome.stderr)
    };
    let (in_order, _) = etm(&write(directory.path(), whole), &["--container", "read-pointer=0"]);
    let (mut found, mut packets) = (0, 0);
    for newest in [0x400, 0x7f0, 0xa20, 0xc00] {
        let mut turned = whole.to_vec();
        turned.rotate_right(newest);
        let file = write(directory.path(), &turned);
        let (reported, stderr) = etm(&file, &[]);
        if !stderr.contains("read-pointer") {
            continue;
        }
        found += 1;
        // The packets reported are those traced, except before the first synchronisation and at the end.
        let is_traced = |packet: &&serde_json::Value| packet["packet"] != "unsynced";
        let reported = reported.iter().filter(is_traced).collect::<Vec<_>>();
        let inner = &reported[..reported.len() - 1];
        assert!(
            in_order.windows(inner.len()).any(|window| window.iter().eq(inner.iter().copied())),
            "{newest:#x}"
        );
        packets += inner.len();
        let info = run(["info", &file]).stdout;
        assert!(info.contains("oldest byte: at 0x") && info.contains("A-syncs of one source"), "{info}");
        let left_out = stderr.lines().find(|line| line.contains("the last bytes traced, up to ")).unwrap();
        assert!(left_out.starts_with("warning: oldest byte: at 0x"), "{left_out}");
        assert!(left_out.ends_with("choose with --container read-pointer"), "{left_out}");
    }
    assert!(found >= 3 && packets > in_order.len(), "{found}, {packets} of {}", in_order.len());
    // An explicit first byte is believed, and a buffer that did not wrap gets no report.
    let file = write(directory.path(), whole);
    assert!(!etm(&file, &[]).1.contains("read-pointer"));
}

#[test]
fn descriptions_say_where_bytes_stand() {
    let (trace, elf) = (example("a7-etmv3/trace.bin"), example("a7-etmv3/a9.elf"));
    let whole = fs::read(&trace).unwrap();
    let mut turned = whole.clone();
    turned.rotate_right(0x1230);
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), &swap(&turned));
    fs::copy(&elf, directory.path().join("a9.elf")).unwrap();
    let elf = directory.path().join("a9.elf").display().to_string();
    let options = ["--image", &elf, "--container", "read-pointer=0x1230,swap-words"];
    let described = directory.path().join("capture.toml").display().to_string();
    let outcome = run(["describe", &file, "-o", &described].iter().chain(&options));
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let text = fs::read_to_string(&described).unwrap();
    assert!(text.contains("read_pointer = 0x1230\nwords = \"swapped\"\n"), "{text}");
    let expected = fs::read_to_string(example("a7-etmv3/runs.txt")).unwrap();
    assert!(flow(&described, &[]).stdout == expected);
    assert!(flow(&file, &options).stdout == expected);
    // Offsets count from the start of the file.
    let packets = |file: &str, options: &[&str]| {
        let all = ["packets", file, "--format", "jsonl", "--container", "frames"];
        run(all.iter().chain(options)).stdout
    };
    let source = ["--source", "0x10=etmv3,cpu=cortex-a7,etmcr=0x5000"];
    let offset = |line: &str| -> usize {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        usize::try_from(line["offset"].as_u64().unwrap()).unwrap()
    };
    let (usual, moved) =
        (packets(trace.to_str().unwrap(), &source), packets(&file, &[&source[..], &options[2..]].concat()));
    assert_eq!(usual.lines().count(), moved.lines().count());
    for (usual, moved) in usual.lines().zip(moved.lines()) {
        assert_eq!(((offset(usual) + 0x1230) % whole.len()) ^ 3, offset(moved));
    }
}

#[test]
fn a_read_pointer_outside_of_the_buffer_is_refused() {
    let trace = example("a7-etmv3/trace.bin");
    let outcome = flow(trace.to_str().unwrap(), &["--container", "read-pointer=0x8000"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""));
    assert!(mentions(&outcome.stderr, "0x8000 13776"));
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
}
