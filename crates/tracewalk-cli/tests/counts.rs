//! Counts against the emulator's records, against another decoder, and through the tools that consume them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{corpus, example, run};

const EXAMPLES: [&str; 6] = ["m3-etmv3", "a7-etmv3", "a15-pft", "a53-etmv4", "a57-etmv4", "m33-etmv4"];

fn capture(name: &str) -> String {
    example(name).join("capture.toml").to_str().unwrap().to_owned()
}

/// The output of a command that reports nothing on stderr.
fn printed(arguments: &[&str]) -> String {
    let outcome = run(arguments.iter().chain(&["--quiet"]));
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""), "{arguments:?}");
    outcome.stdout
}

/// The rows of a table of `counts`, by the names of the columns.
fn rows(arguments: &[&str], table: &str) -> Vec<BTreeMap<String, String>> {
    let csv = printed(&[&["counts"], arguments, &["--format", "csv", "--table", table]].concat());
    let mut lines = csv.lines();
    let names = lines.next().unwrap().split(',').map(str::to_owned).collect::<Vec<_>>();
    lines.map(|line| names.iter().cloned().zip(line.split(',').map(str::to_owned)).collect()).collect()
}

fn address(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// The emulator's record, counted: executions of each of these instructions, and branches taken to each place.
#[derive(Debug, Default, PartialEq)]
struct Truth {
    passes: BTreeMap<u64, u64>,
    taken: BTreeMap<u64, u64>,
    /// How often a branch was taken to an address outside the program.
    nowhere: u64,
}

impl Truth {
    /// Reads `runs.txt`, and counts passes of these instructions.
    fn of(runs: &Path, instructions: &BTreeSet<u64>) -> Self {
        let mut truth = Self::default();
        // The end of the previous run, if the next line follows from it.
        let mut ended = None;
        for line in std::fs::read_to_string(runs).unwrap().lines() {
            match *line.split(' ').collect::<Vec<_>>() {
                ["R", start, end, _] => {
                    let (start, end) = (address(start), address(end));
                    if ended.is_some() {
                        *truth.taken.entry(start).or_default() += 1;
                    }
                    for at in instructions.range(start..end) {
                        *truth.passes.entry(*at).or_default() += 1;
                    }
                    ended = Some(end);
                }
                // An exception before a branch's target executes: the handler returns to the target. An
                // undefined instruction ends its run, and its handler returns to that instruction, so it
                // shows no branch.
                ["X", "9", _] => ended = None,
                ["X", _, to] => {
                    let branched = ended.take().zip((to != "-").then(|| address(to)));
                    if let Some((_, to)) = branched.filter(|(ended, to)| ended != to) {
                        *truth.taken.entry(to).or_default() += 1;
                    }
                }
                _ => ended = None,
            }
        }
        // A branch within the program may lead to an instruction that aborts every time, and so never ran.
        let program = *instructions.first().unwrap()..=*instructions.last().unwrap();
        let nowhere = truth.taken.extract_if(.., |to, _| !program.contains(to));
        truth.nowhere = nowhere.map(|(_, count)| count).sum();
        truth
    }
}

/// A capture's counts, and the addresses of the instructions counted.
fn counted(arguments: &[&str]) -> (Truth, BTreeSet<u64>) {
    let rows_of_ranges = rows(arguments, "ranges");
    // In these programs, T32 branches to the next instruction have two bytes.
    let has_words = |row: &&BTreeMap<String, String>| row["isa"] != "T32";
    let words = rows_of_ranges.iter().filter(has_words).map(|row| address(&row["last"]));
    let words = words.collect::<BTreeSet<_>>();
    let ranges = rows_of_ranges
        .iter()
        .map(|row| (address(&row["first"]), address(&row["last"]), row["count"].parse::<u64>().unwrap()));
    let ranges = ranges.collect::<Vec<_>>();
    let instructions = ranges.iter().flat_map(|(first, last, _)| [*first, *last]).collect::<BTreeSet<_>>();
    let mut truth = Truth::default();
    for (first, last, count) in ranges {
        for at in instructions.range(first..=last) {
            *truth.passes.entry(*at).or_default() += count;
        }
    }
    for row in rows(arguments, "branches").iter().filter(|row| row["way"] != "not_taken") {
        let from = address(&row["from"]);
        let next = from + if words.contains(&from) { 4 } else { 2 };
        let count = row["count"].parse::<u64>().unwrap();
        match row["to"].as_str() {
            "" => truth.nowhere += count,
            // A branch to the next instruction ends no run.
            to if address(to) == next => {}
            to => *truth.taken.entry(address(to)).or_default() += count,
        }
    }
    (truth, instructions)
}

#[test]
fn counts_are_those_of_the_emulators_record() {
    for name in EXAMPLES {
        let capture = capture(name);
        let (found, instructions) = counted(&[&capture]);
        assert_eq!(found, Truth::of(&example(name).join("runs.txt"), &instructions), "{name}");
        assert!(instructions.len() > 100 && found.taken.len() > 50, "{name}");
    }
}

#[test]
fn what_is_saved_apart_and_merged_is_what_is_counted_together() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [one, other, both, merged] = ["one", "other", "both", "merged"].map(file);
    let [a, b] = ["a15-pft", "a53-etmv4"].map(capture);
    for (inputs, file) in [(vec![&a], &one), (vec![&b], &other), (vec![&a, &b], &both)] {
        let inputs = inputs.into_iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(printed(&[&["counts"], &inputs[..], &["--save", file]].concat()), "");
    }
    printed(&["counts", &other, &one, "--save", &merged]);
    assert_eq!(std::fs::read(&merged).unwrap(), std::fs::read(&both).unwrap());
    // No program is needed.
    for (command, format) in
        [("counts", "json"), ("counts", "text"), ("counts", "profgen"), ("counts", "bolt")]
    {
        let print = |inputs: &[&str]| printed(&[&[command], inputs, &["--format", format]].concat());
        assert_eq!(print(&[&merged]), print(&[&a, &b]), "{command} {format}");
    }
    // Both inputs are counted.
    let count = |arguments: &[&str]| {
        let counts = rows(arguments, "ranges").into_iter().map(|row| row["count"].parse::<u64>().unwrap());
        counts.sum::<u64>()
    };
    assert_eq!(count(&[&merged]), count(&[&a]) + count(&[&b]));
}

