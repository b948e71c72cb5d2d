//! The parts of a crash report, for the formats that people read.

use tracewalk::ids::{Address, Isa, Location};
use tracewalk_analysis::Code;
use tracewalk_analysis::crash::{Crash, PathItem, Running, TraceEnd};

use super::{Source, words};

/// A part: its title and its lines.
pub(super) struct Part {
    pub(super) title: &'static str,
    pub(super) lines: Vec<String>,
    /// Whether the lines are columns, or else sentences.
    pub(super) columns: bool,
}

/// The most lines of the path and of the stack.
const PATH_LINES: usize = 8;
const STACK_LINES: usize = 8;
/// The lines of the outermost frames that are shown as well.
const OUTERMOST: usize = 3;

impl Part {
    const fn columns(title: &'static str, lines: Vec<String>) -> Self {
        Self { title, lines, columns: true }
    }

    const fn sentences(title: &'static str, lines: Vec<String>) -> Self {
        Self { title, lines, columns: false }
    }
}

/// The parts of a source, most important first.
pub(super) fn parts(source: Source<'_>) -> Vec<Part> {
    let code = &*source.section.code;
    let mut parts = source.crash.map(|crash| of_crash(source, crash)).unwrap_or_default();
    let doubts = source.doubts().iter().map(|doubt| words::doubt(code, doubt)).collect();
    if let Some(polls) = source.polls() {
        parts.push(Part::sentences("End of the trace", vec![words::waiting(code, polls)]));
    }
    // After the fault and its cause.
    parts.insert(parts.len().min(2), Part::sentences("Doubt", doubts));
    if let Some(TraceEnd { stack: running, path: ran, last, .. }) = source.shown_end() {
        parts.extend([
            Part::columns("Call stack at the end of the trace", stack(code, running)),
            Part::columns("Last path of the trace", path(code, ran)),
            Part::columns("Last instructions of the trace", instructions(code, last)),
        ]);
    }
    parts
}

fn of_crash(source: Source<'_>, crash: &Crash) -> Vec<Part> {
    let code = &*source.section.code;
    let (columns, sentences) = (Part::columns, Part::sentences);
    let cause = match &crash.cause {
        Some(cause) => words::sentence(code, cause),
        None if source.lacks_trace() => "Not proven by the registers and the memory.".to_owned(),
        None => "Not proven by the trace and the saved state.".to_owned(),
    };
    let missing = crash.missing.iter().map(|missing| words::missing(code, *missing));
    let proof = crash.cause.iter().flat_map(|cause| &cause.proof);
    vec![
        columns(if crash.is_without_exception() { "End" } else { "Fault" }, fault(code, crash)),
        sentences("Cause", vec![cause]),
        columns("Call stack", stack(code, &crash.stack)),
        columns("Last path", path(code, &crash.path)),
        columns("Last instructions", instructions(code, &crash.last)),
        columns("Proof", proof.map(|evidence| words::evidence(code, evidence)).collect()),
        sentences("Not known", missing.collect()),
    ]
}

fn fault(code: &Code, crash: &Crash) -> Vec<String> {
    let mut lines = Vec::new();
    let at = crash.at.map_or_else(String::new, |at| {
        let known = code.symbols.function(at).is_some();
        format!(" at {at}{}", if known { format!(", {}", words::place(code, at)) } else { String::new() })
    });
    let what = match crash.is_without_exception() {
        true => "no exception".to_owned(),
        false => words::exception(code, crash.exception),
    };
    lines.push(format!("{what}{at}"));
    if let Some(at) = crash.at {
        let faulting = code.symbols.function(at).is_some() && code.program.code(at).is_some();
        lines.extend(match crash.last.last() {
            Some(last) if !faulting => Some(format!(
                "after        {}, {}",
                words::instruction(code, *last),
                words::place(code, *last)
            )),
            last => (last.is_some() || faulting && !crash.stack.is_empty())
                .then(|| format!("instruction  {}", words::instruction(code, at))),
        });
    }
    for register in &crash.status {
        lines.push(format!("{:5} 0x{:08x}", register.name, register.value));
        lines.extend(register.fields.iter().map(|(name, meaning)| format!("      {name}: {meaning}")));
    }
    if let Some(frame) = &crash.frame {
        if crash.at.is_none() {
            lines.push(format!("stacked pc   {}", words::place(code, frame.returns_to())));
        }
        let names = ["r0", "r1", "r2", "r3", "r12", "lr", "pc", "xpsr"];
        let words = names.iter().zip(frame.words).map(|(name, word)| format!("{name} {word:08x}"));
        let words = words.collect::<Vec<_>>();
        for half in words.chunks(4) {
            lines.push(half.join("  "));
        }
    }
    lines
}

