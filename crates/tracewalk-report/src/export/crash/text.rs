//! For people: on a terminal, and in a bug report.

use std::io::{self, Write};

use tracewalk::plain::Plain;
use tracewalk_analysis::crash::Doubt;

use super::sheet::{Part, parts};
use super::{CrashReport, Source};
use crate::Look;
use crate::words::CUT;

/// The width of the lines if the output is no terminal.
const WIDTH: usize = 80;
/// The width of sentences at most.
const WIDEST: usize = 100;

/// Writes the report for a terminal.
pub fn write_crash_text(out: &mut dyn Write, report: &CrashReport, look: Look) -> io::Result<()> {
    let head = look.palette.head;
    let width = look.width.unwrap_or(WIDTH);
    let room = width.saturating_sub(2);
    for source in report.each() {
        if report.sources.len() > 1 {
            writeln!(out, "{head}{}{head:#}", source.section)?;
        }
        if source.crash.is_none() {
            wrapped(no_crash(report, source), width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        for Part { title, lines, columns } in parts(source) {
            if lines.is_empty() {
                continue;
            }
            writeln!(out, "{head}{title}{head:#}")?;
            for line in lines {
                let line = Plain(&line).to_string();
                let lines = if columns { vec![cut(&line, room)] } else { wrapped(&line, room) };
                for line in lines {
                    writeln!(out, "  {line}")?;
                }
            }
        }
    }
    if !report.complete {
        writeln!(out, "{CUT}")?;
    }
    Ok(())
}

/// The text for a source whose trace shows no crash.
fn no_crash(report: &CrashReport, source: Source<'_>) -> &'static str {
    if source.lacks_trace() {
        "The registers show no fault, and no exception without a handler."
    } else if source.doubts().contains(&Doubt::NoProgram) {
        "How the program ended is not known: there is no program to follow."
    } else if report.whole && report.complete {
        "The trace does not end in a fault, a reset or an exception without a handler."
    } else {
        "How the program ended is not known: parts of the trace are missing or cannot be read. What is there does not end in a \
         fault, a reset or an exception without a handler."
    }
}

/// Writes the report as Markdown.
pub fn write_crash_markdown(out: &mut dyn Write, report: &CrashReport, _: Look) -> io::Result<()> {
    for source in report.each() {
        writeln!(out, "## Crash, {}\n", source.section)?;
        if source.crash.is_none() {
            writeln!(out, "{}\n", no_crash(report, source))?;
        }
        for Part { title, lines, columns } in parts(source) {
            if lines.is_empty() {
                continue;
            }
            writeln!(out, "### {title}\n")?;
            if columns {
                writeln!(out, "```text")?;
                for line in lines {
                    // A name in the program must not end the code block.
                    writeln!(out, "{}", Plain(line.replace("```", "'''")))?;
                }
                writeln!(out, "```\n")?;
            } else if let [only] = lines.as_slice() {
                writeln!(out, "{}\n", Plain(only))?;
            } else {
                for line in lines {
                    writeln!(out, "- {}", Plain(line))?;
                }
                writeln!(out)?;
            }
        }
    }
    if !report.complete {
        writeln!(out, "{CUT}")?;
    }
    Ok(())
}

/// The line, as far as it fits.
fn cut(line: &str, room: usize) -> String {
    if line.chars().count() <= room {
        return line.to_owned();
    }
    line.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

/// A sentence in lines.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let room = room.min(WIDEST);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