#[test]
fn counts_of_runs_that_loaded_other_files_stand_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [one, other, merged] = ["one", "other", "merged"].map(file);
    let [a, b] = ["a15-pft", "m3-etmv3"].map(capture);
    for (input, file) in [(&a, &one), (&b, &other)] {
        printed(&["counts", input, "--save", file]);
    }
    printed(&["counts", &one, &other, "--save", &merged]);
    let [a, b] = [&one, &other].map(|file| rows(&[file], "ranges"));
    let [mut apart, mut together] = [[a, b].concat(), rows(&[&merged], "ranges")];
    [&mut apart, &mut together].into_iter().for_each(|list| list.sort());
    assert_eq!(apart, together);
    let ids = together.iter().map(|row| &row["build_id"]).collect::<BTreeSet<_>>();
    assert_eq!(ids.len(), 2);
}

#[test]
fn what_cannot_be_written_is_said_by_kind() {
    let (m3, a15) = (capture("m3-etmv3"), capture("a15-pft"));
    for (arguments, kind) in [
        (vec!["counts", "--format", "profgen", &m3, "--binary", "other.elf"], "no_such_binary"),
        (vec!["counts", "--format", "profgen", &m3, &a15], "several_binaries"),
        (vec!["counts", &m3, "--format", "bolt", "--binary", "a9.elf"], "no_such_binary"),
    ] {
        let outcome = run(arguments.iter().chain(&["--messages", "json"]));
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(
            outcome.stderr.contains(&format!("\"kind\":\"{kind}\"")),
            "{arguments:?}: {}",
            outcome.stderr
        );
    }
    let chosen = printed(&["counts", "--format", "profgen", &m3, &a15, "--binary", "m3.elf"]);
    assert_eq!(chosen, printed(&["counts", "--format", "profgen", &m3]));
}

/// A real capture of a Linux process (its source in the corpus' README), with a program and two libraries where the loader put them.
fn process(folder: &Path) -> Vec<String> {
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let images = [("aaaadd370000", "fib"), ("ffff9d470000", "ld-2.31.so"), ("ffff9d2fd000", "libc-2.31.so")];
    let mut arguments = vec![at("trace1/cstrace.bin")];
    for (address, name) in images {
        arguments.extend(["--image".to_owned(), format!("0x{address}:{}", at(name))]);
    }
    arguments
}

