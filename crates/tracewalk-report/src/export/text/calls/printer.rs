//! The lines of a tree of calls: where functions are entered and left, and exceptions taken.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;

use tracewalk::flow::{Element, EventKind};
use tracewalk::ids::Address;

use super::super::super::calls_table::is_own;
use super::super::super::function_names::entry_place;
use super::super::{address_and_name, indent, rule};
use super::options::CallTreeOptions;
use crate::Palette;
use crate::layout::Fitted;
use tracewalk_analysis::call_stack::{
    Entry, Evidence, Frame, FrameKind, FunctionId, Interruption, Left, Observer, Piece, Task,
};
use tracewalk_analysis::quick::QuickMap;
use tracewalk_analysis::{Code, CodeInContext, Phase};

/// Writes lines.
#[derive(Debug)]
pub(super) struct Printer<W> {
    pub(super) out: Fitted<W>,
    pub(super) options: CallTreeOptions,
    pub(super) code: CodeInContext,
    pub(super) phase: Phase,
    /// A function that called nothing, and whose line may still represent several calls.
    leaf: Option<Leaf>,
    /// Cached lines, or their beginnings, of functions by entry and depth.
    lines: QuickMap<(Line, FunctionId, Option<Address>, usize), Rc<str>>,
    /// Cached lines of exceptions by depth, in the current context.
    exceptions: QuickMap<(Interruption, usize), Rc<str>>,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
}

/// A line of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Line {
    /// The entry, or the place where the function was found again after a gap.
    Entry { again: bool },
    /// The beginning of the line for its end.
    End,
}

/// The most lines that are kept.
const MOST_LINES: usize = 1 << 14;

/// Room for the escape sequences of colours.
const ROOM: usize = 16;

/// The line of a function that called nothing.
#[derive(Debug, PartialEq, Eq)]
struct Leaf {
    line: String,
    /// How often it ran in succession, in the same way.
    times: u64,
}

/// A function that is running.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// The function's entry; `None` if none of it ran yet.
    entry: Option<Address>,
    pub(super) depth: usize,
    /// The instructions that it ran, with those of the functions that it called.
    instructions: u64,
    /// Whether its line is printed, because something happened inside it.
    printed: bool,
    /// Whether it ran in code that no image holds.
    pub(super) missing: bool,
    /// Whether it was found again after a gap.
    regained: bool,
}

impl<W: Write> Printer<W> {
    pub(super) fn new(out: W, options: CallTreeOptions, code: CodeInContext) -> Self {
        let out = Fitted::new(out, options.look.width);
        Self {
            out,
            options,
            code,
            phase: Phase::Before,
            leaf: None,
            lines: QuickMap::default(),
            exceptions: QuickMap::default(),
            failed: None,
        }
    }

    /// A source's functions follow.
    pub(super) fn section(&mut self, code: &Arc<Code>) {
        self.code = CodeInContext::new(Arc::clone(code));
        self.phase = Phase::Before;
        self.lines.clear();
        self.exceptions.clear();
    }

    /// Takes note of the context.
    pub(super) fn see(&mut self, element: &Element) {
        self.code.element(element);
        if matches!(element, Element::Event(event) if matches!(event.kind, EventKind::Context { .. })) {
            self.exceptions.clear();
        }
    }

    pub(super) fn is_shown(&self, open: &Open) -> bool {
        self.phase == Phase::Inside && self.options.depth.is_none_or(|deepest| open.depth <= deepest)
    }

    /// Prints the line of a function that is running, if it has none yet.
    pub(super) fn print(&mut self, frame: &mut Frame<Open>) {
        if self.phase == Phase::Inside
            && !std::mem::replace(&mut frame.mark.printed, true)
            && self.is_shown(&frame.mark)
        {
            let line = self.entry_line(frame);
            self.line(&line);
        }
    }

    /// The line of a function that is entered.
    fn entry_line(&mut self, frame: &Frame<Open>) -> Rc<str> {
        let Open { entry, depth, regained, .. } = frame.mark;
        self.known((Line::Entry { again: regained }, frame.function, entry, depth))
    }

    /// A line from the cache, if it was built before.
    fn known(&mut self, key: (Line, FunctionId, Option<Address>, usize)) -> Rc<str> {
        if let Some(known) = self.lines.get(&key) {
            return Rc::clone(known);
        }
        if self.lines.len() >= MOST_LINES {
            self.lines.clear();
        }
        let (line, function, entry, depth) = key;
        let line = match line {
            Line::Entry { again } => self.new_entry_line(function, entry, depth, again),
            Line::End => {
                let (margin, name) = (indent(depth), function.name(self.code.whole()));
                format!("{:margin$}{}└ {name}  ", "", self.options.look.palette.quiet)
            }
        };
        Rc::clone(self.lines.entry(key).or_insert(line.into()))
    }

    fn new_entry_line(&self, id: FunctionId, entry: Option<Address>, depth: usize, again: bool) -> String {
        let Palette { function, quiet, .. } = self.options.look.palette;
        let margin = indent(depth);
        let name = match id {
            FunctionId::Missing(entry) => entry.to_string(),
            id => id.name(self.code.whole()),
        };
        let mut line = format!("{:margin$}{function}{name}{function:#}", "");
        let entry = entry.or(id.address());
        let offset = entry.zip(id.address()).and_then(|(entry, start)| entry.offset_from(start));
        if let Some(offset) = offset.filter(|offset| *offset != 0) {
            line.push_str(&format!("+0x{offset:x}"));
        }
        if let Some((file, number)) = entry_place(&self.code, id, entry) {
            let name = file.rsplit(['/', '\\']).next().unwrap_or(&file);
            line.push_str(&format!("  {quiet}{name}:{number}{quiet:#}"));
        }
        if again {
            line.push_str(&format!("  {quiet}found again{quiet:#}"));
        }
        line
    }

