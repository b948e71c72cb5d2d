//! A DSTREAM unit's file of blocks, in a snapshot and alone.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use crate::support::{corpus, run};
use serde_json::Value;

const SOURCE: [&str; 2] = ["--source", "1=etmv4,cpu=cortex-a55"];

fn packets(arguments: &[&str]) -> String {
    run(["packets", "--format", "jsonl"].iter().chain(arguments)).stdout
}

fn kind(packet: &Value) -> &str {
    packet["packet"].as_str().expect("a name")
}

/// A packet in OpenCSD's listing: its place in the blocks' payload, and our name for its kind.
fn listed(line: &str) -> (u64, &'static str) {
    let (index, rest) = line.strip_prefix("Idx:").and_then(|rest| rest.split_once(';')).expect("an index");
    let name = rest.split_whitespace().nth(1).expect("a name");
    let kind = [
        ("I_ATOM", "atom"),
        ("I_ASYNC", "a_sync"),
        ("I_TRACE_INFO", "trace_info"),
        ("I_TRACE_ON", "trace_on"),
        ("I_ADDR", "address"),
        ("I_COMMIT", "commit"),
    ];
    let kind = kind.iter().find(|(start, _)| name.starts_with(start)).map_or("malformed", |(_, kind)| kind);
    (index.parse().expect("a number"), kind)
}

fn listing(path: &Path) -> Vec<(u64, &'static str)> {
    let file = std::fs::File::open(path).expect("the corpus is complete");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip");
    text.lines().map(listed).collect()
}

/// OpenCSD and tracewalk list the same packets up to the first damaged place. There OpenCSD continues at
/// once, and tracewalk waits for an A-sync.
#[tracewalk_corpus::test]
fn packets_in_blocks_are_those_that_opencsd_lists() {
    let folder = corpus("etm4/a55-test-tpiu");
    let snapshot = packets(&[folder.to_str().expect("a plain name")]);
    let snapshot = snapshot.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<Value>>();
    let listed = listing(&folder.join("packets.ppl.gz"));
    let sound = listed.iter().take_while(|(_, kind)| *kind != "malformed").map(|(_, kind)| *kind);
    let sound = sound.collect::<Vec<_>>();
    assert_eq!(sound.len(), 10088);
    let found = snapshot.iter().map(kind).take(sound.len()).collect::<Vec<_>>();
    assert!(found == sound, "packets differ from those that OpenCSD lists");
    let (index, last) = *listed.last().expect("packets");
    let found = snapshot.last().expect("packets");
    // 504 of a block's 512 bytes are trace.
    assert_eq!((found["offset"].as_u64(), kind(found)), (Some(index / 504 * 512 + index % 504), last));
    let counts = listed.iter().fold(BTreeMap::<_, usize>::new(), |mut counts, (_, kind)| {
        *counts.entry(*kind).or_default() += 1;
        counts
    });
    let is_of = |wanted: &str| snapshot.iter().filter(|packet| kind(packet) == wanted).count();
    assert_eq!((is_of("a_sync"), is_of("commit")), (counts["a_sync"], counts["commit"]));
}

#[tracewalk_corpus::test]
fn a_file_of_blocks_without_a_description_is_known_by_its_footers() {
    let folder = corpus("etm4/a55-test-tpiu");
    let (snapshot, file) = (folder.to_str().expect("a plain name"), folder.join("DSTREAM_0.bin"));
    let described = packets(&[snapshot]);
    let alone = packets(&[&[file.to_str().expect("a plain name")], &SOURCE[..]].concat());
    let lines = described.lines().count();
    assert!(lines > 20000 && described == alone, "{lines} {}", alone.lines().count());

    let temporary = tempfile::tempdir().expect("a folder");
    let copy = temporary.path().join("DSTREAM_0.bin");
    std::fs::copy(&file, &copy).expect("a copy");
    let written = temporary.path().join("capture.toml");
    let [copy, written] = [&copy, &written].map(|path| path.to_str().expect("a plain name"));
    let outcome = run(["describe", copy, "-o", written].iter().chain(&SOURCE));
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert!(packets(&[written]) == described, "the description says something else");
    let text = std::fs::read_to_string(written).expect("a description");
    assert!(text.contains("blocks = \"dstream\""), "{text}");
}
