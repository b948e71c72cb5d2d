//! Profiles in other tools' formats, through those tools and their schemas.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::npm::node_modules;
use crate::support::python::python;
use crate::support::{copied_example, example, mentions, run, run_with_kinds};
use serde_json::Value;

const EXAMPLES: [&str; 4] = ["m3-etmv3", "a7-etmv3", "a15-pft", "m0-crash-mtb"];

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/profile").join(name)
}

/// The profile of an example in this format, in a file.
fn profile(folder: &Path, name: &str, format: &str, options: &[&str]) -> PathBuf {
    let file = folder.join(format!("{name}.{format}"));
    let capture = example(name).join("capture.toml");
    let arguments =
        ["profile", "-q", capture.to_str().unwrap(), "--format", format, "-o", file.to_str().unwrap()];
    let outcome = run(arguments.iter().chain(options));
    assert_eq!(outcome.stdout, "", "{}", outcome.stderr);
    // The buffer of an MTB begins in the middle of execution.
    assert!(outcome.status == 0 || name == "m0-crash-mtb", "{}", outcome.stderr);
    file
}

/// The chains of calls with their own cost, and names as in most formats.
fn chains(folder: &Path, name: &str, options: &[&str]) -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(profile(folder, name, "folded", options)).unwrap();
    let line = |line: &str| {
        let (chain, cost) = line.rsplit_once(' ').unwrap();
        (chain.replace("_[i]", " (inlined)"), cost.parse().unwrap())
    };
    text.lines().map(line).collect()
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(errors, "", "{command:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(command: &mut Command) -> Value {
    serde_json::from_str(&output(command)).unwrap()
}

fn costs(value: &Value) -> BTreeMap<String, u64> {
    let of = value.as_object().unwrap().iter();
    of.map(|(chain, cost)| (chain.clone(), cost.as_u64().unwrap())).collect()
}

#[test]
#[ignore = "needs callgrind_annotate and the Python packages"]
fn callgrind_annotate_shows_the_functions_of_a_profile_and_what_they_cost() {
    let python = python();
    let folder = tempfile::tempdir().unwrap();
    for name in EXAMPLES {
        let file = profile(folder.path(), name, "callgrind", &[]);
        let options = ["--threshold=100", "--auto=no"];
        let text = output(Command::new("callgrind_annotate").args(options).arg(&file));
        let table = folder.path().join("annotated.txt");
        std::fs::write(&table, text).unwrap();
        let read = json(Command::new(&python).arg(script("formats.py")).arg("annotate").arg(&table));
        let events = read["events"].as_array().unwrap().iter().map(|event| event.as_str().unwrap());
        for (column, event) in events.enumerate() {
            let cost = match event {
                "Instructions" => "instructions",
                "Cycles" => "cycles",
                _ => "time",
            };
            let chains = chains(folder.path(), name, &["--unit", cost, "--no-inlined"]);
            let mut functions = BTreeMap::<String, u64>::new();
            for (chain, own) in &chains {
                *functions.entry(chain.rsplit(';').next().unwrap().to_owned()).or_default() += own;
            }
            assert_eq!(read["total"][column], chains.values().sum::<u64>(), "{name}, {event}");
            for (function, own) in functions {
                assert_eq!(read["functions"][&function][column], own, "{name}, {event}: {function}");
            }
        }
    }
}

/// callgrind_annotate identifies functions only by their file and name, and both programs share such functions.
#[test]
#[ignore = "needs callgrind_annotate and the Python packages"]
fn callgrind_annotate_keeps_functions_of_several_programs_apart() {
    let python = python();
    let folder = tempfile::tempdir().unwrap();
    let other = example("a15-pft").join("capture.toml");
    let options = ["--unit", "instructions", other.to_str().unwrap()];
    let file = profile(folder.path(), "m3-etmv3", "callgrind", &options);
    let text = output(Command::new("callgrind_annotate").args(["--threshold=100", "--auto=no"]).arg(&file));
    let table = folder.path().join("annotated.txt");
    std::fs::write(&table, text).unwrap();
    let read = json(Command::new(&python).arg(script("formats.py")).arg("annotate").arg(&table));
    let mut shared = 0;
    let mut expected = BTreeMap::<String, BTreeMap<&str, u64>>::new();
    for (name, source) in [("m3-etmv3", "trace ID 0x10"), ("a15-pft", "trace ID 0x13")] {
        for (chain, own) in chains(folder.path(), name, &["--unit", "instructions", "--no-inlined"]) {
            let function = chain.rsplit(';').next().unwrap();
            *expected.entry(function.to_owned()).or_default().entry(source).or_default() += own;
        }
    }
    for (function, costs) in expected {
        if let Some(alone) = read["functions"].get(&function) {
            // Functions with the same name in different files are distinguished by their files.
            assert!(costs.values().any(|own| alone[0] == *own), "{function}");
            continue;
        }
        shared += 1;
        for (source, own) in costs {
            assert_eq!(read["functions"][format!("{function} ({source})")][0], own, "{function}, {source}");
        }
    }
    assert!(shared >= 8, "{shared} functions are in both programs");
}