/// A branch by the name of its binary and its addresses in memory, and how often it was taken.
type Taken = BTreeMap<(u64, u64), u64>;

#[tracewalk_corpus::test]
fn perf_lists_the_branches_that_are_counted() {
    let folder = corpus("linux/ricsec/tests/fib");
    let list = corpus("linux/made/ricsec-fib-etmv4.branches.txt");
    let process = process(&folder);
    let process = process.iter().map(String::as_str).collect::<Vec<_>>();
    // The three files are linked so that an executed address equals its offset in the file.
    let bases =
        [("fib", 0xaaaa_dd37_0000), ("ld-2.31.so", 0xffff_9d47_0000), ("libc-2.31.so", 0xffff_9d2f_d000)];
    let bases = BTreeMap::from(bases);
    let mut found = Taken::new();
    for row in rows(&process, "branches") {
        if row["way"] != "not_taken" && !row["from"].is_empty() && !row["to"].is_empty() {
            let base = bases[row["binary"].as_str()];
            let branch = (base + address(&row["from"]), base + address(&row["to"]));
            *found.entry(branch).or_default() += row["count"].parse::<u64>().unwrap();
        }
    }
    let file = |at: u64| bases.values().filter(|base| **base <= at).max();
    let mut expected = Taken::new();
    for line in std::fs::read_to_string(list).unwrap().lines() {
        let (from, to) = line.split_once(' ').unwrap();
        let (from, to) = (address(from), address(to));
        if from != 0 && to != 0 && file(from) == file(to) {
            *expected.entry((from, to)).or_default() += 1;
        }
    }
    // If an exception precedes the branch's target, perf lists no branch, and the trace gives the target.
    let mut interrupted = 0;
    for (branch, count) in &found {
        let listed = expected.remove(branch).unwrap_or_default();
        assert!(listed <= *count, "{branch:x?}: perf lists {listed}, and {count} are counted");
        interrupted += count - listed;
    }
    assert!(expected.is_empty(), "not counted: {expected:x?}");
    let flow = printed(&[&["flow"], &process[..], &["--format", "jsonl"]].concat());
    let elements = flow.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let is_of_flow = |element: &Value| {
        ["range", "exception", "trace_on", "gap"].iter().any(|kind| element["element"] == *kind)
    };
    let elements = elements.filter(is_of_flow).collect::<Vec<_>>();
    let file_of = |address_of: &Value| file(address(address_of.as_str().unwrap()));
    let is_interrupted = |pair: &&[Value]| {
        pair[0]["branch"]["taken"] == true
            && pair[1]["element"] == "exception"
            && file_of(&pair[0]["start"]) == file_of(&pair[1]["preferred_return"])
    };
    assert_eq!(interrupted, elements.windows(2).filter(is_interrupted).count() as u64);
}

/// The output of a tool that succeeds.
fn tool(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {text}");
    text
}