/// The stack, innermost frame first. Recursion is one line, and the outermost frames are always shown: they show who called.
fn stack(code: &Code, stack: &[Running]) -> Vec<String> {
    let entry = |(index, times): (usize, usize)| {
        let Some(running) = stack.get(index) else { return String::new() };
        let name = running.function.name(code);
        let line = running.at.and_then(|at| words::line(code, at));
        let at = running.at.map_or_else(String::new, |at| format!("  {at}"));
        let handles =
            running.handles.map_or_else(String::new, |it| format!("  ({})", words::exception(code, it)));
        let times = if times > 1 { format!("  {times} times") } else { String::new() };
        format!("#{index:<2} {name}{handles}  {}{at}{times}", line.unwrap_or_default())
    };
    let folded = folded(stack);
    let hidden = folded.len().saturating_sub(STACK_LINES + OUTERMOST);
    if hidden <= 1 {
        return folded.into_iter().map(entry).collect();
    }
    let (inner, rest) = folded.split_at(STACK_LINES);
    let (left_out, outer) = rest.split_at(hidden);
    let more = left_out.iter().map(|(_, times)| times).sum::<usize>();
    let inner = inner.iter().copied().map(entry);
    inner.chain([format!("… {more} more")]).chain(outer.iter().copied().map(entry)).collect()
}

/// The frames: the index of each, and how many like it follow one another, of the same function at the same call.
fn folded(stack: &[Running]) -> Vec<(usize, usize)> {
    let mut folded: Vec<(usize, usize)> = Vec::new();
    for (index, frame) in stack.iter().enumerate() {
        match folded.last_mut() {
            Some((first, times)) if frame.at.is_some() && stack.get(*first) == Some(frame) => *times += 1,
            _ => folded.push((index, 1)),
        }
    }
    folded
}

fn path(code: &Code, path: &[PathItem]) -> Vec<String> {
    let from = path.len().saturating_sub(PATH_LINES);
    path.get(from..).unwrap_or_default().iter().map(|item| path_item(code, item)).collect()
}

fn path_item(code: &Code, item: &PathItem) -> String {
    match item {
        PathItem::Run { start, last, .. } => {
            format!("{:08x} to {:08x}  {}", start, last, run_name(code, *start, *last))
        }
        PathItem::Loop { body, times } => {
            let mut names = body.iter().map(|item| loop_name(code, item)).collect::<Vec<_>>();
            names.dedup();
            format!("{times:>8} times: {}", names.join(" → "))
        }
        PathItem::Exception { exception, returns_to } => {
            let to = returns_to.map_or_else(String::new, |to| format!(", returns to {to}"));
            format!("── {}{to}", words::exception(code, *exception))
        }
        PathItem::ExceptionReturn => "── return from the exception".to_owned(),
        PathItem::Unknown => "── execution here is unknown".to_owned(),
        PathItem::NoCode { at } => format!("{at:08x} …  no known code"),
    }
}

fn loop_name(code: &Code, item: &PathItem) -> String {
    match item {
        PathItem::Run { start, last, .. } => run_name(code, *start, *last),
        PathItem::Loop { body, times } => {
            let names = body.iter().map(|item| loop_name(code, item)).collect::<Vec<_>>();
            format!("({times} times: {})", names.join(" → "))
        }
        PathItem::NoCode { at } => at.to_string(),
        other => path_item(code, other),
    }
}

/// The function, and the lines from the first to the last instruction.
fn run_name(code: &Code, start: Address, last: Address) -> String {
    let name = |at| code.symbols.function(at).map_or_else(|| at.to_string(), |it| it.name.to_owned());
    let (first, end) = (words::line(code, start), words::line(code, last));
    let lines = match (first, end) {
        (Some(first), Some(end)) if first != end && name(start) == name(last) => {
            let line = end.rsplit(':').next().unwrap_or_default().to_owned();
            format!("  {first}…{line}")
        }
        (Some(first), _) => format!("  {first}"),
        (None, _) => String::new(),
    };
    format!("{}{lines}", name(start))
}

fn instructions(code: &Code, last: &[Address]) -> Vec<String> {
    const SHOWN: usize = 5;
    let shown = last.get(last.len().saturating_sub(SHOWN)..).unwrap_or_default();
    shown
        .iter()
        .map(|at| {
            let text = super::super::text::instruction_text(code, Location::new(*at, Isa::T32));
            let line = words::line(code, *at).map_or_else(String::new, |line| format!("  ; {line}"));
            format!("{:08x}  {text}{line}", at)
        })
        .collect()
}