#[test]
#[ignore = "needs npm packages"]
fn a_reader_of_pprofs_files_finds_the_chains_of_calls() {
    let modules = node_modules();
    let folder = tempfile::tempdir().unwrap();
    for name in EXAMPLES {
        let file = profile(folder.path(), name, "pprof", &[]);
        let read = json(Command::new("node").arg(script("pprof.cjs")).arg(&modules).arg(file));
        let types = read["types"].as_array().unwrap().iter().map(|kind| kind.as_str().unwrap());
        for (column, kind) in types.enumerate() {
            let cost = match kind {
                "instructions/count" => "instructions",
                "cycles/count" => "cycles",
                other => {
                    assert_eq!(other, "ticks/count");
                    "time"
                }
            };
            let expected = chains(folder.path(), name, &["--unit", cost]);
            let found = read["chains"].as_object().unwrap().iter();
            let found = found.map(|(chain, values)| {
                (chain.replace("_[i]", " (inlined)"), values[column].as_u64().unwrap())
            });
            assert_eq!(
                found.filter(|(_, cost)| *cost > 0).collect::<BTreeMap<_, _>>(),
                expected,
                "{name}, {kind}"
            );
        }
    }
    // The lines have the table's costs.
    let file = profile(folder.path(), "m3-etmv3", "pprof", &[]);
    let read = json(Command::new("node").arg(script("pprof.cjs")).arg(&modules).arg(file));
    let crc32 = read["lines"].as_object().unwrap().iter().filter(|(place, _)| place.ends_with("work.c:18"));
    assert_eq!(crc32.map(|(_, values)| values[0].as_u64().unwrap()).sum::<u64>(), line_cost("work.c:18"));
    assert_eq!(read["comments"][0], "measured: instructions (the trace has no time)");
}

