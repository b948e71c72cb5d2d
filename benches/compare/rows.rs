//! The measurements.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::Path;

use super::Options;
use super::captures::{Capture, Captures};
use super::firmware::Firmware;
use super::measure::{Run, median, number, peak_private_memory, run, time_of_threads};
use super::tools::Tools;

/// A line of the table.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) measure: &'static str,
    pub(super) capture: String,
    /// The seconds for a million bytes of trace, if the time grows with the trace.
    pub(super) per_megabyte: Option<f64>,
    pub(super) ours: String,
    pub(super) other: String,
    /// How many times better ours is.
    pub(super) ratio: f64,
    pub(super) goal: Option<f64>,
}

impl Row {
    /// The row's name.
    pub(super) fn name(&self) -> String {
        format!("{} on {}", self.measure, self.capture)
    }

    /// Whether the goal is met; `None` if there is no goal.
    pub(super) fn is_met(&self) -> Option<bool> {
        self.goal.map(|goal| self.ratio >= goal)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ours, other, ratio, .. } = self;
        write!(f, "{}: {ours} beside {other}, {ratio:.2}", self.name())
    }
}

type Measure = fn(&Tools, &Captures, Options) -> Result<Vec<Row>, String>;

/// All measurements, in the order of the table.
pub(super) const MEASURES: &[Measure] =
    &[results, flow, analyses, threads, packets, frames, junk, text, memory, mtb];

fn seconds(seconds: f64) -> String {
    format!("{seconds:.3} s")
}

fn per_megabyte(seconds: f64, bytes: u64) -> Option<f64> {
    (bytes > 0).then(|| seconds * 1e6 / bytes as f64)
}

/// Captures longer than this must gain from two threads.
const LONG: u64 = 20_000_000;

pub(super) fn tracewalk(
    tools: &Tools,
    command: &str,
    options: &[&str],
    capture: &Path,
) -> Result<Run, String> {
    let mut arguments = vec![OsString::from(command)];
    arguments.extend(options.iter().map(OsString::from));
    arguments.push(capture.into());
    run(&tools.folder, &tools.tracewalk, &arguments)
}

/// The number that `--stats` prints under `key`.
fn stated(run: &Run, key: &str) -> Result<f64, String> {
    let line = run.stderr.lines().rfind(|line| line.starts_with('{'));
    number(line.ok_or_else(|| format!("found no statistics in {:?}", run.stderr))?, key)
}

/// The output of OpenCSD's harness for a capture with this number of repetitions.
fn opencsd(tools: &Tools, mode: &str, capture: &Capture, repeats: u64) -> Result<String, String> {
    let trace = &capture.trace_once;
    let mut arguments: Vec<OsString> = vec![mode.into(), capture.container.into(), capture.address.into()];
    arguments.extend([capture.image.clone().into(), trace.clone().into(), repeats.to_string().into()]);
    arguments.extend(capture.sources.iter().map(OsString::from));
    let run = run(&tools.folder, &tools.harness, &arguments)?;
    let said = fs::read_to_string(&run.stdout).map_err(|error| error.to_string())?;
    if said.is_empty() { Err(format!("OpenCSD on {}: {}", capture.name, run.stderr)) } else { Ok(said) }
}

/// Checks the decoded output before its speed is measured; adds no row.
fn results(tools: &Tools, captures: &Captures, _: Options) -> Result<Vec<Row>, String> {
    const FLOW: [&str; 3] = ["--format", "none", "--stats"];
    for capture in &captures.decoded {
        let ours = stated(&tracewalk(tools, "flow", &FLOW, &capture.once)?, "instructions")?;
        let theirs = number(&opencsd(tools, "flow", capture, 1)?, "instructions")?;
        let known = capture.known.map_or(theirs, |known| known as f64);
        let name = capture.name;
        if let Some(why) = capture.differs.filter(|_| theirs != known) {
            println!("{name}: OpenCSD counts {theirs} instructions, expected {known}: {why}");
        }
        if ours != known || (ours != theirs && capture.differs.is_none()) {
            return Err(format!("{name}: found {ours} instructions, OpenCSD {theirs}, expected {known}"));
        }
        // Decoding the same bytes with one and with two threads gives the same result.
        let whole = |threads| -> Result<Vec<f64>, String> {
            let options = [&FLOW[..], &["--threads", threads]].concat();
            let run = tracewalk(tools, "flow", &options, &capture.repeated)?;
            ["bytes", "packets", "ranges", "instructions", "gaps"]
                .iter()
                .map(|key| stated(&run, key))
                .collect()
        };
        let (one, two) = (whole("1")?, whole("2")?);
        if one != two {
            return Err(format!("{}: one thread found {one:?}, two {two:?}", capture.name));
        }
    }
    Ok(Vec::new())
}

