//! `calls`, and `flow --functions`: the functions that ran, as a tree of calls.
use std::sync::Arc;

use std::io::{self, Write};

use tracewalk::flow::{Element, EventKind, GapReason};
use tracewalk::ids::{Address, Exception};

use super::{address_and_name, gap_text, indent, marked_event, rule};
use crate::Palette;
use tracewalk_analysis::call_stack::{
    CallStack, Entry, Evidence, Frame, FrameKind, FunctionId, Interruption, Left, Observer, Piece, Task,
};
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, CodeInContext, Phase, Section, Window, Windowed};

/// Writes a tree of calls: a line where a function is entered and, if it called others, one where it is left.
#[derive(Debug)]
pub struct CallTree<W> {
    calls: CallStack<Open>,
    printer: Printer<W>,
    windowed: Windowed,
    first_section: bool,
}

/// How a tree of calls is printed.
#[derive(Clone, Copy, Debug)]
pub struct CallTreeOptions {
    /// The colours.
    pub palette: Palette,
    /// Functions deeper than this are not printed, only counted in those that called them.
    pub depth: Option<usize>,
    /// Whether calls that look the same and come one after the other share a line.
    pub fold: bool,
    /// What is printed; what runs before it is followed all the same, so that its calls are known.
    pub window: Window,
}

#[derive(Debug)]
struct Printer<W> {
    out: W,
    options: CallTreeOptions,
    code: CodeInContext,
    phase: Phase,
    /// A function that called nothing, and whose line may still be for several of them.
    leaf: Option<Leaf>,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
}

/// The line of a function that called nothing.
#[derive(Debug, PartialEq, Eq)]
struct Leaf {
    line: String,
    /// How often it ran in succession, in the same way.
    times: u64,
}

/// A function that is running.
#[derive(Debug)]
struct Open {
    /// Where it was entered; `None` where nothing of it ran yet.
    entry: Option<Address>,
    depth: usize,
    /// How many instructions it ran, with those of the functions it called.
    instructions: u64,
    /// Whether its line is printed, because something happened inside it.
    printed: bool,
    /// Whether it ran where no image holds the code.
    missing: bool,
    /// Whether it was found again behind a gap.
    regained: bool,
}

impl<W: Write> CallTree<W> {
    /// Writes to `out`.
    pub fn new(out: W, options: CallTreeOptions) -> Self {
        let code = Arc::new(Code::unknown());
        Self {
            calls: CallStack::new(Arc::clone(&code)),
            printer: Printer {
                out,
                options,
                code: CodeInContext::new(code),
                phase: Phase::Before,
                leaf: None,
                failed: None,
            },
            windowed: options.window.begin(),
            first_section: true,
        }
    }

    /// The window begins: prints the functions that are running.
    fn open_window(&mut self) {
        let mut depth = 0;
        for frame in self.calls.frames_mut() {
            if let FrameKind::Exception(interruption) = &frame.kind
                && self.printer.is_shown(&frame.mark)
            {
                self.printer.exception_line(depth, interruption);
            }
            depth = frame.mark.depth;
            self.printer.print(frame);
        }
    }

    /// The window ends, or the trace does.
    fn close_window(&mut self) {
        self.calls.finish(&mut self.printer);
        self.printer.finish_leaves();
    }

    fn event(&mut self, event: &EventKind) {
        if let (EventKind::TraceOn(_), Some(text)) = (event, marked_event(&self.printer.code, event)) {
            let style = self.printer.options.palette.quiet;
            self.printer.line(&format!("{style}{}{style:#}", rule(&text)));
        }
    }

    fn gap(&mut self, reason: GapReason, text: &str) {
        match reason {
            GapReason::NoCode(_) => {
                if let Some(top) = self.calls.innermost_mut() {
                    top.mark.missing = true;
                }
            }
            _ => {
                let style = self.printer.options.palette.problem;
                self.printer.line(&format!("{style}{}{style:#}", rule(text)));
            }
        }
    }
}

impl<W: Write> Printer<W> {
    fn is_shown(&self, open: &Open) -> bool {
        self.phase == Phase::Inside && self.options.depth.is_none_or(|deepest| open.depth <= deepest)
    }

    /// Prints the line of a function that is running, if it has none yet.
    fn print(&mut self, frame: &mut Frame<Open>) {
        if self.phase == Phase::Inside
            && !std::mem::replace(&mut frame.mark.printed, true)
            && self.is_shown(&frame.mark)
        {
            let line = self.entry_line(frame);
            self.line(&line);
        }
    }