    /// The line of a function that called nothing, ending in `what`.
    fn of_leaf(&mut self, frame: &Frame<Open>, what: &str) {
        let quiet = self.options.look.palette.quiet;
        let entry = self.entry_line(frame);
        let mut line = String::with_capacity(entry.len() + what.len() + ROOM);
        let _ = write!(line, "{entry}  {quiet}{what}{quiet:#}");
        self.leaf_line(line);
    }

    /// The line above an exception's handler.
    pub(super) fn exception_line(&mut self, depth: usize, interruption: &Interruption) {
        let key = (*interruption, depth);
        if self.exceptions.len() >= MOST_LINES {
            self.exceptions.clear();
        }
        let line = match self.exceptions.get(&key) {
            Some(known) => Rc::clone(known),
            None => {
                let line = self.new_exception_line(depth, interruption);
                Rc::clone(self.exceptions.entry(key).or_insert(line.into()))
            }
        };
        self.line(&line);
    }

    fn new_exception_line(&self, depth: usize, interruption: &Interruption) -> String {
        let style = self.options.look.palette.exception;
        let name = interruption
            .exception
            .map_or_else(|| "an exception".to_owned(), |it| self.code.interrupts.describe(it).to_string());
        let returns = match interruption.returns_to {
            _ if interruption.chained => ", chained to the previous one".to_owned(),
            Some(address) => {
                let missing = !self.code.program.is_empty() && self.code.program.code(address).is_none();
                let note = if missing { " (in no image)" } else { "" };
                format!(", returns to {}{note}", address_and_name(&*self.code.symbols, address))
            }
            None => String::new(),
        };
        format!("{:1$}{style}▸ {name}{returns}{style:#}", "", indent(depth))
    }

    /// Holds back the line of a function that called nothing, because more equal calls may follow.
    fn leaf_line(&mut self, line: String) {
        if let Some(leaf) = self.leaf.as_mut().filter(|leaf| self.options.fold && leaf.line == line) {
            leaf.times += 1;
            return;
        }
        self.finish_leaves();
        self.leaf = Some(Leaf { line, times: 1 });
    }

    pub(super) fn finish_leaves(&mut self) {
        match self.leaf.take() {
            None => {}
            Some(Leaf { line, times: 1 }) => self.write(&line),
            Some(Leaf { line, times }) => {
                let quiet = self.options.look.palette.quiet;
                self.write(&format!("{line}  {quiet}×{times}{quiet:#}"));
            }
        }
    }

    /// Prints a line of its own.
    pub(super) fn line(&mut self, line: &str) {
        self.finish_leaves();
        self.write(line);
    }

    fn write(&mut self, line: &str) {
        if self.failed.is_none() {
            let written = self.out.write_all(line.as_bytes()).and_then(|()| self.out.write_all(b"\n"));
            self.failed = written.err();
        }
    }

    pub(super) fn result(&mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

fn count(instructions: u64) -> String {
    match instructions {
        1 => "1 instruction".to_owned(),
        count => format!("{count} instructions"),
    }
}

impl<W: Write> Observer for Printer<W> {
    type Mark = Open;

    fn enter(
        &mut self,
        below: Option<&mut Frame<Open>>,
        kind: FrameKind,
        _: FunctionId,
        entry: Entry,
    ) -> Open {
        let depth = below.as_ref().map_or(0, |below| below.mark.depth + 1);
        let open =
            Open { entry: None, depth, instructions: 0, printed: false, missing: false, regained: false };
        if self.is_shown(&open) {
            if let Some(below) = below {
                self.print(below);
            }
            if let (FrameKind::Exception(interruption), Entry::Interrupting) = (kind, entry) {
                self.exception_line(depth.saturating_sub(1), &interruption);
            }
        }
        open
    }

    fn regain(&mut self, below: Option<&mut Frame<Open>>, frame: &mut Frame<Open>) {
        let depth = below.as_ref().map_or(0, |below| below.mark.depth + 1);
        if let Some(below) = below {
            self.print(below);
        }
        frame.mark =
            Open { depth, instructions: 0, printed: false, missing: false, regained: true, ..frame.mark };
    }

    fn run(&mut self, top: &mut Frame<Open>, piece: &Piece) {
        top.mark.entry.get_or_insert(piece.start);
        if self.phase == Phase::Inside {
            top.mark.instructions += u64::from(piece.instructions);
        }
    }

    fn leave(&mut self, frame: &mut Frame<Open>, below: Option<&mut Frame<Open>>, how: Left) {
        let Open { depth, instructions, printed, missing, .. } = frame.mark;
        if !self.is_shown(&frame.mark) || (!printed && instructions == 0 && !missing) {
            // The call needs no line.
        } else if missing && !printed {
            self.of_leaf(frame, "not in any image");
        } else if !printed {
            self.of_leaf(frame, &count(instructions));
        } else if how != Left::Lost {
            let quiet = self.options.look.palette.quiet;
            let begin = self.known((Line::End, frame.function, None, depth));
            let unwound = if how == Left::Unwound { ", unwound" } else { "" };
            self.line(&format!("{begin}{}{unwound}{quiet:#}", count(instructions)));
        }
        if let (true, Some(below)) = (is_own(frame.kind), below) {
            below.mark.instructions += instructions;
        }
    }

    fn suspend(&mut self, top: &mut Frame<Open>) {
        self.print(top);
    }

    fn switch(&mut self, _: Task, to: Task, evidence: Evidence) {
        if self.phase != Phase::Inside {
            return;
        }
        let style = self.options.look.palette.head;
        self.line(&format!("{style}{}{style:#}", rule(&format!("{to}: {}", evidence.text()))));
    }
}