fn flow(tools: &Tools, captures: &Captures, options: Options) -> Result<Vec<Row>, String> {
    let ours = ["--format", "none", "--stats", "--threads", "1"];
    beside_opencsd(tools, captures, options, ("flow", &ours), |capture| capture.flow_goal)
}

/// Measures every answer against the bare flow of the same run, on captures that repeat and on those that do
/// not, with one thread. An answer without the format `none` is written to a file.
fn analyses(tools: &Tools, captures: &Captures, options: Options) -> Result<Vec<Row>, String> {
    const COMMANDS: &[(&str, &str, Option<f64>)] = &[
        ("coverage", "json", Some(1.0 / 1.3)),
        ("profile", "none", Some(1.0 / 3.0)),
        ("calls", "json", Some(1.0 / 3.0)),
        ("interrupts", "none", Some(1.0 / 3.0)),
        ("timeline", "none", Some(1.0 / 3.0)),
    ];
    let mut rows = Vec::new();
    for capture in &captures.decoded {
        let whole = (capture.repeated.as_path(), capture.bytes);
        rows.extend(beside_flow(tools, options, capture.name, whole, COMMANDS)?);
        let listed = (capture.for_listing.as_path(), capture.listing_bytes);
        rows.extend(beside_flow(tools, options, capture.name, listed, &[("flow", "text", None)])?);
    }
    Ok(rows)
}

fn beside_flow(
    tools: &Tools,
    options: Options,
    name: &str,
    (capture, bytes): (&Path, u64),
    commands: &[(&'static str, &'static str, Option<f64>)],
) -> Result<Vec<Row>, String> {
    let mut times = vec![Vec::new(); commands.len() + 1];
    for _ in 0..options.rounds {
        let flow = [&("flow", "none", None)];
        for ((command, format, _), times) in flow.into_iter().chain(commands).zip(&mut times) {
            let arguments = ["--format", format, "--threads", "1"];
            times.push(tracewalk(tools, command, &arguments, capture)?.processor);
        }
    }
    let mut medians = times.into_iter().map(median);
    let flow = medians.next().unwrap_or(f64::NAN);
    let rows = commands.iter().zip(medians).map(|(&(command, format, goal), ours)| Row {
        measure: "answer",
        capture: format!("{name}, {command} --format {format}"),
        per_megabyte: per_megabyte(ours, bytes),
        ours: seconds(ours),
        other: format!("flow {}", seconds(flow)),
        ratio: flow / ours,
        goal,
    });
    Ok(rows.collect())
}

fn packets(tools: &Tools, captures: &Captures, options: Options) -> Result<Vec<Row>, String> {
    let ours = ["--format", "none", "--stats", "--threads", "1"];
    beside_opencsd(tools, captures, options, ("packets", &ours), |capture| capture.has_goal.then_some(3.0))
}

fn beside_opencsd(
    tools: &Tools,
    captures: &Captures,
    options: Options,
    (mode, arguments): (&'static str, &[&str]),
    goal: impl Fn(&Capture) -> Option<f64>,
) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for capture in &captures.decoded {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            ours.push(tracewalk(tools, mode, arguments, &capture.repeated)?.processor);
            theirs.push(number(&opencsd(tools, mode, capture, capture.repeats)?, "seconds")?);
        }
        let (ours, theirs) = (median(ours), median(theirs));
        rows.push(Row {
            measure: mode,
            capture: capture.name.to_owned(),
            per_megabyte: per_megabyte(ours, capture.bytes),
            ours: seconds(ours),
            other: format!("OpenCSD {}", seconds(theirs)),
            ratio: theirs / ours,
            goal: goal(capture),
        });
    }
    Ok(rows)
}

