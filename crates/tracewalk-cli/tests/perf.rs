//! perf.data files, real and generated: the counts match those of other decoders.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{assert_same_runs, comparable, corpus, run, run_with_kinds, run_with_notices};

fn linux(path: &str) -> String {
    corpus(&format!("linux/{path}")).to_str().unwrap().to_owned()
}

/// The output of a command that succeeds.
fn printed(arguments: &[&str]) -> String {
    let outcome = run(arguments.iter().chain(&["--quiet"]));
    // Standard error names files that ran and are missing.
    assert_eq!(outcome.status, 0, "{arguments:?}: {}", outcome.stderr);
    outcome.stdout
}

/// A list of AutoFDO's text: counts by what they count.
type List = BTreeMap<String, u64>;

/// Ranges and branches of AutoFDO's text: the number of lines precedes each list.
fn autofdo(text: &str) -> (List, List) {
    let mut lines = text.lines();
    let mut list = || {
        let count = lines.next().unwrap().parse::<usize>().unwrap();
        let of = |line: &str| {
            let (what, count) = line.rsplit_once(':').unwrap();
            (what.to_owned(), count.parse().unwrap())
        };
        lines.by_ref().take(count).map(of).collect::<List>()
    };
    let ranges = list();
    list();
    (ranges, list())
}

/// Leaves out indirect branches for which simpleperf gives no target (0).
fn direct(branches: &List, expected: &List) -> List {
    let indirect = expected.keys().filter_map(|branch| branch.strip_suffix("->0"));
    let indirect = indirect.collect::<Vec<_>>();
    let is_direct = |branch: &str| !indirect.iter().any(|from| branch.split("->").next() == Some(from));
    branches
        .iter()
        .filter(|(branch, _)| is_direct(branch))
        .map(|(name, count)| (name.clone(), *count))
        .collect()
}

#[tracewalk_corpus::test]
fn a_phone_s_and_a_model_s_trace_count_as_simpleperf_counts_them() {
    let (symfs, truth) = (linux("simpleperf/symfs"), linux("simpleperf/perf_inject.data"));
    let expected = autofdo(&std::fs::read_to_string(truth).unwrap());
    for name in
        ["perf_etm", "fixed/perf_etm", "perf_with_unformatted_trace", "fixed/perf_with_unformatted_trace"]
    {
        let file = linux(&format!("simpleperf/{name}.data"));
        let outcome = run_with_kinds(["counts", &file, "--symfs", &symfs, "--format", "autofdo"]);
        // Files that did not run are missing, and nothing of what ran.
        let said = ["note: binaries_missing: ", "warning: "].map(|kind| outcome.stderr.matches(kind).count());
        assert_eq!((outcome.status, said), (0, [1, 0]), "{name}: {}", outcome.stderr);
        let found = autofdo(&outcome.stdout);
        assert_eq!(found.0, expected.0, "{name}");
        assert_eq!(direct(&found.1, &expected.1), direct(&expected.1, &expected.1), "{name}");
    }
}

fn flow(arguments: &[&str]) -> Vec<String> {
    comparable(&run(["flow", "--format", "runs", "--quiet"].iter().chain(arguments)).stdout)
}

#[tracewalk_corpus::test]
fn made_files_run_as_the_captures_that_they_were_made_of() {
    let (symfs, a7) = (linux("made/symfs"), corpus("synthetic/mix-a7-etmv3-original"));
    let [ptm, etmv3] = ["a15-ptm-raw", "a7-etmv3-raw"].map(|name| linux(&format!("made/{name}.data")));
    let expected = std::fs::read_to_string(corpus("real/tc2-ptm-rstk-t32/runs-02.txt")).unwrap();
    assert_same_runs(&flow(&[&ptm, "--symfs", &symfs]), &comparable(&expected));
    // Another test compares this source's flow with the emulator's record.
    assert_same_runs(&flow(&[&etmv3, "--symfs", &symfs]), &flow(&[a7.to_str().unwrap()]));
}

type Branches = BTreeMap<(u64, u64), u64>;

/// How often each branch is taken at least and at most, by its last instruction and its target: an exception
/// may come after the branch, or at its target. A branch to the next instruction is indistinguishable from
/// none.
fn branches(runs: &str) -> [Branches; 2] {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let [mut least, mut most] = [Branches::new(), Branches::new()];
    let mut ended = None;
    // Whether trace was lost since, so that no decoder saw the branch.
    let mut is_lost = false;
    for line in runs.lines() {
        match *line.split(' ').collect::<Vec<_>>() {
            ["R", start, end, ..] => {
                let start = hex(start);
                if let Some(from) = ended.filter(|from| from + 4 != start) {
                    if !is_lost {
                        *least.entry((from, start)).or_default() += 1;
                    }
                    *most.entry((from, start)).or_default() += 1;
                }
                (ended, is_lost) = (Some(hex(end) - 4), false);
            }
            ["X", _, to] => {
                if let (Some(from), true) = (ended.take(), to != "-") {
                    *most.entry((from, hex(to))).or_default() += 1;
                }
            }
            ["O"] => is_lost = true,
            _ => ended = None,
        }
    }
    [least, most]
}

