//! Processor time and memory of other programs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The processor time and output of a program.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// User and system time in seconds.
    pub(super) processor: f64,
    pub(super) stdout: PathBuf,
    pub(super) stderr: String,
}

/// Runs a program once, with its output in files of `folder`. Exit status 2 counts as success: partial
/// results.
pub(super) fn run<A: AsRef<OsStr>>(folder: &Path, program: &Path, arguments: &[A]) -> Result<Run, String> {
    // The shell's `time` reads the kernel's accounting of a child, to milliseconds; std cannot.
    const SCRIPT: &str =
        "out=$1 err=$2; shift 2; TIMEFORMAT='%U %S'; { time \"$@\" >\"$out\" 2>\"$err\"; } 2>&1";
    let (stdout, stderr) = (folder.join("out"), folder.join("err"));
    let output = Command::new("bash")
        .args(["-c", SCRIPT, "time"])
        .args([&stdout, &stderr])
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .env("LC_ALL", "C")
        .output()
        .map_err(|error| format!("bash: {error}"))?;
    let said = fs::read(&stderr).map_err(|error| format!("{}: {error}", stderr.display()))?;
    let stderr = String::from_utf8_lossy(&said).into_owned();
    if !matches!(output.status.code(), Some(0 | 2)) {
        return Err(format!("{}: {}\n{stderr}", program.display(), output.status));
    }
    let times = String::from_utf8_lossy(&output.stdout);
    let times = times.split_whitespace().filter_map(|time| time.parse().ok()).collect::<Vec<f64>>();
    let [user, system] = times[..] else {
        return Err(format!("found {times:?}, expected two times of {}", program.display()));
    };
    Ok(Run { processor: user + system, stdout, stderr })
}

/// The median; for an even number of values, the mean of the middle two.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        length if length % 2 == 0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

/// The peak of a program's private memory in bytes, sampled from the kernel every few milliseconds.
pub(super) fn peak_private_memory<A: AsRef<OsStr>>(program: &Path, arguments: &[A]) -> Result<u64, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", program.display());
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(fail)?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().map_err(fail)?.is_none() {
        if let Some(now) = fs::read_to_string(&status).ok().as_deref().and_then(private_memory) {
            peak = peak.max(now);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let ended = child.wait().map_err(fail)?;
    if matches!(ended.code(), Some(0 | 2)) {
        Ok(peak)
    } else {
        Err(format!("{}: {ended}", program.display()))
    }
}

/// The processor time of a program's threads in seconds: the sum, and the largest.
pub(super) fn time_of_threads<A: AsRef<OsStr>>(
    program: &Path,
    arguments: &[A],
) -> Result<(f64, f64), String> {
    let fail = |error: std::io::Error| format!("{}: {error}", program.display());
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(fail)?;
    let tasks = format!("/proc/{}/task", child.id());
    let mut times = BTreeMap::<OsString, f64>::new();
    while child.try_wait().map_err(fail)?.is_none() {
        for task in fs::read_dir(&tasks).into_iter().flatten().flatten() {
            // The first number: nanoseconds on a processor.
            let time = fs::read_to_string(task.path().join("schedstat")).ok();
            let time = time.as_deref().and_then(|time| time.split(' ').next()?.parse::<f64>().ok());
            if let Some(time) = time.filter(|time| *time > 0.0) {
                times.insert(task.file_name(), time / 1e9);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok((times.values().sum(), times.values().copied().fold(0.0, f64::max)))
}

/// `RssAnon`: memory that is neither a mapped file nor shared.
fn private_memory(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// The number under `key` in a line of JSON.
pub(super) fn number(json: &str, key: &str) -> Result<f64, String> {
    let value = json.split_once(&format!("\"{key}\":")).map(|(_, rest)| rest);
    let value = value.and_then(|rest| rest.split([',', '}']).next());
    value.and_then(|value| value.parse().ok()).ok_or_else(|| format!("found no number {key:?} in {json:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median(vec![9.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!((median(vec![9.0, 1.0, 2.0, 4.0]) - 3.0).abs() < f64::EPSILON);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn numbers_are_read_where_they_stand() {
        let json = "{\"bytes\":12,\"seconds\":0.25}";
        assert!((number(json, "bytes").unwrap() - 12.0).abs() < f64::EPSILON);
        assert!((number(json, "seconds").unwrap() - 0.25).abs() < f64::EPSILON);
        assert!(number(json, "packets").is_err());
    }

    #[test]
    fn private_memory_is_a_line_of_the_status() {
        assert_eq!(private_memory("Name:\tx\nRssAnon:\t     12 kB\nRssFile:\t 4 kB\n"), Some(12 << 10));
        assert_eq!(private_memory("Name:\tx\n"), None);
    }
}