/// Measures processor time, because elapsed time includes the work of other processes. Two threads take at
/// least as long as the program's busiest thread, and at least half of the sum over all threads.
fn threads(tools: &Tools, captures: &Captures, options: Options) -> Result<Vec<Row>, String> {
    const COMMANDS: [(&str, &str); 7] = [
        ("flow", "none"),
        ("flow", "runs"),
        ("coverage", "none"),
        ("profile", "none"),
        ("calls", "none"),
        ("interrupts", "none"),
        ("timeline", "none"),
    ];
    let mut rows = Vec::new();
    for (capture, (command, format)) in
        captures.decoded.iter().flat_map(|capture| COMMANDS.map(|command| (capture, command)))
    {
        let (mut one, mut two) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            let arguments = |threads: &str| -> Vec<OsString> {
                let options = [command, "--format", format, "--threads", threads].map(OsString::from);
                options.into_iter().chain([capture.repeated.clone().into()]).collect()
            };
            one.push(time_of_threads(&tools.tracewalk, &arguments("1"))?.0);
            let (all, busiest) = time_of_threads(&tools.tracewalk, &arguments("2"))?;
            two.push(busiest.max(all / 2.0));
        }
        let (one, two) = (median(one), median(two));
        rows.push(Row {
            measure: "two threads",
            capture: format!("{}, {command} --format {format}", capture.name),
            per_megabyte: per_megabyte(two, capture.bytes),
            ours: seconds(two),
            other: format!("one thread {}", seconds(one)),
            ratio: one / two,
            goal: (format == "none" && capture.bytes > LONG).then_some(1.9),
        });
    }
    Ok(rows)
}

fn frames(tools: &Tools, captures: &Captures, _: Options) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    let formatted = captures.decoded.iter().filter(|capture| capture.container == "frames");
    let formatted = formatted.map(|capture| capture.trace_once.clone());
    for arguments in formatted.map(|trace| vec![trace]).chain([Vec::new()]) {
        let said = run(&tools.folder, &tools.deframe_speed, &arguments)?.stdout;
        let said = fs::read_to_string(said).map_err(|error| error.to_string())?;
        let mut capture = "";
        let (mut copying, mut speed) = (f64::NAN, f64::NAN);
        for line in said.lines() {
            let value = |line: &str| line.split_whitespace().filter_map(|word| word.parse().ok()).next();
            match line.trim_start().split(' ').next() {
                Some("copy") => copying = value(line).unwrap_or(f64::NAN),
                Some("with") => {
                    speed = value(line).unwrap_or(f64::NAN);
                    rows.push(Row {
                        measure: "frames",
                        capture: capture.rsplit('/').next().unwrap_or(capture).to_owned(),
                        per_megabyte: None,
                        ours: format!("{speed:.2} GB/s"),
                        other: format!("memcpy {copying:.2} GB/s"),
                        ratio: speed / copying,
                        goal: Some(0.5),
                    });
                }
                _ if !line.starts_with(' ') => capture = line.rsplit_once(':').map_or(line, |(name, _)| name),
                _ => {}
            }
        }
        if !(copying / speed).is_finite() {
            return Err(format!("found no speeds in {said:?}"));
        }
    }
    Ok(rows)
}

fn junk(tools: &Tools, captures: &Captures, options: Options) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for capture in captures.decoded.iter().filter(|capture| capture.container == "frames") {
        rows.extend(super::junk::rows(tools, capture, options)?);
    }
    Ok(rows)
}

/// Writes text to a file. `trc_pkt_lister` writes more text for the same trace; it has no shorter form.
fn text(tools: &Tools, captures: &Captures, options: Options) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for capture in captures.decoded.iter().filter(|capture| capture.has_goal) {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let log = tools.folder.join("lister.ppl");
        for _ in 0..options.rounds {
            let arguments = ["--format", "runs", "--threads", "1"];
            ours.push(tracewalk(tools, "flow", &arguments, &capture.for_text)?.processor);
            let mut arguments: Vec<OsString> = vec!["-ss_dir".into(), capture.for_text.clone().into()];
            arguments.extend(["-decode_only", "-logfilename"].map(OsString::from));
            arguments.push(log.clone().into());
            theirs.push(run(&tools.folder, &tools.trc_pkt_lister, &arguments)?.processor);
        }
        let size =
            fs::metadata(&log).map(|log| log.len()).map_err(|error| format!("{}: {error}", log.display()))?;
        let _ = fs::remove_file(&log);
        let (ours, theirs) = (median(ours), median(theirs));
        rows.push(Row {
            measure: "runs into a file",
            capture: capture.name.to_owned(),
            per_megabyte: per_megabyte(ours, options.text_bytes()),
            ours: seconds(ours),
            other: format!("trc_pkt_lister {} ({} MB)", seconds(theirs), size / 1_000_000),
            ratio: theirs / ours,
            goal: Some(50.0),
        });
    }
    Ok(rows)
}