    /// The line of a function that is entered.
    fn entry_line(&self, frame: &Frame<Open>) -> String {
        let Palette { function, quiet, .. } = self.options.palette;
        let margin = indent(frame.mark.depth);
        let name = match frame.function {
            FunctionId::Missing(entry) => entry.to_string(),
            function => function.name(self.code.whole()),
        };
        let mut line = format!("{:margin$}{function}{name}{function:#}", "");
        let entry = frame.mark.entry.or(frame.function.address());
        let offset = entry.zip(frame.function.address()).and_then(|(entry, start)| entry.offset_from(start));
        if let Some(offset) = offset.filter(|offset| *offset != 0) {
            line.push_str(&format!("+0x{offset:x}"));
        }
        let symbols = &self.code.whole().in_scope(frame.function.scope()).symbols;
        let frames = entry.map(|entry| symbols.frames(entry)).unwrap_or_default();
        if let Some((file, number)) =
            frames.first().and_then(|frame| Some((frame.file.as_deref()?, frame.line?)))
        {
            let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
            line.push_str(&format!("  {quiet}{name}:{number}{quiet:#}"));
        }
        if frame.mark.regained {
            line.push_str(&format!("  {quiet}found again{quiet:#}"));
        }
        line
    }

    /// The line above an exception's handler.
    fn exception_line(&mut self, depth: usize, interruption: &Interruption) {
        let style = self.options.palette.exception;
        let name = interruption
            .exception
            .map_or_else(|| "an exception".to_owned(), |it| self.code.interrupts.describe(it).to_string());
        let behind = match interruption.returns_to {
            _ if interruption.chained => ", chained to the one before".to_owned(),
            Some(address) => {
                let missing = !self.code.program.is_empty() && self.code.program.code(address).is_none();
                let note = if missing { " (in no image)" } else { "" };
                format!(", returns to {}{note}", address_and_name(&*self.code.symbols, address))
            }
            None => String::new(),
        };
        self.line(&format!("{:1$}{style}▸ {name}{behind}{style:#}", "", indent(depth)));
    }

    /// Holds back the line of a function that called nothing, for more of them may come.
    fn leaf_line(&mut self, line: String) {
        if let Some(leaf) = self.leaf.as_mut().filter(|leaf| self.options.fold && leaf.line == line) {
            leaf.times += 1;
            return;
        }
        self.finish_leaves();
        self.leaf = Some(Leaf { line, times: 1 });
    }

    fn finish_leaves(&mut self) {
        match self.leaf.take() {
            None => {}
            Some(Leaf { line, times: 1 }) => self.write(&line),
            Some(Leaf { line, times }) => {
                let quiet = self.options.palette.quiet;
                self.write(&format!("{line}  {quiet}×{times}{quiet:#}"));
            }
        }
    }

    /// Prints a line of its own.
    fn line(&mut self, line: &str) {
        self.finish_leaves();
        self.write(line);
    }

    fn write(&mut self, line: &str) {
        if self.failed.is_none() {
            self.failed = writeln!(self.out, "{line}").err();
        }
    }

    fn result(&mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
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
        let quiet = self.options.palette.quiet;
        let count = match instructions {
            1 => "1 instruction".to_owned(),
            count => format!("{count} instructions"),
        };
        if !self.is_shown(&frame.mark) || (!printed && instructions == 0 && !missing) {
            // There is nothing to be said of it.
        } else if missing && !printed {
            let line = self.entry_line(frame);
            self.leaf_line(format!("{line}  {quiet}not in any image{quiet:#}"));
        } else if !printed {
            let line = self.entry_line(frame);
            self.leaf_line(format!("{line}  {quiet}{count}{quiet:#}"));
        } else if how != Left::Lost {
            let margin = indent(depth);
            let name = frame.function.name(self.code.whole());
            let unwound = if how == Left::Unwound { ", unwound" } else { "" };
            self.line(&format!("{:margin$}{quiet}└ {name}  {count}{unwound}{quiet:#}", ""));
        }
        let own = match frame.kind {
            FrameKind::Exception(Interruption { exception, .. }) => {
                exception.is_some_and(Exception::is_synchronous)
            }
            FrameKind::Root | FrameKind::Call { .. } => true,
        };
        if let (true, Some(below)) = (own, below) {
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
        let style = self.options.palette.head;
        self.line(&format!("{style}{}{style:#}", rule(&format!("{to}: {}", evidence.text()))));
    }
}

impl<W: Write> Sink<FlowRecord> for CallTree<W> {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        let head = self.printer.options.palette.head;
        if !std::mem::take(&mut self.first_section) {
            writeln!(self.printer.out)?;
        }
        writeln!(self.printer.out, "{head}{section}{head:#}")?;
        self.printer.code = CodeInContext::new(Arc::clone(&section.code));
        self.printer.phase = Phase::Before;
        self.windowed = self.printer.options.window.begin();
        self.calls = CallStack::new(Arc::clone(&section.code));
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        let phase = self.windowed.element(&record.element, record.at);
        match (self.printer.phase, phase) {
            (Phase::After, _) => return Ok(()),
            (Phase::Inside, Phase::After) => self.close_window(),
            (Phase::Before, Phase::Inside) => {
                self.printer.phase = phase;
                self.open_window();
            }
            _ => {}
        }
        self.printer.phase = phase;
        if phase == Phase::After {
            return self.printer.result();
        }
        self.printer.code.element(&record.element);
        self.calls.element(&record.element, &mut self.printer);
        if phase == Phase::Before {
            return Ok(());
        }
        match &record.element {
            Element::Block(_) | Element::Proof(_) => {}
            Element::Event(event) => self.event(&event.kind),
            Element::Gap(gap) => self.gap(gap.reason, &gap_text(gap)),
        }
        self.printer.result()
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.close_window();
        self.printer.result()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewalk::span::CaptureOffset;
    use tracewalk_analysis::Position;
    use tracewalk_analysis::samples::{
        block, call, event, exception, interrupted, page, pages, returns, taken,
    };