/// The cost of a line in the table of lines.
fn line_cost(place: &str) -> u64 {
    let capture = example("m3-etmv3/capture.toml");
    let table = run(["profile", "-q", capture.to_str().unwrap(), "--table", "lines"]).stdout;
    let rows = table.lines().filter(|line| line.split_whitespace().nth(2) == Some(place));
    rows.map(|row| row.split_whitespace().next().unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
#[ignore = "needs npm packages"]
fn with_a_frequency_costs_are_times() {
    let modules = node_modules();
    let folder = tempfile::tempdir().unwrap();
    let file = profile(folder.path(), "a7-etmv3", "pprof", &["--frequency", "100MHz"]);
    let read = json(Command::new("node").arg(script("pprof.cjs")).arg(&modules).arg(file));
    assert_eq!(read["default"], "time");
    let column =
        read["types"].as_array().unwrap().iter().position(|kind| kind == "time/nanoseconds").unwrap();
    for (chain, cycles) in chains(folder.path(), "a7-etmv3", &[]) {
        let chain = chain.replace(" (inlined)", "_[i]");
        assert_eq!(read["chains"][&chain][column], cycles * 10, "{chain}");
    }
}

#[test]
#[ignore = "needs npm packages and the Python packages"]
fn a_profile_for_speedscope_keeps_to_its_schema() {
    let (python, modules) = (python(), node_modules());
    let schema = modules.join("speedscope/dist/release/file-format-schema.json");
    let folder = tempfile::tempdir().unwrap();
    for name in EXAMPLES {
        let file = profile(folder.path(), name, "speedscope", &[]);
        let mut command = Command::new(&python);
        let read = json(command.arg(script("formats.py")).arg("speedscope").args([&file, &schema]));
        assert_eq!(read.as_array().unwrap().len(), 1);
        assert_eq!(costs(&read[0]["chains"]), chains(folder.path(), name, &[]), "{name}");
        assert_eq!(read[0]["unit"], "none");
    }
}

#[test]
#[ignore = "needs chromium, npm packages and python3"]
fn speedscope_opens_its_own_format_those_of_pprof_and_folded_chains() {
    let modules = node_modules();
    let page = modules.join("speedscope/dist/release/index.html");
    let folder = tempfile::tempdir().unwrap();
    for format in ["speedscope", "pprof", "folded"] {
        // For a location in a pprof file, speedscope shows the function without the inlined ones.
        let options: &[&str] = if format == "pprof" { &["--no-inlined"] } else { &[] };
        let file = profile(folder.path(), "m3-etmv3", format, &[]);
        let chains = folder.path().join("chains");
        let folded = profile(folder.path(), "m3-etmv3", "folded", options);
        std::fs::copy(folded, &chains).unwrap();
        let mut command = Command::new("python3");
        command.arg(script("speedscope.py")).arg("chromium").args([&page, &file, &chains]);
        output(&mut command);
    }
}

#[test]
#[ignore = "needs the Python packages"]
fn a_profile_for_firefox_has_the_shape_that_its_profiler_documents() {
    let python = python();
    let folder = tempfile::tempdir().unwrap();
    for name in EXAMPLES {
        let file = profile(folder.path(), name, "firefox", &[]);
        let read = json(Command::new(&python).arg(script("formats.py")).arg("firefox").arg(file));
        assert_eq!(read["threads"].as_array().unwrap().len(), 1);
        let expected = chains(folder.path(), name, &[]);
        assert_eq!(costs(&read["threads"][0]["chains"]), expected, "{name}");
        let inlined = expected.iter().filter(|(chain, _)| chain.ends_with("(inlined)")).map(|(_, cost)| cost);
        assert_eq!(read["threads"][0]["categories"]["Inlined function"], inlined.sum::<u64>(), "{name}");
    }
}

/// Firefox's own tool gives the costs of the folded chains, chain by chain and function by function.
#[test]
#[ignore = "needs npm packages"]
fn firefoxs_profiler_opens_a_profile_and_counts_as_the_folded_chains_do() {
    let modules = node_modules();
    let folder = tempfile::tempdir().unwrap();
    for name in EXAMPLES {
        let file = profile(folder.path(), name, "firefox", &[]);
        let mut command = Command::new("node");
        let read = json(command.arg(script("firefox.cjs")).args([&modules, &file]).arg(folder.path()));
        let threads = read["threads"].as_object().unwrap();
        let [thread] = &threads.values().collect::<Vec<_>>()[..] else { panic!("{} threads", threads.len()) };
        let expected = chains(folder.path(), name, &[]);
        assert_eq!(costs(&thread["chains"]), expected, "{name}");
        let mut functions = BTreeMap::<&str, (u64, u64)>::new();
        for (chain, cost) in &expected {
            // A recursive function counts once in its total.
            for function in chain.split(';').collect::<BTreeSet<_>>() {
                functions.entry(function).or_default().1 += cost;
            }
            functions.entry(chain.rsplit(';').next().unwrap()).or_default().0 += cost;
        }
        let found = thread["functions"].as_object().unwrap().iter();
        let found = found.map(|(function, costs)| {
            (function.as_str(), (costs[0].as_u64().unwrap(), costs[1].as_u64().unwrap()))
        });
        assert_eq!(found.collect::<BTreeMap<_, _>>(), functions, "{name}");
        // A unit of cost is a microsecond, and the processor is active all the time.
        let total = expected.values().sum::<u64>() as f64;
        let microseconds = |value: &Value| (value.as_f64().unwrap() * 1000.0).round();
        assert_eq!(microseconds(&read["info"]["processes"][0]["cpuMs"]), total, "{name}");
        assert_eq!(microseconds(&read["info"]["context"]["rootRange"]["end"]), total + 1.0, "{name}");
    }
}

/// The script clicks a rectangle, searches for names and moves the pointer, and compares widths with the
/// folded chains.
#[test]
#[ignore = "needs chromium and python3"]
fn a_flame_graph_shows_the_chains_of_calls_to_whoever_uses_it() {
    let folder = tempfile::tempdir().unwrap();
    for name in EXAMPLES {
        let graph = profile(folder.path(), name, "flamegraph", &[]);
        // A browser recognises the format by the file's name.
        let page = graph.with_extension("svg");
        std::fs::rename(&graph, &page).unwrap();
        let chains = profile(folder.path(), name, "folded", &[]);
        let mut command = Command::new("python3");
        command.arg(script("flamegraph.py")).arg("chromium").args([&page, &chains]);
        if let Some(screenshots) = std::env::var_os("SCREENSHOTS") {
            let screenshots = Path::new(&screenshots).join(name);
            std::fs::create_dir_all(&screenshots).unwrap();
            command.arg(screenshots);
        }
        output(&mut command);
    }
}

#[test]
fn every_format_says_what_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    for (name, measure) in
        [("m3-etmv3", "instructions (the trace has no time)"), ("a7-etmv3", "cycles"), ("a15-pft", "54")]
    {
        for format in ["text", "flamegraph", "callgrind", "speedscope", "firefox"] {
            let text = std::fs::read_to_string(profile(folder.path(), name, format, &[])).unwrap();
            assert!(text.contains(measure), "{name}, {format}");
        }
    }
}

#[test]
fn a_measure_that_the_trace_has_not_is_refused() {
    let capture = example("m3-etmv3/capture.toml");
    for (cost, bit) in [("cycles", "12"), ("time", "28")] {
        let outcome = run_with_kinds(["profile", capture.to_str().unwrap(), "--unit", cost]);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""));
        assert!(
            mentions(&outcome.stderr, &format!("error: not_measured --unit {bit}")),
            "{}",
            outcome.stderr
        );
    }
}