#[tracewalk_corpus::test]
fn made_etmv4_takes_the_branches_that_perf_found() {
    let symfs = linux("made/symfs");
    for (name, expected_branches) in [("juno-uname-etmv4", 3693), ("ricsec-fib-etmv4", 8204)] {
        let file = linux(&format!("made/{name}.data"));
        let outcome = run(["flow", &file, "--symfs", &symfs, "--format", "runs", "--quiet"]);
        let [least, most] = branches(&outcome.stdout);
        let text = std::fs::read_to_string(linux(&format!("made/{name}.branches.txt"))).unwrap();
        let mut expected = Branches::new();
        for line in text.lines() {
            let (from, to) = line.split_once(' ').unwrap();
            let number = |text| u64::from_str_radix(text, 16).unwrap();
            // Address 0 marks the beginning and the end of trace.
            if let (from @ 1.., to @ 1..) = (number(from), number(to))
                && from + 4 != to
            {
                *expected.entry((from, to)).or_default() += 1;
            }
        }
        assert_eq!(expected.values().sum::<u64>(), expected_branches, "{name}");
        let of = |branches: &Branches, branch| branches.get(branch).copied().unwrap_or(0);
        for (branch, count) in &expected {
            let found = of(&least, branch)..=of(&most, branch);
            assert!(found.contains(count), "{name}: {branch:x?} {count} times, {found:?}");
        }
        assert!(least.keys().all(|branch| expected.contains_key(branch)), "{name}");
    }
}

#[tracewalk_corpus::test]
fn a_recording_whose_trace_was_lost_ends_in_a_sentence() {
    let file = linux("simpleperf/perf_with_missing_aux_data.data");
    for command in ["info", "counts", "flow"] {
        let outcome = run_with_notices([command, &file]);
        assert!(outcome.1.has("trace_not_recorded"), "{command}");
    }
}

#[tracewalk_corpus::test]
fn another_program_is_not_used() {
    let file = linux("simpleperf/perf_etm.data");
    let folder = tempfile::tempdir().unwrap();
    let own = corpus("linux/simpleperf/symfs/data/local/tmp/etm_test_loop");
    let mut bytes = std::fs::read(own).unwrap();
    let id = [0x0c, 0x9a, 0x20, 0xbf];
    let at = bytes.windows(4).position(|window| window == id).unwrap();
    bytes[at] ^= 0xff;
    std::fs::write(folder.path().join("etm_test_loop"), bytes).unwrap();
    let outcome = run_with_notices(["flow", &file, "--symfs", folder.path().to_str().unwrap()]);
    assert!(outcome.1.has("other_binary"));
}

#[tracewalk_corpus::test]
fn binaries_are_found_by_build_id() {
    let file = linux("simpleperf/perf_etm.data");
    let folder = tempfile::tempdir().unwrap();
    let own = corpus("linux/simpleperf/symfs/data/local/tmp/etm_test_loop");
    let bytes = std::fs::read(&own).unwrap();
    let at = bytes.windows(4).position(|window| window == [0x0c, 0x9a, 0x20, 0xbf]).unwrap();
    let rest = bytes[at + 1..at + 16].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let place = folder.path().join(".build-id/0c").join(rest);
    std::fs::create_dir_all(&place).unwrap();
    std::fs::copy(own, Path::new(&place).join("elf")).unwrap();
    let text =
        printed(&["counts", &file, "--debug-dir", folder.path().to_str().unwrap(), "--format", "autofdo"]);
    assert!(!autofdo(&text).0.is_empty());
}

/// A phone's kernel, with one of its modules. The module's address is recorded, and also follows from its sections.
#[tracewalk_corpus::test]
fn a_phone_s_trace_runs_through_a_module_of_its_kernel() {
    let (file, module) = (linux("simpleperf/perf_kernel.data"), linux("simpleperf/rq_stats.ko"));
    let folder = tempfile::tempdir().unwrap();
    let modules = folder.path().join("vendor/lib/modules");
    std::fs::create_dir_all(&modules).unwrap();
    std::fs::copy(module, modules.join("rq_stats.ko")).unwrap();
    let symfs = folder.path().to_str().unwrap();
    // A copy without the last feature (132), which records the address.
    let mut silent = std::fs::read(&file).unwrap();
    silent[72 + 132 / 8] &= !(1 << (132 % 8));
    let other = folder.path().join("perf.data");
    std::fs::write(&other, silent).unwrap();
    let mut found = Vec::new();
    for file in [&*file, other.to_str().unwrap()] {
        let (outcome, kinds) = run_with_notices(["profile", file, "--symfs", symfs, "--format", "csv"]);
        // Trace and file agree wherever the module ran.
        assert!(!kinds.has("contradictions") && !kinds.has("code_undecodable"), "{kinds:?}");
        let rows = outcome.stdout.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let ran = rows.skip(1).filter(|row| row[8].parse::<u64>().is_ok_and(|own| own > 0));
        let functions = ran.map(|row| row[3].to_owned()).collect::<Vec<_>>();
        assert!(functions.iter().any(|name| name == "wakeup_user"), "{functions:?}");
        // simpleperf counts this module, too, at the addresses of its file.
        let options = ["--binary", "rq_stats.ko", "--format", "autofdo", "--quiet"];
        let ranges = autofdo(&run(["counts", file, "--symfs", symfs].iter().chain(&options)).stdout).0;
        assert!(ranges.len() >= 5, "{ranges:?}");
        found.push((functions, ranges));
    }
    assert_eq!(found[0], found[1]);
}
