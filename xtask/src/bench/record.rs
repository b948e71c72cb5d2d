//! The table, and where it is kept.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use super::rows::Row;
use crate::process::output;
use crate::workspace;

/// The rows as Markdown.
pub(super) fn table(rows: &[Row]) -> String {
    let mut text =
        "| measure | capture | ours | beside | ratio | goal |\n|---|---|---|---|---|---|\n".to_owned();
    for Row { measure, capture, ours, other, ratio, goal } in rows {
        let goal = goal.map_or_else(String::new, |goal| goal.to_string());
        let _ = writeln!(text, "| {measure} | {capture} | {ours} | {other} | {ratio:.2} | {goal} |");
    }
    text
}

/// Writes the table down, with the day, the machine and the versions.
pub(super) fn keep(table: &str) -> Result<(), String> {
    let say = |program: &str, arguments: &[&str]| {
        output(Command::new(program).args(arguments)).map(|text| text.trim().to_owned())
    };
    let day = say("date", &["-u", "+%Y-%m-%d"])?;
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu =
        cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, name)| name);
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let commit = say("git", &["rev-parse", "--short", "HEAD"]).unwrap_or_else(|_| "unknown".to_owned());
    let version = |package: &str| {
        say("dpkg-query", &["-W", "-f", "${Version}", package]).unwrap_or_else(|_| "unknown".to_owned())
    };
    let text = format!(
        "# {day}\n\n{}, {processors} processors; {}; commit {commit}; OpenCSD {}; binutils {}.\n\
         Made by `cargo xtask bench --record`; `docs/performance.md` says what the lines mean.\n\n{table}",
        cpu.unwrap_or("an unknown processor"),
        say("rustc", &["--version"])?,
        version("libopencsd-dev"),
        version("binutils-arm-none-eabi"),
    );
    let file = workspace().join(format!("benches/record/{day}-{commit}.md"));
    fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))
}