/// A row's indentation gives its chain, and its own cost is that of the folded chain.
#[test]
fn calls_folded_by_chains_cost_what_the_profile_says() {
    let folder = tempfile::tempdir().unwrap();
    for name in EXAMPLES {
        let capture = example(name).join("capture.toml");
        let text = run(["calls", "-q", capture.to_str().unwrap(), "--fold", "chains"]).stdout;
        let mut path = Vec::<String>::new();
        let mut found = BTreeMap::new();
        for row in text.lines().skip(2) {
            // Three columns and the calls, then two spaces and the tree.
            let (costs, tree) = (&row[..42], &row[44..]);
            let depth = (tree.len() - tree.trim_start().len()) / 2;
            path.truncate(depth);
            path.push(tree.trim_start().split("  ").next().unwrap().to_owned());
            let own = costs.split_whitespace().nth(2).unwrap().parse::<u64>().unwrap();
            if own > 0 {
                found.insert(path.join(";"), own);
            }
        }
        assert_eq!(found, chains(folder.path(), name, &[]), "{name}");
    }
    let capture = example("m3-etmv3/capture.toml");
    let text = run(["calls", "-q", capture.to_str().unwrap(), "--fold", "chains", "--depth", "1"]).stdout;
    let words = |row: &str| row.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let rows = text.lines().map(words).collect::<Vec<_>>();
    assert!(rows.contains(&words("13976 79.2% 521 1 main main.c:103")), "{text}");
    assert!(!text.contains("quicksort"), "{text}");
}

#[test]
fn several_captures_of_one_program_are_added_up_and_of_others_kept_apart() {
    let capture = |name: &str| example(name).join("capture.toml").to_str().unwrap().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let copies = tempfile::tempdir().unwrap();
    let again = copied_example("m3-etmv3", copies.path());
    let twice = chains(folder.path(), "m3-etmv3", &[&again]);
    let once = chains(folder.path(), "m3-etmv3", &[]);
    assert_eq!(twice, once.into_iter().map(|(chain, cost)| (chain, 2 * cost)).collect());
    let [text, top, short] = ["--rows", "--top", "-n"]
        .map(|option| run(["profile", "-q", &again, &capture("a15-pft"), option, "1"]).stdout);
    assert_eq!([&top, &short], [&text; 2]);
    let titles = text.lines().filter(|line| line.starts_with("trace ID")).collect::<Vec<_>>();
    assert!(titles[0].starts_with("trace ID 0x10, etmv3: 17638 instructions"), "{text}");
    assert!(titles[1].starts_with("trace ID 0x13, pft: 10703 instructions"), "{text}");
}

#[test]
fn programs_whose_sources_have_the_same_trace_id_are_distinguished() {
    let [one, other] = ["m3-etmv3", "a7-etmv3"].map(|name| example(name).join("capture.toml"));
    let copies = tempfile::tempdir().unwrap();
    let again = copied_example("m3-etmv3", copies.path());
    for format in ["text", "folded", "flamegraph", "callgrind", "firefox", "speedscope"] {
        let (one, other) = (one.to_str().unwrap(), other.to_str().unwrap());
        let text = run(["profile", "-q", one, other, "--format", format]).stdout;
        for program in [" of m3.elf", " of a9.elf"] {
            assert!(text.contains(program), "{format} without{program}");
        }
        let alone = run(["profile", "-q", one, &again, "--format", format]).stdout;
        assert!(!alone.is_empty() && !alone.contains(" of m3.elf"), "{format}");
    }
}