    fn tree(elements: &[Element]) -> String {
        tree_to(None, elements)
    }

    fn tree_to(depth: Option<usize>, elements: &[Element]) -> String {
        tree_in(Window::default(), depth, elements)
    }

    fn tree_in(window: Window, depth: Option<usize>, elements: &[Element]) -> String {
        let section = Section { id: None, protocol: "mtb", number: 1, code: pages() };
        let mut out = Vec::new();
        let options = CallTreeOptions { palette: Palette::PLAIN, depth, fold: true, window };
        let mut tree = CallTree::new(&mut out, options);
        tree.section(&section).unwrap();
        for &element in elements {
            tree.record(FlowRecord { element, at: CaptureOffset(0) }).unwrap();
        }
        tree.end_section().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn functions_that_call_nothing_take_one_line_and_others_two() {
        let text = tree(&[
            block(0x110, 0x114, call()),
            block(0x200, 0x204, call()),
            block(0x300, 0x308, returns()),
            block(0x204, 0x206, returns()),
            block(0x114, 0x118, taken()),
        ]);
        let expected = "\
one source without trace ID, mtb
main+0x10
  sort
    swap  4 instructions
  └ sort  7 instructions
";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_same_call_again_and_again_takes_one_line() {
        let mut elements = Vec::new();
        for index in 0..3 {
            elements.push(block(0x110 + 4 * index, 0x114 + 4 * index, call()));
            elements.push(block(0x300, 0x308, returns()));
        }
        elements.push(block(0x11c, 0x120, taken()));
        let expected = "one source without trace ID, mtb\nmain+0x10\n  swap  4 instructions  ×3\n";
        assert_eq!(tree(&elements), expected);
    }

    #[test]
    fn a_tail_call_takes_the_place_of_its_caller_and_an_exception_is_marked() {
        let text = tree(&[
            block(0x110, 0x114, call()),
            block(0x200, 0x204, taken()),
            block(0x300, 0x302, interrupted()),
            exception(Exception::M(15), Some(0x302), 0x400),
            block(0x400, 0x402, returns()),
            event(EventKind::ExceptionReturn),
            block(0x302, 0x304, returns()),
            block(0x114, 0x118, taken()),
        ]);
        let expected = "\
one source without trace ID, mtb
main+0x10
  sort  2 instructions
  swap
  ▸ SysTick, returns to 0x00000302 <swap+0x2>
    handler  1 instruction
  └ swap  2 instructions
";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_is_deeper_than_asked_for_is_only_counted() {
        let text = tree_to(
            Some(1),
            &[
                block(0x110, 0x114, call()),
                block(0x200, 0x204, call()),
                block(0x300, 0x308, returns()),
                block(0x204, 0x206, returns()),
                block(0x114, 0x118, taken()),
            ],
        );
        assert_eq!(text, "one source without trace ID, mtb\nmain+0x10\n  sort  7 instructions\n");
    }

    #[test]
    fn a_window_begins_with_the_functions_that_are_running_and_counts_what_is_in_it() {
        let story = [
            block(0x110, 0x114, call()),
            block(0x200, 0x204, interrupted()),
            exception(Exception::M(15), Some(0x204), 0x400),
            block(0x400, 0x402, call()),
            block(0x300, 0x308, returns()),
            block(0x402, 0x404, returns()),
            event(EventKind::ExceptionReturn),
            block(0x204, 0x206, call()),
            block(0x300, 0x308, returns()),
            block(0x206, 0x208, returns()),
        ];
        let window = Window { from: Some(Position::Instructions(5)), to: Some(Position::Instructions(11)) };
        let expected = "\
one source without trace ID, mtb
main+0x10
  sort
  ▸ SysTick, returns to 0x00000204 <sort+0x4>
    handler
      swap  4 instructions
    └ handler  5 instructions
";
        assert_eq!(tree_in(window, None, &story), expected);
    }

    #[test]
    fn a_supervisor_call_is_counted_to_its_caller_and_an_interrupt_is_not() {
        let interrupted_by = |number| {
            tree(&[
                block(page("main"), page("main") + 2, interrupted()),
                exception(Exception::M(number), Some(page("main") + 2), page("handler")),
                block(page("handler"), page("handler") + 2, returns()),
                event(EventKind::ExceptionReturn),
                block(page("main") + 2, page("main") + 4, returns()),
                block(page("outer") + 2, page("outer") + 4, taken()),
            ])
        };
        assert!(interrupted_by(11).contains("└ main  3 instructions"), "{}", interrupted_by(11));
        assert!(interrupted_by(15).contains("└ main  2 instructions"), "{}", interrupted_by(15));
    }
}
