//! The table of results, and where it is saved.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use super::rows::Row;
use crate::process::{output, workspace};

/// The rows as Markdown.
pub(super) fn table(rows: &[Row]) -> String {
    let mut text =
        "| measure | capture | ours | ms per MB | beside | ratio | goal |\n|---|---|---|---|---|---|---|\n"
            .to_owned();
    for Row { measure, capture, per_megabyte, ours, other, ratio, goal } in rows {
        let goal = goal.map_or_else(String::new, |goal| goal.to_string());
        let each = per_megabyte.map_or_else(String::new, |each| format!("{:.2}", each * 1e3));
        let _ = writeln!(text, "| {measure} | {capture} | {ours} | {each} | {other} | {ratio:.2} | {goal} |");
    }
    text
}

/// The day, the machine, the commit and the versions.
struct Provenance {
    day: String,
    commit: String,
    /// The day, the machine, the commit and the versions as a sentence.
    text: String,
}

impl Provenance {
    fn now() -> Result<Self, String> {
        let say = |program: &str, arguments: &[&str]| {
            output(Command::new(program).args(arguments)).map(|text| text.trim().to_owned())
        };
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = |line: &str| Some(line.strip_prefix("model name")?.split_once(": ")?.1.to_owned());
        let cpu = cpu.lines().find_map(name).unwrap_or_else(|| "an unknown processor".to_owned());
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        let commit = say("git", &["rev-parse", "--short", "HEAD"]).unwrap_or_else(|_| "unknown".to_owned());
        let version = |package: &str| {
            say("dpkg-query", &["-W", "-f", "${Version}", package]).unwrap_or_else(|_| "unknown".to_owned())
        };
        let text = format!(
            "{cpu}, {processors} processors; {}; commit {commit}; OpenCSD {}; binutils {}.",
            say("rustc", &["--version"])?,
            version("libopencsd-dev"),
            version("binutils-arm-none-eabi"),
        );
        Ok(Self { day: say("date", &["-u", "+%Y-%m-%d"])?, commit, text })
    }
}

/// Saves the table with the day, the machine and the versions.
pub(super) fn keep(table: &str) -> Result<(), String> {
    let Provenance { day, commit, text } = Provenance::now()?;
    let text = format!(
        "# {day}\n\n{text}\n\
         Made by `cargo xtask bench --record`; `README.md` says what the lines mean.\n\n{table}"
    );
    let file = workspace().join(format!("benches/record/{day}-{commit}.md"));
    fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))
}