/// The commands and formats whose memory is measured. A short run skips a large capture for those that are
/// not `quick`.
const REMEMBERING: [(&str, &str, bool); 11] = [
    ("flow", "none", true),
    ("flow", "runs", true),
    ("packets", "none", true),
    ("coverage", "none", true),
    ("profile", "none", true),
    ("profile", "pprof", true),
    ("calls", "none", true),
    ("interrupts", "none", true),
    ("timeline", "none", true),
    ("timeline", "perfetto", false),
    ("timeline", "csv", false),
];

fn memory(tools: &Tools, captures: &Captures, options: Options) -> Result<Vec<Row>, String> {
    let Captures { large, large_bytes, large_code, .. } = captures;
    let limit = (64 << 20) + 2 * large_code;
    let mut rows = Vec::new();
    for (command, format, _) in REMEMBERING.iter().filter(|(.., is_quick)| *is_quick || !options.short) {
        // More threads need more memory, and the default number of threads depends on the machine.
        for threads in if options.short { &["2"][..] } else { &["1", "2"] } {
            let arguments = [*command, "--format", *format, "--threads", *threads].map(OsString::from);
            let arguments = arguments.into_iter().chain([large.clone().into()]).collect::<Vec<_>>();
            let peak = peak_private_memory(&tools.tracewalk, &arguments)?;
            let capture =
                format!("{command} --format {format} --threads {threads} of {} MiB", large_bytes >> 20);
            if peak > limit {
                return Err(format!("{capture}: {} MiB of memory, expected {}", peak >> 20, limit >> 20));
            }
            rows.push(Row {
                measure: "private memory",
                capture,
                per_megabyte: None,
                ours: format!("{:.1} MiB", peak as f64 / f64::from(1 << 20)),
                other: format!("limit {} MiB", limit >> 20),
                ratio: limit as f64 / peak as f64,
                goal: Some(1.0),
            });
        }
    }
    Ok(rows)
}

/// Measures the whole command on a small dump and a large program.
fn mtb(tools: &Tools, captures: &Captures, options: Options) -> Result<Vec<Row>, String> {
    let dump = &captures.mtb;
    let Firmware { elf, addresses } = Firmware::build(&dump.join("program.elf"), &tools.folder)?;
    let registers = dump.join("registers.txt");
    let arguments = |format: &str, image: &Path| -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["flow".into(), "--format".into(), format.into()];
        arguments.extend(["--registers".into(), registers.clone().into(), "--image".into(), image.into()]);
        arguments.push(dump.join("mtb.bin").into());
        arguments
    };
    let runs = |image: &Path| {
        let run = run(&tools.folder, &tools.tracewalk, &arguments("runs", image))?;
        fs::read_to_string(run.stdout).map_err(|error| error.to_string())
    };
    if runs(&elf)? != runs(&dump.join("program.elf"))? {
        return Err("the same dump gives other runs with the larger program around its own".to_owned());
    }
    let mut theirs_arguments: Vec<OsString> = vec!["-e".into(), elf.clone().into()];
    theirs_arguments.extend(addresses.iter().map(OsString::from));
    let mut rows = Vec::new();
    for format in ["runs", "text"] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        // One run takes milliseconds, and processor time has a resolution of milliseconds.
        for _ in 0..options.rounds * 20 {
            ours.push(run(&tools.folder, &tools.tracewalk, &arguments(format, &elf))?.processor);
            theirs.push(run(&tools.folder, &tools.addr2line, &theirs_arguments)?.processor);
        }
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len().max(1) as f64;
        let (ours, theirs) = (mean(&ours), mean(&theirs));
        rows.push(Row {
            measure: "4 KiB of MTB",
            capture: format!(
                "--format {format}, {} KiB ELF",
                fs::metadata(&elf).map_or(0, |elf| elf.len() >> 10)
            ),
            per_megabyte: None,
            ours: format!("{:.1} ms", ours * 1e3),
            other: format!("addr2line, {} addresses, {:.1} ms", addresses.len(), theirs * 1e3),
            ratio: theirs / ours,
            goal: Some(1.0),
        });
    }
    Ok(rows)
}