#[test]
#[ignore = "needs llvm-profgen-22"]
fn llvm_profgen_gives_functions_and_calls_their_counts() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (name, elf) in [("a15-pft", "a9.elf"), ("m3-etmv3", "m3.elf")] {
        let (counts, profile) = (file("counts"), file("profile"));
        printed(&["counts", "--format", "profgen", &capture(name), "-o", &counts]);
        let binary = format!("--binary={}", example(name).join(elf).display());
        let input = format!("--unsymbolized-profile={counts}");
        tool("llvm-profgen-22", &[&input, "--use-offset=0", &binary, "--format=text", "-o", &profile]);
        let profile = std::fs::read_to_string(&profile).unwrap();
        // `name:all samples:samples of its head`: the last is the number of calls by branches.
        let heads = profile.lines().filter(|line| !line.starts_with(' ')).map(|line| {
            let mut fields = line.rsplit(':');
            let head = fields.next().unwrap().parse::<u64>().unwrap();
            (fields.nth(1).unwrap().to_owned(), head)
        });
        let heads = heads.collect::<BTreeMap<_, _>>();
        // The record's number of branches to each function's first instruction.
        let (_, instructions) = counted(&[&capture(name)]);
        let truth = Truth::of(&example(name).join("runs.txt"), &instructions);
        // The tool finds functions by their debugging information, which assembly functions lack.
        let functions = printed(&["profile", &capture(name), "--format", "csv", "--no-inlined"]);
        let branches = rows(&[&capture(name)], "branches");
        // The tool reads a whole program in the instruction set of its processor's profile.
        let main = if elf == "m3.elf" { "T32" } else { "A32" };
        let ranges = rows(&[&capture(name)], "ranges");
        let is_read = |at: u64| ranges.iter().any(|row| address(&row["first"]) == at && row["isa"] == main);
        let mut compared = 0;
        for line in functions.lines().skip(1) {
            let [_, _, _, function, at, file, ..] = *line.split(',').collect::<Vec<_>>() else {
                panic!("{line}")
            };
            let Some(head) = heads.get(function).filter(|_| file.ends_with(".c")) else { continue };
            let at = address(at);
            // A branch to the next instruction ends no run of the record.
            let is_in_record = !branches
                .iter()
                .any(|row| row["to"] == format!("{at:#010x}") && address(&row["from"]) + 2 == at);
            if is_in_record && is_read(at) {
                assert_eq!(*head, truth.taken.get(&at).copied().unwrap_or_default(), "{function}");
                compared += 1;
            }
        }
        assert!(compared >= 5, "{name}: {profile}");
    }
}

/// The first number after the colon in the line that contains `word`.
fn figure(said: &str, word: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains(word))?;
    line.rsplit_once(": ")?.1.split(' ').next()?.parse().ok()
}

#[test]
#[ignore = "needs perf2bolt-22 and the corpus"]
fn bolt_finds_no_trace_that_contradicts_the_program() {
    let folder = corpus("linux/ricsec/tests/fib");
    let written = tempfile::tempdir().unwrap();
    let file = |name: &str| written.path().join(name).to_str().unwrap().to_owned();
    let (counts, data, optimised) = (file("counts"), file("fdata"), file("optimised"));
    let process = process(&folder);
    let process = process.iter().map(String::as_str).collect::<Vec<_>>();
    let options = ["--binary", "fib", "--format", "bolt", "-o", &counts];
    printed(&[&["counts"], &process[..], &options].concat());
    let elf = folder.join("fib").to_str().unwrap().to_owned();
    let said = tool("perf2bolt-22", &["-pa", "-p", &counts, "-o", &data, &elf]);
    // The samples that BOLT could not use, by words in the lines that count them.
    for word in ["mismatching", "involving"] {
        assert_eq!(figure(&said, word), Some(0), "{said}");
    }
    let said = tool("llvm-bolt-22", &[&elf, "-data", &data, "-reorder-blocks=ext-tsp", "-o", &optimised]);
    assert!(figure(&said, "non-empty") >= Some(5), "{said}");
}

/// AutoFDO counts addresses from the first loadable segment, which may begin with the file's headers.
#[test]
#[ignore = "needs readelf"]
fn autofdo_s_addresses_are_counted_from_the_first_segment() {
    for name in EXAMPLES {
        let elf = std::fs::read_dir(example(name)).unwrap().map(|entry| entry.unwrap().path());
        let elf =
            elf.filter(|file| file.extension().is_some_and(|extension| extension == "elf")).min().unwrap();
        let output = Command::new("readelf").arg("-lW").arg(&elf).output().unwrap();
        let segments = String::from_utf8(output.stdout).unwrap();
        let first = segments.lines().find_map(|line| line.trim().strip_prefix("LOAD")).unwrap();
        let base = address(first.split_whitespace().nth(1).unwrap());
        let ranges = |format: &str| {
            let text = printed(&["counts", &capture(name), "--format", format]);
            let mut lines = text.lines();
            let count = lines.next().unwrap().parse::<usize>().unwrap();
            let range = |line: &str| {
                let (range, count) = line.split_once(':').unwrap();
                let (first, last) = range.split_once('-').unwrap();
                (address(first), address(last), count.to_owned())
            };
            lines.take(count).map(range).collect::<Vec<_>>()
        };
        let moved =
            ranges("autofdo").into_iter().map(|(first, last, count)| (first + base, last + base, count));
        assert_eq!(moved.collect::<Vec<_>>(), ranges("profgen"), "{name}");
    }
}
