//! Measures the cost of bytes that are not trace, between stretches of sound trace.

use std::fs;
use std::path::{Path, PathBuf};

use super::Options;
use super::captures::{Capture, read};
use super::measure::median;
use super::rows::{Row, tracewalk};
use super::tools::Tools;

/// The next byte.
type Next = fn(&mut u64) -> u8;

/// The kinds of bytes between the trace.
const KINDS: [(&str, Next); 3] = [("random bytes", random), ("zeros", |_| 0), ("0xff", |_| 0xff)];

/// The time for a byte of each kind, compared with a byte of trace. Only a capture in frames has to detect
/// bytes that are not trace.
pub(super) fn rows(tools: &Tools, capture: &Capture, options: Options) -> Result<Vec<Row>, String> {
    let folder = capture.repeated.with_extension("junk");
    let trace_name = capture.trace_once.file_name().ok_or("found a capture without a name")?;
    copy_all_but(&capture.repeated, &folder, trace_name)?;
    let trace = read(&capture.repeated.join(trace_name))?;
    let mut rows = Vec::new();
    for (kind, byte) in KINDS {
        let mut state = 1;
        let junk = (0..trace.len()).map(|_| byte(&mut state)).collect::<Vec<_>>();
        let whole = [&trace[..], &junk, &trace].concat();
        let file = folder.join(trace_name);
        fs::write(&file, &whole).map_err(|error| format!("{}: {error}", file.display()))?;
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            let flow = ["--format", "none", "--threads", "1"];
            with.push(tracewalk(tools, "flow", &flow, &folder)?.processor);
            without.push(tracewalk(tools, "flow", &flow, &capture.repeated)?.processor);
        }
        let (with, without) = (median(with), median(without));
        let junk = (with - 2.0 * without).max(f64::MIN_POSITIVE);
        let per_megabyte = |seconds: f64| seconds * 1e6 / trace.len() as f64;
        rows.push(Row {
            measure: "junk",
            capture: format!("{kind} in {}", capture.name),
            per_megabyte: Some(per_megabyte(junk)),
            ours: format!("{:.1} ms per MB", per_megabyte(junk) * 1e3),
            other: format!("trace {:.1} ms per MB", per_megabyte(without) * 1e3),
            ratio: without / junk,
            goal: Some(1.0),
        });
    }
    fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(rows)
}

/// A linear congruential generator with Knuth's multiplier; its high bits are the most random.
fn random(state: &mut u64) -> u8 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    state.to_be_bytes()[0]
}

fn copy_all_but(from: &Path, to: &PathBuf, left_out: &std::ffi::OsStr) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("{}: {error}", to.display());
    fs::create_dir_all(to).map_err(fail)?;
    for entry in fs::read_dir(from).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if entry.file_name() != left_out {
            fs::copy(entry.path(), to.join(entry.file_name())).map_err(fail)?;
        }
    }
    Ok(())
}
